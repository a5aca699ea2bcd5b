//! What Zed says about the tools of a server outside of its entry: the permissions and profiles of its agent.

use std::collections::BTreeMap;

use serde_json::Value;

use super::approvals::{listed, suggest};
use crate::config::interop::Dialect;
use crate::config::interop::notes::Notes;
use crate::config::spec::{ServerSpec, ToolRule};
use crate::model::Level;

/// What the agent of a program may do with the tools of any server. Empty for a program that says it in the entries.
#[derive(Debug, Default)]
pub struct Permissions {
    /// For tools that nothing else speaks about.
    default: Option<Word>,
    /// By Zed's name of a tool, `mcp:server:tool`.
    tools: BTreeMap<String, Word>,
    switches: Vec<Switch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Allow,
    Confirm,
    Deny,
}

/// One tool, on or off in one profile.
#[derive(Debug)]
struct Switch {
    profile: String,
    server: String,
    tool: String,
    on: bool,
}

impl Permissions {
    /// Those of Zed's settings.
    pub fn read(settings: &Value) -> Self {
        let agent = settings.get("agent");
        let said = agent.and_then(|agent| agent.get("tool_permissions"));
        let always = agent.and_then(|agent| agent.get("always_allow_tool_actions")).and_then(Value::as_bool);
        let default = said.and_then(word).or_else(|| always?.then_some(Word::Allow));
        let tools = members(said, "tools").filter_map(|(name, entry)| Some((name.clone(), word(entry)?))).collect();
        let mut switches = Vec::new();
        for (profile, entry) in members(agent, "profiles") {
            for (server, entry) in members(Some(entry), "context_servers") {
                for (tool, on) in members(Some(entry), "tools").filter_map(|(tool, on)| Some((tool, on.as_bool()?))) {
                    let (profile, server, tool) = (profile.clone(), server.clone(), tool.clone());
                    switches.push(Switch { profile, server, tool, on });
                }
            }
        }
        Self { default, tools, switches }
    }

    /// Adds those of another file, which count where these say nothing.
    pub fn merge(&mut self, other: Self) {
        self.default = self.default.or(other.default);
        for (tool, word) in other.tools {
            self.tools.entry(tool).or_insert(word);
        }
        self.switches.extend(other.switches);
    }

    /// What narrows becomes a level of the server's tools; what widens is only told, as everywhere.
    pub fn apply(&self, server: &str, spec: &mut ServerSpec, notes: &mut Notes) {
        let title = Dialect::Zed.title();
        let mut add = |pattern: &str, level: Level| {
            if !pattern.is_empty() && !spec.tools.iter().any(|rule| rule.pattern == pattern) {
                spec.tools.push(ToolRule { pattern: pattern.to_owned(), level: level.into() });
            }
        };
        for switch in self.switches.iter().filter(|switch| switch.server == server && !switch.on) {
            let tool = &switch.tool;
            let elsewhere =
                self.switches.iter().find(|other| other.server == server && other.tool == *tool && other.on);
            match elsewhere {
                None => add(tool, Level::Disable),
                Some(other) => notes.add(format!(
                    "`{tool}` is off in the profile `{}` of {title} and on in `{}`; here it stays on",
                    switch.profile, other.profile
                )),
            }
        }
        let prefix = format!("mcp:{server}:");
        let mut allowed = Vec::new();
        for (tool, word) in self.tools.iter().filter_map(|(name, word)| Some((name.strip_prefix(&prefix)?, *word))) {
            match word {
                Word::Deny => add(tool, Level::Deny),
                Word::Allow => allowed.push(tool.to_owned()),
                Word::Confirm => {}
            }
            // An exception from what denies the rest.
            if word != Word::Deny && self.default == Some(Word::Deny) {
                add(tool, Level::RequireApproval);
            }
        }
        match self.default {
            Some(Word::Deny) => add("*", Level::Deny),
            Some(Word::Allow) => suggest(title, "all of its tools", notes),
            _ => {}
        }
        if !allowed.is_empty() {
            suggest(title, &listed(&allowed), notes);
        }
    }
}

fn word(entry: &Value) -> Option<Word> {
    match entry.get("default")?.as_str()? {
        "allow" => Some(Word::Allow),
        "confirm" => Some(Word::Confirm),
        "deny" => Some(Word::Deny),
        _ => None,
    }
}

fn members<'a>(holder: Option<&'a Value>, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    holder.and_then(|holder| holder.get(key)).and_then(Value::as_object).into_iter().flatten()
}
