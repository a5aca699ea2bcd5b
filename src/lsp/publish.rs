//! Sends `mcp/…` notifications to editors that support them: the difference between two snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::editor::Editor;
use crate::engine::approvals::ClosedQuestion;
use crate::engine::snapshot::{OfferedTool, ServerView, Snapshot};
use crate::engine::{Engine, Notice};
use crate::model::{CallRecord, LogLine, ServerName};
use crate::protocol::answers::ApprovalList;
use crate::protocol::events::{
    AgentsChanged, ApprovalsChanged, CallFinished, ConfigReloaded, LogMessage, Notification, ResourceUpdated,
    ServerChanged, ServerRemoved, ToolsChanged,
};
use crate::protocol::types::{ClosedApproval, ServerStatus};

/// How long changes of what agents do are collected.
const AGENTS_DELAY: Duration = Duration::from_millis(200);
/// How long after a list of questions the next one is sent, for each question in it. Without this, the cost of many that
/// come together would grow with the square of their number.
const DELAY_PER_QUESTION: Duration = Duration::from_micros(100);

/// Runs until the editor disconnects.
pub async fn publish(engine: Engine, editor: Editor) {
    let mut snapshots = engine.snapshot();
    let mut approvals = engine.approvals().subscribe();
    let mut closed = engine.approvals().closed();
    let mut notices = engine.notices();
    let mut finished = engine.finished_calls();
    let mut agents = engine.agents().subscribe();
    let mut calls = engine.running_calls();
    let mut sent = SentState::default();
    let mut questions_due = Instant::now();
    // When to report what agents are doing: not with every call.
    let mut agents_due: Option<Instant> = None;
    // Calls of agents in other workspaces. Their records are written a moment later.
    let mut elsewhere: Vec<CallRecord> = Vec::new();
    if !agents.borrow().is_empty() {
        agents.mark_changed();
    }
    // A new editor does not know the current state yet.
    snapshots.mark_changed();
    if !approvals.borrow().is_empty() {
        approvals.mark_changed();
    }
    loop {
        tokio::select! {
            Ok(()) = snapshots.changed() => {
                let snapshot = snapshots.borrow_and_update().clone();
                for (method, params) in sent.difference(&snapshot) {
                    editor.send_notification(method, &params).await;
                }
            }
            Ok(()) = changed_after(questions_due, &mut approvals) => {
                let waiting = approvals.borrow_and_update().clone();
                questions_due = Instant::now() + DELAY_PER_QUESTION * waiting.len() as u32;
                let ApprovalList { approvals, groups } = ApprovalList::new(&engine, &waiting);
                let closed = read_closed(&mut closed);
                notify(&editor, &ApprovalsChanged { approvals, groups, closed }).await;
            }
            notice = notices.recv() => match notice {
                Ok(notice) => publish_notice(&editor, notice).await,
                // The editor misses events, but the snapshots above keep the state correct.
                Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "the editor reads too slowly"),
                Err(RecvError::Closed) => return,
            },
            finished = finished.recv() => {
                if let Some(record) = finished.ok().and_then(|finished| engine.elsewhere(finished)) {
                    elsewhere.push(record);
                    agents_due.get_or_insert_with(|| Instant::now() + AGENTS_DELAY);
                }
            }
            Ok(()) = agents.changed() => {
                agents.borrow_and_update();
                agents_due.get_or_insert_with(|| Instant::now() + AGENTS_DELAY);
            }
            Ok(()) = calls.changed() => {
                calls.borrow_and_update();
                if !agents.borrow().is_empty() {
                    agents_due.get_or_insert_with(|| Instant::now() + AGENTS_DELAY);
                }
            }
            () = tokio::time::sleep_until(agents_due.unwrap_or_else(Instant::now)), if agents_due.is_some() => {
                agents_due = None;
                let agents = agents.borrow().len();
                notify(&editor, &AgentsChanged { agents }).await;
                for record in elsewhere.drain(..) {
                    notify(&editor, &CallFinished(record.into())).await;
                }
            }
            () = editor.gone() => return,
        }
    }
}

/// Waits for a change, but not before this moment.
async fn changed_after<T>(moment: Instant, list: &mut watch::Receiver<T>) -> Result<(), watch::error::RecvError> {
    if moment > Instant::now() {
        tokio::time::sleep_until(moment).await;
    }
    list.changed().await
}

/// The questions that have ended since the last call. A reader that is too slow misses some.
fn read_closed(closed: &mut broadcast::Receiver<ClosedQuestion>) -> Vec<ClosedApproval> {
    let next = || loop {
        match closed.try_recv() {
            Ok(closed) => return Some(closed.into()),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
        }
    };
    std::iter::from_fn(next).collect()
}

async fn notify<N: Notification>(editor: &Editor, notification: &N) {
    editor.send_notification(N::METHOD, notification).await;
}

fn message<N: Notification>(notification: &N) -> (&'static str, Value) {
    (N::METHOD, serde_json::to_value(notification).unwrap_or_default())
}

async fn publish_notice(editor: &Editor, notice: Notice) {
    match notice {
        Notice::Log { server, line, .. } => {
            let LogLine { level, text, time, .. } = line;
            notify(editor, &LogMessage { server, level, text, time }).await;
        }
        Notice::Reloaded(reload) => notify(editor, &ConfigReloaded((&*reload).into())).await,
        Notice::CallFinished(record) => {
            notify(editor, &CallFinished(CallRecord::clone(&record).into())).await;
        }
        Notice::Unknown { .. } => {}
        Notice::ResourceUpdated { server, uri } => {
            notify(editor, &ResourceUpdated { server, uri }).await;
        }
    }
}

type Tools = BTreeMap<Arc<str>, Arc<OfferedTool>>;

/// What the editor already knows.
#[derive(Default)]
struct SentState {
    servers: BTreeMap<ServerName, (Arc<ServerView>, ServerStatus)>,
}

impl SentState {
    fn difference(&mut self, snapshot: &Snapshot) -> Vec<(&'static str, Value)> {
        let mut messages = Vec::new();
        self.servers.retain(|name, _| {
            let stays = snapshot.servers.contains_key(name);
            if !stays {
                messages.push(message(&ServerRemoved { name: name.clone() }));
            }
            stays
        });
        for (name, view) in &snapshot.servers {
            let before = self.servers.get(name);
            if before.is_some_and(|(before, _)| same(before, view)) {
                continue;
            }
            let server = ServerStatus::from(&**view);
            // The latency changes with every call. It is sent with the next change that matters.
            let without_latency = ServerStatus { latency_ms: None, ..server.clone() };
            if before.is_none_or(|(_, sent)| *sent != without_latency) {
                messages.push(message(&ServerChanged { server }));
            }
            let tools_before = before.map(|(before, _)| (before.tools.clone(), before.switched_on));
            let other_tools = match tools_before {
                Some((tools, on)) => {
                    let other = !same_tools(&tools, &view.tools) || on != view.switched_on;
                    other && !(tools.is_empty() && view.tools.is_empty())
                }
                None => !view.tools.is_empty(),
            };
            if other_tools {
                messages.push(message(&ToolsChanged { server: name.clone(), tools: view.shown_tools().count() }));
            }
            self.servers.insert(name.clone(), (view.clone(), without_latency));
        }
        messages
    }
}

/// Whether nothing visible about the tools has changed. They are created again whenever a rule changes.
fn same_tools(before: &Tools, after: &Tools) -> bool {
    let same =
        |one: &OfferedTool, other: &OfferedTool| Arc::ptr_eq(&one.tool, &other.tool) && one.ruling == other.ruling;
    before.len() == after.len() && before.values().zip(after.values()).all(|(one, other)| same(one, other))
}

/// A cheap check that nothing has changed. If it fails, the serialized states are compared.
fn same(before: &ServerView, after: &ServerView) -> bool {
    Arc::ptr_eq(&before.definition, &after.definition)
        && Arc::ptr_eq(&before.state, &after.state)
        && Arc::ptr_eq(&before.tools, &after.tools)
        && before.trust == after.trust
        && before.switched_on == after.switched_on
}
