//! The owner of every server. It hears the config, the servers and the commands, and publishes the whole picture.
//!
//! Nothing here waits: starting, stopping and judging run beside it and report back, so that one slow server never
//! holds up another.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::Notice;
use super::memory::LongMemory;
use super::plan::{self, Reload, Step};
use super::record;
use super::slot::Slot;
use super::snapshot::Snapshot;
use super::trust::{Judge, Verdict};
use crate::config::{Config, Definition, Loaded};
use crate::model::{Error, Level, Result, ServerName, ToolId};
use crate::policy::{Rules, SessionLevels};
use crate::server::{Action, Context, Event, Server};

/// How long a restarted server may take to leave before its successor starts beside it.
const HANDOVER: Duration = Duration::from_millis(500);

/// What others want of the hub.
pub enum Wish {
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
    /// The folders are known, or the config was read again by hand; the answer is what that changed.
    Reloaded {
        loaded: Arc<Loaded>,
        done: oneshot::Sender<Arc<Reload>>,
    },
    /// A level for this session only; `None` takes it away.
    Level {
        server: ServerName,
        tool: String,
        level: Option<Level>,
        done: oneshot::Sender<()>,
    },
    /// The tools that the user disabled in this project; the whole list.
    Disabled {
        tools: Vec<ToolId>,
        done: oneshot::Sender<()>,
    },
    /// Publish what the servers say now, then answer.
    Refresh {
        done: oneshot::Sender<()>,
    },
    /// The editor trusts the workspace now, or no longer.
    ConsiderAll,
    /// The user decided about trust, or a program changed on disk: judge this definition again.
    Consider {
        server: ServerName,
        done: oneshot::Sender<()>,
    },
    Judged {
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
    pub judge: Arc<Judge>,
    pub memory: Arc<LongMemory>,
    pub store: crate::store::Store,
    /// Those who want to know what a reload changed, once every definition of it has been judged.
    pub waiting: Vec<(Arc<Reload>, oneshot::Sender<Arc<Reload>>)>,
    pub context: Context,
    pub wishes: mpsc::Sender<Wish>,
    pub published: watch::Sender<Arc<Snapshot>>,
    pub notices: broadcast::Sender<Notice>,
    /// Work that runs beside the hub and ends with it.
    pub tasks: JoinSet<()>,
}

impl Hub {
    pub async fn run(
        mut self,
        mut loaded: watch::Receiver<Arc<Loaded>>,
        mut events: mpsc::Receiver<(ServerName, u64, Event)>,
        mut wishes: mpsc::Receiver<Wish>,
        mut editors: watch::Receiver<usize>,
        mut folders: watch::Receiver<Vec<Arc<Path>>>,
    ) {
        // Nothing starts before a front has said its folders, be it that there are none: what `${workspaceFolder}` means
        // and which roots there are is part of every start.
        let mut begun = false;
        let mut health = self.store.health();
        loop {
            tokio::select! {
                changed = loaded.changed() => {
                    if changed.is_err() {
                        break;
                    }
                    let newest = loaded.borrow_and_update().clone();
                    if begun {
                        self.apply(newest);
                    }
                }
                Some(first) = events.recv() => {
                    self.hear(first);
                    // A burst is one change to those who look.
                    while let Ok(next) = events.try_recv() {
                        self.hear(next);
                    }
                }
                wish = wishes.recv() => match wish {
                    Some(Wish::Shutdown { done }) => {
                        self.shutdown().await;
                        done.send(()).ok();
                        return;
                    }
                    Some(wish) => {
                        begun |= matches!(wish, Wish::Reloaded { .. });
                        self.grant(wish);
                    }
                    None => break,
                },
                Ok(()) = editors.changed() => self.wake_editor_hosted(),
                Ok(()) = folders.changed() => self.tell_roots(),
                Ok(()) = health.changed() => {}
                Some(_) = self.tasks.join_next() => continue,
            }
            self.publish();
        }
        self.shutdown().await;
    }

    /// Carries the difference to a newly read config out. Servers that did not change are not touched.
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
        // A policy widens for the servers of its file as their own levels do: what was trusted may not cover it. It may
        // also take a program away from everybody, and a folder that is gone takes its servers along.
        let applied = self.applied.clone();
        let before = &applied.config;
        let other_ground = before.policies != loaded.config.policies || before.gone != loaded.config.gone;
        let untouched = |name: &ServerName| !steps.iter().any(|step| step.server() == name);
        for (name, definition) in loaded.config.servers.iter().filter(|(name, _)| other_ground && untouched(name)) {
            self.reconsider(name, definition);
        }
        // What failed for want of a program that is there now has no reason to wait for its next try, or for the user.
        let come = |program: &String| before.missing.contains(program) && !loaded.config.missing.contains(program);
        let wanting =
            self.slots.values().filter(|slot| slot.has_failed_with(come)).filter_map(|slot| slot.server.clone());
        for server in wanting.collect::<Vec<_>>() {
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
                self.judge.withdraw("the definition is gone", name);
                if let Some(slot) = self.slots.remove(name) {
                    self.end(slot);
                }
            }
            Step::Start(name) | Step::Restart(name) => {
                if let Some(definition) = config.servers.get(name) {
                    let before = self.slots.remove(name);
                    self.begin(definition.clone(), before);
                }
            }
            Step::Update(name) => {
                if let Some(definition) = config.servers.get(name) {
                    self.reconsider(name, definition);
                }
            }
        }
    }

    /// What a running definition may do has changed: nothing of it widens before it has been judged.
    fn reconsider(&mut self, name: &ServerName, definition: &Arc<Definition>) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.definition = definition.clone();
            slot.reconsider();
            let generation = slot.generation;
            self.consider(definition.clone(), generation, None, None);
        }
    }

    /// A definition that is new or launches differently: judged first, then started.
    fn begin(&mut self, definition: Arc<Definition>, before: Option<Slot>) {
        self.generation += 1;
        let generation = self.generation;
        let leaving = before.as_ref().and_then(|slot| slot.server.clone());
        let switched_on = before.as_ref().is_none_or(|slot| slot.switched_on);
        self.slots.insert(definition.name.clone(), Slot::new(definition.clone(), generation, switched_on));
        self.consider(definition, generation, leaving, None);
    }

    /// Has a definition judged beside the hub; what it leaves behind gets a moment to go.
    fn consider(
        &mut self,
        definition: Arc<Definition>,
        generation: u64,
        leaving: Option<Server>,
        done: Option<oneshot::Sender<()>>,
    ) {
        let round = self.slots.get_mut(&definition.name).map(Slot::next_round).unwrap_or_default();
        let (judge, memory, wishes) = (self.judge.clone(), self.memory.clone(), self.wishes.clone());
        self.tasks.spawn(async move {
            let server = definition.name.clone();
            let ended = async {
                if let Some(leaving) = leaving {
                    tokio::time::timeout(HANDOVER, leaving.shutdown()).await.ok();
                }
            };
            let (verdict, (), ()) = tokio::join!(judge.judge(definition.clone()), memory.prepare(&definition), ended);
            wishes.send(Wish::Judged { server, generation, round, verdict, done }).await.ok();
        });
    }

    fn judged(&mut self, name: &ServerName, generation: u64, round: u64, verdict: Verdict) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.awaits(generation, round)) else { return };
        let question = match verdict {
            Verdict::Ask(question) => {
                slot.must_ask(&question);
                Some(question)
            }
            Verdict::May(trusted) => {
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
        // The question before this one, if there is one, was about something else.
        self.judge.withdraw("the definition has changed", name);
        // What is switched off in its file will not start: there is nothing to ask about until it is switched on.
        if let Some(question) = question.filter(|_| definition.spec.enabled) {
            let (judge, wishes) = (self.judge.clone(), self.wishes.clone());
            self.tasks.spawn(async move {
                let server = definition.name.clone();
                if judge.ask(definition, question).await {
                    let (done, _) = oneshot::channel();
                    wishes.send(Wish::Consider { server, done }).await.ok();
                }
            });
        }
    }

    fn hear(&mut self, (name, generation, event): (ServerName, u64, Event)) {
        let Some(slot) = self.slots.get_mut(&name).filter(|slot| slot.generation == generation) else { return };
        match event {
            // What the server says now; the last words of one that had to leave are not its successor's.
            Event::State(_) => slot.refresh(),
            Event::Log(line) => {
                self.notices.send(Notice::Log { server: name, line }).ok();
            }
            Event::ResourceUpdated { uri } => {
                self.notices.send(Notice::ResourceUpdated { server: name, uri }).ok();
            }
        }
    }

    fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Act { action, server, done } => self.act(action, server, done),
            Wish::Toggle { server, on, done } => {
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
            Wish::Reloaded { loaded, done } => {
                let reload = self.apply(loaded);
                self.waiting.push((reload, done));
                self.answer_waiting();
            }
            Wish::Level { server, tool, level, done } => {
                self.levels.set(server, &tool, level);
                self.rules = self.rules();
                self.publish();
                done.send(()).ok();
            }
            Wish::Disabled { tools, done } => {
                self.levels.set_disabled(tools);
                self.rules = self.rules();
                self.publish();
                done.send(()).ok();
            }
            Wish::ConsiderAll => {
                let all: Vec<_> = self.slots.values().map(|slot| (slot.definition.clone(), slot.generation)).collect();
                for (definition, generation) in all {
                    self.consider(definition, generation, None, None);
                }
            }
            Wish::Consider { server, done } => {
                if let Some(slot) = self.slots.get(&server) {
                    let (definition, generation) = (slot.definition.clone(), slot.generation);
                    self.consider(definition, generation, None, Some(done));
                }
            }
            Wish::Refresh { done } => {
                for slot in self.slots.values_mut() {
                    slot.refresh();
                }
                self.publish();
                done.send(()).ok();
            }
            Wish::Judged { server, generation, round, verdict, done } => {
                self.judged(&server, generation, round, verdict);
                self.answer_waiting();
                if let Some(done) = done {
                    done.send(()).ok();
                }
            }
            // Taken by `run` before it gets here.
            Wish::Shutdown { done } => drop(done),
        }
    }

    /// Start, stop or restart one server or all of them; answered when each has settled.
    fn act(&mut self, action: Action, server: Option<ServerName>, done: oneshot::Sender<Result<()>>) {
        let chosen: Vec<ServerName> = match server {
            Some(name) if !self.slots.contains_key(&name) => {
                done.send(Err(Error::NoServer(name.to_string()))).ok();
                return;
            }
            Some(name) => vec![name],
            None => self.slots.keys().cloned().collect(),
        };
        // Queued here and not in the task below: a later command must not overtake an earlier one.
        let settling: Vec<_> = chosen
            .iter()
            .filter_map(|name| self.slots.get_mut(name).and_then(|slot| slot.begin_action(action)))
            .collect();
        let wishes = self.wishes.clone();
        self.tasks.spawn(async move {
            futures::future::join_all(settling).await;
            let (fresh, refreshed) = oneshot::channel();
            wishes.send(Wish::Refresh { done: fresh }).await.ok();
            refreshed.await.ok();
            done.send(Ok(())).ok();
        });
    }

    fn tell_roots(&mut self) {
        for server in self.slots.values().filter_map(|slot| slot.server.clone()) {
            self.tasks.spawn(async move { server.roots_changed().await });
        }
    }

    /// An editor has come: servers that live inside it can be reached now.
    fn wake_editor_hosted(&mut self) {
        for slot in self.slots.values().filter(|slot| slot.waits_for_editor()) {
            if let Some(server) = slot.server.clone() {
                self.tasks.spawn(async move {
                    server.start().await.ok();
                });
            }
        }
    }

    /// Answers those who wait for a reload, as soon as the picture shows what became of every definition.
    fn answer_waiting(&mut self) {
        self.publish();
        if self.slots.values().all(Slot::is_judged) {
            for (reload, done) in self.waiting.drain(..) {
                done.send(reload).ok();
            }
        }
    }

    fn end(&mut self, slot: Slot) {
        if let Some(server) = slot.server {
            self.tasks.spawn(async move { server.shutdown().await });
        }
    }

    fn publish(&mut self) {
        let rules = self.rules.clone();
        let names: Vec<ServerName> = self.slots.keys().cloned().collect();
        let trouble = record::trouble(&self.store);
        let view = |(name, slot): (&ServerName, &mut Slot)| (name.clone(), slot.view(&rules, &names, trouble.as_ref()));
        let servers = self.slots.iter_mut().map(view).collect();
        self.published.send_replace(Arc::new(Snapshot { servers, rules }));
    }

    /// Ends every server, all at once.
    async fn shutdown(&mut self) {
        let servers = std::mem::take(&mut self.slots).into_values().filter_map(|slot| slot.server);
        futures::future::join_all(servers.map(Server::shutdown)).await;
        self.tasks.shutdown().await;
    }
}
