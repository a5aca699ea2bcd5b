//! Finds the issuer of a server. The library does most of it; this also accepts an old habit of servers.

use std::time::Duration;

use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata};
use url::Url;

use super::ServerAuth;
use crate::config::expand::Endpoint;
use crate::server::transport::net::{Origin, Request};
use crate::text::Secret;

/// Limits of a metadata document.
const MAX_BYTES: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(10);

/// Finds the metadata of the issuer and passes it to the library.
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

/// Servers of revision 2025-03-26 are their own issuer, and their issuer path may differ from the location of the
/// document. This is safe as long as document, issuer and server have the same origin.
async fn own_issuer(error: &AuthError, url: &Url) -> Option<AuthorizationMetadata> {
    let AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } = error else { return None };
    let same = |address: &str| Url::parse(address).is_ok_and(|address| address.origin() == url.origin());
    if !same(expected_issuer) || !same(received_issuer) {
        return None;
    }
    let metadata_url = url.join("/.well-known/oauth-authorization-server").ok()?;
    let endpoint =
        Endpoint { url: Secret::plain(metadata_url.as_str()), headers: Default::default(), oauth: None, client: None };
    let origin = Origin::new(&endpoint, MAX_BYTES, ServerAuth::default()).ok()?;
    let request =
        Request { method: reqwest::Method::GET, headers: Default::default(), body: None, head_timeout: Some(TIMEOUT) };
    let fetched = async { origin.read(origin.send(&metadata_url, &request, None).await?).await };
    let text = tokio::time::timeout(TIMEOUT, fetched).await.ok()?.ok()?;
    let metadata: AuthorizationMetadata = serde_json::from_str(&text).ok()?;
    let addresses = [Some(&metadata.authorization_endpoint), Some(&metadata.token_endpoint), metadata.issuer.as_ref()];
    let own = addresses.into_iter().all(|address| address.is_some_and(|address| same(address)));
    own.then_some(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection would take longer than this, or end in another error.
    const NO_CONNECTION: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn metadata_at_an_address_of_the_cloud_or_of_a_local_network_is_never_fetched() {
        crate::server::transport::net::ready_tls();
        // Nothing listens there: only the address in the challenge could answer.
        let url = Url::parse("http://127.0.0.1:9/mcp").unwrap();
        for address in ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "10.0.0.1", "2852039166"] {
            let challenge = format!("Bearer resource_metadata=\"http://{address}/latest/meta-data\"");
            let mut manager = AuthorizationManager::new(url.clone()).await.unwrap();
            let found = tokio::time::timeout(NO_CONNECTION, discover(&mut manager, &url, Some(&challenge))).await;
            assert!(found.is_ok_and(|found| found.is_err()), "{address}");
        }
    }
}
