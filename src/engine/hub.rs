//! The owner of all servers. It receives config changes, server events and commands, and publishes snapshots.
//!
//! Nothing here waits: starts, stops and trust checks run in their own tasks and report back, so that a slow server
//! never blocks another.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::Notice;
use super::memory::PersistentCache;
use super::plan::{self, Reload, Step};
use super::record;
use super::slot::Slot;
use super::snapshot::Snapshot;
use super::trust::{TrustChecker, Verdict};
use crate::config::{Config, Definition, Loaded};
use crate::model::{Error, Level, Result, ServerName, ToolId};
use crate::policy::{Rules, SessionLevels};
use crate::server::{Action, Context, Event, Server};

/// How long a restart waits for the old process before it starts the new one.
const HANDOVER: Duration = Duration::from_millis(500);

/// A command to the hub.
pub enum HubCommand {
    Act {
        action: Action,
        server: Option<ServerName>,
        done: oneshot::Sender<Result<()>>,
    },
    Toggle {
        server: ServerName,
        on: bool,
        done: oneshot::Sender<Result<()>>,
    },
    /// Applies a new config. Answers with what it changed.
    ApplyConfig {
        loaded: Arc<Loaded>,
        done: oneshot::Sender<Arc<Reload>>,
    },
    /// Sets a level for this session. `None` removes it.
    SetSessionLevel {
        server: ServerName,
        tool: String,
        level: Option<Level>,
        done: oneshot::Sender<()>,
    },
    /// Replaces the list of tools that the user disabled in this project.
    SetDisabledTools {
        tools: Vec<ToolId>,
        done: oneshot::Sender<()>,
    },
    /// Publishes the current state of all servers, then answers.
    Refresh {
        done: oneshot::Sender<()>,
    },
    /// Checks all definitions again: the editor's trust in the workspace changed.
    CheckAllTrust,
    /// Checks one definition again: the user decided about trust, or a program changed on disk.
    CheckTrust {
        server: ServerName,
        done: oneshot::Sender<()>,
    },
    TrustChecked {
        server: ServerName,
        generation: u64,
        round: u64,
        verdict: Verdict,
        done: Option<oneshot::Sender<()>>,
    },
    Shutdown {
        done: oneshot::Sender<()>,
    },
}

pub struct Hub {
    pub slots: BTreeMap<ServerName, Slot>,
    pub applied: Arc<Loaded>,
    pub last_reload: Arc<Reload>,
    pub rules: Arc<Rules>,
    pub levels: SessionLevels,
    pub generation: u64,
    pub trust_checker: Arc<TrustChecker>,
    pub memory: Arc<PersistentCache>,
    pub store: crate::store::Store,
    /// Callers to answer when all definitions of a reload have been checked.
    pub pending_reloads: Vec<(Arc<Reload>, oneshot::Sender<Arc<Reload>>)>,
    pub context: Context,
    pub commands: mpsc::Sender<HubCommand>,
    pub published: watch::Sender<Arc<Snapshot>>,
    pub notices: broadcast::Sender<Notice>,
    /// Tasks of the hub. They are aborted with it.
    pub tasks: JoinSet<()>,
}

impl Hub {
    pub async fn run(
        mut self,
        mut loaded: watch::Receiver<Arc<Loaded>>,
        mut events: mpsc::Receiver<(ServerName, u64, Event)>,
        mut commands: mpsc::Receiver<HubCommand>,
        mut editors: watch::Receiver<usize>,
        mut folders: watch::Receiver<Vec<Arc<Path>>>,
    ) {
        // Nothing starts before a front has set its folders, even to none: every start depends on `${workspaceFolder}`
        // and the roots.
        let mut folders_known = false;
        let mut health = self.store.health();
        loop {
            tokio::select! {
                changed = loaded.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let newest = loaded.borrow_and_update().clone();
                    if folders_known {
                        self.apply(newest);
                    }
                }
                Some(first) = events.recv() => {
                    self.handle_event(first);
                    // Publishes a burst of events as one change.
                    while let Ok(next) = events.try_recv() {
                        self.handle_event(next);
                    }
                }
                command = commands.recv() => match command {
                    Some(HubCommand::Shutdown { done }) => {
                        self.shutdown().await;
                        done.send(()).ok();
                        return;
                    }
                    Some(command) => {
                        folders_known |= matches!(command, HubCommand::ApplyConfig { .. });
                        self.handle(command);
                    }
                    None => break,
                },
                Ok(()) = editors.changed() => self.wake_editor_hosted(),
                Ok(()) = folders.changed() => self.notify_roots_changed(),
                Ok(()) = health.changed() => {}
                Some(_) = self.tasks.join_next() => continue,
            }
            self.publish();
        }
        self.shutdown().await;
    }

    /// Applies the difference to a new config. Servers that did not change are not touched.
    fn apply(&mut self, loaded: Arc<Loaded>) -> Arc<Reload> {
        if Arc::ptr_eq(&loaded, &self.applied) {
            return self.last_reload.clone();
        }
        let running = self.slots.iter().map(|(name, slot)| (name.clone(), slot.definition.clone())).collect();
        let steps = plan::plan(&running, &loaded.config.servers);
        let reload = Arc::new(plan::reload(&steps, &loaded));
        for step in &steps {
            self.carry_out(step, &loaded.config);
        }
        // A policy can also allow tools of the servers in its file, so trust may no longer cover them. It can forbid
        // programs, and a deleted folder takes its servers with it.
        let applied = self.applied.clone();
        let before = &applied.config;
        let policies_changed = before.policies != loaded.config.policies || before.gone != loaded.config.gone;
        let untouched = |name: &ServerName| !steps.iter().any(|step| step.server() == name);
        for (name, definition) in loaded.config.servers.iter().filter(|(name, _)| policies_changed && untouched(name)) {
            self.recheck_trust(name, definition);
        }
        // A server that failed because its program was missing is restarted as soon as the program exists.
        let now_found = |program: &String| before.missing.contains(program) && !loaded.config.missing.contains(program);
        let recoverable =
            self.slots.values().filter(|slot| slot.has_failed_with(now_found)).filter_map(|slot| slot.server.clone());
        for server in recoverable.collect::<Vec<_>>() {
            self.tasks.spawn(async move { drop(server.restart().await) });
        }
        for (name, definition) in &loaded.config.servers {
            if let Some(slot) = self.slots.get_mut(name) {
                slot.definition = definition.clone();
            }
        }
        self.applied = loaded;
        self.rules = self.rules();
        self.last_reload = reload.clone();
        self.notices.send(Notice::Reloaded(reload.clone())).ok();
        reload
    }

    fn rules(&self) -> Arc<Rules> {
        let workspace = self.context.host.roots().into_iter().next();
        Arc::new(Rules::new(&self.applied.config, &self.levels, workspace.as_deref()))
    }

    fn carry_out(&mut self, step: &Step, config: &Config) {
        match step {
            Step::Stop(name) => {
                self.trust_checker.withdraw("the server was removed from the config", name);
                if let Some(slot) = self.slots.remove(name) {
                    self.stop_slot(slot);
                }
            }
            Step::Start(name) | Step::Restart(name) => {
                if let Some(definition) = config.servers.get(name) {
                    let before = self.slots.remove(name);
                    self.add_slot(definition.clone(), before);
                }
            }
            Step::Update(name) => {
                if let Some(definition) = config.servers.get(name) {
                    self.recheck_trust(name, definition);
                }
            }
        }
    }

    /// A running definition changed what it may do: nothing more is allowed until its trust has been checked.
    fn recheck_trust(&mut self, name: &ServerName, definition: &Arc<Definition>) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.definition = definition.clone();
            slot.recheck_trust();
            let generation = slot.generation;
            self.check_trust(definition.clone(), generation, None, None);
        }
    }

    /// Adds a new or relaunched definition: its trust is checked first, then it starts.
    fn add_slot(&mut self, definition: Arc<Definition>, before: Option<Slot>) {
        self.generation += 1;
        let generation = self.generation;
        let leaving = before.as_ref().and_then(|slot| slot.server.clone());
        let switched_on = before.as_ref().is_none_or(|slot| slot.switched_on);
        self.slots.insert(definition.name.clone(), Slot::new(definition.clone(), generation, switched_on));
        self.check_trust(definition, generation, leaving, None);
    }

    /// Checks the trust of a definition in a task, while its old process gets a moment to exit.
    fn check_trust(
        &mut self,
        definition: Arc<Definition>,
        generation: u64,
        leaving: Option<Server>,
        done: Option<oneshot::Sender<()>>,
    ) {
        let round = self.slots.get_mut(&definition.name).map(Slot::next_round).unwrap_or_default();
        let (checker, memory, commands) = (self.trust_checker.clone(), self.memory.clone(), self.commands.clone());
        self.tasks.spawn(async move {
            let server = definition.name.clone();
            let ended = async {
                if let Some(leaving) = leaving {
                    tokio::time::timeout(HANDOVER, leaving.shutdown()).await.ok();
                }
            };
            let (verdict, (), ()) = tokio::join!(checker.check(definition.clone()), memory.prepare(&definition), ended);
            commands.send(HubCommand::TrustChecked { server, generation, round, verdict, done }).await.ok();
        });
    }

    fn apply_verdict(&mut self, name: &ServerName, generation: u64, round: u64, verdict: Verdict) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.awaits(generation, round)) else { return };
        let question = match verdict {
            Verdict::Ask(question) => {
                slot.must_ask(&question);
                Some(question)
            }
            Verdict::Trusted(trusted) => {
                let inputs = Arc::new(self.applied.config.inputs.clone());
                slot.may_start(trusted, Context { inputs, ..self.context.clone() });
                None
            }
            Verdict::Refused => {
                slot.refused();
                None
            }
            Verdict::Restricted => {
                slot.restricted();
                None
            }
            Verdict::Forbidden { reason } => {
                slot.forbidden(reason);
                None
            }
        };
        let (definition, leaving) = (slot.definition.clone(), slot.leaving.take());
        if let Some(leaving) = leaving {
            self.tasks.spawn(async move { leaving.shutdown().await });
        }
        // An earlier question was about another version of the definition.
        self.trust_checker.withdraw("the definition has changed", name);
        // A disabled server does not start, so there is no question until it is enabled.
        if let Some(question) = question.filter(|_| definition.spec.enabled) {
            let (checker, commands) = (self.trust_checker.clone(), self.commands.clone());
            self.tasks.spawn(async move {
                let server = definition.name.clone();
                if checker.ask(definition, question).await {
                    let (done, _) = oneshot::channel();
                    commands.send(HubCommand::CheckTrust { server, done }).await.ok();
                }
            });
        }
    }

    fn handle_event(&mut self, (name, generation, event): (ServerName, u64, Event)) {
        let Some(slot) = self.slots.get_mut(&name).filter(|slot| slot.generation == generation) else { return };
        match event {
            // Reads the current state: the last event of an old process must not count for the new one.
            Event::State(_) => slot.refresh(),
            Event::Log(line) => {
                self.notices.send(Notice::Log { server: name, line }).ok();
            }
            Event::ResourceUpdated { uri } => {
                self.notices.send(Notice::ResourceUpdated { server: name, uri }).ok();
            }
        }
    }

    fn handle(&mut self, command: HubCommand) {
        match command {
            HubCommand::Act { action, server, done } => self.act(action, server, done),
            HubCommand::Toggle { server, on, done } => {
                let answer = match self.slots.get_mut(&server) {
                    Some(slot) => {
                        slot.switched_on = on;
                        Ok(())
                    }
                    None => Err(Error::NoServer(server.to_string())),
                };
                self.publish();
                done.send(answer).ok();
            }
            HubCommand::ApplyConfig { loaded, done } => {
                let reload = self.apply(loaded);
                self.pending_reloads.push((reload, done));
                self.answer_pending_reloads();
            }
            HubCommand::SetSessionLevel { server, tool, level, done } => {
                self.levels.set(server, &tool, level);
                self.rules = self.rules();
                self.publish();
                done.send(()).ok();
            }
            HubCommand::SetDisabledTools { tools, done } => {
                self.levels.set_disabled(tools);
                self.rules = self.rules();
                self.publish();
                done.send(()).ok();
            }
            HubCommand::CheckAllTrust => {
                let all: Vec<_> = self.slots.values().map(|slot| (slot.definition.clone(), slot.generation)).collect();
                for (definition, generation) in all {
                    self.check_trust(definition, generation, None, None);
                }
            }
            HubCommand::CheckTrust { server, done } => {
                if let Some(slot) = self.slots.get(&server) {
                    let (definition, generation) = (slot.definition.clone(), slot.generation);
                    self.check_trust(definition, generation, None, Some(done));
                }
            }
            HubCommand::Refresh { done } => {
                for slot in self.slots.values_mut() {
                    slot.refresh();
                }
                self.publish();
                done.send(()).ok();
            }
            HubCommand::TrustChecked { server, generation, round, verdict, done } => {
                self.apply_verdict(&server, generation, round, verdict);
                self.answer_pending_reloads();
                if let Some(done) = done {
                    done.send(()).ok();
                }
            }
            // Handled in `run`.
            HubCommand::Shutdown { done } => drop(done),
        }
    }

    /// Starts, stops or restarts one server or all of them. Answers when they have settled.
    fn act(&mut self, action: Action, server: Option<ServerName>, done: oneshot::Sender<Result<()>>) {
        let chosen: Vec<ServerName> = match server {
            Some(name) if !self.slots.contains_key(&name) => {
                done.send(Err(Error::NoServer(name.to_string()))).ok();
                return;
            }
            Some(name) => vec![name],
            None => self.slots.keys().cloned().collect(),
        };
        // Queued here and not in the task below, so that a later command cannot overtake an earlier one.
        let settling: Vec<_> = chosen
            .iter()
            .filter_map(|name| self.slots.get_mut(name).and_then(|slot| slot.begin_action(action)))
            .collect();
        let commands = self.commands.clone();
        self.tasks.spawn(async move {
            futures::future::join_all(settling).await;
            let (fresh, refreshed) = oneshot::channel();
            commands.send(HubCommand::Refresh { done: fresh }).await.ok();
            refreshed.await.ok();
            done.send(Ok(())).ok();
        });
    }

    fn notify_roots_changed(&mut self) {
        for server in self.slots.values().filter_map(|slot| slot.server.clone()) {
            self.tasks.spawn(async move { server.roots_changed().await });
        }
    }

    /// An editor connected: servers that it hosts can start now.
    fn wake_editor_hosted(&mut self) {
        for slot in self.slots.values().filter(|slot| slot.waits_for_editor()) {
            if let Some(server) = slot.server.clone() {
                self.tasks.spawn(async move {
                    server.start().await.ok();
                });
            }
        }
    }

    /// Answers callers that wait for a reload, once the snapshot shows the outcome of every definition.
    fn answer_pending_reloads(&mut self) {
        self.publish();
        if self.slots.values().all(Slot::is_trust_checked) {
            for (reload, done) in self.pending_reloads.drain(..) {
                done.send(reload).ok();
            }
        }
    }

    fn stop_slot(&mut self, slot: Slot) {
        if let Some(server) = slot.server {
            self.tasks.spawn(async move { server.shutdown().await });
        }
    }

    fn publish(&mut self) {
        let rules = self.rules.clone();
        let names: Vec<ServerName> = self.slots.keys().cloned().collect();
        let problem = record::blocking_problem(&self.store);
        let view = |(name, slot): (&ServerName, &mut Slot)| (name.clone(), slot.view(&rules, &names, problem.as_ref()));
        let servers = self.slots.iter_mut().map(view).collect();
        self.published.send_replace(Arc::new(Snapshot { servers, rules }));
    }

    /// Stops all servers at once.
    async fn shutdown(&mut self) {
        let servers = std::mem::take(&mut self.slots).into_values().filter_map(|slot| slot.server);
        futures::future::join_all(servers.map(Server::shutdown)).await;
        self.tasks.shutdown().await;
    }
}
