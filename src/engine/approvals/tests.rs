//! A model of the life cycle of a question: whatever happens in whatever order, a question ends in exactly one way, only
//! a matching answer allows anything, and no question waits without its owner.

mod every_order;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::moving_on::RETURN_TIME;
use super::*;
use crate::engine::asking::{Asker, CallGuard};
use crate::engine::editors::{Attachment, Editor, WebPage};
use crate::engine::host::question;

/// What can happen. The first number is a question, the second an editor; numbers that do not exist are ignored.
#[derive(Debug, Clone, Copy)]
enum Event {
    Ask {
        agent_can_ask: bool,
    },
    Answer(usize, usize, Decision),
    /// Questions that were shown together are answered together.
    AnswerSeveral([usize; 2], usize, Decision),
    Close(usize, usize),
    AgentAnswers(usize, AgentAnswer),
    /// The call is cancelled, its agent disconnects, or its server restarts.
    OwnerEnds(usize),
    /// The owner no longer wants to know, but an answer that was given counts.
    Withdraw(usize),
    EditorOpens(usize),
    EditorCloses(usize),
    /// It turns out that the editor cannot show questions.
    EditorCannotAsk(usize),
    Wait(Duration),
}

#[derive(Debug, Clone, Copy)]
enum AgentAnswer {
    Allow,
    Deny,
    Decline,
    Cancel,
    CannotAsk,
}

const EDITORS: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(300);

fn event() -> impl Strategy<Value = Event> {
    let question = 0..4_usize;
    let editor = 0..EDITORS;
    let decision = prop::sample::select(vec![Decision::AllowOnce, Decision::AllowAlways, Decision::Deny]);
    let agent = prop::sample::select(vec![
        AgentAnswer::Allow,
        AgentAnswer::Deny,
        AgentAnswer::Decline,
        AgentAnswer::Cancel,
        AgentAnswer::CannotAsk,
    ]);
    let wait = prop::sample::select(vec![Duration::from_secs(1), RETURN_TIME + Duration::from_secs(1), TIMEOUT]);
    prop_oneof![
        4 => any::<bool>().prop_map(|agent_can_ask| Event::Ask { agent_can_ask }),
        4 => (question.clone(), editor.clone(), decision.clone()).prop_map(|(q, e, d)| Event::Answer(q, e, d)),
        3 => ([question.clone(), question.clone()], editor.clone(), decision)
            .prop_map(|(q, e, d)| Event::AnswerSeveral(q, e, d)),
        2 => (question.clone(), editor.clone()).prop_map(|(q, e)| Event::Close(q, e)),
        3 => (question.clone(), agent).prop_map(|(q, a)| Event::AgentAnswers(q, a)),
        2 => question.clone().prop_map(Event::OwnerEnds),
        1 => question.prop_map(Event::Withdraw),
        4 => editor.clone().prop_map(Event::EditorOpens),
        3 => editor.clone().prop_map(Event::EditorCloses),
        1 => editor.prop_map(Event::EditorCannotAsk),
        3 => wait.prop_map(Event::Wait),
    ]
}

struct TestEditor(Abilities, Identity);

impl Editor for TestEditor {
    fn abilities(&self) -> &Abilities {
        &self.0
    }

    fn identity(&self) -> &Identity {
        &self.1
    }

    fn open_url(&self, _: WebPage) -> BoxFuture<'static, bool> {
        std::future::pending().boxed()
    }
}

/// An agent whose user answers when the test says so.
#[derive(Default)]
struct TestAgent {
    was_asked: AtomicBool,
    answer: Mutex<Option<oneshot::Sender<Option<Value>>>>,
}

impl Asker for TestAgent {
    fn elicit(&self, _: Value) -> BoxFuture<'static, Option<Value>> {
        let (sender, answer) = oneshot::channel();
        assert!(!self.was_asked.swap(true, Ordering::AcqRel), "the agent is asked once");
        *self.answer.lock().unwrap() = Some(sender);
        async move { answer.await.ok().flatten() }.boxed()
    }

    fn session(&self) -> u64 {
        0
    }
}

/// A question and everything that is known about it.
struct Asked {
    id: String,
    agent: Arc<TestAgent>,
    waiting: Option<JoinHandle<Outcome>>,
    /// The answer of an editor that was accepted.
    accepted: Option<Decision>,
    agent_allowed: bool,
    /// How it ended, as the fronts are told.
    ending: Option<Ending>,
    withdrawal: Withdrawal,
    _call: CallGuard,
}

struct World {
    approvals: Approvals,
    editors: Editors,
    calls: RunningCalls,
    open: [Option<Attachment>; EDITORS],
    asked: Vec<Asked>,
    closed: broadcast::Receiver<ClosedQuestion>,
    _settings: watch::Sender<Arc<Settings>>,
}

impl World {
    fn new(ask_agent: &str) -> Self {
        let mut settings = Settings::default();
        settings.approvals.timeout = TIMEOUT;
        settings.approvals.ask_agent = ask_agent.to_owned();
        settings.limits.approvals = 3;
        let (settings, receiver) = watch::channel(Arc::new(settings));
        let (editors, calls) = (Editors::default(), RunningCalls::default());
        let approvals = Approvals::new(editors.clone(), calls.clone(), receiver);
        let closed = approvals.closed();
        Self { approvals, editors, calls, open: Default::default(), asked: Vec::new(), closed, _settings: settings }
    }

    async fn apply(&mut self, event: Event) {
        match event {
            Event::Ask { agent_can_ask } => self.ask(agent_can_ask),
            Event::Answer(number, editor, decision) => self.answer(number, editor, decision),
            Event::AnswerSeveral(numbers, editor, decision) => self.answer_several(numbers, editor, decision),
            Event::Close(number, editor) => {
                if let (Some(asked), Some(Some(open))) = (self.asked.get(number), self.open.get(editor)) {
                    self.approvals.close(&asked.id, open.id(), &Identity::default());
                }
            }
            Event::AgentAnswers(number, answer) => {
                let Some(asked) = self.asked.get_mut(number) else { return };
                let Some(sender) = asked.agent.answer.lock().unwrap().take() else { return };
                let content = |decision: &str| json!({ "action": "accept", "content": { "decision": decision } });
                asked.agent_allowed |= matches!(answer, AgentAnswer::Allow);
                let answer = match answer {
                    AgentAnswer::Allow => Some(content("allow-once")),
                    AgentAnswer::Deny => Some(content("deny")),
                    AgentAnswer::Decline => Some(json!({ "action": "decline" })),
                    AgentAnswer::Cancel => Some(json!({ "action": "cancel" })),
                    AgentAnswer::CannotAsk => None,
                };
                sender.send(answer).ok();
            }
            Event::OwnerEnds(number) => {
                if let Some(waiting) = self.asked.get_mut(number).and_then(|asked| asked.waiting.take()) {
                    waiting.abort();
                    assert!(waiting.await.is_err() || self.asked[number].accepted.is_some());
                }
            }
            Event::Withdraw(number) => {
                if let Some(asked) = self.asked.get(number) {
                    asked.withdrawal.withdraw();
                }
            }
            Event::EditorOpens(number) => {
                let editor = TestEditor(Abilities::default(), Identity::default());
                self.open[number].get_or_insert_with(|| self.editors.attach(Arc::new(editor)));
            }
            Event::EditorCloses(number) => self.open[number] = None,
            Event::EditorCannotAsk(number) => {
                if let Some(open) = &self.open[number] {
                    self.editors.cannot_ask(open.id());
                }
            }
            Event::Wait(time) => tokio::time::sleep(time).await,
        }
    }

    fn ask(&mut self, agent_can_ask: bool) {
        let server = ServerName::new("demo").unwrap();
        let mut approval = question(&server, Kind::Tool, String::new(), &["allow-once", "allow-always", "deny"]);
        approval.group = Some(GroupKey::Agent(0));
        let (id, call) = (approval.id.clone(), CallId::random());
        let agent = Arc::<TestAgent>::default();
        let asker = agent_can_ask.then(|| -> Arc<dyn Asker> { agent.clone() });
        let registered = self.calls.register(&call, asker, None);
        let (approvals, question) = (self.approvals.clone(), Question { calls: vec![call], ..approval.into() });
        let withdrawal = question.withdrawal.clone();
        let waiting = tokio::spawn(async move { approvals.ask(question).await });
        let (waiting, _call) = (Some(waiting), registered);
        self.asked.push(Asked {
            id,
            agent,
            waiting,
            accepted: None,
            agent_allowed: false,
            ending: None,
            withdrawal,
            _call,
        });
    }

    fn answer(&mut self, number: usize, editor: usize, decision: Decision) {
        let (Some(asked), Some(Some(_))) = (self.asked.get_mut(number), self.open.get(editor)) else { return };
        let reply = Reply { decision: decision.as_str(), ..Reply::default() };
        let is_listed = self.approvals.list().iter().any(|approval| approval.id == asked.id);
        let id = std::slice::from_ref(&asked.id);
        let accepted = self.approvals.resolve(id, &reply, &Identity::default()).is_ok();
        assert_eq!(accepted, is_listed, "an answer counts if and only if its question is shown");
        if accepted {
            assert_eq!(asked.accepted.replace(decision), None, "two answers were accepted");
        }
    }

    fn answer_several(&mut self, numbers: [usize; 2], editor: usize, decision: Decision) {
        let Some(Some(_)) = self.open.get(editor) else { return };
        let ids: Vec<String> = numbers.iter().filter_map(|number| Some(self.asked.get(*number)?.id.clone())).collect();
        let [first, second] = ids.as_slice() else { return };
        let listed = self.listed();
        let is_listed = |id: &String| listed.contains(id);
        let reply = Reply { decision: decision.as_str(), ..Reply::default() };
        let lasts = decision == Decision::AllowAlways;
        match self.approvals.resolve(&ids, &reply, &Identity::default()) {
            Ok(answered) => {
                let resolved: Vec<&String> = answered.resolved.iter().map(|question| &question.approval.id).collect();
                let distinct = if first == second { &ids[..1] } else { &ids[..] };
                assert_eq!(resolved, distinct.iter().filter(|id| is_listed(id)).collect::<Vec<_>>());
                assert!(answered.gone.iter().all(|id| !is_listed(id)) && !lasts, "{decision:?}");
                for asked in self.asked.iter_mut().filter(|asked| resolved.contains(&&asked.id)) {
                    assert_eq!(asked.accepted.replace(decision), None, "two answers were accepted");
                }
            }
            Err(_) => assert!(lasts || !(is_listed(first) || is_listed(second)), "an answer was refused"),
        }
    }

    fn listed(&self) -> Vec<String> {
        self.approvals.list().iter().map(|approval| approval.id.clone()).collect()
    }

    /// What must hold after every event.
    async fn check(&mut self) {
        // Time passes only when nothing else can happen.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let mut waiting = Vec::new();
        while let Ok(closed) = self.closed.try_recv() {
            let asked = self.asked.iter_mut().find(|asked| asked.id == closed.id).unwrap();
            assert_eq!(asked.ending.replace(closed.ending), None, "the end of a question is reported once");
        }
        for asked in &mut self.asked {
            match asked.waiting.take_if(|task| task.is_finished()) {
                Some(ended) => check_outcome(asked, ended.await.unwrap()),
                None => waiting.extend(asked.waiting.is_some().then(|| asked.id.clone())),
            }
        }
        assert_eq!(self.listed(), waiting, "the questions that are shown are those with an owner");
        let groups = groups::groups(&self.approvals.list(), |_| 0);
        let expected = if waiting.len() > 1 { vec![waiting] } else { Vec::new() };
        assert_eq!(groups.into_iter().map(|group| group.ids).collect::<Vec<_>>(), expected);
    }
}

fn check_outcome(asked: &Asked, outcome: Outcome) {
    let reported = match &outcome {
        // It was never shown.
        Err(NoAnswer::Full(_)) => None,
        Err(NoAnswer::NobodyToAsk) if asked.ending.is_none() => None,
        Err(no_answer) => Some(Ending::NoAnswer(no_answer.clone())),
        Ok(Answered { answer, by, .. }) => {
            let label = if answer.as_str() == "deny" { "Deny" } else { "Allow once" };
            let label = if answer.as_str() == "allow-always" { "Always allow" } else { label }.to_owned();
            Some(Ending::Answered { decision: answer.as_str(), label, by: by.clone() })
        }
    };
    assert_eq!(asked.ending, reported, "it is reported as it ended");
    match outcome {
        Ok(Answered { answer: Answer::Decision { decision, .. }, by: AnsweredBy::Editor(_), .. }) => {
            assert_eq!(asked.accepted, Some(decision), "it ends as the editor was told");
        }
        Ok(Answered { answer: Answer::Decision { decision, .. }, by: AnsweredBy::Agent(_), .. }) => {
            assert_eq!(asked.accepted, None, "the answer of an editor was accepted, but lost");
            assert!(decision == Decision::Deny || (decision == Decision::AllowOnce && asked.agent_allowed));
        }
        Ok(other) => panic!("not an answer to this question: {other:?}"),
        Err(_) => assert_eq!(asked.accepted, None, "an answer was accepted, but lost"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_question_ends_in_exactly_one_way(
        ask_agent in prop::sample::select(vec!["without-editor", "always", "never"]),
        events in prop::collection::vec(event(), 1..40),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(replay(ask_agent, &events));
    }
}

/// Replays events on the real list of questions, and checks it after each.
async fn replay(ask_agent: &str, events: &[Event]) {
    let mut world = World::new(ask_agent);
    for event in events {
        world.apply(*event).await;
        world.check().await;
    }
    // Without an editor and without an agent that answers, a question does not even wait until it expires.
    world.open = Default::default();
    tokio::time::sleep(RETURN_TIME).await;
    world.check().await;
    for asked in world.asked.iter().filter(|asked| asked.waiting.is_some()) {
        assert!(asked.agent.answer.lock().unwrap().is_some(), "nobody is asked, but the question waits");
    }
    tokio::time::sleep(TIMEOUT).await;
    world.check().await;
    assert!(world.approvals.list().is_empty());
}

/// The orders that matter most, as an example: what an editor and an agent answer at the same moment.
#[tokio::test(start_paused = true)]
async fn of_two_answers_at_the_same_moment_the_first_counts() {
    for editor_first in [true, false] {
        let mut world = World::new("always");
        world.apply(Event::EditorOpens(0)).await;
        world.apply(Event::Ask { agent_can_ask: true }).await;
        world.check().await;
        let agent = Event::AgentAnswers(0, AgentAnswer::Allow);
        if editor_first {
            world.apply(Event::Answer(0, 0, Decision::Deny)).await;
            world.apply(agent).await;
        } else {
            world.apply(agent).await;
            world.apply(Event::Answer(0, 0, Decision::Deny)).await;
        }
        // The editor was told that its answer counts, so it does.
        assert_eq!(world.asked[0].accepted, Some(Decision::Deny));
        world.check().await;
    }
}

/// The owner of an answered question drops it late, when there is already another one.
#[tokio::test]
async fn the_owner_of_an_ended_question_does_not_withdraw_another() {
    let mut world = World::new("never");
    world.apply(Event::EditorOpens(0)).await;
    let server = ServerName::new("demo").unwrap();
    let open = || {
        let approval = question(&server, Kind::Tool, String::new(), &["allow-once", "deny"]);
        let id = approval.id.clone();
        (id, world.approvals.open(vec![approval.into()]).pop().unwrap().ok().unwrap())
    };
    let (first_id, first) = open();
    let reply = Reply { decision: "deny", ..Reply::default() };
    world.approvals.resolve(&[first_id], &reply, &Identity::default()).ok().unwrap();
    let (second_id, _second) = open();
    drop(first);
    assert_eq!(world.listed(), [second_id]);
}

/// A new editor is not taken for one that is gone, in which the user closed the question.
#[tokio::test(start_paused = true)]
async fn a_question_that_was_closed_in_an_editor_is_shown_in_the_next() {
    let mut world = World::new("never");
    for event in [Event::EditorOpens(0), Event::EditorOpens(1), Event::Ask { agent_can_ask: false }] {
        world.apply(event).await;
    }
    world.check().await;
    for event in [Event::Close(0, 1), Event::EditorCloses(1), Event::EditorOpens(1), Event::EditorCloses(0)] {
        world.apply(event).await;
    }
    tokio::time::sleep(RETURN_TIME * 2).await;
    world.check().await;
    assert_eq!(world.listed().len(), 1, "the second editor still shows it");
}

#[tokio::test(start_paused = true)]
async fn an_answer_counts_if_the_question_is_withdrawn_at_the_same_moment() {
    let mut world = World::new("never");
    world.apply(Event::EditorOpens(0)).await;
    world.apply(Event::Ask { agent_can_ask: false }).await;
    world.check().await;
    world.apply(Event::Answer(0, 0, Decision::AllowAlways)).await;
    world.apply(Event::Withdraw(0)).await;
    // Checks that it ends as the editor was told.
    world.check().await;
    assert_eq!((world.asked[0].accepted, world.asked[0].waiting.is_none()), (Some(Decision::AllowAlways), true));
}
