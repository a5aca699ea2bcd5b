//! An editor as the engine sees it: it answers sampling requests, opens web pages and hosts servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lsp_types::request::ShowDocument;
use lsp_types::{ShowDocumentParams, Url};
use serde_json::Value;

use super::documents::Documents;
use super::editor::Editor;
use crate::engine::editors::{self, Abilities, Identity, WebPage};
use crate::model::{Error, Result, ServerName};
use crate::protocol::events::{Buffer, BufferText, Notification, Request, Sample, SdkMessage, SignInPage};

/// The user may review a sampling request first, and the model needs time to answer.
const SAMPLING_TIMEOUT: Duration = Duration::from_secs(600);
/// A question waits for this. An editor that is busy cannot show it in time either.
const BUFFER_TIMEOUT: Duration = Duration::from_secs(2);
/// Receiving a message takes an editor milliseconds.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

pub struct AttachedEditor {
    pub abilities: Abilities,
    pub identity: Identity,
    pub editor: Editor,
    pub documents: Arc<Documents>,
}

impl editors::Editor for AttachedEditor {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>> {
        let editor = self.editor.clone();
        async move {
            let request = Sample { server, params };
            let failed =
                match tokio::time::timeout(SAMPLING_TIMEOUT, editor.send_request(Sample::METHOD, &request)).await {
                    Ok(Ok(answer)) => return Ok(answer),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "the editor did not answer the sampling request".to_owned(),
                };
            Err(Error::Connection { server: request.server, message: failed })
        }
        .boxed()
    }

    fn open_url(&self, page: WebPage) -> BoxFuture<'static, bool> {
        let (editor, is_plugin) = (self.editor.clone(), self.abilities.plugin);
        async move {
            let Ok(uri) = Url::parse(&page.url) else { return false };
            if let Some(server) = page.sign_in_to.filter(|_| is_plugin) {
                let sign_in = SignInPage { server, page: uri.to_string() };
                editor.send_notification(SignInPage::METHOD, &sign_in).await;
            }
            let params = ShowDocumentParams { uri, external: Some(true), take_focus: Some(true), selection: None };
            match tokio::time::timeout(DELIVERY_TIMEOUT, editor.request::<ShowDocument>(&params)).await {
                Ok(Ok(answer)) => answer.success,
                _ => false,
            }
        }
        .boxed()
    }

    fn unsaved(&self, file: PathBuf) -> BoxFuture<'static, Option<String>> {
        if !self.abilities.plugin {
            let open = self.documents.filter(|document| document.path.is_some());
            return async move {
                tokio::task::spawn_blocking(move || open.iter().find_map(|document| document.unsaved(&file)))
                    .await
                    .ok()?
            }
            .boxed();
        }
        let editor = self.editor.clone();
        async move {
            let request = Buffer { file };
            let answer = editor.send_request::<_, BufferText>(Buffer::METHOD, &request);
            tokio::time::timeout(BUFFER_TIMEOUT, answer).await.ok()?.ok()?.text
        }
        .boxed()
    }

    fn to_sdk(&self, server: String, message: Value) -> BoxFuture<'static, bool> {
        let editor = self.editor.clone();
        async move {
            let request = SdkMessage { server, message };
            // Lua sends an empty object as an empty list, so the answer is not parsed.
            let delivery = editor.send_request::<_, Value>(SdkMessage::METHOD, &request);
            matches!(tokio::time::timeout(DELIVERY_TIMEOUT, delivery).await, Ok(Ok(_)))
        }
        .boxed()
    }
}
