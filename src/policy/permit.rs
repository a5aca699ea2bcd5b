//! The proof that a call is permitted, and the decision about it.

use std::sync::Arc;

use super::{Grant, GrantMatch, Ruling};
use crate::model::{Decision, Error, Level, ToolCall};

/// A call that the rules and, if required, the user have permitted. Only this module creates one, and `Server::call`
/// accepts nothing else: a call around the gate does not compile.
#[derive(Debug, Clone)]
pub struct Permitted {
    call: ToolCall,
    decision: &'static str,
    decided_by: Arc<str>,
}

impl Permitted {
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// What permitted it: a level or the user's decision.
    pub fn decision(&self) -> &'static str {
        self.decision
    }

    /// Where that came from: the location of a rule, a grant, or `user`.
    pub fn decided_by(&self) -> &Arc<str> {
        &self.decided_by
    }

    /// For tests of functions that take one.
    #[cfg(test)]
    pub(crate) fn for_test(call: ToolCall) -> Self {
        Self { call, decision: "allow-always", decided_by: "a test".into() }
    }
}

/// The user's consent to a call, in addition to the ruling.
#[derive(Debug, Clone)]
pub enum Consent<'a> {
    /// The user has not been asked yet.
    None,
    /// The user allowed it earlier.
    Grant(&'a Grant),
    /// The decision of the user, who has just seen these arguments.
    Answer(Decision),
}

/// Why a call is not permitted.
#[derive(Debug)]
pub enum Refusal {
    /// The user must be asked first. Returns the call.
    Ask(Box<ToolCall>),
    /// Denied by a rule or by the user.
    Denied { call: Box<ToolCall>, decision: &'static str, decided_by: Arc<str>, error: Error },
}

/// Permits or denies a call. Consent only overrides `require-approval`: it never overrides `deny` or `disable`, and a
/// rule that allows needs none. A denial by the user always holds.
pub fn permit(call: ToolCall, ruling: &Ruling, consent: Consent<'_>) -> Result<Permitted, Refusal> {
    let by_rule = ruling.source.clone();
    match ruling.level {
        level @ (Level::Disable | Level::Deny) => {
            let reason = format!("its level is `{level}` ({})", ruling.source);
            Err(denied(call, level, by_rule, reason))
        }
        Level::RequireApproval => with_consent(call, consent),
        _ if matches!(consent, Consent::Answer(decision) if !decision.allows()) => with_consent(call, consent),
        level @ (Level::AllowOnce | Level::AllowSession | Level::AllowProject | Level::AllowAlways) => {
            Ok(Permitted { call, decision: level.as_str(), decided_by: by_rule })
        }
    }
}

fn with_consent(call: ToolCall, consent: Consent<'_>) -> Result<Permitted, Refusal> {
    match consent {
        Consent::None => Err(Refusal::Ask(Box::new(call))),
        Consent::Grant(grant) => Ok(Permitted { call, decision: grant.level().as_str(), decided_by: grant.source() }),
        Consent::Answer(decision) if decision.allows() => {
            Ok(Permitted { call, decision: decision.as_str(), decided_by: "user".into() })
        }
        Consent::Answer(decision) => {
            let reason = match decision {
                Decision::Disable => "you disabled the tool",
                _ => "you denied the call",
            };
            Err(denied(call, decision.level(), "user".into(), reason.to_owned()))
        }
    }
}

fn denied(call: ToolCall, level: Level, decided_by: Arc<str>, reason: String) -> Refusal {
    let error = Error::Denied { tool: call.tool.clone(), reason };
    Refusal::Denied { call: Box::new(call), decision: level.as_str(), decided_by, error }
}

/// Whether the one call per session of an `allow-once` rule has been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceUsed {
    Yes,
    No,
}

impl Ruling {
    /// The ruling at this point of the session: `allow-once` requires approval after its one call.
    pub fn in_session(self, used: OnceUsed) -> Self {
        match (self.level, used) {
            (Level::AllowOnce, OnceUsed::Yes) => Self {
                level: Level::RequireApproval,
                source: format!("{} (already used in this session)", self.source).into(),
            },
            _ => self,
        }
    }

    /// The ruling with an earlier grant applied, which only overrides `require-approval`.
    pub fn raised_by(self, found: &GrantMatch) -> Self {
        match (self.level, found) {
            (Level::RequireApproval, GrantMatch::Active(grant)) => {
                Self { level: grant.level(), source: grant.source() }
            }
            _ => self,
        }
    }
}
