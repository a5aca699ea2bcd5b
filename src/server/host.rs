//! What a server may ask of the world above it. The engine implements it; a server knows no more than this.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::config::Definition;
use crate::config::spec::Input;
use crate::model::{CallId, Result, ServerName};
use crate::server::oauth::{NoTokens, TokenStore};
use crate::text::Secret;

/// Unless a host says otherwise, nobody is at it: questions stay without an answer, and there is nothing to give.
pub trait Host: Send + Sync + 'static {
    /// The workspace folders, as MCP roots.
    fn roots(&self) -> Vec<Arc<Path>> {
        Vec::new()
    }

    /// The folder that a server of the user runs in, in the open workspace.
    fn private_folder(&self, server: &ServerName) -> PathBuf {
        std::env::temp_dir().join(format!("mcp-sidecar-{server}-{}", std::process::id()))
    }

    /// Whether an editor is there that answers sampling: only then is it advertised.
    fn can_sample(&self) -> bool {
        false
    }

    /// Whether somebody can be asked at all.
    fn can_elicit(&self) -> bool {
        false
    }

    /// Asks the user on behalf of a server; MCP's `elicitation/create` params in, its result out. `calls` are those that
    /// the question may belong to: one where that is known.
    fn elicit(&self, _server: ServerName, _calls: Vec<CallId>, _params: Value) -> BoxFuture<'static, Result<Value>> {
        Box::pin(std::future::pending())
    }

    /// MCP's `sampling/createMessage` params in, its result out; after approval.
    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        Box::pin(std::future::pending())
    }

    /// The value of an `inputs` entry: from the keyring, else asked. `None` when the user would not say.
    fn input(&self, _server: ServerName, _input: Input) -> BoxFuture<'static, Option<Secret>> {
        Box::pin(std::future::ready(None))
    }

    /// The value kept in the keyring under this name.
    fn keyring(&self, _name: String) -> BoxFuture<'static, Option<Secret>> {
        Box::pin(std::future::ready(None))
    }

    /// Where the tokens of signed-in servers are kept. Without a place of its own a host keeps none.
    fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(NoTokens)
    }

    /// Whether a definition may start now: its program or its scripts may have changed on disk since it was trusted.
    fn may_start(&self, _definition: Arc<Definition>) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(true))
    }

    /// Opens a page in the user's browser, through the editor.
    fn open_url(&self, _url: String) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(false))
    }

    /// A server that lives inside an editor, by the name the editor gave it. `None` when no editor has one.
    fn tunnel(&self, _name: &str) -> Option<Tunnel> {
        None
    }
}

/// Both directions of an editor-hosted server: whole MCP messages. A closed channel means the editor has gone.
pub struct Tunnel {
    pub to_editor: mpsc::Sender<Value>,
    pub from_editor: mpsc::Receiver<Value>,
}
