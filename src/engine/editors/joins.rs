//! The announcement of an editor that joins others, and which editors are not announced because they only restarted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Identity;
use crate::text::one_line;

/// How soon an editor with the same name and program counts as the restart of one that has left.
const RESTART: Duration = Duration::from_secs(60);
/// How many editors that have left are remembered.
const MAX_DEPARTURES: usize = 16;

/// An editor joined others.
#[derive(Debug, Clone)]
pub struct Join {
    /// Identifies it among the attached editors.
    pub id: u64,
    /// What to show in the other editors.
    pub message: Arc<str>,
}

impl Join {
    /// `joined` is what it has in common with the others.
    pub(super) fn new(id: u64, joining: &Identity, joined: &str) -> Self {
        let name = joining.name.as_deref().unwrap_or("an editor without a name");
        let process = match (joining.process, &joining.program) {
            (Some(process), Some(program)) => format!(", process {process} ({})", one_line(program, 80)),
            (Some(process), None) => format!(", process {process}"),
            (None, _) => String::new(),
        };
        let limits = joining.started_by.as_ref().map(|started_by| {
            format!(" It was started by {started_by}, so it is read-only: it cannot approve, trust or change anything.")
        });
        let message = format!("Another editor joined this {joined}: {name}{process}.{}", limits.unwrap_or_default());
        Self { id, message: message.into() }
    }
}

impl Identity {
    /// Whether both are connections of the same process.
    pub(super) fn is_process_of(&self, other: &Self) -> bool {
        self.process.is_some() && self.process == other.process
    }
}

/// The editors that have left, oldest first.
#[derive(Default)]
pub(super) struct Departures(VecDeque<(Instant, Identity)>);

impl Departures {
    pub fn add(&mut self, identity: Identity) {
        if identity.is_shell() {
            return;
        }
        self.0.push_back((Instant::now(), identity));
        if self.0.len() > MAX_DEPARTURES {
            self.0.pop_front();
        }
    }

    /// Whether this editor has left before. Each departure explains one return.
    pub fn take(&mut self, joining: &Identity) -> bool {
        let returns = |(left, identity): &(Instant, Identity)| {
            let same_program = identity.name == joining.name && identity.program == joining.program;
            // An editor of an agent must not pass for one of the user.
            let same_start = identity.started_by == joining.started_by;
            let restarted = left.elapsed() < RESTART && joining.started_by.is_none();
            same_program && same_start && (joining.is_process_of(identity) || restarted)
        };
        let found = self.0.iter().position(returns);
        found.is_some_and(|found| self.0.remove(found).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor(process: u32) -> Identity {
        let (name, program) = (Some("Neovim".to_owned()), Some("nvim".to_owned()));
        Identity { name, process: Some(process), program, started_by: None }
    }

    fn of_agent(process: u32) -> Identity {
        Identity { started_by: Some("the agent `claude`".to_owned()), ..editor(process) }
    }

    #[test]
    fn a_departure_explains_one_return_of_the_same_program() {
        let mut departures = Departures::default();
        departures.add(editor(1));
        assert!(!departures.take(&Identity { program: Some("python3".to_owned()), ..editor(1) }));
        assert!(departures.take(&editor(2)));
        assert!(!departures.take(&editor(3)));
    }

    #[test]
    fn an_editor_of_an_agent_returns_only_as_the_same_process() {
        let mut departures = Departures::default();
        departures.add(editor(1));
        assert!(!departures.take(&of_agent(1)));
        departures.add(of_agent(2));
        assert!(!departures.take(&of_agent(3)));
        assert!(departures.take(&of_agent(2)));
    }

    #[test]
    fn the_message_names_the_process_and_who_started_it() {
        let message = |identity: &Identity| Join::new(1, identity, "workspace").message.to_string();
        assert_eq!(message(&editor(7)), "Another editor joined this workspace: Neovim, process 7 (nvim).");
        assert!(message(&of_agent(7)).contains("started by the agent `claude`, so it is read-only"));
        let nameless = "Another editor joined this workspace: an editor without a name.";
        assert_eq!(message(&Identity::default()), nameless);
    }
}
