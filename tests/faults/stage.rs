//! An engine with one good server, an editor, and whatever else a case brings.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mcp_sidecar::lsp_client::Response;
use mcp_sidecar::protocol::commands::{ConfigReload, Servers};
use serde_json::{Map, Value, json};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::case::Case;
use crate::listener::Port;
use crate::pattern::{fill, fill_text};
use crate::support::bad_client::{BadClient, Framing};
use crate::support::{Home, TestEditor, uri};
use crate::watcher::{SecretTap, engines_of};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-sidecar");

pub struct BadPeer {
    pub process: Child,
    pub client: BadClient<SecretTap<ChildStdout>, ChildStdin>,
}

pub struct Stage {
    pub home: Home,
    pub case: Case,
    pub editor: Option<TestEditor>,
    front: Option<Child>,
    pub peers: BTreeMap<String, BadPeer>,
    /// Calls that have been started, by label.
    pub answers: BTreeMap<String, Response<Value>>,
    /// What `remember` has seen: the processes of servers, and of the engine under the name `engine`.
    pub remembered: BTreeMap<String, u32>,
    ports: Vec<(String, Port)>,
    serving: Vec<tokio::task::JoinHandle<()>>,
    secret: String,
    leaks: Vec<Arc<OnceLock<String>>>,
    seed: u64,
}

impl Stage {
    /// Everything but the processes.
    pub fn new(case: &Case, seed: u64) -> Self {
        let ports = case.listeners.keys().map(|name| (name.clone(), Port::bind())).collect();
        Self {
            home: Home::new(),
            case: case.clone(),
            editor: None,
            front: None,
            peers: BTreeMap::new(),
            answers: BTreeMap::new(),
            remembered: BTreeMap::new(),
            ports,
            serving: Vec::new(),
            secret: format!("fault-secret-{seed:016x}"),
            leaks: Vec::new(),
            seed,
        }
    }

    /// Writes the configs without the servers of the case, and opens the first window.
    pub async fn open(&mut self) {
        let settings = self.case.settings.clone().unwrap_or_default();
        std::fs::write(self.home.path("config/config.toml"), format!("{settings}\n[log]\nlevel = \"debug\"\n"))
            .unwrap();
        self.write_user_config(&Map::new());
        self.reopen().await;
    }

    /// Opens a window, perhaps after the last one was lost with its engine.
    pub async fn reopen(&mut self) {
        self.editor = None;
        self.front = None;
        let (process, read, write) = self.start("lsp");
        let mut editor = TestEditor::on(read, write);
        for noise in ["mcp/serverChanged", "mcp/serverRemoved", "mcp/toolsChanged", "mcp/approvalsChanged", "mcp/log"] {
            editor.ignore(noise);
        }
        for noise in
            ["mcp/configReloaded", "mcp/callFinished", "mcp/resourceUpdated", "window/showMessage", "$/progress"]
        {
            editor.ignore(noise);
        }
        let ours = json!({ "version": "1", "approvals": true, "elicitation": true });
        let more = json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } });
        editor.initialize(&[&self.home.project()], more).await;
        self.editor = Some(editor);
        self.front = Some(process);
    }

    /// Starts a front, by the script of the case if it has one.
    pub fn start(&mut self, front: &str) -> (Child, SecretTap<ChildStdout>, ChildStdin) {
        let launch = fill_text(self.case.launch.as_deref().unwrap_or("exec \"$@\""), &self.variables());
        let mut command = Command::new("sh");
        command.args(["-c", &launch, "sh", PROGRAM, front]).envs(self.home.variables()).envs(self.script_variables());
        command.env("FAULT_SECRET", &self.secret).current_dir(self.home.project()).kill_on_drop(true);
        let stderr = std::fs::File::options().append(true).create(true).open(self.home.path("stderr")).unwrap();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        let mut process = command.spawn().unwrap();
        let output = SecretTap::new(process.stdout.take().unwrap(), &self.secret);
        self.leaks.push(output.seen.clone());
        let input = process.stdin.take().unwrap();
        (process, output, input)
    }

    /// A bad editor or agent; it is started when it is first named.
    pub async fn peer(&mut self, name: &str, framing: Framing, greets: bool) -> &mut BadPeer {
        if !self.peers.contains_key(name) {
            let front = if framing == Framing::Lsp { "lsp" } else { "connect" };
            let (process, read, write) = self.start(front);
            let mut client = BadClient::new(read, write, framing);
            match (greets, framing) {
                (true, Framing::Lines) => client.initialize_agent().await,
                (true, Framing::Lsp) => client.initialize_editor(&self.home.project()).await,
                (false, _) => {}
            }
            self.peers.insert(name.to_owned(), BadPeer { process, client });
        }
        self.peers.get_mut(name).unwrap()
    }

    pub fn editor(&mut self) -> &mut TestEditor {
        self.editor.as_mut().expect("a window is open")
    }

    /// The process of the shared engine.
    pub fn engine(&self) -> Option<u32> {
        engines_of(&self.home.project()).first().copied()
    }

    pub fn variables(&self) -> Vec<(String, String)> {
        let mut variables: Vec<(String, String)> =
            self.ports.iter().map(|(name, port)| (format!("$port.{name}"), port.number.to_string())).collect();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        for (name, value) in [
            ("$project", self.home.project().display().to_string()),
            ("$home", self.home.path("").display().to_string().trim_end_matches('/').to_owned()),
            ("$fixtures", fixtures.display().to_string()),
            ("$program", PROGRAM.to_owned()),
            ("$secret", self.secret.clone()),
        ] {
            variables.push((name.to_owned(), value));
        }
        variables
    }

    /// For scripts, beside the variables that are filled in.
    fn script_variables(&self) -> [(&'static str, String); 2] {
        [("ENGINE", self.engine().map_or_else(String::new, |pid| pid.to_string())), ("SEED", self.seed.to_string())]
    }

    pub async fn shell(&mut self, script: &str) -> (Option<i32>, String) {
        let mut command = Command::new("bash");
        command
            .args(["-c", &fill_text(script, &self.variables())])
            .envs(self.script_variables())
            .envs(self.home.variables());
        command.current_dir(self.home.path("")).kill_on_drop(true);
        let output = tokio::time::timeout(Duration::from_secs(120), command.output()).await;
        let output = output.unwrap_or_else(|_| panic!("this script hangs: {script}")).unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), text.trim().to_owned())
    }

    /// Adds the servers of the case, as an editor saves the file.
    pub fn add_servers(&mut self) {
        for (name, port) in &self.ports {
            self.serving.push(port.serve(fill(&self.case.listeners[name], &self.variables())));
        }
        if !self.case.project.is_empty() {
            let servers: Map<String, Value> = self.definitions(&self.case.project);
            self.home.write("mcp.json", &format!("{:#}", json!({ "servers": servers })));
        }
        if !self.case.servers.is_empty() {
            self.save_user_config(&self.case.servers.clone());
        }
    }

    /// Removes them again, and waits until only the good server is left.
    pub async fn remove_servers(&mut self) {
        self.answers.clear();
        for (_, mut peer) in std::mem::take(&mut self.peers) {
            drop(peer.client);
            peer.process.kill().await.ok();
        }
        for serving in self.serving.drain(..) {
            serving.abort();
        }
        std::fs::remove_file(self.home.project().join("mcp.json")).ok();
        self.save_user_config(&Map::new());
        // The next run may write the same files again: without this, nothing would have changed.
        self.editor().call(ConfigReload {}).await.unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let listed = self.editor().call(Servers::default()).await.unwrap();
            let names: Vec<&str> = listed.servers.iter().map(|server| server.name.as_str()).collect();
            if names == ["good"] {
                return;
            }
            assert!(Instant::now() < until, "servers are left: {names:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub fn save_user_config(&mut self, servers: &Map<String, Value>) {
        self.write_user_config(servers);
        let file = self.home.path("config/mcp.json");
        let text = std::fs::read_to_string(&file).unwrap();
        let editor = self.editor();
        editor.open(&file, &text);
        editor.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri(&file) } }));
        editor.close(&file);
    }

    pub fn write_user_config(&self, servers: &Map<String, Value>) {
        let mut all = self.definitions(servers);
        all.insert(
            "good".to_owned(),
            json!({ "command": PROGRAM, "args": ["demo-server"], "tools": { "*": "allow-session" } }),
        );
        let policy = self.case.policy.clone().unwrap_or_else(|| json!({ "default": "allow" }));
        let config = json!({ "servers": all, "policy": policy });
        std::fs::write(self.home.path("config/mcp.json"), format!("{config:#}")).unwrap();
    }

    /// Spells out what is short in a case, and gives each server a secret.
    pub fn definitions(&self, servers: &Map<String, Value>) -> Map<String, Value> {
        let mut all = Map::new();
        for (name, definition) in servers {
            let mut definition = fill(definition, &self.variables());
            if let Some(entry) = definition.as_object_mut() {
                if let Some(Value::Array(faulty)) = entry.remove("faulty") {
                    let text = |each: &Value| each.as_str().map_or_else(|| each.to_string(), str::to_owned);
                    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/faulty.py");
                    let mut arguments = vec![script.display().to_string()];
                    arguments.extend(faulty.iter().map(text));
                    entry.insert("command".to_owned(), json!("python3"));
                    entry.insert("args".to_owned(), json!(arguments));
                }
                let (key, variable) =
                    if entry.contains_key("url") { ("headers", "X-Secret") } else { ("env", "SECRET") };
                if (entry.contains_key("command") || entry.contains_key("url")) && !entry.contains_key("bare") {
                    let values = entry.entry(key).or_insert_with(|| json!({}));
                    if let Some(values) = values.as_object_mut() {
                        values.insert(variable.to_owned(), json!(self.secret));
                        if key == "env" {
                            values.insert("PIDS".to_owned(), json!(self.home.path("pids")));
                        }
                    }
                }
                entry.remove("bare");
            }
            all.insert(name.clone(), definition);
        }
        all
    }

    /// Closes the window as an editor should.
    pub async fn quit(&mut self) -> Result<(), String> {
        if let Some(mut editor) = self.editor.take() {
            editor.ignore("textDocument/publishDiagnostics");
            editor.quit().await;
        }
        if let Some(mut front) = self.front.take() {
            let ended = tokio::time::timeout(Duration::from_secs(60), front.wait()).await;
            let code = ended.map_err(|_| "the front did not end".to_owned())?.unwrap();
            if !code.success() {
                return Err(format!("the front ended with {code}"));
            }
        }
        Ok(())
    }

    /// Checks that the secret has reached neither a message nor a file.
    pub fn check_secret(&self) -> Result<(), String> {
        if let Some(text) = self.leaks.iter().find_map(|leak| leak.get()) {
            return Err(format!("the secret is in a message to an editor or agent: {text}"));
        }
        crate::watcher::in_no_file(&self.home.path(""), &self.secret)
    }
}
