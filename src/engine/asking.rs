//! Whom to ask when there is no editor: whoever wished the call, where he can put a question to the user himself.
//!
//! The question is an elicitation of MCP, whether it is an approval of ours or a question of a server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Engine;
use super::approvals::{Answer, Approval, Silence};
use super::snapshot::{Offered, ServerView};
use crate::model::{CallId, Decision};
use crate::text::visible;

/// What may be answered by way of an agent: nothing that outlives the session.
const DECISIONS: [(Decision, &str); 3] =
    [(Decision::AllowOnce, "Allow once"), (Decision::AllowSession, "Allow for this session"), (Decision::Deny, "Deny")];

/// Somebody who can put a question to the user.
pub trait Asker: Send + Sync + 'static {
    /// MCP's `elicitation/create` params in, its result out; `None` when the question could not be put.
    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>>;

    /// Tells one agent from another: the same for all calls of one.
    fn session(&self) -> u64;
}

/// The askers of the calls that run now. Behind a `std` lock that is private to this file and held for a look-up.
#[derive(Clone, Default)]
pub struct Askers(Arc<Mutex<Attended>>);

type Attended = BTreeMap<CallId, Arc<dyn Asker>>;

/// A call runs at a server; over when dropped.
pub struct Attending {
    askers: Askers,
    call: CallId,
}

impl Askers {
    pub fn attend(&self, call: &CallId, asker: &Arc<dyn Asker>) -> Attending {
        self.lock().insert(call.clone(), asker.clone());
        Attending { askers: self.clone(), call: call.clone() }
    }

    /// Whoever wished the call that a question belongs to. Where it may belong to several, somebody is asked only if all
    /// of them are of one agent: no agent hears what another's call brought up.
    pub fn of(&self, calls: &[CallId]) -> Option<Arc<dyn Asker>> {
        let askers = self.lock();
        let found = calls.iter().map(|call| askers.get(call)).collect::<Option<Vec<_>>>()?;
        let (first, others) = found.split_first()?;
        others.iter().all(|other| other.session() == first.session()).then(|| (*first).clone())
    }

    fn lock(&self) -> MutexGuard<'_, Attended> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.askers.lock().remove(&self.call);
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

    struct Somebody(u64);

    impl Asker for Somebody {
        fn elicit(&self, _params: Value) -> BoxFuture<'static, Option<Value>> {
            Box::pin(std::future::ready(None))
        }

        fn session(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_question_goes_to_the_one_whose_call_it_belongs_to_and_to_nobody_where_that_is_open() {
        let askers = Askers::default();
        let call = |name: &str| CallId(name.into());
        let attend = |name: &str, session| askers.attend(&call(name), &(Arc::new(Somebody(session)) as Arc<dyn Asker>));
        let asked = |names: &[&str]| {
            let calls: Vec<CallId> = names.iter().map(|name| call(name)).collect();
            askers.of(&calls).map(|asker| asker.session())
        };
        let (_a, _b, c) = (attend("a", 1), attend("b", 2), attend("c", 1));
        assert_eq!((asked(&["a"]), asked(&["b"])), (Some(1), Some(2)));
        assert_eq!(asked(&["a", "c"]), Some(1), "both are of one agent");
        assert_eq!(asked(&["a", "b"]), None);
        assert_eq!(asked(&["a", "of an editor"]), None);
        assert_eq!(asked(&[]), None);
        drop(c);
        assert_eq!(asked(&["c"]), None);
    }

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
