//! Renames a server or an input and all references to it, in all files. Globs are not changed, because the rename cannot
//! know what they are meant to match.

use std::path::Path;
use std::sync::Arc;

use super::config_view::ConfigView;
use super::occurrences::{self, Named, Occurrence, Role};
use crate::config::problem::TextEdit;
use crate::model::{Scope, ServerName};
use crate::policy::location;

/// The name at an offset, if it can be renamed.
pub fn renamable(config: &ConfigView<'_>, offset: usize) -> Option<Occurrence> {
    let occurrence = config.occurrence_at(offset).filter(|_| config.file.valid)?;
    // Globs, and servers that are defined in other files, cannot be renamed here.
    defines(&config.occurrences(), &occurrence.named).then_some(occurrence)
}

/// The edits of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    /// `None` for the current file.
    pub file: Option<Arc<Path>>,
    pub edits: Vec<TextEdit>,
}

/// The edits of this file and of others that refer to the name; the error says why the new name is not possible.
pub fn rename(config: &ConfigView<'_>, offset: usize, new: &str) -> Result<Vec<Renamed>, String> {
    if !config.file.valid {
        return Err("this file has syntax errors; fix them first".to_owned());
    }
    let occurrence = renamable(config, offset)
        .ok_or_else(|| "only servers and inputs that this file defines can be renamed".to_owned())?;
    let renamed = match &occurrence.named {
        Named::Input(_) if is_id(new) => Named::Input(new.to_owned()),
        Named::Input(_) => return Err("an input id can only contain letters, digits, `.`, `-` and `_`".to_owned()),
        _ => Named::Server(ServerName::new(new).map_err(|error| error.to_string())?.into()),
    };
    let own = config.occurrences();
    if renamed != occurrence.named && defines(&own, &renamed) {
        return Err(format!("`{new}` already exists in this file; choose another name"));
    }
    if is_overridden(config, &occurrence.named) {
        // All references mean the definition that is in effect, so they keep the name.
        let definition = own.into_iter().filter(|occurrence| occurrence.role == Role::Definition).collect();
        return Ok(vec![Renamed { file: None, edits: edits(definition, &occurrence.named, new) }]);
    }
    let mut all = vec![Renamed { file: None, edits: edits(own, &occurrence.named, new) }];
    for file in config.loaded.files.iter().filter(|file| &*file.source.path != config.path) {
        let occurrences = occurrences::occurrences(&file.text, &file.tree);
        if renamed != occurrence.named && config.shares_names_with(file) && defines(&occurrences, &renamed) {
            let place = location(file.source.scope, Some(&file.source.path), None);
            return Err(format!("`{new}` already exists in {place}; choose another name"));
        }
        // References in a file that defines the name mean its own definition.
        if config.shares_names_with(file)
            && file.source.scope != Scope::Managed
            && !defines(&occurrences, &occurrence.named)
        {
            let edits = edits(occurrences, &occurrence.named, new);
            if !edits.is_empty() && !file.valid {
                let place = location(file.source.scope, Some(&file.source.path), None);
                return Err(format!("{place} refers to it and has syntax errors; fix them first"));
            }
            all.extend((!edits.is_empty()).then(|| Renamed { file: Some(file.source.path.clone()), edits }));
        }
    }
    Ok(all)
}

/// Whether another file overrides the definition.
fn is_overridden(config: &ConfigView<'_>, named: &Named) -> bool {
    let Named::Server(name) = named else { return false };
    config.entries().iter().any(|entry| entry.member.key.text == *name && entry.overridden_by.is_some())
}

fn defines(occurrences: &[Occurrence], named: &Named) -> bool {
    occurrences.iter().any(|occurrence| occurrence.defines(named))
}

fn edits(occurrences: Vec<Occurrence>, named: &Named, new: &str) -> Vec<TextEdit> {
    let same = occurrences.into_iter().filter(|occurrence| occurrence.named == *named);
    let mut edits: Vec<TextEdit> = same.map(|occurrence| TextEdit::replace(occurrence.span, new)).collect();
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
        match rename(&fixture.config(), fixture.offset, new) {
            Ok(all) => apply(&fixture.text, &all[0].edits),
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn renaming_a_server_updates_matchers_and_actions() {
        let text = r#"{ "servers": { "fs$0": { "command": "fs" }, "git": {} },
  "policy": { "denylist": [{ "server": "fs", "tool": "fs" }, { "server": "f*", "tool": "x" }] },
  "actions": [{ "title": "fs", "tool": "mcp__fs__read" }, { "title": "u", "tool": "fs/read" }] }"#;
        insta::assert_snapshot!(renamed(text, "files"), @r#"
        { "servers": { "files": { "command": "fs" }, "git": {} },
          "policy": { "denylist": [{ "server": "files", "tool": "fs" }, { "server": "f*", "tool": "x" }] },
          "actions": [{ "title": "fs", "tool": "mcp__files__read" }, { "title": "u", "tool": "files/read" }] }
        "#);
        assert_eq!(renamed(text, "git"), "error: `git` already exists in this file; choose another name");
        assert!(renamed(text, "a b").starts_with("error: server names can only contain"), "{}", renamed(text, "a b"));
    }

    #[test]
    fn renaming_updates_other_files_unless_they_define_the_name() {
        let text = r#"{ "servers": { "fs$0": { "command": "fs" } } }"#;
        let user = |own: &str| {
            format!(
                r#"{{ "servers": {{ {own} }}, "policy": {{ "allowlist": [{{ "server": "fs", "tool": "x" }}] }}, "actions": [{{ "title": "t", "tool": "mcp__fs__x" }}] }}"#
            )
        };
        let other = |own: &str| {
            let fixture = Fixture::new(text).user(&user(own));
            let all = rename(&fixture.config(), fixture.offset, "files")?;
            Ok::<_, String>(all.get(1).map(|other| apply(&user(own), &other.edits)))
        };
        insta::assert_snapshot!(other("").unwrap().unwrap(), @r#"{ "servers": {  }, "policy": { "allowlist": [{ "server": "files", "tool": "x" }] }, "actions": [{ "title": "t", "tool": "mcp__files__x" }] }"#);
        assert_eq!(other(r#""fs": { "command": "y" }"#), Ok(None));
        assert_eq!(
            other(r#""files": { "command": "y" }"#),
            Err("`files` already exists in user mcp.json; choose another name".to_owned())
        );
    }

    #[test]
    fn renaming_an_input_updates_references() {
        let text = r#"{ "servers": { "a": { "env": { "K": "Bearer ${input:k$0}" } } }, "inputs": [{ "id": "k" }] }"#;
        assert!(renamed(text, "key").contains(r#""Bearer ${input:key}" } } }, "inputs": [{ "id": "key" }]"#));
        assert!(renamed(text, "a}b").starts_with("error"));
    }

    #[test]
    fn names_from_other_files_cannot_be_renamed() {
        let text = r#"{ "actions": [{ "title": "x", "tool": "mcp__el$0se__read" }] }"#;
        assert_eq!(renamed(text, "y"), "error: only servers and inputs that this file defines can be renamed");
    }

    #[test]
    fn references_keep_the_name_of_the_definition_in_effect() {
        let project = r#"{ "servers": { "fs": { "command": "a" } }, "policy": { "denylist": [{ "server": "fs", "tool": "x" }] } }"#;
        let user = r#"{ "servers": { "f$0s": { "command": "b" } }, "policy": { "denylist": [{ "server": "fs", "tool": "y" }] } }"#;
        let offset = user.find("$0").unwrap();
        let user = user.replace("$0", "");
        let fixture = Fixture::new(&format!("$0{project}")).user(&user);
        let path = fixture.config().loaded.files.last().unwrap().source.path.clone();
        let all = rename(&fixture.config_of(path.to_str().unwrap()), offset, "mine").unwrap();
        let texts: Vec<String> = all.iter().map(|renamed| apply(&user, &renamed.edits)).collect();
        assert_eq!(texts, [user.replacen("fs", "mine", 1)]);
    }
}
