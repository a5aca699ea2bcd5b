//! The user's account at one server: a valid token, renewed automatically.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use serde_json::Value;
use tokio::sync::Mutex;
use url::Url;

use super::discovery::discover;
use super::tokens::{self, Entry, TokenStore};
use crate::server::transport::net::{RemoteError, ready_tls};
use crate::text::{Secret, mask, one_line};

/// A token is renewed this many seconds before it expires, so that it stays valid during the request.
const MARGIN: u64 = 30;

pub struct Account {
    url: Url,
    store: Arc<dyn TokenStore>,
    /// The entry in use. Locked during a renewal, so that concurrent calls renew only once; this is the one lock that
    /// is meant to be held over an await.
    entry: Mutex<State>,
}

enum State {
    Unread,
    Read(Option<Box<Entry>>),
}

impl Account {
    pub fn new(url: &Url, store: Arc<dyn TokenStore>) -> Self {
        Self { url: url.clone(), store, entry: Mutex::new(State::Unread) }
    }

    /// The token to send; `None` if the user is not signed in.
    pub async fn token(&self) -> Result<Option<Secret>, RemoteError> {
        let mut state = self.entry.lock().await;
        if matches!(*state, State::Unread) {
            *state = State::Read(Entry::load(&self.url, &self.store).await.map(Box::new));
        }
        let State::Read(Some(entry)) = &mut *state else { return Ok(None) };
        if !ends_soon(entry) {
            return Ok(access_token(entry));
        }
        match self.refresh(entry).await? {
            Some(fresh) => {
                **entry = fresh;
                Ok(access_token(entry))
            }
            // The token may still be valid; if not, the server rejects it.
            None => Ok(access_token(entry)),
        }
    }

    /// Replaces a token that the server rejected; `None` if the user has to sign in.
    pub async fn renew(&self, rejected: &Secret) -> Result<Option<Secret>, RemoteError> {
        let mut state = self.entry.lock().await;
        // Another call or another sidecar may have renewed it in the meantime.
        let Some(entry) = Entry::load(&self.url, &self.store).await else { return Ok(None) };
        let fresh = match access_token(&entry) {
            Some(token) if token != *rejected => Some(entry),
            _ => self.refresh(&entry).await?,
        };
        let token = fresh.as_ref().and_then(access_token);
        if let Some(fresh) = fresh {
            *state = State::Read(Some(Box::new(fresh)));
        }
        Ok(token)
    }

    /// Requests a new token. The library checks the issuer first and drops the token of another one.
    async fn refresh(&self, entry: &Entry) -> Result<Option<Entry>, RemoteError> {
        ready_tls();
        let failed = |error: AuthError| {
            RemoteError::Unreachable(format!(
                "cannot renew the access token: {}",
                one_line(&mask(&error.to_string()), 200)
            ))
        };
        let mut manager = AuthorizationManager::new(self.url.clone()).await.map_err(failed)?;
        let (credentials, flow_result) = tokens::in_memory();
        flow_result.put(entry.credentials.clone()).await;
        manager.set_credential_store(credentials);
        discover(&mut manager, &self.url, None).await.map_err(failed)?;
        if !manager.initialize_from_store().await.map_err(failed)? {
            return Ok(None);
        }
        if let Some(secret) = &entry.client_secret {
            let client =
                OAuthClientConfig::new(&entry.credentials.client_id, &entry.redirect_uri).with_client_secret(secret);
            manager.configure_client(client).map_err(failed)?;
        }
        match manager.refresh_token().await {
            Ok(_) => {}
            Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let Some(credentials) = flow_result.take().await else { return Ok(None) };
        // The user may have signed out in the meantime. Saving the new token would sign them in again.
        if Entry::load(&self.url, &self.store).await.is_none() {
            return Ok(None);
        }
        let fresh = Entry { credentials, ..entry.clone() };
        if let Err(error) = fresh.save(&self.url, &self.store).await {
            tracing::warn!(%error, "cannot save the renewed token");
        }
        Ok(Some(fresh))
    }
}

/// The token, masked in all output from now on.
fn access_token(entry: &Entry) -> Option<Secret> {
    field(entry, "access_token").and_then(|value| value.as_str().map(Secret::new))
}

fn ends_soon(entry: &Entry) -> bool {
    let lives = field(entry, "expires_in").and_then(|value| value.as_u64());
    let (Some(lives), Some(received)) = (lives, entry.credentials.token_received_at) else { return false };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    received.saturating_add(lives) < now.saturating_add(MARGIN)
}

/// A field of the token response.
fn field(entry: &Entry, name: &str) -> Option<Value> {
    let answer = serde_json::to_value(entry.credentials.token_response.as_ref()?).ok()?;
    answer.get(name).cloned()
}
