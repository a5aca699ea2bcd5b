//! From what the engine knows to what the wire says.

mod agents;
mod questions;
mod registry;

pub use questions::lost;

use std::sync::Arc;

use serde_json::Value;

use super::actions::{Action, Remedy};
use super::answers::{self, CallLogCheck, FileSyntax};
use super::mcp::{SentPrompt, SentResource, SentTool};
use super::types::{
    AgentLevel, Annotations, Call, Check, ConfigError, ConfigFile, Grant, HiddenDefinition, HiddenRule, LevelScope,
    LogLine, LogSource, Policy, Reload, ServerInfo, ServerMetrics, ServerRestriction, ServerStatus, ShownScope, Status,
    Template, ToolInfo, ToolMetrics, ToolResult, ToolSummary, Transport, ViewCost,
};
use crate::config::spec::Restriction;
use crate::config::{Definition, File, Launch, Problem, Severity, interop, layers, templates};
use crate::engine::gate::Outcome;
use crate::engine::server_actions::level_scope_title;
use crate::engine::snapshot::{OfferedTool, ServerView, Trust};
use crate::engine::{consent, costs, doctor, inspect, manage, plan};
use crate::model::{self, Error, Result, Scope, millis};
use crate::policy::GrantMatch;
use crate::store::{self, ChainReport};
use crate::text::lines::LineIndex;
use crate::text::{holds_secret, mask_value, visible_text};

impl From<&ServerView> for ServerStatus {
    fn from(view: &ServerView) -> Self {
        let definition = &view.definition;
        let state = &view.state;
        let peer = state.peer.as_deref();
        let config = layers::redacted(&definition.written);
        Self {
            name: definition.name.clone(),
            status: state.status.into(),
            reason: state.status.reason().or_else(|| view.is_asleep().then(|| "asleep".to_owned())),
            summary: view.summary().into(),
            actions: Action::all(view),
            remedy: Remedy::of_server(view),
            enabled: definition.spec.enabled && view.switched_on,
            transport: (&definition.spec.launch).into(),
            launch: layers::launch_line(&config),
            scope: shown_scope(definition),
            file: definition.file.as_ref().map(|file| file.display().to_string()),
            line: definition.file.as_ref().map(|_| definition.line),
            level_scopes: view.level_scopes().into_iter().map(LevelScope::from).collect(),
            hides: definition
                .hides
                .iter()
                .map(|hidden| HiddenDefinition {
                    scope: hidden.scope.into(),
                    file: hidden.file.as_ref().map(|file| file.display().to_string()),
                })
                .collect(),
            restrictions: definition.restrictions.iter().map(Into::into).collect(),
            error: state.error.as_ref().map(ToString::to_string),
            cause: state.error.as_ref().and_then(|error| error.message.lines().next()).map(str::to_owned),
            needs_trust: !matches!(view.trust, Trust::Given),
            trust_diff: match &view.trust {
                Trust::Needed { difference, .. } => difference.clone(),
                Trust::Given => None,
            },
            trust_digest: view.checked.as_ref().map(|checked| checked.shown_digest()),
            server_info: peer.map(|peer| ServerInfo { name: shown(&peer.name), version: shown(&peer.version) }),
            protocol_version: peer.map(|peer| peer.protocol_version.clone()),
            instructions: peer.and_then(|peer| peer.instructions.as_deref().map(shown)),
            capabilities: peer.map(|peer| peer.capabilities.clone()).unwrap_or_default(),
            tool_count: view.shown_tools().count(),
            resource_count: view.resources().len(),
            prompt_count: view.prompts().len(),
            tools: view
                .shown_tools()
                .map(|offered| ToolSummary {
                    name: offered.tool.name.to_string(),
                    description: shown(&offered.tool.description),
                    annotations: offered.tool.annotations.into(),
                    tokens: offered.tokens(),
                })
                .collect(),
            tokens: view.tokens(),
            pid: state.pid,
            started_at: state.started_at,
            latency_ms: state.latency.map(millis),
            restarts: state.restarts,
            warnings: view.warnings(),
            config,
        }
    }
}

impl From<&Restriction> for ServerRestriction {
    fn from(restriction: &Restriction) -> Self {
        Self {
            scope: restriction.scope.into(),
            file: restriction.file.as_ref().map(|file| file.display().to_string()),
            line: restriction.file.as_ref().map(|_| restriction.line),
            disables: restriction.disables,
            effect: restriction.effect(),
        }
    }
}

/// Text of a server as an editor may show it: what is invisible, or acts on a terminal, is made visible.
fn shown(text: &str) -> String {
    visible_text(text).into_owned()
}

fn shown_scope(definition: &Definition) -> ShownScope {
    match definition.spec.launch {
        Launch::ClaudeAiProxy { .. } => ShownScope::ClaudeAi,
        _ => definition.scope.into(),
    }
}

impl From<Scope> for ShownScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::User => Self::User,
            Scope::Project => Self::Project,
            Scope::Local => Self::Local,
            Scope::Session => Self::Session,
            Scope::Managed => Self::Managed,
        }
    }
}

impl From<Scope> for LevelScope {
    fn from(scope: Scope) -> Self {
        Self { scope: scope.into(), title: level_scope_title(scope) }
    }
}

impl From<model::Status> for Status {
    fn from(status: model::Status) -> Self {
        match status {
            model::Status::Pending(_) => Self::Pending,
            model::Status::Connected => Self::Connected,
            model::Status::Failed => Self::Failed,
            model::Status::NeedsAuth => Self::NeedsAuth,
            model::Status::Disabled => Self::Disabled,
            model::Status::Stopped => Self::Stopped,
        }
    }
}

impl From<&Launch> for Transport {
    fn from(launch: &Launch) -> Self {
        match launch {
            Launch::Stdio(_) => Self::Stdio,
            Launch::Tcp { .. } => Self::Tcp,
            Launch::Http(_) => Self::Http,
            Launch::Sse(_) => Self::Sse,
            Launch::Sdk { .. } => Self::Sdk,
            Launch::ClaudeAiProxy { .. } => Self::ClaudeAiProxy,
        }
    }
}

impl From<model::Annotations> for Annotations {
    fn from(annotations: model::Annotations) -> Self {
        let model::Annotations { read_only, destructive, idempotent, open_world } = annotations;
        Self { read_only, destructive, idempotent, open_world }
    }
}

/// A schema without secrets: the names of its properties may contain them. Agents get these as they are.
fn shown_schema(schema: &Arc<super::types::Object>) -> Arc<super::types::Object> {
    if !serde_json::to_string(schema).is_ok_and(|text| holds_secret(&text)) {
        return schema.clone();
    }
    let masked = mask_value(&Value::Object(schema.as_ref().clone()));
    Arc::new(masked.as_object().cloned().unwrap_or_default())
}

impl ToolInfo {
    pub fn new(offered: &OfferedTool, granted: &GrantMatch) -> Self {
        let tool = &offered.tool;
        let ruling = offered.ruling.clone().raised_by(granted);
        Self {
            name: offered.id.to_string(),
            server: offered.id.server.clone(),
            tool: tool.name.to_string(),
            title: tool.title.as_deref().map(shown),
            description: shown(&tool.description),
            input_schema: shown_schema(&tool.input_schema),
            output_schema: tool.output_schema.as_ref().map(shown_schema),
            annotations: tool.annotations.into(),
            level: ruling.level,
            callable: !matches!(ruling.level, model::Level::Disable | model::Level::Deny),
            source: ruling.source.to_string(),
            changed: matches!(granted, GrantMatch::Suspended(_)),
            tokens: offered.tokens(),
        }
    }
}

impl ToolResult {
    pub fn new(outcome: &Outcome) -> Result<Self> {
        // The connection makes sure that there is a list of content, whatever the server sent.
        let (Some(content), structured_content) = outcome.result.raw.contents() else {
            let message = "its result is not an object with content".to_owned();
            return Err(Error::Protocol { server: outcome.tool.server.clone(), message });
        };
        Ok(Self {
            call_id: outcome.id.clone(),
            content,
            structured_content,
            is_error: outcome.result.is_error,
            duration_ms: millis(outcome.duration),
            waited_ms: millis(outcome.waited),
            decision: outcome.decision.to_owned(),
            server: outcome.tool.server.clone(),
            tool: outcome.tool.tool.to_string(),
        })
    }
}

impl From<consent::GrantInfo> for Grant {
    fn from(grant: consent::GrantInfo) -> Self {
        let consent::GrantInfo { id, server, tool, level, scope, since } = grant;
        Self { id, server, tool, level, scope: scope.to_owned(), since }
    }
}

impl From<ChainReport> for CallLogCheck {
    fn from(report: ChainReport) -> Self {
        let message = report.message();
        let ChainReport { broken, checked, unchecked, head } = report;
        Self { whole: broken.is_none(), message, checked, unchecked, head }
    }
}

impl From<model::CallRecord> for Call {
    fn from(record: model::CallRecord) -> Self {
        Self {
            call_id: record.call_id,
            folder: record.folder,
            time: record.time,
            kind: record.kind,
            server: record.server,
            tool: record.tool,
            requester: record.requester,
            workflow: record.workflow,
            decision: record.decision,
            decided_by: record.decided_by,
            success: record.success,
            error: record.error,
            duration_ms: record.duration_ms,
            waited_ms: record.waited_ms,
            result_bytes: record.result_size.map(|size| size.bytes),
            result_tokens: record.result_size.map(|size| size.tokens),
            arguments: record.arguments,
            requested_arguments: record.requested_arguments,
            result: record.result,
        }
    }
}

impl From<&plan::Reload> for Reload {
    fn from(reload: &plan::Reload) -> Self {
        let plan::Reload { added, removed, changed, policy_only, unchanged, errors } = reload.clone();
        Self { added, removed, changed, policy_only, unchanged, errors }
    }
}

impl From<&File> for ConfigFile {
    fn from(file: &File) -> Self {
        Self {
            path: file.source.path.display().to_string(),
            scope: file.source.scope.into(),
            exists: file.exists,
            valid: file.valid,
            servers: file.servers.clone(),
            errors: errors(file),
        }
    }
}

fn errors(file: &File) -> Vec<ConfigError> {
    let lines = LineIndex::new(file.text.clone());
    let mut errors: Vec<_> = file.problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
    errors.sort_by_key(|problem| problem.span.start);
    let error =
        |problem: &&Problem| ConfigError { line: lines.line(problem.span.start), message: shown(&problem.message) };
    errors.iter().map(error).collect()
}

impl From<model::LogLine> for LogLine {
    fn from(line: model::LogLine) -> Self {
        let source = match line.source {
            model::LogSource::Stderr => LogSource::Stderr,
            model::LogSource::Server => LogSource::Server,
            model::LogSource::Sidecar => LogSource::Sidecar,
        };
        Self { time: line.time, source, level: line.level, text: line.text }
    }
}

impl From<inspect::Explanation> for Policy {
    fn from(explanation: inspect::Explanation) -> Self {
        let hides = explanation.hides.into_iter().map(|hidden| HiddenRule {
            level: hidden.level,
            source: hidden.source.to_string(),
            reason: hidden.reason.map(str::to_owned),
        });
        let agents = explanation.agents.into_iter().map(|agent| AgentLevel {
            agent: agent.agent,
            level: agent.level,
            source: agent.source.to_string(),
        });
        Self {
            tool: explanation.tool,
            level: explanation.level,
            source: explanation.source.to_string(),
            hides: hides.collect(),
            agents: agents.collect(),
        }
    }
}

impl From<&templates::Template> for Template {
    fn from(template: &templates::Template) -> Self {
        let templates::Template { id, title, description, config, inputs, placeholder: _ } = template.clone();
        Self { id, title, description, config, inputs }
    }
}

impl From<inspect::ServerMetrics> for ServerMetrics {
    fn from(metrics: inspect::ServerMetrics) -> Self {
        let inspect::ServerMetrics { server, start_ms, discover_ms, restarts, uptime_ms, tokens, tools } = metrics;
        let tools = tools.into_iter().map(Into::into).collect();
        Self { server, start_ms, discover_ms, restarts, uptime_ms, tokens, tools }
    }
}

impl From<inspect::MeasuredTool> for ToolMetrics {
    fn from(metrics: inspect::MeasuredTool) -> Self {
        let inspect::MeasuredTool { calls: measured, tokens } = metrics;
        let store::ToolMetrics {
            server: _,
            tool,
            calls,
            errors,
            p50_ms,
            p95_ms,
            p99_ms,
            waited_ms,
            result_tokens,
            total_result_tokens,
        } = measured;
        Self { tool, calls, errors, p50_ms, p95_ms, p99_ms, waited_ms, result_tokens, total_result_tokens, tokens }
    }
}

impl From<costs::ViewCost> for ViewCost {
    fn from(cost: costs::ViewCost) -> Self {
        let costs::ViewCost { agent, tools, tokens, search } = cost;
        Self { agent, tools, tokens, search }
    }
}

impl From<doctor::Check> for Check {
    fn from(check: doctor::Check) -> Self {
        let doctor::Check { name, ok, message, fix } = check;
        Self { name, ok, message, fix }
    }
}

impl From<inspect::TestReport> for answers::TestReport {
    fn from(report: inspect::TestReport) -> Self {
        Self {
            success: report.success,
            message: report.message,
            server_info: report.server_info.map(|(name, version)| ServerInfo { name, version }),
            protocol_version: report.protocol_version,
            tools: report.tools.into_iter().map(SentTool).collect(),
            resources: report.resources.into_iter().map(SentResource).collect(),
            prompts: report.prompts.into_iter().map(SentPrompt).collect(),
            latency_ms: report.latency_ms,
        }
    }
}

impl From<manage::SessionChange> for answers::SessionChange {
    fn from(change: manage::SessionChange) -> Self {
        let manage::SessionChange { added, removed, errors } = change;
        Self { added, removed, errors }
    }
}

impl From<interop::Imported> for answers::Imported {
    fn from(imported: interop::Imported) -> Self {
        let interop::Imported { imported, skipped, notes, path } = imported;
        Self { imported, skipped, notes, path }
    }
}

impl From<interop::Exported> for answers::Exported {
    fn from(exported: interop::Exported) -> Self {
        let interop::Exported { text, syntax, path, notes } = exported;
        let syntax = match syntax {
            interop::Syntax::Json => FileSyntax::Json,
            interop::Syntax::Toml => FileSyntax::Toml,
            interop::Syntax::Yaml { .. } => FileSyntax::Yaml,
        };
        Self { text, syntax, path, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_property_shows_no_secret() {
        let _known = crate::text::Secret::new("property-secret-81bd");
        let schema = |name: &str| {
            let schema = serde_json::json!({ "properties": { name: { "type": "string" } }, "required": [name] });
            Arc::new(schema.as_object().unwrap().clone())
        };
        let shown = serde_json::to_string(&shown_schema(&schema("property-secret-81bd"))).unwrap();
        assert!(!shown.contains("81bd") && shown.contains(crate::text::MASK), "{shown}");
        let plain = schema("path");
        assert!(Arc::ptr_eq(&shown_schema(&plain), &plain));
    }
}
