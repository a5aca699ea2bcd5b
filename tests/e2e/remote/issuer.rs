//! An issuer of tokens and the server that requires them, on one port of this machine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};

use super::mock::*;

/// How an issuer of a test differs from an ordinary one.
#[derive(Default, Clone)]
pub struct Manners {
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

/// A server with its own issuer. Tokens are `token-1`, `token-2`, …; only the newest is good. `respond` responds to those
/// who have it.
pub async fn server(manners: Manners, respond: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static) -> Mock {
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
                respond(&request)
            }
            _ => answer(404, "", ""),
        }
    })
    .await
}

pub fn query(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

pub fn get<'a>(pairs: &'a [(String, String)], name: &str) -> &'a str {
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
