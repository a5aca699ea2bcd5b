//! Connectors behind a proxy: streamable HTTP at a URL that contains the connector's id. The bearer token is one of the
//! entry's headers, so it can come from a variable or the keyring.

use std::sync::Arc;

use super::http::{HttpTransport, http};
use super::ledger::Ledger;
use super::net::RemoteError;
use crate::config::expand::Endpoint;
use crate::server::oauth::TokenStore;
use crate::text::Secret;

const PLACE: &str = "{id}";

pub fn claudeai_proxy(
    id: &str,
    endpoint: &Endpoint,
    tokens: Arc<dyn TokenStore>,
    ledger: Ledger,
) -> Result<HttpTransport, RemoteError> {
    let endpoint =
        Endpoint { url: Secret::plain(endpoint.url.reveal().replace(PLACE, &encoded(id))), ..endpoint.clone() };
    http(&endpoint, tokens, ledger)
}

/// Encodes an id as one path segment.
fn encoded(id: &str) -> String {
    let mut encoded = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => encoded.push(byte.into()),
            // Dots, too: `..` would refer to the parent.
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_one_path_segment() {
        assert_eq!(encoded("mcpsrv_01"), "mcpsrv_01");
        assert_eq!(encoded("../x?y=1#z"), "%2E%2E%2Fx%3Fy%3D1%23z");
    }
}
