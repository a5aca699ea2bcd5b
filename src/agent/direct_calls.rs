//! Tool calls that are handled beside rmcp's loop, which costs two changes of task for each request. They are checked and
//! answered by the same handler.

use std::sync::{Arc, OnceLock};

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, GetExtensions, GetMeta, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{Peer, RequestContext, Service};
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
        let mut request = match message {
            JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::CallToolRequest(_)) => request,
            message => return Some(message),
        };
        let mut context = RequestContext::new(request.id.clone(), peer.clone());
        context.meta = std::mem::take(request.request.get_meta_mut());
        context.extensions = std::mem::take(request.request.extensions_mut());
        let cancel = CancellationToken::new();
        context.ct = cancel.clone();
        pending.set_cancel(&request.id, cancel);
        let (handler, outbox, pending) = (handler.clone(), outbox.clone(), pending.clone());
        tokio::spawn(async move {
            let result = handler.handle_request(request.request, context).await;
            // It was cancelled if it is no longer open. Then there is no response.
            let Some(closed) = pending.take(&request.id) else { return };
            let message = match result {
                Ok(result) => ServerJsonRpcMessage::response(result, request.id),
                Err(error) => ServerJsonRpcMessage::error(error, Some(request.id)),
            };
            outbox.respond(&message, Some(closed)).ok();
        });
        None
    }
}
