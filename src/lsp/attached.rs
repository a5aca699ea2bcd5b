//! An editor as the engine sees it: it answers sampling requests, opens web pages and hosts servers.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lsp_types::request::ShowDocument;
use lsp_types::{ShowDocumentParams, Url};
use serde_json::{Value, json};

use super::editor::Editor;
use crate::engine::editors::{self, Abilities};
use crate::model::{Error, Result, ServerName};

/// The user may review a sampling request first, and the model needs time to answer.
const SAMPLING_TIMEOUT: Duration = Duration::from_secs(600);
/// Receiving a message takes an editor milliseconds.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

pub struct AttachedEditor {
    pub abilities: Abilities,
    pub editor: Editor,
}

impl editors::Editor for AttachedEditor {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>> {
        let editor = self.editor.clone();
        async move {
            let request = json!({ "server": server, "params": params });
            match tokio::time::timeout(SAMPLING_TIMEOUT, editor.ask("mcp/sample", &request)).await {
                Ok(answer) => answer.map_err(|error| Error::Connection { server, message: error.to_string() }),
                Err(_) => Err(Error::Connection {
                    server,
                    message: "the editor did not answer the sampling request".to_owned(),
                }),
            }
        }
        .boxed()
    }

    fn open_url(&self, url: String) -> BoxFuture<'static, bool> {
        let editor = self.editor.clone();
        async move {
            let Ok(uri) = Url::parse(&url) else { return false };
            let params = ShowDocumentParams { uri, external: Some(true), take_focus: Some(true), selection: None };
            match tokio::time::timeout(DELIVERY_TIMEOUT, editor.request::<ShowDocument>(&params)).await {
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
            matches!(tokio::time::timeout(DELIVERY_TIMEOUT, delivery).await, Ok(Ok(_)))
        }
        .boxed()
    }
}
