//! An engine with servers and an editor that shows approvals, for tests of calls and trust.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::lsp_client::{CommandError, Response};
use mcp_sidecar::protocol::commands::{Approvals, Command, Servers};
use mcp_sidecar::protocol::events::{ApprovalsChanged, ServerChanged};
use mcp_sidecar::protocol::types::{Approval, ApprovalKind, ServerStatus, Status, ToolResult};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use super::commands::{name, resolve, tool_call, trust};
use super::{Home, TestEditor, attach_to};

/// An entry for the built-in server with these permission levels.
pub fn demo(tools: Value) -> Value {
    json!({ "command": env!("CARGO_BIN_EXE_mcp-sidecar"), "args": ["demo-server"], "tools": tools })
}

/// A script of `tests/fixtures` as a server.
pub fn fixture(name: &str) -> Value {
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    json!({ "command": "python3", "args": [script] })
}

/// A server that offers what `script` says: see `tests/fixtures/scripted.py`. The file is in `folder`.
pub fn scripted(folder: &std::path::Path, name: &str, script: Value) -> Value {
    let file = folder.join(format!("{name}.script.json"));
    std::fs::write(&file, script.to_string()).unwrap();
    let mut server = fixture("scripted.py");
    server["args"].as_array_mut().unwrap().push(json!(file));
    server
}

/// A server with a fault: a script of `tests/fixtures/faulty.py` by its name, or as JSON.
pub fn faulty(script: &str) -> Value {
    let mut server = fixture("faulty.py");
    server["args"].as_array_mut().unwrap().push(json!(script));
    server
}

pub struct Harness {
    pub home: Home,
    pub engine: Engine,
    pub editor: TestEditor,
}

impl Harness {
    /// `user` is the content of the user's config file, `project` that of the project's file.
    pub async fn new(user: Value, project: Value) -> Self {
        Self::with(user, project, Settings::default()).await
    }

    pub async fn with(user: Value, project: Value, settings: Settings) -> Self {
        let home = Home::new();
        std::fs::create_dir_all(home.paths().config_dir).unwrap();
        std::fs::write(home.paths().user_config(), user.to_string()).unwrap();
        home.write("mcp.json", &project.to_string());
        let engine = Engine::start(home.paths(), settings);
        let editor = open_editor(&home, &engine).await;
        Self { home, engine, editor }
    }

    /// Runs a command that must succeed.
    pub async fn run<C: Command>(&mut self, command: C) -> C::Answer {
        self.editor.call(command).await.unwrap_or_else(|error| panic!("{}: {error:?}", C::NAME))
    }

    /// Runs a command that must fail.
    pub async fn fails<C: Command>(&mut self, command: C) -> CommandError {
        match self.editor.call(command).await {
            Ok(_) => panic!("{} should have failed", C::NAME),
            Err(error) => error,
        }
    }

    pub async fn status(&mut self, server: &str) -> ServerStatus {
        self.run(Servers { server: Some(name(server)) }).await.servers.remove(0)
    }

    /// Waits until a server has this status.
    pub async fn until(&mut self, server: &str, status: Status) -> ServerStatus {
        loop {
            let now = self.status(server).await;
            if now.status == status {
                return now;
            }
            self.editor.event::<ServerChanged>().await;
        }
    }

    /// Waits until this many questions of a kind are pending, and returns them.
    pub async fn approvals(&mut self, kind: ApprovalKind, count: usize) -> Vec<Approval> {
        loop {
            let mut waiting = self.run(Approvals::default()).await.approvals;
            waiting.retain(|each| each.kind == kind);
            if waiting.len() == count {
                return waiting;
            }
            self.editor.event::<ApprovalsChanged>().await;
        }
    }

    pub async fn resolve(&mut self, approval: &Approval, decision: &str) {
        self.run(resolve(approval, decision)).await;
    }

    /// Trusts the definition of a server as it is shown now.
    pub async fn trust(&mut self, server: &str) -> ServerStatus {
        trust_shown(&mut self.editor, server).await
    }

    /// Starts a call without waiting for its response.
    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> Response<ToolResult> {
        self.editor.start(tool_call(tool, arguments))
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<ToolResult, CommandError> {
        self.editor.call(tool_call(tool, arguments)).await
    }
}

/// Waits until a server has come to rest, well or not: by then its program has run, or waits for trust.
pub async fn settled(harness: &mut Harness, server: &str) -> ServerStatus {
    loop {
        let status = harness.status(server).await;
        if status.status != Status::Pending
            || status.needs_trust
            || status.reason.as_deref().is_some_and(|reason| reason.starts_with("retry"))
        {
            return status;
        }
        harness.editor.event::<ServerChanged>().await;
    }
}

/// Trusts the definition of a server as it is shown now, and returns its status.
pub async fn trust_shown(editor: &mut TestEditor, server: &str) -> ServerStatus {
    let shown = editor.call(Servers { server: Some(name(server)) }).await.unwrap().servers.remove(0);
    editor.call(trust(&shown)).await.unwrap_or_else(|error| panic!("{error}")).server
}

/// Attaches an editor with the abilities of the plugin.
pub async fn open_editor(home: &Home, engine: &Engine) -> TestEditor {
    let (mut editor, _end) = attach_to(engine);
    for noise in
        ["textDocument/publishDiagnostics", "mcp/log", "mcp/callFinished", "mcp/configReloaded", "mcp/toolsChanged"]
    {
        editor.ignore(noise);
    }
    let abilities = json!({ "version": "0", "approvals": true, "elicitation": true, "buffers": true });
    let more = json!({ "capabilities": { "experimental": { "mcpSidecar": abilities } } });
    editor.initialize(&[&home.project()], more).await;
    editor
}
