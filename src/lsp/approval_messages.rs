//! Approvals in an editor without a prompt for them: one message with buttons at a time, and one for each group.

use std::sync::Arc;

use lsp_types::notification::ShowMessage;
use lsp_types::request::{Request, ShowMessageRequest};
use lsp_types::{MessageActionItem, MessageType, ShowMessageParams, ShowMessageRequestParams};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::approval_schedule::{EndedMessage, HowEnded, Message, Schedule, queue_of};
use super::approval_text::{Button, one, several, undo};
use super::editor::{AskError, Editor};
use super::form_messages;
use super::session::EditorSession;
use crate::engine::Engine;
use crate::engine::approvals::{Approval, Reply};
use crate::engine::editors::Identity;
use crate::model::{Error, Result};
use crate::protocol::answers::{Done, Resolved};
use crate::protocol::commands::ApprovalShow;
use crate::protocol::run::{Answer, answer};

/// The first button. Some editors preselect it, so it grants nothing and nothing of it is remembered.
pub(super) const NOT_NOW: &str = "Not now";
/// The code of JSON-RPC for a method that the editor does not have.
const METHOD_NOT_FOUND: i64 = -32601;

/// The editor that shows the messages.
#[derive(Clone)]
pub struct ShownIn {
    /// Its number among the attached editors.
    pub id: u64,
    pub identity: Identity,
    pub editor: Editor,
}

impl ShownIn {
    /// The user closed a message about these questions.
    fn close(&self, engine: &Engine, ids: &[String]) {
        ids.iter().for_each(|question| engine.approvals().close(question, self.id, &self.identity));
    }
}

/// Runs until the editor disconnects. Closing the message of a call denies the call, unless another editor shows the
/// approval. Closing a message about trust decides nothing: the user can still trust the server later.
pub async fn show_approvals(engine: Engine, shown_in: ShownIn) {
    let mut approvals = engine.approvals().subscribe();
    let mut schedule = Schedule::default();
    let mut shown: Vec<ShownMessage> = Vec::new();
    let mut messages = JoinSet::new();
    loop {
        let waiting = approvals.borrow_and_update().clone();
        let waiting = engine.approvals().shown_here(&waiting);
        shown.retain(|message| {
            let waits = waiting.iter().any(|approval| message.ids.contains(&approval.id));
            if !waits {
                message.ended.cancel();
            }
            waits
        });
        let groups_of = |approvals: &[Arc<Approval>]| engine.approval_groups(approvals);
        for message in schedule.next(&waiting, groups_of, Instant::now()) {
            let (ids, ended) = (message.ids(), CancellationToken::new());
            let task = messages.spawn(show_message(engine.clone(), shown_in.clone(), message, ended.clone()));
            shown.push(ShownMessage { ids, ended, task });
        }
        let next_turn = schedule.next_turn(&waiting);
        tokio::select! {
            changed = approvals.changed() => if changed.is_err() { return },
            Some(ended) = messages.join_next() => if let Ok(ended) = ended {
                // Without another message in its way, an editor that fails to show one has closed it.
                let is_alone = shown.iter().all(|message| message.task.is_finished());
                if ended.how == HowEnded::Failed && is_alone {
                    shown_in.close(&engine, &ended.ids);
                }
                schedule.end(&ended, is_alone, Instant::now());
            },
            () = until(next_turn) => {}
            () = shown_in.editor.gone() => return,
        }
    }
}

/// A message whose question waits.
struct ShownMessage {
    ids: Vec<String>,
    /// Answered elsewhere, expired or withdrawn. Then the message is removed if the editor supports that.
    ended: CancellationToken,
    task: AbortHandle,
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Shows a question again, because the user asked for it.
pub async fn show(session: &Arc<EditorSession>, id: &str) -> Result<Answer> {
    let approvals = session.engine.approvals();
    let waiting = approvals.shown_here(&approvals.list());
    let found = waiting.iter().find(|approval| approval.id == id && can_show(approval));
    let (Some(approval), Some(shown_in)) = (found, session.shown_in.get()) else {
        return Err(Error::NotFound(format!("no question with the id `{id}` can be shown here")));
    };
    approvals.show_again(id, shown_in.id);
    if form_messages::is_form(approval) {
        tokio::spawn(form_messages::ask(session.clone(), approval.clone()));
        return answer::<ApprovalShow>(Done {});
    }
    let (engine, shown_in, message) = (session.engine.clone(), shown_in.clone(), Message::one(approval));
    tokio::spawn(async move {
        let ended = show_message(engine.clone(), shown_in.clone(), message, CancellationToken::new()).await;
        if ended.how == HowEnded::Failed {
            shown_in.close(&engine, &ended.ids);
        }
    });
    answer::<ApprovalShow>(Done {})
}

/// Whether a message can answer it.
pub fn can_show(approval: &Approval) -> bool {
    queue_of(approval).is_some() || form_messages::is_form(approval)
}

/// Shows a message and applies the answer. Some editors keep a message whose question has `ended`: an answer to it has no
/// effect, and the user is told so.
async fn show_message(engine: Engine, shown_in: ShownIn, message: Message, ended: CancellationToken) -> EndedMessage {
    let ShownIn { id, identity, editor } = &shown_in;
    let ids = message.ids();
    let (text, buttons) = match &message {
        Message { approvals, group: Some(group) } => several(group, approvals),
        Message { approvals, group: None } => one(approvals),
    };
    let button = |title: &str| MessageActionItem { title: title.to_owned(), properties: Default::default() };
    let titles = std::iter::once(NOT_NOW).chain(buttons.iter().map(|(title, _)| title.as_str()));
    let params = ShowMessageRequestParams {
        typ: MessageType::WARNING,
        message: text,
        actions: Some(titles.map(button).collect()),
    };
    let answer: Result<Option<MessageActionItem>, _> =
        editor.send_request_until(ShowMessageRequest::METHOD, &params, ended.cancelled()).await;
    let chosen = match &answer {
        Ok(Some(chosen)) => buttons.iter().find(|(title, _)| *title == chosen.title).map(|(_, button)| *button),
        _ => None,
    };
    match (chosen, answer) {
        (Some(Button::OneByOne), _) => return EndedMessage { ids, how: HowEnded::OneByOne },
        (Some(Button::Decide(decision)), _) => {
            let feedback = match engine.resolve(&ids, &Reply { decision, ..Reply::default() }, identity).await {
                Ok((resolved, not_saved)) => {
                    let answered = Resolved::new(&engine, resolved, decision, not_saved.as_deref());
                    answered.effect.map(|effect| {
                        let undo = answered.undo.map(|_| undo(&message.approvals, decision)).unwrap_or_default();
                        (MessageType::INFO, format!("{effect} {undo}"))
                    })
                }
                Err(error) => {
                    let why = match error {
                        Error::NotFound(_) => {
                            "the question was already answered, has expired or was withdrawn".to_owned()
                        }
                        error => error.to_string(),
                    };
                    Some((MessageType::WARNING, format!("Your answer had no effect: {why}.")))
                }
            };
            if let Some((typ, message)) = feedback {
                let message = format!("mcp-sidecar: {}", message.trim_end());
                editor.notify::<ShowMessage>(&ShowMessageParams { typ, message }).await;
            }
        }
        // The engine waits a moment for the editor to come back.
        (None, Err(AskError::Gone)) => {}
        (None, Err(AskError::Refused(error))) if error.code.code() == METHOD_NOT_FOUND => {
            if engine.editors().cannot_ask(*id) {
                let message = "mcp-sidecar: this editor cannot show questions. To answer them, install the plugin for \
                               your editor, or run `mcp-sidecar approvals` in a terminal."
                    .to_owned();
                editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::WARNING, message }).await;
            }
        }
        (None, Err(AskError::Refused(_))) => return EndedMessage { ids, how: HowEnded::Failed },
        // "Not now", no button, or a button that we did not offer: the message is closed.
        (None, _) => shown_in.close(&engine, &ids),
    }
    EndedMessage { ids, how: HowEnded::Done }
}
