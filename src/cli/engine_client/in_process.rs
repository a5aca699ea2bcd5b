//! An engine in this process, for the time of one subcommand.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::{CommandError, Question, Questions, in_shell_terms};
use crate::engine::Engine;
use crate::engine::edit::NoBuffers;
use crate::engine::editors::{Abilities, Attachment, Editor};
use crate::engine::turns::Turn;
use crate::model::{Error, Result, ServerName};
use crate::protocol::errors::ErrorData;
use crate::protocol::types::Approval;
use crate::protocol::{self, commands::AnyCommand};
use crate::server::connection::Progress;

pub(super) async fn run(
    engine: &Engine,
    name: &str,
    params: Value,
    progress: Option<mpsc::Sender<Progress>>,
) -> Result<Value, CommandError> {
    let command = AnyCommand::parse(name, vec![params]).map_err(CommandError::from)?;
    let answer =
        protocol::run::run(engine, &NoBuffers, command, progress, Turn::default()).await.map_err(CommandError::from)?;
    serde_json::from_str(answer.get()).map_err(|error| Error::Io(error.to_string()).into())
}

/// Forwards changes and questions of the engine until the receivers are dropped.
pub(super) fn follow(engine: &Engine, changes: watch::Sender<u64>, questions: watch::Sender<Questions>) {
    let (mut snapshots, mut approvals) = (engine.snapshot(), engine.approvals().subscribe());
    tokio::spawn(async move {
        approvals.mark_changed();
        loop {
            tokio::select! {
                Ok(()) = snapshots.changed() => changes.send_modify(|count| *count += 1),
                Ok(()) = approvals.changed() => {
                    let waiting = approvals.borrow_and_update().clone();
                    let list: Vec<Approval> = waiting.iter().map(Into::into).collect();
                    let list = serde_json::to_value(list).unwrap_or_default();
                    questions.send_replace(Question::parse_list(list));
                }
                else => return,
            }
        }
    });
}

/// Asks questions of servers and of the policy in the terminal until the result is dropped.
pub(super) fn attach_terminal(engine: &Engine) -> Attachment {
    let abilities = Abilities { plugin: true, approvals: true, elicitation: true, ..Abilities::default() };
    engine.editors().attach(Arc::new(Terminal { abilities }))
}

/// The terminal as an editor: its user can answer questions and open pages.
struct Terminal {
    abilities: Abilities,
}

impl Editor for Terminal {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        let none = Error::NotFound("a terminal has no language model".to_owned());
        std::future::ready(Err(none)).boxed()
    }

    fn open_url(&self, url: String) -> BoxFuture<'static, bool> {
        std::future::ready(super::super::terminal::eprint(&format!("open this page in your browser: {url}\n")).is_ok())
            .boxed()
    }

    fn to_sdk(&self, _server: String, _message: Value) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let data = serde_json::to_value(ErrorData::from(&error)).unwrap_or_default();
        Self::from_wire(&in_shell_terms(&error.to_string()), &data)
    }
}
