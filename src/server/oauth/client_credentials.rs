//! Signs in a client with its own secret or key, without a user: for machines.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig};
use serde_json::{Value, json};
use url::Url;

use super::discovery::discover;
use super::tokens::{self, SavedSignIn};
use super::{ServerAuth, assertion, check};
use crate::config::expand::{Client, Endpoint, Proof};
use crate::server::transport::net::{JSON, Origin, RemoteError, Request, ready_tls};
use crate::text::{Secret, mask, one_line};

/// The longest response of the issuer.
const MAX_BYTES: usize = 1 << 20;

/// How long the issuer may take.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What a server required when it rejected a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Challenge<'a> {
    /// The `WWW-Authenticate` header.
    pub header: Option<&'a str>,
}

/// Requests a token.
pub async fn request(url: &Url, client: &Client, challenge: Challenge<'_>) -> Result<SavedSignIn, RemoteError> {
    let requested = tokio::time::timeout(TIMEOUT, exchange(url, client, challenge)).await;
    requested.unwrap_or_else(|_| {
        let seconds = TIMEOUT.as_secs();
        Err(RemoteError::Unreachable(format!("cannot get an access token: no answer within {seconds} s")))
    })
}

async fn exchange(url: &Url, client: &Client, challenge: Challenge<'_>) -> Result<SavedSignIn, RemoteError> {
    ready_tls();
    let shown = |error: &AuthError| one_line(&mask(&error.to_string()), 300);
    let failed = |error: AuthError| RemoteError::Unreachable(format!("cannot get an access token: {}", shown(&error)));
    let mut manager = AuthorizationManager::new(url.clone()).await.map_err(failed)?;
    let (credentials, flow_result) = tokens::in_memory();
    manager.set_credential_store(credentials);
    let metadata = discover(&mut manager, url, challenge.header).await.map_err(failed)?;
    check(url, &metadata).map_err(RemoteError::InvalidConfig)?;
    // Trying again does not help until the definition changes.
    let invalid = |why: &str| {
        let id = one_line(&client.id, 80);
        RemoteError::InvalidConfig(format!("the issuer refused the client `{id}`: {why}; check `oauth`"))
    };
    let secret = match &client.proof {
        Proof::Secret(secret) => secret,
        Proof::Key(key) => return signed(url, client, key, &metadata, invalid).await,
    };
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: client.id.clone(),
        client_secret: secret.reveal().to_owned(),
        scopes: client.scopes.clone(),
        resource: Some(tokens::resource(url)),
    };
    let refused = |error: AuthError| invalid(&shown(&error));
    manager.validate_client_credentials_metadata(&config).map_err(refused)?;
    manager.configure_client_credentials(&config).map_err(refused)?;
    manager.exchange_client_credentials(&config).await.map_err(refused)?;
    let missing = || RemoteError::Unreachable("the issuer did not send a token".to_owned());
    let credentials = flow_result.take().await.ok_or_else(missing)?;
    Ok(SavedSignIn { credentials, client_secret: None, redirect_uri: String::new() })
}

/// Requests a token with a signed text. The library could do it, too, but would add a second library for signatures.
async fn signed(
    url: &Url,
    client: &Client,
    key: &Secret,
    metadata: &AuthorizationMetadata,
    invalid: impl Fn(&str) -> RemoteError,
) -> Result<SavedSignIn, RemoteError> {
    let issuer = metadata.issuer.as_deref().ok_or_else(|| invalid("its metadata does not name an issuer"))?;
    let listed = |name: &str| metadata.additional_fields.get(name).and_then(Value::as_array).map(Vec::as_slice);
    if listed("token_endpoint_auth_methods_supported")
        .is_some_and(|all| all.iter().all(|each| each != "private_key_jwt"))
    {
        return Err(invalid("it does not support `private_key_jwt`; use `clientSecret`"));
    }
    let algorithms = listed("token_endpoint_auth_signing_alg_values_supported");
    let assertion = assertion::sign(key, &client.id, issuer, algorithms)
        .map_err(|why| RemoteError::InvalidConfig(format!("cannot sign with `oauth.privateKey`: {why}")))?;
    let headers = HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")),
        (ACCEPT, HeaderValue::from_static(JSON)),
    ]);
    let request = Request {
        method: reqwest::Method::POST,
        headers,
        body: Some(form(url, client, &assertion).into_bytes()),
        head_timeout: Some(TIMEOUT),
    };
    // `check` has seen this address.
    let address = Secret::plain(metadata.token_endpoint.as_str());
    let endpoint = Endpoint { url: address, headers: Default::default(), oauth: None, client: None };
    let origin = Origin::new(&endpoint, MAX_BYTES, ServerAuth::default())?;
    let response = origin.send(&origin.url, &request, None).await?;
    let (status, text) = (response.status(), origin.read(response).await?);
    let answer: Value = serde_json::from_str(&text).unwrap_or_default();
    if !status.is_success() {
        let field = |name: &str| answer.get(name).and_then(Value::as_str).map(|text| one_line(&mask(text), 200));
        let why = [field("error"), field("error_description")].into_iter().flatten().collect::<Vec<_>>().join(": ");
        let why = if why.is_empty() { format!("HTTP {}", status.as_u16()) } else { why };
        return Err(match status.is_server_error() {
            true => RemoteError::Unreachable(format!("cannot get an access token: {why}")),
            false => invalid(&why),
        });
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let credentials =
        json!({ "client_id": client.id, "token_response": answer, "token_received_at": now, "issuer": issuer });
    let credentials = serde_json::from_value(credentials)
        .map_err(|_| RemoteError::Unreachable("the issuer did not send a token".to_owned()))?;
    Ok(SavedSignIn { credentials, client_secret: None, redirect_uri: String::new() })
}

/// The body of the request. RFC 7523 leaves out `client_id`: the signed text names the client.
fn form(url: &Url, client: &Client, assertion: &Secret) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    form.append_pair("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    form.append_pair("client_assertion", assertion.reveal());
    form.append_pair("resource", &tokens::resource(url));
    if !client.scopes.is_empty() {
        form.append_pair("scope", &client.scopes.join(" "));
    }
    form.finish()
}
