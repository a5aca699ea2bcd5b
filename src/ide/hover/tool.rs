//! Describes a tool: its description, parameters and level.

use serde_json::Value;

use super::schema::{kind_of, target};

use crate::engine::snapshot::{OfferedTool, ServerView, Snapshot};
use crate::ide::config_view::ConfigView;
use crate::ide::markdown::{block, code, code_cell, line};
use crate::ide::value_docs;
use crate::model::{Annotations, Status, tokens};
use crate::policy::NameGlob;
use crate::text::counted;

/// The maximum number of rows in a list.
const MAX_ROWS: usize = 40;

/// Describes the tool with this name, or lists the tools that match a glob.
pub fn describe(config: &ConfigView<'_>, server: &str, tool: &str) -> String {
    if let Some(view) = config.server(server) {
        if let Some(offered) = view.tools.get(tool) {
            return describe_tool(config.snapshot, view, offered);
        }
        if view.state.status != Status::Connected {
            return format!("{} · server {} is {}", code(tool), code(server), view.state.status.as_str());
        }
    }
    let (servers, tools) = (NameGlob::new(server), NameGlob::new(tool));
    let own = config.server(server).into_iter();
    let others = config.snapshot.servers.values().filter(|view| servers.is_match(view.definition.name.as_str()));
    let mut found: Vec<&OfferedTool> = own
        .chain(others)
        .flat_map(|view| view.tools.values())
        .filter(|offered| tools.is_match(&offered.tool.name))
        .map(|offered| &**offered)
        .collect();
    found.sort_by(|one, other| one.id.cmp(&other.id));
    found.dedup_by(|one, other| one.id == other.id);
    if found.is_empty() {
        return format!("{} does not match any tool of a connected server.", code(tool));
    }
    let rows: Vec<String> = found.iter().take(MAX_ROWS).map(|offered| row(offered)).collect();
    let more = found.len().saturating_sub(rows.len());
    let rest = if more > 0 { format!("\n- and {more} more") } else { String::new() };
    format!("{} matches {}:\n{}{rest}", code(tool), counted(found.len(), "tool"), rows.join("\n"))
}

fn row(offered: &OfferedTool) -> String {
    format!("- {} · {} · {}", code(&offered.tool.name), offered.id.server, offered.ruling.level)
}

fn describe_tool(snapshot: &Snapshot, view: &ServerView, offered: &OfferedTool) -> String {
    let tool = &offered.tool;
    let title = tool.title.as_deref().map(|title| format!(" · {}", line(title, 120))).unwrap_or_default();
    let mut parts = vec![format!("**{}**{title}", code(&offered.id.to_string()))];
    if !tool.description.trim().is_empty() {
        parts.push(block(&tool.description, 4_000));
    }
    parts.extend(parameters(&tool.input_schema));
    parts.extend(annotations(tool.annotations));
    parts.push(format!("Its definition uses {} of a model's context.", tokens::shown(offered.tokens())));
    let explained = snapshot.rules.explain(&offered.id.server, tool, None, view.trust_state());
    let level = explained.ruling.level;
    parts.push(format!(
        "Level: **{level}**, set by {}\n\n{}",
        code(&explained.ruling.source),
        value_docs::describe_level(level)
    ));
    let overridden: Vec<String> = explained
        .hides
        .iter()
        .take(MAX_ROWS)
        .map(|rule| {
            let reason = rule.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("- {}, set by {}{reason}", rule.level, code(&rule.source))
        })
        .collect();
    if !overridden.is_empty() {
        parts.push(format!("Overridden:\n{}", overridden.join("\n")));
    }
    parts.join("\n\n")
}

fn parameters(schema: &serde_json::Map<String, Value>) -> Option<String> {
    let properties = schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut table = "| parameter | type | |\n|---|---|---|".to_owned();
    for (name, property) in properties.iter().take(MAX_ROWS) {
        let mut notes = Vec::new();
        if required.contains(&name.as_str()) {
            notes.push("required".to_owned());
        }
        if let Some(default) = property.get("default") {
            notes.push(format!("default {}", code_cell(&default.to_string())));
        }
        let described = |schema: &Value| schema.get("description").and_then(Value::as_str).map(|text| line(text, 300));
        notes.extend(described(property).or_else(|| described(target(property, schema)?)));
        table.push_str(&format!(
            "\n| {} | {} | {} |",
            code_cell(name),
            line(&kind_of(property, schema), 120),
            notes.join(" · ")
        ));
    }
    let more = properties.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        table.push_str(&format!("\n| … | | {more} more |"));
    }
    Some(table)
}

/// The annotations, which are claims of the server.
fn annotations(annotations: Annotations) -> Option<String> {
    let claims = [
        (annotations.read_only, "read-only", "makes changes"),
        (annotations.destructive, "may be destructive", "not destructive"),
        (annotations.idempotent, "idempotent", "not idempotent"),
        (annotations.open_world, "accesses external systems", "accesses no external systems"),
    ];
    let claims: Vec<&str> =
        claims.into_iter().filter_map(|(claim, yes, no)| claim.map(|claim| if claim { yes } else { no })).collect();
    (!claims.is_empty()).then(|| format!("According to its server: {}", claims.join(", ")))
}
