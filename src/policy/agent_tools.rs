//! The rules for agents' own tools: `agentTools`, the denylists, and what the user disabled.
//!
//! A file of a project can only restrict. `policy.default`, the allowlist and the levels by annotation are about servers
//! and never apply here: a user who allows the tools of servers does not mean a shell.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::compile::{Applies, ToolRules, policy_source};
use super::condition::PathContext;
use super::{
    AgentAction, NameGlob, RuleMatch, RulePattern, Rules, Ruling, SessionLevels, TrustState, first_certain, location,
    visit_if,
};
use crate::config::spec::{AgentToolRules, Config, FilePolicy, ToolRule};
use crate::model::{HookAgent, Level, Scope, Subject, Tool};

/// The rules for one agent.
pub(super) struct AgentRules {
    disabled: Vec<RulePattern>,
    managed_denylist: Vec<(RulePattern, Arc<str>)>,
    managed: Vec<ToolRules>,
    denylist: Vec<(RulePattern, Arc<str>)>,
    own: Vec<ToolRules>,
    /// The rules of projects.
    restrictions: Vec<ToolRules>,
}

impl AgentRules {
    pub fn new(config: &Config, agent: HookAgent, session: &SessionLevels, roots: &[Arc<Path>]) -> Self {
        let context = PathContext::of_agent(roots);
        let compiled = |wanted: &dyn Fn(Scope) -> bool| {
            let mut found: Vec<&AgentToolRules> = config.agent_tools.iter().collect();
            found.retain(|rules| wanted(rules.scope) && rules.agent.is_none_or(|named| named == agent));
            // In each file, the rules for this agent come before those for all.
            found.into_iter().map(|rules| compile(rules, &context)).collect()
        };
        let denied = |is_managed: bool| {
            let policies = config.policies.iter().filter(|policy| (policy.scope == Scope::Managed) == is_managed);
            policies.flat_map(|policy| denials(policy, agent)).collect()
        };
        let disabled = agent.server().map(|server| session.disabled_of(&server)).unwrap_or_default();
        Self {
            disabled: disabled.iter().map(|name| RulePattern::literal(name)).collect(),
            managed_denylist: denied(true),
            managed: compiled(&|scope| scope == Scope::Managed),
            denylist: denied(false),
            own: compiled(&|scope| scope != Scope::Managed && !scope.needs_trust()),
            restrictions: compiled(&Scope::needs_trust),
        }
    }

    fn walk(
        &self,
        disabled_by_user: &Arc<str>,
        tool: &Tool,
        arguments: &Map<String, Value>,
        visit: &mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for disabled in &self.disabled {
            visit_if(disabled.matches(tool), Level::Disable, disabled_by_user, None, visit)?;
        }
        for (pattern, source) in &self.managed_denylist {
            visit_if(pattern.matches(tool), Level::Deny, source, None, visit)?;
        }
        for rules in &self.managed {
            rules.walk(tool, Some(arguments), TrustState::Trusted, visit)?;
        }
        for (pattern, source) in &self.denylist {
            visit_if(pattern.matches(tool), Level::Deny, source, None, visit)?;
        }
        for rules in &self.own {
            rules.walk(tool, Some(arguments), TrustState::Trusted, visit)?;
        }
        ControlFlow::Continue(())
    }

    /// The level for one reading of the arguments; `None` if no rule is about the tool.
    fn rule(&self, disabled_by_user: &Arc<str>, tool: &Tool, arguments: &Map<String, Value>) -> Option<Ruling> {
        let (certain, uncertain) = first_certain(|visit| self.walk(disabled_by_user, tool, arguments, visit));
        let restrictions = self.restrictions.iter().filter_map(|rules| rules.level(tool, Some(arguments)));
        let mut stricter = uncertain.into_iter().rev().chain(restrictions);
        match certain {
            Some(certain) => Some(stricter.fold(certain, Ruling::stricter)),
            None => {
                let first = stricter.find(|ruling| !ruling.level.widens())?;
                Some(stricter.fold(first, Ruling::stricter))
            }
        }
    }
}

fn compile(rules: &AgentToolRules, context: &PathContext) -> ToolRules {
    let name = rules.agent.map_or("*", HookAgent::as_str);
    let prefixed =
        |rule: &ToolRule| ToolRule { pattern: format!("{}{}", Subject::AGENT, rule.pattern), ..rule.clone() };
    let tools: Vec<ToolRule> = rules.tools.iter().map(prefixed).collect();
    ToolRules::new(&tools, Applies::Always, &context.with_folder(rules.folder.as_ref()), &|pattern| {
        let pattern = pattern.strip_prefix(Subject::AGENT).unwrap_or(pattern);
        let line = rules.rule_lines.get(pattern).copied().unwrap_or(rules.line);
        format!("{} agentTools.{name}.{pattern}", location(rules.scope, rules.file.as_deref(), Some(line))).into()
    })
}

fn denials(policy: &FilePolicy, agent: HookAgent) -> impl Iterator<Item = (RulePattern, Arc<str>)> {
    let meant = policy.denylist.iter().filter(move |matcher| NameGlob::new(&matcher.server).is_match(agent.as_str()));
    meant.map(|matcher| {
        let what = format!("policy.denylist {}/{}", matcher.server, matcher.tool);
        (RulePattern::new(&matcher.tool), policy_source(policy, Some(matcher.line), &what))
    })
}

impl Rules {
    /// The level for an agent's own tool; `None` if no rule applies. Of all readings of the arguments, the
    /// strictest counts, so one command among several is enough to deny. An action that is not plain is never allowed.
    pub fn rule_action(&self, action: &AgentAction) -> Option<Ruling> {
        let (rules, tool) = (self.agents.get(&action.agent)?, action.tool());
        let found: Vec<Option<Ruling>> =
            action.readings().iter().map(|arguments| rules.rule(&self.disabled_by_user, &tool, arguments)).collect();
        if found.iter().all(Option::is_none) {
            return None;
        }
        let found = found.into_iter().map(|ruling| ruling.unwrap_or_else(|| self.fallback(&Subject::Agent)));
        let strictest = found.reduce(Ruling::stricter)?;
        match action.is_plain() || !strictest.level.widens() {
            true => Some(strictest),
            false => {
                let source = format!("{} (only for a single plain command)", strictest.source).into();
                Some(Ruling { level: Level::RequireApproval, source })
            }
        }
    }

    /// The level of an action that no rule is about, once the agent would ask its user.
    pub fn unruled_action(&self) -> Ruling {
        self.fallback(&Subject::Agent)
    }
}

#[cfg(test)]
mod tests;
