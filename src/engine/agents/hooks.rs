//! Which connected agent a hook belongs to: a pause of an agent also holds its own tools, and the board shows what they wait
//! for.

use std::path::Path;
use std::sync::Arc;

use super::{Agents, ConnectedAgent};
use crate::model::HookAgent;
use crate::server::process;

/// The process of a hook, and the workspace that it asks about.
pub struct HookOrigin<'a> {
    pub agent: HookAgent,
    pub folders: &'a [Arc<Path>],
    pub process: Option<u32>,
}

impl Agents {
    /// The connections of the agent that runs a hook. Usually there is one. There are several if nothing tells agents of
    /// the same name in the same workspace apart, and none if the agent uses only hooks.
    pub fn of_hook(&self, hook: &HookOrigin) -> Vec<u64> {
        let ancestors: Vec<u32> = hook.process.map(|pid| process::ancestors(pid).collect()).unwrap_or_default();
        let connected = self.0.borrow().clone();
        let named = connected.iter().filter(|(_, agent)| agent.reported.starts_with(hook.agent.reported_name()));
        let numbers = |chosen: &dyn Fn(&ConnectedAgent) -> bool| -> Vec<u64> {
            named.clone().filter(|(_, agent)| chosen(agent)).map(|(number, _)| *number).collect()
        };
        // An agent starts both. The nearest one counts, because an agent can be started by another one.
        let started = ancestors.iter().map(|ancestor| numbers(&|agent| agent.started_by == Some(*ancestor)));
        let nearest = started.into_iter().find(|found| !found.is_empty());
        nearest.unwrap_or_else(|| numbers(&|agent| hook.folders.iter().any(|folder| **folder == *agent.folder)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn agent(reported: &str, folder: &str, started_by: Option<u32>) -> ConnectedAgent {
        ConnectedAgent {
            name: reported.to_owned(),
            reported: reported.to_owned(),
            folder: folder.into(),
            started_by,
            since: Timestamp::now(),
            set: None,
            is_paused: false,
            cut_off: Default::default(),
        }
    }

    #[test]
    fn a_hook_belongs_to_the_agent_that_started_it_or_else_to_those_of_its_name_in_the_workspace() {
        let own = std::process::id();
        let above: Vec<u32> = process::ancestors(own).collect();
        let (agents, folders) = (Agents::default(), [Arc::from(Path::new("/one"))]);
        let of = |process| agents.of_hook(&HookOrigin { agent: HookAgent::ClaudeCode, folders: &folders, process });
        let _other_name = agents.join(1, agent("codex-mcp-client", "/one", above.first().copied()));
        assert_eq!(of(Some(own)), [] as [u64; 0]);
        let _elsewhere = agents.join(2, agent("claude-code", "/two", None));
        assert_eq!(of(Some(own)), [] as [u64; 0]);
        let _here = agents.join(3, agent("claude-code", "/one", Some(u32::MAX)));
        let _also_here = agents.join(4, agent("claude-code", "/one", None));
        assert_eq!(of(Some(own)), [3, 4], "nothing tells them apart");
        assert_eq!(of(None), [3, 4]);
        let _started = agents.join(5, agent("claude-code", "/two", above.first().copied()));
        let _far = agents.join(6, agent("claude-code", "/one", above.get(1).copied()));
        assert_eq!(of(Some(own)), [5], "the nearest one, in whatever folder");
    }
}
