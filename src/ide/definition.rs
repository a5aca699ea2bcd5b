//! Go to definition: from a server to the definition that it overrides or is overridden by, from a rule to its server,
//! and from an input to its entry.

use std::path::Path;
use std::sync::Arc;

use super::config_view::ConfigView;
use super::occurrences::{self, Named, Occurrence, Role};
use crate::config::Span;
use crate::policy::NameGlob;

/// A span in this file or in another config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpan {
    /// `None` for the current file.
    pub file: Option<Arc<Path>>,
    pub span: Span,
}

/// The definitions of the name at an offset.
pub fn definition(config: &ConfigView<'_>, offset: usize) -> Vec<FileSpan> {
    let Some(occurrence) = config.occurrence_at(offset) else { return Vec::new() };
    match (&occurrence.named, occurrence.role) {
        (Named::Server(name), Role::Definition) => {
            let others = other_definitions(config, name);
            if others.is_empty() { vec![here(occurrence.span)] } else { others }
        }
        (Named::Server(server) | Named::Tool { server, .. }, _) => servers(config, server),
        (named @ Named::Input(id), _) => input(config, named, id),
        (Named::Variable(_) | Named::Key(_), _) => Vec::new(),
    }
}

fn here(span: Span) -> FileSpan {
    FileSpan { file: None, span }
}

/// The definitions of a server in other files, the one in effect first.
fn other_definitions(config: &ConfigView<'_>, name: &str) -> Vec<FileSpan> {
    let Some(view) = config.server(name) else { return Vec::new() };
    let definition = &view.definition;
    let hidden = definition.hides.iter().map(|hidden| &hidden.file);
    let restricting = definition.restrictions.iter().map(|restriction| &restriction.file);
    let files = std::iter::once(&definition.file).chain(hidden).chain(restricting);
    let elsewhere = files.flatten().filter(|file| &***file != config.path);
    elsewhere.flat_map(|file| in_file(config, file, &Named::Server(name.to_owned()))).collect()
}

/// The definitions of all servers that match a name or glob, preferably in this file.
fn servers(config: &ConfigView<'_>, pattern: &str) -> Vec<FileSpan> {
    let glob = NameGlob::new(pattern);
    let own: Vec<_> = config.tree.servers().filter(|member| glob.is_match(&member.key.text)).collect();
    let mut locations: Vec<FileSpan> = own.iter().map(|member| here(config.inner(&member.key.span))).collect();
    for definition in config.loaded.config.servers.values().filter(|definition| glob.is_match(definition.name.as_str()))
    {
        let Some(file) = &definition.file else { continue };
        let is_defined_here = own.iter().any(|member| member.key.text == definition.name.as_str());
        if !is_defined_here && &**file != config.path {
            let text = config.loaded.file(file).map(|file| &*file.text).unwrap_or_default();
            locations.push(FileSpan {
                file: Some(file.clone()),
                span: super::config_view::inner(text, &definition.key_span),
            });
        }
    }
    locations
}

/// Inputs of the same file take precedence.
fn input(config: &ConfigView<'_>, named: &Named, id: &str) -> Vec<FileSpan> {
    let own: Vec<FileSpan> = definitions(config.occurrences(), named).map(|occurrence| here(occurrence.span)).collect();
    if !own.is_empty() {
        return own;
    }
    let others = config.loaded.config.inputs.iter().filter(|input| input.id == id);
    let files = others.filter_map(|input| input.file.as_ref()).filter(|file| &***file != config.path);
    files.flat_map(|file| in_file(config, file, named)).collect()
}

fn in_file(config: &ConfigView<'_>, file: &Arc<Path>, named: &Named) -> Vec<FileSpan> {
    let Some(other) = config.loaded.file(file) else { return Vec::new() };
    let found = definitions(occurrences::occurrences(&other.text, &other.tree), named);
    found.map(|occurrence| FileSpan { file: Some(file.clone()), span: occurrence.span }).collect()
}

fn definitions(occurrences: Vec<Occurrence>, named: &Named) -> impl Iterator<Item = Occurrence> {
    occurrences.into_iter().filter(move |occurrence| occurrence.defines(named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::fixture::Fixture;

    /// Where a marked text leads: file and the text there, with its line.
    fn leads_to(fixture: &Fixture) -> String {
        let config = fixture.config();
        let show = |location: &FileSpan| {
            let (name, text) = match &location.file {
                None => ("here".to_owned(), config.text.to_owned()),
                Some(file) => (file.display().to_string(), config.loaded.file(file).unwrap().text.to_string()),
            };
            let line = text[..location.span.start].matches('\n').count() + 1;
            format!("{name}:{line} {}", &text[location.span.clone()])
        };
        definition(&config, fixture.offset).iter().map(show).collect::<Vec<_>>().join("\n")
    }

    const USER: &str = "{\n \"servers\": { \"fs\": { \"command\": \"old\" }, \"mail\": { \"command\": \"mail\" } },\n \"inputs\": [{ \"id\": \"there\", \"type\": \"promptString\" }] }";

    #[test]
    fn a_server_leads_to_the_definition_that_it_overrides() {
        let fixture = Fixture::new("{ \"servers\": { \"f$0s\": { \"command\": \"new\" } } }").user(USER);
        assert_eq!(leads_to(&fixture), "/user/mcp.json:2 fs");
        let alone = Fixture::new("{ \"servers\": { \"a$0\": { \"command\": \"new\" } } }").user(USER);
        assert_eq!(leads_to(&alone), "here:1 a");
    }

    #[test]
    fn a_rule_a_matcher_and_an_action_lead_to_their_server() {
        let at = |marked: &str| leads_to(&Fixture::new(marked).user(USER));
        assert_eq!(at(r#"{ "servers": { "a": { "command": "x", "tools": { "re$0ad": "deny" } } } }"#), "here:1 a");
        let matcher = r#"{ "servers": { "a": { "command": "x" } }, "policy": { "denylist": [{ "server": "*$0" }] } }"#;
        assert_eq!(at(matcher), "here:1 a\n/user/mcp.json:2 fs\n/user/mcp.json:2 mail");
        assert_eq!(at(r#"{ "actions": [{ "title": "x", "tool": "mcp__mail__se$0nd" }] }"#), "/user/mcp.json:2 mail");
        assert_eq!(at(r#"{ "actions": [{ "title": "x", "tool": "mcp__nobody__se$0nd" }] }"#), "");
    }

    #[test]
    fn an_input_leads_to_its_entry_here_or_in_another_file() {
        let at = |marked: &str| leads_to(&Fixture::new(marked).user(USER));
        let own =
            "{ \"servers\": { \"a\": { \"command\": \"${input:k$0ey}\" } },\n \"inputs\": [{ \"id\": \"key\" }] }";
        assert_eq!(at(own), "here:2 key");
        assert_eq!(at(r#"{ "servers": { "a": { "command": "${input:there$0}" } } }"#), "/user/mcp.json:3 there");
        assert_eq!(at(r#"{ "servers": { "a": { "command": "${HOME$0}" } } }"#), "");
    }
}
