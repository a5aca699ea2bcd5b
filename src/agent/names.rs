//! What an agent calls things: `{server}__{tool}`, in letters that every model's API takes, and never longer than 64.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::model::ServerName;

const LONGEST: usize = 64;
/// Digits of the digest that stand for what had to be left out.
const DIGITS: usize = 8;

/// Adds a thing under a name that nobody else has, and gives that name. What is there already keeps its name: a thing that
/// not even its digest tells from another has none.
pub fn insert<T>(names: &mut BTreeMap<String, T>, server: &ServerName, own: &str, thing: T) -> Option<String> {
    let plain = format!("{server}__{own}");
    let name = if is_good(&plain) && !names.contains_key(&plain) { plain } else { alias(&plain) };
    match names.entry(name) {
        Entry::Occupied(_) => None,
        Entry::Vacant(free) => {
            let name = free.key().clone();
            free.insert(thing);
            Some(name)
        }
    }
}

/// The same for the same name each time, whatever else there is.
fn alias(name: &str) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let mut alias: String = name.chars().take(LONGEST - DIGITS - 1).map(good).collect();
    alias.push('_');
    for byte in Sha256::digest(name).iter().take(DIGITS / 2) {
        write!(alias, "{byte:02x}").ok();
    }
    alias
}

fn is_good(name: &str) -> bool {
    name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The scheme under which a resource is found whose address another server has, too. A scheme cannot hold `_`, and a
/// server's name no `.`.
pub fn scheme(server: &ServerName) -> String {
    format!("mcp+{}", server.as_str().replace('_', "."))
}

/// An address that only this server has.
pub fn own_uri(server: &ServerName, uri: &str) -> String {
    format!("{}://{uri}", scheme(server))
}

/// The server and its own address, of an address made by [`own_uri`].
pub fn parse_own_uri(uri: &str) -> Option<(ServerName, &str)> {
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
    fn names_are_plain_where_they_can_be() {
        assert_eq!(named(&[("git", "log"), ("fs", "read_file")]), ["git__log", "fs__read_file"]);
    }

    #[test]
    fn odd_long_and_clashing_names_get_an_alias_that_stays_the_same() {
        let long = "x".repeat(80);
        let names = named(&[("a", "b.c"), ("a", "b/c"), ("a", &long), ("a", "_b"), ("a_", "b")]);
        assert_eq!(names.len(), std::collections::BTreeSet::from_iter(&names).len(), "{names:?}");
        assert!(names.iter().all(|name| is_good(name)), "{names:?}");
        assert!(names[0].starts_with("a__b_c_"));
        assert_eq!(named(&[("a", &long)]), [names[2].clone()]);
    }

    #[test]
    fn a_name_that_was_given_out_changes_its_owner_no_more() {
        let mut names = BTreeMap::new();
        let server = ServerName::new("a").unwrap();
        let odd = insert(&mut names, &server, "b.c", 1).unwrap();
        let forged = odd.strip_prefix("a__").unwrap();
        assert_ne!(insert(&mut names, &server, forged, 2), Some(odd.clone()));
        assert_eq!(insert(&mut names, &server, "b.c", 3), None);
        assert_eq!(names.get(&odd), Some(&1));
    }

    #[test]
    fn an_address_of_its_own_leads_back() {
        let server = ServerName::new("my_files").unwrap();
        let uri = own_uri(&server, "file:///a");
        assert_eq!(uri, "mcp+my.files://file:///a");
        assert_eq!(parse_own_uri(&uri), Some((server, "file:///a")));
        assert_eq!(parse_own_uri("file:///a"), None);
    }
}
