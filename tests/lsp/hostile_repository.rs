//! A repository widens, launches and replaces nothing of what the user defined: links, names and programs.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use mcp_sidecar::model::{Level, Scope};
use mcp_sidecar::protocol::commands::{ConfigReload, ServerMove, Servers};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use serde_json::{Value, json};

use crate::support::commands::{add, name, policy};
use crate::support::harness::{Harness, demo};

fn servers(servers: Value) -> Value {
    json!({ "servers": servers })
}

fn move_to_local(server: &str) -> ServerMove {
    ServerMove { server: name(server), from: Scope::Project.into(), to: Scope::Local, file: None }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

async fn names(harness: &mut Harness) -> Vec<String> {
    harness.run(ConfigReload {}).await;
    harness.run(Servers::default()).await.servers.iter().map(|server| server.name.to_string()).collect()
}

#[tokio::test]
async fn nothing_is_written_through_a_link_out_of_the_repository() {
    let own = servers(json!({ "mine": demo(json!({})) }));
    let mut harness = Harness::new(own.clone(), servers(json!({ "planted": demo(json!({})) }))).await;
    let user = harness.home.paths().user_config();
    let local = harness.home.project().join("mcp.local.json");
    // The link appears while the engine runs, and even before the engine has read it.
    symlink(&user, &local).unwrap();
    let refused = harness.fails(move_to_local("planted")).await;
    assert!(refused.message.contains("outside of the repository"), "{refused}");
    harness.run(ConfigReload {}).await;
    let refused = harness.fails(move_to_local("planted")).await;
    assert!(refused.message.contains("outside of the repository"), "{refused}");
    harness.fails(add("another", demo(json!({})), Scope::Local)).await;
    assert_eq!(text(&user), own.to_string());
    assert_eq!(harness.status("planted").await.scope, Scope::Project.into());
    // The user can still edit their own file.
    harness.run(add("mine-too", demo(json!({})), Scope::User)).await;
    assert!(text(&user).contains("mine-too"));

    // A link to nothing, a chain of links and a linked folder are no better.
    for target in [harness.home.path("config/new.json"), harness.home.project().join("chain")] {
        std::fs::remove_file(&local).unwrap();
        symlink(&target, &local).unwrap();
        symlink("../config/new.json", harness.home.project().join("chain")).ok();
        harness.fails(move_to_local("planted")).await;
        assert!(!harness.home.path("config/new.json").exists());
    }
}

#[tokio::test]
async fn nothing_is_read_through_a_link_out_of_the_repository() {
    let mut harness = Harness::new(json!({}), json!({})).await;
    let outside = harness.home.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("mcp.json"), servers(json!({ "outside": demo(json!({})) })).to_string()).unwrap();
    symlink(&outside, harness.home.project().join(".vscode")).unwrap();
    symlink("../outside/mcp.json", harness.home.project().join(".mcp.json")).unwrap();
    assert_eq!(names(&mut harness).await, [""; 0]);

    // A link inside the repository is fine, and the repository may be larger than the folder.
    std::fs::remove_file(harness.home.project().join(".mcp.json")).unwrap();
    harness.home.write("shared/mcp.json", &servers(json!({ "inside": demo(json!({})) })).to_string());
    symlink("shared/mcp.json", harness.home.project().join(".mcp.json")).unwrap();
    assert_eq!(names(&mut harness).await, ["inside"]);
    harness.home.write("../.git/HEAD", "");
    assert_eq!(names(&mut harness).await, ["inside", "outside"]);
}

#[tokio::test]
async fn two_names_of_one_file_are_one_file_of_the_weaker_scope() {
    let mut harness = Harness::new(json!({}), servers(json!({ "demo": demo(json!({})) }))).await;
    symlink("mcp.json", harness.home.project().join("mcp.local.json")).unwrap();
    // Editors that share a file are no reason to refuse.
    symlink("mcp.json", harness.home.project().join(".mcp.json")).unwrap();
    harness.run(ConfigReload {}).await;
    assert_eq!(harness.status("demo").await.scope, Scope::Project.into());
    harness.run(policy("demo", "echo", Some(Level::Deny), Scope::Project)).await;
    harness.fails(move_to_local("demo")).await;
    assert!(text(&harness.home.project().join("mcp.json")).contains("demo"));

    // The user's file, if it is kept in this repository, is a file of this repository.
    let kept = harness.home.write("mcp.json", &servers(json!({ "mine": demo(json!({})) })).to_string());
    let user = harness.home.paths().user_config();
    std::fs::remove_file(&user).unwrap();
    symlink(&kept, &user).unwrap();
    harness.run(ConfigReload {}).await;
    let status = harness.status("mine").await;
    assert_eq!((status.scope, status.needs_trust), (Scope::Project.into(), true));
}

#[tokio::test]
async fn a_link_to_the_users_file_is_refused_even_if_the_home_folder_is_a_repository() {
    let own = servers(json!({ "mine": demo(json!({})) }));
    let mut harness = Harness::new(own.clone(), servers(json!({ "planted": demo(json!({})) }))).await;
    harness.home.write("../.git/HEAD", "");
    let user = harness.home.paths().user_config();
    symlink(&user, harness.home.project().join("mcp.local.json")).unwrap();
    harness.run(ConfigReload {}).await;
    assert_eq!(harness.status("mine").await.scope, Scope::User.into());
    let refused = harness.fails(move_to_local("planted")).await;
    assert!(refused.message.contains("it is the same file as"), "{refused}");
    assert_eq!(text(&user), own.to_string());
}

#[tokio::test]
async fn a_hard_link_to_the_users_file_does_not_change_it() {
    let own = servers(json!({ "mine": demo(json!({})) }));
    let mut harness = Harness::new(own.clone(), servers(json!({ "planted": demo(json!({})) }))).await;
    let user = harness.home.paths().user_config();
    std::fs::hard_link(&user, harness.home.project().join("mcp.local.json")).unwrap();
    harness.run(ConfigReload {}).await;
    harness.run(move_to_local("planted")).await;
    assert_eq!(text(&user), own.to_string());
    assert!(harness.status("planted").await.needs_trust);
}

#[tokio::test]
async fn an_env_file_that_is_a_link_out_of_the_repository_is_said_in_the_question() {
    let mut server = demo(json!({}));
    server["envFile"] = json!(".env");
    let mut harness = Harness::new(json!({}), json!({})).await;
    let secrets = harness.home.path("credentials");
    std::fs::write(&secrets, "KEY=value\n").unwrap();
    symlink(&secrets, harness.home.project().join(".env")).unwrap();
    harness.home.write("mcp.json", &servers(json!({ "demo": server })).to_string());
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    let target = secrets.canonicalize().unwrap();
    let warning = format!("its env file is a link to `{}`, outside of the repository", target.display());
    assert!(question.detail.contains(&warning), "{}", question.detail);
}

#[tokio::test]
async fn a_project_server_with_the_name_of_the_users_own_gets_its_denials_and_none_of_its_permissions() {
    let own = json!({
        "servers": { "github": demo(json!({ "echo": "deny", "add": "allow-always" })) },
        "policy": { "allowlist": [{ "server": "git*", "tool": "slow" }, { "server": "github", "tool": "add" }] }
    });
    let mut harness = Harness::new(own, servers(json!({ "github": demo(json!({ "*": "allow-always" })) }))).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    assert!(question.detail.starts_with("warning   replaces your own `github`"), "{}", question.detail);
    harness.resolve(&question, "allow-session").await;
    harness.until("github", Status::Connected).await;
    let denied = harness.fails(crate::support::commands::tool_call("mcp__github__echo", json!({ "text": "x" }))).await;
    assert_eq!(denied.kind(), Some(ErrorKind::Denied), "{denied}");

    // Without permissions of its own it has none.
    harness.home.write("mcp.json", &servers(json!({ "github": demo(json!({})) })).to_string());
    harness.run(ConfigReload {}).await;
    harness.trust("github").await;
    harness.until("github", Status::Connected).await;
    let call = harness.begin_call("mcp__github__add", json!({ "a": 1, "b": 2 }));
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&asked, "deny").await;
    assert_eq!(harness.editor.answer(call).await.unwrap_err().kind(), Some(ErrorKind::Denied));
}

#[tokio::test]
async fn a_project_server_with_a_name_similar_to_one_of_the_user_is_reported_as_another_server() {
    let own = servers(json!({ "github": demo(json!({})), "memory": demo(json!({})) }));
    let planted = servers(json!({ "GitHub": demo(json!({})), "rnemory": demo(json!({})), "gitlab": demo(json!({})) }));
    let mut harness = Harness::new(own, planted).await;
    for question in harness.approvals(ApprovalKind::Trust, 3).await {
        let imitated = match question.server.as_str() {
            "GitHub" => Some("github"),
            "rnemory" => Some("memory"),
            _ => None,
        };
        let warning = "warning   its name looks like that of your own server";
        assert_eq!(question.detail.starts_with(warning), imitated.is_some(), "{}", question.detail);
        assert!(imitated.is_none_or(|name| question.detail.starts_with(&format!("{warning} `{name}`"))));
    }
}

#[tokio::test]
async fn a_level_for_the_session_is_about_the_server_that_had_the_name() {
    let mut harness = Harness::new(servers(json!({ "github": demo(json!({})) })), json!({})).await;
    harness.until("github", Status::Connected).await;
    harness.run(policy("github", "add", Some(Level::AllowSession), Scope::Session)).await;
    harness.run(policy("github", "echo", Some(Level::Deny), Scope::Session)).await;
    harness.home.write("mcp.json", &servers(json!({ "github": demo(json!({})) })).to_string());
    harness.run(ConfigReload {}).await;
    harness.trust("github").await;
    harness.until("github", Status::Connected).await;
    let _call = harness.begin_call("mcp__github__add", json!({ "a": 1, "b": 2 }));
    harness.approvals(ApprovalKind::Tool, 1).await;
    harness.call("mcp__github__echo", json!({ "text": "x" })).await.unwrap_err();
}

#[tokio::test]
async fn an_allowed_program_is_the_one_on_the_path_of_the_engine() {
    let own = json!({ "policy": { "commands": ["python3", "mcp-sidecar"] } });
    let mut harness = Harness::new(own, json!({})).await;
    let proof = harness.home.path("another-program-ran");
    let fake = harness.home.write("bin/python3", &format!("#!/bin/sh\ntouch {proof:?}\n"));
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let with = |path: &str| json!({ "command": "python3", "args": ["-V"], "env": { "PATH": path } });
    let mut from_file = with("");
    from_file["env"] = json!({});
    from_file["envFile"] = json!(".env");
    harness.home.write(".env", &format!("PATH={}\n", harness.home.project().join("bin").display()));
    let all = json!({
        "own-path": with("${workspaceFolder}/bin:/usr/bin:/bin"),
        "relative": with("bin:/usr/bin"),
        "env-file": from_file,
        "variable": with("${CARGO_MANIFEST_DIR}:${workspaceFolder}/bin"),
    });
    harness.home.write("mcp.json", &servers(all.clone()).to_string());
    harness.run(ConfigReload {}).await;
    for server in all.as_object().unwrap().keys() {
        let status = harness.until(server, Status::Failed).await;
        assert!(status.error.unwrap().contains("is not in the list of allowed programs"), "{server}");
    }
    assert!(!proof.exists());
    // With the PATH of the engine, it may start once it is trusted.
    harness.home.write("mcp.json", &servers(json!({ "plain": { "command": "python3" } })).to_string());
    harness.run(ConfigReload {}).await;
    assert!(harness.status("plain").await.needs_trust);
}
