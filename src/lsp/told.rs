//! The outcome of a lens or an action in words, for editors that do nothing with the answer of a command.

use serde_json::Value;
use tower_lsp::lsp_types::MessageType;

use super::seat::Seat;
use super::show;
use crate::text::one_line;

/// Tells what came of a command: a short message, or a document where there is more to read.
pub async fn tell(seat: &Seat, command: &str, answer: &Value) {
    if command == "mcp.server.logs" {
        return show::show(seat, "logs", &logs(answer)).await;
    }
    if let Some((kind, mut words)) = words(command, answer) {
        let files: Vec<&str> =
            answer.get("unsaved").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        if !files.is_empty() {
            // What the words tell is how things still are.
            words = format!("changed in the editor; it counts when you save {}", files.join(", "));
        }
        show::message(seat, kind, &words).await;
    }
}

fn words(command: &str, answer: &Value) -> Option<(MessageType, String)> {
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
            let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
            Some((MessageType::INFO, format!("the level of {tools} was set")))
        }
        "mcp.secret.keep" => {
            let name = answer.get("name").and_then(Value::as_str).unwrap_or_default();
            Some((MessageType::INFO, format!("kept in the keyring as `{}`", one_line(name, 80))))
        }
        _ => None,
    }
}

/// `fs: connected, 3 tools`, `web: failed, connection refused`.
fn status(server: &Value) -> String {
    let text = |field: &str| server.get(field).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let tools = server.get("toolCount").and_then(Value::as_u64).unwrap_or_default();
    let mut words = vec![text("status").unwrap_or("unknown").to_owned()];
    words.extend(text("reason").map(str::to_owned));
    if words.first().is_some_and(|status| status == "connected") {
        words.push(if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") });
    }
    words.extend(text("error").map(|error| one_line(error, 300)));
    format!("{name}: {}", words.join(", "))
}

fn reload(answer: &Value) -> String {
    let count = |field: &str| answer.get(field).and_then(Value::as_array).map_or(0, Vec::len);
    let errors = answer.get("errors").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    let parts = [
        (count("added"), "added"),
        (count("removed"), "removed"),
        (count("changed"), "restarted"),
        (count("policyOnly"), "with other rules"),
        (errors, "files with errors"),
    ];
    let told: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if told.is_empty() { "nothing has changed".to_owned() } else { told.join(", ") }
}

fn logs(answer: &Value) -> String {
    let line = |line: &Value| {
        let text = |field: &str| line.get(field).and_then(Value::as_str).unwrap_or_default();
        format!("{} {:7} {:7} {}", text("time"), text("source"), text("level"), text("text"))
    };
    let lines: Vec<String> = answer.get("lines").and_then(Value::as_array).into_iter().flatten().map(line).collect();
    if lines.is_empty() { "nothing has been said yet".to_owned() } else { lines.join("\n") + "\n" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_came_of_it_is_told_in_a_line() {
        let told = |command: &str, answer: Value| words(command, &answer).map(|(_, words)| words);
        let connected = json!({ "name": "fs", "status": "connected", "toolCount": 1 });
        assert_eq!(told("mcp.server.restart", json!({ "servers": [connected] })).unwrap(), "fs: connected, 1 tool");
        let failed = json!({ "name": "web", "status": "failed", "error": "refused\nmore" });
        assert!(told("mcp.server.trust", json!({ "server": failed })).unwrap().starts_with("web: failed, refused"));
        let reload =
            json!({ "added": ["a"], "removed": [], "changed": [], "policyOnly": [], "unchanged": 3, "errors": {} });
        assert_eq!(told("mcp.config.reload", reload).unwrap(), "1 added");
        assert_eq!(told("mcp.tools", json!({})), None);
    }
}
