//! A tool: what its server says about it, and what it may.

use serde_json::Value;

use super::schema::{kind_of, target};
use super::server::counted;
use crate::engine::snapshot::{OfferedTool, ServerView, Snapshot};
use crate::ide::markdown::{block, code, code_cell, line};
use crate::ide::page::Page;
use crate::ide::words;
use crate::model::{Annotations, Status};
use crate::policy::NameGlob;

/// How many rows a list may have.
const MOST: usize = 40;

/// The tool of this name, or all tools that a glob means.
pub fn card(page: &Page<'_>, server: &str, tool: &str) -> String {
    if let Some(view) = page.server(server) {
        if let Some(offered) = view.tools.get(tool) {
            return one(page.snapshot, view, offered);
        }
        if view.state.status != Status::Connected {
            return format!("{} · its server {} is {}", code(tool), code(server), view.state.status.as_str());
        }
    }
    let (servers, tools) = (NameGlob::new(server), NameGlob::new(tool));
    let own = page.server(server).into_iter();
    let others = page.snapshot.servers.values().filter(|view| servers.is_match(view.definition.name.as_str()));
    let mut found: Vec<&OfferedTool> = own
        .chain(others)
        .flat_map(|view| view.tools.values())
        .filter(|offered| tools.is_match(&offered.tool.name))
        .map(|offered| &**offered)
        .collect();
    found.sort_by(|one, other| one.id.cmp(&other.id));
    found.dedup_by(|one, other| one.id == other.id);
    if found.is_empty() {
        return format!("{} matches no tool that is known now.", code(tool));
    }
    let rows: Vec<String> = found.iter().take(MOST).map(|offered| row(offered)).collect();
    let more = found.len().saturating_sub(rows.len());
    let rest = if more > 0 { format!("\n- and {more} more") } else { String::new() };
    format!("{} matches {}:\n{}{rest}", code(tool), counted(found.len(), "tool"), rows.join("\n"))
}

fn row(offered: &OfferedTool) -> String {
    format!("- {} · {} · {}", code(&offered.tool.name), offered.id.server, offered.ruling.level)
}

fn one(snapshot: &Snapshot, view: &ServerView, offered: &OfferedTool) -> String {
    let tool = &offered.tool;
    let title = tool.title.as_deref().map(|title| format!(" · {}", line(title, 120))).unwrap_or_default();
    let mut parts = vec![format!("**{}**{title}", code(&offered.id.to_string()))];
    if !tool.description.trim().is_empty() {
        parts.push(block(&tool.description, 4_000));
    }
    parts.extend(parameters(&tool.input_schema));
    parts.extend(annotations(tool.annotations));
    let explained = snapshot.rules.explain(&offered.id.server, tool, None, view.trust_state());
    let level = explained.ruling.level;
    parts.push(format!("Level: **{level}** from {}\n\n{}", code(&explained.ruling.source), words::of_level(level)));
    let hidden: Vec<String> = explained
        .hides
        .iter()
        .take(MOST)
        .map(|rule| {
            let reason = rule.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
            format!("- {} from {}{reason}", rule.level, code(&rule.source))
        })
        .collect();
    if !hidden.is_empty() {
        parts.push(format!("Without effect:\n{}", hidden.join("\n")));
    }
    parts.join("\n\n")
}

fn parameters(schema: &serde_json::Map<String, Value>) -> Option<String> {
    let properties = schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let mut table = "| parameter | type | |\n|---|---|---|".to_owned();
    for (name, property) in properties.iter().take(MOST) {
        let mut words = Vec::new();
        if required.contains(&name.as_str()) {
            words.push("required".to_owned());
        }
        if let Some(default) = property.get("default") {
            words.push(format!("default {}", code_cell(&default.to_string())));
        }
        let described =
            |schema: &Value| schema.get("description").and_then(Value::as_str).map(|words| line(words, 300));
        words.extend(described(property).or_else(|| described(target(property, schema)?)));
        table.push_str(&format!(
            "\n| {} | {} | {} |",
            code_cell(name),
            line(&kind_of(property, schema), 120),
            words.join(" · ")
        ));
    }
    let more = properties.len().saturating_sub(MOST);
    if more > 0 {
        table.push_str(&format!("\n| … | | {more} more |"));
    }
    Some(table)
}

/// What the server claims.
fn annotations(annotations: Annotations) -> Option<String> {
    let claims = [
        (annotations.read_only, "only reads", "changes things"),
        (annotations.destructive, "may destroy", "destroys nothing"),
        (annotations.idempotent, "may be repeated", "not to be repeated"),
        (annotations.open_world, "reaches outside", "stays inside"),
    ];
    let told: Vec<&str> =
        claims.into_iter().filter_map(|(claim, yes, no)| claim.map(|claim| if claim { yes } else { no })).collect();
    (!told.is_empty()).then(|| format!("Its server says: {}", told.join(", ")))
}
