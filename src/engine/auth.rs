//! Signing in at a server and out again. The flow is the server module's; which address, and where tokens are kept, is
//! said here.

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
    /// Runs the whole flow in the user's browser, then starts the server anew.
    pub async fn sign_in(&self, server: ServerName, turn: Turn) -> Result<Arc<ServerView>> {
        let view = self.now().server(&server)?.clone();
        // An address of a project is not even looked up before the user has trusted it.
        view.usable().or_else(|error| match error {
            Error::NeedsAuth(_) => view.server.as_ref().ok_or(Error::NeedsTrust(server.clone())),
            error => Err(error),
        })?;
        // The user may take minutes in the browser. A stop that comes meanwhile holds.
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

    /// Forgets the token, and the connection that was made with it.
    pub async fn sign_out(&self, server: ServerName, turn: Turn) -> Result<Arc<ServerView>> {
        let view = self.now().server(&server)?.clone();
        let (url, ..) = self.address(&view)?;
        oauth::sign_out(url.reveal(), self.0.context.host.tokens()).await?;
        if view.server.is_some() {
            self.act(super::Action::Restart, Some(server.clone()), turn).await?;
        }
        self.now().server(&server).cloned()
    }

    /// Where a server is, and what its definition says about signing in there.
    fn address(&self, view: &ServerView) -> Result<(Secret, Option<OAuth>, Values)> {
        let definition = &view.definition;
        let local = || Error::InvalidParams(format!("`{}` is no server that one signs in at", definition.name));
        let (Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. }) =
            &definition.spec.launch
        else {
            return Err(local());
        };
        // Headers may refer to what only a start asks for; the address alone is needed here.
        let mut bare = remote.clone();
        bare.headers.clear();
        let roots = self.0.context.host.roots();
        let values = Values::of(definition, roots.first().map(|root| &**root), None);
        let expanded =
            expand::expand(&Launch::Http(bare), &values, None).map_err(|error| Error::Io(error.to_string()))?;
        let Expanded::Http(endpoint) = expanded else { return Err(local()) };
        Ok((endpoint.url, endpoint.oauth, values))
    }

    /// What the definition knows about signing in. Its secret is looked up only now: a start does not need it.
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
