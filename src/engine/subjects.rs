//! Treats resources and prompts like tools, so that the same rules, questions, grants and records apply to them.

use std::sync::Arc;

use serde_json::Value;

use super::snapshot::{OfferedTool, ServerView, Snapshot};
use crate::model::{Annotations, CallKind, Level, Subject, Tool, ToolId};
use crate::policy::{AgentAccess, is_instance};

impl ServerView {
    /// The resource with this URI, or the template itself.
    pub fn resource(&self, uri: &str) -> Tool {
        let listed = self.resources().iter().find(|resource| resource.uri == uri);
        let template = match listed {
            Some(_) => None,
            None => self
                .templates()
                .iter()
                .find(|template| template.uri_template == uri || is_instance(&template.uri_template, uri)),
        };
        let raw = listed.map(|resource| &resource.raw).or(template.map(|template| &template.raw));
        let template = template.map(|template| template.uri_template.clone());
        subject(Subject::RESOURCE, uri, Subject::Resource { listed: listed.is_some(), template }, raw)
    }

    pub fn prompt(&self, name: &str) -> Tool {
        let listed = self.prompts().iter().find(|prompt| prompt.name == name);
        let raw = listed.map(|prompt| &prompt.raw);
        subject(Subject::PROMPT, name, Subject::Prompt { listed: listed.is_some() }, raw)
    }

    /// The resource or prompt with this name in rules.
    fn subject(&self, name: &str) -> Option<Tool> {
        match name.strip_prefix(Subject::RESOURCE) {
            Some(uri) => Some(self.resource(uri)),
            None => name.strip_prefix(Subject::PROMPT).map(|name| self.prompt(name)),
        }
    }
}

fn subject(prefix: &str, name: &str, subject: Subject, raw: Option<&Arc<Value>>) -> Tool {
    let text = |key: &str| raw.and_then(|raw| raw.get(key)).and_then(Value::as_str).map(str::to_owned);
    Tool {
        name: format!("{prefix}{name}").into(),
        subject,
        title: text("title"),
        description: text("description").unwrap_or_default(),
        input_schema: Arc::default(),
        output_schema: None,
        annotations: Annotations::default(),
        raw: raw.cloned().unwrap_or_default(),
    }
}

impl Snapshot {
    /// What a call of this kind is about. `name` is the name of a tool, or of a subject in rules.
    pub fn offered(&self, view: &ServerView, kind: CallKind, name: &str) -> Option<Arc<OfferedTool>> {
        match kind {
            CallKind::Tool => view.tools.get(name).cloned(),
            CallKind::Hook => None,
            _ => self.offered_subject(view, name),
        }
    }

    /// The resource or prompt with this name in rules.
    pub fn offered_subject(&self, view: &ServerView, name: &str) -> Option<Arc<OfferedTool>> {
        let tool = view.subject(name)?;
        let id = ToolId::new(view.definition.name.clone(), name);
        let ruling = self.rules.rule(&id.server, &tool, None, view.trust_state());
        Some(Arc::new(OfferedTool::new(id, Arc::new(tool), ruling)))
    }

    /// Whether a resource or prompt is listed for a requester.
    pub fn shows(&self, view: &ServerView, subject: &Tool, agent: &AgentAccess) -> bool {
        let ruling = || self.rules.rule(&view.definition.name, subject, None, view.trust_state());
        agent.shows_subject(&view.definition.name, subject) && agent.narrow(ruling()).level != Level::Disable
    }
}
