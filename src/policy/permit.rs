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

    /// Where that came from: the location of a rule, a grant, or where the user decided.
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
    /// The decision of the user, who has just seen these arguments, and where it was made.
    Answer(Decision, Arc<str>),
    /// The same of a user who has changed the arguments to these.
    Edit(Decision, Arc<str>),
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
            let (tool, rule) = (call.tool.clone(), Some(by_rule.clone()));
            let error = match level {
                Level::Disable => Error::ToolDisabled { tool, rule },
                _ => Error::Denied { tool, reason: format!("its level is `{level}`"), rule },
            };
            Err(Refusal::Denied { call: Box::new(call), decision: level.as_str(), decided_by: by_rule, error })
        }
        Level::RequireApproval => with_consent(call, consent),
        _ if matches!(consent, Consent::Answer(decision, _) | Consent::Edit(decision, _) if !decision.allows()) => {
            with_consent(call, consent)
        }
        level @ (Level::AllowOnce | Level::AllowSession | Level::AllowProject | Level::AllowAlways) => match consent {
            // The user has made this call what it is, although the rule would allow it, too.
            Consent::Edit(decision, by) => {
                let decided_by = format!("{} (also allowed by {by_rule})", edited(&by)).into();
                Ok(Permitted { call, decision: decision.as_str(), decided_by })
            }
            _ => Ok(Permitted { call, decision: level.as_str(), decided_by: by_rule }),
        },
    }
}

/// Where the user decided, who has also changed the arguments.
fn edited(by: &str) -> String {
    format!("{by}, who changed the arguments")
}

fn with_consent(call: ToolCall, consent: Consent<'_>) -> Result<Permitted, Refusal> {
    match consent {
        Consent::None => Err(Refusal::Ask(Box::new(call))),
        Consent::Grant(grant) => Ok(Permitted { call, decision: grant.level().as_str(), decided_by: grant.source() }),
        Consent::Edit(decision, by) => with_consent(call, Consent::Answer(decision, edited(&by).into())),
        Consent::Answer(decision, decided_by) if decision.allows() => {
            Ok(Permitted { call, decision: decision.as_str(), decided_by })
        }
        Consent::Answer(decision, decided_by) => {
            let reason = match decision {
                Decision::Disable => "you disabled the tool",
                _ => "you denied the call",
            };
            let error = Error::Denied { tool: call.tool.clone(), reason: reason.to_owned(), rule: None };
            let decision = decision.level().as_str();
            Err(Refusal::Denied { call: Box::new(call), decision, decided_by, error })
        }
    }
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
