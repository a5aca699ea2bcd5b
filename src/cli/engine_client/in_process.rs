//! An engine in this process, for the time of one subcommand.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::super::terminal;
use super::Questions;
use crate::engine::Engine;
use crate::engine::edit::NoBuffers;
use crate::engine::editors::{Abilities, Attachment, Editor, Identity, Page, SHELL};
use crate::engine::turns::Turn;
use crate::model::{Error, Result, ServerName};
use crate::protocol;
use crate::protocol::answers::ApprovalList;
use crate::protocol::commands::Command;
use crate::protocol::events::ApprovalsChanged;
use crate::server::connection::Progress;

pub(super) async fn call<C: Command>(
    engine: &Engine,
    command: C,
    progress: Option<mpsc::Sender<Progress>>,
) -> Result<C::Answer> {
    let (command, shell) = (command.into(), shell());
    protocol::run::check(&command, &shell)?;
    let answer = protocol::run::run(engine, &NoBuffers, &shell, command, progress, Turn::default()).await?;
    serde_json::from_str(answer.get()).map_err(|error| Error::Io(error.to_string()))
}

/// Forwards changes and questions of the engine until the receivers are dropped.
pub(super) fn follow(engine: &Engine, changes: watch::Sender<u64>, questions: watch::Sender<Questions>) {
    let (mut snapshots, mut approvals) = (engine.snapshot(), engine.approvals().subscribe());
    let engine = engine.clone();
    tokio::spawn(async move {
        approvals.mark_changed();
        loop {
            tokio::select! {
                Ok(()) = snapshots.changed() => changes.send_modify(|count| *count += 1),
                Ok(()) = approvals.changed() => {
                    let waiting = approvals.borrow_and_update().clone();
                    let ApprovalList { approvals, groups } = ApprovalList::new(&engine, &waiting);
                    questions.send_replace(Arc::new(ApprovalsChanged { approvals, groups, closed: Vec::new() }));
                }
                else => return,
            }
        }
    });
}

/// Asks questions of servers and of the policy in the terminal until the result is dropped.
pub(super) fn attach_terminal(engine: &Engine) -> Attachment {
    let abilities = Abilities { plugin: true, approvals: true, elicitation: true, ..Abilities::default() };
    engine.editors().attach(Arc::new(Terminal { abilities, identity: shell() }))
}

fn shell() -> Identity {
    Identity { name: Some(SHELL.to_owned()), ..Identity::default() }.checked(Some(std::process::id()))
}

/// The terminal as an editor: its user can answer questions and open pages.
struct Terminal {
    abilities: Abilities,
    identity: Identity,
}

impl Editor for Terminal {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        let none = Error::NotFound("a terminal has no language model".to_owned());
        std::future::ready(Err(none)).boxed()
    }

    fn open_url(&self, page: Page) -> BoxFuture<'static, bool> {
        std::future::ready(terminal::show_page(&page.url)).boxed()
    }

    fn to_sdk(&self, _server: String, _message: Value) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }
}
