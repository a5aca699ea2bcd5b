//! Approvals in an editor that has no prompt of its own for them: a message with buttons for each, one after another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tower_lsp::lsp_types::request::ShowMessageRequest;
use tower_lsp::lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};

use super::editor::Editor;
use crate::engine::Engine;
use crate::engine::approvals::{Approval, Kind};

/// How long a question has the screen for itself. Some editors never answer a message that the user closed, and a call
/// may not wait behind such a question until both have expired: after this time the next one is shown beside it.
const ALONE: Duration = Duration::from_secs(60);

/// Runs until the editor has gone. Closing the message of a call is a no to that call, unless another editor shows the
/// question in a prompt of its own; trust that is not given now may be given later.
pub async fn ask(engine: Engine, editor: Editor) {
    let mut approvals = engine.approvals().subscribe();
    let mut turns = Turns::default();
    let mut shown: BTreeMap<String, AbortHandle> = BTreeMap::new();
    let mut messages = JoinSet::new();
    loop {
        let waiting = approvals.borrow_and_update().clone();
        shown.retain(|id, message| {
            let waits = waiting.iter().any(|approval| approval.id == *id);
            if !waits {
                // Answered elsewhere, or too late: aborting takes the message off the screen where it can.
                message.abort();
            }
            waits
        });
        for approval in turns.next(&waiting, Instant::now()) {
            let message = messages.spawn(show(engine.clone(), editor.clone(), approval.clone()));
            shown.insert(approval.id.clone(), message);
        }
        let next_turn = turns.next_turn(&waiting);
        tokio::select! {
            changed = approvals.changed() => if changed.is_err() { return },
            Some(ended) = messages.join_next() => if let Ok(id) = ended { turns.end(&id) },
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

/// Two lines at one counter: a question about trust holds nobody up but its server and may stay for days, so it never
/// stands before one that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Line {
    Calls,
    Trust,
}

/// Who is asked when: in each line one after another, the oldest first.
#[derive(Default)]
struct Turns {
    /// The question whose turn it is, and until when.
    now: BTreeMap<Line, (String, Instant)>,
    /// Whoever has had a turn.
    had: BTreeSet<String>,
}

impl Turns {
    /// The questions whose turn begins now.
    fn next<'a>(&mut self, waiting: &'a [Approval], now: Instant) -> Vec<&'a Approval> {
        self.had.retain(|id| waiting.iter().any(|approval| approval.id == *id));
        self.now.retain(|_, (id, until)| *until > now && self.had.contains(id));
        let mut next = Vec::new();
        for line in [Line::Calls, Line::Trust] {
            if !self.now.contains_key(&line)
                && let Some(approval) = self.first(waiting, line)
            {
                self.now.insert(line, (approval.id.clone(), now + ALONE));
                self.had.insert(approval.id.clone());
                next.push(approval);
            }
        }
        next
    }

    /// When somebody's turn begins whatever happens.
    fn next_turn(&self, waiting: &[Approval]) -> Option<Instant> {
        let held = self.now.iter().filter(|(line, _)| self.first(waiting, **line).is_some());
        held.map(|(_, (_, until))| *until).min()
    }

    /// The message has been answered or closed.
    fn end(&mut self, id: &str) {
        self.now.retain(|_, (now, _)| now != id);
    }

    fn first<'a>(&self, waiting: &'a [Approval], line: Line) -> Option<&'a Approval> {
        waiting.iter().find(|approval| line_of(approval) == Some(line) && !self.had.contains(&approval.id))
    }
}

/// Buttons can say yes or no, but not fill in a form.
fn line_of(approval: &Approval) -> Option<Line> {
    match approval.kind {
        Kind::Tool => Some(Line::Calls),
        Kind::Trust => Some(Line::Trust),
        Kind::Elicitation if approval.schema.is_none() => Some(Line::Calls),
        Kind::Elicitation | Kind::Input => None,
    }
}

/// Shows one and carries the answer out; its id again when that is over.
async fn show(engine: Engine, editor: Editor, approval: Approval) -> String {
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
            (Some("deny"), Some("the question was closed".to_owned()))
        }
        _ => (None, None),
    };
    if let Some(option) = option
        && let Err(error) = engine.resolve(&approval.id, option, note, None)
    {
        tracing::debug!(%error, "answered elsewhere first");
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

    /// Who is asked at each step: `+` a second passes, `x!` the message about x is closed, else what waits.
    fn story(steps: &[&str]) -> String {
        let mut now = Instant::now();
        let mut turns = Turns::default();
        let mut waiting: Vec<Approval> = Vec::new();
        let mut told = Vec::new();
        for step in steps {
            match step.strip_suffix('!') {
                Some(id) => turns.end(id),
                None if *step == "+" => now += Duration::from_secs(61),
                None => waiting = step.split_whitespace().map(approval).collect(),
            }
            let asked: Vec<_> = turns.next(&waiting, now).iter().map(|approval| approval.id.clone()).collect();
            told.push(format!("{step}: {}", asked.join(" ")));
        }
        told.join("\n")
    }

    #[test]
    fn trust_is_asked_about_one_server_after_another() {
        insta::assert_snapshot!(story(&["t1 t2 t3", "t1 t2 t3", "t2 t3", "t2!", "t2 t3"]), @r"
        t1 t2 t3: t1
        t1 t2 t3: 
        t2 t3: t2
        t2!: t3
        t2 t3: 
        ");
    }

    #[test]
    fn a_call_does_not_wait_behind_a_question_of_trust_nor_for_ever_behind_another_call() {
        insta::assert_snapshot!(story(&["t1 c1 c2", "c1!", "t1 c2 c3", "+", "+"]), @r"
        t1 c1 c2: c1 t1
        c1!: c2
        t1 c2 c3: 
        +: c3
        +: 
        ");
    }
}
