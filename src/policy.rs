//! Which tools may run and which servers may start.
//!
//! [`Rules`] contains the compiled rules of all config files. [`Rules::rule`] returns the level for a call and the rule
//! that set it. Pure except for `inside`, which resolves symlinks. The engine asks the user, stores answers and sends
//! calls. The proofs that it needs are only created here: [`permit::Permitted`] for a call, [`trust::Trusted`] for a
//! definition.

mod compile;
mod condition;
mod glob;
pub mod grants;
mod location;
pub mod lookalike;
pub mod permit;
mod pin;
pub mod session;
pub mod trust;
mod view;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::model::{Level, ServerName, Tool};
pub use compile::Rules;
pub use glob::{NameGlob, is_glob};
pub use grants::{Grant, GrantMatch, GrantQuery, GrantScope};
pub use location::location;
pub use permit::{Consent, Permitted, Refusal, permit};
pub use pin::{Pin, hex};
pub use session::SessionLevels;
pub use trust::{Fingerprint, Trusted, Verdict};
pub use view::{View, Views};

/// The level for a call, and the rule that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub level: Level,
    /// Where the user finds the rule: `mcp.json:12 tools.read_*`, `user mcp.json policy.default`.
    pub source: Arc<str>,
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
const WIDER: &str = "another file is stricter";

/// A rule that matches a tool.
struct RuleMatch<'a> {
    level: Level,
    source: &'a Arc<str>,
    ignored: Option<&'static str>,
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
        let mut ruling = None;
        let _ = self.walk(server, tool, arguments, trust_state, &mut |matched| {
            if matched.ignored.is_some() {
                return ControlFlow::Continue(());
            }
            ruling = Some(Ruling { level: matched.level, source: matched.source.clone() });
            ControlFlow::Break(())
        });
        ruling.unwrap_or_else(|| self.fallback())
    }

    /// The same, with all rules that it overrides. Slower.
    pub fn explain(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        trust_state: TrustState,
    ) -> Explanation {
        let mut ruling = None;
        let mut hides = Vec::new();
        let _ = self.walk(server, tool, arguments, trust_state, &mut |matched| {
            if matched.ignored.is_none() && ruling.is_none() {
                ruling = Some(Ruling { level: matched.level, source: matched.source.clone() });
            } else {
                hides.push(HiddenRule {
                    level: matched.level,
                    source: matched.source.clone(),
                    reason: matched.ignored,
                });
            }
            ControlFlow::Continue(())
        });
        Explanation { ruling: ruling.unwrap_or_else(|| self.fallback()), hides }
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
        let name: &str = &tool.name;

        if rules.disabled.contains(name) {
            visit(RuleMatch { level: Level::Disable, source: &self.disabled_by_user, ignored: None })?;
        }
        for denied in rules.managed_denylist.iter().filter(|entry| entry.tool.is_match(name)) {
            visit(RuleMatch { level: Level::Deny, source: &denied.source, ignored: None })?;
        }
        if rules.managed {
            rules.tools.walk(name, arguments, trust_state, visit)?;
        }
        for denied in rules.denylist.iter().filter(|entry| entry.tool.is_match(name)) {
            visit(RuleMatch { level: Level::Deny, source: &denied.source, ignored: None })?;
        }
        rules.session.walk(name, arguments, TrustState::Trusted, visit)?;
        if !rules.managed {
            rules.tools.walk(name, arguments, trust_state, visit)?;
        }
        for allowed in rules.allowlist.iter().filter(|entry| entry.tool.is_match(name)) {
            let ignored = allowed.applies.ignored_reason(trust_state);
            visit(RuleMatch { level: Level::AllowAlways, source: &allowed.source, ignored })?;
        }
        let mut annotated = Vec::new();
        if tool.annotations.read_only == Some(true) {
            annotated.extend(&rules.read_only);
        }
        if tool.annotations.destructive == Some(true) {
            annotated.extend(&rules.destructive);
        }
        narrowest(&annotated, trust_state, visit)?;
        narrowest(&rules.default.iter().collect::<Vec<_>>(), trust_state, visit)
    }
}

/// Of several entries for the same tool, visits the strictest that applies first. It overrides the others.
fn narrowest(
    entries: &[&compile::PolicyEntry],
    trust_state: TrustState,
    visit: &mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut applying: Vec<_> =
        entries.iter().filter(|entry| entry.applies.ignored_reason(trust_state).is_none()).collect();
    applying.sort_by_key(|entry| entry.level);
    let mut reason = None;
    for entry in applying {
        // After the first, `ignored` makes `rule` skip a wider entry and tells `explain` why.
        visit(RuleMatch { level: entry.level, source: &entry.source, ignored: reason })?;
        reason = Some(WIDER);
    }
    for entry in entries {
        if let Some(ignored) = entry.applies.ignored_reason(trust_state) {
            visit(RuleMatch { level: entry.level, source: &entry.source, ignored: Some(ignored) })?;
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
#[path = "policy/tests.rs"]
mod tests;
