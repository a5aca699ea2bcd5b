//! `mcp-sidecar demo`: shows the main features in a terminal. A minimal editor opens a copy of the example workspace. The
//! front, the engine and the server processes are real, and the output is what they send.

mod editor;
mod out;
mod workspace;

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};

use super::counted;
use super::style::Color;
use crate::engine::Engine;
use crate::server::guardian;
use crate::settings::Settings;
use crate::text;
use editor::Editor;
use out::Out;
use workspace::DemoWorkspace;

/// Runs the demo and removes all its files afterwards.
pub async fn run() -> anyhow::Result<()> {
    let workspace = DemoWorkspace::create().context("cannot copy the example workspace")?;
    guardian::install();
    let engine = Engine::start(workspace.paths(), Settings::default());
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (their_input, their_output) = tokio::io::split(theirs);
    let front = tokio::spawn(crate::lsp::serve(their_input, their_output, engine.clone()));
    let (our_input, our_output) = tokio::io::split(ours);
    let editor = Editor::new(our_input, our_output);
    let demo = Demo { workspace: &workspace, editor, out: Out::to_stdout() };
    // Also cleans up after Ctrl-C.
    let result = tokio::select! {
        result = demo.run() => result,
        _ = tokio::signal::ctrl_c() => Ok(()),
    };
    front.abort();
    engine.shutdown().await;
    result
}

struct Demo<'a> {
    workspace: &'a DemoWorkspace,
    editor: Editor,
    out: Out,
}

impl Demo<'_> {
    async fn run(mut self) -> anyhow::Result<()> {
        self.open().await?;
        self.diagnose().await?;
        self.edit().await?;
        self.trust().await?;
        self.call().await?;
        self.approve().await?;
        self.reload().await?;
        self.editor.request("shutdown", Value::Null).await?;
        self.editor.notify("exit", Value::Null);
        self.out.end("This was `mcp-sidecar lsp`, the language server that editors use.")
    }

    async fn open(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        let root = workspace::uri(&self.workspace.root())?;
        let params = json!({
            "processId": null,
            "rootUri": root,
            "workspaceFolders": [{ "uri": root, "name": "workspace" }],
            "capabilities": { "experimental": { "mcpSidecar": { "version": "1", "approvals": true } } },
        });
        let answer = self.editor.request("initialize", params).await?;
        let took = started.elapsed();
        self.editor.notify("initialized", json!({}));
        let server = at(&answer, "/serverInfo");
        self.out.heading("An editor opens a project with an mcp.json")?;
        self.out.line(&format!(
            "{} {} started in {:.1} ms",
            shown(at(server, "/name")),
            shown(at(server, "/version")),
            took.as_secs_f64() * 1e3
        ))
    }

    async fn diagnose(&mut self) -> anyhow::Result<()> {
        self.out.heading("Config files are checked as you type")?;
        for name in ["mcp.json", ".cursor/mcp.json"] {
            let path = self.workspace.file(name);
            let uri = workspace::uri(&path)?;
            let text = std::fs::read_to_string(&path)?;
            let document = json!({ "uri": uri, "languageId": "jsonc", "version": 1, "text": text });
            self.editor.notify("textDocument/didOpen", json!({ "textDocument": document }));
            let published = self.published(&uri, 1).await?;
            self.show_diagnostics(Path::new(name), at(&published, "/diagnostics"))?;
        }
        Ok(())
    }

    fn show_diagnostics(&mut self, name: &Path, diagnostics: &Value) -> anyhow::Result<()> {
        let diagnostics = diagnostics.as_array().map(Vec::as_slice).unwrap_or_default();
        if diagnostics.is_empty() {
            return self.out.line(&format!("{}: no problems", name.display()));
        }
        for diagnostic in diagnostics {
            let start = at(diagnostic, "/range/start");
            let place = |key: &str| start.get(key).and_then(Value::as_u64).unwrap_or_default() + 1;
            let (severity, color) = match at(diagnostic, "/severity").as_u64() {
                Some(1) => ("error", Color::Bad),
                Some(2) => ("warning", Color::Waiting),
                _ => ("note", Color::Dim),
            };
            let severity = self.out.paint(color, severity);
            // The lines after the first are help, which an editor shows.
            let message =
                at(diagnostic, "/message").as_str().and_then(|message| message.lines().next()).unwrap_or_default();
            let message = text::one_line(message, 400);
            self.out.line(&format!(
                "{}:{}:{}: {severity}: {message}",
                name.display(),
                place("line"),
                place("character")
            ))?;
        }
        Ok(())
    }

    /// Fixes one error in the open buffer, without saving the file.
    async fn edit(&mut self) -> anyhow::Result<()> {
        let name = ".cursor/mcp.json";
        let path = self.workspace.file(name);
        let uri = workspace::uri(&path)?;
        let text = std::fs::read_to_string(&path)?.replacen("123456", "3001", 1);
        self.out.act("you fix the port, without saving")?;
        let document = json!({ "uri": uri, "version": 2 });
        self.editor.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
        );
        let published = self.published(&uri, 2).await?;
        let left = at(&published, "/diagnostics").as_array().map_or(0, Vec::len);
        self.out.line(&format!("{name}: {} left", counted(left, "problem")))
    }

    async fn trust(&mut self) -> anyhow::Result<()> {
        self.out.heading("Servers of a project start only after you trust them")?;
        let demo =
            self.server_is("`demo` to wait for trust", |server| at(server, "/reason") == "awaiting-trust").await?;
        self.show_server(&demo)?;
        let question = self.question("trust").await?;
        self.show_question(&question)?;
        self.out.act("you trust it")?;
        self.editor.command("mcp.server.trust", json!({ "server": "demo", "trusted": true })).await?;
        let demo = self.server_is("`demo` to connect", |server| at(server, "/status") == "connected").await?;
        self.show_server(&demo)
    }

    /// Waits until the server `demo` is in the wanted state, and returns it.
    async fn server_is(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let is_demo = |server: &Value| at(server, "/name") == "demo" && wanted(server);
        let now = self.editor.command("mcp.servers", json!({ "server": "demo" })).await.unwrap_or_default();
        if let Some(server) = at(&now, "/servers").as_array().into_iter().flatten().find(|server| is_demo(server)) {
            return Ok(server.clone());
        }
        let changed = self
            .editor
            .wait_for(what, |method, params| method == "mcp/serverChanged" && is_demo(at(params, "/server")))
            .await?;
        Ok(at(&changed, "/server").clone())
    }

    /// Waits for a question of this kind about `demo`.
    async fn question(&mut self, kind: &str) -> anyhow::Result<Value> {
        let mut waiting = self.editor.command("mcp.approvals", json!({})).await?;
        if about_demo(&waiting, kind).is_none() {
            waiting = self
                .editor
                .wait_for("a question", |method, params| {
                    method == "mcp/approvalsChanged" && about_demo(params, kind).is_some()
                })
                .await?;
        }
        about_demo(&waiting, kind).cloned().context("the question was withdrawn")
    }

    fn show_question(&mut self, question: &Value) -> anyhow::Result<()> {
        let title = self.out.paint(Color::Waiting, &shown(at(question, "/title")));
        self.out.line(&title)?;
        for line in at(question, "/detail").as_str().unwrap_or_default().lines() {
            self.out.line(&format!("  {}", text::one_line(line, 400)))?;
        }
        Ok(())
    }

    fn show_server(&mut self, server: &Value) -> anyhow::Result<()> {
        let status = shown(at(server, "/status"));
        let status = self.out.paint(Color::of_status(&status), &status);
        let mut line = format!("{}: {status}", shown(at(server, "/name")));
        if let Some(reason) = at(server, "/reason").as_str() {
            line += &format!(" ({})", text::one_line(reason, 200));
        }
        if at(server, "/status") == "connected" {
            let tools = at(server, "/toolCount").as_u64().and_then(|count| count.try_into().ok());
            line += &format!(", {}", counted(tools.unwrap_or_default(), "tool"));
        }
        self.out.line(&line)
    }

    async fn call(&mut self) -> anyhow::Result<()> {
        self.out.heading("You can call tools from the editor")?;
        let arguments = json!({ "a": 19, "b": 23 });
        self.out.act(&format!("you call mcp__demo__add {arguments}"))?;
        let result =
            self.editor.command("mcp.tool.call", json!({ "tool": "mcp__demo__add", "arguments": arguments })).await?;
        self.show_result(&result)
    }

    fn show_result(&mut self, result: &Value) -> anyhow::Result<()> {
        for content in at(result, "/content").as_array().into_iter().flatten() {
            self.out.line(&shown(at(content, "/text")))?;
        }
        Ok(())
    }

    async fn approve(&mut self) -> anyhow::Result<()> {
        self.out.heading("Tools that change something ask for approval")?;
        let arguments = json!({ "text": "try mcp-sidecar" });
        self.out.act(&format!("your-agent calls mcp__demo__take_note {arguments}"))?;
        let call = json!({
            "command": "mcp.tool.call",
            "arguments": [{
                "tool": "mcp__demo__take_note",
                "arguments": arguments,
                "requester": { "kind": "agent", "name": "your-agent" },
            }],
        });
        let response = self.editor.send_request("workspace/executeCommand", call);
        let question = self.question("tool").await?;
        self.show_question(&question)?;
        self.out.act("you answer: allow once")?;
        let decision = json!({ "id": at(&question, "/id"), "decision": "allow-once" });
        self.editor.command("mcp.approval.resolve", decision).await?;
        let result = editor::result("mcp.tool.call", response).await?;
        self.show_result(&result)
    }

    async fn reload(&mut self) -> anyhow::Result<()> {
        self.out.heading("Changes apply when you save, and only changed servers restart")?;
        self.out.act(r#"you add "forget_notes": "deny" to mcp.json and save"#)?;
        self.workspace.edit("mcp.json", r#""tools": {"#, r#""tools": { "forget_notes": "deny","#)?;
        let reload = self
            .editor
            .wait_for("the reload", |method, params| {
                // Skip the notification of the first load, which added servers.
                method == "mcp/configReloaded" && at(params, "/added").as_array().is_none_or(Vec::is_empty)
            })
            .await?;
        let names = |key: &str| {
            let names: Vec<&str> =
                reload.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        self.out.line(&format!(
            "restarted: {}; only permissions changed: {}",
            names("changed"),
            names("policyOnly")
        ))?;
        self.out.act("you call mcp__demo__forget_notes {}")?;
        match self.editor.command("mcp.tool.call", json!({ "tool": "mcp__demo__forget_notes" })).await {
            Ok(result) => self.show_result(&result),
            Err(error) => {
                let denied = self.out.paint(Color::Bad, "denied");
                self.out.line(&format!("{denied}: {}", text::one_line(&error.to_string(), 300)))
            }
        }
    }

    /// The diagnostics of one version of a document.
    async fn published(&mut self, uri: &str, version: u64) -> anyhow::Result<Value> {
        let published = self
            .editor
            .wait_for("diagnostics", |method, params| {
                method == "textDocument/publishDiagnostics"
                    && at(params, "/uri") == uri
                    && at(params, "/version") == version
            })
            .await?;
        Ok(published)
    }
}

/// The pending question of this kind about `demo`.
fn about_demo<'a>(waiting: &'a Value, kind: &str) -> Option<&'a Value> {
    at(waiting, "/approvals")
        .as_array()?
        .iter()
        .find(|approval| at(approval, "/kind") == kind && at(approval, "/server") == "demo")
}

/// The value at a JSON pointer, or `null`.
fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

/// Text from the protocol, made safe for a terminal.
fn shown(value: &Value) -> String {
    text::one_line(value.as_str().unwrap_or_default(), 400)
}
