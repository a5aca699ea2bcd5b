//! What the tools that agents see cost: the estimated tokens of their definitions.

use super::Engine;
use super::snapshot::Snapshot;
use crate::model::Level;
use crate::policy::AgentAccess;

/// The estimated tokens of the two tools of an agent that searches, without the names of servers.
pub(crate) const SEARCH_TOKENS: usize = 240;

/// What the agents of one view get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewCost {
    /// The name in the settings. Empty for agents without their own view.
    pub agent: String,
    pub tools: usize,
    pub tokens: usize,
    pub search: bool,
}

impl ViewCost {
    fn of(view: &AgentAccess, snapshot: &Snapshot) -> Self {
        let servers = snapshot.servers.values().filter(|server| server.usable().is_ok());
        let shown = servers
            .flat_map(|server| server.shown_tools())
            .filter(|offered| view.shows(&offered.id) && view.narrow(offered.ruling.clone()).level != Level::Disable);
        let (tools, tokens) = shown.fold((0, 0), |(tools, tokens), offered| (tools + 1, tokens + offered.tokens()));
        let tokens = if view.search { SEARCH_TOKENS } else { tokens };
        Self { agent: view.agent.clone(), tools, tokens, search: view.search }
    }
}

impl Engine {
    /// What agents get in their list of tools, by view. The last one is for agents without their own view.
    pub fn view_costs(&self) -> Vec<ViewCost> {
        let snapshot = self.now();
        let views = self.0.shared.views.borrow();
        views.all().map(|view| ViewCost::of(view, &snapshot)).collect()
    }
}
