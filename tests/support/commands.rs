//! Short forms of commands that tests send often.

use mcp_sidecar::model::{Level, Scope, ServerName};
use mcp_sidecar::protocol::commands::{
    ApprovalResolve, ServerAdd, ServerRestart, ServerStart, ServerStop, ServerTrust, ToolCall, ToolPolicy,
};
use mcp_sidecar::protocol::types::{Approval, Object, ServerStatus, ToolResult};
use serde_json::Value;

pub fn name(server: &str) -> ServerName {
    server.parse().unwrap()
}

pub fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

pub fn start(server: &str) -> ServerStart {
    ServerStart { server: Some(name(server)), all: false }
}

pub fn stop(server: &str) -> ServerStop {
    ServerStop { server: Some(name(server)), all: false }
}

pub fn restart(server: &str) -> ServerRestart {
    ServerRestart { server: Some(name(server)), all: false }
}

/// Trusts the definition that this status shows.
pub fn trust(status: &ServerStatus) -> ServerTrust {
    ServerTrust::trust(status.name.clone(), status.trust_digest.clone())
}

pub fn distrust(server: &str) -> ServerTrust {
    ServerTrust::distrust(name(server))
}

pub fn add(server: &str, config: Value, scope: Scope) -> ServerAdd {
    ServerAdd { server: name(server), config: Some(config), command_line: None, scope, inputs: None, bundle: None }
}

pub fn policy(server: &str, tool: &str, level: Option<Level>, scope: Scope) -> ToolPolicy {
    ToolPolicy { server: name(server), tool: tool.to_owned(), level, scope: Some(scope.into()) }
}

pub fn tool_call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall { tool: tool.to_owned(), arguments: Some(object(arguments)), ..Default::default() }
}

pub fn resolve(approval: &Approval, decision: &str) -> ApprovalResolve {
    ApprovalResolve::one(&approval.id, decision)
}

/// The text of a result.
pub fn text(result: &ToolResult) -> String {
    let blocks = result.blocks();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
