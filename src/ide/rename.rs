//! A server or an input renamed, with everything in the file that speaks of it. Globs stay as they are: what they
//! match is their author's business.

use super::page::Page;
use super::uses::{self, Named, Use};
use crate::config::problem::TextEdit;
use crate::model::ServerName;

/// What can be renamed at an offset: the name and where it stands.
pub fn renamable(page: &Page<'_>, offset: usize) -> Option<Use> {
    let used = uses::at(page.text, page.tree, offset)?;
    // A glob is no name, and a server that another file defines keeps the name that it has there.
    uses::uses(page.text, page.tree)
        .iter()
        .any(|other| other.role == uses::Role::Definition && other.named == used.named)
        .then_some(used)
}

/// The edits of this file; the error says why the name cannot be had.
pub fn rename(page: &Page<'_>, offset: usize, new: &str) -> Result<Vec<TextEdit>, String> {
    let used = renamable(page, offset)
        .ok_or_else(|| "only servers and inputs that this file defines can be renamed".to_owned())?;
    let renamed = match &used.named {
        Named::Input(_) if is_id(new) => Named::Input(new.to_owned()),
        Named::Input(_) => return Err("an input's id holds letters, digits, `.`, `-` and `_`".to_owned()),
        _ => Named::Server(ServerName::new(new).map_err(|error| error.to_string())?.into()),
    };
    let all = uses::uses(page.text, page.tree);
    let taken = |other: &Use| other.role == uses::Role::Definition && other.named == renamed;
    if renamed != used.named && all.iter().any(taken) {
        return Err(format!("`{new}` is taken in this file; choose another name"));
    }
    let same = all.into_iter().filter(|other| other.named == used.named);
    let mut edits: Vec<TextEdit> = same.map(|other| TextEdit::replace(other.span, new)).collect();
    edits.sort_by_key(|edit| edit.span.start);
    Ok(edits)
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
            Ok(edits) => apply(&fixture.text, &edits),
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
        assert!(renamed(text, "a b").starts_with("error: a server's name holds only"), "{}", renamed(text, "a b"));
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
}
