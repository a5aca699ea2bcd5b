//! What all remote transports share: URL and headers, requests within one origin, event streams, and the inbox. `http`
//! and `sse` implement MCP on top of it.

mod answers;
mod error;
mod events;
mod inbox;
mod origin;
mod resolver;

use std::net::IpAddr;

use url::{Host, Url};

pub use answers::Answers;
pub use error::RemoteError;
pub use events::{Event, Events};
pub use inbox::{CloseReason, Inbox, InboxSender, inbox};
pub use origin::{EVENT_STREAM, JSON, Origin, Request, content_type};
pub use resolver::lookup;

/// Whether an unencrypted connection to `host` is allowed: always to loopback, to other hosts only if the settings name
/// them.
pub fn allowed_host(host: &str, named: &[String]) -> bool {
    is_loopback(host) || named.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// Whether a name or address always means this machine.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => bare.trim_end_matches('.').eq_ignore_ascii_case("localhost"),
    }
}

/// `host:port`, for users.
pub fn host_and_port(url: &Url) -> String {
    let host = match url.host() {
        Some(Host::Ipv6(address)) => format!("[{address}]"),
        Some(host) => host.to_string(),
        None => "?".to_owned(),
    };
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    }
}

/// A warning about this URL for the status of its server.
pub fn warning(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    (url.scheme() == "http" && !is_loopback(host)).then(|| {
        format!("unencrypted http to {}: others on the network can read and change the traffic", host_and_port(url))
    })
}

/// Initializes TLS for the whole process; further calls do nothing.
pub fn ready_tls() {
    // An error means that it is initialized already.
    rustls::crypto::ring::default_provider().install_default().ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST.", "::ffff:127.0.0.1"] {
            assert!(allowed_host(host, &[]), "{host}");
        }
        for host in ["0.0.0.0", "10.0.0.1", "localhost.example.test", "128.0.0.1", "", "2130706433"] {
            assert!(!allowed_host(host, &[]), "{host}");
        }
        assert!(allowed_host("build.example.test", &["Build.example.test".to_owned()]));
    }

    #[test]
    fn unencrypted_http_to_other_hosts_is_a_warning() {
        let warned = |url: &str| warning(&Url::parse(url).unwrap()).is_some();
        assert!(warned("http://example.test/mcp"));
        assert!(!warned("https://example.test/mcp"));
        assert!(!warned("http://127.0.0.1:9/mcp"));
    }
}
