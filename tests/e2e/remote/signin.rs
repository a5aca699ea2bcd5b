//! Signing in, from the 401 to the call that works, against an issuer in the same test.

use std::sync::Arc;

use mcp_sidecar::config::expand::Expanded;
use mcp_sidecar::model::ServerName;
use mcp_sidecar::server::oauth::{Hints, MemoryTokens, ServerAuth};

use super::issuer::{self, Manners, get, query};
use super::mock::*;

/// A server with its own issuer, whose only resource says welcome.
pub(super) async fn server(manners: Manners) -> Mock {
    issuer::server(manners, |request| {
        handshake(request).unwrap_or_else(|| answer(200, "application/json", request.result(text_result("welcome"))))
    })
    .await
}

async fn try_sign_in(server: &Mock, browser: Headless, auth: &ServerAuth) -> Result<(), String> {
    let name = ServerName::new("guarded").unwrap();
    auth.sign_in(&name, &address(server), Hints::default(), browser.opens()).await.map_err(|error| error.to_string())
}

fn address(server: &Mock) -> url::Url {
    server.url.parse().unwrap()
}

/// The sign-in state of a server that has none yet.
fn auth() -> ServerAuth {
    ServerAuth::new(Arc::new(MemoryTokens::default()))
}

async fn enter(server: &Mock, auth: &ServerAuth) -> Result<Client, String> {
    connect_with(Expanded::Http(endpoint(&server.url)), auth.clone()).await
}

#[tokio::test]
async fn signing_in_grants_access_and_signing_out_ends_it() {
    let (server, auth) = (server(Manners { expires_in: 3600, ..Manners::default() }).await, auth());
    assert!(enter(&server, &auth).await.unwrap_err().contains("sign in"));
    try_sign_in(&server, Headless::default(), &auth).await.unwrap();
    let client = enter(&server, &auth).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "welcome");
    client.close().await;

    auth.sign_out(&address(&server)).await.unwrap();
    assert!(enter(&server, &auth).await.unwrap_err().contains("sign in"));
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let (server, auth) = (server(Manners { expires_in: 5, ..Manners::default() }).await, auth());
    try_sign_in(&server, Headless::default(), &auth).await.unwrap();
    enter(&server, &auth).await.unwrap();
    let seen = server.seen();
    assert!(seen.iter().any(|request| get(&query(&request.text), "grant_type") == "refresh_token"));
    assert!(!seen.iter().any(|request| request.header("authorization") == Some("Bearer token-1")));
}

#[tokio::test]
async fn a_rejected_token_is_renewed_once_with_the_client_secret() {
    let manners = Manners { expires_in: 3600, secret: true, ..Manners::default() };
    let (server, auth) = (server(manners).await, auth());
    try_sign_in(&server, Headless::default(), &auth).await.unwrap();
    // Somebody else gets a newer token: ours is good no more.
    let other = reqwest::Client::new();
    let token = server.url.replace("/mcp", "/token");
    let form = format!("resource={}&client_secret=secret-of-client-1", server.url);
    other.post(token).body(form).send().await.unwrap();
    let client = enter(&server, &auth).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "welcome");
}

#[tokio::test]
async fn more_permissions_are_requested_in_addition_but_not_forever() {
    let manners = Manners { expires_in: 3600, wanted: Some("write"), ..Manners::default() };
    let (server, auth) = (server(manners).await, auth());
    try_sign_in(&server, Headless::default(), &auth).await.unwrap();
    let client = enter(&server, &auth).await.unwrap();
    let error = client.read("t").await.unwrap_err();
    assert_eq!(error, "server `far` requires you to sign in first");
    try_sign_in(&server, Headless::default(), &auth).await.unwrap();
    let client = enter(&server, &auth).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "welcome");
    let asked: Vec<_> = server
        .seen()
        .iter()
        .filter(|request| request.uri.path() == "/authorize")
        .map(|request| get(&query(request.uri.query().unwrap()), "scope").to_owned())
        .collect();
    assert_eq!(asked, ["read", "read write"]);
}

#[tokio::test]
async fn a_server_that_always_requires_more_permissions_is_refused_in_the_end() {
    // The scope is one that no sign-in can bring: it has a blank in it.
    let manners = Manners { expires_in: 3600, wanted: Some("never ever"), ..Manners::default() };
    let (server, auth) = (server(manners).await, auth());
    try_sign_in(&server, Headless::default(), &auth).await.unwrap();
    let mut signed_in = 0;
    let error = loop {
        let client = enter(&server, &auth).await.unwrap();
        client.read("t").await.unwrap_err();
        match try_sign_in(&server, Headless::default(), &auth).await {
            Ok(()) => signed_in += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(signed_in, 2);
    assert!(error.contains("still requires more permissions after 2 sign-ins"), "{error}");
}

#[tokio::test]
async fn an_old_server_may_be_its_own_issuer_under_another_path() {
    let manners = Manners { expires_in: 5, old: true, ..Manners::default() };
    let (server, auth) = (server(manners).await, auth());
    try_sign_in(&server, Headless::default(), &auth).await.unwrap();
    let client = enter(&server, &auth).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "welcome");
}

#[tokio::test]
async fn a_sign_in_page_that_is_a_script_is_never_opened() {
    let manners = Manners { authorization_endpoint: Some("javascript:alert(1)"), ..Manners::default() };
    let server = server(manners).await;
    let name = ServerName::new("guarded").unwrap();
    let open = Box::new(|page| panic!("opened {page}"));
    let error = auth().sign_in(&name, &address(&server), Hints::default(), open).await.unwrap_err().to_string();
    assert!(error.contains("`authorization_endpoint` of the server is not an https URL"), "{error}");
    assert!(!server.seen().iter().any(|request| request.uri.path() == "/register"));
}

#[tokio::test]
async fn a_foreign_issuer_is_refused_before_anything_is_sent_to_it() {
    for manners in [
        Manners { issuer: Some("https://evil.example.test"), ..Manners::default() },
        Manners { iss: Some("https://evil.example.test"), ..Manners::default() },
    ] {
        let (server, auth) = (server(manners).await, auth());
        let error = try_sign_in(&server, Headless::default(), &auth).await.unwrap_err();
        assert!(error.contains("another issuer"), "{error}");
        assert!(!server.seen().iter().any(|request| request.uri.path() == "/token"));
    }
}

#[tokio::test]
async fn a_redirect_with_a_wrong_state_is_rejected_and_the_right_one_accepted() {
    let (server, auth) = (server(Manners { expires_in: 3600, ..Manners::default() }).await, auth());
    try_sign_in(&server, Headless { stranger: true, ..Headless::default() }, &auth).await.unwrap();
}

#[tokio::test]
async fn a_refusal_in_the_browser_is_reported() {
    let (server, auth) = (server(Manners::default()).await, auth());
    let browser = Headless {
        tamper: Some(|url| url.replace("code=code-1", "error=access_denied&error_description=not+today")),
        ..Headless::default()
    };
    let error = try_sign_in(&server, browser, &auth).await.unwrap_err();
    assert!(error.ends_with("sign-in failed: the server refused the sign-in: access_denied not today"), "{error}");
}
