//! Finds the server of a tool, a resource or a prompt by the name that an agent uses. What does not exist is recorded as
//! refused.

use std::sync::Arc;

use rmcp::model::ErrorData;

use super::catalog::Catalog;
use super::handler::Handler;
use super::response::unknown_uri;
use super::session::AgentView;
use crate::model::{CallKind, ServerName, Subject};
use crate::text::one_line;

/// Longer URIs cannot be subscribed to. A subscription keeps its URI.
pub const MAX_URI_BYTES: usize = 8 << 10;

impl Handler {
    /// What the catalog has. An agent that remembers a name may use it before the server has started, so an unknown one
    /// waits for the servers that are starting. The error is the catalog that does not have it.
    pub(super) async fn find_offered<T>(
        &self,
        agent: &AgentView,
        find: impl Fn(&Catalog) -> Option<T>,
    ) -> Result<T, Arc<Catalog>> {
        if let Some(found) = find(&self.endpoint().catalog(agent)) {
            return Ok(found);
        }
        let catalog = Box::pin(self.session.settled_catalog(agent)).await;
        find(&catalog).ok_or(catalog)
    }

    pub(super) async fn find_uri(
        &self,
        agent: &AgentView,
        kind: CallKind,
        uri: &str,
    ) -> Result<(ServerName, String), ErrorData> {
        if let Ok(found) = self.find_offered(agent, |catalog| catalog.find_uri(uri)).await {
            return Ok(found);
        }
        let error = unknown_uri(uri);
        self.record_refused(agent, kind, &format!("{}{uri}", Subject::RESOURCE), "unknown", &error).await;
        Err(error)
    }

    pub(super) async fn find_prompt(
        &self,
        agent: &AgentView,
        kind: CallKind,
        name: &str,
    ) -> Result<(ServerName, String), ErrorData> {
        if let Ok(found) = self.find_offered(agent, |catalog| catalog.prompt_names.get(name).cloned()).await {
            return Ok(found);
        }
        let error = ErrorData::invalid_params(format!("no prompt named `{}`", one_line(name, 200)), None);
        self.record_refused(agent, kind, &format!("{}{name}", Subject::PROMPT), "unknown", &error).await;
        Err(error)
    }

    /// Refuses a subscription over the limits.
    pub(super) async fn check_subscription(&self, agent: &AgentView, uri: &str) -> Result<(), ErrorData> {
        let limit = self.endpoint().engine.settings().borrow().limits.subscriptions;
        let (by, text) = if uri.len() > MAX_URI_BYTES {
            let text = format!("cannot subscribe: the URI is longer than {MAX_URI_BYTES} bytes");
            ("URI too long", text)
        } else if self.session.subscription_count() >= limit {
            let text = format!(
                "cannot subscribe: you have subscribed to {limit} resources (the limit is `limits.subscriptions`); \
                 unsubscribe from one first"
            );
            ("limits.subscriptions", text)
        } else {
            return Ok(());
        };
        let error = ErrorData::invalid_params(text, None);
        let name = format!("{}{}", Subject::RESOURCE, one_line(uri, 200));
        self.record_refused(agent, CallKind::Subscription, &name, by, &error).await;
        Err(error)
    }

    async fn record_refused(&self, agent: &AgentView, kind: CallKind, name: &str, by: &str, error: &ErrorData) {
        let reason = error.message.to_string();
        self.endpoint().engine.refuse_read(agent.requester.clone(), kind, name, by, reason).await;
    }
}
