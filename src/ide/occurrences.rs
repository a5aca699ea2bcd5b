//! All definitions of and references to names in a file. Used by definition, references, rename and hover.

use crate::config::Span;
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::sections::is_section;
use crate::config::tree::{Kind, Member, Node, Tree};
use crate::policy::NameGlob;

use super::config_view::{ConfigView, inner};

/// Something with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    Server(String),
    /// Both may be globs.
    Tool {
        server: String,
        tool: String,
    },
    Input(String),
    /// An environment variable.
    Variable(String),
    /// A key in the keyring.
    Key(String),
}

/// A definition or reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    pub named: Named,
    /// The name itself, without quotes.
    pub span: Span,
    /// The span in which the cursor selects it.
    pub around: Span,
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Definition,
    Reference,
}

impl Occurrence {
    pub fn defines(&self, named: &Named) -> bool {
        self.role == Role::Definition && self.named == *named
    }
}

impl Named {
    /// Whether another name refers to this one. A glob refers to everything that it matches.
    pub fn is_matched_by(&self, other: &Self) -> bool {
        let matches = |glob: &str, name: &str| glob == name || NameGlob::new(glob).is_match(name);
        match (self, other) {
            (Self::Server(name), Self::Server(glob)) => matches(glob, name),
            (Self::Tool { server, tool }, Self::Tool { server: servers, tool: tools }) => {
                matches(servers, server) && matches(tools, tool)
            }
            _ => self == other,
        }
    }
}

impl ConfigView<'_> {
    pub fn occurrences(&self) -> Vec<Occurrence> {
        occurrences(self.text, self.tree)
    }

    /// The occurrence at an offset. ValueType two, the narrower one.
    pub fn occurrence_at(&self, offset: usize) -> Option<Occurrence> {
        let touches = |occurrence: &Occurrence| occurrence.around.start <= offset && offset <= occurrence.around.end;
        self.occurrences().into_iter().filter(touches).min_by_key(|occurrence| occurrence.around.len())
    }
}

/// All occurrences in a file, in no particular order.
pub fn occurrences(text: &str, tree: &Tree) -> Vec<Occurrence> {
    let mut walk = Walk { text, found: Vec::new() };
    for section in tree.root.as_ref().and_then(Node::members).unwrap_or_default() {
        match section.key.text.as_str() {
            key if is_section(key) => members(&section.value).for_each(|server| walk.server(server)),
            "inputs" => items(&section.value).for_each(|input| walk.input(input)),
            "policy" => walk.policy(&section.value),
            "actions" => items(&section.value).for_each(|action| walk.action(action)),
            _ => {}
        }
    }
    walk.found
}

struct Walk<'a> {
    text: &'a str,
    found: Vec<Occurrence>,
}

impl Walk<'_> {
    fn server(&mut self, server: &Member) {
        let name = &server.key.text;
        self.add(Named::Server(name.clone()), &server.key.span, Role::Definition);
        for member in members(&server.value) {
            let tool = |tool: &str| Named::Tool { server: name.clone(), tool: tool.to_owned() };
            match member.key.text.as_str() {
                "tools" => members(&member.value).for_each(|rule| {
                    self.add(tool(&rule.key.text), &rule.key.span, Role::Reference);
                }),
                "disabled_tools" | "disabledTools" | "excludeTools" | "enabled_tools" | "includeTools" => {
                    for item in items(&member.value) {
                        if let Some(name) = item.text() {
                            self.add(tool(name), &item.span, Role::Reference);
                        }
                    }
                }
                _ => {}
            }
        }
        self.references(&server.value);
    }

    fn input(&mut self, input: &Node) {
        if let Some((id, span)) = text_of(input, "id") {
            self.add(Named::Input(id.to_owned()), span, Role::Definition);
        }
    }

    fn policy(&mut self, policy: &Node) {
        let lists = ["allowlist", "denylist"].iter().filter_map(|&key| policy.get(key));
        for entry in lists.flat_map(|list| items(&list.value)) {
            let server = text_of(entry, "server");
            if let Some((server, span)) = server {
                self.add(Named::Server(server.to_owned()), span, Role::Reference);
            }
            if let Some((tool, span)) = text_of(entry, "tool") {
                let server = server.map_or("*", |(server, _)| server).to_owned();
                self.add(Named::Tool { server, tool: tool.to_owned() }, span, Role::Reference);
            }
        }
    }

    fn action(&mut self, action: &Node) {
        let Some((_, span)) = text_of(action, "tool") else { return };
        // Names contain no escapes, so the raw text is the name.
        let all = inner(self.text, span);
        let written = self.text.get(all.clone()).unwrap_or_default();
        let Some((before, server, between, tool)) = parts(written) else { return };
        let start = all.start + before;
        let server_span = start..start + server.len();
        let tool_start = server_span.end + between;
        let tool_span = tool_start..tool_start + tool.len();
        let around = |name: &Span, from: usize, to: usize| from.min(name.start)..to.max(name.end);
        self.found.push(Occurrence {
            named: Named::Server(server.to_owned()),
            around: around(&server_span, span.start, server_span.end),
            span: server_span,
            role: Role::Reference,
        });
        self.found.push(Occurrence {
            named: Named::Tool { server: server.to_owned(), tool: tool.to_owned() },
            around: around(&tool_span, tool_span.start, span.end),
            span: tool_span,
            role: Role::Reference,
        });
    }

    /// The `${…}` references in all strings of a node. The parser limits the depth of the tree.
    fn references(&mut self, node: &Node) {
        match &node.kind {
            Kind::Text(text) if text.contains("${") => self.references_of(&node.span),
            Kind::List(items) => items.iter().for_each(|item| self.references(item)),
            Kind::Object(members) => members.iter().for_each(|member| self.references(&member.value)),
            _ => {}
        }
    }

    fn references_of(&mut self, span: &Span) {
        let all = inner(self.text, span);
        let written = self.text.get(all.clone()).unwrap_or_default();
        for piece in pieces(written) {
            let Piece::Reference { reference, span } = piece else { continue };
            let (named, name) = match reference {
                Reference::Variable { name, .. } => (Named::Variable(name.clone()), name),
                Reference::Input(id) => (Named::Input(id.clone()), id),
                Reference::Keyring(key) => (Named::Key(key.clone()), key),
                _ => continue,
            };
            let around = all.start + span.start..all.start + span.end;
            // Search after the prefix, because it may contain the name.
            let body = self.text.get(around.start + 2..around.end).unwrap_or_default();
            let prefix = ["env:", "input:", "keyring:"].iter().find(|&&prefix| body.starts_with(prefix));
            let skipped = prefix.map_or(0, |prefix| prefix.len());
            let Some(found) = body.get(skipped..).and_then(|rest| rest.find(&name)) else { continue };
            let start = around.start + 2 + skipped + found;
            self.found.push(Occurrence { named, span: start..start + name.len(), around, role: Role::Reference });
        }
    }

    fn add(&mut self, named: Named, around: &Span, role: Role) {
        self.found.push(Occurrence { named, span: inner(self.text, around), around: around.clone(), role });
    }
}

/// Splits `mcp__server__tool` or `server/tool`. Also returns the lengths of the prefix and the separator.
fn parts(written: &str) -> Option<(usize, &str, usize, &str)> {
    match written.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__").map(|(server, tool)| (5, server, 2, tool)),
        None => written.split_once('/').map(|(server, tool)| (0, server, 1, tool)),
    }
}

fn members(node: &Node) -> impl Iterator<Item = &Member> {
    node.members().unwrap_or_default().iter()
}

fn items(node: &Node) -> impl Iterator<Item = &Node> {
    node.items().unwrap_or_default().iter()
}

fn text_of<'a>(node: &'a Node, key: &str) -> Option<(&'a str, &'a Span)> {
    let value = &node.get(key)?.value;
    Some((value.text()?, &value.span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tree::parse;

    #[test]
    fn all_names_are_found_with_their_exact_spans() {
        let text = r#"{
            "servers": { "fs": { "command": "${env:BIN:-fs}", "args": ["${input:key} ${keyring:k}"], "tools": { "read_*": "deny" } } },
            "inputs": [{ "id": "key" }],
            "policy": { "denylist": [{ "server": "f*", "tool": "drop" }] },
            "actions": [{ "tool": "mcp__fs__read__all" }, { "tool": "fs/write" }, { "tool": "odd" }]
        }"#;
        let show = |occurrence: &Occurrence| {
            format!(
                "{:?} at {} in {}",
                occurrence.named,
                &text[occurrence.span.clone()],
                &text[occurrence.around.clone()]
            )
        };
        insta::assert_snapshot!(occurrences(text, &parse(text, 64)).iter().map(show).collect::<Vec<_>>().join("\n"), @r#"
        Server("fs") at fs in "fs"
        Tool { server: "fs", tool: "read_*" } at read_* in "read_*"
        Variable("BIN") at BIN in ${env:BIN:-fs}
        Input("key") at key in ${input:key}
        Key("k") at k in ${keyring:k}
        Input("key") at key in "key"
        Server("f*") at f* in "f*"
        Tool { server: "f*", tool: "drop" } at drop in "drop"
        Server("fs") at fs in "mcp__fs
        Tool { server: "fs", tool: "read__all" } at read__all in read__all"
        Server("fs") at fs in "fs
        Tool { server: "fs", tool: "write" } at write in write"
        "#);
    }
}
