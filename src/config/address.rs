//! Where a URL leads: the host as a program will parse it, whatever the text looks like, and what kind of address it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::shape::secrets;

/// What kind of machine an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// A service that gives the credentials of a cloud machine to every program on it.
    Metadata,
    Loopback,
    /// Another machine in a private network.
    Private,
    Public,
}

/// Why a metadata address is refused.
pub const LEADS_TO_METADATA: &str = "points to a metadata service, which hands out the credentials of a cloud machine";

/// Addresses of the metadata services of cloud providers.
const METADATA_V4: [Ipv4Addr; 9] = [
    Ipv4Addr::new(169, 254, 169, 254),
    // Containers of ECS and EKS.
    Ipv4Addr::new(169, 254, 170, 2),
    Ipv4Addr::new(169, 254, 170, 23),
    // Scaleway, Tencent, Oracle (also 192.0.0.192), Alibaba, Azure.
    Ipv4Addr::new(169, 254, 42, 42),
    Ipv4Addr::new(169, 254, 0, 23),
    Ipv4Addr::new(169, 254, 10, 10),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: [Ipv6Addr; 5] = [
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];
const METADATA_NAMES: [&str; 10] = [
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.azure.com",
    "metadata.tencentyun.com",
    "instance-data",
    "instance-data.ec2.internal",
];
/// Names that only a private network resolves.
const PRIVATE_SUFFIXES: [&str; 7] = [".internal", ".local", ".lan", ".home", ".home.arpa", ".corp", ".intranet"];

pub fn kind_of_ip(address: IpAddr) -> AddressKind {
    let kinds: Vec<AddressKind> = embedded(address).into_iter().map(kind_of_exact).collect();
    let first = kinds.first().copied().unwrap_or(AddressKind::Public);
    if kinds.contains(&AddressKind::Metadata) { AddressKind::Metadata } else { first }
}

fn kind_of_exact(address: IpAddr) -> AddressKind {
    let is_metadata = match address {
        IpAddr::V4(address) => METADATA_V4.contains(&address),
        IpAddr::V6(address) => METADATA_V6.contains(&address),
    };
    let is_private = match address {
        IpAddr::V4(v4) => {
            let [first, second, ..] = v4.octets();
            // The last one is the range of carrier-grade NAT.
            v4.is_private() || v4.is_link_local() || v4.is_unspecified() || (first == 100 && second & 0xc0 == 64)
        }
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_unspecified(),
    };
    match () {
        () if is_metadata => AddressKind::Metadata,
        () if address.is_loopback() => AddressKind::Loopback,
        () if is_private => AddressKind::Private,
        () => AddressKind::Public,
    }
}

/// The addresses that an address may lead to: itself, or the IPv4 address inside an IPv6 address. It is mapped, compatible,
/// or translated by NAT64, 6to4, Teredo or ISATAP.
fn embedded(address: IpAddr) -> Vec<IpAddr> {
    let IpAddr::V6(v6) = address else { return vec![address] };
    let from = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    let [_, _, _, _, _, _, b6, b7, _, b9, b10, b11, b12, ..] = v6.octets();
    let v4 = |bytes: [u8; 4]| IpAddr::V4(Ipv4Addr::from(bytes));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => vec![address],
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => vec![from(high, low)],
        // A network chooses the length of this prefix, which decides where the address is.
        [0x64, 0xff9b, 1, .., high, low] => {
            vec![from(high, low), v4([b6, b7, b9, b10]), v4([b7, b9, b10, b11]), v4([b9, b10, b11, b12])]
        }
        [0x2001, 0, server_high, server_low, .., high, low] => vec![from(!high, !low), from(server_high, server_low)],
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => vec![from(high, low)],
        _ => vec![address],
    }
}

/// The kind of a host as the URL parser returns it, which has normalized decimal, octal and other spellings.
pub fn kind_of_host(host: &Host<&str>) -> AddressKind {
    let name = match host {
        Host::Ipv4(address) => return kind_of_ip(IpAddr::V4(*address)),
        Host::Ipv6(address) => return kind_of_ip(IpAddr::V6(*address)),
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
    };
    if let Ok(address) = name.parse::<IpAddr>() {
        return kind_of_ip(address);
    }
    match name.as_str() {
        name if METADATA_NAMES.contains(&name) => AddressKind::Metadata,
        name if name.starts_with("instance-data.") && name.ends_with(".internal") => AddressKind::Metadata,
        "localhost" => AddressKind::Loopback,
        name if name.ends_with(".localhost") => AddressKind::Loopback,
        // `169.254.169.254.nip.io` and the like resolve to the address in the name; the connection checks that again.
        name if !name.contains('.') || PRIVATE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) => {
            AddressKind::Private
        }
        _ => AddressKind::Public,
    }
}

/// Where a URL leads, as far as that is known before its variables are expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `host` or `host:port`. `None` if it depends on a variable.
    pub host: Option<String>,
    pub kind: Option<AddressKind>,
    /// It has a user name or a password before the host.
    pub has_user: bool,
    pub is_plain_http: bool,
}

impl Target {
    /// `None` if it is not a URL.
    pub fn of(written: &str) -> Option<Self> {
        // A variable up to the end of the host can change the host: `https://good${X}/`, `https://${X}@good/`.
        let fixed = written.split("${").next().unwrap_or_default();
        let known = Url::parse(fixed).ok().filter(|url| {
            let longer = Url::parse(&format!("{fixed}x"));
            fixed.len() == written.len() || longer.is_ok_and(|longer| longer.origin() == url.origin())
        });
        let Some(url) = known else {
            let is_plain_http = fixed.starts_with("http:");
            return (fixed.len() < written.len()).then_some(Self {
                host: None,
                kind: None,
                has_user: false,
                is_plain_http,
            });
        };
        let host = url.host()?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(Self {
            kind: Some(kind_of_host(&host)),
            host: Some(format!("{host}{port}")),
            has_user: !url.username().is_empty() || url.password().is_some(),
            is_plain_http: url.scheme() == "http",
        })
    }
}

/// A URL as a person should read it: as it is parsed, so that no `@` or `\` moves the host, and without its secrets.
pub fn shown_url(written: &str) -> String {
    let parsed = Url::parse(written).ok().filter(|_| !written.contains("${"));
    let text = parsed.map_or_else(|| written.to_owned(), String::from);
    // In reverse order, so that earlier positions stay valid.
    secrets::find_in_url(&text).into_iter().rev().fold(text, |text, (span, _)| {
        let (before, after) = (text.get(..span.start).unwrap_or_default(), text.get(span.end..).unwrap_or_default());
        format!("{before}{}{after}", crate::text::MASK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_recognized_in_every_spelling() {
        let kind = |url: &str| Target::of(url).and_then(|target| target.kind);
        for url in [
            "http://0xa9fea9fe/",
            "http://[::ffff:169.254.169.254]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://metadata./",
            "http://2852039166/",
            "http://0251.0376.0251.0376./",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[64:ff9b:1::a9fe:a9fe]/",
            "http://[64:ff9b:1:a9fe:a9:fe00::]/",
            "http://[64:ff9b:1:ffff:a9:fea9:fe00:0]/",
            "http://[2001:0:8000::5601:5601]/",
            "http://[2001:db8::5efe:a9fe:a9fe]/",
            "http://169.254.42.42/",
            "http://METADATA.google.internal./",
            "http://instance-data.eu-west-1.compute.internal/",
        ] {
            assert_eq!(kind(url), Some(AddressKind::Metadata), "{url}");
        }
        assert_eq!(kind("http://[::ffff:127.0.0.1]/"), Some(AddressKind::Loopback));
        assert_eq!(kind("http://[::ffff:10.0.0.1]/"), Some(AddressKind::Private));
        assert_eq!(kind("http://[64:ff9b:1::10.0.0.1]/"), Some(AddressKind::Private));
        assert_eq!(kind("http://8.8.8.8/"), Some(AddressKind::Public));
        assert_eq!(kind("http://[2606:4700::1111]/"), Some(AddressKind::Public));
        assert_eq!(kind("http://${HOST}/"), None);
        assert_eq!(kind("http://169.254.169.254/${X}"), Some(AddressKind::Metadata));
    }

    #[test]
    fn the_host_is_the_one_that_is_connected_to() {
        let host = |url: &str| Target::of(url).and_then(|target| target.host);
        assert_eq!(host("https://good.test:pw@evil.test/").as_deref(), Some("evil.test"));
        assert_eq!(host("https://evil.test\\@good.test/").as_deref(), Some("evil.test"));
        assert_eq!(host("https://good.test/${X}").as_deref(), Some("good.test"));
        assert_eq!(host("https://good.test:8443/").as_deref(), Some("good.test:8443"));
        for unknown in ["https://good.test${X}/", "https://${X}@good.test/", "https://a:${X}@good.test/", "${X}"] {
            assert_eq!(Target::of(unknown).unwrap().host, None, "{unknown}");
        }
        assert_eq!(shown_url("https://me:pw@host/a?token=abc"), "https://me:•••@host/a?token=•••");
        assert_eq!(shown_url("https://me:pw@evil\\@good/"), "https://me:•••@evil/@good/");
        assert_eq!(shown_url("https://host/${X}?token=${Y}"), "https://host/${X}?token=${Y}");
    }
}
