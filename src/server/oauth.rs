//! Signs in to remote servers: from the challenge of a 401 through the browser to a token that is renewed
//! automatically. Tokens are saved in a [`TokenStore`], one entry per server URL; a token is only renewed at the issuer
//! of its entry. Each server has its own [`ServerAuth`], which keeps its challenge until the user signs in.

mod account;
mod assertion;
mod callback;
mod client_credentials;
mod discovery;
mod pasted;
mod renewal;
mod tokens;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest, AuthorizationSession,
    WWWAuthenticateParams,
};
use url::Url;

use crate::config::expand::Client;
use crate::config::spec;
use crate::model::{Error, Result, ServerName};
use crate::server::transport::net::{is_loopback, ready_tls};
use crate::text::{Secret, mask, one_line, parse_url};
use callback::{Callback, parameter};
use pasted::OpenSignIns;

pub use account::Account;
pub use client_credentials::Challenge as TokenChallenge;
use tokens::SavedSignIn;
pub use tokens::{MemoryTokens, NoTokens, TokenLock, TokenStore, key as stored_name};

/// How long the user may take in the browser.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);
/// Sign-ins for more permissions within [`SCOPE_REQUEST_WINDOW`]; a server that requires even more is looping.
const MAX_SCOPE_REQUESTS: u32 = 2;
const SCOPE_REQUEST_WINDOW: Duration = Duration::from_secs(600);
const CLIENT_NAME: &str = "mcp-sidecar";

/// Configured values for signing in to a server.
#[derive(Debug, Clone, Default)]
pub struct Hints {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// The URL of our client metadata document, for servers that accept it as the client id.
    pub client_metadata_url: Option<String>,
    pub scopes: Vec<String>,
    pub callback_port: Option<u16>,
}

impl Hints {
    /// The values of a definition. Its secret is already resolved.
    pub fn new(oauth: spec::OAuth, client_secret: Option<Secret>) -> Self {
        let spec::OAuth { client_id, client_secret: _, private_key: _, scopes, callback_port, grant: _ } = oauth;
        // A URL is the id of a client that the server does not know yet; the server must be able to fetch it.
        let (client_metadata_url, client_id) = match client_id {
            Some(id) if id.starts_with("https://") => (Some(id), None),
            id => (None, id),
        };
        Self { client_id, client_secret, client_metadata_url, scopes, callback_port }
    }
}

/// The sign-in state of one server: where its tokens are stored, and what it required last. Cheap to clone; all clones
/// share it.
#[derive(Clone)]
pub struct ServerAuth {
    store: Arc<dyn TokenStore>,
    /// Private, and never locked over an await.
    challenge: Arc<Mutex<Challenge>>,
    open: OpenSignIns,
}

/// Opens a page in the user's browser. False if it cannot.
pub type OpenPage = Box<dyn FnOnce(String) -> BoxFuture<'static, bool> + Send>;

#[derive(Debug, Clone, Default)]
struct Challenge {
    /// The URL that sent it. A server with a fallback has two.
    url: Option<Url>,
    header: Option<String>,
    /// The permissions that a 403 requires in addition.
    scope: Option<String>,
    scope_requests: u32,
    first_scope_request: Option<Instant>,
}

/// Stores nothing: for a server without a user.
impl Default for ServerAuth {
    fn default() -> Self {
        Self::new(Arc::new(NoTokens))
    }
}

impl ServerAuth {
    pub fn new(store: Arc<dyn TokenStore>) -> Self {
        Self { store, challenge: Arc::default(), open: OpenSignIns::default() }
    }

    /// The account at a URL of the server: the user's, or that of a client with its own secret.
    pub fn account(&self, url: &Url, client: Option<Client>) -> Account {
        Account::new(url, self.store.clone(), client)
    }

    /// Records a 401 and its challenge.
    pub fn challenged(&self, url: &Url, header: Option<&str>) {
        self.with_challenge(url, |challenge| challenge.header = header.map(str::to_owned));
    }

    /// Records a 403 that requires more permissions and returns them; `None` for an ordinary 403.
    pub fn insufficient_scope(&self, url: &Url, header: &str) -> Option<String> {
        let params = WWWAuthenticateParams::parse(header, url);
        if !params.is_insufficient_scope() {
            return None;
        }
        let scope = params.scope.unwrap_or_default();
        self.with_challenge(url, |challenge| {
            challenge.header = Some(header.to_owned());
            challenge.scope = Some(scope.clone());
        });
        Some(one_line(&scope, 200))
    }

    /// Whether this URL of the server was the last one to require a sign-in.
    pub fn is_challenged(&self, url: &Url) -> bool {
        self.challenge().url.as_ref() == Some(url)
    }

    /// Runs the complete flow: discovery, registration, browser, token. Ends when the user is signed in, or after five
    /// minutes.
    pub async fn sign_in(&self, server: &ServerName, url: &Url, hints: Hints, open: OpenPage) -> Result<()> {
        let failed = |message: String| Error::Connection { server: server.clone(), message };
        let flow = SignInFlow { auth: self, hints };
        flow.run(url, open).await.map_err(|problem| failed(format!("sign-in failed: {problem}")))
    }

    /// Ends a sign-in with the address that the browser was sent to, if it cannot load it.
    pub fn paste(&self, address: &str) -> Result<()> {
        self.open.paste(address).map_err(Error::InvalidParams)
    }

    /// Deletes the token and the challenge of a URL.
    pub async fn sign_out(&self, url: &Url) -> Result<()> {
        self.with_challenge(url, |challenge| *challenge = Challenge::default());
        // A renewal in progress would store its token afterwards.
        let _lock = self.store.lock(tokens::key(url)).await?;
        self.store.clear(tokens::key(url)).await
    }

    /// The challenge to answer. Counts the sign-ins for more permissions to detect a loop.
    fn next_challenge(&self, url: &Url) -> std::result::Result<Challenge, String> {
        self.with_challenge(url, |challenge| {
            if challenge.scope.is_none() {
                return Ok(challenge.clone());
            }
            if challenge.first_scope_request.is_none_or(|first| first.elapsed() > SCOPE_REQUEST_WINDOW) {
                challenge.first_scope_request = Some(Instant::now());
                challenge.scope_requests = 0;
            }
            challenge.scope_requests += 1;
            match challenge.scope_requests > MAX_SCOPE_REQUESTS {
                true => Err(format!(
                    "the server still requires more permissions after {MAX_SCOPE_REQUESTS} sign-ins; ask its operator"
                )),
                false => Ok(challenge.clone()),
            }
        })
    }

    /// Changes the challenge of a URL. That of another URL is dropped.
    fn with_challenge<T>(&self, url: &Url, change: impl FnOnce(&mut Challenge) -> T) -> T {
        let mut challenge = self.challenge();
        if challenge.url.as_ref() != Some(url) {
            *challenge = Challenge { url: Some(url.clone()), ..Challenge::default() };
        }
        change(&mut challenge)
    }

    fn challenge(&self) -> MutexGuard<'_, Challenge> {
        // It stays valid if a thread panics: at worst it is an old one.
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SignInFlow<'a> {
    auth: &'a ServerAuth,
    hints: Hints,
}

impl SignInFlow<'_> {
    async fn run(self, url: &Url, open: OpenPage) -> std::result::Result<(), String> {
        ready_tls();
        let challenge = self.auth.next_challenge(url)?;
        let callback = Callback::listen(self.hints.callback_port).await?;
        let mut manager = AuthorizationManager::new(url.clone()).await.map_err(explain)?;
        let (credentials, flow_result) = tokens::in_memory();
        manager.set_credential_store(credentials);

        let metadata = discovery::discover(&mut manager, url, challenge.header.as_deref()).await.map_err(explain)?;
        check(url, &metadata)?;

        let request = self.request(&mut manager, &metadata, &callback, url, &challenge).await?;
        let secret = request.client_secret.clone();
        let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| explain(error))?;
        let page = session.get_authorization_url().to_owned();
        // The library builds the URL from metadata, so it is checked again before a browser opens it.
        endpoint(url, "authorization_endpoint", &page)?;

        let state = parse_url(&page).ok().and_then(|url| parameter(&url, "state"));
        let state = state.ok_or("the sign-in URL has no `state`")?;
        let redirect = parse_url(&callback.redirect_uri())?;
        let pasted = self.auth.open.expect(redirect, state.clone());
        let answer = callback.wait(&state, SIGN_IN_TIMEOUT, open(page), pasted).await?;
        let outcome = session.handle_callback_url(answer.url()).await.map_err(explain);
        answer.show(outcome.as_ref().err()).await;
        outcome?;

        let credentials = flow_result.take().await.ok_or("the server did not send a token")?;
        let entry = SavedSignIn { credentials, client_secret: secret, redirect_uri: callback.redirect_uri() };
        {
            let _lock = self.auth.store.lock(tokens::key(url)).await.map_err(|error| error.to_string())?;
            entry.save(url, &self.auth.store).await.map_err(|error| error.to_string())?;
        }
        self.auth.with_challenge(url, |challenge| {
            challenge.header = None;
            challenge.scope = None;
        });
        Ok(())
    }

    /// Chooses the client (a configured id, then the URL of our metadata document, then registration) and the scopes.
    async fn request(
        &self,
        manager: &mut AuthorizationManager,
        metadata: &AuthorizationMetadata,
        callback: &Callback,
        url: &Url,
        challenge: &Challenge,
    ) -> std::result::Result<AuthorizationRequest, String> {
        let scopes = self.scopes(manager, url, challenge).await;
        let redirect = callback.redirect_uri();
        let request =
            AuthorizationRequest::new(redirect.clone()).with_scopes(scopes.clone()).with_initial_scope_selection();
        if let Some(id) = &self.hints.client_id {
            let request = request.with_preregistered_client(id);
            return Ok(match &self.hints.client_secret {
                Some(secret) => request.with_client_secret(secret.reveal()),
                None => request,
            });
        }
        let takes_address =
            metadata.additional_fields.get("client_id_metadata_document_supported").and_then(|value| value.as_bool());
        if let (Some(address), Some(true)) = (&self.hints.client_metadata_url, takes_address) {
            return Ok(request.with_client_metadata_url(address));
        }
        // Registered here and not by the session, because the client secret must be saved.
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = manager.register_client(CLIENT_NAME, &redirect, &scopes).await.map_err(explain)?;
        let request = request.with_preregistered_client(client.client_id);
        Ok(match client.client_secret {
            Some(secret) => request.with_client_secret(tokens::client_secret(url, &secret).reveal()),
            None => request,
        })
    }

    /// The configured scopes; for more permissions, those granted and those required; or else what discovery says.
    async fn scopes(&self, manager: &AuthorizationManager, url: &Url, challenge: &Challenge) -> Vec<String> {
        let mut scopes = self.hints.scopes.clone();
        if let Some(scope) = &challenge.scope {
            if let Some(entry) = SavedSignIn::load(url, &self.auth.store).await {
                scopes.extend(entry.credentials.granted_scopes);
            }
            scopes.extend(scope.split_whitespace().map(str::to_owned));
            let mut seen = std::collections::BTreeSet::new();
            scopes.retain(|scope| seen.insert(scope.clone()));
        }
        match scopes.is_empty() {
            true => manager.select_initial_scopes(&[]).await,
            false => scopes,
        }
    }
}

/// Rejects endpoints that a browser or a token must not go to.
fn check(server: &Url, metadata: &AuthorizationMetadata) -> std::result::Result<(), String> {
    endpoint(server, "authorization_endpoint", &metadata.authorization_endpoint)?;
    endpoint(server, "token_endpoint", &metadata.token_endpoint)?;
    match &metadata.registration_endpoint {
        Some(address) => endpoint(server, "registration_endpoint", address),
        None => Ok(()),
    }
}

/// Allows https. Only a server on this machine may name an endpoint on it, which may use http: others must not reach the
/// programs of this machine, not even by the user's browser.
fn endpoint(server: &Url, name: &str, address: &str) -> std::result::Result<(), String> {
    let url =
        parse_url(address).map_err(|reason| format!("the `{name}` of the server is not a valid URL: {reason}"))?;
    let is_local = |url: &Url| url.host_str().is_some_and(is_loopback);
    match url.scheme() {
        "http" | "https" if is_local(&url) && !is_local(server) => {
            Err(format!("the `{name}` of the server is on this machine, but the server is not"))
        }
        "https" if url.has_host() => Ok(()),
        "http" if is_local(&url) => Ok(()),
        "http" => Err(format!("the `{name}` of the server uses http; it must use https")),
        _ => Err(format!("the `{name}` of the server is not an https URL")),
    }
}

/// The library's message, safe to show and on one line.
fn explain(error: AuthError) -> String {
    match &error {
        AuthError::AuthorizationServerMismatch { .. } => {
            format!(
                "the metadata names another issuer, so nothing was sent to it ({})",
                one_line(&mask(&error.to_string()), 300)
            )
        }
        AuthError::NoAuthorizationSupport => {
            "the server does not support OAuth; set its credentials in `headers`".to_owned()
        }
        error => one_line(&mask(&error.to_string()), 300),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_local_server_may_name_endpoints_on_this_machine() {
        let allowed = |server: &str, address: &str| endpoint(&Url::parse(server).unwrap(), "x", address).is_ok();
        let (local, remote) = ("http://localhost:1/mcp", "https://mcp.example.test/mcp");
        assert!(allowed(local, "http://127.0.0.1:2/token") && allowed(local, "https://auth.example.test/token"));
        assert!(allowed(remote, "https://auth.example.test/token"));
        for address in
            ["http://127.0.0.1:2/token", "https://localhost/token", "http://[::1]/", "http://auth.example.test/"]
        {
            assert!(!allowed(remote, address), "{address}");
        }
    }

    #[test]
    fn a_client_id_that_is_a_url_becomes_the_metadata_url() {
        let hints = |id: &str| Hints::new(spec::OAuth { client_id: Some(id.to_owned()), ..Default::default() }, None);
        assert_eq!(hints("abc").client_id.as_deref(), Some("abc"));
        let address = "https://me.example.test/client.json";
        assert_eq!(hints(address).client_metadata_url.as_deref(), Some(address));
        assert_eq!(hints(address).client_id, None);
    }
}
