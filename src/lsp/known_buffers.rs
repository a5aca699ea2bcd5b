//! The open buffers of an editor, for a front that has to send them to another engine.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::documents::{Document, Documents};
use super::initialize_info::InitializeInfo;
use crate::text::lines::Encoding;

#[derive(Default)]
pub struct KnownBuffers {
    documents: Documents,
    encoding: Option<Encoding>,
}

impl KnownBuffers {
    /// Takes the params of `initialize`, which say how the editor counts characters.
    pub fn initialize(&mut self, params: &Value) {
        self.encoding = Some(InitializeInfo::read(params).encoding);
    }

    /// Applies a notification about a buffer. An invalid one is ignored, as the engine does.
    pub fn notify(&mut self, method: &str, params: Value) {
        fn read<T: DeserializeOwned>(params: Value, apply: impl FnOnce(T)) {
            serde_json::from_value(params).map(apply).ok();
        }
        match method {
            "textDocument/didOpen" => read(params, |params| drop(self.documents.open(params))),
            "textDocument/didChange" => {
                read(params, |params| self.documents.change(params, self.encoding.unwrap_or(Encoding::Utf16)));
            }
            "textDocument/didClose" => read(params, |params| self.documents.close(&params)),
            _ => {}
        }
    }

    /// The params of `textDocument/didOpen` for each buffer as it is now.
    pub fn reopen(&self) -> Vec<Value> {
        let item = |Document { uri, language, version, text, .. }: Document| json!({ "textDocument": { "uri": uri, "languageId": language, "version": version, "text": &*text } });
        self.documents.all().into_iter().map(item).collect()
    }
}
