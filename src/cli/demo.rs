//! `mcp-sidecar demo`: the main journeys, live, in a terminal. A tiny editor opens a copy of the example workspace
//! through the real front and engine; the servers are real processes. What is printed is what came over the wire.

mod editor;
mod stage;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::settings::Settings;
use crate::text;
use editor::Editor;
use stage::Stage;

/// Plays the whole demo and leaves nothing behind.
pub async fn run() -> anyhow::Result<()> {
    let stage = Stage::build().context("could not copy the example workspace")?;
    let engine = Engine::start(stage.paths(), Settings::default());
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (their_input, their_output) = tokio::io::split(theirs);
    let front = tokio::spawn(crate::lsp::serve(their_input, their_output, engine));
    let (our_input, our_output) = tokio::io::split(ours);
    let editor = Editor::over(our_input, our_output);
    let played = Play { stage, editor, out: Out::to_stdout() }.all().await;
    front.abort();
    played
}

struct Play {
    stage: Stage,
    editor: Editor,
    out: Out,
}

impl Play {
    async fn all(mut self) -> anyhow::Result<()> {
        self.open().await?;
        self.diagnose().await?;
        self.edit().await?;
        self.editor.request("shutdown", Value::Null).await?;
        self.editor.notify("exit", Value::Null);
        self.out.end("That was the language server that an editor talks to: `mcp-sidecar lsp`.")
    }

    async fn open(&mut self) -> anyhow::Result<()> {
        let started = Instant::now();
        let root = stage::uri(&self.stage.workspace())?;
        let params = json!({
            "processId": null,
            "rootUri": root,
            "workspaceFolders": [{ "uri": root, "name": "workspace" }],
            "capabilities": { "experimental": { "mcpSidecar": { "version": "1", "approvals": true } } },
        });
        let answer = self.editor.request("initialize", params).await?;
        let took = started.elapsed();
        self.editor.notify("initialized", json!({}));
        let server = &answer["serverInfo"];
        self.out.heading("An editor opens a project that has an mcp.json")?;
        self.out.line(&format!(
            "{} {} answered initialize in {:.1} ms",
            shown(&server["name"]),
            shown(&server["version"]),
            took.as_secs_f64() * 1e3
        ))
    }

    async fn diagnose(&mut self) -> anyhow::Result<()> {
        self.out.heading("It checks the files as you type")?;
        for name in ["mcp.json", ".cursor/mcp.json"] {
            let path = self.stage.file(name);
            let uri = stage::uri(&path)?;
            let text = std::fs::read_to_string(&path)?;
            let document = json!({ "uri": uri, "languageId": "jsonc", "version": 1, "text": text });
            self.editor.notify("textDocument/didOpen", json!({ "textDocument": document }));
            let published = self.published(&uri, 1).await?;
            self.show_diagnostics(Path::new(name), &published["diagnostics"])?;
        }
        Ok(())
    }

    fn show_diagnostics(&mut self, name: &Path, diagnostics: &Value) -> anyhow::Result<()> {
        let diagnostics = diagnostics.as_array().map(Vec::as_slice).unwrap_or_default();
        if diagnostics.is_empty() {
            return self.out.line(&format!("{}: no problems", name.display()));
        }
        for diagnostic in diagnostics {
            let start = &diagnostic["range"]["start"];
            let place = |key: &str| start[key].as_u64().unwrap_or_default() + 1;
            let (severity, color) = match diagnostic["severity"].as_u64() {
                Some(1) => ("error", Color::Red),
                Some(2) => ("warning", Color::Yellow),
                _ => ("note", Color::Grey),
            };
            let severity = self.out.paint(color, severity);
            // The lines after the first are advice, for which an editor has more room.
            let message = diagnostic["message"].as_str().and_then(|message| message.lines().next()).unwrap_or_default();
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

    /// Mends one mistake in the open buffer; the file on disk stays as it is.
    async fn edit(&mut self) -> anyhow::Result<()> {
        let name = ".cursor/mcp.json";
        let path = self.stage.file(name);
        let uri = stage::uri(&path)?;
        let text = std::fs::read_to_string(&path)?.replacen("123456", "3001", 1);
        self.out.act("you mend the port, without saving")?;
        let document = json!({ "uri": uri, "version": 2 });
        self.editor.notify(
            "textDocument/didChange",
            json!({ "textDocument": document, "contentChanges": [{ "text": text }] }),
        );
        let published = self.published(&uri, 2).await?;
        self.show_diagnostics(Path::new(name), &published["diagnostics"])
    }

    /// The diagnostics of one version of a document.
    async fn published(&mut self, uri: &str, version: u64) -> anyhow::Result<Value> {
        let published = self
            .editor
            .wait_for("the diagnostics", |method, params| {
                method == "textDocument/publishDiagnostics" && params["uri"] == uri && params["version"] == version
            })
            .await?;
        Ok(published)
    }
}

/// A text from the wire, safe for a terminal.
fn shown(value: &Value) -> String {
    text::one_line(value.as_str().unwrap_or_default(), 400)
}

#[derive(Clone, Copy)]
enum Color {
    Red,
    Yellow,
    Grey,
}

/// Prints for a person: colours only on a terminal that wants them.
struct Out {
    stdout: io::Stdout,
    colors: bool,
    step: usize,
}

impl Out {
    fn to_stdout() -> Self {
        let stdout = io::stdout();
        let colors = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { stdout, colors, step: 0 }
    }

    fn heading(&mut self, text: &str) -> anyhow::Result<()> {
        self.step += 1;
        let heading = format!("{}. {text}", self.step);
        let heading = if self.colors { format!("\x1b[1m{heading}\x1b[0m") } else { heading };
        Ok(writeln!(self.stdout, "\n{heading}")?)
    }

    fn end(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.stdout, "\n{text}")?)
    }

    /// What the person in front of the editor does.
    fn act(&mut self, text: &str) -> anyhow::Result<()> {
        let arrow = self.paint(Color::Grey, "→");
        self.line(&format!("{arrow} {text}"))
    }

    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.stdout, "   {text}")?)
    }

    fn paint(&self, color: Color, text: &str) -> String {
        let code = match color {
            Color::Red => 31,
            Color::Yellow => 33,
            Color::Grey => 90,
        };
        if self.colors { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
