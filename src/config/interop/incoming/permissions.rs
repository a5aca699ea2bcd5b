//! Zed's tool permissions, which are not part of a server's entry: the permissions and profiles of its agent.

use std::collections::BTreeMap;

use serde_json::Value;

use super::approvals::{listed, suggest};
use crate::config::interop::Dialect;
use crate::config::interop::notes::Notes;
use crate::config::spec::{ServerSpec, ToolRule};
use crate::model::Level;

/// The tool permissions of Zed's agent. Empty for other programs.
#[derive(Debug, Default)]
pub struct Permissions {
    /// For tools without their own permission.
    default: Option<Permission>,
    /// By Zed's name for a tool, `mcp:server:tool`.
    tools: BTreeMap<String, Permission>,
    toggles: Vec<ToolToggle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Permission {
    Allow,
    Confirm,
    Deny,
}

/// Whether a tool is enabled in a profile.
#[derive(Debug)]
struct ToolToggle {
    profile: String,
    server: String,
    tool: String,
    on: bool,
}

impl Permissions {
    /// Reads Zed's settings.
    pub fn read(settings: &Value) -> Self {
        let agent = settings.get("agent");
        let rules = agent.and_then(|agent| agent.get("tool_permissions"));
        let always = agent.and_then(|agent| agent.get("always_allow_tool_actions")).and_then(Value::as_bool);
        let default = rules.and_then(permission).or_else(|| always?.then_some(Permission::Allow));
        let tools =
            members(rules, "tools").filter_map(|(name, entry)| Some((name.clone(), permission(entry)?))).collect();
        let mut toggles = Vec::new();
        for (profile, entry) in members(agent, "profiles") {
            for (server, entry) in members(Some(entry), "context_servers") {
                for (tool, on) in members(Some(entry), "tools").filter_map(|(tool, on)| Some((tool, on.as_bool()?))) {
                    let (profile, server, tool) = (profile.clone(), server.clone(), tool.clone());
                    toggles.push(ToolToggle { profile, server, tool, on });
                }
            }
        }
        Self { default, tools, toggles }
    }

    /// Adds the permissions of a file with lower precedence.
    pub fn merge(&mut self, other: Self) {
        self.default = self.default.or(other.default);
        for (tool, permission) in other.tools {
            self.tools.entry(tool).or_insert(permission);
        }
        self.toggles.extend(other.toggles);
    }

    /// Converts restrictions to levels of the server's tools. Grants only become notes.
    pub fn apply(&self, server: &str, spec: &mut ServerSpec, notes: &mut Notes) {
        let title = Dialect::Zed.title();
        let mut add = |pattern: &str, level: Level| {
            if !pattern.is_empty() && !spec.tools.iter().any(|rule| rule.pattern == pattern) {
                spec.tools.push(ToolRule { pattern: pattern.to_owned(), level: level.into() });
            }
        };
        for toggle in self.toggles.iter().filter(|toggle| toggle.server == server && !toggle.on) {
            let tool = &toggle.tool;
            let elsewhere = self.toggles.iter().find(|other| other.server == server && other.tool == *tool && other.on);
            match elsewhere {
                None => add(tool, Level::Disable),
                Some(other) => notes.add(format!(
                    "`{tool}` is disabled in the {title} profile `{}` but enabled in `{}`; it stays enabled here",
                    toggle.profile, other.profile
                )),
            }
        }
        let prefix = format!("mcp:{server}:");
        let mut allowed = Vec::new();
        for (name, &permission) in &self.tools {
            let Some(tool) = name.strip_prefix(&prefix) else { continue };
            match permission {
                Permission::Deny => add(tool, Level::Deny),
                Permission::Allow => allowed.push(tool.to_owned()),
                Permission::Confirm => {}
            }
            // An exception to the default `deny`.
            if permission != Permission::Deny && self.default == Some(Permission::Deny) {
                add(tool, Level::RequireApproval);
            }
        }
        match self.default {
            Some(Permission::Deny) => add("*", Level::Deny),
            Some(Permission::Allow) => suggest(title, "all of its tools", notes),
            _ => {}
        }
        if !allowed.is_empty() {
            suggest(title, &listed(&allowed), notes);
        }
    }
}

fn permission(entry: &Value) -> Option<Permission> {
    match entry.get("default")?.as_str()? {
        "allow" => Some(Permission::Allow),
        "confirm" => Some(Permission::Confirm),
        "deny" => Some(Permission::Deny),
        _ => None,
    }
}

fn members<'a>(holder: Option<&'a Value>, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    holder.and_then(|holder| holder.get(key)).and_then(Value::as_object).into_iter().flatten()
}
