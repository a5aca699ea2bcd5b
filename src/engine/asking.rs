//! Who is asked when there is no editor: the front that requested the call, if it can ask the user itself.
//!
//! The question is an MCP elicitation, whether it is our approval or a server's question.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::Engine;
use super::approvals::{Answer, Approval, NoAnswer};
use super::snapshot::{OfferedTool, ServerView};
use crate::model::{CallId, Decision};
use crate::text::visible;

/// The decisions that an agent can pass on. None of them outlives the session.
const DECISIONS: [(Decision, &str); 3] =
    [(Decision::AllowOnce, "Allow once"), (Decision::AllowSession, "Allow for this session"), (Decision::Deny, "Deny")];

/// A front that can ask the user.
pub trait Asker: Send + Sync + 'static {
    /// Takes the params of MCP's `elicitation/create` and returns its result. `None` if the question could not be
    /// asked.
    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>>;

    /// Identifies the agent: the same for all its calls.
    fn session(&self) -> u64;
}

/// The askers of all running calls. The `std` lock is private to this file and held only for a lookup.
#[derive(Clone, Default)]
pub struct Askers(Arc<Mutex<AskersByCall>>);

type AskersByCall = BTreeMap<CallId, Arc<dyn Asker>>;

/// Registers the asker of a running call until it is dropped.
pub struct AskerGuard {
    askers: Askers,
    call: CallId,
}

impl Askers {
    pub fn register(&self, call: &CallId, asker: &Arc<dyn Asker>) -> AskerGuard {
        self.lock().insert(call.clone(), asker.clone());
        AskerGuard { askers: self.clone(), call: call.clone() }
    }

    /// The asker of the call that a question belongs to. If it can belong to several calls, they must all be from one
    /// agent: no agent sees a question that another agent's call caused.
    pub fn of(&self, calls: &[CallId]) -> Option<Arc<dyn Asker>> {
        let askers = self.lock();
        let found = calls.iter().map(|call| askers.get(call)).collect::<Option<Vec<_>>>()?;
        let (first, others) = found.split_first()?;
        others.iter().all(|other| other.session() == first.session()).then(|| (*first).clone())
    }

    fn lock(&self) -> MutexGuard<'_, AskersByCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AskerGuard {
    fn drop(&mut self) {
        self.askers.lock().remove(&self.call);
    }
}

impl Engine {
    /// Asks the editors. If there are none, asks the front that requested the call. An editor that connects meanwhile
    /// shows the question as well; the first answer wins.
    pub(super) async fn ask_user(
        &self,
        approval: Approval,
        asker: Option<&Arc<dyn Asker>>,
    ) -> Result<Answer, NoAnswer> {
        let mut editors = self.0.editors.subscribe();
        let (limit, most) = {
            let settings = self.0.settings.borrow();
            (settings.approvals.timeout, settings.limits.approvals)
        };
        if *editors.borrow() > 0 {
            return tokio::select! {
                answer = self.0.approvals.ask(approval, limit, most) => answer,
                // The last editor was closed, so an answer can no longer come.
                _ = editors.wait_for(|editors| *editors == 0) => {
                    Err(NoAnswer::Withdrawn("the editor was closed".to_owned()))
                }
            };
        }
        let Some(asker) = asker else {
            return Err(NoAnswer::NobodyToAsk);
        };
        let asked = asker.elicit(as_elicitation(&approval));
        tokio::select! {
            answer = self.0.approvals.ask(approval.clone(), limit, most) => answer,
            answer = asked => answer
                .map(|answer| parse_answer(&answer, offered(&approval)))
                .ok_or(NoAnswer::NobodyToAsk),
        }
    }

    /// Tells a user who could not be asked how to allow this tool.
    pub(super) fn how_to_allow(&self, view: &ServerView, offered: &OfferedTool) -> String {
        let file = match &view.definition.file {
            Some(file) => file.display().to_string(),
            None => "mcp.json".to_owned(),
        };
        let tool = visible(&offered.tool.name, 200);
        format!(
            "it requires the user's approval, and there is no editor to ask. To allow it, open this workspace in an \
             editor with mcp-sidecar and call again, or add \"tools\": {{ \"{tool}\": \"allow-session\" }} to the \
             definition of `{}` in {file}",
            view.definition.name
        )
    }
}

/// An approval as a form. Its message contains everything that an editor would show.
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

/// The answers to this question that an agent can pass on.
fn offered(approval: &Approval) -> impl Iterator<Item = (Decision, &'static str)> {
    DECISIONS.into_iter().filter(|(decision, _)| approval.options.contains(&decision.as_str()))
}

/// Anything but a clear yes is a denial.
fn parse_answer(answer: &Value, mut offered: impl Iterator<Item = (Decision, &'static str)>) -> Answer {
    let accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
    let chosen = answer.pointer("/content/decision").and_then(Value::as_str).filter(|_| accepted);
    let known = offered.find(|(decision, _)| Some(decision.as_str()) == chosen);
    Answer::Decision { decision: known.map_or(Decision::Deny, |(decision, _)| decision), note: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct TestAsker(u64);

    impl Asker for TestAsker {
        fn elicit(&self, _params: Value) -> BoxFuture<'static, Option<Value>> {
            Box::pin(std::future::ready(None))
        }

        fn session(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn a_question_goes_to_the_caller_or_to_no_one_if_the_caller_is_ambiguous() {
        let askers = Askers::default();
        let call = |name: &str| CallId(name.into());
        let asker = |session| -> Arc<dyn Asker> { Arc::new(TestAsker(session)) };
        let register = |name: &str, session| askers.register(&call(name), &asker(session));
        let asked = |names: &[&str]| {
            let calls: Vec<CallId> = names.iter().map(|name| call(name)).collect();
            askers.of(&calls).map(|asker| asker.session())
        };
        let (_a, _b, c) = (register("a", 1), register("b", 2), register("c", 1));
        assert_eq!((asked(&["a"]), asked(&["b"])), (Some(1), Some(2)));
        assert_eq!(asked(&["a", "c"]), Some(1), "both belong to one agent");
        assert_eq!(asked(&["a", "b"]), None);
        assert_eq!(asked(&["a", "of an editor"]), None);
        assert_eq!(asked(&[]), None);
        drop(c);
        assert_eq!(asked(&["c"]), None);
    }

    #[test]
    fn anything_but_a_clear_yes_is_a_denial() {
        let decided = |answer: Value| match parse_answer(&answer, DECISIONS.into_iter()) {
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
