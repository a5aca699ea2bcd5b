//! The command of a code lens or code action, with its parameters as the only argument.

use serde_json::{Value, json};

use crate::model::{Level, Scope, ServerName};

#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub name: &'static str,
    pub params: Value,
}

impl Command {
    /// A command with a server as its only parameter.
    pub fn on(name: &'static str, server: &ServerName) -> Self {
        Self { name, params: json!({ "server": server }) }
    }

    pub fn without_params(name: &'static str) -> Self {
        Self { name, params: json!({}) }
    }

    /// A command for the current file. The front end inserts the URI.
    pub fn in_this_file(name: &'static str) -> Self {
        Self { name, params: json!({ "uri": null }) }
    }

    pub fn trust(server: &ServerName, trusted: bool) -> Self {
        Self { name: "mcp.server.trust", params: json!({ "server": server, "trusted": trusted }) }
    }

    pub fn toggle(server: &ServerName, enabled: bool) -> Self {
        Self { name: "mcp.server.toggle", params: json!({ "server": server, "enabled": enabled }) }
    }

    pub fn enable(server: &ServerName, enabled: bool, scope: Scope) -> Self {
        Self { name: "mcp.server.enable", params: json!({ "server": server, "enabled": enabled, "scope": scope }) }
    }

    pub fn move_server(server: &ServerName, from: Scope, to: Scope) -> Self {
        Self { name: "mcp.server.move", params: json!({ "server": server, "from": from, "to": to }) }
    }

    pub fn set_level(server: &ServerName, tool: &str, level: Level, scope: Scope) -> Self {
        let params = json!({ "server": server, "tool": tool, "level": level, "scope": scope });
        Self { name: "mcp.tool.policy", params }
    }
}
