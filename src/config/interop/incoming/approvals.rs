//! Tools that another program runs without asking. They become notes and never levels, because a file of a project must
//! not grant itself permissions through an import.

use serde_json::Value;

use super::fields::{Fields, text_of};
use crate::config::interop::notes::Notes;
use crate::text::one_line;

/// The maximum number of names in a note.
const MAX_NAMES: usize = 20;

pub fn note_approvals(fields: &mut Fields<'_>) {
    let title = fields.dialect.title();
    let mut suggest = |tools: &str| suggest(title, tools, fields.notes);
    let mut names: Vec<String> = Vec::new();
    for key in ["autoApprove", "alwaysAllow", "trust"] {
        match fields.left.remove(key) {
            Some(Value::Bool(true)) => suggest("all of its tools"),
            Some(Value::Array(tools)) => names.extend(tools.iter().filter_map(text_of)),
            _ => {}
        }
    }
    // Codex: `approve` runs tools without asking, `prompt` asks.
    if let Some(Value::String(mode)) = fields.left.remove("default_tools_approval_mode")
        && mode == "approve"
    {
        suggest("all of its tools");
    }
    if let Some(Value::Object(tools)) = fields.left.remove("tools") {
        let approved = |entry: &Value| entry.get("approval_mode").and_then(Value::as_str) == Some("approve");
        names.extend(tools.iter().filter(|(_, entry)| approved(entry)).map(|(name, _)| name.clone()));
    }
    if !names.is_empty() {
        suggest(&listed(&names));
    }
}

/// Adds a note that a program runs these tools without asking.
pub fn suggest(title: &str, tools: &str, notes: &mut Notes) {
    notes.add(format!(
        "{title} runs {tools} without asking; to allow this here, set a level such as `allow-session` in `tools`"
    ));
}

/// Formats a list of tool names.
pub fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(MAX_NAMES);
    let shown: Vec<String> = names.iter().take(MAX_NAMES).map(|name| format!("`{}`", one_line(name, 64))).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
