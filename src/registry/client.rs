//! Requests to the registry: over TLS, within one host, and bounded in time and size.

use std::time::Duration;

use futures::TryStreamExt;
use reqwest::StatusCode;
use reqwest::redirect::Policy;
use url::Url;

use crate::server::transport::net::{is_loopback, ready_tls};
use crate::text::{exact, parse_url};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(15);
/// A page of a hundred servers has about 200 KiB.
pub const MAX_BYTES: usize = 4 << 20;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    NotFound,
    /// The reason, for the user.
    Unreachable(String),
}

/// The address of a registry. Others on the network could change what plain HTTP returns, and with it what is run.
pub fn checked(url: &str) -> Result<Url, String> {
    let wrong = |why: &str| format!("`registry.url` is not usable: {why}");
    let url = parse_url(url.trim()).map_err(&wrong)?;
    let is_local = url.host_str().is_some_and(is_loopback);
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_local => Ok(url),
        "http" => Err(wrong("plain http is only allowed on this machine; use https")),
        _ => Err(wrong("expected an https address")),
    }
}

/// The address without a user name or password.
pub fn shown(url: &Url) -> String {
    exact(&crate::config::address::shown_url(url.as_str()))
}

/// Every part of `path` is one segment: a slash in it is encoded.
pub fn address(base: &Url, version: &str, path: &[&str], query: &[(&str, &str)]) -> Url {
    let mut url = base.clone();
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().push(version).extend(path);
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

pub async fn get(url: Url) -> Result<String, Failure> {
    ready_tls();
    let reason = |error: reqwest::Error| Failure::Unreachable(reason(&error));
    // A redirect could lead to a host that the user did not choose.
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .redirect(Policy::none())
        .user_agent(concat!("mcp-sidecar/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(reason)?;
    let response = client.get(url).header("accept", "application/json").send().await.map_err(reason)?;
    match response.status() {
        StatusCode::NOT_FOUND => return Err(Failure::NotFound),
        status if status.is_redirection() => {
            return Err(Failure::Unreachable("it redirects to another address".to_owned()));
        }
        status if !status.is_success() => {
            return Err(Failure::Unreachable(format!("it answered HTTP {}", status.as_u16())));
        }
        _ => {}
    }
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.try_next().await.map_err(reason)? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(Failure::Unreachable(format!("its answer is larger than {} MiB", MAX_BYTES >> 20)));
        }
        body.extend_from_slice(&chunk);
    }
    String::from_utf8(body).map_err(|_| Failure::Unreachable("its answer is not UTF-8".to_owned()))
}

/// Without the address, which the caller names.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("it did not answer within {} s", TIMEOUT.as_secs());
    }
    if error.is_connect() { "no connection".to_owned() } else { "the connection broke".to_owned() }
}
