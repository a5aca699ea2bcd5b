//! Approvals in an editor without a prompt for them: one message with buttons at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::editor::Editor;
use crate::engine::Engine;
use crate::engine::approvals::{Approval, Kind};

/// How long a message is shown alone. Some editors never answer a message that the user closed, and the next call must
/// not wait until it expires: after this time the next message is shown as well.
const SHOWN_ALONE: Duration = Duration::from_secs(60);

/// Runs until the editor disconnects. Closing the message of a call denies the call, unless another editor shows the
/// approval in its own prompt. Closing a message about trust decides nothing: the user can still trust the server later.
pub async fn show_approvals(engine: Engine, editor: Editor) {
    let mut approvals = engine.approvals().subscribe();
    let mut schedule = Schedule::default();
    let mut shown: BTreeMap<String, AbortHandle> = BTreeMap::new();
    let mut messages = JoinSet::new();
    loop {
        let waiting = approvals.borrow_and_update().clone();
        shown.retain(|id, message| {
            let waits = waiting.iter().any(|approval| approval.id == *id);
            if !waits {
                // Answered elsewhere, or expired. Aborting removes the message if the editor supports it.
                message.abort();
            }
            waits
        });
        for approval in schedule.next(&waiting, Instant::now()) {
            let message = messages.spawn(show_message(engine.clone(), editor.clone(), approval.clone()));
            shown.insert(approval.id.clone(), message);
        }
        let next_turn = schedule.next_turn(&waiting);
        tokio::select! {
            changed = approvals.changed() => if changed.is_err() { return },
            Some(ended) = messages.join_next() => if let Ok(id) = ended { schedule.end(&id) },
            () = until(next_turn) => {}
            () = editor.gone() => return,
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// A message about trust blocks only its own server and may stay open for days, so it must not delay a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Queue {
    Calls,
    Trust,
}

/// When each message is shown: one at a time per queue, oldest first.
#[derive(Default)]
struct Schedule {
    /// The approval that is shown alone, and until when.
    current: BTreeMap<Queue, (String, Instant)>,
    /// The approvals that have been shown.
    shown: BTreeSet<String>,
}

impl Schedule {
    /// The approvals to show now.
    fn next<'a>(&mut self, waiting: &'a [Approval], now: Instant) -> Vec<&'a Approval> {
        self.shown.retain(|id| waiting.iter().any(|approval| approval.id == *id));
        self.current.retain(|_, (id, until)| *until > now && self.shown.contains(id));
        let mut next = Vec::new();
        for queue in [Queue::Calls, Queue::Trust] {
            if !self.current.contains_key(&queue)
                && let Some(approval) = self.first(waiting, queue)
            {
                self.current.insert(queue, (approval.id.clone(), now + SHOWN_ALONE));
                self.shown.insert(approval.id.clone());
                next.push(approval);
            }
        }
        next
    }

    /// When the next message is shown at the latest.
    fn next_turn(&self, waiting: &[Approval]) -> Option<Instant> {
        let blocking = self.current.iter().filter(|(queue, _)| self.first(waiting, **queue).is_some());
        blocking.map(|(_, (_, until))| *until).min()
    }

    /// The message was answered or closed.
    fn end(&mut self, id: &str) {
        self.current.retain(|_, (now, _)| now != id);
    }

    fn first<'a>(&self, waiting: &'a [Approval], queue: Queue) -> Option<&'a Approval> {
        waiting.iter().find(|approval| queue_of(approval) == Some(queue) && !self.shown.contains(&approval.id))
    }
}

/// `None` for forms: buttons cannot fill them in.
fn queue_of(approval: &Approval) -> Option<Queue> {
    match approval.kind {
        Kind::Tool => Some(Queue::Calls),
        Kind::Trust => Some(Queue::Trust),
        Kind::Elicitation if approval.schema.is_none() => Some(Queue::Calls),
        Kind::Elicitation | Kind::Input => None,
    }
}

/// Shows one approval and applies the answer. Returns its id.
async fn show_message(engine: Engine, editor: Editor, approval: Approval) -> String {
    let title = |option: &str| MessageActionItem { title: label(option).to_owned(), properties: Default::default() };
    let params = ShowMessageRequestParams {
        typ: MessageType::WARNING,
        message: text(&approval),
        actions: Some(approval.options.iter().map(|option| title(option)).collect()),
    };
    let answer = editor.request::<ShowMessageRequest>(&params).await;
    let (option, note) = match answer {
        Ok(Some(chosen)) => (approval.options.iter().copied().find(|option| label(option) == chosen.title), None),
        Ok(None) if approval.kind == Kind::Tool && engine.editors().any(|able| able.approvals).is_none() => {
            (Some("deny"), Some("the message was closed".to_owned()))
        }
        _ => (None, None),
    };
    if let Some(option) = option
        && let Err(error) = engine.resolve(&approval.id, option, note, None)
    {
        tracing::debug!(%error, "the approval was already answered");
    }
    approval.id
}

fn text(approval: &Approval) -> String {
    let mut text = approval.title.clone();
    for part in [Some(&approval.detail), approval.diff.as_ref(), approval.url.as_ref()].into_iter().flatten() {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(part);
        }
    }
    if let Some(arguments) = &approval.arguments {
        let shown = serde_json::to_string_pretty(arguments).unwrap_or_default();
        text.push('\n');
        text.push_str(&crate::text::visible(&shown, usize::MAX));
    }
    text
}

fn label(option: &str) -> &'static str {
    match option {
        "allow-once" => "Allow once",
        "allow-session" => "Allow for this session",
        "allow-project" => "Allow for this project",
        "allow-always" => "Always allow",
        "deny" => "Deny",
        "disable" => "Disable this tool",
        "accept" => "Accept",
        "decline" => "Decline",
        _ => "Cancel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Requester, ServerName, Timestamp};

    fn approval(id: &str) -> Approval {
        Approval {
            id: id.to_owned(),
            kind: if id.starts_with('t') { Kind::Trust } else { Kind::Tool },
            server: ServerName::new("a").unwrap(),
            tool: None,
            arguments: None,
            title: String::new(),
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

    /// What is shown after each step: `+` a minute passes, `x!` message x is closed, anything else lists what waits.
    fn messages(steps: &[&str]) -> String {
        let mut now = Instant::now();
        let mut schedule = Schedule::default();
        let mut waiting: Vec<Approval> = Vec::new();
        let mut lines = Vec::new();
        for step in steps {
            match step.strip_suffix('!') {
                Some(id) => schedule.end(id),
                None if *step == "+" => now += Duration::from_secs(61),
                None => waiting = step.split_whitespace().map(approval).collect(),
            }
            let shown: Vec<_> = schedule.next(&waiting, now).iter().map(|approval| approval.id.clone()).collect();
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
}
