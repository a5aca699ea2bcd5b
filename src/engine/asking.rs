//! Whom to ask when there is no editor: whoever wished the call, where he can put a question to the user himself.
//!
//! The question is an elicitation of MCP, whether it is an approval of ours or a question of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Engine;
use super::approvals::{Answer, Approval, Silence};
use super::snapshot::{Offered, ServerView};
use crate::model::{Decision, ServerName};
use crate::text::visible;

/// What may be answered by way of an agent: nothing that outlives the session.
const DECISIONS: [(Decision, &str); 3] =
    [(Decision::AllowOnce, "Allow once"), (Decision::AllowSession, "Allow for this session"), (Decision::Deny, "Deny")];

/// Somebody who can put a question to the user.
pub trait Asker: Send + Sync + 'static {
    /// MCP's `elicitation/create` params in, its result out; `None` when the question could not be put.
    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>>;
}

/// The askers of the calls that run now, by server. Behind a `std` lock that is private to this file and held for a
/// look-up.
#[derive(Clone, Default)]
pub struct Askers(Arc<Mutex<BTreeMap<u64, Attended>>>);

/// A server that works on a call, and whoever wished that call.
type Attended = (ServerName, Arc<dyn Asker>);

/// A call runs at a server; over when dropped.
pub struct Attending {
    askers: Askers,
    id: u64,
}

impl Askers {
    pub fn attend(&self, server: &ServerName, asker: &Arc<dyn Asker>) -> Attending {
        let mut askers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = askers.last_key_value().map_or(0, |(last, _)| last + 1);
        askers.insert(id, (server.clone(), asker.clone()));
        Attending { askers: self.clone(), id }
    }

    /// Whoever wished the newest call that runs at this server. A question of a server does not say which call it
    /// belongs to; the newest is the best guess, and with one agent always right.
    pub fn of(&self, server: &ServerName) -> Option<Arc<dyn Asker>> {
        let askers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        askers.values().rev().find(|(name, _)| name == server).map(|(_, asker)| asker.clone())
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.askers.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Engine {
    /// Puts a question to whoever can answer it: to the editors, and where there is none to the one who wished the
    /// call. An editor that comes meanwhile sees it as well; the first answer counts.
    pub(super) async fn put(&self, approval: Approval, asker: Option<&Arc<dyn Asker>>) -> Result<Answer, Silence> {
        let mut editors = self.0.editors.subscribe();
        let (limit, most) = {
            let settings = self.0.settings.borrow();
            (settings.approvals.timeout, settings.limits.approvals)
        };
        if *editors.borrow() > 0 {
            return tokio::select! {
                answer = self.0.approvals.ask(approval, limit, most) => answer,
                // The last editor has left: nobody will ever answer.
                _ = editors.wait_for(|editors| *editors == 0) => {
                    Err(Silence::Withdrawn("the editor has gone".to_owned()))
                }
            };
        }
        let Some(asker) = asker else {
            return Err(Silence::Nobody);
        };
        let asked = asker.elicit(as_elicitation(&approval));
        tokio::select! {
            answer = self.0.approvals.ask(approval.clone(), limit, most) => answer,
            answer = asked => answer
                .map(|answer| read(&answer, offered(&approval)))
                .ok_or(Silence::Nobody),
        }
    }

    /// How a user lets this tool run, for one who could not be asked.
    pub(super) fn how_to_allow(&self, view: &ServerView, offered: &Offered) -> String {
        let file = match &view.definition.file {
            Some(file) => file.display().to_string(),
            None => "mcp.json".to_owned(),
        };
        let tool = visible(&offered.tool.name, 200);
        format!(
            "it needs the user's approval, and there is no editor to ask. To allow it, open this workspace in an editor \
             with mcp-sidecar and call again, or write \"tools\": {{ \"{tool}\": \"allow-session\" }} into the \
             definition of `{}` in {file}",
            view.definition.name
        )
    }
}

/// An approval as a form: everything that an editor would show is in its message.
fn as_elicitation(approval: &Approval) -> Value {
    let mut message = approval.title.clone();
    let arguments = approval.arguments.as_ref().and_then(|arguments| serde_json::to_string_pretty(arguments).ok());
    for part in [Some(&approval.detail), approval.diff.as_ref(), arguments.as_ref()].into_iter().flatten() {
        if !part.is_empty() {
            message.push('\n');
            message.push_str(&visible(part, usize::MAX));
        }
    }
    let options: Vec<Value> =
        offered(approval).map(|(decision, label)| json!({ "const": decision.as_str(), "title": label })).collect();
    let decision = json!({ "type": "string", "title": "Decision", "oneOf": options });
    let schema = json!({ "type": "object", "properties": { "decision": decision }, "required": ["decision"] });
    json!({ "mode": "form", "message": message, "requestedSchema": schema })
}

/// What this question may be answered by way of an agent.
fn offered(approval: &Approval) -> impl Iterator<Item = (Decision, &'static str)> {
    DECISIONS.into_iter().filter(|(decision, _)| approval.options.contains(&decision.as_str()))
}

/// Anything but a clear yes is a no.
fn read(answer: &Value, mut offered: impl Iterator<Item = (Decision, &'static str)>) -> Answer {
    let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
    let said = answer.pointer("/content/decision").and_then(Value::as_str).filter(|_| accepted);
    let known = offered.find(|(decision, _)| Some(decision.as_str()) == said);
    Answer::Decision { decision: known.map_or(Decision::Deny, |(decision, _)| decision), note: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_a_clear_yes_is_a_no() {
        let decided = |answer: Value| match read(&answer, DECISIONS.into_iter()) {
            Answer::Decision { decision, .. } => decision,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            decided(json!({ "action": "accept", "content": { "decision": "allow-once" } })),
            Decision::AllowOnce
        );
        for no in [
            json!({ "action": "accept" }),
            json!({ "action": "decline", "content": { "decision": "allow-once" } }),
            json!({ "action": "accept", "content": { "decision": "allow-always" } }),
            json!({}),
        ] {
            assert_eq!(decided(no), Decision::Deny);
        }
    }
}
