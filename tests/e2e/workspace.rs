//! A workspace in the hands of the built binary: config files written, an editor attached, questions in one line each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, StdioEditor, TestEditor};

/// The binary under test, which holds the demo server as well.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-sidecar");
/// Engine and editor's front in one process, so that the end of one is the end of the other.
const ARGUMENTS: &[&str] = &["lsp", "--standalone"];
/// No wait takes longer on the slowest machine; it only ends tests that would hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Workspace {
    pub home: Home,
    pub sidecar: StdioEditor,
}

impl Workspace {
    /// Servers in the user's own file: they need no trust, and every tool of theirs may run.
    pub async fn open(servers: Value) -> Self {
        Self::open_at(Home::new(), servers).await
    }

    pub async fn open_at(home: Home, servers: Value) -> Self {
        let mut workspace = Self::start(home, servers);
        workspace.greet(json!({})).await;
        workspace
    }

    /// The same before the editor has said who it is.
    pub fn start(home: Home, servers: Value) -> Self {
        write_servers(&home, servers);
        let sidecar = StdioEditor::start(&home, ARGUMENTS);
        Self { home, sidecar }
    }

    /// Greets as one of our plugins would, `more` said about itself.
    pub async fn greet(&mut self, more: Value) {
        let mut abilities = json!({ "version": "1", "approvals": true, "elicitation": true });
        abilities.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let project = self.home.project();
        let more = json!({ "capabilities": { "experimental": { "mcpSidecar": abilities } } });
        self.editor().initialize(&[&project], more).await;
    }

    pub fn editor(&mut self) -> &mut TestEditor {
        &mut self.sidecar.editor
    }

    pub async fn command(&mut self, name: &str, params: Value) -> Value {
        let answer = self.editor().command(name, params.clone()).await;
        answer.unwrap_or_else(|error| panic!("{name} {params} failed: {error:#}"))
    }

    pub async fn status(&mut self, server: &str) -> Value {
        self.command("mcp.servers", json!({ "server": server })).await["servers"][0].clone()
    }

    /// Looks at a server until it fits; for what is no news.
    pub async fn status_where(&mut self, server: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                let status = self.status(server).await;
                if fits(&status) {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("the status that was waited for")
    }

    /// Waits for news of a server that fit. News are taken in their order, those that do not fit are over with.
    pub async fn until(&mut self, server: &str, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let news = self.editor().notification_where("mcp/serverChanged", |news| news["server"]["name"] == server);
            let status = news.await["server"].take();
            if fits(&status) {
                return status;
            }
        }
    }

    /// Waits for a server that must not fail.
    pub async fn connected(&mut self, server: &str) -> Value {
        let status = self.until(server, |status| status["status"] != "pending" || status["error"].is_string()).await;
        assert_eq!(status["status"], "connected", "{status:#}");
        status
    }

    /// Waits for a server that must fail; what it says about it.
    pub async fn failure(&mut self, server: &str) -> String {
        self.until(server, |status| status["error"].is_string()).await["error"].as_str().unwrap().to_owned()
    }

    pub async fn tools(&mut self, server: &str) -> Vec<Value> {
        let answer = self.command("mcp.tools", json!({ "server": server, "all": true })).await;
        answer["tools"].as_array().unwrap().clone()
    }

    /// Calls a tool; the text of its result, or the error.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<String, Value> {
        let id = self.begin_call(tool, arguments);
        self.editor().answer(id).await.map(|result| text(&result))
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> i64 {
        self.editor().begin_command("mcp.tool.call", json!({ "tool": tool, "arguments": arguments }))
    }

    /// Begins a call whose progress is told under the token `progress`.
    pub fn begin_call_with_progress(&mut self, tool: &str, arguments: Value) -> i64 {
        let arguments = json!([{ "tool": tool, "arguments": arguments }]);
        let params = json!({ "command": "mcp.tool.call", "arguments": arguments, "workDoneToken": "progress" });
        self.editor().begin("workspace/executeCommand", params)
    }

    /// Saves the user's own file, and waits until exactly these changes are told; what is not named is empty.
    pub async fn save(&mut self, servers: Value, changes: Value) {
        write_servers(&self.home, servers);
        let nothing =
            json!({ "added": [], "removed": [], "changed": [], "policyOnly": [], "unchanged": 0, "errors": {} });
        let wanted = with(nothing, changes);
        self.reloaded(|told| *told == wanted).await;
    }

    /// Waits for a reload that fits. They are taken in their order: those before it are over with.
    pub async fn reloaded(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let told = self.editor().notification("mcp/configReloaded").await;
            if fits(&told) {
                return told;
            }
        }
    }

    /// Leaves, whatever has been told and not looked at.
    pub async fn quit(self) -> Home {
        let Self { home, mut sidecar } = self;
        for news in [
            "mcp/serverChanged",
            "mcp/serverRemoved",
            "mcp/toolsChanged",
            "mcp/approvalsChanged",
            "mcp/configReloaded",
            "mcp/callFinished",
            "mcp/resourceUpdated",
            "mcp/log",
            "$/progress",
            "textDocument/publishDiagnostics",
        ] {
            sidecar.editor.ignore(news);
        }
        assert!(sidecar.quit().await.success(), "the sidecar should leave in peace");
        home
    }
}

/// Writes the user's own file.
pub fn write_servers(home: &Home, servers: Value) {
    let config = json!({ "servers": servers, "policy": { "default": "allow" } });
    std::fs::write(home.path("config/mcp.json"), format!("{config:#}")).unwrap();
}

/// A definition that runs one of `tests/fixtures`.
pub fn fixture(name: &str, arguments: &[&str]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let arguments: Vec<&str> = std::iter::once(script.to_str().unwrap()).chain(arguments.iter().copied()).collect();
    json!({ "command": "python3", "args": arguments })
}

/// A definition of the built-in server.
pub fn demo() -> Value {
    json!({ "command": PROGRAM, "args": ["demo-server"] })
}

/// The same definition with further keys.
pub fn with(mut definition: Value, more: Value) -> Value {
    definition.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    definition
}

/// The text of a result.
pub fn text(result: &Value) -> String {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("no result: {result:#}"));
    content.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

pub fn pid(status: &Value) -> u32 {
    status["pid"].as_u64().unwrap_or_else(|| panic!("no pid: {status:#}")).try_into().unwrap()
}

pub fn kill(pid: u32) {
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success(), "{pid} was gone already");
}

/// Whether a process is there, and not only its corpse.
pub fn alive(pid: u32) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", &pid.to_string()]).output().unwrap();
    let state = String::from_utf8(output.stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

/// Waits until none of these processes is left.
pub async fn gone(pids: &[u32]) {
    let left = || pids.iter().copied().filter(|pid| alive(*pid)).collect::<Vec<_>>();
    wait_for("the end of processes", || left().is_empty()).await;
}

/// Waits for something outside of the sidecar that nobody tells, such as a file or a process.
pub async fn wait_for(what: &str, there: impl Fn() -> bool) {
    let waiting = async {
        while !there() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("waited in vain for {what}"));
}

/// The pids that a fixture wrote into a file, one a line.
pub fn pids(file: &PathBuf) -> Vec<u32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}
