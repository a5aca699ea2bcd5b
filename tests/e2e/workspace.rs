//! A workspace in the hands of the built binary: config files written, an editor attached, questions in one line each.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mcp_sidecar::lsp_client::{CommandError, Response};
use mcp_sidecar::protocol;
use mcp_sidecar::protocol::commands::{Servers, Tools};
use mcp_sidecar::protocol::events::{ConfigReloaded, ServerChanged};
use mcp_sidecar::protocol::types::{Reload, ServerStatus, Status, ToolInfo, ToolResult};
use serde_json::{Value, json};

pub use crate::support::commands::text;
use crate::support::commands::{name, tool_call};
use crate::support::{Home, StdioEditor, TestEditor, uri};

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

    /// The process of the engine: below two guardians on Linux.
    #[cfg(target_os = "linux")]
    pub fn engine(&self) -> u32 {
        let outer = self.sidecar.process.id().unwrap();
        let children = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let only = |pid: u32| children(pid).trim().parse().unwrap_or_else(|_| panic!("not one child of {pid}"));
        only(only(outer))
    }

    pub fn editor(&mut self) -> &mut TestEditor {
        &mut self.sidecar.editor
    }

    /// Runs a command that must succeed.
    pub async fn run<C: protocol::commands::Command>(&mut self, command: C) -> C::Answer {
        self.editor().call(command).await.unwrap_or_else(|error| panic!("{} failed: {error:?}", C::NAME))
    }

    pub async fn status(&mut self, server: &str) -> ServerStatus {
        self.run(Servers { server: Some(name(server)) }).await.servers.remove(0)
    }

    /// Looks at a server until it fits; for what is no news.
    pub async fn status_where(&mut self, server: &str, fits: impl Fn(&ServerStatus) -> bool) -> ServerStatus {
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
    pub async fn until(&mut self, server: &str, fits: impl Fn(&ServerStatus) -> bool) -> ServerStatus {
        loop {
            let news = self.editor().event_where(|news: &ServerChanged| news.server.name.as_str() == server);
            let status = news.await.server;
            if fits(&status) {
                return status;
            }
        }
    }

    /// Waits for a server that must not fail.
    pub async fn connected(&mut self, server: &str) -> ServerStatus {
        let status = self.until(server, |status| status.status != Status::Pending || status.error.is_some()).await;
        assert_eq!(status.status, Status::Connected, "{status:?}");
        status
    }

    /// Waits for a server that must fail; what it says about it.
    pub async fn failure(&mut self, server: &str) -> String {
        self.until(server, |status| status.error.is_some()).await.error.unwrap()
    }

    pub async fn tools(&mut self, server: &str) -> Vec<ToolInfo> {
        self.run(Tools { server: Some(name(server)), all: true }).await.tools
    }

    /// Calls a tool; the text of its result, or the error.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Result<String, CommandError> {
        self.editor().call(tool_call(tool, arguments)).await.map(|result| text(&result))
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> Response<ToolResult> {
        self.editor().start(tool_call(tool, arguments))
    }

    /// Begins a call whose progress is told under the token `progress`.
    pub fn begin_call_with_progress(&mut self, tool: &str, arguments: Value) -> Response<ToolResult> {
        let arguments = json!([{ "tool": tool, "arguments": arguments }]);
        let params = json!({ "command": "mcp.tool.call", "arguments": arguments, "workDoneToken": "progress" });
        self.editor().client.send_request("workspace/executeCommand", &params)
    }

    /// Saves the user's own file in the editor.
    pub fn write(&mut self, servers: Value) {
        write_servers(&self.home, servers);
        let file = self.home.path("config/mcp.json");
        let text = std::fs::read_to_string(&file).unwrap();
        self.editor().ignore("textDocument/publishDiagnostics");
        self.editor().open(&file, &text);
        self.editor().notify("textDocument/didSave", json!({ "textDocument": { "uri": uri(&file) } }));
        self.editor().close(&file);
    }

    /// Saves the user's own file, and waits until exactly these changes are told; what is not named is empty.
    pub async fn save(&mut self, servers: Value, changes: Value) {
        self.write(servers);
        let wanted: Reload = serde_json::from_value(with(json!(Reload::default()), changes)).unwrap();
        self.reloaded(|reload| *reload == wanted).await;
    }

    /// Waits for a reload that fits. They are taken in their order: those before it are over with.
    pub async fn reloaded(&mut self, fits: impl Fn(&Reload) -> bool) -> Reload {
        loop {
            let ConfigReloaded(reload) = self.editor().event().await;
            if fits(&reload) {
                return reload;
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

pub fn pid(status: &ServerStatus) -> u32 {
    status.pid.unwrap_or_else(|| panic!("no pid: {status:?}"))
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
