//! The user's own servers do not run in the open workspace, so they do not run the code of a repository.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::attach_to;
use crate::support::harness::{Harness, demo, open_editor};

/// A server that shows, by a file, that code of the repository ran.
fn plant(desk: &Harness) -> PathBuf {
    let proof = desk.home.project().join("the-code-of-the-repository-ran");
    let touch = format!("open({:?}, 'w').close()\n", proof.display().to_string());
    desk.home.write("planted_module.py", &touch);
    let script = format!("#!/usr/bin/env node\nrequire('fs').writeFileSync({:?}, '')\n", proof.display().to_string());
    desk.home.write("node_modules/planted-package/cli.js", &script);
    let package = json!({ "name": "planted-package", "version": "1.0.0", "bin": "cli.js" }).to_string();
    desk.home.write("node_modules/planted-package/package.json", &package);
    let program = desk.home.write("node_modules/.bin/planted-package", &script);
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    proof
}

/// Writes the user's own file and waits until the engine has read it.
async fn own_servers(desk: &mut Harness, servers: Value) {
    std::fs::write(desk.home.paths().user_config(), json!({ "servers": servers }).to_string()).unwrap();
    desk.run("mcp.config.reload", json!({})).await;
}

async fn desk() -> Harness {
    Harness::new(json!({}), json!({})).await
}

/// Waits until a server has come to rest, well or not: by then its program has run.
async fn settled(desk: &mut Harness, server: &str) -> Value {
    loop {
        let status = desk.status(server).await;
        if status["status"] != "pending" || status["reason"].as_str().is_some_and(|reason| reason.starts_with("retry"))
        {
            return status;
        }
        desk.editor.notification("mcp/serverChanged").await;
    }
}

fn folder_of(status: &Value) -> PathBuf {
    std::fs::read_link(format!("/proc/{}/cwd", status["pid"])).unwrap()
}

#[tokio::test]
async fn package_runners_and_modules_of_the_user_do_not_find_those_of_the_repository() {
    let mut desk = desk().await;
    let proof = plant(&desk);
    let servers = json!({
        "module": { "command": "python3", "args": ["-m", "planted_module"] },
        "package": { "command": "npx", "args": ["--offline", "--yes", "planted-package"] },
        "lookup": { "command": "planted-package", "env": { "PATH": "node_modules/.bin:${PATH}" } },
        "script": { "command": "python3", "args": ["planted_module.py"] },
        "shell": { "command": "sh", "args": ["-c", "python3 planted_module.py"] },
    });
    own_servers(&mut desk, servers.clone()).await;
    for name in servers.as_object().unwrap().keys() {
        settled(&mut desk, name).await;
        assert!(!proof.exists(), "`{name}` ran code of the repository");
    }
}

#[tokio::test]
async fn a_test_of_a_bare_definition_does_not_run_in_the_workspace_either() {
    let mut desk = desk().await;
    let proof = plant(&desk);
    let config = json!({ "command": "python3", "args": ["-m", "planted_module"] });
    desk.run("mcp.server.test", json!({ "config": config })).await;
    assert!(!proof.exists());
}

#[tokio::test]
async fn each_server_of_the_user_has_its_own_private_folder_in_each_workspace() {
    let mut desk = desk().await;
    let here = demo(json!({}));
    let mut there = demo(json!({}));
    there["cwd"] = json!("${workspaceFolder}");
    own_servers(&mut desk, json!({ "one": here, "two": here, "inside": there })).await;
    desk.home.write("mcp.json", &json!({ "servers": { "project": here } }).to_string());
    desk.run("mcp.config.reload", json!({})).await;
    desk.run("mcp.server.trust", json!({ "server": "project", "trusted": true })).await;
    let (one, two) =
        (folder_of(&desk.until("one", "connected").await), folder_of(&desk.until("two", "connected").await));
    let servers = desk.home.paths().state_dir.canonicalize().unwrap().join("servers");
    assert!(one.starts_with(&servers) && two.starts_with(&servers) && one != two, "{one:?} {two:?}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&one).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    let project = desk.home.project().canonicalize().unwrap();
    assert_eq!(folder_of(&desk.until("inside", "connected").await), project, "`cwd` says so");
    assert_eq!(folder_of(&desk.until("project", "connected").await), project);

    // What a server keeps there stays, and another workspace does not see it.
    std::fs::write(one.join("kept"), "").unwrap();
    let other = desk.home.path("other");
    std::fs::create_dir(&other).unwrap();
    desk.engine.set_folders(vec![other]).await;
    desk.run("mcp.server.restart", json!({ "server": "one" })).await;
    let elsewhere = folder_of(&desk.until("one", "connected").await);
    assert!(elsewhere.starts_with(&servers) && elsewhere != one, "{elsewhere:?}");
    assert!(one.join("kept").exists());
}

#[tokio::test]
async fn a_relative_env_file_of_the_user_stands_beside_the_file_that_names_it() {
    let mut desk = desk().await;
    desk.home.write(".env", "FROM=repository\n");
    std::fs::write(desk.home.paths().config_dir.join(".env"), "FROM=user\n").unwrap();
    let mut server = demo(json!({}));
    server["envFile"] = json!(".env");
    own_servers(&mut desk, json!({ "demo": server })).await;
    let status = desk.until("demo", "connected").await;
    let environment = std::fs::read_to_string(format!("/proc/{}/environ", status["pid"])).unwrap();
    assert!(environment.split('\0').any(|variable| variable == "FROM=user"));
}

#[tokio::test]
async fn nothing_of_the_user_that_touches_the_workspace_starts_while_the_editor_does_not_trust_it() {
    let mut desk = desk().await;
    desk.editor.notify("mcp/workspaceTrust", json!({ "trusted": false }));
    let project = desk.home.project();
    let link = desk.home.path("link");
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
    plant(&desk);
    let mut all = servers.clone();
    all["free"] = demo(json!({}));
    own_servers(&mut desk, all).await;
    desk.until("free", "connected").await;
    for name in servers.as_object().unwrap().keys() {
        let status = desk.status(name).await;
        assert_eq!((&status["status"], &status["pid"]), (&json!("pending"), &Value::Null), "{name}");
        assert!(status["error"].as_str().unwrap().contains("does not trust this workspace"), "{name}: {status}");
    }
    desk.editor.notify("mcp/workspaceTrust", json!({ "trusted": true }));
    desk.until("cwd", "connected").await;
    desk.until("variable", "connected").await;
}

#[tokio::test]
async fn after_the_upgrade_the_user_is_told_once_which_servers_run_elsewhere_now() {
    let home = crate::support::Home::new();
    let connection = rusqlite::Connection::open(home.paths().state_dir.join("state.db")).unwrap();
    connection.execute_batch(include_str!("../fixtures/state-1.sql")).unwrap();
    drop(connection);
    let mut stays = demo(json!({}));
    stays["cwd"] = json!("${workspaceFolder}");
    let config = json!({ "servers": { "moved": demo(json!({})), "stays": stays } });
    std::fs::write(home.paths().user_config(), config.to_string()).unwrap();
    let engine = mcp_sidecar::engine::Engine::start(home.paths(), Default::default());
    let greeting = || json!({ "clientInfo": { "name": "an editor" } });

    let (mut first, _end) = attach_to(&engine);
    first.initialize(&[&home.project()], greeting()).await;
    let told = first.notification("window/showMessage").await;
    let text = told["message"].as_str().unwrap();
    assert!(text.contains("`moved`") && !text.contains("`stays`"), "{text}");

    let mut second = open_editor(&home, &engine).await;
    second.ignore("mcp/serverChanged");
    second.command("mcp.servers", json!({})).await.unwrap();
    second.assert_quiet();
    let (mut third, _end) = attach_to(&engine);
    third.ignore("textDocument/publishDiagnostics");
    third.initialize(&[&home.project()], greeting()).await;
    third.command("mcp.grants", json!({})).await.unwrap();
    third.assert_quiet();
}
