//! The person who is not there: follows a sign-in page by itself, and sends every form back as it was filled in.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::redirect::Policy;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::sample;
use crate::engine::Engine;
use crate::engine::approvals::Kind;
use crate::engine::editors::{Abilities, Attachment, Editor};
use crate::model::{Error, Result, ServerName};
use crate::server::transport::net::{is_loopback, ready_tls};

/// No page on this machine takes longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// From the issuer to our own page is one step; a few more do no harm.
const STEPS: usize = 5;

pub struct Person {
    _attachment: Attachment,
    _answering: AbortOnDropHandle<()>,
}

impl Person {
    /// Answers from now on, until this is dropped.
    pub fn attend(engine: &Engine) -> Self {
        let abilities = Abilities { plugin: true, approvals: true, elicitation: true, ..Abilities::default() };
        let answering = tokio::spawn(answer_all(engine.clone()));
        Self {
            _attachment: engine.editors().attach(Arc::new(Browser { abilities })),
            _answering: AbortOnDropHandle::new(answering),
        }
    }
}

async fn answer_all(engine: Engine) {
    let mut questions = engine.approvals().subscribe();
    loop {
        let asked = questions.borrow_and_update().clone();
        for question in asked.iter().filter(|question| question.kind == Kind::Elicitation) {
            let content = question.schema.as_ref().map(sample::of);
            // One that is gone by now was taken back.
            engine.resolve(&question.id, "accept", None, content).ok();
        }
        if questions.changed().await.is_err() {
            return;
        }
    }
}

struct Browser {
    abilities: Abilities,
}

impl Editor for Browser {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn sample(&self, _server: ServerName, _params: Value) -> BoxFuture<'static, Result<Value>> {
        let none = Error::NotFound("there is no model here".to_owned());
        std::future::ready(Err(none)).boxed()
    }

    fn open_url(&self, url: String) -> BoxFuture<'static, bool> {
        async move { visit(&url).await.is_ok_and(|page| page.status().is_success()) }.boxed()
    }

    fn to_sdk(&self, _server: String, _message: Value) -> BoxFuture<'static, bool> {
        std::future::ready(false).boxed()
    }
}

/// Goes where the page sends it, as long as that is on this machine.
async fn visit(url: &str) -> reqwest::Result<reqwest::Response> {
    ready_tls();
    let stay = Policy::custom(|attempt| {
        let near = attempt.url().host_str().is_some_and(is_loopback);
        if near && attempt.previous().len() <= STEPS { attempt.follow() } else { attempt.stop() }
    });
    let browser = reqwest::Client::builder().redirect(stay).timeout(PATIENCE).no_proxy().build()?;
    browser.get(url).send().await
}
