//! What a lens or an action lets the editor run: a command of ours, with its params as the only argument.

use serde_json::{Value, json};

use crate::model::{Level, Scope, ServerName};

#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    pub name: &'static str,
    pub params: Value,
}

impl Command {
    /// A command that takes nothing but a server.
    pub fn on(name: &'static str, server: &ServerName) -> Self {
        Self { name, params: json!({ "server": server }) }
    }

    pub fn plain(name: &'static str) -> Self {
        Self { name, params: json!({}) }
    }

    /// A command that works on the file; the front knows the file's address and fills it in.
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

    pub fn shift(server: &ServerName, from: Scope, to: Scope) -> Self {
        Self { name: "mcp.server.move", params: json!({ "server": server, "from": from, "to": to }) }
    }

    pub fn level(server: &ServerName, tool: &str, level: Level, scope: Scope) -> Self {
        let params = json!({ "server": server, "tool": tool, "level": level, "scope": scope });
        Self { name: "mcp.tool.policy", params }
    }
}
