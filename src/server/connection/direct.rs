//! Calls on a stream of lines. They bypass rmcp, whose loop would cost two task switches for each of them.

use std::sync::atomic::{AtomicI64, Ordering};

use rmcp::model::{ClientRequest, GetMeta, NumberOrString, ProgressToken};
use rmcp::service::ServiceError;
use tokio::time::Instant;

use super::exchange::{RequestFailure, RequestLimits};
use super::{CallOptions, Connection};
use crate::model::{RawJson, ToolCall};
use crate::server::transport::ledger::Slot;
use crate::server::transport::stdio::Outbox;

/// rmcp counts its own requests from zero, and never gets this far.
const FIRST_ID: i64 = 1_000_000_000;

/// Sends calls that bypass rmcp.
pub struct DirectCalls {
    outbox: Outbox,
    next_id: AtomicI64,
}

impl DirectCalls {
    pub fn new(outbox: Outbox) -> Self {
        Self { outbox, next_id: AtomicI64::new(FIRST_ID) }
    }
}

impl Connection {
    /// Sends a call and waits for its response. Dropping the future cancels it at the server.
    pub(super) async fn exchange_call(
        &self,
        mut request: ClientRequest,
        what: &str,
        limits: &RequestLimits,
        call: &ToolCall,
        options: &CallOptions,
    ) -> Result<RawJson, RequestFailure> {
        if let Some(direct) = &self.0.direct {
            let id = NumberOrString::Number(direct.next_id.fetch_add(1, Ordering::Relaxed));
            let meta = request.get_meta_mut();
            for (key, value) in call.meta.iter() {
                meta.insert(key.clone(), value.clone());
            }
            meta.set_progress_token(ProgressToken(id.clone()));
            let (slot, reply) = Slot::direct(options.progress.clone(), &call.id, options.sent.clone());
            let started = Instant::now();
            if let Some(sent) = direct.outbox.call(&id, &request, slot.clone()) {
                sent.map_err(|error| RequestFailure::Local(self.not_sent(error)))?;
                // The arguments can be large.
                drop(request);
                slot.mark_sent();
                let answer = async {
                    match reply.await {
                        Ok(reply) => reply.map_err(ServiceError::McpError),
                        Err(_) => Err(ServiceError::TransportClosed),
                    }
                };
                return self.wait(answer, &id, &slot, started, what, limits).await;
            }
        }
        let slot = Slot::for_call(options.progress.clone(), &call.id, options.sent.clone());
        Box::pin(self.exchange_with(request, what, limits, slot, &call.meta)).await
    }
}
