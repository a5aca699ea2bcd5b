//! A simulated user, who follows sign-in pages and sends every form with sample values.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use reqwest::redirect::Policy;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::sample;
use crate::engine::Engine;
use crate::engine::approvals::{Kind, Reply};
use crate::engine::editors::{Abilities, Attachment, Editor, Identity, WebPage};
use crate::server::transport::net::{is_loopback, ready_tls};

/// How long a page may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// One redirect is needed, from the issuer to our own page.
const MAX_REDIRECTS: usize = 5;

pub struct SimulatedUser {
    _attachment: Attachment,
    _answering: AbortOnDropHandle<()>,
}

impl SimulatedUser {
    /// Answers questions until this is dropped.
    pub fn attach(engine: &Engine) -> Self {
        let abilities = Abilities { plugin: true, approvals: true, elicitation: true, ..Abilities::default() };
        let answering = tokio::spawn(answer_all(engine.clone()));
        Self {
            _attachment: engine.editors().attach(Arc::new(Browser { abilities, identity: Identity::default() })),
            _answering: AbortOnDropHandle::new(answering),
        }
    }
}

async fn answer_all(engine: Engine) {
    let mut questions = engine.approvals().subscribe();
    loop {
        let asked = questions.borrow_and_update().clone();
        for question in asked.iter().filter(|question| question.kind == Kind::Elicitation) {
            let content = question.schema.as_ref().and_then(Value::as_object).map(|schema| sample::of(schema).into());
            // Fails if the question was withdrawn in between.
            let reply = Reply { decision: "accept", content, ..Reply::default() };
            engine.resolve(std::slice::from_ref(&question.id), &reply, &Identity::default()).await.ok();
        }
        if questions.changed().await.is_err() {
            return;
        }
    }
}

struct Browser {
    abilities: Abilities,
    identity: Identity,
}

impl Editor for Browser {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn open_url(&self, page: WebPage) -> BoxFuture<'static, bool> {
        async move { visit(&page.url).await.is_ok_and(|page| page.status().is_success()) }.boxed()
    }
}

/// Follows redirects on this machine.
async fn visit(url: &str) -> reqwest::Result<reqwest::Response> {
    ready_tls();
    let local_only = Policy::custom(|attempt| {
        let is_local = attempt.url().host_str().is_some_and(is_loopback);
        if is_local && attempt.previous().len() <= MAX_REDIRECTS { attempt.follow() } else { attempt.stop() }
    });
    let browser = reqwest::Client::builder().redirect(local_only).timeout(PATIENCE).no_proxy().build()?;
    browser.get(url).send().await
}
