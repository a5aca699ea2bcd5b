//! Reports calls that have ended: to the editors of the workspace, and to those of the other workspaces of the process, whose
//! users supervise all agents of the repository.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::broadcast;

use super::{Engine, Notice};
use crate::model::CallRecord;

/// A call, and where it was made.
#[derive(Debug, Clone)]
pub struct FinishedCall {
    workspace: u64,
    folder: Option<Arc<Path>>,
    record: Arc<CallRecord>,
}

impl Engine {
    pub(super) fn report_finished(&self, record: &Arc<CallRecord>) {
        let (record, folder) = (record.clone(), self.folders().first().cloned());
        self.0.notices.send(Notice::CallFinished(record.clone())).ok();
        self.0.shared.finished_calls.send(FinishedCall { workspace: self.0.workspace, folder, record }).ok();
    }

    /// The calls that end in all workspaces of the process.
    pub fn finished_calls(&self) -> broadcast::Receiver<FinishedCall> {
        self.0.shared.finished_calls.subscribe()
    }

    /// The call as the user of this workspace sees it; `None` if it was made here.
    pub fn elsewhere(&self, finished: FinishedCall) -> Option<CallRecord> {
        let FinishedCall { workspace, folder, record } = finished;
        let folder = folder.filter(|_| workspace != self.0.workspace)?.to_path_buf();
        Some(CallRecord { folder: Some(folder), ..CallRecord::clone(&record) })
    }
}
