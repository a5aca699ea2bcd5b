//! Asks the user through the agent, in the way that the agent's protocol version supports.

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CustomRequest, ElicitationCapability, ServerRequest};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::engine::asking::Asker;

/// A question, and where to send its answer.
pub struct Question {
    pub params: Value,
    pub answer: oneshot::Sender<Value>,
}

/// What an agent can ask its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElicitationModes {
    form: bool,
    url: bool,
}

impl ElicitationModes {
    /// `None` if the agent cannot ask at all.
    pub fn of(context: &RequestContext<RoleServer>) -> Option<Self> {
        let ElicitationCapability { form, url, .. } = context.client_capabilities()?.elicitation?;
        // In older versions of MCP there were only forms.
        Some(Self { form: form.is_some() || url.is_none(), url: url.is_some() })
    }

    fn support(self, params: &Value) -> bool {
        if params.get("url").is_some() { self.url } else { self.form }
    }
}

/// Before 2026-07-28, a server sends a request to the agent.
pub struct AskByRequest {
    pub peer: Peer<RoleServer>,
    pub modes: ElicitationModes,
    pub session: u64,
}

impl Asker for AskByRequest {
    fn session(&self) -> u64 {
        self.session
    }

    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>> {
        let (peer, supported) = (self.peer.clone(), self.modes.support(&params));
        async move {
            let request = CustomRequest::new("elicitation/create", Some(params));
            let answer = peer.send_request(ServerRequest::CustomRequest(request));
            let answer = if supported { answer.await.ok()? } else { return None };
            serde_json::to_value(answer).ok()
        }
        .boxed()
    }
}

/// Since 2026-07-28, the question is the result of the call, and the agent calls again with the answer.
pub struct AskByResult {
    pub questions: mpsc::Sender<Question>,
    pub modes: ElicitationModes,
    pub session: u64,
}

impl Asker for AskByResult {
    fn session(&self) -> u64 {
        self.session
    }

    fn elicit(&self, params: Value) -> BoxFuture<'static, Option<Value>> {
        let (questions, supported) = (self.questions.clone(), self.modes.support(&params));
        async move {
            if !supported {
                return None;
            }
            let (answer, answered) = oneshot::channel();
            questions.send(Question { params, answer }).await.ok()?;
            answered.await.ok()
        }
        .boxed()
    }
}
