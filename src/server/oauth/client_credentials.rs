//! Signs in a client with its own secret, without a user: for machines.

use std::time::Duration;

use rmcp::transport::auth::{AuthError, AuthorizationManager, ClientCredentialsConfig};
use url::Url;

use super::check;
use super::discovery::discover;
use super::tokens::{self, Entry};
use crate::config::expand::Client;
use crate::server::transport::net::{RemoteError, ready_tls};
use crate::text::{mask, one_line};

/// How long the issuer may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What a server required when it rejected a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Challenge<'a> {
    /// The `WWW-Authenticate` header.
    pub header: Option<&'a str>,
}

/// Requests a token.
pub async fn request(url: &Url, client: &Client, challenge: Challenge<'_>) -> Result<Entry, RemoteError> {
    let requested = tokio::time::timeout(TIMEOUT, exchange(url, client, challenge)).await;
    requested.unwrap_or_else(|_| {
        let seconds = TIMEOUT.as_secs();
        Err(RemoteError::Unreachable(format!("cannot get an access token: no answer within {seconds} s")))
    })
}

async fn exchange(url: &Url, client: &Client, challenge: Challenge<'_>) -> Result<Entry, RemoteError> {
    ready_tls();
    let shown = |error: &AuthError| one_line(&mask(&error.to_string()), 300);
    let failed = |error: AuthError| RemoteError::Unreachable(format!("cannot get an access token: {}", shown(&error)));
    let mut manager = AuthorizationManager::new(url.clone()).await.map_err(failed)?;
    let (credentials, flow_result) = tokens::in_memory();
    manager.set_credential_store(credentials);
    let metadata = discover(&mut manager, url, challenge.header).await.map_err(failed)?;
    check(&metadata).map_err(RemoteError::InvalidConfig)?;
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: client.id.clone(),
        client_secret: client.secret.reveal().to_owned(),
        scopes: client.scopes.clone(),
        resource: Some(tokens::resource(url)),
    };
    // Trying again does not help until the definition changes.
    let refused = |error: AuthError| {
        let (id, why) = (one_line(&client.id, 80), shown(&error));
        RemoteError::InvalidConfig(format!("the issuer refused the client `{id}`: {why}; check `oauth`"))
    };
    manager.validate_client_credentials_metadata(&config).map_err(refused)?;
    manager.configure_client_credentials(&config).map_err(refused)?;
    manager.exchange_client_credentials(&config).await.map_err(refused)?;
    let missing = || RemoteError::Unreachable("the issuer did not send a token".to_owned());
    let credentials = flow_result.take().await.ok_or_else(missing)?;
    Ok(Entry { credentials, client_secret: None, redirect_uri: String::new() })
}
