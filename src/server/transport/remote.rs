//! The way to a remote server, in whichever dialect its definition names.

use std::sync::Arc;

use super::http::http;
use super::ledger::Ledger;
use super::proxy::claudeai_proxy;
use super::sse::sse;
use super::{AnyTransport, Boxed, OpenError, Remote, Wire};
use crate::config::expand::Expanded;
use crate::model::ServerName;
use crate::server::oauth::TokenStore;

/// The wire of a remote definition; `None` for one that is not remote. Nothing is sent before the connection opens.
pub fn wire(name: &ServerName, expanded: Expanded, message_bytes: usize, tokens: Arc<dyn TokenStore>) -> Option<Wire> {
    if !matches!(expanded, Expanded::Http(_) | Expanded::Sse(_) | Expanded::ClaudeAiProxy { .. }) {
        return None;
    }
    let ledger = Ledger::new(name.clone(), message_bytes);
    let shared = ledger.clone();
    let dial = move || {
        let dialled = dial(&expanded, tokens.clone(), shared.clone());
        futures::FutureExt::boxed(std::future::ready(dialled))
    };
    Some(Wire::Remote(Remote { ledger, dial: Box::new(dial) }))
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
