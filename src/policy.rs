//! Which tools may run and which servers may start.
//!
//! [`Rules`] contains the compiled rules of all config files. [`Rules::rule`] returns the level for a call and the rule
//! that set it. Pure except for `inside`, which resolves symlinks. The engine asks the user, stores answers and sends
//! calls. The proofs that it needs are only created here: [`permit::Permitted`] for a call, [`trust::Trusted`] for a
//! definition.

mod agent_access;
mod agent_action;
mod agent_tools;
mod compile;
mod condition;
mod glob;
pub(crate) mod grants;
mod location;
pub(crate) mod lookalike;
mod pattern;
pub(crate) mod permit;
mod pin;
pub(crate) mod session;
mod shell;
pub mod trust;
mod uri;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::model::{Level, ServerName, Subject, Tool};
pub use agent_access::{AgentAccess, AgentAccessTable};
pub use agent_action::{ActionKind, AgentAction};
pub use compile::Rules;
use condition::Truth;
pub use glob::{NameGlob, is_glob};
pub use grants::{Grant, GrantMatch, GrantQuery, GrantScope};
pub use location::location;
pub use pattern::RulePattern;
pub use permit::{Consent, Permitted, Refusal, permit};
pub use pin::{Pin, hex};
pub use session::SessionLevels;
pub use trust::{Fingerprint, Trusted, Verdict};
pub use uri::{expanded, is_instance};

/// The level for a call, and the rule that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub level: Level,
    /// Where the user finds the rule: `mcp.json:12 tools.read_*`, `user mcp.json policy.default`.
    pub source: Arc<str>,
}

impl Ruling {
    /// This ruling, or another one that is stricter.
    pub fn stricter(self, other: Self) -> Self {
        if other.level < self.level { other } else { self }
    }
}

/// A ruling with all other rules that match the tool but were not used, for `mcp.policies`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub ruling: Ruling,
    pub hides: Vec<HiddenRule>,
}

/// A matching rule that was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenRule {
    pub level: Level,
    pub source: Arc<str>,
    /// Why it was ignored. `None` if another rule just came first.
    pub reason: Option<&'static str>,
}

/// Whether the user has trusted a definition exactly as it is, including its allow-levels. Without trust, a project
/// file can only restrict. Definitions in the user's own scopes need no trust and ignore this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustState {
    Trusted,
    Untrusted,
}

pub(crate) const ANOTHER_FILE: &str = "a project file cannot allow tools of a server that another file defines";
pub(crate) const NOT_TRUSTED: &str = "a project file cannot allow tools before you trust the server";
pub(crate) const OWN_SERVER: &str = "your rule is for your own server with this name, not for one of a project";
const ONLY_RESTRICTS: &str = "an entry that does not define the server can only restrict its tools";
const WIDER: &str = "another file is stricter";
const UNCERTAIN: &str = "the match is uncertain, so it can only restrict";

/// A rule that matches a tool.
struct RuleMatch<'a> {
    level: Level,
    source: &'a Arc<str>,
    ignored: Option<&'static str>,
    /// Otherwise it applies only if it is stricter than what applies without it.
    is_certain: bool,
}

impl Rules {
    /// The level for a call with these arguments. Without arguments, the level if no condition matches.
    pub fn rule(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        trust_state: TrustState,
    ) -> Ruling {
        let (certain, uncertain) = first_certain(|visit| self.walk(server, tool, arguments, trust_state, visit));
        let certain = certain.unwrap_or_else(|| self.fallback(&tool.subject));
        let ruling = uncertain.into_iter().rev().fold(certain, Ruling::stricter);
        self.restrictions(server, tool, arguments).fold(ruling, Ruling::stricter)
    }

    /// The levels in entries that only restrict the server, one for each that matches the tool.
    fn restrictions(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
    ) -> impl Iterator<Item = Ruling> {
        let rules = self.servers.get(server).into_iter().flat_map(|rules| &rules.restrictions);
        rules.filter_map(move |rules| rules.level(tool, arguments))
    }

    /// The same, with all rules that it overrides. Slower.
    pub fn explain(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        trust_state: TrustState,
    ) -> Explanation {
        let ruling = self.rule(server, tool, arguments, trust_state);
        let (mut hides, mut is_found) = (Vec::new(), false);
        let _ = self.walk(server, tool, arguments, trust_state, &mut |matched| {
            let is_it = matched.level == ruling.level && *matched.source == ruling.source;
            if matched.ignored.is_none() && is_it && !is_found {
                is_found = true;
            } else {
                let reason = matched.ignored.or((!matched.is_certain).then_some(UNCERTAIN));
                hides.push(HiddenRule { level: matched.level, source: matched.source.clone(), reason });
            }
            ControlFlow::Continue(())
        });
        for Ruling { level, source } in self.restrictions(server, tool, arguments).filter(|other| *other != ruling) {
            hides.push(HiddenRule { level, source, reason: (level > ruling.level).then_some(ONLY_RESTRICTS) });
        }
        Explanation { ruling, hides }
    }

    /// Visits all rules that match the tool, in order of precedence.
    fn walk(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        trust_state: TrustState,
        visit: &mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(rules) = self.servers.get(server) else { return ControlFlow::Continue(()) };

        for disabled in &rules.disabled {
            let (level, source) = (Level::Disable, &self.disabled_by_user);
            visit_if(disabled.matches(tool), level, source, None, visit)?;
        }
        for denied in &rules.managed_denylist {
            visit_if(denied.tool.matches(tool), Level::Deny, &denied.source, None, visit)?;
        }
        if rules.managed {
            rules.tools.walk(tool, arguments, trust_state, visit)?;
        }
        for denied in &rules.denylist {
            visit_if(denied.tool.matches(tool), Level::Deny, &denied.source, None, visit)?;
        }
        for Ruling { level, source } in rules.overridden.iter().filter_map(|rules| rules.denial(tool, arguments)) {
            visit(RuleMatch { level, source: &source, ignored: None, is_certain: true })?;
        }
        rules.session.walk(tool, arguments, TrustState::Trusted, visit)?;
        if !rules.managed {
            rules.tools.walk(tool, arguments, trust_state, visit)?;
        }
        for allowed in &rules.allowlist {
            let ignored = allowed.applies.ignored_reason(trust_state);
            visit_if(allowed.tool.matches(tool), Level::AllowAlways, &allowed.source, ignored, visit)?;
        }
        let mut annotated = Vec::new();
        if tool.annotations.read_only == Some(true) {
            annotated.extend(&rules.read_only);
        }
        if tool.annotations.destructive == Some(true) {
            annotated.extend(&rules.destructive);
        }
        narrowest(&annotated, trust_state, true, visit)?;
        // Like `*`, it is about the tools of a server, and restricts what else the server offers.
        narrowest(&rules.default.iter().collect::<Vec<_>>(), trust_state, tool.subject == Subject::Tool, visit)
    }
}

/// The first rule that certainly applies, and those before it that perhaps do.
fn first_certain(
    walk: impl FnOnce(&mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>) -> ControlFlow<()>,
) -> (Option<Ruling>, Vec<Ruling>) {
    let (mut certain, mut uncertain) = (None, Vec::new());
    let _ = walk(&mut |matched| {
        let found = Ruling { level: matched.level, source: matched.source.clone() };
        match (matched.ignored, matched.is_certain) {
            (Some(_), _) => {}
            (None, false) => uncertain.push(found),
            (None, true) => {
                certain = Some(found);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    (certain, uncertain)
}

/// Visits a rule unless its pattern surely does not match.
fn visit_if(
    matches: Truth,
    level: Level,
    source: &Arc<str>,
    ignored: Option<&'static str>,
    visit: &mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match matches {
        Truth::No => ControlFlow::Continue(()),
        matches => visit(RuleMatch { level, source, ignored, is_certain: matches == Truth::Yes }),
    }
}

/// Of several entries for the same tool, visits the strictest that applies first. It overrides the others.
fn narrowest(
    entries: &[&compile::PolicyEntry],
    trust_state: TrustState,
    is_certain: bool,
    visit: &mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut applying: Vec<_> =
        entries.iter().filter(|entry| entry.applies.ignored_reason(trust_state).is_none()).collect();
    applying.sort_by_key(|entry| entry.level);
    let mut reason = None;
    for entry in applying {
        // After the first, `ignored` makes `rule` skip a wider entry and tells `explain` why.
        visit(RuleMatch { level: entry.level, source: &entry.source, ignored: reason, is_certain })?;
        reason = Some(WIDER);
    }
    for entry in entries {
        if let Some(ignored) = entry.applies.ignored_reason(trust_state) {
            visit(RuleMatch { level: entry.level, source: &entry.source, ignored: Some(ignored), is_certain })?;
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
#[path = "policy/tests.rs"]
mod tests;
