//! Levels that the user set in the editor: for this session with `mcp.tool.policy`, or with the answer `disable`.

use std::collections::{BTreeMap, BTreeSet};

use super::glob::NameGlob;
use crate::config::spec::{LevelRule, ToolRule};
use crate::model::{Level, ServerName, ToolId};

/// Pattern → level for each server, and the tools that the user disabled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionLevels {
    rules: BTreeMap<ServerName, Vec<ToolRule>>,
    disabled: BTreeSet<ToolId>,
}

impl SessionLevels {
    /// Sets the level of a tool or glob; `None` removes the entry.
    pub fn set(&mut self, server: ServerName, pattern: &str, level: Option<Level>) {
        let rules = self.rules.entry(server).or_default();
        // A glob also replaces levels of single tools: `*` means all of them.
        let glob = NameGlob::new(pattern);
        rules.retain(|rule| rule.pattern != pattern && !glob.is_match(&rule.pattern));
        if let Some(level) = level {
            rules.push(ToolRule { pattern: pattern.to_owned(), level: LevelRule::from(level) });
        }
    }

    /// Replaces the list of tools that the user disabled with an answer.
    pub fn set_disabled(&mut self, tools: impl IntoIterator<Item = ToolId>) {
        self.disabled = tools.into_iter().collect();
    }

    pub fn of(&self, server: &ServerName) -> &[ToolRule] {
        self.rules.get(server).map_or(&[], Vec::as_slice)
    }

    /// The tools of a server that the user disabled.
    pub fn disabled_of(&self, server: &ServerName) -> BTreeSet<String> {
        self.disabled.iter().filter(|id| id.server == *server).map(|id| id.tool.to_string()).collect()
    }
}
