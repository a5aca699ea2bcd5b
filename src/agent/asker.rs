//! Asks the user through the agent, in the way that the agent's protocol version supports.

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{CancelledNotificationParam, CustomRequest, ElicitationCapability, RequestId, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext};
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
            if !supported {
                return None;
            }
            let request = ServerRequest::CustomRequest(CustomRequest::new("elicitation/create", Some(params)));
            let mut request = peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok()?;
            let mut dialog = OpenDialog { peer, request: Some(request.id.clone()) };
            let answer = (&mut request.rx).await.ok();
            dialog.request = None;
            serde_json::to_value(answer?.ok()?).ok()
        }
        .boxed()
    }
}

/// A dialog of the agent. Dropping it before it is answered closes it: the question was answered elsewhere, or is no
/// longer asked.
struct OpenDialog {
    peer: Peer<RoleServer>,
    request: Option<RequestId>,
}

impl Drop for OpenDialog {
    fn drop(&mut self) {
        let Some(request_id) = self.request.take() else { return };
        let peer = self.peer.clone();
        let reason = Some("the question is no longer open".to_owned());
        let params = CancelledNotificationParam::new(Some(request_id), reason);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { peer.notify_cancelled(params).await });
        }
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
