//! The proof that a call went through the rules, and the last word on whether it does.

use std::sync::Arc;

use super::{Found, Grant, Ruling};
use crate::model::{Decision, Error, Level, ToolCall};

/// A call that policy and, where needed, the user have let pass. Only this module makes one, and `Server::call` takes
/// nothing else: a second way to a tool does not compile.
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

    /// What let it pass, for the record: a level or the user's decision.
    pub fn decision(&self) -> &'static str {
        self.decision
    }

    /// Where that came from: a rule's place, a grant, `user`.
    pub fn decided_by(&self) -> &Arc<str> {
        &self.decided_by
    }

    /// For the tests of those who take one.
    #[cfg(test)]
    pub(crate) fn for_test(call: ToolCall) -> Self {
        Self { call, decision: "allow-always", decided_by: "a test".into() }
    }
}

/// What stands beside the ruling when a call wants to pass.
#[derive(Debug, Clone)]
pub enum Consent<'a> {
    /// Nobody was asked yet.
    None,
    /// The user allowed it earlier.
    Grant(&'a Grant),
    /// The user has just seen these very arguments, and says this.
    Answer(Decision),
    /// Asked, and got no answer: the reason says why.
    Silence(&'a str),
}

/// Why a call may not pass.
#[derive(Debug)]
pub enum Refusal {
    /// The user has to be asked first; here is the call again.
    Ask(Box<ToolCall>),
    /// No, by a rule or by the user.
    Denied { call: Box<ToolCall>, decision: &'static str, decided_by: Arc<str>, error: Error },
}

/// Lets a call pass or not. Consent raises `require-approval`, and only that: nothing raises `deny` or `disable`, and
/// what a rule allows needs none. A no of the user is a no, whatever the rules say.
pub fn permit(call: ToolCall, ruling: &Ruling, consent: Consent<'_>) -> Result<Permitted, Refusal> {
    let by_rule = ruling.source.clone();
    match ruling.level {
        Level::Disable => {
            let reason = format!("the tool is switched off by {}", ruling.source);
            Err(denied(call, Level::Disable, by_rule, reason))
        }
        Level::Deny => {
            let reason = format!("{} denies it", ruling.source);
            Err(denied(call, Level::Deny, by_rule, reason))
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
                Decision::Disable => "you switched the tool off",
                _ => "you said no",
            };
            Err(denied(call, decision.level(), "user".into(), reason.to_owned()))
        }
        Consent::Silence(why) => Err(denied(call, Level::Deny, why.into(), why.to_owned())),
    }
}

fn denied(call: ToolCall, level: Level, decided_by: Arc<str>, reason: String) -> Refusal {
    let error = Error::Denied { tool: call.tool.clone(), reason };
    Refusal::Denied { call: Box::new(call), decision: level.as_str(), decided_by, error }
}

/// Whether the one call that `allow-once` in a file gives to each session has been made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnceUsed {
    Yes,
    No,
}

impl Ruling {
    /// The ruling as it holds at this point of the session: `allow-once` asks after its one call.
    pub fn in_session(self, used: OnceUsed) -> Self {
        match (self.level, used) {
            (Level::AllowOnce, OnceUsed::Yes) => {
                Self { level: Level::RequireApproval, source: format!("{} (used in this session)", self.source).into() }
            }
            _ => self,
        }
    }

    /// The ruling with an earlier answer of the user taken in, which raises `require-approval` and nothing else.
    pub fn raised_by(self, found: &Found) -> Self {
        match (self.level, found) {
            (Level::RequireApproval, Found::Live(grant)) => Self { level: grant.level(), source: grant.source() },
            _ => self,
        }
    }
}
