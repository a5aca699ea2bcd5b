//! The agents that are connected to this process, of all its workspaces: who they are, which set of tools they have, and
//! whether the user has paused them.

pub mod hooks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::approvals::GroupKey;
use super::asking::{AgentConnection, OpenCall};
use crate::model::{Error, HookAgent, Result, Timestamp};
use crate::store::{AgentFigures, AllAgentFigures};
use crate::text::quoted;

/// The figures of an agent are about this time.
const FIGURES_TIME: i64 = 24 * 60 * 60 * 1_000;

/// Cheap to clone; all clones share everything.
#[derive(Clone)]
pub struct Agents(Arc<watch::Sender<Connected>>);

/// By the number of the connection.
pub type Connected = Arc<BTreeMap<u64, ConnectedAgent>>;

/// An agent that is connected.
#[derive(Debug, Clone)]
pub struct ConnectedAgent {
    /// The name that it reports, or that its user chose. Empty until it is known.
    pub name: String,
    /// The name that it reports.
    pub reported: String,
    /// The workspace that it works in.
    pub folder: PathBuf,
    /// The process that started its connection, which is usually the agent.
    pub started_by: Option<u32>,
    pub since: Timestamp,
    /// The set of tools that it is limited to.
    pub set: Option<Arc<str>>,
    /// Its calls and the questions of its hooks wait.
    pub is_paused: bool,
    /// Ends its connection.
    pub cut_off: CancellationToken,
}

/// An agent with its calls and figures, for the user.
#[derive(Debug, Clone)]
pub struct AgentActivity {
    pub number: u64,
    pub agent: ConnectedAgent,
    /// Whether its set is in the settings.
    pub knows_set: bool,
    /// Its calls that have not ended, each with the id of the question that it waits for.
    pub calls: Vec<(OpenCall, Option<String>)>,
    pub figures: AgentFigures,
}

impl Default for Agents {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Connected::default())))
    }
}

/// Registers an agent until it is dropped.
pub struct AgentGuard {
    agents: Agents,
    number: u64,
}

impl Agents {
    pub fn join(&self, number: u64, agent: ConnectedAgent) -> AgentGuard {
        self.0.send_modify(|connected| {
            Arc::make_mut(connected).insert(number, agent);
        });
        AgentGuard { agents: self.clone(), number }
    }

    pub fn subscribe(&self) -> watch::Receiver<Connected> {
        self.0.subscribe()
    }

    /// The set of a connected agent.
    pub fn set_of(&self, connection: &AgentConnection) -> Option<Arc<str>> {
        self.0.borrow().get(&connection.number)?.set.clone()
    }

    /// Whether one of these agents is paused.
    pub fn is_paused(&self, numbers: &[u64]) -> bool {
        any_paused(&self.0.borrow(), numbers)
    }

    /// Waits until none of these agents is paused.
    pub async fn resumed(&self, numbers: &[u64]) {
        let mut connected = self.0.subscribe();
        let resumed = connected.wait_for(|connected| !any_paused(connected, numbers));
        resumed.await.ok();
    }

    /// Changes all agents that `chosen` selects.
    fn change(&self, chosen: impl Fn(u64, &ConnectedAgent) -> bool, change: impl Fn(&mut ConnectedAgent)) {
        self.0.send_if_modified(|connected| {
            let any = connected.iter().any(|(number, agent)| chosen(*number, agent));
            if any {
                let all = Arc::make_mut(connected).iter_mut();
                all.filter(|(number, agent)| chosen(**number, agent)).for_each(|(_, agent)| change(agent));
            }
            any
        });
    }
}

fn any_paused(connected: &Connected, numbers: &[u64]) -> bool {
    numbers.iter().any(|number| connected.get(number).is_some_and(|agent| agent.is_paused))
}

impl AgentGuard {
    /// The agent has reported its name. Its user may have chosen another one.
    pub fn named(&self, name: &str, reported: &str) {
        let is_other = |number: u64, agent: &ConnectedAgent| {
            number == self.number && (agent.name != name || agent.reported != reported)
        };
        self.agents.change(is_other, |agent| {
            name.clone_into(&mut agent.name);
            reported.clone_into(&mut agent.reported);
        });
    }
}

impl ConnectedAgent {
    /// What the agent did: its calls, and the answers to its hooks, which have their own name.
    fn figures(&self, all: &AllAgentFigures) -> AgentFigures {
        let mut own = all.of(&self.folder, &self.name);
        let hooks = HookAgent::ALL.into_iter().find(|hooks| self.reported.starts_with(hooks.reported_name()));
        if let Some(hooks) = hooks.filter(|hooks| hooks.as_str() != self.name) {
            own += all.of(&self.folder, hooks.as_str());
        }
        own
    }
}

impl Drop for AgentGuard {
    fn drop(&mut self) {
        self.agents.0.send_modify(|connected| {
            Arc::make_mut(connected).remove(&self.number);
        });
    }
}

impl Engine {
    /// The agents of all workspaces of this process, with what they are doing.
    pub async fn agent_activities(&self) -> Result<Vec<AgentActivity>> {
        let connected = self.agents().subscribe().borrow().clone();
        let since = Timestamp::from_unix_millis(Timestamp::now().unix_millis() - FIGURES_TIME);
        let figures = self.0.store.agent_figures(since).await?;
        let approvals = self.approvals().list();
        let open = self.0.shared.calls.open();
        let views = self.0.shared.views.borrow();
        let question = |number: u64, call: &OpenCall| {
            let waits = approvals.iter().find(|approval| {
                approval.group == Some(GroupKey::Agent(number))
                    && approval.server == call.tool.server
                    && approval.tool.as_deref().is_none_or(|tool| tool == &*call.tool.tool)
            });
            waits.map(|approval| approval.id.clone())
        };
        let activity = |(number, agent): (&u64, &ConnectedAgent)| AgentActivity {
            number: *number,
            knows_set: agent.set.as_deref().is_none_or(|set| views.sets().any(|known| known == set)),
            calls: open
                .iter()
                .filter(|call| call.agent == Some(*number))
                .map(|call| (call.clone(), question(*number, call)))
                .collect(),
            figures: agent.figures(&figures),
            agent: agent.clone(),
        };
        Ok(connected.iter().map(activity).collect())
    }

    /// Limits agents to a set, or ends the limit.
    pub fn set_agents(&self, agent: Option<&str>, set: Option<String>) -> Result<()> {
        let views = self.views().borrow().clone();
        if let Some(name) = set.as_deref().filter(|name| !views.sets().any(|known| known == name)) {
            let known: Vec<String> = views.sets().map(|known| quoted(known, 80)).collect();
            let known =
                if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
            return Err(Error::NotFound(format!("no set named {} in config.toml; {known}", quoted(name, 80))));
        }
        let chosen = self.chosen(agent)?;
        let set: Option<Arc<str>> = set.map(Arc::from);
        self.agents().change(|number, _| chosen.contains(&number), |agent| agent.set.clone_from(&set));
        Ok(())
    }

    pub fn pause_agent(&self, agent: &str, is_paused: bool) -> Result<()> {
        let chosen = self.chosen(Some(agent))?;
        self.agents().change(|number, _| chosen.contains(&number), |agent| agent.is_paused = is_paused);
        Ok(())
    }

    /// Ends the connection of an agent.
    pub fn disconnect_agent(&self, agent: &str) -> Result<()> {
        let chosen = self.chosen(Some(agent))?;
        let connected = self.agents().subscribe().borrow().clone();
        connected.iter().filter(|(number, _)| chosen.contains(number)).for_each(|(_, agent)| agent.cut_off.cancel());
        Ok(())
    }

    /// The connections with this id or name; without one, those of this workspace.
    fn chosen(&self, wanted: Option<&str>) -> Result<Vec<u64>> {
        let connected = self.agents().subscribe().borrow().clone();
        let folders = self.folders();
        let here = |folder: &Path| folders.iter().any(|own| **own == *folder);
        let is_chosen = |(number, agent): &(&u64, &ConnectedAgent)| match wanted {
            Some(wanted) => wanted == number.to_string() || wanted == agent.name,
            None => here(&agent.folder),
        };
        let chosen: Vec<u64> = connected.iter().filter(is_chosen).map(|(number, _)| *number).collect();
        match (chosen.is_empty(), wanted) {
            (false, _) => Ok(chosen),
            (true, Some(wanted)) => {
                Err(Error::NotFound(format!("no agent with the id or name {} is connected", quoted(wanted, 80))))
            }
            (true, None) => Err(Error::NotFound("no agent is connected to this workspace".to_owned())),
        }
    }

    /// A large result that an agent got only in part.
    pub fn large_result(&self, call: &str) -> Result<Arc<super::gate::Outcome>> {
        let gone = || Error::NotFound("the whole result of this call is no longer available".to_owned());
        self.large_results().find(call).ok_or_else(gone)
    }
}
