//! Trust in the hub: checks definitions, applies the verdicts, and asks the user.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;

use super::{HANDOVER, Hub, HubCommand};
use crate::config::Definition;
use crate::engine::approvals::Saving;
use crate::engine::plan;
use crate::engine::slot::{OpenTrustQuestion, Slot, TrustCheck};
use crate::engine::trust::{AskedTrust, Verdict};
use crate::model::{Decision, ServerName};
use crate::policy::trust::{Question, TrustKey};
use crate::server::{Context, Server};
use crate::store::Saved;

/// How long a question about trust waits for the other definitions of its file to be checked.
const GATHER_TIME: Duration = Duration::from_secs(1);

/// Which questions about trust are due.
pub(super) enum Gather {
    /// Those of files whose definitions are all checked.
    WholeFiles,
    /// All of them: they have waited long enough.
    TimeIsUp,
}

impl Hub {
    /// A running definition changed what it may do: nothing more is allowed until its trust has been checked.
    pub(super) fn recheck_trust(&mut self, name: &ServerName, definition: &Arc<Definition>) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.definition = definition.clone();
            slot.recheck_trust();
            let generation = slot.generation;
            self.check_trust(definition.clone(), generation, None, TrustCheck::Again);
        }
    }

    /// Checks the trust of a definition in a task, while its old process gets a moment to exit.
    pub(super) fn check_trust(
        &mut self,
        definition: Arc<Definition>,
        generation: u64,
        leaving: Option<Server>,
        check: TrustCheck,
    ) {
        let (round, ask) = match self.slots.get_mut(&definition.name) {
            Some(slot) => slot.begin_check(check),
            None => return,
        };
        let (checker, memory, commands) = (self.trust_checker.clone(), self.memory.clone(), self.commands.clone());
        self.tasks.spawn(async move {
            let server = definition.name.clone();
            let ended = async {
                if let Some(leaving) = leaving {
                    tokio::time::timeout(HANDOVER, leaving.hand_over()).await.ok();
                }
            };
            let (verdict, is_shared, (), ()) = tokio::join!(
                checker.check(definition.clone(), ask),
                checker.is_independent(definition.clone()),
                memory.prepare(&definition),
                ended
            );
            commands.send(HubCommand::TrustChecked { server, generation, round, verdict, is_shared }).await.ok();
        });
    }

    pub(super) fn apply_verdict(
        &mut self,
        name: &ServerName,
        generation: u64,
        round: u64,
        verdict: Verdict,
        is_shared: bool,
    ) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.awaits(generation, round)) else { return };
        slot.end_check();
        match verdict {
            Verdict::Ask(question) => slot.must_ask(question),
            Verdict::Trusted(trusted) => {
                let inputs = Arc::new(self.applied.config.inputs.clone());
                let context = Context { inputs, ..self.context.clone() };
                slot.may_start(trusted, |trusted, generation| match is_shared {
                    true => {
                        let context = Context { host: self.shared_host.clone(), ..context };
                        self.shared_servers.spawn(trusted, generation, context, plan::launches_alike)
                    }
                    false => Server::spawn(trusted, generation, context),
                });
            }
            Verdict::Refused(fingerprint) => slot.refused(fingerprint),
            Verdict::Restricted(fingerprint) => slot.restricted(fingerprint),
            Verdict::Forbidden { reason } => slot.forbidden(reason),
        }
        if let Some(leaving) = slot.leaving.take() {
            self.tasks.spawn(async move { leaving.shutdown().await });
        }
        self.ask_about_trust(Gather::WholeFiles);
    }

    /// Asks the questions that are due. Those of one file are asked together: each waits until all definitions of its
    /// file are checked, but not for long.
    pub(super) fn ask_about_trust(&mut self, gather: Gather) {
        let unchecked: BTreeSet<Arc<Path>> = match gather {
            Gather::WholeFiles => {
                let unchecked = self.slots.values().filter(|slot| slot.is_being_checked());
                unchecked.filter_map(|slot| slot.definition.file.clone()).collect()
            }
            Gather::TimeIsUp => BTreeSet::new(),
        };
        let mut due: Vec<(u64, Arc<Definition>, Arc<Question>)> =
            self.slots.values().filter_map(|slot| slot.due_question(&unchecked)).collect();
        due.sort_by_key(|(_, definition, _)| (definition.file.clone(), definition.key_span.start));
        // One question per folder, however many servers would run in it. Its answer checks all of them again.
        let mut folders: BTreeSet<TrustKey> = self.slots.values().filter_map(Slot::open_folder_question).collect();
        due.retain(|(_, _, question)| !question.is_about_folder() || folders.insert(question.key.clone()));
        let definitions: Vec<_> =
            due.iter().map(|(_, definition, question)| (definition.clone(), question.clone())).collect();
        for ((round, definition, question), asked) in due.into_iter().zip(self.trust_checker.ask(&definitions)) {
            let name = definition.name.clone();
            let asked = asked.map(|AskedTrust { decision, withdrawal }| {
                let task = tokio::spawn(self.apply_decision(decision, definition, question.clone(), round));
                OpenTrustQuestion { question, round, withdrawal, task }
            });
            if let Some(slot) = self.slots.get_mut(&name) {
                slot.asked(asked);
            }
        }
        if !self.is_gathering && self.slots.values().any(|slot| slot.has_due_question(&folders)) {
            self.is_gathering = true;
            let commands = self.commands.clone();
            self.tasks.spawn(async move {
                tokio::time::sleep(GATHER_TIME).await;
                commands.send(HubCommand::AskAboutTrust).await.ok();
            });
        }
    }

    /// Stores the decision of the user and checks the definition again.
    fn apply_decision(
        &self,
        decision: BoxFuture<'static, Option<(Decision, Saving)>>,
        definition: Arc<Definition>,
        question: Arc<Question>,
        round: u64,
    ) -> impl Future<Output = ()> + use<> {
        let (checker, commands) = (self.trust_checker.clone(), self.commands.clone());
        async move {
            let Some((decision, saving)) = decision.await else { return };
            let saved = match decision.allows() && checker.is_outdated(&definition, &question).await {
                true => Saved::ToDisk,
                false => checker.decide(&question.key, &question.fingerprint, decision).await,
            };
            saving.report(saved);
            let (done, _) = oneshot::channel();
            let check = match question.is_about_folder() {
                true => HubCommand::CheckAllTrust { own: true },
                false => HubCommand::CheckTrust {
                    server: definition.name.clone(),
                    check: TrustCheck::Decided { round: Some(round) },
                    done,
                },
            };
            commands.send(check).await.ok();
        }
    }

    /// Another environment may find other programs, so definitions that wait are checked again. A running server keeps
    /// the program that it was started with.
    pub(super) fn recheck_waiting(&mut self) {
        let waiting = self.slots.values().filter(|slot| slot.server.is_none() && slot.definition.spec.enabled);
        let waiting: Vec<_> = waiting.map(|slot| (slot.definition.clone(), slot.generation)).collect();
        for (definition, generation) in waiting {
            self.check_trust(definition, generation, None, TrustCheck::Again);
        }
    }

    /// The user wants servers to run: checks those again that wait for trust, because their files may be as they were when
    /// they were trusted. The futures complete with the verdicts.
    pub(super) fn recheck_untrusted(&mut self, servers: &[ServerName]) -> Vec<oneshot::Receiver<()>> {
        let untrusted = servers.iter().filter_map(|name| self.slots.get(name)).filter(|slot| slot.waits_for_trust());
        let untrusted: Vec<_> = untrusted.map(|slot| (slot.definition.clone(), slot.generation)).collect();
        let check = |(definition, generation): (Arc<Definition>, u64)| {
            let (done, checked) = oneshot::channel();
            self.pending_checks.push((definition.name.clone(), done));
            self.check_trust(definition, generation, None, TrustCheck::Again);
            checked
        };
        untrusted.into_iter().map(check).collect()
    }

    /// An editor connected or disconnected: asks again about trust where the user could not answer.
    pub(super) fn ask_unanswered(&mut self) {
        let unanswered = self.slots.values().filter(|slot| slot.has_unanswered_question());
        let unanswered: Vec<_> = unanswered.map(|slot| (slot.definition.clone(), slot.generation)).collect();
        for (definition, generation) in unanswered {
            self.check_trust(definition, generation, None, TrustCheck::Again);
        }
    }
}
