//! Agents that ask twice: before they use a tool, and once more when they need a permission for it. The answer to the first
//! question counts for the second one, if both are about the same action.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{HookEvent, HookTask};
use crate::engine::change;
use crate::engine::consent::AllowedAction;
use crate::model::HookAgent;
use crate::policy::ActionKind;

impl HookTask {
    /// The action was allowed. The agent may ask about it again.
    pub(super) async fn expect_second_question(&self) {
        if self.event == HookEvent::BeforeTool
            && let Some(action) = self.action_in_both().await
        {
            self.engine.0.shared.allowed_actions.add(action);
        }
    }

    /// Whether the action was allowed when the agent asked about it for the first time.
    pub(super) async fn is_second_question(&self) -> bool {
        self.event == HookEvent::PermissionRequest
            && self.action_in_both().await.is_some_and(|action| self.engine.0.shared.allowed_actions.take(&action))
    }

    /// What is the same in both questions.
    async fn action_in_both(&self) -> Option<AllowedAction> {
        let mut tool = Some(self.action.name.clone());
        let arguments = match &self.action.kind {
            // Its second question has the difference instead of the arguments, and another tool for a new file.
            ActionKind::Edit { file: Some(file) } if self.action.agent == HookAgent::Copilot => {
                tool = None;
                let (arguments, path) = (self.call.arguments.clone(), file.clone());
                let lines = match self.call.arguments.get("diff").and_then(Value::as_str) {
                    Some(diff) if self.event == HookEvent::PermissionRequest => change::lines_of_diff(diff),
                    _ => {
                        let lines = tokio::task::spawn_blocking(move || change::lines_of(&arguments, &path));
                        lines.await.ok().flatten()
                    }
                }?;
                let file = ("file".to_owned(), Value::String(file.display().to_string()));
                Arc::new(Map::from_iter([file, ("lines".to_owned(), lines.into())]))
            }
            ActionKind::Edit { .. } => self.call.arguments.clone(),
            // The second question about a command may have another description.
            ActionKind::Shell { text, .. } => {
                let others = self.action.unknown_arguments().into_iter();
                let others = others.filter_map(|key| Some((key.to_owned(), self.call.arguments.get(key)?.clone())));
                Arc::new(others.chain([(String::new(), Value::String(text.clone()))]).collect())
            }
            ActionKind::Fetch { .. } | ActionKind::Other => return None,
        };
        let (agent, folder) = (self.action.agent, self.action.folder.clone());
        Some(AllowedAction { agent, session: self.call.workflow.clone(), tool, folder, arguments })
    }
}
