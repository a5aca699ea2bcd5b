//! `mcp-sidecar demo`: shows the main features in a terminal. A minimal editor opens a copy of the example workspace. The
//! front, the engine and the server processes are real, and the output is what they send. A person at the terminal edits,
//! trusts, calls and answers; without one, a script does.

mod out;
mod user;
mod workspace;

use std::time::{Duration, Instant};

use anyhow::Context;
use lsp_types::notification::{DidChangeTextDocument, DidOpenTextDocument, Notification as _, PublishDiagnostics};
use lsp_types::{
    Diagnostic, DiagnosticSeverity, DidChangeTextDocumentParams, DidOpenTextDocumentParams, PublishDiagnosticsParams,
    TextDocumentContentChangeEvent, TextDocumentItem, Url, VersionedTextDocumentIdentifier,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::server::state;
use super::style::Color;
use crate::engine::Engine;
use crate::lsp_client::{Event, Events, IncomingNotification, LspClient};
use crate::model::{Requester, RequesterKind, ServerName};
use crate::protocol::commands::{ApprovalResolve, Approvals, Calls, Command, ServerTrust, Servers, ToolCall};
use crate::protocol::events::{ApprovalsChanged, ConfigReloaded, ServerChanged};
use crate::protocol::types::{Approval, ApprovalKind, ServerStatus, Status, ToolResult};
use crate::server::guardian;
use crate::settings::Settings;
use crate::text::{self, counted};
use out::Out;
use user::User;
use workspace::DemoWorkspace;

/// How long one step of the demo may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// The capacity of the queue of notifications.
const NOTIFICATIONS: usize = 1024;

/// Runs the demo and removes all its files afterwards.
pub async fn run() -> anyhow::Result<()> {
    let workspace = DemoWorkspace::create().context("cannot copy the example workspace")?;
    guardian::install();
    let engine = Engine::start(workspace.paths(), Settings::default());
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (their_input, their_output) = tokio::io::split(theirs);
    let front = tokio::spawn(crate::lsp::serve(their_input, their_output, engine.clone(), crate::lsp::Peer::default()));
    let (our_input, our_output) = tokio::io::split(ours);
    let (client, events) = LspClient::connect(our_input, our_output);
    let (notify, notifications) = mpsc::channel(NOTIFICATIONS);
    tokio::spawn(receive(events, notify));
    let (server, user, out) = ("demo".parse()?, User::at_terminal(), Out::to_stdout());
    let demo = Demo { workspace: &workspace, client, notifications, server, user, answered: Vec::new(), out };
    // Also cleans up after Ctrl-C.
    let result = tokio::select! {
        result = demo.run() => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    front.abort();
    engine.shutdown().await;
    result
}

/// Answers requests of the engine with nothing, and passes notifications on.
async fn receive(mut events: Events, notify: mpsc::Sender<IncomingNotification>) {
    while let Some(event) = events.recv().await {
        match event {
            Event::Request(request) => request.respond(&Value::Null),
            Event::Notification(notification) => drop(notify.try_send(notification)),
            Event::Invalid(reason) => tracing::warn!(reason, "ignored a message"),
        }
    }
}

struct Demo<'a> {
    workspace: &'a DemoWorkspace,
    client: LspClient,
    notifications: mpsc::Receiver<IncomingNotification>,
    server: ServerName,
    user: User,
    /// The questions that were answered. Older lists may still contain them.
    answered: Vec<String>,
    out: Out,
}

impl Demo<'_> {
    async fn run(mut self) -> anyhow::Result<()> {
        self.open().await?;
        self.diagnose().await?;
        self.edit().await?;
        self.user.go_on().await?;
        if !self.trust().await? {
            self.client.shut_down().await?;
            return self.out.end("Without your trust, nothing in the project runs, so the demo ends here.");
        }
        self.call().await?;
        self.user.go_on().await?;
        self.approve().await?;
        self.user.go_on().await?;
        self.reload().await?;
        self.user.go_on().await?;
        self.look_back().await?;
        self.client.shut_down().await?;
        self.out.end(
            "This was `mcp-sidecar lsp`, the language server that editors use. Run `mcp-sidecar init` in a project.",
        )
    }

    async fn open(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        let abilities = json!({ "version": "1", "approvals": true });
        let answer = self.client.initialize(Some(&self.workspace.root()), abilities).await?;
        let took = started.elapsed();
        let server = answer.server_info.context("the language server has no name")?;
        self.out.heading("An editor opens a project with an mcp.json")?;
        self.out.line(&format!(
            "{} {} started in {:.1} ms",
            server.name,
            server.version.unwrap_or_default(),
            took.as_secs_f64() * 1e3
        ))
    }

    async fn diagnose(&mut self) -> anyhow::Result<()> {
        self.out.heading("Config files are checked as you type")?;
        for name in ["mcp.json", ".cursor/mcp.json"] {
            let path = self.workspace.file(name);
            let uri = workspace::uri(&path)?;
            let text = std::fs::read_to_string(&path)?;
            let text_document = TextDocumentItem::new(uri.clone(), "jsonc".to_owned(), 1, text);
            self.client.notify::<DidOpenTextDocument>(DidOpenTextDocumentParams { text_document });
            let diagnostics = self.published(&uri, 1).await?;
            self.show_diagnostics(name, &diagnostics)?;
        }
        Ok(())
    }

    fn show_diagnostics(&mut self, name: &str, diagnostics: &[Diagnostic]) -> anyhow::Result<()> {
        if diagnostics.is_empty() {
            return self.out.line(&format!("{name}: no problems"));
        }
        for diagnostic in diagnostics {
            let start = diagnostic.range.start;
            let (severity, color) = match diagnostic.severity {
                Some(DiagnosticSeverity::ERROR) => ("error", Color::Bad),
                Some(DiagnosticSeverity::WARNING) => ("warning", Color::Attention),
                _ => ("note", Color::Dim),
            };
            let severity = self.out.paint(color, severity);
            // The lines after the first are help, which an editor shows.
            let message = text::one_line(diagnostic.message.lines().next().unwrap_or_default(), 400);
            self.out.line(&format!("{name}:{}:{}: {severity}: {message}", start.line + 1, start.character + 1))?;
        }
        Ok(())
    }

    /// Fixes one error in the open buffer, without saving the file.
    async fn edit(&mut self) -> anyhow::Result<()> {
        let name = ".cursor/mcp.json";
        let path = self.workspace.file(name);
        let uri = workspace::uri(&path)?;
        for version in 2.. {
            let port = self.user.value("Type a valid port instead of 123456", "3001").await?;
            let text = std::fs::read_to_string(&path)?.replacen("123456", &port, 1);
            self.out.act("you fix the port, without saving")?;
            self.client.notify::<DidChangeTextDocument>(DidChangeTextDocumentParams {
                text_document: VersionedTextDocumentIdentifier::new(uri.clone(), version),
                content_changes: vec![TextDocumentContentChangeEvent { range: None, range_length: None, text }],
            });
            let left = self.published(&uri, version).await?;
            self.out.line(&format!("{name}: {} left", counted(left.len(), "problem")))?;
            let wrong: Vec<Diagnostic> = left.into_iter().filter(|each| each.message.contains(".port`")).collect();
            if wrong.is_empty() || !self.user.is_person() {
                break;
            }
            self.show_diagnostics(name, &wrong)?;
        }
        Ok(())
    }

    /// Returns whether the user trusts the server.
    async fn trust(&mut self) -> anyhow::Result<bool> {
        self.out.heading("Servers of a project start only after you trust them")?;
        let waits = |server: &ServerStatus| server.reason.as_deref() == Some("awaiting-trust");
        let demo = self.server_is("`demo` to wait for trust", waits).await?;
        self.show_server(&demo)?;
        let question = self.question(ApprovalKind::Trust).await?;
        self.show_question(&question)?;
        if self.user.choice(&[("y", "trust it"), ("n", "not now")], "y").await? == "n" {
            return Ok(false);
        }
        self.out.act("you trust it")?;
        self.call_command(ServerTrust::trust(demo.name, demo.trust_digest)).await?;
        let demo = self.server_is("`demo` to connect", |server| server.status == Status::Connected).await?;
        self.show_server(&demo)?;
        Ok(true)
    }

    /// Waits until the server `demo` is in the wanted state, and returns it.
    async fn server_is(&mut self, what: &str, wanted: impl Fn(&ServerStatus) -> bool) -> anyhow::Result<ServerStatus> {
        let name = self.server.clone();
        // The server may not be loaded yet.
        if let Ok(now) = self.call_command(Servers { server: Some(name.clone()) }).await
            && let Some(server) = now.servers.into_iter().find(&wanted)
        {
            return Ok(server);
        }
        let is_wanted = |server: &ServerStatus| server.name == name && wanted(server);
        self.wait_for(what, |notification| {
            notification.parse::<ServerChanged>().map(|changed| changed.server).filter(is_wanted)
        })
        .await
    }

    /// Waits for a question of this kind about `demo`.
    async fn question(&mut self, kind: ApprovalKind) -> anyhow::Result<Approval> {
        let waiting = self.call_command(Approvals::default()).await?.approvals;
        let name = self.server.clone();
        let answered = self.answered.clone();
        let is_next = |each: &Approval| each.kind == kind && each.server == name && !answered.contains(&each.id);
        let find = |all: Vec<Approval>| all.into_iter().find(is_next);
        match find(waiting) {
            Some(question) => Ok(question),
            None => {
                self.wait_for("a question", |notification| {
                    notification.parse::<ApprovalsChanged>().and_then(|changed| find(changed.approvals))
                })
                .await
            }
        }
    }

    fn show_question(&mut self, question: &Approval) -> anyhow::Result<()> {
        let title = self.out.paint(Color::Attention, &text::one_line(&question.title, 400));
        self.out.line(&title)?;
        for line in question.detail.lines() {
            self.out.line(&format!("  {}", text::one_line(line, 400)))?;
        }
        Ok(())
    }

    fn show_server(&mut self, server: &ServerStatus) -> anyhow::Result<()> {
        let status = self.out.paint(Color::of_status(server.status), &state(server));
        let mut line = format!("{}: {status}", server.name);
        if server.status == Status::Connected {
            line += &format!(", {}", counted(server.tool_count, "tool"));
        }
        self.out.line(&line)
    }

    async fn call(&mut self) -> anyhow::Result<()> {
        self.out.heading("You can call tools from the editor")?;
        let number = self.user.value("Type a number to add to 19", "23").await?.parse().unwrap_or(23_i64);
        let arguments = Map::from_iter([("a".to_owned(), 19.into()), ("b".to_owned(), number.into())]);
        self.out.act(&format!("you call mcp__demo__add {}", Value::from(arguments.clone())))?;
        let call = ToolCall { tool: "mcp__demo__add".to_owned(), arguments: Some(arguments), ..Default::default() };
        let result = self.call_command(call).await?;
        self.show_result(&result)
    }

    fn show_result(&mut self, result: &ToolResult) -> anyhow::Result<()> {
        for content in result.blocks() {
            self.out.line(&text::one_line(content.get("text").and_then(Value::as_str).unwrap_or_default(), 400))?;
        }
        Ok(())
    }

    async fn approve(&mut self) -> anyhow::Result<()> {
        self.out.heading("Tools that change something ask for approval")?;
        self.note("try mcp-sidecar", "y").await?;
        self.note("delete everything", "n").await
    }

    /// An agent wants to take a note, and the user answers.
    async fn note(&mut self, text: &str, scripted: &str) -> anyhow::Result<()> {
        let arguments = Map::from_iter([("text".to_owned(), text.into())]);
        self.out.act(&format!("your-agent calls mcp__demo__take_note {}", Value::from(arguments.clone())))?;
        let call = ToolCall {
            tool: "mcp__demo__take_note".to_owned(),
            arguments: Some(arguments),
            requester: Some(Requester { kind: RequesterKind::Agent, name: "your-agent".to_owned() }),
            ..Default::default()
        };
        let response = self.client.start(call, None);
        let question = self.question(ApprovalKind::Tool).await?;
        self.show_question(&question)?;
        let (answer, decision) = match self.user.choice(&[("y", "allow once"), ("n", "deny")], scripted).await? {
            "y" => ("allow once", "allow-once"),
            _ => ("deny", "deny"),
        };
        self.out.act(&format!("you answer: {answer}"))?;
        self.answered.push(question.id.clone());
        self.call_command(ApprovalResolve::one(&question.id, decision)).await?;
        match timeout(PATIENCE, response).await.context("no response to the call")? {
            Ok(result) => self.show_result(&result),
            Err(error) => self.show_denial(&error.to_string()),
        }
    }

    fn show_denial(&mut self, error: &str) -> anyhow::Result<()> {
        let denied = self.out.paint(Color::Bad, "denied");
        self.out.line(&format!("{denied}: {}", text::one_line(error, 300)))
    }

    /// Shows the call log.
    async fn look_back(&mut self) -> anyhow::Result<()> {
        self.out.heading("Every call is logged, along with who decided")?;
        for call in self.call_command(Calls::default()).await?.calls.iter().rev() {
            let name = text::one_line(&call.requester.name, 40);
            let who = if call.requester.kind == RequesterKind::User { "you" } else { &name };
            let decided_by = text::one_line(&call.decided_by, 60);
            self.out.line(&format!("{who:<12} {:<14} {:<14} {decided_by}", call.tool, call.decision))?;
        }
        Ok(())
    }

    async fn reload(&mut self) -> anyhow::Result<()> {
        self.out.heading("Changes apply when you save, and only changed servers restart")?;
        self.out.act(r#"you add "forget_notes": "deny" to mcp.json and save"#)?;
        self.workspace.edit("mcp.json", r#""tools": {"#, r#""tools": { "forget_notes": "deny","#)?;
        // Skip the notification of the first load, which added servers.
        let only_changes = |reload: &ConfigReloaded| reload.0.added.is_empty();
        let ConfigReloaded(reload) =
            self.wait_for("the reload", |notification| notification.parse().filter(only_changes)).await?;
        let names = |names: &[ServerName]| match names {
            [] => "none".to_owned(),
            names => names.iter().map(ServerName::as_str).collect::<Vec<_>>().join(", "),
        };
        self.out.line(&format!(
            "restarted: {}; only permissions changed: {}",
            names(&reload.changed),
            names(&reload.policy_only)
        ))?;
        self.out.act("you call mcp__demo__forget_notes {}")?;
        let call = ToolCall { tool: "mcp__demo__forget_notes".to_owned(), ..Default::default() };
        match self.call_command(call).await {
            Ok(result) => self.show_result(&result),
            Err(error) => self.show_denial(&error.to_string()),
        }
    }

    /// The diagnostics of one version of a document.
    async fn published(&mut self, uri: &Url, version: i32) -> anyhow::Result<Vec<Diagnostic>> {
        self.wait_for("diagnostics", |notification| {
            let published = PublishDiagnosticsParams::deserialize(&notification.params).ok()?;
            let wanted = notification.method == PublishDiagnostics::METHOD
                && published.uri == *uri
                && published.version == Some(version);
            wanted.then_some(published.diagnostics)
        })
        .await
    }

    async fn call_command<C: Command>(&self, command: C) -> anyhow::Result<C::Answer> {
        Ok(timeout(PATIENCE, self.client.call(command))
            .await
            .with_context(|| format!("no answer to {}", C::NAME))??)
    }

    /// Waits for a notification that `wanted` accepts. Skips all others.
    async fn wait_for<T>(
        &mut self,
        what: &str,
        wanted: impl Fn(&IncomingNotification) -> Option<T>,
    ) -> anyhow::Result<T> {
        let search = async {
            while let Some(notification) = self.notifications.recv().await {
                if let Some(found) = wanted(&notification) {
                    return Ok(found);
                }
            }
            anyhow::bail!("the language server ended while waiting for {what}")
        };
        timeout(PATIENCE, search).await.with_context(|| format!("timed out while waiting for {what}"))?
    }
}
