//! An engine of the subcommand's own, in this process.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::{Failure, News, Question, shell_words};
use crate::engine::Engine;
use crate::engine::edit::NoBuffers;
use crate::engine::editors::{Abilities, Attachment, Editor};
use crate::engine::turns::Turn;
use crate::model::{Error, Result, ServerName};
use crate::protocol::errors::ErrorData;
use crate::protocol::{self, commands::AnyCommand};
use crate::server::connection::Progress;

pub(super) async fn run(
    engine: &Engine,
    name: &str,
    params: Value,
    progress: Option<mpsc::Sender<Progress>>,
) -> Result<Value, Failure> {
    let command = AnyCommand::parse(name, vec![params]).map_err(Failure::from)?;
    let answer =
        protocol::run::run(engine, &NoBuffers, command, progress, Turn::default()).await.map_err(Failure::from)?;
    serde_json::from_str(answer.get()).map_err(|error| Error::Io(error.to_string()).into())
}

/// Passes on what happens in the engine, for as long as somebody listens.
pub(super) fn follow(engine: &Engine, changes: watch::Sender<u64>, questions: watch::Sender<News>) {
    let (mut pictures, mut approvals) = (engine.snapshot(), engine.approvals().subscribe());
    tokio::spawn(async move {
        approvals.mark_changed();
        loop {
            tokio::select! {
                Ok(()) = pictures.changed() => changes.send_modify(|count| *count += 1),
                Ok(()) = approvals.changed() => {
                    let list = json!(**approvals.borrow_and_update());
                    questions.send_replace(Question::read(list));
                }
                else => return,
            }
        }
    });
}

/// From now on, until this is dropped, questions of servers and of the policy are put to the terminal.
pub(super) fn attend(engine: &Engine) -> Attachment {
    let abilities = Abilities { plugin: true, approvals: true, elicitation: true, ..Abilities::default() };
    engine.editors().attach(Arc::new(Person { abilities }))
}

/// A person at a terminal, who can answer questions and open pages.
struct Person {
    abilities: Abilities,
}

impl Editor for Person {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        let none = Error::NotFound("there is no model at a terminal".to_owned());
        std::future::ready(Err(none)).boxed()
    }

    fn open_url(&self, url: String) -> BoxFuture<'static, bool> {
        std::future::ready(super::super::terminal::say(&format!("open this page: {url}\n")).is_ok()).boxed()
    }

    fn to_sdk(&self, _server: String, _message: Value) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let data = serde_json::to_value(ErrorData::from(&error)).unwrap_or_default();
        Self::told(&shell_words(&error.to_string()), &data)
    }
}
