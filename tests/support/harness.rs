//! An engine with servers and an editor that shows approvals, for tests of calls and trust.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

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
    pub async fn run(&mut self, name: &str, params: Value) -> Value {
        self.editor.command(name, params).await.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a command that must fail, and returns the `kind` and the message of the error.
    pub async fn fails(&mut self, name: &str, params: Value) -> (String, String) {
        let error = self.editor.command(name, params).await.expect_err("should have failed");
        (error["data"]["kind"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    }

    pub async fn status(&mut self, server: &str) -> Value {
        self.run("mcp.servers", json!({ "server": server })).await["servers"][0].clone()
    }

    /// Waits until a server has this status.
    pub async fn until(&mut self, server: &str, status: &str) -> Value {
        loop {
            let now = self.status(server).await;
            if now["status"] == status {
                return now;
            }
            self.editor.notification("mcp/serverChanged").await;
        }
    }

    /// Waits until this many questions of a kind are pending, and returns them.
    pub async fn approvals(&mut self, kind: &str, count: usize) -> Vec<Value> {
        loop {
            let list = self.run("mcp.approvals", json!({})).await;
            let list = list["approvals"].as_array().unwrap().iter();
            let waiting: Vec<Value> = list.filter(|each| each["kind"] == kind).cloned().collect();
            if waiting.len() == count {
                return waiting;
            }
            self.editor.notification("mcp/approvalsChanged").await;
        }
    }

    pub async fn resolve(&mut self, approval: &Value, decision: &str) {
        self.run("mcp.approval.resolve", json!({ "id": approval["id"], "decision": decision })).await;
    }

    /// Starts a call without waiting for its response.
    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.editor.begin_command("mcp.tool.call", json!({ "tool": tool, "arguments": arguments }))
    }

    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        self.editor.command("mcp.tool.call", json!({ "tool": tool, "arguments": arguments })).await
    }
}

/// Attaches an editor with the abilities of the plugin.
pub async fn open_editor(home: &Home, engine: &Engine) -> TestEditor {
    let (mut editor, _end) = attach_to(engine);
    for noise in
        ["textDocument/publishDiagnostics", "mcp/log", "mcp/callFinished", "mcp/configReloaded", "mcp/toolsChanged"]
    {
        editor.ignore(noise);
    }
    let abilities = json!({ "version": "0", "approvals": true, "elicitation": true });
    let more = json!({ "capabilities": { "experimental": { "mcpSidecar": abilities } } });
    editor.initialize(&[&home.project()], more).await;
    editor
}
