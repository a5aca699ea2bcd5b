//! Adds and removes the hooks that make an agent run `mcp-sidecar hook`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::setup::SetupError;
use super::{Dialect, Homes, file};
use crate::config::edit::{self, Edit};
use crate::config::shape::shell_split::shell_split;
use crate::model::HookAgent;

/// How long a question may wait for the user, in seconds. `mcp-sidecar hook` gives up earlier.
const TIMEOUT: u64 = 60 * 60;
const HOOKS: &str = "hooks";
const PROGRAM: &str = "mcp-sidecar";

/// The agent whose hooks we can answer.
pub fn hook_agent(dialect: Dialect) -> Option<HookAgent> {
    match dialect {
        Dialect::Claude => Some(HookAgent::ClaudeCode),
        Dialect::Codex => Some(HookAgent::Codex),
        Dialect::Gemini => Some(HookAgent::Gemini),
        Dialect::Copilot => Some(HookAgent::Copilot),
        _ => None,
    }
}

/// The name of the agent for `setup`.
pub fn setup_name(agent: HookAgent) -> &'static str {
    let dialect = Dialect::ALL.into_iter().find(|dialect| hook_agent(*dialect) == Some(agent));
    dialect.map_or(agent.as_str(), Dialect::name)
}

/// The user's file with the hooks of an agent.
pub fn hooks_file(agent: HookAgent, homes: &Homes) -> PathBuf {
    match agent {
        HookAgent::ClaudeCode => homes.folder("CLAUDE_CONFIG_DIR", ".claude").join("settings.json"),
        HookAgent::Codex => homes.folder("CODEX_HOME", ".codex").join("hooks.json"),
        HookAgent::Gemini => homes.folder("GEMINI_CLI_HOME", "").join(".gemini/settings.json"),
        HookAgent::Copilot => homes.folder("COPILOT_HOME", ".copilot").join("hooks/mcp-sidecar.json"),
    }
}

/// What else the user has to know.
pub fn hooks_note(agent: HookAgent) -> Option<&'static str> {
    match agent {
        HookAgent::ClaudeCode => None,
        HookAgent::Codex => Some("Codex does not run a hook until you trust it: start Codex and run /hooks"),
        HookAgent::Gemini => Some(
            "Gemini CLI asks only about tools with a rule under `agentTools`, and asks again itself about allowed tools, unless you start it with --yolo",
        ),
        HookAgent::Copilot => None,
    }
}

/// The events that we answer.
fn events(agent: HookAgent) -> &'static [&'static str] {
    match agent {
        HookAgent::ClaudeCode | HookAgent::Codex => &["PreToolUse", "PermissionRequest"],
        HookAgent::Gemini => &["BeforeTool"],
        HookAgent::Copilot => &["preToolUse", "permissionRequest"],
    }
}

/// Adds our hooks to the text. `program` is the path of mcp-sidecar.
pub fn add_hooks(agent: HookAgent, text: &str, program: &str) -> Result<String, SetupError> {
    let root = root(text)?;
    let mut edits = Vec::new();
    if agent == HookAgent::Copilot && root.get("version").is_none() {
        edits.push(Edit::set(&["version"], json!(1)));
    }
    for event in events(agent) {
        let mut groups = others(&root, event);
        groups.push(group(agent, event, program));
        let old = root.get(HOOKS).and_then(|hooks| hooks.get(event));
        if old != Some(&json!(groups)) {
            edits.push(Edit::set(&[HOOKS, event], json!(groups)));
        }
    }
    Ok(edit::apply(text, &edits)?)
}

/// Removes our hooks from the text.
pub fn remove_hooks(agent: HookAgent, text: &str) -> Result<String, SetupError> {
    let root = root(text)?;
    if commands(agent, &root).is_empty() {
        return Ok(text.to_owned());
    }
    let edits: Vec<Edit> = events(agent)
        .iter()
        .map(|event| match others(&root, event) {
            rest if rest.is_empty() => Edit::remove(&[HOOKS, event]),
            rest => Edit::set(&[HOOKS, event], json!(rest)),
        })
        .collect();
    let removed = edit::apply(text, &edits)?;
    match agent {
        // The file is ours, and Copilot expects both keys.
        HookAgent::Copilot => Ok(removed),
        _ => Ok(edit::without_empty_section(&removed, HOOKS)?),
    }
}

/// The programs that the hooks in a file start as `mcp-sidecar`.
pub fn hook_programs(agent: HookAgent, text: &str) -> Vec<String> {
    let found = root(text).map(|root| commands(agent, &root)).unwrap_or_default();
    found.iter().filter_map(|command| shell_split(command)?.into_iter().next()).collect()
}

fn root(text: &str) -> Result<Value, SetupError> {
    match text.trim().is_empty() {
        true => Ok(Value::Null),
        false => file::value(Dialect::Claude, text).map_err(SetupError::Broken),
    }
}

/// The entry of one event.
fn group(agent: HookAgent, event: &str, program: &str) -> Value {
    let command = format!("{} hook {agent} --event {event}", quoted(program));
    match agent {
        HookAgent::ClaudeCode | HookAgent::Codex => {
            json!({ "hooks": [{ "type": "command", "command": command, "timeout": TIMEOUT }] })
        }
        HookAgent::Gemini => {
            let hook = json!({ "type": "command", "name": PROGRAM, "command": command, "timeout": TIMEOUT * 1_000 });
            json!({ "hooks": [hook] })
        }
        HookAgent::Copilot => {
            json!({ "type": "command", "bash": command, "powershell": command, "timeoutSec": TIMEOUT })
        }
    }
}

/// The entries of an event that are not ours.
fn others(root: &Value, event: &str) -> Vec<Value> {
    let groups = root.get(HOOKS).and_then(|hooks| hooks.get(event)).and_then(Value::as_array).into_iter().flatten();
    groups.filter(|group| !texts(group).iter().any(|text| is_ours(text))).cloned().collect()
}

fn commands(agent: HookAgent, root: &Value) -> Vec<String> {
    let groups = events(agent).iter().filter_map(|event| root.get(HOOKS)?.get(event)?.as_array()).flatten();
    groups.flat_map(texts).filter(|text| is_ours(text)).collect()
}

/// The commands of an entry: of its hooks, or of the entry itself.
fn texts(group: &Value) -> Vec<String> {
    let hooks = group.get(HOOKS).and_then(Value::as_array).into_iter().flatten();
    let hooks = hooks.chain([group]);
    hooks.filter_map(|hook| hook.get("command").or(hook.get("bash"))?.as_str().map(str::to_owned)).collect()
}

fn is_ours(command: &str) -> bool {
    let words = shell_split(command).unwrap_or_default();
    let stem = |program: &String| Path::new(program).file_stem().is_some_and(|stem| stem == PROGRAM);
    words.first().is_some_and(stem) && words.get(1).is_some_and(|word| word == "hook")
}

/// A path as a word of a shell.
fn quoted(program: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:\\".contains(c);
    if program.chars().all(plain) { program.to_owned() } else { format!("'{}'", program.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_added_once_next_to_others_and_removed_without_a_trace() {
        for agent in HookAgent::ALL {
            let event = events(agent).first().unwrap();
            let other = json!({ "hooks": [{ "type": "command", "command": "mine --check" }] });
            let before = format!("{{\n  \"a\": 1, // kept\n  \"hooks\": {{\n    \"{event}\": [{other}]\n  }}\n}}\n");
            let added = add_hooks(agent, &before, "/my tools/mcp-sidecar").unwrap();
            assert_eq!(add_hooks(agent, &added, "/my tools/mcp-sidecar").unwrap(), added, "idempotent");
            assert_eq!(hook_programs(agent, &added).len(), events(agent).len());
            assert_eq!(hook_programs(agent, &added).first().unwrap(), "/my tools/mcp-sidecar");
            assert!(added.contains("// kept") && added.contains("mine --check"), "{added}");
            let removed = remove_hooks(agent, &added).unwrap();
            assert_eq!(root(&removed).unwrap()["hooks"], root(&before).unwrap()["hooks"], "{removed}");
            assert_eq!(hook_programs(agent, &removed), Vec::<String>::new());
            assert_eq!(remove_hooks(agent, &removed).unwrap(), removed);
        }
    }

    #[test]
    fn a_new_file_has_what_each_agent_expects() {
        let written: String = HookAgent::ALL
            .iter()
            .map(|agent| add_hooks(*agent, "", "mcp-sidecar").unwrap())
            .map(|text| format!("{}\n", serde_json::from_str::<Value>(&text).unwrap()))
            .collect();
        insta::assert_snapshot!(written, @r#"
        {"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"mcp-sidecar hook claude-code --event PreToolUse","timeout":3600}]}],"PermissionRequest":[{"hooks":[{"type":"command","command":"mcp-sidecar hook claude-code --event PermissionRequest","timeout":3600}]}]}}
        {"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"mcp-sidecar hook codex --event PreToolUse","timeout":3600}]}],"PermissionRequest":[{"hooks":[{"type":"command","command":"mcp-sidecar hook codex --event PermissionRequest","timeout":3600}]}]}}
        {"hooks":{"BeforeTool":[{"hooks":[{"type":"command","name":"mcp-sidecar","command":"mcp-sidecar hook gemini --event BeforeTool","timeout":3600000}]}]}}
        {"version":1,"hooks":{"preToolUse":[{"type":"command","bash":"mcp-sidecar hook copilot --event preToolUse","powershell":"mcp-sidecar hook copilot --event preToolUse","timeoutSec":3600}],"permissionRequest":[{"type":"command","bash":"mcp-sidecar hook copilot --event permissionRequest","powershell":"mcp-sidecar hook copilot --event permissionRequest","timeoutSec":3600}]}}
        "#);
        assert!(matches!(add_hooks(HookAgent::Codex, "{ hooks", "x"), Err(SetupError::Broken(_))));
    }
}
