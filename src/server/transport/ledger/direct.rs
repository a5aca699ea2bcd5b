//! Requests that bypass rmcp: its loop costs two task switches for each of them.

use rmcp::model::{NumberOrString, RequestId};
use tokio::time::Instant;

use super::state::{Kind, Open};
use super::{Ledger, OpenError, Slot};
use crate::server::transport::line_writer::WriteMode;

impl Ledger {
    /// Records a request before it is written. If it is the only one, nothing follows it soon.
    pub(in crate::server::transport) fn sent_directly(
        &self,
        id: &RequestId,
        slot: Slot,
        token: Option<NumberOrString>,
    ) -> Result<WriteMode, OpenError> {
        let mut state = self.state();
        // Checked under the lock: what is recorded before the end is abandoned by it.
        if let Some(message) = self.close_reason() {
            return Err(OpenError::Closed { message });
        }
        if let Some(token) = &token {
            state.tokens.insert(token.clone(), id.clone());
        }
        state.open.insert(id.clone(), Open { kind: Kind::Other, slot: Some(slot), token, sent: Instant::now() });
        Ok(if state.open.len() > 1 { WriteMode::Together } else { WriteMode::Now })
    }

    /// The transport is closed: no more responses will come.
    pub(super) fn abandon_direct(&self) {
        self.state().open.values().filter_map(|open| open.slot.as_ref()).for_each(Slot::abandon);
    }
}
