//! What may run and what may start.
//!
//! [`Rules`] is everything that the config files say about tools, compiled once per load; [`Rules::rule`] says for one
//! call which level holds and which words gave it. Pure but for `inside`, which has to look where symlinks lead.
//! Asking the user, keeping answers and calling are left to the engine; the proofs that it needs for that are made
//! here and nowhere else: [`permit::Permitted`] for a call, [`trust::Trusted`] for a definition.

mod compile;
mod condition;
mod glob;
pub mod grants;
pub mod lookalike;
pub mod permit;
mod pin;
mod place;
pub mod session;
pub mod trust;
mod view;

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{Level, ServerName, Tool};
pub use compile::Rules;
pub use glob::{NameGlob, is_glob};
pub use grants::{Asked, Found, Grant, GrantScope};
pub use permit::{Consent, Permitted, Refusal, permit};
pub use pin::{Pin, hex};
pub use place::place;
pub use session::SessionLevels;
pub use trust::{Fingerprint, Trusted, Verdict};
pub use view::{View, Views};

/// Which level holds for a call, and the words that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    pub level: Level,
    /// A place that a person can find: `mcp.json:12 tools.read_*`, `user mcp.json policy.default`.
    pub source: Arc<str>,
}

/// A ruling with everything else that was said about the tool and did not count; what `mcp.policies` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub ruling: Ruling,
    pub hides: Vec<HiddenRule>,
}

/// Words about a tool that did not decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HiddenRule {
    pub level: Level,
    pub source: Arc<str>,
    /// Why it did not count; absent where an earlier rule simply came first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// Whether the user has trusted a definition exactly as it stands, its allow-levels included. Without that, what a
/// project file says can only narrow. Definitions of the user's own scopes need no trust, and ignore this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Trusted,
    Untrusted,
}

pub(crate) const ANOTHER_FILE: &str = "a project file cannot widen what another file defines";
pub(crate) const NOT_TRUSTED: &str = "a project file cannot widen before you have trusted exactly this";
const WIDER: &str = "another file says it narrower";

/// One thing that was said about a tool, on its way through the order of the rules.
struct Said<'a> {
    level: Level,
    source: &'a Arc<str>,
    ignored: Option<&'static str>,
}

impl Rules {
    /// The level for a call with these arguments; without arguments, the level that holds when no condition matches.
    pub fn rule(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        standing: Standing,
    ) -> Ruling {
        let mut ruling = None;
        let _ = self.walk(server, tool, arguments, standing, &mut |said| {
            if said.ignored.is_some() {
                return ControlFlow::Continue(());
            }
            ruling = Some(Ruling { level: said.level, source: said.source.clone() });
            ControlFlow::Break(())
        });
        ruling.unwrap_or_else(|| self.fallback())
    }

    /// The same, with everything that it hides. Slower; for people.
    pub fn explain(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        standing: Standing,
    ) -> Explanation {
        let mut ruling = None;
        let mut hides = Vec::new();
        let _ = self.walk(server, tool, arguments, standing, &mut |said| {
            if said.ignored.is_none() && ruling.is_none() {
                ruling = Some(Ruling { level: said.level, source: said.source.clone() });
            } else {
                hides.push(HiddenRule { level: said.level, source: said.source.clone(), reason: said.ignored });
            }
            ControlFlow::Continue(())
        });
        Explanation { ruling: ruling.unwrap_or_else(|| self.fallback()), hides }
    }

    /// Visits all that is said about the tool, in the order in which it counts.
    fn walk(
        &self,
        server: &ServerName,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        standing: Standing,
        visit: &mut dyn FnMut(Said<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(rules) = self.servers.get(server) else { return ControlFlow::Continue(()) };
        let name: &str = &tool.name;

        if rules.disabled.contains(name) {
            visit(Said { level: Level::Disable, source: &self.disabled_by_user, ignored: None })?;
        }
        for denied in rules.managed_denylist.iter().filter(|entry| entry.tool.is_match(name)) {
            visit(Said { level: Level::Deny, source: &denied.source, ignored: None })?;
        }
        if rules.managed {
            rules.tools.walk(name, arguments, standing, visit)?;
        }
        for denied in rules.denylist.iter().filter(|entry| entry.tool.is_match(name)) {
            visit(Said { level: Level::Deny, source: &denied.source, ignored: None })?;
        }
        rules.session.walk(name, arguments, Standing::Trusted, visit)?;
        if !rules.managed {
            rules.tools.walk(name, arguments, standing, visit)?;
        }
        for allowed in rules.allowlist.iter().filter(|entry| entry.tool.is_match(name)) {
            let ignored = allowed.counts.refused(standing);
            visit(Said { level: Level::AllowAlways, source: &allowed.source, ignored })?;
        }
        let mut annotated = Vec::new();
        if tool.annotations.read_only == Some(true) {
            annotated.extend(&rules.read_only);
        }
        if tool.annotations.destructive == Some(true) {
            annotated.extend(&rules.destructive);
        }
        narrowest(&annotated, standing, visit)?;
        narrowest(&rules.default.iter().collect::<Vec<_>>(), standing, visit)
    }
}

/// Voices that speak about the same: the narrowest that counts is heard first, the others are what it hides.
fn narrowest(
    voices: &[&compile::Voice],
    standing: Standing,
    visit: &mut dyn FnMut(Said<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut counting: Vec<_> = voices.iter().filter(|voice| voice.counts.refused(standing).is_none()).collect();
    counting.sort_by_key(|voice| voice.level);
    let mut reason = None;
    for voice in counting {
        // After the first, `ignored` keeps `rule` from taking a wider voice, and tells `explain` why.
        visit(Said { level: voice.level, source: &voice.source, ignored: reason })?;
        reason = Some(WIDER);
    }
    for voice in voices {
        if let Some(ignored) = voice.counts.refused(standing) {
            visit(Said { level: voice.level, source: &voice.source, ignored: Some(ignored) })?;
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
#[path = "policy/tests.rs"]
mod tests;
