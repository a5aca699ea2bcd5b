//! An editor-hosted server: complete messages through the editor's channel.

use std::collections::VecDeque;

use futures::future::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};

use super::ledger::Ledger;
use super::{AnyTransport, OpenError};
use crate::server::host::Tunnel;

pub struct EditorTransport {
    /// `None` once the connection is closed, which closes the editor's channel.
    tunnel: Option<Tunnel>,
    ready: VecDeque<ServerJsonRpcMessage>,
    ledger: Ledger,
}

impl EditorTransport {
    pub fn new(tunnel: Tunnel, ledger: Ledger) -> Self {
        Self { tunnel: Some(tunnel), ready: VecDeque::new(), ledger }
    }

    /// Waits for room as long as the editor still takes messages. If it stops to, its end of the channel is closed.
    fn put(
        &mut self,
        message: &ClientJsonRpcMessage,
    ) -> Result<impl Future<Output = Result<(), OpenError>> + Send + use<>, OpenError> {
        let gone = || OpenError::Closed { message: "the editor has disconnected or reads no messages".to_owned() };
        let value = serde_json::to_value(message).map_err(|error| OpenError::Protocol {
            message: format!("cannot serialize the message as JSON: {error}"),
        })?;
        let sending = self.tunnel.as_ref().ok_or_else(gone)?.to_editor.send(value);
        Ok(async move { if sending.await { Ok(()) } else { Err(gone()) } })
    }

    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let Some(value) = self.tunnel.as_mut()?.from_editor.recv().await else {
                self.ledger.close("the editor has disconnected");
                return None;
            };
            let text = value.to_string();
            if text.len() > self.ledger.limit() {
                let head = text.get(..text.floor_char_boundary(4 << 10)).unwrap_or_default();
                let tail = text.get(text.ceil_char_boundary(text.len().saturating_sub(512))..).unwrap_or_default();
                let id = super::repair::id_of_cut_message(head.as_bytes(), tail.as_bytes());
                self.ready.extend(self.ledger.too_long(id, true));
            } else {
                self.ready.extend(self.ledger.read(text.as_bytes()));
            }
        }
    }
}

impl AnyTransport for EditorTransport {
    fn send(&mut self, message: ClientJsonRpcMessage) -> BoxFuture<'static, Result<(), OpenError>> {
        match self.put(&message) {
            Ok(sending) => Box::pin(sending),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn receive(&mut self) -> BoxFuture<'_, Option<ServerJsonRpcMessage>> {
        Box::pin(self.next())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.tunnel = None;
        Box::pin(std::future::ready(()))
    }
}
