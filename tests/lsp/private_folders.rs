//! The user's own servers do not run in the open workspace, so they do not run the code of a repository.

use std::path::PathBuf;

use mcp_sidecar::protocol::commands::{ConfigReload, Grants, ServerTest, Servers};
use mcp_sidecar::protocol::types::{ApprovalKind, ServerStatus, Status};
use serde_json::{Value, json};

use crate::support::attach_to;
use crate::support::commands::restart;
use crate::support::harness::{Harness, demo, open_editor, settled};

/// A server that shows, by a file, that code of the repository ran.
fn plant(harness: &Harness) -> PathBuf {
    let proof = harness.home.project().join("the-code-of-the-repository-ran");
    let touch = format!("open({:?}, 'w').close()\n", proof.display().to_string());
    harness.home.write("planted_module.py", &touch);
    let script = format!("#!/usr/bin/env node\nrequire('fs').writeFileSync({:?}, '')\n", proof.display().to_string());
    harness.home.write("node_modules/planted-package/cli.js", &script);
    let package = json!({ "name": "planted-package", "version": "1.0.0", "bin": "cli.js" }).to_string();
    harness.home.write("node_modules/planted-package/package.json", &package);
    let program = harness.home.write("node_modules/.bin/planted-package", &script);
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    proof
}

/// Writes the user's own file and waits until the engine has read it.
async fn own_servers(harness: &mut Harness, servers: Value) {
    std::fs::write(harness.home.paths().user_config(), json!({ "servers": servers }).to_string()).unwrap();
    harness.run(ConfigReload {}).await;
}

async fn harness() -> Harness {
    Harness::new(json!({}), json!({})).await
}

fn folder_of(status: &ServerStatus) -> PathBuf {
    std::fs::read_link(format!("/proc/{}/cwd", status.pid.unwrap())).unwrap()
}

#[tokio::test]
async fn package_runners_and_modules_of_the_user_do_not_find_those_of_the_repository() {
    let mut harness = harness().await;
    let proof = plant(&harness);
    let servers = json!({
        "module": { "command": "python3", "args": ["-m", "planted_module"] },
        "package": { "command": "npx", "args": ["--offline", "--yes", "planted-package"] },
        "lookup": { "command": "planted-package", "env": { "PATH": "node_modules/.bin:${PATH}" } },
        "script": { "command": "python3", "args": ["planted_module.py"] },
        "shell": { "command": "sh", "args": ["-c", "python3 planted_module.py"] },
    });
    own_servers(&mut harness, servers.clone()).await;
    for name in servers.as_object().unwrap().keys() {
        settled(&mut harness, name).await;
        assert!(!proof.exists(), "`{name}` ran code of the repository");
    }
}

#[tokio::test]
async fn a_test_of_a_bare_definition_does_not_run_in_the_workspace_either() {
    let mut harness = harness().await;
    let proof = plant(&harness);
    let config = json!({ "command": "python3", "args": ["-m", "planted_module"] });
    harness.run(ServerTest { config: Some(config.clone()), ..Default::default() }).await;
    assert!(!proof.exists());
}

#[tokio::test]
async fn each_server_of_the_user_has_its_own_private_folder_in_each_workspace() {
    let mut harness = harness().await;
    let here = demo(json!({}));
    let mut there = demo(json!({}));
    there["cwd"] = json!("${workspaceFolder}");
    own_servers(&mut harness, json!({ "one": here, "two": here, "inside": there })).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.resolve(&question, "allow-session").await;
    harness.home.write("mcp.json", &json!({ "servers": { "project": here } }).to_string());
    harness.run(ConfigReload {}).await;
    harness.trust("project").await;
    let (one, two) = (
        folder_of(&harness.until("one", Status::Connected).await),
        folder_of(&harness.until("two", Status::Connected).await),
    );
    let servers = harness.home.paths().state_dir.canonicalize().unwrap().join("servers");
    assert!(one.starts_with(&servers) && two.starts_with(&servers) && one != two, "{one:?} {two:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&one).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    let project = harness.home.project().canonicalize().unwrap();
    assert_eq!(folder_of(&harness.until("inside", Status::Connected).await), project, "`cwd` says so");
    assert_eq!(folder_of(&harness.until("project", Status::Connected).await), project);

    // What a server keeps there stays, and another workspace does not see it.
    std::fs::write(one.join("kept"), "").unwrap();
    let other = harness.home.path("other");
    std::fs::create_dir(&other).unwrap();
    harness.engine.set_folders(vec![other]).await;
    harness.run(restart("one")).await;
    let elsewhere = folder_of(&harness.until("one", Status::Connected).await);
    assert!(elsewhere.starts_with(&servers) && elsewhere != one, "{elsewhere:?}");
    assert!(one.join("kept").exists());
}

#[tokio::test]
async fn the_working_directory_in_an_argument_is_the_private_folder() {
    let mut harness = harness().await;
    let mut server = demo(json!({}));
    server["env"] = json!({ "WHERE": "${cwd}" });
    own_servers(&mut harness, json!({ "demo": server })).await;
    let status = harness.until("demo", Status::Connected).await;
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", status.pid.unwrap())).unwrap();
    let folder = environment.split('\0').find_map(|variable| variable.strip_prefix("WHERE=")).unwrap();
    assert_eq!(PathBuf::from(folder).canonicalize().unwrap(), folder_of(&status));
    assert!(!folder_of(&status).starts_with(harness.home.project().canonicalize().unwrap()));
}

#[tokio::test]
async fn servers_of_the_user_run_in_a_new_folder_only_after_one_question() {
    let mut harness = harness().await;
    let proof = plant(&harness);
    let inside = |cwd: &str| {
        let mut server = demo(json!({}));
        server["cwd"] = json!(cwd);
        server
    };
    let program = harness.home.project().join("node_modules/.bin/planted-package");
    let servers = json!({
        "workspace": inside("${workspaceFolder}"),
        "below": inside("${workspaceFolder}/node_modules"),
        "program": { "command": program },
        "argument": { "command": "sh", "args": ["-c", "exec \"$0\" demo-server", demo(json!({}))["command"], "${workspaceFolder}"] },
    });
    own_servers(&mut harness, servers).await;
    harness.until("argument", Status::Connected).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    let project = harness.home.project().canonicalize().unwrap();
    assert!(question.title.contains(project.to_str().unwrap()), "{}", question.title);
    for name in ["workspace", "below", "program"] {
        let status = harness.status(name).await;
        assert_eq!((status.status, status.pid, status.needs_trust), (Status::Pending, None, true), "{name}");
    }
    let config = json!({ "command": program, "cwd": "${workspaceFolder}" });
    harness.fails(ServerTest { config: Some(config), ..Default::default() }).await;
    assert!(!proof.exists());

    harness.resolve(&question, "allow-project").await;
    harness.until("workspace", Status::Connected).await;
    harness.until("below", Status::Connected).await;
    harness.approvals(ApprovalKind::Trust, 0).await;

    // Another folder is another question. It can also be answered by the name of a server.
    let other = harness.home.path("other");
    std::fs::create_dir(&other).unwrap();
    harness.engine.set_folders(vec![other]).await;
    harness.run(restart("workspace")).await;
    harness.approvals(ApprovalKind::Trust, 1).await;
    harness.trust("workspace").await;
    harness.until("workspace", Status::Connected).await;
    harness.approvals(ApprovalKind::Trust, 0).await;
}

#[tokio::test]
async fn an_entry_of_the_user_whose_variables_load_code_of_the_folder_asks_first() {
    let mut harness = harness().await;
    let proof = plant(&harness);
    harness.home.write(".env", "NODE_OPTIONS=--import=data:text/javascript,1\n");
    harness.home.write("plain.env", "TOKEN=1\n");
    let (command, project) = (demo(json!({}))["command"].clone(), harness.home.project());
    let with =
        |env: Value, file: Value| json!({ "command": command, "args": ["demo-server"], "env": env, "envFile": file });
    let servers = json!({
        "path": with(json!({ "PATH": "${workspaceFolder}/node_modules/.bin:${PATH}" }), Value::Null),
        "modules": with(json!({ "PYTHONPATH": project }), Value::Null),
        "options": with(json!({ "NODE_OPTIONS": format!("--require={}/hook.js", project.display()) }), Value::Null),
        "file": with(json!({}), json!("${workspaceFolder}/.env")),
    });
    let mut all = servers.clone();
    all["data"] = with(json!({ "ROOT": project }), json!("${workspaceFolder}/plain.env"));
    for (_, server) in all.as_object_mut().unwrap() {
        server.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    own_servers(&mut harness, all).await;
    harness.until("data", Status::Connected).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    for name in servers.as_object().unwrap().keys() {
        let status = harness.status(name).await;
        assert_eq!((status.status, status.pid, status.needs_trust), (Status::Pending, None, true), "{name}");
    }
    assert!(!proof.exists());
    harness.resolve(&question, "allow-project").await;
    for name in servers.as_object().unwrap().keys() {
        harness.until(name, Status::Connected).await;
    }
}

#[tokio::test]
async fn a_relative_env_file_of_the_user_is_next_to_the_file_that_names_it() {
    let mut harness = harness().await;
    harness.home.write(".env", "FROM=repository\n");
    std::fs::write(harness.home.paths().config_dir.join(".env"), "FROM=user\n").unwrap();
    let mut server = demo(json!({}));
    server["envFile"] = json!(".env");
    own_servers(&mut harness, json!({ "demo": server })).await;
    let status = harness.until("demo", Status::Connected).await;
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", status.pid.unwrap())).unwrap();
    assert!(environment.split('\0').any(|variable| variable == "FROM=user"));
}

#[tokio::test]
async fn nothing_of_the_user_that_touches_the_workspace_starts_while_the_editor_does_not_trust_it() {
    let mut harness = harness().await;
    harness.editor.notify("mcp/workspaceTrust", json!({ "trusted": false }));
    let project = harness.home.project();
    let link = harness.home.path("link");
    std::os::unix::fs::symlink(&project, &link).unwrap();
    let with = |key: &str, value: Value| {
        let mut server = demo(json!({}));
        server[key] = value;
        server
    };
    let argument = |text: &str| with("args", json!(["demo-server", text]));
    let servers = json!({
        "cwd": with("cwd", json!("${workspaceFolder}")),
        "literal": with("cwd", json!(project)),
        "link": with("cwd", json!(link)),
        "argument": argument("${workspaceFolder}"),
        "flag": argument(&format!("--root={}", project.display())),
        "variable": with("env", json!({ "ROOT": "${workspaceFolder}" })),
        "own-path": { "command": "planted-package", "env": { "PATH": project.join("node_modules/.bin") } },
    });
    plant(&harness);
    let mut all = servers.clone();
    all["free"] = demo(json!({}));
    own_servers(&mut harness, all).await;
    harness.until("free", Status::Connected).await;
    for name in servers.as_object().unwrap().keys() {
        let status = harness.status(name).await;
        assert_eq!((status.status, status.pid), (Status::Pending, None), "{name}");
        assert!(status.error.as_deref().unwrap().contains("does not trust this workspace"), "{name}: {status:?}");
    }
    harness.editor.notify("mcp/workspaceTrust", json!({ "trusted": true }));
    harness.until("cwd", Status::Connected).await;
    harness.until("variable", Status::Connected).await;
}

#[tokio::test]
async fn after_the_upgrade_the_user_is_told_once_which_servers_run_elsewhere_now() {
    let home = crate::support::Home::new();
    let connection = rusqlite::Connection::open(home.paths().state_dir.join("state.db")).unwrap();
    connection.execute_batch(include_str!("../fixtures/state-1.sql")).unwrap();
    drop(connection);
    let mut stays = demo(json!({}));
    stays["cwd"] = json!(home.path("config"));
    let config = json!({ "servers": { "moved": demo(json!({})), "stays": stays } });
    std::fs::write(home.paths().user_config(), config.to_string()).unwrap();
    let engine = mcp_sidecar::engine::Engine::start(home.paths(), Default::default());
    let greeting = || json!({ "clientInfo": { "name": "an editor" } });

    let (mut first, _end) = attach_to(&engine);
    first.initialize(&[&home.project()], greeting()).await;
    let message = first.notification("window/showMessage").await;
    let text = message["message"].as_str().unwrap();
    assert!(text.contains("`moved`") && !text.contains("`stays`"), "{text}");

    let mut second = open_editor(&home, &engine).await;
    second.ignore("mcp/serverChanged");
    second.call(Servers::default()).await.unwrap();
    second.assert_quiet();
    let (mut third, _end) = attach_to(&engine);
    third.ignore("textDocument/publishDiagnostics");
    third.initialize(&[&home.project()], greeting()).await;
    third.call(Grants {}).await.unwrap();
    third.assert_quiet();
}
