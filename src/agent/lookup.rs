//! Finds the server of a resource or a prompt by the name that an agent uses. What does not exist is recorded as refused.

use rmcp::model::ErrorData;

use super::handler::Handler;
use super::response::unknown_uri;
use super::session::AgentView;
use crate::model::{CallKind, ServerName, Subject};
use crate::text::one_line;

impl Handler {
    pub(super) async fn find_uri(
        &self,
        agent: &AgentView,
        kind: CallKind,
        uri: &str,
    ) -> Result<(ServerName, String), ErrorData> {
        if let Some(found) = self.endpoint().catalog(agent).find_uri(uri) {
            return Ok(found);
        }
        let error = unknown_uri(uri);
        self.record_unknown(agent, kind, &format!("{}{uri}", Subject::RESOURCE), &error).await;
        Err(error)
    }

    pub(super) async fn find_prompt(
        &self,
        agent: &AgentView,
        kind: CallKind,
        name: &str,
    ) -> Result<(ServerName, String), ErrorData> {
        if let Some(found) = self.endpoint().catalog(agent).prompt_names.get(name).cloned() {
            return Ok(found);
        }
        let error = ErrorData::invalid_params(format!("no prompt named `{}`", one_line(name, 200)), None);
        self.record_unknown(agent, kind, &format!("{}{name}", Subject::PROMPT), &error).await;
        Err(error)
    }

    async fn record_unknown(&self, agent: &AgentView, kind: CallKind, name: &str, error: &ErrorData) {
        let reason = error.message.to_string();
        self.endpoint().engine.refuse_unknown(agent.requester.clone(), kind, name, reason).await;
    }
}
