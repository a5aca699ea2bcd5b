//! When each question is shown as a message: one at a time, and several of a group as one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::approvals::{Approval, Group, Kind};

/// How long a message is shown alone. Some editors never answer a message that the user closed, and the next question
/// must not wait for that: after this time the next message is shown as well.
const SHOWN_ALONE: Duration = Duration::from_secs(1);
/// When a message is shown again that the editor could not show next to another one.
const RETRY: Duration = Duration::from_secs(5);

/// A message about trust blocks only its own server and may stay open for days, so it must not delay a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    Calls,
    Trust,
}

/// What one message asks: one question, or several of a group.
#[derive(Clone)]
pub struct Message {
    pub approvals: Vec<Arc<Approval>>,
    pub group: Option<Group>,
}

/// A message that is no longer shown.
pub struct EndedMessage {
    pub ids: Vec<String>,
    pub how: HowEnded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowEnded {
    /// Answered or closed.
    Done,
    /// The user wants a message for each question.
    OneByOne,
    /// The editor returned an error. Some do that because they show one message at a time.
    Failed,
}

impl Message {
    pub fn one(approval: &Arc<Approval>) -> Self {
        Self { approvals: vec![approval.clone()], group: None }
    }

    pub fn ids(&self) -> Vec<String> {
        self.approvals.iter().map(|approval| approval.id.clone()).collect()
    }
}

/// When each message is shown: one at a time per queue, oldest first.
#[derive(Default)]
pub struct Schedule {
    /// The approvals that are shown alone, and until when.
    current: BTreeMap<Queue, (Vec<String>, Instant)>,
    /// The approvals that have been shown.
    shown: BTreeSet<String>,
    /// Those that the user wants to see one by one.
    one_by_one: BTreeSet<String>,
    /// Those that the editor could not show next to another message, and when they are shown again.
    postponed: BTreeMap<String, Instant>,
}

impl Schedule {
    /// The messages to show now.
    pub fn next(
        &mut self,
        waiting: &[Arc<Approval>],
        groups_of: impl Fn(&[Arc<Approval>]) -> Vec<Group>,
        now: Instant,
    ) -> Vec<Message> {
        let waits = |id: &String| waiting.iter().any(|approval| approval.id == *id);
        self.shown.retain(waits);
        self.one_by_one.retain(waits);
        self.postponed.retain(|id, until| *until > now && waits(id));
        self.current.retain(|_, (ids, until)| *until > now && ids.iter().any(|id| self.shown.contains(id)));
        let mut next = Vec::new();
        for queue in [Queue::Calls, Queue::Trust] {
            if !self.current.contains_key(&queue)
                && let Some(first) = self.first(waiting, queue)
            {
                let message = self.message(first, waiting, &groups_of);
                self.shown.extend(message.ids());
                self.current.insert(queue, (message.ids(), now + SHOWN_ALONE));
                next.push(message);
            }
        }
        next
    }

    /// A question, together with those of its group that have not been shown.
    fn message(
        &self,
        first: &Arc<Approval>,
        waiting: &[Arc<Approval>],
        groups_of: impl Fn(&[Arc<Approval>]) -> Vec<Group>,
    ) -> Message {
        let is_new = |approval: &&Arc<Approval>| self.is_next(approval) && !self.one_by_one.contains(&approval.id);
        let new: Vec<Arc<Approval>> = waiting.iter().filter(is_new).cloned().collect();
        match groups_of(&new).into_iter().find(|group| group.ids.contains(&first.id)) {
            Some(group) => {
                let find = |id: &String| new.iter().find(|approval| approval.id == *id).cloned();
                Message { approvals: group.ids.iter().filter_map(find).collect(), group: Some(group) }
            }
            None => Message::one(first),
        }
    }

    /// When the next message is shown at the latest.
    pub fn next_turn(&self, waiting: &[Arc<Approval>]) -> Option<Instant> {
        let blocking = self.current.iter().filter(|(queue, _)| self.first(waiting, **queue).is_some());
        blocking.map(|(_, (_, until))| *until).chain(self.postponed.values().copied()).min()
    }

    /// `is_alone` says that no other message is shown.
    pub fn end(&mut self, ended: &EndedMessage, is_alone: bool, now: Instant) {
        self.current.retain(|_, (ids, _)| *ids != ended.ids);
        match ended.how {
            HowEnded::Failed if !is_alone => {
                self.shown.retain(|id| !ended.ids.contains(id));
                self.postponed.extend(ended.ids.iter().map(|id| (id.clone(), now + RETRY)));
            }
            HowEnded::OneByOne => {
                self.shown.retain(|id| !ended.ids.contains(id));
                self.one_by_one.extend(ended.ids.iter().cloned());
                self.postponed.clear();
            }
            HowEnded::Done | HowEnded::Failed => self.postponed.clear(),
        }
    }

    fn first<'a>(&self, waiting: &'a [Arc<Approval>], queue: Queue) -> Option<&'a Arc<Approval>> {
        waiting.iter().find(|approval| queue_of(approval) == Some(queue) && self.is_next(approval))
    }

    /// Whether it is neither shown nor postponed.
    fn is_next(&self, approval: &Approval) -> bool {
        !self.shown.contains(&approval.id) && !self.postponed.contains_key(&approval.id)
    }
}

/// `None` for forms: see `form_messages`.
pub fn queue_of(approval: &Approval) -> Option<Queue> {
    match approval.kind {
        Kind::Tool => Some(Queue::Calls),
        Kind::Trust => Some(Queue::Trust),
        Kind::Elicitation if approval.schema.is_none() => Some(Queue::Calls),
        Kind::Elicitation | Kind::Input => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::approvals::Origin;
    use crate::model::{Requester, ServerName, Timestamp};

    fn approval(id: &str) -> Approval {
        Approval {
            id: id.to_owned(),
            kind: if id.starts_with('t') { Kind::Trust } else { Kind::Tool },
            origin: Origin::default(),
            group: None,
            server: ServerName::new("a").unwrap(),
            tool: None,
            about: None,
            arguments: None,
            title: String::new(),
            summary: String::new(),
            detail: String::new(),
            annotations: None,
            requester: Requester::default(),
            options: vec!["deny"],
            diff: None,
            change: None,
            schema: None,
            url: None,
            created_at: Timestamp::now(),
            expires_at: Timestamp::now(),
        }
    }

    /// Those with a `g` in their id are a group.
    fn groups_of(approvals: &[Arc<Approval>]) -> Vec<Group> {
        let ids: Vec<String> = approvals.iter().map(|each| each.id.clone()).filter(|id| id.contains('g')).collect();
        let group = Group { id: String::new(), kind: Kind::Trust, title: String::new(), ids, answers: Vec::new() };
        if group.ids.len() > 1 { vec![group] } else { Vec::new() }
    }

    /// What is shown after each step: `+` and `++` some time passes, `x!` message x is closed, `x?` the user wants to see
    /// its questions one by one, `x/` the editor cannot show x now, anything else lists what waits.
    fn messages(steps: &[&str]) -> String {
        let mut now = Instant::now();
        let mut schedule = Schedule::default();
        let mut waiting: Vec<Arc<Approval>> = Vec::new();
        let mut lines = Vec::new();
        for step in steps {
            let ids = |text: &str| text.split('+').map(str::to_owned).collect();
            match (step.strip_suffix('!'), step.strip_suffix('?')) {
                (Some(closed), _) => schedule.end(&EndedMessage { ids: ids(closed), how: HowEnded::Done }, true, now),
                (_, Some(closed)) => {
                    schedule.end(&EndedMessage { ids: ids(closed), how: HowEnded::OneByOne }, true, now)
                }
                _ if step.ends_with('/') => {
                    let ids = ids(step.trim_end_matches('/'));
                    schedule.end(&EndedMessage { ids, how: HowEnded::Failed }, false, now);
                }
                _ if *step == "+" => now += SHOWN_ALONE,
                _ if *step == "++" => now += RETRY,
                _ => waiting = step.split_whitespace().map(|id| Arc::new(approval(id))).collect(),
            }
            let shown: Vec<_> =
                schedule.next(&waiting, groups_of, now).iter().map(|each| each.ids().join("+")).collect();
            lines.push(format!("{step}: {}", shown.join(" ")));
        }
        lines.join("\n")
    }

    #[test]
    fn messages_about_trust_are_shown_one_at_a_time() {
        insta::assert_snapshot!(messages(&["t1 t2 t3", "t1 t2 t3", "t2 t3", "t2!", "t2 t3"]), @r"
        t1 t2 t3: t1
        t1 t2 t3: 
        t2 t3: t2
        t2!: t3
        t2 t3: 
        ");
    }

    #[test]
    fn a_call_waits_neither_for_trust_nor_forever_for_another_call() {
        insta::assert_snapshot!(messages(&["t1 c1 c2", "c1!", "t1 c2 c3", "+", "+"]), @r"
        t1 c1 c2: c1 t1
        c1!: c2
        t1 c2 c3: 
        +: c3
        +: 
        ");
    }

    #[test]
    fn a_message_that_finds_no_room_is_shown_again_later_or_when_another_is_closed() {
        insta::assert_snapshot!(messages(&["c1 c2", "+", "c2/", "+", "++", "c2/", "c1!", "c2"]), @r"
        c1 c2: c1
        +: c2
        c2/: 
        +: 
        ++: c2
        c2/: 
        c1!: c2
        c2: 
        ");
    }

    #[test]
    fn a_group_is_one_message_unless_the_user_wants_to_see_its_questions_one_by_one() {
        let steps = ["tg1 t2 tg3", "tg1+tg3?", "tg1!", "tg4 t2 tg3 tg5", "t2!", "tg4+tg5!"];
        insta::assert_snapshot!(messages(&steps), @r"
        tg1 t2 tg3: tg1+tg3
        tg1+tg3?: tg1
        tg1!: t2
        tg4 t2 tg3 tg5: 
        t2!: tg4+tg5
        tg4+tg5!: tg3
        ");
    }
}
