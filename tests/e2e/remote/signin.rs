//! Signing in, from the 401 to the call that works, against an issuer in the same test.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::Response;
use mcp_sidecar::config::expand::Expanded;
use mcp_sidecar::model::ServerName;
use mcp_sidecar::server::oauth::{Hints, MemoryTokens, ServerAuth};
use serde_json::{Value, json};

use super::mock::*;

/// How an issuer of a test differs from an ordinary one.
#[derive(Default, Clone)]
pub(super) struct Manners {
    /// The path of the server, if it is not `/mcp`.
    pub path: Option<String>,
    pub authorization_endpoint: Option<&'static str>,
    pub issuer: Option<&'static str>,
    pub iss: Option<&'static str>,
    pub secret: bool,
    /// As servers of 2025-03-26 are: no word about the issuer, which is the server itself under a path of its own.
    pub old: bool,
    pub expires_in: u64,
    /// The scope without which a call is refused.
    pub wanted: Option<&'static str>,
}

/// A server with its own issuer. Tokens are `token-1`, `token-2`, …; only the newest is good.
pub(super) async fn server(manners: Manners) -> Mock {
    let issued = AtomicUsize::new(0);
    let scopes = Mutex::new(String::new());
    let path = manners.path.clone().unwrap_or_else(|| "/mcp".to_owned());
    Mock::start(move |request| {
        let base = format!("http://{}", request.header("host").unwrap());
        let ok = |value: Value| answer(200, "application/json", value.to_string());
        let resource = format!("{base}{path}");
        let document = format!("/.well-known/oauth-protected-resource{path}");
        let issuer = if manners.old { format!("{base}/oauth") } else { base.clone() };
        match (request.method.as_str(), request.uri.path()) {
            ("GET", path) if manners.old && path.starts_with("/.well-known/oauth-protected-resource") => answer(404, "", ""),
            ("GET", asked) if asked == document => {
                ok(json!({ "resource": resource, "authorization_servers": [base], "scopes_supported": ["read"] }))
            }
            ("GET", "/.well-known/oauth-authorization-server") => ok(json!({
                "issuer": manners.issuer.map_or(issuer, str::to_owned),
                "authorization_endpoint": manners.authorization_endpoint.map_or(format!("{base}/authorize"), str::to_owned),
                "token_endpoint": format!("{base}/token"),
                "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
                "authorization_response_iss_parameter_supported": true,
            })),
            ("POST", "/register") => {
                assert_eq!(request.body["application_type"], "native");
                let mut client = json!({ "client_id": "client-1", "redirect_uris": request.body["redirect_uris"] });
                if manners.secret {
                    client["client_secret"] = json!("secret-of-client-1");
                }
                ok(client)
            }
            ("GET", "/authorize") => {
                let asked = query(request.uri.query().unwrap());
                assert_eq!(get(&asked, "code_challenge_method"), "S256");
                assert_eq!(get(&asked, "resource"), resource);
                *scopes.lock().unwrap() = get(&asked, "scope").to_owned();
                let iss = manners.iss.map_or(issuer, str::to_owned);
                let back = format!("{}?code=code-1&state={}&iss={iss}", get(&asked, "redirect_uri"), get(&asked, "state"));
                redirect(&back)
            }
            ("POST", "/token") => {
                let form = query(&request.text);
                assert_eq!(get(&form, "resource"), resource);
                if manners.secret {
                    assert_eq!(get(&form, "client_secret"), "secret-of-client-1");
                }
                let number = issued.fetch_add(1, Ordering::Relaxed) + 1;
                ok(json!({
                    "access_token": format!("token-{number}"), "token_type": "Bearer", "expires_in": manners.expires_in,
                    "refresh_token": format!("refresh-{number}"), "scope": scopes.lock().unwrap().clone(),
                }))
            }
            (_, asked) if asked == path => {
                let good = format!("Bearer token-{}", issued.load(Ordering::Relaxed));
                if request.header("authorization") != Some(&good) {
                    if manners.old {
                        return answer(401, "", "");
                    }
                    let metadata = format!("Bearer resource_metadata=\"{base}{document}\"");
                    return challenge(401, &metadata);
                }
                if let Some(wanted) = manners.wanted
                    && request.rpc() == "resources/read"
                    && !scopes.lock().unwrap().split(' ').any(|scope| scope == wanted)
                {
                    return challenge(403, &format!("Bearer error=\"insufficient_scope\", scope=\"{wanted}\""));
                }
                handshake(&request).unwrap_or_else(|| ok(serde_json::from_str(&request.result(text_result("welcome"))).unwrap()))
            }
            _ => answer(404, "", ""),
        }
    })
    .await
}

pub(super) fn query(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

pub(super) fn get<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
    pairs.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
}

fn challenge(status: u16, header: &str) -> Response<Body> {
    let mut response = answer(status, "", "");
    response.headers_mut().insert("www-authenticate", header.parse().unwrap());
    response
}

fn redirect(to: &str) -> Response<Body> {
    let mut response = answer(302, "", "");
    response.headers_mut().insert("location", to.parse().unwrap());
    response
}

async fn try_sign_in(server: &Mock, host: Headless, auth: &ServerAuth) -> Result<(), String> {
    let name = ServerName::new("guarded").unwrap();
    auth.sign_in(&name, &address(server), Hints::default(), &host).await.map_err(|error| error.to_string())
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
    let host = Headless::default();
    let name = ServerName::new("guarded").unwrap();
    let error = auth().sign_in(&name, &address(&server), Hints::default(), &host).await.unwrap_err().to_string();
    assert!(error.contains("`authorization_endpoint` of the server is not an https URL"), "{error}");
    assert!(host.opened.lock().unwrap().is_empty());
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
    let host = Headless {
        tamper: Some(|url| url.replace("code=code-1", "error=access_denied&error_description=not+today")),
        ..Headless::default()
    };
    let error = try_sign_in(&server, host, &auth).await.unwrap_err();
    assert!(error.ends_with("sign-in failed: the server refused the sign-in: access_denied not today"), "{error}");
}
