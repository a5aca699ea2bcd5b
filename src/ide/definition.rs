//! From a name to what it means: a server to the definition that it hides or is hidden by, a rule to its server, an
//! input to its entry.

use std::path::Path;
use std::sync::Arc;

use super::page::Page;
use super::uses::{self, Named, Role, Use};
use crate::config::Span;
use crate::policy::NameGlob;

/// A place in this file, or in another one that the engine has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// `None`: the file that was asked about.
    pub file: Option<Arc<Path>>,
    pub span: Span,
}

/// Where the name at an offset is defined.
pub fn definition(page: &Page<'_>, offset: usize) -> Vec<Spot> {
    let Some(used) = uses::at(page.text, page.tree, offset) else { return Vec::new() };
    match (&used.named, used.role) {
        (Named::Server(name), Role::Definition) => {
            let others = other_definitions(page, name);
            if others.is_empty() { vec![here(used.span)] } else { others }
        }
        (Named::Server(server) | Named::Tool { server, .. }, _) => servers(page, server),
        (named @ Named::Input(id), _) => input(page, named, id),
        (Named::Variable(_) | Named::Key(_), _) => Vec::new(),
    }
}

fn here(span: Span) -> Spot {
    Spot { file: None, span }
}

/// Where else a server of this name is defined: the one that counts first.
fn other_definitions(page: &Page<'_>, name: &str) -> Vec<Spot> {
    let Some(view) = page.server(name) else { return Vec::new() };
    let definition = &view.definition;
    let files = std::iter::once(&definition.file).chain(definition.hides.iter().map(|hidden| &hidden.file));
    let elsewhere = files.flatten().filter(|file| &***file != page.path);
    elsewhere.flat_map(|file| in_file(page, file, &Named::Server(name.to_owned()))).collect()
}

/// The definitions of all servers that a name or glob means, in this file where they stand here.
fn servers(page: &Page<'_>, pattern: &str) -> Vec<Spot> {
    let glob = NameGlob::new(pattern);
    let own: Vec<_> = page.servers().filter(|member| glob.is_match(&member.key.text)).collect();
    let mut spots: Vec<Spot> = own.iter().map(|member| here(page.inner(&member.key.span))).collect();
    for definition in page.loaded.config.servers.values().filter(|definition| glob.is_match(definition.name.as_str())) {
        let Some(file) = &definition.file else { continue };
        let stands_here = own.iter().any(|member| member.key.text == definition.name.as_str());
        if !stands_here && &**file != page.path {
            let text = page.loaded.file(file).map(|file| &*file.text).unwrap_or_default();
            spots.push(Spot { file: Some(file.clone()), span: super::page::inner(text, &definition.key_span) });
        }
    }
    spots
}

/// A file sees its own inputs first.
fn input(page: &Page<'_>, named: &Named, id: &str) -> Vec<Spot> {
    let own: Vec<Spot> = definitions(uses::uses(page.text, page.tree), named).map(|used| here(used.span)).collect();
    if !own.is_empty() {
        return own;
    }
    let others = page.loaded.config.inputs.iter().filter(|input| input.id == id);
    let files = others.filter_map(|input| input.file.as_ref()).filter(|file| &***file != page.path);
    files.flat_map(|file| in_file(page, file, named)).collect()
}

fn in_file(page: &Page<'_>, file: &Arc<Path>, named: &Named) -> Vec<Spot> {
    let Some(other) = page.loaded.file(file) else { return Vec::new() };
    let found = definitions(uses::uses(&other.text, &other.tree), named);
    found.map(|used| Spot { file: Some(file.clone()), span: used.span }).collect()
}

fn definitions(uses: Vec<Use>, named: &Named) -> impl Iterator<Item = Use> {
    uses.into_iter().filter(move |used| used.role == Role::Definition && used.named == *named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::fixture::Fixture;

    /// Where a marked text leads: file and the text there, with its line.
    fn leads_to(fixture: &Fixture) -> String {
        let page = fixture.page();
        let show = |spot: &Spot| {
            let (name, text) = match &spot.file {
                None => ("here".to_owned(), page.text.to_owned()),
                Some(file) => (file.display().to_string(), page.loaded.file(file).unwrap().text.to_string()),
            };
            let line = text[..spot.span.start].matches('\n').count() + 1;
            format!("{name}:{line} {}", &text[spot.span.clone()])
        };
        definition(&page, fixture.offset).iter().map(show).collect::<Vec<_>>().join("\n")
    }

    const USER: &str = "{\n \"servers\": { \"fs\": { \"command\": \"old\" }, \"mail\": { \"command\": \"mail\" } },\n \"inputs\": [{ \"id\": \"there\", \"type\": \"promptString\" }] }";

    #[test]
    fn a_server_leads_to_the_definition_that_it_hides() {
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
