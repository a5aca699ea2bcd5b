//! Putting a question to the user by way of the agent, in whichever way its era knows.

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, ElicitationCapability, ServerRequest};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::engine::asking::Asker;

/// A question that waits to be put, and where its answer goes.
pub struct Question {
    pub params: Value,
    pub answer: oneshot::Sender<Value>,
}

/// What an agent can ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    form: bool,
    url: bool,
}

impl Modes {
    /// `None` when it cannot ask at all.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let ElicitationCapability { form, url, .. } = context.client_capabilities()?.elicitation?;
        // Before there were two kinds, a form was meant.
        Some(Self { form: form.is_some() || url.is_none(), url: url.is_some() })
    }

    fn suit(self, params: &Value) -> bool {
        if params.get("url").is_some() { self.url } else { self.form }
    }
}

/// Before 2026-07-28 a server asks whenever it likes.
pub struct ByRequest {
    pub peer: Peer<RoleServer>,
    pub modes: Modes,
    pub session: u64,
}

impl Asker for ByRequest {
    fn session(&self) -> u64 {
        self.session
    }

    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>> {
        let (peer, suits) = (self.peer.clone(), self.modes.suit(&params));
        async move {
            let request = CustomRequest::new("elicitation/create", Some(params));
            let answer = peer.send_request(ServerRequest::CustomRequest(request));
            let answer = if suits { answer.await.ok()? } else { return None };
            serde_json::to_value(answer).ok()
        }
        .boxed()
    }
}

/// Since then it answers the call with the question, and the agent comes again with the answer.
pub struct ByAnswer {
    pub questions: mpsc::Sender<Question>,
    pub modes: Modes,
    pub session: u64,
}

impl Asker for ByAnswer {
    fn session(&self) -> u64 {
        self.session
    }

    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>> {
        let (questions, suits) = (self.questions.clone(), self.modes.suit(&params));
        async move {
            if !suits {
                return None;
            }
            let (answer, answered) = oneshot::channel();
            questions.send(Question { params, answer }).await.ok()?;
            answered.await.ok()
        }
        .boxed()
    }
}
