//! Looks up names, and refuses those that lead to a metadata service: a name that looked harmless when the user trusted
//! it can lead there later.

use std::io;
use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::config::address::{AddressKind, LEADS_TO_METADATA, kind_of_ip};

/// The resolver of all remote connections.
pub struct CheckedResolver;

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            // Port 0 means the port of the URL.
            let found = lookup(name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The addresses of a host.
pub async fn lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    checked(tokio::net::lookup_host((host, port)).await?.collect())
}

/// One bad address is enough: which one is used is a matter of chance.
fn checked(found: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    match found.iter().any(|address| kind_of_ip(address.ip()) == AddressKind::Metadata) {
        true => Err(io::Error::other(format!("the name {LEADS_TO_METADATA}"))),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_leads_to_a_metadata_service_is_refused() {
        let found = |texts: &[&str]| checked(texts.iter().map(|text| text.parse().unwrap()).collect());
        assert!(found(&["93.184.216.34:0", "127.0.0.1:0"]).is_ok());
        for bad in ["169.254.169.254:0", "[::ffff:169.254.169.254]:0", "[fd00:ec2::254]:0"] {
            assert!(found(&["93.184.216.34:0", bad]).unwrap_err().to_string().contains("metadata"), "{bad}");
        }
    }

    #[tokio::test]
    async fn loopback_is_found() {
        assert!(!lookup("localhost", 9).await.unwrap().is_empty());
    }
}
