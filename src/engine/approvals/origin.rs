//! Questions of one workspace in the editors of another: they say which folder they are about.

use std::path::Path;
use std::sync::Arc;

use super::{Approval, Approvals};
use crate::text::exact;

/// The workspace that a question is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Identifies it among the workspaces of this process.
    pub workspace: u64,
    /// Its first folder.
    pub folder: Option<Arc<Path>>,
    /// Whether this is a copy for the editors of another workspace.
    pub is_elsewhere: bool,
}

impl Origin {
    /// The folder that a copy for another workspace names.
    pub fn elsewhere(&self) -> Option<&Path> {
        self.folder.as_deref().filter(|_| self.is_elsewhere)
    }
}

impl Approvals {
    /// Whether another workspace asks the same.
    pub(super) fn asks_elsewhere(&self, other: &Approval, own: &Approval) -> bool {
        let what = |approval: &Approval| (approval.kind, approval.server.clone(), approval.group.clone());
        other.origin.workspace != self.workspace && what(other) == what(own)
    }

    /// Waits until no other workspace asks the same.
    pub async fn until_asked_nowhere(&self, own: &Approval) {
        let is_alone = |list: &Arc<Vec<Arc<Approval>>>| !list.iter().any(|other| self.asks_elsewhere(other, own));
        if self.subscribe().wait_for(is_alone).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// These questions as the editors of this workspace show them: one about another workspace names its folder.
    pub fn shown_here(&self, approvals: &[Arc<Approval>]) -> Vec<Arc<Approval>> {
        let shown = |approval: &Arc<Approval>| match &approval.origin.folder {
            Some(folder) if approval.origin.workspace != self.workspace => Arc::new(approval.shown_elsewhere(folder)),
            _ => approval.clone(),
        };
        approvals.iter().map(shown).collect()
    }
}

impl Approval {
    /// The question as the editors of another workspace show it.
    fn shown_elsewhere(&self, folder: &Path) -> Self {
        let full = exact(&folder.display().to_string());
        Self {
            title: named(&self.title, folder),
            summary: named(&self.summary, folder),
            detail: format!("This is about another folder: {full}\n{}", self.detail),
            origin: Origin { is_elsewhere: true, ..self.origin.clone() },
            ..self.clone()
        }
    }
}

/// Names the folder at the end of a line.
pub(super) fn named(line: &str, folder: &Path) -> String {
    let name = exact(&folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy());
    match line.strip_suffix('?') {
        Some(question) => format!("{question} (in `{name}`)?"),
        None => format!("{line} (in `{name}`)"),
    }
}
