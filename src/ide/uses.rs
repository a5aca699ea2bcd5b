//! Everything in a file that has a name, and every place that uses it: one walk for definition, references, rename
//! and hover.

use crate::config::Span;
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::tree::{Kind, Member, Node, Tree};
use crate::policy::NameGlob;

use super::page::inner;

/// What has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    Server(String),
    /// Both may be globs.
    Tool {
        server: String,
        tool: String,
    },
    Input(String),
    /// Of the environment.
    Variable(String),
    Key(String),
}

/// One place where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    pub named: Named,
    /// The name itself, without quotes or anything else around it.
    pub span: Span,
    /// Where the cursor may be to mean it.
    pub around: Span,
    pub role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Definition,
    Use,
}

impl Named {
    /// Whether a use speaks about this. A glob speaks about all that it matches.
    pub fn is_meant_by(&self, used: &Self) -> bool {
        let matches = |glob: &str, name: &str| glob == name || NameGlob::new(glob).is_match(name);
        match (self, used) {
            (Self::Server(name), Self::Server(glob)) => matches(glob, name),
            (Self::Tool { server, tool }, Self::Tool { server: servers, tool: tools }) => {
                matches(servers, server) && matches(tools, tool)
            }
            _ => self == used,
        }
    }
}

/// What the cursor is on.
pub fn at(text: &str, tree: &Tree, offset: usize) -> Option<Use> {
    let touches = |used: &Use| used.around.start <= offset && offset <= used.around.end;
    // Of two that touch, the narrower one is meant.
    uses(text, tree).into_iter().filter(touches).min_by_key(|used| used.around.len())
}

/// Every use in a file, in no particular order.
pub fn uses(text: &str, tree: &Tree) -> Vec<Use> {
    let mut walk = Walk { text, found: Vec::new() };
    for section in tree.root.as_ref().and_then(Node::members).unwrap_or_default() {
        match section.key.text.as_str() {
            "servers" | "mcpServers" => members(&section.value).for_each(|server| walk.server(server)),
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
    found: Vec<Use>,
}

impl Walk<'_> {
    fn server(&mut self, server: &Member) {
        let name = &server.key.text;
        self.add(Named::Server(name.clone()), &server.key.span, Role::Definition);
        for member in members(&server.value) {
            let tool = |tool: &str| Named::Tool { server: name.clone(), tool: tool.to_owned() };
            match member.key.text.as_str() {
                "tools" => members(&member.value).for_each(|rule| {
                    self.add(tool(&rule.key.text), &rule.key.span, Role::Use);
                }),
                "disabled_tools" | "disabledTools" | "excludeTools" | "enabled_tools" | "includeTools" => {
                    for item in items(&member.value) {
                        if let Some(name) = item.text() {
                            self.add(tool(name), &item.span, Role::Use);
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
                self.add(Named::Server(server.to_owned()), span, Role::Use);
            }
            if let Some((tool, span)) = text_of(entry, "tool") {
                let server = server.map_or("*", |(server, _)| server).to_owned();
                self.add(Named::Tool { server, tool: tool.to_owned() }, span, Role::Use);
            }
        }
    }

    fn action(&mut self, action: &Node) {
        let Some((_, span)) = text_of(action, "tool") else { return };
        // Names have no escapes, so the text as it stands is the name.
        let all = inner(self.text, span);
        let written = self.text.get(all.clone()).unwrap_or_default();
        let Some((before, server, between, tool)) = parts(written) else { return };
        let start = all.start + before;
        let server_span = start..start + server.len();
        let tool_start = server_span.end + between;
        let tool_span = tool_start..tool_start + tool.len();
        let around = |name: &Span, from: usize, to: usize| from.min(name.start)..to.max(name.end);
        self.found.push(Use {
            named: Named::Server(server.to_owned()),
            around: around(&server_span, span.start, server_span.end),
            span: server_span,
            role: Role::Use,
        });
        self.found.push(Use {
            named: Named::Tool { server: server.to_owned(), tool: tool.to_owned() },
            around: around(&tool_span, tool_span.start, span.end),
            span: tool_span,
            role: Role::Use,
        });
    }

    /// The `${…}` of every string below. The depth of a tree is bounded by its parser.
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
            // Behind `${`, `env:`, `input:` or `keyring:`, whose own letters must not be taken for the name.
            let body = self.text.get(around.start + 2..around.end).unwrap_or_default();
            let prefix = ["env:", "input:", "keyring:"].iter().find(|&&prefix| body.starts_with(prefix));
            let skipped = prefix.map_or(0, |prefix| prefix.len());
            let Some(found) = body.get(skipped..).and_then(|rest| rest.find(&name)) else { continue };
            let start = around.start + 2 + skipped + found;
            self.found.push(Use { named, span: start..start + name.len(), around, role: Role::Use });
        }
    }

    fn add(&mut self, named: Named, around: &Span, role: Role) {
        self.found.push(Use { named, span: inner(self.text, around), around: around.clone(), role });
    }
}

/// `mcp__server__tool` or `server/tool`, with the lengths of what stands before and between.
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
    fn everything_with_a_name_is_found_at_its_exact_place() {
        let text = r#"{
            "servers": { "fs": { "command": "${env:BIN:-fs}", "args": ["${input:key} ${keyring:k}"], "tools": { "read_*": "deny" } } },
            "inputs": [{ "id": "key" }],
            "policy": { "denylist": [{ "server": "f*", "tool": "drop" }] },
            "actions": [{ "tool": "mcp__fs__read__all" }, { "tool": "fs/write" }, { "tool": "odd" }]
        }"#;
        let show =
            |used: &Use| format!("{:?} at {} in {}", used.named, &text[used.span.clone()], &text[used.around.clone()]);
        insta::assert_snapshot!(uses(text, &parse(text, 64)).iter().map(show).collect::<Vec<_>>().join("\n"), @r#"
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
