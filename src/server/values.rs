//! The values of `${…}` in a definition. A start, a sign-in and a sign-out resolve them here, so all of them reach the
//! same URL.

use std::path::PathBuf;

use url::Url;

use super::host::Host;
use super::oauth::{Hints, OpenPage, ServerAuth};
use crate::config::Environment;
use crate::config::expand::{self, Endpoint, Expanded, Reference, Values};
use crate::config::spec::{Definition, Grant, Input, Launch, OAuth};
use crate::model::{Error, Result};
use crate::text::{Secret, parse_url};

/// Resolves the references of one definition.
pub struct Resolver<'a> {
    pub definition: &'a Definition,
    /// What `${input:…}` may refer to.
    pub inputs: &'a [Input],
    pub host: &'a dyn Host,
    /// The environment that it starts with.
    pub environment: Environment,
}

impl Resolver<'_> {
    /// The values of these references. Asks the user for inputs that have no saved answer, between `asking(true)` and
    /// `asking(false)`. An error is a message for the user.
    pub async fn values(
        &self,
        references: Vec<Reference>,
        run_folder: Option<PathBuf>,
        asking: impl Fn(bool),
    ) -> std::result::Result<Values, String> {
        let roots = self.host.roots();
        let mut values = Values::of(self.definition, &self.environment, roots.first().map(|root| &**root), run_folder);
        for reference in references {
            match reference {
                Reference::Input(id) => {
                    let input = self.input(&id)?;
                    let mut answer = self.host.saved_input(input).await;
                    if answer.is_none() {
                        asking(true);
                        answer = self.host.input(self.definition.name.clone(), input.clone()).await;
                        asking(false);
                    }
                    let missing = || format!("the input `{id}` has no value; restart the server to be asked again");
                    values.inputs.insert(id.clone(), answer.ok_or_else(missing)?);
                }
                Reference::Keyring(key) => {
                    // A new server of a project gets it only if the user agrees.
                    let may_ask = self.definition.scope.needs_trust();
                    if may_ask {
                        asking(true);
                    }
                    let secret = self.host.keyring(self.definition, key.clone()).await;
                    if may_ask {
                        asking(false);
                    }
                    values.keyring.extend(secret?.map(|secret| (key, secret)));
                }
                Reference::Variable { .. }
                | Reference::WorkspaceFolder
                | Reference::WorkspaceFolderBasename
                | Reference::UserHome
                | Reference::PathSeparator
                | Reference::Cwd
                | Reference::TooDeep(_)
                | Reference::Unknown(_) => {}
            }
        }
        Ok(values)
    }

    /// The entry of `inputs`; entries of the same file take precedence.
    fn input(&self, id: &str) -> std::result::Result<&Input, String> {
        let inputs = || self.inputs.iter().filter(|input| input.id == id);
        inputs().find(|input| input.file == self.definition.file).or_else(|| inputs().next()).ok_or_else(|| {
            format!("`${{input:{id}}}` refers to an unknown input; add an entry with the id `{id}` to `inputs`")
        })
    }

    /// Signs in to the URL that required it last, or else to the first URL of the definition.
    pub async fn sign_in(&self, auth: &ServerAuth, open: OpenPage) -> Result<()> {
        let mut endpoints = self.endpoints().await?;
        let challenged = endpoints.iter().position(|(url, _)| auth.is_challenged(url));
        let (url, oauth) = endpoints.swap_remove(challenged.unwrap_or_default());
        let oauth = oauth.unwrap_or_default();
        if oauth.grant == Grant::ClientCredentials {
            let name = &self.definition.name;
            return Err(Error::InvalidParams(format!(
                "`{name}` signs in by itself as the client in its `oauth`, so you cannot sign in to it"
            )));
        }
        let hints = self.hints(oauth).await?;
        auth.sign_in(&self.definition.name, &url, hints, open).await
    }

    /// Deletes the tokens of all URLs of the definition.
    pub async fn sign_out(&self, auth: &ServerAuth) -> Result<()> {
        for (url, _) in self.endpoints().await? {
            auth.sign_out(&url).await?;
        }
        Ok(())
    }

    /// The URL of the definition and that of its fallback, with their sign-in options. At least one.
    async fn endpoints(&self) -> Result<Vec<(Url, Option<OAuth>)>> {
        let name = &self.definition.name;
        let spec = &self.definition.spec;
        let mut endpoints = Vec::new();
        for launch in [Some(&spec.launch), spec.fallback.as_ref()].into_iter().flatten() {
            // Headers may need values that a sign-in does not.
            let mut launch = launch.clone();
            let (Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. }) = &mut launch
            else {
                continue;
            };
            remote.headers.clear();
            let values = self.values(expand::references(&launch), None, |_| {}).await.map_err(Error::Io)?;
            let expanded = expand::expand(&launch, &values, None).map_err(|error| Error::Io(error.to_string()))?;
            if let Expanded::Http(Endpoint { url, oauth, .. }) | Expanded::Sse(Endpoint { url, oauth, .. }) = expanded {
                let invalid = |reason| Error::InvalidParams(format!("the URL of `{name}` is not valid: {reason}"));
                endpoints.push((parse_url(url.reveal()).map_err(invalid)?, oauth));
            }
        }
        match endpoints.is_empty() {
            true => Err(Error::InvalidParams(format!("`{name}` is not a remote server, so you cannot sign in to it"))),
            false => Ok(endpoints),
        }
    }

    /// The sign-in options of a definition. Only a sign-in needs the client secret.
    async fn hints(&self, oauth: OAuth) -> Result<Hints> {
        let Some(written) = &oauth.client_secret else { return Ok(Hints::new(oauth, None)) };
        let failed = |error: String| Error::Io(format!("`clientSecret`: {error}"));
        let values = self.values(expand::references_in(written), None, |_| {}).await.map_err(failed)?;
        let secret = expand::text(written, &values).map_err(|error| failed(error.to_string()))?;
        Ok(Hints::new(oauth, Some(Secret::new(secret))))
    }
}
