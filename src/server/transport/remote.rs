//! The way to a remote server, in whichever dialect its definition names.

use std::future::ready;
use std::sync::Arc;

use futures::FutureExt;
use url::Url;

use super::http::http;
use super::ledger::Ledger;
use super::proxy::claudeai_proxy;
use super::sse::sse;
use super::{AnyTransport, Boxed, OpenError, Remote, Wire, net};
use crate::config::Launch;
use crate::config::expand::Expanded;
use crate::model::ServerName;
use crate::server::oauth::TokenStore;

/// The wire of a remote definition. Nothing is sent before the connection opens.
pub fn wire(name: &ServerName, expanded: Expanded, message_bytes: usize, tokens: Arc<dyn TokenStore>) -> Wire {
    let ledger = Ledger::new(name.clone(), message_bytes);
    let shared = ledger.clone();
    let dial = move || ready(dial(&expanded, tokens.clone(), shared.clone())).boxed();
    Wire::Remote(Remote { ledger, dial: Box::new(dial) })
}

/// What deserves a word in the status of a remote definition, though it stops nothing.
pub fn warnings(expanded: &Expanded) -> Vec<String> {
    let (endpoint, old) = match expanded {
        Expanded::Http(endpoint) | Expanded::ClaudeAiProxy { endpoint, .. } => (endpoint, false),
        Expanded::Sse(endpoint) => (endpoint, true),
        Expanded::Stdio(_) | Expanded::Tcp { .. } | Expanded::Sdk { .. } => return Vec::new(),
    };
    address_warnings(endpoint.url.reveal(), old)
}

/// The same for a definition as it is written, before anything in it is expanded.
pub fn launch_warnings(launch: &Launch) -> Vec<String> {
    let (url, old) = match launch {
        Launch::Http(remote) | Launch::ClaudeAiProxy { remote, .. } => (remote.url.as_str(), false),
        Launch::Sse(remote) => (remote.url.as_str(), true),
        Launch::Stdio(_) | Launch::Tcp { .. } | Launch::Sdk { .. } => return Vec::new(),
    };
    // A host that a variable gives is judged when it is known.
    let host = url.split('/').nth(2).unwrap_or_default();
    address_warnings(if host.contains('$') { "" } else { url }, old)
}

fn address_warnings(url: &str, old: bool) -> Vec<String> {
    let old = old.then(|| "`sse` is the old way to reach a server; use `http` if it offers that".to_owned());
    let plain = Url::parse(url).ok().and_then(|url| net::warning(&url));
    old.into_iter().chain(plain).collect()
}

fn dial(expanded: &Expanded, tokens: Arc<dyn TokenStore>, ledger: Ledger) -> Result<Box<dyn AnyTransport>, OpenError> {
    Ok(match expanded {
        Expanded::Http(endpoint) => Box::new(Boxed(http(endpoint, tokens, ledger)?)),
        Expanded::Sse(endpoint) => Box::new(Boxed(sse(endpoint, tokens, ledger)?)),
        Expanded::ClaudeAiProxy { id, endpoint } => Box::new(Boxed(claudeai_proxy(id, endpoint, tokens, ledger)?)),
        Expanded::Stdio(_) | Expanded::Tcp { .. } | Expanded::Sdk { .. } => {
            return Err(OpenError::Refused { message: "not a remote server".to_owned() });
        }
    })
}
