//! The formats of the agents' hooks. Checked with the versions that `scripts/get-agents` installs.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::engine::gate::agent_tool::{HookAnswer, HookEvent, HookQuestion};
use crate::model::HookAgent;
use crate::text::json_reason;

/// How an agent asks and is answered.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    pub agent: HookAgent,
}

pub use crate::engine::gate::agent_tool::HookEvent as Event;

impl Format {
    /// The agent's name for an event.
    fn event_name(self, event: HookEvent) -> Option<&'static str> {
        match (self.agent, event) {
            (HookAgent::ClaudeCode | HookAgent::Codex, HookEvent::BeforeTool) => Some("PreToolUse"),
            (HookAgent::ClaudeCode | HookAgent::Codex, HookEvent::PermissionRequest) => Some("PermissionRequest"),
            (HookAgent::Gemini, HookEvent::BeforeTool) => Some("BeforeTool"),
            (HookAgent::Gemini, HookEvent::PermissionRequest) => None,
            (HookAgent::Copilot, HookEvent::BeforeTool) => Some("preToolUse"),
            (HookAgent::Copilot, HookEvent::PermissionRequest) => Some("permissionRequest"),
        }
    }

    pub fn event(self, name: &str) -> Option<HookEvent> {
        let events = [HookEvent::BeforeTool, HookEvent::PermissionRequest];
        events.into_iter().find(|event| self.event_name(*event) == Some(name))
    }

    /// Reads the JSON of a hook. The reason why it cannot be read is for the user.
    pub fn question(self, input: &[u8], named: Option<HookEvent>) -> Result<(HookEvent, HookQuestion), String> {
        let input: Map<String, Value> = serde_json::from_slice(input)
            .map_err(|error| format!("the question is not valid: {}", json_reason(&error)))?;
        let text = |keys: &[&str]| keys.iter().find_map(|key| input.get(*key)?.as_str().map(str::to_owned));
        let event = match text(&["hook_event_name", "hookName", "hookEventName"]) {
            Some(name) => self.event(&name),
            None => named,
        };
        let event = event.ok_or("the question is about an event that mcp-sidecar does not answer")?;
        let tool = text(&["tool_name", "toolName"])
            .filter(|tool| !tool.is_empty())
            .ok_or("the question does not name a tool")?;
        let arguments = ["tool_input", "toolArgs", "toolInput"].iter().find_map(|key| input.get(*key)).cloned();
        let arguments = match arguments.unwrap_or_default() {
            Value::Object(arguments) => arguments,
            // Older versions of Copilot CLI send JSON as a text.
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Object(arguments)) => arguments,
                _ => Map::from_iter([("input".to_owned(), Value::String(text))]),
            },
            Value::Null => Map::new(),
            other => Map::from_iter([("input".to_owned(), other)]),
        };
        let folder = PathBuf::from(text(&["cwd", "workingDirectory"]).unwrap_or_default());
        let session = text(&["session_id", "sessionId"]);
        Ok((event, HookQuestion { agent: self.agent, event, tool, arguments, folder, session }))
    }

    /// The answer as the agent reads it; empty where no answer means that the agent continues by itself. Arguments are
    /// never changed.
    pub fn answer(self, event: HookEvent, answer: &HookAnswer) -> String {
        let name = self.event_name(event).unwrap_or_default();
        let before = |decision: &str, reason: &str| {
            json!({ "hookSpecificOutput": {
                "hookEventName": name, "permissionDecision": decision, "permissionDecisionReason": reason } })
        };
        let request =
            |decision: Value| json!({ "hookSpecificOutput": { "hookEventName": name, "decision": decision } });
        let value = match (self.agent, event, answer) {
            (_, _, HookAnswer::NoRule) => None,
            // Silence lets the agent ask its user, and nothing else does.
            (_, HookEvent::PermissionRequest, HookAnswer::Ask(_)) => None,

            (HookAgent::ClaudeCode, HookEvent::BeforeTool, HookAnswer::Allow) => Some(before("allow", ALLOWED)),
            (HookAgent::ClaudeCode, HookEvent::BeforeTool, HookAnswer::Ask(reason)) => {
                Some(before("ask", &said(reason)))
            }
            (HookAgent::ClaudeCode | HookAgent::Codex, HookEvent::BeforeTool, HookAnswer::Deny(reason)) => {
                Some(before("deny", &said(reason)))
            }
            // Codex cannot be made to continue or to ask here. It continues without an answer, and a rule that requires
            // approval without an answer is a denial.
            (HookAgent::Codex, HookEvent::BeforeTool, HookAnswer::Allow) => None,
            (HookAgent::Codex, HookEvent::BeforeTool, HookAnswer::Ask(reason)) => Some(before("deny", &said(reason))),
            (HookAgent::ClaudeCode | HookAgent::Codex, HookEvent::PermissionRequest, HookAnswer::Allow) => {
                Some(request(json!({ "behavior": "allow" })))
            }
            (HookAgent::ClaudeCode | HookAgent::Codex, HookEvent::PermissionRequest, HookAnswer::Deny(reason)) => {
                Some(request(json!({ "behavior": "deny", "message": said(reason) })))
            }

            (HookAgent::Gemini, _, HookAnswer::Allow) => Some(json!({ "decision": "allow" })),
            (HookAgent::Gemini, _, HookAnswer::Deny(reason)) => {
                Some(json!({ "decision": "deny", "reason": said(reason) }))
            }
            (HookAgent::Gemini, _, HookAnswer::Ask(reason)) => {
                Some(json!({ "decision": "ask", "reason": said(reason), "systemMessage": said(reason) }))
            }

            (HookAgent::Copilot, HookEvent::BeforeTool, HookAnswer::Allow) => {
                Some(json!({ "permissionDecision": "allow", "permissionDecisionReason": ALLOWED }))
            }
            (HookAgent::Copilot, HookEvent::BeforeTool, HookAnswer::Deny(reason)) => {
                Some(json!({ "permissionDecision": "deny", "permissionDecisionReason": said(reason) }))
            }
            (HookAgent::Copilot, HookEvent::BeforeTool, HookAnswer::Ask(reason)) => {
                Some(json!({ "permissionDecision": "ask", "permissionDecisionReason": said(reason) }))
            }
            (HookAgent::Copilot, HookEvent::PermissionRequest, HookAnswer::Allow) => {
                Some(json!({ "behavior": "allow" }))
            }
            (HookAgent::Copilot, HookEvent::PermissionRequest, HookAnswer::Deny(reason)) => {
                Some(json!({ "behavior": "deny", "message": said(reason) }))
            }
        };
        value.map(|value| format!("{value}\n")).unwrap_or_default()
    }
}

const ALLOWED: &str = "allowed in mcp-sidecar";

/// A reason with its author, for the user and the model.
fn said(reason: &str) -> String {
    format!("mcp-sidecar: {reason}")
}

#[cfg(test)]
mod tests;
