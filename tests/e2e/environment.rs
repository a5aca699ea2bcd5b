//! Servers start with the environment of the front that asks, in the built binary.

use std::collections::BTreeMap;
use std::path::Path;

use mcp_sidecar::protocol::commands::{Doctor, Servers};
use mcp_sidecar::protocol::events::ServerChanged;
use mcp_sidecar::protocol::types::{ServerStatus, Status};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::joining::start_in_agent;
use crate::processes::stage::{PROGRAM, Pids};
use crate::sharing::{Agent, engine_of};
use crate::support::commands::{name, restart, tool_call, trust};
use crate::support::{Home, StdioEditor, TestEditor};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/server.py");

/// A home whose user has one server with these keys.
fn home(entry: Value) -> Home {
    let home = Home::new();
    let mut server = json!({ "command": "python3", "args": [SERVER], "tools": { "echo": "allow-always" } });
    server.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
    let config = json!({ "servers": { "fixture": server } });
    std::fs::write(home.path("config/mcp.json"), config.to_string()).unwrap();
    home
}

async fn greet(editor: &mut TestEditor, home: &Home) {
    for noise in ["mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "mcp/callFinished", "mcp/approvalsChanged"] {
        editor.ignore(noise);
    }
    editor.ignore("window/showMessage");
    editor.ignore("textDocument/publishDiagnostics");
    let ours = json!({ "version": "1", "approvals": true });
    editor.initialize(&[&home.project()], json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } })).await;
}

async fn window(home: &Home, variables: &[(&str, &str)]) -> StdioEditor {
    let mut window = StdioEditor::start_with(home, &[], variables);
    greet(&mut window.editor, home).await;
    window
}

async fn quit(mut window: StdioEditor) {
    window.editor.ignore("mcp/serverChanged");
    assert!(window.quit().await.success());
}

async fn status(editor: &mut TestEditor, server: &str) -> ServerStatus {
    editor.call(Servers { server: Some(name(server)) }).await.unwrap().servers.remove(0)
}

async fn until(editor: &mut TestEditor, server: &str, wanted: impl Fn(&ServerStatus) -> bool) -> ServerStatus {
    loop {
        let status = status(editor, server).await;
        if wanted(&status) {
            return status;
        }
        editor.event::<ServerChanged>().await;
    }
}

fn is(wanted: Status) -> impl Fn(&ServerStatus) -> bool {
    move |status| status.status == wanted
}

/// The environment of a process.
fn variables_of(pid: u32) -> BTreeMap<String, String> {
    let text = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.split('\0')
        .filter_map(|entry| entry.split_once('='))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn variable(status: &ServerStatus, name: &str) -> Option<String> {
    variables_of(status.pid.unwrap()).remove(name)
}

/// Files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        {
            found.push(path.display().to_string());
        }
    }
    found
}

async fn hover(editor: &mut TestEditor, file: &Path, text: &str, word: &str) -> String {
    editor.open(file, text);
    let position = json!({ "line": 0, "character": text.find(word).unwrap() });
    let params = json!({ "textDocument": { "uri": crate::support::editor::uri(file) }, "position": position });
    editor.request("textDocument/hover", params).await.unwrap().to_string()
}

#[tokio::test]
async fn a_variable_set_before_a_quick_restart_of_the_editor_reaches_the_server() {
    let home = home(json!({ "env": { "TOKEN": "${ENVIRONMENT_TEST}" } }));
    let config = home.path("config/mcp.json");
    let text = std::fs::read_to_string(&config).unwrap();
    let mut first = window(&home, &[]).await;
    let failed = until(&mut first.editor, "fixture", is(Status::Failed)).await;
    assert!(failed.error.unwrap().contains("`ENVIRONMENT_TEST` is not set"));
    let shown = hover(&mut first.editor, &config, &text, "ENVIRONMENT_TEST").await;
    assert!(shown.contains("not set"), "{shown}");
    let engine = engine_of(&home).unwrap();
    quit(first).await;

    let mut second = window(&home, &[("ENVIRONMENT_TEST", "value-of-the-second-editor")]).await;
    let started = until(&mut second.editor, "fixture", is(Status::Connected)).await;
    assert_eq!(engine_of(&home), Some(engine), "the same engine");
    assert_eq!(variable(&started, "TOKEN").unwrap(), "value-of-the-second-editor");
    assert_eq!(variable(&started, "ENVIRONMENT_TEST"), None, "only what its entry names");
    let shown = hover(&mut second.editor, &config, &text, "ENVIRONMENT_TEST").await;
    assert!(!shown.contains("not set"), "{shown}");
    let checks = second.editor.call(Doctor {}).await.unwrap().checks;
    let of_server = checks.iter().find(|check| check.name == "variables of `fixture`").unwrap();
    assert!(of_server.ok, "{}", of_server.message);

    // The value is secret wherever it appears.
    let arguments = json!({ "text": "value-of-the-second-editor" });
    second.editor.call(tool_call("mcp__fixture__echo", arguments)).await.unwrap();
    let shown = serde_json::to_string(&status(&mut second.editor, "fixture").await).unwrap();
    assert!(!shown.contains("value-of-the-second-editor"));
    quit(second).await;
    for folder in ["state", "runtime", "config"] {
        assert_eq!(files_with(&home.path(folder), "value-of-the-second-editor"), [] as [String; 0]);
    }
}

#[tokio::test]
async fn a_relevant_change_is_reported_and_a_restart_applies_it() {
    let home = home(json!({ "env": { "TOKEN": "${ENVIRONMENT_TEST}" } }));
    let mut first = window(&home, &[("ENVIRONMENT_TEST", "value-one"), ("UNRELATED", "1")]).await;
    let started = until(&mut first.editor, "fixture", is(Status::Connected)).await;
    assert_eq!(variable(&started, "TOKEN").unwrap(), "value-one");

    let same = window(&home, &[("ENVIRONMENT_TEST", "value-one"), ("UNRELATED", "2")]).await;
    let mut other = window(&home, &[("ENVIRONMENT_TEST", "value-two")]).await;
    let warned = until(&mut first.editor, "fixture", |status| !status.warnings.is_empty()).await;
    let expected = "environment changed: restart the server to use the new value of `ENVIRONMENT_TEST`";
    assert_eq!(warned.warnings, [expected]);
    assert_eq!((warned.status, warned.pid), (Status::Connected, started.pid), "it keeps running");
    assert!(warned.summary.text.ends_with("environment changed"), "{}", warned.summary.text);
    let remedy = warned.remedy.expect("a remedy");
    assert_eq!((remedy.title.as_str(), remedy.command.as_str()), ("Restart `fixture`", "mcp.server.restart"));
    quit(same).await;

    other.editor.raw_command(&remedy.command, json!(remedy.arguments)).await.unwrap();
    let restarted = until(&mut other.editor, "fixture", is(Status::Connected)).await;
    assert_eq!(restarted.warnings, [] as [String; 0]);
    assert_eq!(variable(&restarted, "TOKEN").unwrap(), "value-two");
    quit(first).await;
    quit(other).await;
}

#[tokio::test]
async fn an_agent_supplies_what_a_definition_refers_to_and_nothing_that_decides_what_runs() {
    let home = Home::new();
    let (pids, inherits) = (Pids::at(home.path("pids")), Pids::at(home.path("inherits")));
    let seen = json!({ "TOKEN": "${ENVIRONMENT_TEST}", "SEEN_PATH": "${PATH}", "SEEN_PRELOAD": "${LD_PRELOAD:-none}",
        "SEEN_OPTIONS": "${NODE_OPTIONS:-none}", "SEEN_HOME": "${HOME:-none}" });
    let config = json!({ "servers": {
        "fixture": { "command": "python3", "args": [SERVER, "--pids", pids.path()], "env": seen },
        "inherits": { "command": "python3", "args": [SERVER, "--pids", inherits.path()], "inheritEnv": true,
            "env": { "TOKEN": "${ENVIRONMENT_TEST}" } },
    } });
    std::fs::write(home.path("config/mcp.json"), config.to_string()).unwrap();
    let command = || {
        let mut command = Command::new(PROGRAM);
        command.envs(home.variables()).env_remove("LD_PRELOAD").env_remove("NODE_OPTIONS").current_dir(home.project());
        command
    };
    // The engine has the environment of the first agent, without the variable.
    let first = Agent::with(command()).await;
    let mut second = command();
    second
        .env("ENVIRONMENT_TEST", "value-of-an-agent")
        .env("PATH", format!("/none:{}", std::env::var("PATH").unwrap()));
    second.env("LD_PRELOAD", "/none/agent.so").env("NODE_OPTIONS", "--no-warnings").env("HOME", home.path("state"));
    second.env("UNREFERRED", "value-of-an-agent").stderr(std::process::Stdio::null());
    let second = Agent::with(second).await;

    let variables = variables_of(pids.wait_for(1)[0]);
    let expected = [("TOKEN", "value-of-an-agent"), ("SEEN_PRELOAD", "none"), ("SEEN_OPTIONS", "none")];
    for (name, value) in expected {
        assert_eq!(variables[name], value, "{name}");
    }
    // Some interpreters add to the PATH of their own process.
    for (name, own) in [("SEEN_PATH", "PATH"), ("SEEN_HOME", "HOME"), ("HOME", "HOME")] {
        assert_eq!(variables[name], std::env::var(own).unwrap(), "{name}");
    }
    let variables = variables_of(inherits.wait_for(1)[0]);
    assert_eq!(variables["TOKEN"], "value-of-an-agent");
    for name in ["UNREFERRED", "LD_PRELOAD", "NODE_OPTIONS"] {
        assert_eq!(variables.get(name), None, "{name}");
    }
    assert!(!variables["PATH"].contains("/none:"), "{}", variables["PATH"]);
    second.quit().await;
    first.quit().await;
    for folder in ["state", "runtime"] {
        assert_eq!(files_with(&home.path(folder), "value-of-an-agent"), [] as [String; 0]);
    }
}

#[tokio::test]
async fn a_shell_command_supplies_what_a_definition_refers_to() {
    let home = home(json!({ "env": { "TOKEN": "${ENVIRONMENT_TEST}" } }));
    let mut command = Command::new(PROGRAM);
    command.envs(home.variables()).current_dir(home.project());
    let agent = Agent::with(command).await;
    let call = |variables: &[(&str, &str)]| {
        let mut shell = Command::new(PROGRAM);
        shell
            .args(["call", "fixture/echo", r#"{"text":"hello"}"#])
            .envs(home.variables())
            .envs(variables.iter().copied());
        shell.current_dir(home.project()).stdin(std::process::Stdio::null()).output()
    };
    let failed = call(&[]).await.unwrap();
    let complaint = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(!failed.status.success() && complaint.contains("`ENVIRONMENT_TEST` is not set"), "{complaint}");
    let called = call(&[("ENVIRONMENT_TEST", "value-of-a-shell")]).await.unwrap();
    assert!(called.status.success(), "{}", String::from_utf8_lossy(&called.stderr));
    assert!(String::from_utf8_lossy(&called.stdout).contains("hello"));
    agent.quit().await;
}

/// A project whose server is the program `tool`, which notes in a file of its folder that it has run.
fn project_with_tool(home: &Home) -> [String; 2] {
    use std::os::unix::fs::PermissionsExt;
    let usual = std::env::var("PATH").unwrap();
    let config = json!({ "servers": { "tool": { "command": "tool" } } });
    home.write("mcp.json", &config.to_string());
    ["one", "two"].map(|name| {
        let folder = home.path(name);
        std::fs::create_dir(&folder).unwrap();
        let script = format!("#!/bin/sh\ntouch '{}'\nexec python3 '{SERVER}'\n", folder.join("ran").display());
        std::fs::write(folder.join("tool"), script).unwrap();
        std::fs::set_permissions(folder.join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
        format!("{}:{usual}", folder.display())
    })
}

#[tokio::test]
async fn another_path_does_not_change_what_a_trusted_definition_runs() {
    let home = home(json!({}));
    let [one, two] = project_with_tool(&home);
    let mut first = window(&home, &[("PATH", &one)]).await;
    let waiting = until(&mut first.editor, "tool", |status| status.trust_digest.is_some()).await;
    first.editor.call(trust(&waiting)).await.unwrap();
    let started = until(&mut first.editor, "tool", is(Status::Connected)).await;
    assert!(home.path("one/ran").exists());

    let mut second = window(&home, &[("PATH", &two)]).await;
    let warned = until(&mut first.editor, "tool", |status| !status.warnings.is_empty()).await;
    assert_eq!(warned.warnings, ["environment changed: restart the server to use the new value of `PATH`"]);
    assert_eq!(warned.pid, started.pid);
    second.editor.call(restart("tool")).await.unwrap();
    let asked = until(&mut second.editor, "tool", |status| status.needs_trust && status.trust_diff.is_some()).await;
    let difference = asked.trust_diff.clone().unwrap();
    assert!(difference.contains("one/tool") && difference.contains("two/tool"), "{difference}");
    assert!(!home.path("two/ran").exists(), "it does not run before the user has agreed");
    second.editor.call(trust(&asked)).await.unwrap();
    until(&mut second.editor, "tool", is(Status::Connected)).await;
    assert!(home.path("two/ran").exists());
    quit(second).await;
    quit(first).await;
}

#[tokio::test]
async fn a_missing_program_starts_with_the_path_of_an_editor_that_has_it() {
    let home = Home::new();
    let [one, _] = project_with_tool(&home);
    std::fs::rename(home.path("project/mcp.json"), home.path("config/mcp.json")).unwrap();
    let mut first = window(&home, &[]).await;
    let failed = until(&mut first.editor, "tool", is(Status::Failed)).await;
    assert!(failed.error.unwrap().contains("`tool` was not found on the PATH"));
    let second = window(&home, &[("PATH", &one)]).await;
    until(&mut first.editor, "tool", is(Status::Connected)).await;
    quit(second).await;
    quit(first).await;
}

#[tokio::test]
async fn an_editor_of_an_agent_supplies_nothing() {
    let home = home(json!({ "env": { "TOKEN": "${ENVIRONMENT_TEST}" } }));
    let mut first = window(&home, &[]).await;
    until(&mut first.editor, "fixture", is(Status::Failed)).await;
    let (mut second, process) = start_in_agent(&home, &[("ENVIRONMENT_TEST", "value-of-an-agent")]);
    greet(&mut second, &home).await;
    status(&mut second, "fixture").await;
    first.editor.call(restart("fixture")).await.unwrap();
    let failed = until(&mut first.editor, "fixture", is(Status::Failed)).await;
    assert!(failed.error.unwrap().contains("`ENVIRONMENT_TEST` is not set"));
    // One of the user does.
    let third = window(&home, &[("ENVIRONMENT_TEST", "value-of-the-user")]).await;
    let started = until(&mut first.editor, "fixture", is(Status::Connected)).await;
    assert_eq!(variable(&started, "TOKEN").unwrap(), "value-of-the-user");
    drop((second, process));
    quit(third).await;
    quit(first).await;
}

/// Code of the open folder that shows by a file that it ran.
struct Planted {
    proof: std::path::PathBuf,
}

impl Planted {
    fn new(home: &Home) -> Self {
        let proof = home.path("the-code-of-the-folder-ran");
        for folder in ["bin", "node_modules/.bin"] {
            let script = format!("#!/bin/sh\ntouch '{}'\n", proof.display());
            let program = home.write(&format!("{folder}/python3"), &script);
            std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        }
        home.write("sitecustomize.py", &format!("open({:?}, 'w').close()\n", proof.display().to_string()));
        Self { proof }
    }
}

#[tokio::test]
async fn a_path_that_leads_into_the_open_folder_does_not_choose_what_servers_of_the_user_run() {
    let path = std::env::var("PATH").unwrap();
    for (case, restricted) in [("project/node_modules/.bin", false), ("link/bin", false), ("project/bin", true)] {
        // `env` looks for python on the PATH that it inherits.
        let home = home(json!({ "command": "/usr/bin/env", "args": ["python3", SERVER] }));
        let planted = Planted::new(&home);
        std::os::unix::fs::symlink(home.project(), home.path("link")).unwrap();
        let given = format!("{}::bin:.:{path}", home.path(case).display());
        let mut window = StdioEditor::start_with(&home, &[], &[("PATH", &given)]);
        for noise in ["mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "mcp/approvalsChanged"] {
            window.editor.ignore(noise);
        }
        let ours = json!({ "version": "1", "approvals": true, "workspaceTrusted": !restricted });
        let more = json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } });
        window.editor.initialize(&[&home.project()], more).await;
        let started = until(&mut window.editor, "fixture", is(Status::Connected)).await;
        assert!(!planted.proof.exists(), "{case}");
        let inherited = variable(&started, "PATH").unwrap();
        assert!(!inherited.contains(home.path("").to_str().unwrap()), "{case}: {inherited}");
        assert!(std::env::split_paths(&inherited).all(|entry| entry.is_absolute()), "{case}: {inherited}");
        quit(window).await;
    }
}

#[tokio::test]
async fn variables_that_lead_into_the_open_folder_are_left_out_for_servers_of_the_user() {
    let home = home(json!({ "inheritEnv": true }));
    let planted = Planted::new(&home);
    let project = home.project().display().to_string();
    let hook = format!("--require {project}/hook.js");
    let (home_there, config) = (format!("{project}/home"), format!("/none:{project}"));
    let variables = [
        ("PYTHONPATH", config.as_str()),
        ("NODE_OPTIONS", &hook),
        ("XDG_CONFIG_HOME", &home_there),
        ("npm_config_userconfig", &project),
        ("UV_INDEX_URL", "https://index.test"),
        ("DATA_OF_THE_PROJECT", &project),
    ];
    let mut window = window(&home, &variables).await;
    let started = until(&mut window.editor, "fixture", is(Status::Connected)).await;
    assert!(!planted.proof.exists());
    for left_out in ["PYTHONPATH", "NODE_OPTIONS", "XDG_CONFIG_HOME", "npm_config_userconfig"] {
        assert_eq!(variable(&started, left_out), None, "{left_out}");
        assert!(started.warnings.iter().any(|text| text.contains(&format!("`{left_out}`"))), "{:?}", started.warnings);
    }
    assert_eq!(variable(&started, "UV_INDEX_URL").as_deref(), Some("https://index.test"));
    assert_eq!(variable(&started, "DATA_OF_THE_PROJECT").as_deref(), Some(project.as_str()));
    assert!(!started.warnings.concat().contains(&project), "names only: {:?}", started.warnings);
    quit(window).await;
}

#[tokio::test]
async fn a_program_that_is_only_in_the_open_folder_is_not_found_and_the_status_says_why() {
    let home = home(json!({ "command": "only-here" }));
    let proof = home.path("ran");
    let program = home.write("bin/only-here", &format!("#!/bin/sh\ntouch '{}'\n", proof.display()));
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.project().join("bin").display(), std::env::var("PATH").unwrap());
    let mut window = window(&home, &[("PATH", &path)]).await;
    let failed = until(&mut window.editor, "fixture", is(Status::Failed)).await;
    let error = failed.error.unwrap();
    assert!(error.contains("was not found") && error.contains("files in an open folder"), "{error}");
    assert!(!proof.exists());
    quit(window).await;
}
