//! Shows the outcome of a code lens or code action, for editors that ignore the response of a command.

use lsp_types::MessageType;
use serde_json::Value;

use super::session::EditorSession;
use super::show;
use crate::ide::counted;
use crate::text::one_line;

/// Shows the outcome of a command: as a message, or as a document if it is long.
pub async fn show(session: &EditorSession, command: &str, answer: &Value) {
    if command == "mcp.server.logs" {
        return show::show(session, "logs", &logs(answer)).await;
    }
    if let Some((kind, mut text)) = summary(command, answer) {
        let files: Vec<&str> =
            answer.get("unsaved").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if !files.is_empty() {
            // The response describes the state before the change is saved.
            text = format!("Save {} to apply the change", files.join(", "));
        }
        show::message(session, kind, &text).await;
    }
}

fn summary(command: &str, answer: &Value) -> Option<(MessageType, String)> {
    let servers = || match answer.get("server") {
        Some(server) => vec![server],
        None => answer.get("servers").and_then(Value::as_array).into_iter().flatten().collect(),
    };
    match command {
        "mcp.servers" | "mcp.server.start" | "mcp.server.stop" | "mcp.server.restart" | "mcp.server.toggle"
        | "mcp.server.enable" | "mcp.server.trust" | "mcp.server.auth" | "mcp.server.move" => {
            let failed = servers().iter().any(|server| server.get("status").is_some_and(|status| status == "failed"));
            let lines: Vec<String> = servers().into_iter().map(status).collect();
            (!lines.is_empty())
                .then(|| (if failed { MessageType::WARNING } else { MessageType::INFO }, lines.join("\n")))
        }
        "mcp.server.test" => {
            let works = answer.get("success").and_then(Value::as_bool) == Some(true);
            let message = answer.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
            Some((if works { MessageType::INFO } else { MessageType::ERROR }, message))
        }
        "mcp.config.reload" => Some((MessageType::INFO, reload(answer))),
        "mcp.tool.policy" => {
            let count = answer.get("tools").and_then(Value::as_array).map_or(0, Vec::len);
            Some((MessageType::INFO, format!("Set the level of {}", counted(count, "tool"))))
        }
        "mcp.secret.keep" => {
            let name = answer.get("name").and_then(Value::as_str).unwrap_or_default();
            Some((MessageType::INFO, format!("Stored the secret in the keyring as `{}`", one_line(name, 80))))
        }
        _ => None,
    }
}

/// `fs: connected, 3 tools` or `web: failed, connection refused`.
fn status(server: &Value) -> String {
    let text = |field: &str| server.get(field).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let tools = server.get("toolCount").and_then(Value::as_u64).unwrap_or_default();
    let mut parts = vec![text("status").unwrap_or("unknown").to_owned()];
    parts.extend(text("reason").map(str::to_owned));
    if parts.first().is_some_and(|status| status == "connected") {
        parts.push(counted(tools as usize, "tool"));
    }
    parts.extend(text("error").map(|error| one_line(error, 300)));
    format!("{name}: {}", parts.join(", "))
}

fn reload(answer: &Value) -> String {
    let count = |field: &str| answer.get(field).and_then(Value::as_array).map_or(0, Vec::len);
    let errors = answer.get("errors").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    let parts = [
        (count("added"), "added"),
        (count("removed"), "removed"),
        (count("changed"), "restarted"),
        (count("policyOnly"), "with new rules"),
        (errors, if errors == 1 { "file with errors" } else { "files with errors" }),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() { "Reloaded: nothing changed".to_owned() } else { format!("Reloaded: {}", parts.join(", ")) }
}

fn logs(answer: &Value) -> String {
    let line = |line: &Value| {
        let text = |field: &str| line.get(field).and_then(Value::as_str).unwrap_or_default();
        format!("{} {:7} {:7} {}", text("time"), text("source"), text("level"), text("text"))
    };
    let lines: Vec<String> = answer.get("lines").and_then(Value::as_array).into_iter().flatten().map(line).collect();
    if lines.is_empty() { "No logs yet".to_owned() } else { lines.join("\n") + "\n" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_outcome_of_a_command_fits_on_one_line() {
        let text = |command: &str, answer: Value| summary(command, &answer).map(|(_, text)| text);
        let connected = json!({ "name": "fs", "status": "connected", "toolCount": 1 });
        assert_eq!(text("mcp.server.restart", json!({ "servers": [connected] })).unwrap(), "fs: connected, 1 tool");
        let failed = json!({ "name": "web", "status": "failed", "error": "refused\nmore" });
        assert!(text("mcp.server.trust", json!({ "server": failed })).unwrap().starts_with("web: failed, refused"));
        let reload =
            json!({ "added": ["a"], "removed": [], "changed": [], "policyOnly": [], "unchanged": 3, "errors": {} });
        assert_eq!(text("mcp.config.reload", reload).unwrap(), "Reloaded: 1 added");
        assert_eq!(text("mcp.tools", json!({})), None);
    }
}
