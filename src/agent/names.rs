//! The names that agents use: `{server}__{tool}`, with characters that every model API accepts. Agents add a prefix, and a
//! model API accepts at most 64 characters in total.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use sha2::{Digest, Sha256};
use url::{Url, form_urlencoded};

use crate::model::ServerName;

/// The longest name that every model API accepts.
const LONGEST: usize = 64;
/// How long the name of our entry in an agent's config may be. It is part of the prefix, and we do not know it.
const ENTRY: usize = 16;
/// The prefixes that agents add, by the beginning of the name that they report. `*` stands for the name of our entry.
const PREFIXES: [(&str, &str); 5] =
    [("opencode", "*_"), ("copilot", "*-"), ("github-copilot", "*-"), ("continue", "*_"), ("gemini", "mcp_*_")];
/// The longest prefix that is known: Claude Code, Codex, Qwen Code.
const OTHER_PREFIX: &str = "mcp__*__";
/// How many digits of the digest an alias has.
const DIGITS: usize = 8;
/// How much of the server's name an alias begins with.
const SERVER: usize = 12;

/// How long the names may be that an agent gets, which reports this name.
pub fn limit(agent: Option<&str>) -> usize {
    let agent = agent.unwrap_or_default().to_ascii_lowercase();
    let known = PREFIXES.iter().find(|(name, _)| agent.starts_with(name));
    let prefix = known.map_or(OTHER_PREFIX, |(_, prefix)| prefix);
    LONGEST - ENTRY - (prefix.len() - 1)
}

/// Adds an item under a unique name of at most `limit` characters and returns the name. Existing items keep their names.
/// Returns `None` if even the alias is taken.
pub fn insert<T>(
    names: &mut BTreeMap<String, T>,
    limit: usize,
    server: &ServerName,
    own: &str,
    item: T,
) -> Option<String> {
    let plain = format!("{server}__{own}");
    let is_usable = plain.len() <= limit && is_valid(&plain) && !is_alias(&plain) && !names.contains_key(&plain);
    let name = if is_usable { plain } else { alias(server, own, limit) };
    match names.entry(name) {
        Entry::Occupied(_) => None,
        Entry::Vacant(free) => {
            let name = free.key().clone();
            free.insert(item);
            Some(name)
        }
    }
}

/// A valid name, which depends only on the original name. An agent that cuts names keeps the digest, because it is near the
/// beginning.
fn alias(server: &ServerName, own: &str, limit: usize) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let mut alias: String = server.as_str().chars().take(SERVER).map(valid).collect();
    alias.push('_');
    for byte in Sha256::digest(format!("{server}__{own}")).iter().take(DIGITS / 2) {
        write!(alias, "{byte:02x}").ok();
    }
    alias.push_str("__");
    let room = limit.saturating_sub(alias.len());
    alias.extend(own.chars().take(room).map(valid));
    alias
}

fn is_valid(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether a name looks like an alias. Such a name gets an alias, so that no server can take the alias of another.
fn is_alias(name: &str) -> bool {
    let is_digest =
        |text: &str| text.strip_prefix('_').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    name.match_indices("__").any(|(end, _)| {
        let start = end.checked_sub(DIGITS + 1);
        start.and_then(|start| name.get(start..end)).is_some_and(is_digest)
    })
}

/// The scheme of a URI that several servers use. A scheme cannot contain `_`, and a server's name cannot contain `.`.
pub fn scheme(server: &ServerName) -> String {
    format!("mcp+{}", server.as_str().replace('_', "."))
}

/// A URI that is qualified with the server's name. It is always valid, whatever the server's own URI is.
pub fn qualified_uri(server: &ServerName, uri: &str) -> String {
    let plain = format!("{}://{uri}", scheme(server));
    if Url::parse(&plain).is_ok() {
        return plain;
    }
    let encoded: String = form_urlencoded::byte_serialize(uri.as_bytes()).collect();
    format!("{}://{encoded}", scheme(server))
}

/// The server and the original URI of a [`qualified_uri`].
pub fn parse_qualified_uri(uri: &str) -> Option<(ServerName, &str)> {
    let (scheme, own) = uri.split_once("://")?;
    let server = scheme.strip_prefix("mcp+")?.replace('.', "_");
    Some((ServerName::new(&server).ok()?, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(things: &[(&str, &str)]) -> Vec<String> {
        named_for(None, things)
    }

    fn named_for(agent: Option<&str>, things: &[(&str, &str)]) -> Vec<String> {
        let mut names = BTreeMap::new();
        let mut insert =
            |server: &str, own: &str| insert(&mut names, limit(agent), &ServerName::new(server).unwrap(), own, ());
        things.iter().filter_map(|(server, own)| insert(server, own)).collect()
    }

    #[test]
    fn valid_names_are_not_changed() {
        assert_eq!(named(&[("git", "log"), ("fs", "read_file")]), ["git__log", "fs__read_file"]);
    }

    #[test]
    fn invalid_long_and_duplicate_names_get_a_stable_alias() {
        let long = "x".repeat(80);
        let names = named(&[("a", "b.c"), ("a", "b/c"), ("a", &long), ("a", "_b"), ("a_", "b")]);
        assert_eq!(names.len(), std::collections::BTreeSet::from_iter(&names).len(), "{names:?}");
        assert!(names.iter().all(|name| is_valid(name)), "{names:?}");
        assert!(names[0].starts_with("a_") && names[0].ends_with("__b_c"), "{names:?}");
        assert_eq!(named(&[("a", &long)]), [names[2].clone()]);
    }

    #[test]
    fn names_leave_room_for_the_prefix_of_each_agent() {
        let long = "list_all_the_open_pull_requests_of_a_repository";
        let other = format!("{long}_and_more");
        for (agent, prefix) in [
            ("claude-code", "mcp__mcp-sidecar__"),
            ("codex-mcp-client", "mcp__mcp-sidecar__"),
            ("gemini-cli-mcp-client", "mcp_mcp-sidecar_"),
            ("qwen-cli-mcp-client-mcp-sidecar", "mcp__mcp-sidecar__"),
            ("opencode", "mcp-sidecar_"),
            ("copilot-cli", "mcp-sidecar-"),
            ("github-copilot-developer", "mcp-sidecar-"),
            ("continue-cli-client", "mcp-sidecar_"),
            ("@cline/core", "mcp-sidecar__"),
            ("Visual Studio Code", "mcp_mcp-sidecar_"),
            ("unknown", "mcp__my-own-sidecar__"),
        ] {
            let names = named_for(Some(agent), &[("github", long), ("github", &other), ("github", "get_me")]);
            assert_eq!((names.len(), names[2].as_str()), (3, "github__get_me"), "{agent}");
            let longest = names.iter().map(|name| prefix.len() + name.len()).max();
            assert!(longest <= Some(64), "{agent}: {names:?}");
            // An agent with a longer prefix cuts the end.
            assert_ne!(names[0][..24], names[1][..24], "{agent}: {names:?}");
            assert_eq!(named_for(Some(agent), &[("github", &other)]), [names[1].clone()], "{agent}");
        }
    }

    #[test]
    fn a_name_never_changes_its_owner() {
        let mut names = BTreeMap::new();
        let server = ServerName::new("a").unwrap();
        let odd = insert(&mut names, 40, &server, "b.c", 1).unwrap();
        let forger = ServerName::new(odd.strip_suffix("__b_c").unwrap()).unwrap();
        for names in [&mut names, &mut BTreeMap::new()] {
            assert_ne!(insert(names, 40, &forger, "b_c", 2), Some(odd.clone()));
        }
        assert_eq!(insert(&mut names, 40, &server, "b.c", 3), None);
        assert_eq!(names.get(&odd), Some(&1));
    }

    #[test]
    fn a_qualified_uri_can_be_parsed() {
        let server = ServerName::new("my_files").unwrap();
        let uri = qualified_uri(&server, "file:///a");
        assert_eq!(uri, "mcp+my.files://file:///a");
        assert_eq!(parse_qualified_uri(&uri), Some((server, "file:///a")));
        assert_eq!(parse_qualified_uri("file:///a"), None);
    }
}
