//! Questions that belong together, so that a front can show them as one: trust in the servers of one file, and the calls
//! of one agent. Each question keeps its own id, answer and withdrawal.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::origin::named;
use super::{Approval, Kind};
use crate::engine::Engine;
use crate::engine::answers::{AnswerChoice, shared_answers};
use crate::engine::prompt::describe_requester;
use crate::text::quoted;

/// What the questions of a group have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupKey {
    /// They are about servers in this file.
    File(Arc<Path>),
    /// They are about calls on this connection of an agent.
    Agent(u64),
}

/// Two or more questions that can be answered together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Stays the same while questions come and go.
    pub id: String,
    pub kind: Kind,
    pub title: String,
    /// The ids of its questions: servers in the order of the file, calls in the order of arrival.
    pub ids: Vec<String>,
    /// The answers for all of them. The first grants nothing.
    pub answers: Vec<AnswerChoice>,
}

impl Engine {
    /// The groups of these questions, which are as this workspace shows them.
    pub fn approval_groups(&self, approvals: &[Arc<Approval>]) -> Vec<Group> {
        let loaded = self.loaded().borrow().clone();
        let position = |approval: &Approval| {
            let definition = loaded.config.servers.get(&approval.server);
            definition.map_or(usize::MAX, |definition| definition.key_span.start)
        };
        groups(approvals, position)
    }
}

/// `position` is the position of a server in its file.
pub(super) fn groups(approvals: &[Arc<Approval>], position: impl Fn(&Approval) -> usize) -> Vec<Group> {
    let mut members: BTreeMap<&GroupKey, Vec<&Approval>> = BTreeMap::new();
    for approval in approvals {
        if let Some(key) = &approval.group {
            members.entry(key).or_default().push(approval);
        }
    }
    members
        .into_iter()
        .filter(|(_, members)| members.len() > 1)
        .map(|(key, members)| group(key, members, &position))
        .collect()
}

fn group(key: &GroupKey, mut members: Vec<&Approval>, position: impl Fn(&Approval) -> usize) -> Group {
    let count = members.len();
    let (id, kind, title) = match key {
        GroupKey::File(file) => {
            members.sort_by_key(|approval| position(approval));
            let file = file.display().to_string();
            let title = format!("Trust {count} servers of {}?", quoted(&file, usize::MAX));
            (format!("file:{file}"), Kind::Trust, title)
        }
        GroupKey::Agent(connection) => {
            let requester = members.first().map(|first| describe_requester(&first.requester)).unwrap_or_default();
            let title = format!("{requester} wants to make {count} calls");
            let folder = members.first().and_then(|first| first.origin.elsewhere());
            let title = folder.map_or_else(|| title.clone(), |folder| named(&title, folder));
            (format!("agent:{connection}"), Kind::Tool, title)
        }
    };
    let ids = members.iter().map(|approval| approval.id.clone()).collect();
    Group { id, kind, title, ids, answers: shared_answers(&members) }
}
