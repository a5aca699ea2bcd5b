//! A server or an input renamed, with everything that speaks of it, in all files. Globs stay as they are: what they
//! match is their author's business.

use std::path::Path;
use std::sync::Arc;

use super::page::Page;
use super::uses::{self, Named, Use};
use crate::config::problem::TextEdit;
use crate::model::{Scope, ServerName};
use crate::policy::location;

/// What can be renamed at an offset: the name and where it stands.
pub fn renamable(page: &Page<'_>, offset: usize) -> Option<Use> {
    let used = uses::at(page.text, page.tree, offset)?;
    // A glob is no name, and a server that another file defines keeps the name that it has there.
    defines(&uses::uses(page.text, page.tree), &used.named).then_some(used)
}

/// The edits of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// `None`: the file that was asked about.
    pub file: Option<Arc<Path>>,
    pub edits: Vec<TextEdit>,
}

/// The edits of this file, and of the others that speak of what it defines; the error says why the name cannot be had.
pub fn rename(page: &Page<'_>, offset: usize, new: &str) -> Result<Vec<Renamed>, String> {
    let used = renamable(page, offset)
        .ok_or_else(|| "only servers and inputs that this file defines can be renamed".to_owned())?;
    let renamed = match &used.named {
        Named::Input(_) if is_id(new) => Named::Input(new.to_owned()),
        Named::Input(_) => return Err("an input's id holds letters, digits, `.`, `-` and `_`".to_owned()),
        _ => Named::Server(ServerName::new(new).map_err(|error| error.to_string())?.into()),
    };
    let own = uses::uses(page.text, page.tree);
    if renamed != used.named && defines(&own, &renamed) {
        return Err(format!("`{new}` is taken in this file; choose another name"));
    }
    if is_hidden(page, &used.named) {
        // Whatever speaks of this name means the definition that counts, and goes on to do so.
        let definition = own.into_iter().filter(|used| used.role == uses::Role::Definition).collect();
        return Ok(vec![Renamed { file: None, edits: edits(definition, &used.named, new) }]);
    }
    let mut all = vec![Renamed { file: None, edits: edits(own, &used.named, new) }];
    for file in page.loaded.files.iter().filter(|file| &*file.source.path != page.path) {
        let uses = uses::uses(&file.text, &file.tree);
        if renamed != used.named && page.speaks_with(file) && defines(&uses, &renamed) {
            let place = location(file.source.scope, Some(&file.source.path), None);
            return Err(format!("`{new}` is taken in {place}; choose another name"));
        }
        // A file that defines the name itself speaks of its own.
        if page.speaks_with(file) && file.source.scope != Scope::Managed && !defines(&uses, &used.named) {
            let edits = edits(uses, &used.named, new);
            all.extend((!edits.is_empty()).then(|| Renamed { file: Some(file.source.path.clone()), edits }));
        }
    }
    Ok(all)
}

/// Whether another file's definition counts in place of the one here.
fn is_hidden(page: &Page<'_>, named: &Named) -> bool {
    let Named::Server(name) = named else { return false };
    page.entries().iter().any(|entry| entry.member.key.text == *name && entry.winner.is_some())
}

fn defines(uses: &[Use], named: &Named) -> bool {
    uses.iter().any(|used| used.role == uses::Role::Definition && used.named == *named)
}

fn edits(uses: Vec<Use>, named: &Named, new: &str) -> Vec<TextEdit> {
    let same = uses.into_iter().filter(|used| used.named == *named);
    let mut edits: Vec<TextEdit> = same.map(|used| TextEdit::replace(used.span, new)).collect();
    edits.sort_by_key(|edit| edit.span.start);
    edits
}

fn is_id(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::fixture::{Fixture, apply};

    fn renamed(marked: &str, new: &str) -> String {
        let fixture = Fixture::new(marked);
        match rename(&fixture.page(), fixture.offset, new) {
            Ok(all) => apply(&fixture.text, &all[0].edits),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn a_server_is_renamed_with_its_matchers_and_actions() {
        let text = r#"{ "servers": { "fs$0": { "command": "fs" }, "git": {} },
  "policy": { "denylist": [{ "server": "fs", "tool": "fs" }, { "server": "f*", "tool": "x" }] },
  "actions": [{ "title": "fs", "tool": "mcp__fs__read" }, { "title": "u", "tool": "fs/read" }] }"#;
        insta::assert_snapshot!(renamed(text, "files"), @r#"
        { "servers": { "files": { "command": "fs" }, "git": {} },
          "policy": { "denylist": [{ "server": "files", "tool": "fs" }, { "server": "f*", "tool": "x" }] },
          "actions": [{ "title": "fs", "tool": "mcp__files__read" }, { "title": "u", "tool": "files/read" }] }
        "#);
        assert_eq!(renamed(text, "git"), "error: `git` is taken in this file; choose another name");
        assert!(renamed(text, "a b").starts_with("error: server names can only contain"), "{}", renamed(text, "a b"));
    }

    #[test]
    fn other_files_that_speak_of_it_follow_and_those_with_one_of_their_own_do_not() {
        let text = r#"{ "servers": { "fs$0": { "command": "fs" } } }"#;
        let user = |own: &str| {
            format!(
                r#"{{ "servers": {{ {own} }}, "policy": {{ "allowlist": [{{ "server": "fs", "tool": "x" }}] }}, "actions": [{{ "title": "t", "tool": "mcp__fs__x" }}] }}"#
            )
        };
        let other = |own: &str| {
            let fixture = Fixture::new(text).user(&user(own));
            let all = rename(&fixture.page(), fixture.offset, "files")?;
            Ok::<_, String>(all.get(1).map(|other| apply(&user(own), &other.edits)))
        };
        insta::assert_snapshot!(other("").unwrap().unwrap(), @r#"{ "servers": {  }, "policy": { "allowlist": [{ "server": "files", "tool": "x" }] }, "actions": [{ "title": "t", "tool": "mcp__files__x" }] }"#);
        assert_eq!(other(r#""fs": { "command": "y" }"#), Ok(None));
        assert_eq!(
            other(r#""files": { "command": "y" }"#),
            Err("`files` is taken in user mcp.json; choose another name".to_owned())
        );
    }

    #[test]
    fn an_input_is_renamed_where_it_is_used() {
        let text = r#"{ "servers": { "a": { "env": { "K": "Bearer ${input:k$0}" } } }, "inputs": [{ "id": "k" }] }"#;
        assert!(renamed(text, "key").contains(r#""Bearer ${input:key}" } } }, "inputs": [{ "id": "key" }]"#));
        assert!(renamed(text, "a}b").starts_with("error"));
    }

    #[test]
    fn what_is_defined_elsewhere_cannot_be_renamed_here() {
        let text = r#"{ "actions": [{ "title": "x", "tool": "mcp__el$0se__read" }] }"#;
        assert_eq!(renamed(text, "y"), "error: only servers and inputs that this file defines can be renamed");
    }

    #[test]
    fn what_speaks_of_a_name_goes_on_to_mean_the_definition_that_counts() {
        let project = r#"{ "servers": { "fs": { "command": "a" } }, "policy": { "denylist": [{ "server": "fs", "tool": "x" }] } }"#;
        let user = r#"{ "servers": { "f$0s": { "command": "b" } }, "policy": { "denylist": [{ "server": "fs", "tool": "y" }] } }"#;
        let offset = user.find("$0").unwrap();
        let user = user.replace("$0", "");
        let fixture = Fixture::new(&format!("$0{project}")).user(&user);
        let path = fixture.page().loaded.files.last().unwrap().source.path.clone();
        let all = rename(&fixture.page_of(path.to_str().unwrap()), offset, "mine").unwrap();
        let texts: Vec<String> = all.iter().map(|renamed| apply(&user, &renamed.edits)).collect();
        assert_eq!(texts, [user.replacen("fs", "mine", 1)]);
    }
}
