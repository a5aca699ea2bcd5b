//! From what the engine knows to what the wire says.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::answers;
use super::types::{
    AgentLevel, Annotations, Approval, ApprovalKind, Call, Check, ConfigFile, FileChange, Grant, HiddenDefinition,
    HiddenRule, LogLine, LogSource, Policy, Reload, ServerInfo, ServerMetrics, ServerStatus, ShownScope, Status,
    Template, ToolInfo, ToolMetrics, ToolResult, ToolSummary, Transport,
};
use crate::config::{Definition, File, Launch, interop, layers, templates};
use crate::engine::gate::Outcome;
use crate::engine::snapshot::{OfferedTool, ServerView, Trust};
use crate::engine::{approvals, change, consent, doctor, inspect, manage, plan};
use crate::model::{self, Error, Result, Scope, millis};
use crate::policy::GrantMatch;
use crate::store;
use crate::text::{has_invisible, visible};

impl From<&ServerView> for ServerStatus {
    fn from(view: &ServerView) -> Self {
        let definition = &view.definition;
        let state = &view.state;
        let peer = state.peer.as_deref();
        Self {
            name: definition.name.clone(),
            status: state.status.into(),
            reason: state.status.reason(),
            enabled: definition.spec.enabled && view.switched_on,
            transport: (&definition.spec.launch).into(),
            scope: shown_scope(definition),
            file: definition.file.as_ref().map(|file| file.display().to_string()),
            line: definition.file.as_ref().map(|_| definition.line),
            hides: definition
                .hides
                .iter()
                .map(|hidden| HiddenDefinition {
                    scope: hidden.scope.into(),
                    file: hidden.file.as_ref().map(|file| file.display().to_string()),
                })
                .collect(),
            error: state.error.clone(),
            needs_trust: !matches!(view.trust, Trust::Given),
            trust_diff: match &view.trust {
                Trust::Needed { difference, .. } => difference.clone(),
                Trust::Given => None,
            },
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
                })
                .collect(),
            pid: state.pid,
            started_at: state.started_at,
            latency_ms: state.latency.map(millis),
            restarts: state.restarts,
            warnings: view.warnings(),
            config: layers::redacted(&definition.written),
        }
    }
}

/// Text of a server as an editor may show it: what is invisible, or acts on a terminal, is made visible.
fn shown(text: &str) -> String {
    if has_invisible(text) { visible(text, usize::MAX) } else { text.to_owned() }
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
            input_schema: tool.input_schema.clone(),
            output_schema: tool.output_schema.clone(),
            annotations: tool.annotations.into(),
            level: ruling.level,
            source: ruling.source.to_string(),
            changed: matches!(granted, GrantMatch::Suspended(_)),
        }
    }
}

impl<'a> ToolResult<&'a RawValue> {
    pub fn new(outcome: &'a Outcome) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Parts<'a> {
            #[serde(borrow)]
            content: &'a RawValue,
            #[serde(borrow, default)]
            structured_content: Option<&'a RawValue>,
        }
        // The connection makes sure that there is a list of content, whatever the server sent.
        let parts: Parts<'a> = serde_json::from_str(outcome.result.raw.get()).map_err(|error| Error::Protocol {
            server: outcome.tool.server.clone(),
            message: format!("its result is not an object with content: {error}"),
        })?;
        Ok(Self {
            call_id: outcome.id.clone(),
            content: parts.content,
            structured_content: parts.structured_content,
            is_error: outcome.result.is_error,
            duration_ms: millis(outcome.duration),
            decision: outcome.decision.to_owned(),
            server: outcome.tool.server.clone(),
            tool: outcome.tool.tool.to_string(),
        })
    }
}

impl From<&approvals::Approval> for Approval {
    fn from(approval: &approvals::Approval) -> Self {
        Self {
            id: approval.id.clone(),
            kind: match approval.kind {
                approvals::Kind::Tool => ApprovalKind::Tool,
                approvals::Kind::Trust => ApprovalKind::Trust,
                approvals::Kind::Elicitation => ApprovalKind::Elicitation,
                approvals::Kind::Input => ApprovalKind::Input,
            },
            server: approval.server.clone(),
            tool: approval.tool.clone(),
            arguments: approval.arguments.clone(),
            title: approval.title.clone(),
            detail: approval.detail.clone(),
            annotations: approval.annotations.map(Into::into),
            requester: approval.requester.clone(),
            options: approval.options.iter().map(|&option| option.to_owned()).collect(),
            diff: approval.diff.clone(),
            change: approval.change.as_ref().map(Into::into),
            schema: approval.schema.clone(),
            url: approval.url.clone(),
            created_at: approval.created_at,
            expires_at: approval.expires_at,
        }
    }
}

impl From<&change::Change> for FileChange {
    fn from(change: &change::Change) -> Self {
        let change::Change { file, path, is_new, after, diff } = change.clone();
        Self { file, path, is_new, after, diff }
    }
}

impl From<consent::GrantInfo> for Grant {
    fn from(grant: consent::GrantInfo) -> Self {
        let consent::GrantInfo { id, server, tool, level, scope, since } = grant;
        Self { id, server, tool, level, scope: scope.to_owned(), since }
    }
}

impl From<model::CallRecord> for Call {
    fn from(record: model::CallRecord) -> Self {
        Self {
            call_id: record.call_id,
            time: record.time,
            server: record.server,
            tool: record.tool,
            requester: record.requester,
            workflow: record.workflow,
            decision: record.decision,
            decided_by: record.decided_by,
            success: record.success,
            error: record.error,
            duration_ms: record.duration_ms,
            arguments: record.arguments,
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
        }
    }
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
        let templates::Template { id, title, description, config, inputs } = template.clone();
        Self { id, title, description, config, inputs }
    }
}

impl From<inspect::ServerMetrics> for ServerMetrics {
    fn from(metrics: inspect::ServerMetrics) -> Self {
        let inspect::ServerMetrics { server, start_ms, discover_ms, restarts, uptime_ms, tools } = metrics;
        Self { server, start_ms, discover_ms, restarts, uptime_ms, tools: tools.into_iter().map(Into::into).collect() }
    }
}

impl From<store::ToolMetrics> for ToolMetrics {
    fn from(metrics: store::ToolMetrics) -> Self {
        let store::ToolMetrics { server: _, tool, calls, errors, p50_ms, p95_ms, p99_ms } = metrics;
        Self { tool, calls, errors, p50_ms, p95_ms, p99_ms }
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
            tools: report.tools,
            resources: report.resources,
            prompts: report.prompts,
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
        let interop::Exported { text, path, notes } = exported;
        Self { text, path, notes }
    }
}
