//! The owner of all servers. It receives config changes, server events and commands, and publishes snapshots.
//!
//! Nothing here waits: starts, stops and trust checks run in their own tasks and report back, so that a slow server
//! never blocks another.

mod trust;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::Notice;
use super::memory::PersistentCache;
use super::plan::{self, Reload, Step};
use super::record;
use super::slot::{Slot, TrustCheck};
use super::snapshot::Snapshot;
use super::trust::{TrustChecker, Verdict};
use super::usage::ToolUsage;
use crate::config::spec::MissingProgram;
use crate::config::{Config, Definition, Environments, Loaded};
use crate::model::{Error, Level, Result, ServerName, Status, ToolId};
use crate::policy::{Rules, SessionLevels};
use crate::server::host::Host;
use crate::server::{Action, Context, Event, Server, SharedServers};

/// How long a restart waits for the old process before it starts the new one.
const HANDOVER: Duration = Duration::from_millis(500);

/// How many commands are carried out before their effect is published. A command that has an answer publishes first.
const MAX_QUEUED: usize = 64;

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
    /// Applies the newest config. Answers with what it changed. Carries no config: a command that was sent late must
    /// not undo a newer change.
    ApplyConfig {
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
    /// Publishes how often tools were called.
    SetUsage {
        usage: Arc<ToolUsage>,
        done: oneshot::Sender<()>,
    },
    /// Starts what another environment allows to start. Answers when the snapshot shows it.
    ApplyEnvironments {
        done: oneshot::Sender<()>,
    },
    /// Publishes the current state of all servers, then answers.
    Refresh {
        done: oneshot::Sender<()>,
    },
    /// Checks all definitions again: the editor's trust in the workspace changed.
    CheckAllTrust {
        /// Only the user's own servers.
        own: bool,
    },
    /// Checks one definition again: the user decided about trust, or a program changed on disk.
    CheckTrust {
        server: ServerName,
        check: TrustCheck,
        done: oneshot::Sender<()>,
    },
    /// Asks the questions about trust that wait for others of the same file.
    AskAboutTrust,
    TrustChecked {
        server: ServerName,
        generation: u64,
        round: u64,
        verdict: Verdict,
        /// Other workspaces can use the same server.
        is_shared: bool,
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
    pub usage: Arc<ToolUsage>,
    pub generation: u64,
    pub trust_checker: Arc<TrustChecker>,
    pub memory: Arc<PersistentCache>,
    pub store: crate::store::Store,
    /// Callers to answer when all definitions of a reload have been checked.
    pub pending_reloads: Vec<(Arc<Reload>, oneshot::Sender<Arc<Reload>>)>,
    /// Callers to answer when the newest check of a definition has taken effect.
    pub pending_checks: Vec<(ServerName, oneshot::Sender<()>)>,
    /// Questions about trust wait for others of the same file.
    pub is_gathering: bool,
    pub context: Context,
    pub shared_servers: SharedServers,
    /// The host of those.
    pub shared_host: Arc<dyn Host>,
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
        mut environments: watch::Receiver<Arc<Environments>>,
    ) {
        // Nothing starts before a front has set its folders, even to none: every start depends on `${workspaceFolder}`
        // and the roots.
        let mut folders_known = false;
        let mut health = self.store.health();
        let mut queued = Vec::with_capacity(MAX_QUEUED);
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
                Some(event) = events.recv() => self.handle_event(event),
                count = commands.recv_many(&mut queued, MAX_QUEUED) => {
                    if count == 0 {
                        break;
                    }
                    for command in queued.drain(..) {
                        if let HubCommand::Shutdown { done } = command {
                            self.shutdown().await;
                            done.send(()).ok();
                            return;
                        }
                        folders_known |= matches!(command, HubCommand::ApplyConfig { .. });
                        self.handle(command, &mut loaded);
                    }
                }
                Ok(()) = editors.changed() => {
                    self.wake_editor_hosted();
                    self.ask_unanswered();
                }
                Ok(()) = folders.changed() => self.notify_roots_changed(),
                Ok(()) = environments.changed() => self.recheck_waiting(),
                Ok(()) = health.changed() => {}
                Some(_) = self.tasks.join_next() => continue,
            }
            // Everything that has arrived by now is published as one change.
            while let Ok(event) = events.try_recv() {
                self.handle_event(event);
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
        let Config { policies, actions, gone, .. } = &loaded.config;
        let policies_changed = before.policies != *policies || before.actions != *actions || before.gone != *gone;
        let untouched = |name: &ServerName| !steps.iter().any(|step| step.server() == name);
        for (name, definition) in loaded.config.servers.iter().filter(|(name, _)| policies_changed && untouched(name)) {
            self.recheck_trust(name, definition);
        }
        // A server that failed because its program was missing is restarted as soon as the program exists.
        let now_found =
            |program: &MissingProgram| before.missing.contains(program) && !loaded.config.missing.contains(program);
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
        // A removed server was perhaps the last one that others of its file waited for.
        self.ask_about_trust(trust::Gather::WholeFiles);
        reload
    }

    fn rules(&self) -> Arc<Rules> {
        Arc::new(Rules::new(&self.applied.config, &self.levels, &self.context.host.roots()))
    }

    fn carry_out(&mut self, step: &Step, config: &Config) {
        match step {
            Step::Stop(name) => {
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

    /// Adds a new or relaunched definition: its trust is checked first, then it starts.
    fn add_slot(&mut self, definition: Arc<Definition>, before: Option<Slot>) {
        self.generation += 1;
        let generation = self.generation;
        let leaving = before.as_ref().and_then(|slot| slot.server.clone());
        let switched_on = before.as_ref().is_none_or(|slot| slot.switched_on);
        self.slots.insert(definition.name.clone(), Slot::new(definition.clone(), generation, switched_on));
        self.check_trust(definition, generation, leaving, TrustCheck::Again);
    }

    fn handle_event(&mut self, (name, generation, event): (ServerName, u64, Event)) {
        let Some(slot) = self.slots.get_mut(&name).filter(|slot| slot.generation == generation) else { return };
        match event {
            // Reads the current state: the last event of an old process must not count for the new one.
            Event::State(_) => slot.refresh(),
            Event::Log { line, calls } => {
                self.notices.send(Notice::Log { server: name, line, calls }).ok();
            }
            Event::Notification { notification, calls } => {
                self.notices.send(Notice::Unknown { server: name, notification, calls }).ok();
            }
            Event::ResourceUpdated { uri } => {
                self.notices.send(Notice::ResourceUpdated { server: name, uri }).ok();
            }
        }
    }

    fn handle(&mut self, command: HubCommand, loaded: &mut watch::Receiver<Arc<Loaded>>) {
        match command {
            HubCommand::ApplyConfig { done } => {
                let newest = loaded.borrow_and_update().clone();
                let reload = self.apply(newest);
                let all: Vec<ServerName> = self.slots.keys().cloned().collect();
                self.recheck_untrusted(&all);
                self.pending_reloads.push((reload, done));
                self.answer_pending();
            }
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
            HubCommand::SetSessionLevel { server, tool, level, done } => {
                let definition = self.slots.get(&server).map(|slot| slot.definition.clone());
                self.levels.set(server, definition.as_deref(), &tool, level);
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
            HubCommand::SetUsage { usage, done } => {
                self.usage = usage;
                self.publish();
                done.send(()).ok();
            }
            HubCommand::CheckAllTrust { own } => {
                let checked = self.slots.values().filter(|slot| !own || !slot.definition.scope.needs_trust());
                let all: Vec<_> = checked.map(|slot| (slot.definition.clone(), slot.generation)).collect();
                for (definition, generation) in all {
                    self.check_trust(definition, generation, None, TrustCheck::Again);
                }
            }
            HubCommand::CheckTrust { server, check, done } => {
                if let Some(slot) = self.slots.get(&server) {
                    let (definition, generation) = (slot.definition.clone(), slot.generation);
                    self.check_trust(definition, generation, None, check);
                    self.pending_checks.push((server, done));
                }
            }
            HubCommand::AskAboutTrust => {
                self.is_gathering = false;
                self.ask_about_trust(trust::Gather::TimeIsUp);
            }
            HubCommand::ApplyEnvironments { done } => {
                let servers = self.slots.values().filter_map(|slot| slot.server.as_ref());
                let failed = servers.filter(|server| server.state().status == Status::Failed);
                let compared = failed.map(Server::compare_environment).collect();
                self.refresh_after(compared, move || {
                    done.send(()).ok();
                });
            }
            HubCommand::Refresh { done } => {
                for slot in self.slots.values_mut() {
                    slot.refresh();
                }
                self.publish();
                done.send(()).ok();
            }
            HubCommand::TrustChecked { server, generation, round, verdict, is_shared } => {
                self.apply_verdict(&server, generation, round, verdict, is_shared);
                self.answer_pending();
            }
            // Handled in `run`.
            HubCommand::Shutdown { done } => drop(done),
        }
    }

    /// Starts, stops, restarts or refreshes one server or all of them. Answers when they have settled.
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
        let settling = chosen.iter().filter_map(|name| self.slots.get_mut(name)?.begin_action(action));
        let mut settling: Vec<BoxFuture<'static, ()>> = settling.map(|settling| settling.map(drop).boxed()).collect();
        if matches!(action, Action::Start | Action::Restart) {
            settling.extend(self.recheck_untrusted(&chosen).into_iter().map(|checked| checked.map(drop).boxed()));
        }
        self.refresh_after(settling, move || drop(done.send(Ok(()))));
    }

    /// Waits for these, and then until the snapshot shows the state of all servers.
    fn refresh_after<F>(&mut self, settling: Vec<F>, answer: impl FnOnce() + Send + 'static)
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let commands = self.commands.clone();
        self.tasks.spawn(async move {
            futures::future::join_all(settling).await;
            let (fresh, refreshed) = oneshot::channel();
            commands.send(HubCommand::Refresh { done: fresh }).await.ok();
            refreshed.await.ok();
            answer();
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

    /// Answers callers that wait for checks of trust, once the snapshot shows their outcome.
    fn answer_pending(&mut self) {
        let slots = &self.slots;
        let is_checked = |name: &ServerName| !slots.get(name).is_some_and(Slot::is_being_checked);
        let is_done = |slot: &Slot| slot.is_trust_checked() && !slot.is_being_checked();
        let all_checked = self.pending_reloads.is_empty() || slots.values().all(is_done);
        let reloads: Vec<_> = self.pending_reloads.extract_if(.., |_| all_checked).collect();
        let checks: Vec<_> = self.pending_checks.extract_if(.., |(name, _)| is_checked(name)).collect();
        if reloads.is_empty() && checks.is_empty() {
            return;
        }
        self.publish();
        for (reload, done) in reloads {
            done.send(reload).ok();
        }
        for (_, done) in checks {
            done.send(()).ok();
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
        self.published.send_replace(Arc::new(Snapshot { servers, rules, usage: self.usage.clone() }));
    }

    /// Stops all servers at once.
    async fn shutdown(&mut self) {
        let servers = std::mem::take(&mut self.slots).into_values().filter_map(|slot| slot.server);
        futures::future::join_all(servers.map(Server::shutdown)).await;
        self.tasks.shutdown().await;
    }
}
