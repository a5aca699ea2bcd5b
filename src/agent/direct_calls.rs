//! Tool calls that bypass rmcp's loop, which costs two task switches for each request. They are checked and
//! answered by the same handler.

use std::sync::{Arc, OnceLock};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetExtensions, GetMeta, JsonRpcMessage, JsonRpcRequest, ServerJsonRpcMessage,
};
use rmcp::service::{Peer, RequestContext};
use tokio_util::sync::CancellationToken;

use super::handler::Handler;
use super::outbox::Outbox;
use super::pending_responses::PendingResponses;

/// Handles the calls of one agent, once its session has begun.
#[derive(Default)]
pub struct DirectCalls(OnceLock<Session>);

struct Session {
    handler: Arc<Handler>,
    peer: Peer<RoleServer>,
}

impl DirectCalls {
    /// The session has begun.
    pub fn begin(&self, handler: Arc<Handler>, peer: Peer<RoleServer>) {
        self.0.set(Session { handler, peer }).ok();
    }

    /// Starts a call. Returns every other message.
    pub fn start(
        &self,
        message: ClientJsonRpcMessage,
        outbox: &Outbox,
        pending: &PendingResponses,
    ) -> Option<ClientJsonRpcMessage> {
        let Some(Session { handler, peer }) = self.0.get() else { return Some(message) };
        let (id, mut request) = match message {
            JsonRpcMessage::Request(JsonRpcRequest { id, request, .. })
                if matches!(request, ClientRequest::CallToolRequest(_)) =>
            {
                (id, request)
            }
            message => return Some(message),
        };
        let mut context = RequestContext::new(id.clone(), peer.clone());
        context.meta = std::mem::take(request.get_meta_mut());
        context.extensions = std::mem::take(request.extensions_mut());
        let ClientRequest::CallToolRequest(call) = request else { return None };
        let cancel = CancellationToken::new();
        context.ct = cancel.clone();
        pending.set_cancel(&id, cancel);
        let (handler, outbox, pending) = (handler.clone(), outbox.clone(), pending.clone());
        tokio::spawn(async move {
            let result = handler.call(call.params, context).await;
            // It was cancelled if it is no longer open. Then there is no response.
            let Some(closed) = pending.take(&id) else { return };
            let message = match result {
                Ok(result) => ServerJsonRpcMessage::response(result.into(), id),
                Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
            };
            outbox.respond(&message, Some(closed)).ok();
        });
        None
    }
}
