//! Levels that the user set in the editor: for this session with `mcp.tool.policy`, or with the answer `disable`.

use std::collections::{BTreeMap, BTreeSet};

use std::path::Path;
use std::sync::Arc;

use super::pattern::replaces;
use crate::config::spec::{Definition, LevelRule, ToolRule};
use crate::model::{Level, Scope, ServerName, ToolId};

/// Pattern → level for each server, and the tools that the user disabled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionLevels {
    rules: BTreeMap<ServerName, Vec<(ToolRule, Origin)>>,
    disabled: BTreeSet<ToolId>,
}

/// Which of the definitions with this name the user meant.
type Origin = Option<(Scope, Option<Arc<Path>>)>;

fn origin(definition: &Definition) -> Origin {
    Some((definition.scope, definition.file.clone()))
}

impl SessionLevels {
    /// Sets the level of a tool or glob; `None` removes the entry. A level that allows applies only as long as
    /// `definition` has the name.
    pub fn set(&mut self, server: ServerName, definition: Option<&Definition>, pattern: &str, level: Option<Level>) {
        let rules = self.rules.entry(server).or_default();
        // A glob also replaces levels of single tools: `*` means all of them.
        let restricts = level.is_some_and(|level| !level.widens());
        rules.retain(|(rule, _)| !replaces(pattern, &rule.pattern, restricts));
        if let Some(level) = level {
            let rule = ToolRule { pattern: pattern.to_owned(), level: LevelRule::from(level) };
            rules.push((rule, definition.and_then(origin)));
        }
    }

    /// Replaces the list of tools that the user disabled with an answer.
    pub fn set_disabled(&mut self, tools: impl IntoIterator<Item = ToolId>) {
        self.disabled = tools.into_iter().collect();
    }

    /// The rules for a definition.
    pub fn of(&self, definition: &Definition) -> Vec<ToolRule> {
        let rules = self.rules.get(&definition.name).into_iter().flatten();
        let applying = rules.filter(|(rule, of)| !rule.level.rest.widens() || *of == origin(definition));
        applying.map(|(rule, _)| rule.clone()).collect()
    }

    /// The tools of a server that the user disabled.
    pub fn disabled_of(&self, server: &ServerName) -> BTreeSet<String> {
        self.disabled.iter().filter(|id| id.server == *server).map(|id| id.tool.to_string()).collect()
    }
}
