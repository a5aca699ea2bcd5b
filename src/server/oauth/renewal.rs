//! Renews a stored token. All processes of the user share it, and a strict issuer accepts each refresh token only once:
//! a second use would end the sign-in. So a renewal holds a lock of the store, and reads the stored token again after it
//! has the lock.

use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use url::Url;

use super::discovery::discover;
use super::tokens::{self, SavedSignIn, TokenStore};
use crate::server::transport::net::{RemoteError, ready_tls};
use crate::text::{mask, one_line};

/// How long a renewal may take. Shorter than the wait for the lock, so that a slow issuer does not fail those that wait.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The stored token if it is `good`, or else a new one; `None` if the user has to sign in.
///
/// Runs to its end even if the caller gives up: a new token that is not stored would be lost, and with it the sign-in.
pub async fn renew(
    url: &Url,
    store: &Arc<dyn TokenStore>,
    good: impl Fn(&SavedSignIn) -> bool + Send + 'static,
) -> Result<Option<SavedSignIn>, RemoteError> {
    let (url, store) = (url.clone(), store.clone());
    let renewal = tokio::spawn(async move {
        let _lock = store.lock(tokens::key(&url)).await.map_err(|error| RemoteError::Unreachable(error.to_string()))?;
        match SavedSignIn::load(&url, &store).await {
            Some(stored) if good(&stored) => Ok(Some(stored)),
            Some(stored) => refresh(&url, &store, &stored).await,
            None => Ok(None),
        }
    });
    renewal.await.unwrap_or_else(|_| Err(failed("it ended with an error; see the log")))
}

/// Requests a new token and stores it. The library checks the issuer first and drops the token of another one.
async fn refresh(
    url: &Url,
    store: &Arc<dyn TokenStore>,
    entry: &SavedSignIn,
) -> Result<Option<SavedSignIn>, RemoteError> {
    let requested = tokio::time::timeout(TIMEOUT, request(url, entry)).await;
    let late = |_| failed(&format!("the issuer did not answer within {} s", TIMEOUT.as_secs()));
    let Some(fresh) = requested.map_err(late)?? else { return Ok(None) };
    // The user may have signed out in the meantime. Saving the new token would sign them in again.
    if SavedSignIn::load(url, store).await.is_none() {
        return Ok(None);
    }
    if let Err(error) = fresh.save(url, store).await {
        tracing::warn!(%error, "cannot save the renewed token");
    }
    Ok(Some(fresh))
}

async fn request(url: &Url, entry: &SavedSignIn) -> Result<Option<SavedSignIn>, RemoteError> {
    ready_tls();
    let explain = |error: AuthError| failed(&one_line(&mask(&error.to_string()), 200));
    let mut manager = AuthorizationManager::new(url.clone()).await.map_err(explain)?;
    let (credentials, flow_result) = tokens::in_memory();
    flow_result.put(entry.credentials.clone()).await;
    manager.set_credential_store(credentials);
    let mut metadata = discover(&mut manager, url, None).await.map_err(explain)?;
    // The library adds this scope to every renewal, but an issuer refuses scopes that it did not grant.
    if let Some(scopes) = metadata.scopes_supported.as_mut() {
        scopes.retain(|scope| scope != "offline_access");
        manager.set_metadata(metadata);
    }
    if !manager.initialize_from_store().await.map_err(explain)? {
        return Ok(None);
    }
    if let Some(secret) = &entry.client_secret {
        let client =
            OAuthClientConfig::new(&entry.credentials.client_id, &entry.redirect_uri).with_client_secret(secret);
        manager.configure_client(client).map_err(explain)?;
    }
    match manager.refresh_token().await {
        Ok(_) => {}
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => return Ok(None),
        Err(error) => return Err(explain(error)),
    }
    let Some(credentials) = flow_result.take().await else { return Ok(None) };
    Ok(Some(SavedSignIn { credentials, ..entry.clone() }))
}

fn failed(why: &str) -> RemoteError {
    RemoteError::Unreachable(format!("cannot renew the access token: {why}"))
}
