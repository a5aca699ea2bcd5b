//! Signing in to a server and out again. The server module implements both; this decides when they are allowed, and
//! restarts the server.

use std::sync::Arc;

use futures::FutureExt;

use super::Engine;
use super::editors::{Identity, WebPage};
use super::snapshot::ServerView;
use super::turns::Turn;
use crate::model::{Error, Result, ServerName};
use crate::server::oauth::ServerAuth;

impl Engine {
    /// Runs the sign-in in the user's browser, then restarts the server.
    pub async fn sign_in(&self, server: ServerName, asked_by: &Identity, turn: Turn) -> Result<Arc<ServerView>> {
        let view = self.now().server(&server)?.clone();
        // A project's URL is not even resolved before the user trusts it.
        let running = view.usable().or_else(|error| match error {
            Error::NeedsAuth(_) => view.server.as_ref().ok_or(Error::NeedsTrust(server.clone())),
            error => Err(error),
        })?;
        // The user may take minutes in the browser. If they stop the server before that, it stays stopped.
        drop(turn);
        let (editors, asked_by) = (self.0.editors.clone(), asked_by.clone());
        let sign_in_to = Some(server.clone());
        let open =
            |url: String| async move { editors.open_page(WebPage { url, sign_in_to }, Some(&asked_by)).await }.boxed();
        running.sign_in(Box::new(open)).await?;
        if self.now().server(&server)?.actions == view.actions {
            self.act(super::Action::Restart, Some(server.clone()), Turn::default()).await?;
        }
        self.now().server(&server).cloned()
    }

    /// Ends the sign-in that waits for this address. The browser could not load it, because it is on another machine.
    pub fn paste_address(&self, server: &ServerName, address: &str) -> Result<()> {
        let view = self.now().server(server)?.clone();
        let running = view.server.as_ref().ok_or(Error::NeedsTrust(server.clone()))?;
        running.paste_address(address)
    }

    /// Deletes the token and closes the connection that uses it.
    pub async fn sign_out(&self, server: ServerName, turn: Turn) -> Result<Arc<ServerView>> {
        let view = self.now().server(&server)?.clone();
        match &view.server {
            Some(running) => {
                running.sign_out().await?;
                self.act(super::Action::Restart, Some(server.clone()), turn).await?;
            }
            None => {
                let context = &self.0.context;
                context.resolver_now(&view.definition).sign_out(&ServerAuth::new(context.host.tokens())).await?;
            }
        }
        self.now().server(&server).cloned()
    }
}
