//! Asks the user about trust, and waits for the decision.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;

use super::TrustChecker;
use super::own_launches::ELSEWHERE_GRACE;
use crate::config::Definition;
use crate::engine::approvals::{
    self, Answer, Answered, Approval, Approvals, GroupKey, Kind, NoAnswer, OpenQuestion, Saving, Withdrawal,
};
use crate::engine::host::question;
use crate::engine::prompt;
use crate::model::{Decision, Result};
use crate::policy::trust::Question;

/// A question about trust that waits.
pub struct AskedTrust {
    /// `None` if there was no decision.
    pub decision: BoxFuture<'static, Option<(Decision, Saving)>>,
    pub withdrawal: Withdrawal,
}

impl TrustChecker {
    /// Asks the user about definitions, all in one change of the list of questions. `None` for each that no one can be
    /// asked about.
    pub fn ask(&self, definitions: &[(Arc<Definition>, Arc<Question>)]) -> Vec<Option<AskedTrust>> {
        let prompt = |(definition, question): &(Arc<Definition>, Arc<Question>)| self.prompt(definition, question);
        let prompts: Vec<approvals::Question> = definitions
            .iter()
            .map(|asked| approvals::Question { is_common: asked.1.is_about_own_launch(), ..prompt(asked).into() })
            .collect();
        let withdrawals: Vec<Withdrawal> = prompts.iter().map(|prompt| prompt.withdrawal.clone()).collect();
        let approvals: Vec<Arc<Approval>> = prompts.iter().map(|prompt| prompt.approval.clone()).collect();
        let opened = self.approvals.open(prompts).into_iter().zip(approvals).zip(withdrawals).zip(definitions);
        let asked = opened.map(|(((opened, approval), withdrawal), (_, question))| match opened {
            Err(NoAnswer::NobodyToAsk) => None,
            opened => {
                let is_common = question.is_about_own_launch();
                let decision =
                    wait_for_decision(self.approvals.clone(), opened, approval, is_common, withdrawal.clone());
                let decision = match is_common {
                    true => {
                        let elsewhere = self.answered_elsewhere(question);
                        let elsewhere = elsewhere.map(|decision| Some((decision, Saving::default())));
                        futures::future::select(decision.boxed(), elsewhere.boxed())
                            .map(|first| first.factor_first().0)
                            .boxed()
                    }
                    false => decision.boxed(),
                };
                Some(AskedTrust { decision, withdrawal })
            }
        });
        asked.collect()
    }

    fn prompt(&self, definition: &Definition, asked: &Question) -> Approval {
        let title = match asked.difference {
            _ if asked.is_about_folder() => {
                format!("Run your own servers, such as `{}`, in {}?", definition.name, asked.key.project.display())
            }
            Some(_) if asked.is_about_own_launch() => {
                format!("Did you change the server `{}` in your own config?", definition.name)
            }
            None if asked.is_about_own_launch() => {
                format!("Did you add the server `{}` to your own config?", definition.name)
            }
            Some(_) => format!("The definition of the server `{}` has changed. Trust it again?", definition.name),
            None => format!("Trust the server `{}`?", definition.name),
        };
        Approval {
            group: definition.file.clone().filter(|_| !asked.is_about_folder()).map(GroupKey::File),
            summary: prompt::summary_of_definition(definition, &asked.summary),
            detail: match () {
                () if asked.is_about_folder() => prompt::folder(definition, &asked.summary),
                () if asked.is_about_own_launch() => prompt::own_launch(definition, &asked.summary),
                () => prompt::definition(definition, &asked.summary),
            },
            diff: asked.difference.as_ref().map(|lines| lines.join("\n")),
            ..question(&definition.name, Kind::Trust, title, &["allow-project", "allow-session", "deny"])
        }
    }
}

/// Waits for the decision. If there are too many questions, this one is asked when there is room for it. If another
/// workspace asks the same, it is asked when that one has ended without an answer.
async fn wait_for_decision(
    approvals: Approvals,
    mut opened: Result<OpenQuestion, NoAnswer>,
    approval: Arc<Approval>,
    is_common: bool,
    withdrawal: Withdrawal,
) -> Option<(Decision, Saving)> {
    loop {
        let outcome = match opened {
            Ok(question) => question.outcome().await,
            Err(no_answer) => Err(no_answer),
        };
        match outcome {
            Ok(Answered { answer: Answer::Decision { decision, .. }, by, saving }) => {
                tracing::info!(server = %approval.server, decision = decision.as_str(), %by, "trust decided");
                return Some((decision, saving));
            }
            Err(no_answer @ (NoAnswer::Full(_) | NoAnswer::AskedElsewhere)) => {
                let can_ask = async {
                    match no_answer {
                        NoAnswer::AskedElsewhere => {
                            approvals.until_asked_nowhere(&approval).await;
                            // An answer ends the wait for this one before that.
                            tokio::time::sleep(ELSEWHERE_GRACE).await;
                        }
                        _ => approvals.room().await,
                    }
                };
                tokio::select! {
                    () = can_ask => {}
                    () = withdrawal.requested() => return None,
                }
                let withdrawal = withdrawal.clone();
                let again = approvals::Question { is_common, withdrawal, ..Approval::clone(&approval).into() };
                opened = approvals.open(vec![again]).pop()?;
            }
            _ => return None,
        }
    }
}
