//! The outline of a config file: servers with their state and tools, inputs, actions, and all other keys.

use std::collections::BTreeMap;

use super::config_view::ConfigView;
use super::lenses;
use crate::config::Span;
use crate::config::sections::is_section;
use crate::config::tree::{Member, Node};
use crate::text::one_line;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    pub name: String,
    pub detail: Option<String>,
    pub kind: Kind,
    /// The whole symbol.
    pub span: Span,
    /// Where to put the cursor; always inside `span`.
    pub key: Span,
    pub children: Vec<Symbol>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Group,
    Server,
    Tool,
    Input,
    Action,
    Property,
}

/// The outline of a file, which may be incomplete.
pub fn symbols(config: &ConfigView<'_>) -> Vec<Symbol> {
    let running: BTreeMap<usize, String> = config
        .entries()
        .iter()
        .filter(|entry| entry.view.is_some() || entry.overridden_by.is_some())
        .filter_map(|entry| Some((entry.member.key.span.start, lenses::state(entry)?)))
        .collect();
    members(config.tree.root.as_ref()).map(|member| section(member, &running)).collect()
}

/// `running` contains the states of servers by the start of their keys.
fn section(member: &Member, running: &BTreeMap<usize, String>) -> Symbol {
    let children = match member.key.text.as_str() {
        key if is_section(key) => {
            members(Some(&member.value)).map(|member| server(member, running.get(&member.key.span.start))).collect()
        }
        "inputs" => items(&member.value).map(|item| entry(item, "id", Kind::Input)).collect(),
        "actions" => items(&member.value).map(|item| entry(item, "title", Kind::Action)).collect(),
        "policy" => members(Some(&member.value)).map(|member| of(member, Kind::Property)).collect(),
        _ => return of(member, Kind::Property),
    };
    Symbol { children, ..of(member, Kind::Group) }
}

fn server(member: &Member, status: Option<&String>) -> Symbol {
    let tools = member.value.get("tools").map(|tools| &tools.value);
    let children = members(tools).map(|tool| of(tool, Kind::Tool)).collect();
    let parts: Vec<String> = [program_or_host(&member.value), status.cloned()].into_iter().flatten().collect();
    let detail = (!parts.is_empty()).then(|| parts.join(" · "));
    Symbol { detail, children, ..of(member, Kind::Server) }
}

/// The program, or the host of the address.
fn program_or_host(server: &Node) -> Option<String> {
    let text = |key| server.get(key).and_then(|member| member.value.text());
    let program = || server.get("command")?.value.items()?.first()?.text();
    let address = || ["url", "serverUrl", "httpUrl"].iter().find_map(|key| text(key));
    let host = || Some(url::Url::parse(address()?).ok()?.host_str()?.to_owned());
    let shown = text("command")
        .or_else(program)
        .map(str::to_owned)
        .or_else(host)
        .or_else(|| text("type").map(str::to_owned))?;
    Some(one_line(&shown, 60))
}

/// A symbol for a key; its detail is the value if it is a string.
fn of(member: &Member, kind: Kind) -> Symbol {
    Symbol {
        name: name(&member.key.text),
        detail: member.value.text().map(|text| one_line(text, 60)),
        kind,
        span: member.key.span.start..member.value.span.end.max(member.key.span.end),
        key: member.key.span.clone(),
        children: Vec::new(),
    }
}

/// A symbol for an element of a list, named by one of its fields.
fn entry(item: &Node, field: &str, kind: Kind) -> Symbol {
    let naming = item.get(field).map(|member| &member.value);
    Symbol {
        name: name(naming.and_then(Node::text).unwrap_or_default()),
        detail: item
            .get("type")
            .or_else(|| item.get("tool"))
            .and_then(|member| member.value.text())
            .map(|text| one_line(text, 60)),
        kind,
        span: item.span.clone(),
        key: naming.map_or_else(|| item.span.clone(), |naming| naming.span.clone()),
        children: Vec::new(),
    }
}

/// LSP requires a name.
fn name(text: &str) -> String {
    match one_line(text, 80) {
        name if name.is_empty() => "(unnamed)".to_owned(),
        name => name,
    }
}

fn members(node: Option<&Node>) -> impl Iterator<Item = &Member> {
    node.and_then(Node::members).unwrap_or_default().iter()
}

fn items(node: &Node) -> impl Iterator<Item = &Node> {
    node.items().unwrap_or_default().iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::tests::Scene;

    fn outline(text: &str) -> String {
        shown(&Scene::new(text))
    }

    fn shown(scene: &Scene) -> String {
        let text = scene.text.as_str();
        fn show(symbol: &Symbol, text: &str, depth: usize, out: &mut String) {
            assert!(symbol.span.start <= symbol.key.start && symbol.key.end <= symbol.span.end);
            let detail = symbol.detail.as_deref().map(|detail| format!(" ({detail})")).unwrap_or_default();
            out.push_str(&format!(
                "{}{:?} {}{detail} at {}\n",
                "  ".repeat(depth),
                symbol.kind,
                symbol.name,
                &text[symbol.key.clone()]
            ));
            symbol.children.iter().for_each(|child| show(child, text, depth + 1, out));
        }
        let mut out = String::new();
        symbols(&scene.config()).iter().for_each(|symbol| show(symbol, text, 0, &mut out));
        out
    }

    #[test]
    fn servers_tools_inputs_and_actions_are_in_the_outline() {
        insta::assert_snapshot!(outline(r#"{
            "servers": {
                "fs": { "command": "npx", "args": ["-y"], "tools": { "read_*": "allow-session", "x": [] } },
                "list": { "command": ["uvx", "time"] },
                "web": { "url": "https://user:pass@example.test/mcp" }
            },
            "inputs": [ { "id": "key", "type": "promptString" }, {} ],
            "actions": [ { "title": "Look up", "tool": "mcp__docs__search" } ],
            "policy": { "default": "confirm" },
            "other": 1
        }"#), @r#"
        Group servers at "servers"
          Server fs (npx · stopped) at "fs"
            Tool read_* (allow-session) at "read_*"
            Tool x at "x"
          Server list (uvx · stopped) at "list"
          Server web (example.test · stopped) at "web"
        Group inputs at "inputs"
          Input key (promptString) at "key"
          Input (unnamed) at {}
        Group actions at "actions"
          Action Look up (mcp__docs__search) at "Look up"
        Group policy at "policy"
          Property default (confirm) at "default"
        Property other at "other"
        "#);
    }

    #[test]
    fn a_half_typed_file_gives_the_half_that_is_there() {
        assert_eq!(outline(r#"{ "servers": { "fs": { "comm"#), "Group servers at \"servers\"\n  Server fs at \"fs\"\n");
        assert_eq!(outline(""), "");
        assert_eq!(outline("[1]"), "");
    }
}
