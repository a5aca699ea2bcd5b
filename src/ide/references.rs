//! Find references in all config files.

use super::config_view::ConfigView;
use super::definition::FileSpan;
use super::occurrences::{self, Occurrence, Role};

/// Whether to include the definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    References,
    ReferencesAndDefinition,
}

impl Include {
    pub fn of(definition: bool) -> Self {
        if definition { Self::ReferencesAndDefinition } else { Self::References }
    }
}

/// All references to the name at an offset, including globs that match it.
pub fn references(config: &ConfigView<'_>, offset: usize, include: Include) -> Vec<FileSpan> {
    let Some(at) = config.occurrence_at(offset) else { return Vec::new() };
    let matches = |occurrence: &Occurrence| {
        at.named.is_matched_by(&occurrence.named)
            && (include == Include::ReferencesAndDefinition || occurrence.role == Role::Reference)
    };
    let mut locations: Vec<FileSpan> = Vec::new();
    let own = config.occurrences().into_iter().filter(matches);
    locations.extend(own.map(|occurrence| FileSpan { file: None, span: occurrence.span }));
    let others =
        config.loaded.files.iter().filter(|file| &*file.source.path != config.path && config.shares_names_with(file));
    for file in others {
        let occurrences = occurrences::occurrences(&file.text, &file.tree).into_iter().filter(matches);
        locations.extend(
            occurrences.map(|occurrence| FileSpan { file: Some(file.source.path.clone()), span: occurrence.span }),
        );
    }
    locations.sort_by(|one, other| (&one.file, one.span.start).cmp(&(&other.file, other.span.start)));
    locations
}

/// The occurrences of the name in this file, for highlighting.
pub fn highlights(config: &ConfigView<'_>, offset: usize) -> Vec<Occurrence> {
    let Some(at) = config.occurrence_at(offset) else { return Vec::new() };
    config.occurrences().into_iter().filter(|occurrence| at.named.is_matched_by(&occurrence.named)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::fixture::Fixture;

    fn all(marked: &str, include: Include) -> String {
        let user = r#"{ "servers": { "x": { "command": "x" } }, "policy": { "denylist": [{ "server": "f*", "tool": "drop" }] } }"#;
        let fixture = Fixture::new(marked).user(user);
        let config = fixture.config();
        let show = |location: &FileSpan| match &location.file {
            None => format!("{}…", &config.text[location.span.start..(location.span.end + 6).min(config.text.len())]),
            Some(file) => format!("{} {}", file.display(), &user[location.span.clone()]),
        };
        references(&config, fixture.offset, include).iter().map(show).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn matchers_and_actions_in_all_files_refer_to_a_server() {
        let text = r#"{ "servers": { "fs$0": { "command": "a" } },
            "policy": { "allowlist": [{ "server": "fs", "tool": "*" }, { "server": "git", "tool": "*" }] },
            "actions": [{ "title": "t", "tool": "mcp__fs__read" }] }"#;
        insta::assert_snapshot!(all(text, Include::ReferencesAndDefinition), @r#"
        fs": { "…
        fs", "to…
        fs__read…
        /user/mcp.json f*
        "#);
        assert_eq!(all(text, Include::References).lines().count(), 3);
    }

    #[test]
    fn references_to_inputs_and_variables_are_found() {
        let text = r#"{ "servers": { "a": { "command": "${input:k}", "args": ["${env:HOME}", "${HOME}"] } }, "inputs": [{ "id": "k$0" }] }"#;
        assert_eq!(all(text, Include::ReferencesAndDefinition).lines().count(), 2);
        assert_eq!(all(&text.replace("$0", "").replace("{HOME", "{HO$0ME"), Include::References).lines().count(), 2);
    }
}
