//! An editor as the engine sees it: somebody to sample with, to open pages with, and to reach servers in.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tower_lsp::lsp_types::request::ShowDocument;
use tower_lsp::lsp_types::{ShowDocumentParams, Url};

use super::editor::Editor;
use crate::engine::editors::{self, Abilities};
use crate::model::{Error, Result, ServerName};

/// A person may look at a sampling request for a while, a model may write for a while.
const SAMPLING: Duration = Duration::from_secs(600);
/// Taking a message in is a matter of milliseconds.
const DELIVERY: Duration = Duration::from_secs(30);

pub struct Attached {
    pub abilities: Abilities,
    pub editor: Editor,
}

impl editors::Editor for Attached {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>> {
        let editor = self.editor.clone();
        async move {
            let request = json!({ "server": server, "params": params });
            match tokio::time::timeout(SAMPLING, editor.ask("mcp/sample", &request)).await {
                Ok(answer) => answer.map_err(|error| Error::Connection { server, message: error.to_string() }),
                Err(_) => Err(Error::Connection { server, message: "the editor did not answer sampling".to_owned() }),
            }
        }
        .boxed()
    }

    fn open_url(&self, url: String) -> BoxFuture<'static, bool> {
        let editor = self.editor.clone();
        async move {
            let Ok(uri) = Url::parse(&url) else { return false };
            let params = ShowDocumentParams { uri, external: Some(true), take_focus: Some(true), selection: None };
            match tokio::time::timeout(DELIVERY, editor.request::<ShowDocument>(&params)).await {
                Ok(Ok(answer)) => answer.success,
                _ => false,
            }
        }
        .boxed()
    }

    fn to_sdk(&self, server: String, message: Value) -> BoxFuture<'static, bool> {
        let editor = self.editor.clone();
        async move {
            let request = json!({ "server": server, "message": message });
            let delivery = editor.ask::<_, Value>("mcp/sdk/message", &request);
            matches!(tokio::time::timeout(DELIVERY, delivery).await, Ok(Ok(_)))
        }
        .boxed()
    }
}
