//! Every place that speaks of a name, in this file and in the others.

use super::definition::Spot;
use super::page::Page;
use super::uses::{self, Role, Use};

/// Whether the definition itself is wanted, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Uses,
    UsesAndDefinition,
}

/// All places that speak of the name at an offset; globs count where they match it.
pub fn references(page: &Page<'_>, offset: usize, wanted: Wanted) -> Vec<Spot> {
    let Some(at) = uses::at(page.text, page.tree, offset) else { return Vec::new() };
    let counts = |used: &Use| {
        at.named.is_meant_by(&used.named) && (wanted == Wanted::UsesAndDefinition || used.role == Role::Use)
    };
    let mut spots: Vec<Spot> = Vec::new();
    let own = uses::uses(page.text, page.tree).into_iter().filter(counts);
    spots.extend(own.map(|used| Spot { file: None, span: used.span }));
    let others = page.loaded.files.iter().filter(|file| &*file.source.path != page.path && page.speaks_with(file));
    for file in others {
        let uses = uses::uses(&file.text, &file.tree).into_iter().filter(counts);
        spots.extend(uses.map(|used| Spot { file: Some(file.source.path.clone()), span: used.span }));
    }
    spots.sort_by(|one, other| (&one.file, one.span.start).cmp(&(&other.file, other.span.start)));
    spots
}

/// The same in this file alone, for highlighting.
pub fn highlights(page: &Page<'_>, offset: usize) -> Vec<Use> {
    let Some(at) = uses::at(page.text, page.tree, offset) else { return Vec::new() };
    uses::uses(page.text, page.tree).into_iter().filter(|used| at.named.is_meant_by(&used.named)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::fixture::Fixture;

    fn all(marked: &str, wanted: Wanted) -> String {
        let user = r#"{ "servers": { "x": { "command": "x" } }, "policy": { "denylist": [{ "server": "f*", "tool": "drop" }] } }"#;
        let fixture = Fixture::new(marked).user(user);
        let page = fixture.page();
        let show = |spot: &Spot| match &spot.file {
            None => format!("{}…", &page.text[spot.span.start..(spot.span.end + 6).min(page.text.len())]),
            Some(file) => format!("{} {}", file.display(), &user[spot.span.clone()]),
        };
        references(&page, fixture.offset, wanted).iter().map(show).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_server_is_spoken_of_by_matchers_and_actions_of_all_files() {
        let text = r#"{ "servers": { "fs$0": { "command": "a" } },
            "policy": { "allowlist": [{ "server": "fs", "tool": "*" }, { "server": "git", "tool": "*" }] },
            "actions": [{ "title": "t", "tool": "mcp__fs__read" }] }"#;
        insta::assert_snapshot!(all(text, Wanted::UsesAndDefinition), @r#"
        fs": { "…
        fs", "to…
        fs__read…
        /user/mcp.json f*
        "#);
        assert_eq!(all(text, Wanted::Uses).lines().count(), 3);
    }

    #[test]
    fn an_input_and_a_variable_are_found_wherever_they_are_used() {
        let text = r#"{ "servers": { "a": { "command": "${input:k}", "args": ["${env:HOME}", "${HOME}"] } }, "inputs": [{ "id": "k$0" }] }"#;
        assert_eq!(all(text, Wanted::UsesAndDefinition).lines().count(), 2);
        assert_eq!(all(&text.replace("$0", "").replace("{HOME", "{HO$0ME"), Wanted::Uses).lines().count(), 2);
    }
}
