//! The transport of a remote definition.

use std::future::ready;

use futures::FutureExt;
use url::Url;

use super::http::http;
use super::ledger::Ledger;
use super::sse::sse;
use super::{AnyTransport, Boxed, OpenError, Remote, Wire, net};
use crate::config::Launch;
use crate::config::expand::Expanded;
use crate::model::ServerName;
use crate::server::oauth::ServerAuth;

/// The transport of a remote definition. Nothing is sent before the connection opens.
pub fn wire(name: &ServerName, expanded: Expanded, message_bytes: usize, auth: ServerAuth) -> Wire {
    let ledger = Ledger::new(name.clone(), message_bytes);
    let shared = ledger.clone();
    let dial = move || ready(dial(&expanded, auth.clone(), shared.clone())).boxed();
    Wire::Remote(Remote { ledger, dial: Box::new(dial) })
}

/// Warnings about a remote definition for the status of its server.
pub fn warnings(expanded: &Expanded) -> Vec<String> {
    let (endpoint, old) = match expanded {
        Expanded::Http(endpoint) => (endpoint, false),
        Expanded::Sse(endpoint) => (endpoint, true),
        Expanded::Stdio(_) | Expanded::Tcp { .. } | Expanded::Sdk { .. } => return Vec::new(),
    };
    address_warnings(endpoint.url.reveal(), old)
}

/// Warnings about a definition before its variables are expanded.
pub fn launch_warnings(launch: &Launch) -> Vec<String> {
    let (url, old) = match launch {
        Launch::Http(remote) | Launch::ClaudeAiProxy { remote, .. } => (remote.url.as_str(), false),
        Launch::Sse(remote) => (remote.url.as_str(), true),
        Launch::Stdio(_) | Launch::Tcp { .. } | Launch::Sdk { .. } => return Vec::new(),
    };
    // A host from a variable is checked after expansion.
    let host = url.split('/').nth(2).unwrap_or_default();
    address_warnings(if host.contains('$') { "" } else { url }, old)
}

fn address_warnings(url: &str, old: bool) -> Vec<String> {
    let old = old.then(|| "`sse` is deprecated; use `http` if the server supports it".to_owned());
    let plain = Url::parse(url).ok().and_then(|url| net::warning(&url));
    old.into_iter().chain(plain).collect()
}

fn dial(expanded: &Expanded, auth: ServerAuth, ledger: Ledger) -> Result<Box<dyn AnyTransport>, OpenError> {
    Ok(match expanded {
        Expanded::Http(endpoint) => Box::new(Boxed(http(endpoint, auth, ledger)?)),
        Expanded::Sse(endpoint) => Box::new(Boxed(sse(endpoint, auth, ledger)?)),
        Expanded::Stdio(_) | Expanded::Tcp { .. } | Expanded::Sdk { .. } => {
            return Err(OpenError::Refused { message: "this is not a remote server".to_owned() });
        }
    })
}
