//! The names that agents use: `{server}__{tool}`, with characters that every model API accepts, at most 64 long.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::model::ServerName;

const LONGEST: usize = 64;
/// How many digits of the digest replace the part that is cut off.
const DIGITS: usize = 8;

/// Adds an item under a unique name and returns the name. Existing items keep their names. Returns `None` if even the
/// alias is taken.
pub fn insert<T>(names: &mut BTreeMap<String, T>, server: &ServerName, own: &str, item: T) -> Option<String> {
    let plain = format!("{server}__{own}");
    let name = if is_valid(&plain) && !names.contains_key(&plain) { plain } else { alias(&plain) };
    match names.entry(name) {
        Entry::Occupied(_) => None,
        Entry::Vacant(free) => {
            let name = free.key().clone();
            free.insert(item);
            Some(name)
        }
    }
}

/// A valid name, which depends only on the original name.
fn alias(name: &str) -> String {
    let valid = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let mut alias: String = name.chars().take(LONGEST - DIGITS - 1).map(valid).collect();
    alias.push('_');
    for byte in Sha256::digest(name).iter().take(DIGITS / 2) {
        write!(alias, "{byte:02x}").ok();
    }
    alias
}

fn is_valid(name: &str) -> bool {
    name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The scheme of a URI that several servers use. A scheme cannot contain `_`, and a server's name cannot contain `.`.
pub fn scheme(server: &ServerName) -> String {
    format!("mcp+{}", server.as_str().replace('_', "."))
}

/// A URI that is qualified with the server's name.
pub fn qualified_uri(server: &ServerName, uri: &str) -> String {
    format!("{}://{uri}", scheme(server))
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
        let mut names = BTreeMap::new();
        things
            .iter()
            .filter_map(|(server, own)| insert(&mut names, &ServerName::new(server).unwrap(), own, ()))
            .collect()
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
        assert!(names[0].starts_with("a__b_c_"));
        assert_eq!(named(&[("a", &long)]), [names[2].clone()]);
    }

    #[test]
    fn a_name_never_changes_its_owner() {
        let mut names = BTreeMap::new();
        let server = ServerName::new("a").unwrap();
        let odd = insert(&mut names, &server, "b.c", 1).unwrap();
        let forged = odd.strip_prefix("a__").unwrap();
        assert_ne!(insert(&mut names, &server, forged, 2), Some(odd.clone()));
        assert_eq!(insert(&mut names, &server, "b.c", 3), None);
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
