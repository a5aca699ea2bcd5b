//! Levels that the user set for this session only: `mcp.tool.policy` with scope `session`.

use std::collections::BTreeMap;

use super::glob::NameGlob;
use crate::config::spec::{LevelRule, ToolRule};
use crate::model::{Level, ServerName};

/// Pattern → level for each server; gone with the process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionLevels(BTreeMap<ServerName, Vec<ToolRule>>);

impl SessionLevels {
    /// Sets the level of a tool or glob; `None` takes the entry away again.
    pub fn set(&mut self, server: ServerName, pattern: &str, level: Option<Level>) {
        let rules = self.0.entry(server).or_default();
        // A glob set later speaks also for the tools that were named one by one before: `*` is for all.
        let glob = NameGlob::new(pattern);
        rules.retain(|rule| rule.pattern != pattern && !glob.is_match(&rule.pattern));
        if let Some(level) = level {
            rules.push(ToolRule { pattern: pattern.to_owned(), level: LevelRule::from(level) });
        }
    }

    pub fn of(&self, server: &ServerName) -> &[ToolRule] {
        self.0.get(server).map_or(&[], Vec::as_slice)
    }
}
