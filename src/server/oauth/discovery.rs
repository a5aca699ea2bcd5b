//! Where a server's issuer is. The library finds it; one old habit of servers it does not forgive is forgiven here.

use std::time::Duration;

use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata};
use url::Url;

use crate::config::expand::Endpoint;
use crate::server::transport::net::{Origin, Request};
use crate::text::Secret;

/// Bytes of a metadata document, and the time for it.
const MAX_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Finds the metadata of the issuer and lets the library go on with it.
pub async fn discover(
    manager: &mut AuthorizationManager,
    url: &Url,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata, AuthError> {
    let metadata = match manager.resolve_metadata_from_challenge(challenge).await {
        Ok(found) => found.metadata,
        Err(error @ AuthError::AuthorizationServerMismatch { .. }) => own_issuer(&error, url).await.ok_or(error)?,
        Err(error) => return Err(error),
    };
    manager.set_metadata(metadata.clone());
    Ok(metadata)
}

/// Servers of 2025-03-26 are their own issuer and may call themselves by a path that their document does not stand
/// under. As long as document, issuer and server are of one origin, nothing can go to anybody else.
async fn own_issuer(error: &AuthError, url: &Url) -> Option<AuthorizationMetadata> {
    let AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } = error else { return None };
    let same = |address: &str| Url::parse(address).is_ok_and(|address| address.origin() == url.origin());
    if !same(expected_issuer) || !same(received_issuer) {
        return None;
    }
    let metadata_url = url.join("/.well-known/oauth-authorization-server").ok()?;
    let endpoint = Endpoint { url: Secret::plain(metadata_url.as_str()), headers: Default::default(), oauth: None };
    let origin = Origin::new(&endpoint, MAX_BYTES, std::sync::Arc::new(super::NoTokens)).ok()?;
    let request =
        Request { method: reqwest::Method::GET, headers: Default::default(), body: None, head_timeout: Some(TIMEOUT) };
    let fetched = async { origin.read(origin.send(&metadata_url, &request, None).await?).await };
    let text = tokio::time::timeout(TIMEOUT, fetched).await.ok()?.ok()?;
    let metadata: AuthorizationMetadata = serde_json::from_str(&text).ok()?;
    let addresses = [Some(&metadata.authorization_endpoint), Some(&metadata.token_endpoint), metadata.issuer.as_ref()];
    let own = addresses.into_iter().all(|address| address.is_some_and(|address| same(address)));
    own.then_some(metadata)
}
