//! Signing in to a server and out again. The server module implements the flow; this decides the URL and where tokens
//! are stored.

use std::sync::Arc;

use super::Engine;
use super::snapshot::ServerView;
use super::turns::Turn;
use crate::config::expand::{self, Expanded, Reference, Values};
use crate::config::spec::{Launch, OAuth};
use crate::model::{Error, Result, ServerName};
use crate::server::oauth::{self, Hints};
use crate::text::Secret;

impl Engine {
    /// Runs the sign-in in the user's browser, then restarts the server.
    pub async fn sign_in(&self, server: ServerName, turn: Turn) -> Result<Arc<ServerView>> {
        let view = self.now().server(&server)?.clone();
        // A project's URL is not even resolved before the user trusts it.
        view.usable().or_else(|error| match error {
            Error::NeedsAuth(_) => view.server.as_ref().ok_or(Error::NeedsTrust(server.clone())),
            error => Err(error),
        })?;
        // The user may take minutes in the browser. If they stop the server meanwhile, it stays stopped.
        drop(turn);
        let (url, oauth, values) = self.address(&view)?;
        let hints = self.hints(&view, oauth.unwrap_or_default(), values).await?;
        let host = &self.0.context.host;
        oauth::sign_in(&server, url.reveal(), hints, host.tokens(), host.clone()).await?;
        if self.now().server(&server)?.actions == view.actions {
            self.act(super::Action::Restart, Some(server.clone()), Turn::default()).await?;
        }
        self.now().server(&server).cloned()
    }

    /// Deletes the token and closes the connection that uses it.
    pub async fn sign_out(&self, server: ServerName, turn: Turn) -> Result<Arc<ServerView>> {
        let view = self.now().server(&server)?.clone();
        let (url, ..) = self.address(&view)?;
        oauth::sign_out(url.reveal(), self.0.context.host.tokens()).await?;
        if view.server.is_some() {
            self.act(super::Action::Restart, Some(server.clone()), turn).await?;
        }
        self.now().server(&server).cloned()
    }

    /// The URL of a server and the sign-in options in its definition.
    fn address(&self, view: &ServerView) -> Result<(Secret, Option<OAuth>, Values)> {
        let definition = &view.definition;
        let local = || {
            Error::InvalidParams(format!("`{}` is not a remote server, so you cannot sign in to it", definition.name))
        };
        let (Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. }) =
            &definition.spec.launch
        else {
            return Err(local());
        };
        // Headers may need values that are only requested at a start. Here only the URL is needed.
        let mut bare = remote.clone();
        bare.headers.clear();
        let roots = self.0.context.host.roots();
        let values = Values::of(definition, roots.first().map(|root| &**root), None);
        let expanded =
            expand::expand(&Launch::Http(bare), &values, None).map_err(|error| Error::Io(error.to_string()))?;
        let Expanded::Http(endpoint) = expanded else { return Err(local()) };
        Ok((endpoint.url, endpoint.oauth, values))
    }

    /// The sign-in options of the definition. The client secret is resolved here because a start does not need it.
    async fn hints(&self, view: &ServerView, oauth: OAuth, mut values: Values) -> Result<Hints> {
        let Some(written) = oauth.client_secret.clone() else { return Ok(Hints::new(oauth, None)) };
        let host = &self.0.context.host;
        let definition = &view.definition;
        for reference in expand::references_in(&written) {
            match reference {
                Reference::Input(id) => {
                    let inputs = self.loaded().borrow().config.inputs.clone();
                    let found = inputs.iter().filter(|input| input.id == id);
                    let own = found.clone().find(|input| input.file == definition.file);
                    let Some(input) = own.or_else(|| found.clone().next()) else { continue };
                    if let Some(answer) = host.input(definition.name.clone(), input.clone()).await {
                        values.inputs.insert(id, answer);
                    }
                }
                Reference::Keyring(name) => {
                    if let Some(secret) = host.keyring(name.clone()).await {
                        values.keyring.insert(name, secret);
                    }
                }
                _ => {}
            }
        }
        let secret = expand::text(&written, &values).map_err(|error| Error::Io(format!("`clientSecret`: {error}")))?;
        Ok(Hints::new(oauth, Some(Secret::new(secret))))
    }
}
