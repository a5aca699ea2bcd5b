//! The tripwire for the user's own config: a launch that another program wrote starts only after a question.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::model::{Level, Scope};
use mcp_sidecar::protocol::commands::{Approvals, ConfigReload, ServerTrust};
use mcp_sidecar::protocol::events::{ApprovalsChanged, ServerChanged};
use mcp_sidecar::protocol::types::{ApprovalKind, ServerStatus, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::commands::{add, name, policy};
use crate::support::harness::{demo, open_editor};
use crate::support::{Harness, uri};

fn with_argument(argument: &str) -> Value {
    json!({ "command": "env", "args": [format!("ARGUMENT={argument}"), env!("CARGO_BIN_EXE_mcp-sidecar"), "demo-server"] })
}

/// Writes the user's config as another program does.
fn write(harness: &Harness, servers: Value) {
    std::fs::write(harness.home.paths().user_config(), json!({ "servers": servers }).to_string()).unwrap();
}

/// Writes the user's config as an editor does.
fn save(harness: &mut Harness, version: i32, servers: Value) {
    let (path, text) = (harness.home.paths().user_config(), json!({ "servers": servers }).to_string());
    harness.editor.change(&path, version, &text);
    std::fs::write(&path, text).unwrap();
    harness.editor.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri(&path) } }));
}

/// A server of the user that runs, and the editor has their config open.
async fn running() -> Harness {
    let user = json!({ "servers": { "demo": demo(json!({})), "other": demo(json!({})) } });
    let mut harness = Harness::new(user.clone(), json!({})).await;
    harness.editor.open(&harness.home.paths().user_config(), &user.to_string());
    for server in ["demo", "other"] {
        harness.until(server, Status::Connected).await;
    }
    no_question(&mut harness).await;
    harness
}

async fn no_question(harness: &mut Harness) {
    let waiting = harness.run(Approvals::default()).await.approvals;
    assert!(waiting.is_empty(), "{waiting:#?}");
}

/// Waits until a server runs another process than before, without a question.
async fn restarted(harness: &mut Harness, server: &str, before: Option<u32>) -> ServerStatus {
    loop {
        let now = harness.status(server).await;
        if now.status == Status::Connected && now.pid != before {
            no_question(harness).await;
            return now;
        }
        assert!(!now.needs_trust, "{now:?}");
        harness.editor.event::<ServerChanged>().await;
    }
}

/// The same files with a new engine.
async fn restart_engine(harness: &mut Harness) {
    harness.engine.shutdown().await;
    harness.engine = Engine::start(harness.home.paths(), Settings::default());
    harness.editor = open_editor(&harness.home, &harness.engine).await;
}

#[tokio::test]
async fn a_launch_that_another_program_changes_asks_once_and_is_remembered() {
    let mut harness = running().await;
    write(&harness, json!({ "demo": with_argument("--quiet"), "other": demo(json!({})) }));
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    assert_eq!(question.title, "Did you change the server `demo` in your own config?");
    assert!(question.diff.as_deref().unwrap().contains("+ args.0: ARGUMENT=--quiet"), "{question:#?}");
    assert!(question.detail.contains("another program did"), "{question:#?}");
    let status = harness.status("demo").await;
    assert_eq!((status.reason.as_deref(), status.needs_trust), (Some("awaiting-trust"), true));
    assert_eq!(harness.status("other").await.status, Status::Connected);

    harness.resolve(&question, "allow-project").await;
    harness.until("demo", Status::Connected).await;
    restart_engine(&mut harness).await;
    harness.until("demo", Status::Connected).await;
    no_question(&mut harness).await;
}

#[tokio::test]
async fn a_launch_that_the_user_did_not_change_stays_pending_until_they_ask_for_it() {
    let mut harness = running().await;
    write(&harness, json!({ "demo": with_argument("--evil"), "other": demo(json!({})) }));
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.resolve(&question, "deny").await;
    let is_refused = |status: &ServerStatus| {
        let error = status.error.as_deref().unwrap_or_default();
        status.needs_trust && error.contains("you did not make this change in your own config")
    };
    while !is_refused(&harness.status("demo").await) {
        harness.editor.event::<ServerChanged>().await;
    }
    restart_engine(&mut harness).await;
    while !is_refused(&harness.status("demo").await) {
        harness.editor.event::<ServerChanged>().await;
    }
    no_question(&mut harness).await;

    harness.run(ServerTrust::ask(name("demo"))).await;
    let again = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    assert_eq!(again.title, question.title);
    // The launch that was known before needs no answer.
    write(&harness, json!({ "demo": demo(json!({})), "other": demo(json!({})) }));
    harness.until("demo", Status::Connected).await;
    harness.approvals(ApprovalKind::Trust, 0).await;
}

#[tokio::test]
async fn the_new_servers_of_a_file_are_asked_about_together() {
    let mut harness = running().await;
    let new = ["ant", "bee", "cat"];
    let mut servers = json!({ "demo": demo(json!({})), "other": demo(json!({})) });
    for server in new {
        servers[server] = demo(json!({}));
    }
    write(&harness, servers);
    harness.approvals(ApprovalKind::Trust, 3).await;
    let list = harness.run(Approvals::default()).await;
    assert_eq!(list.groups.len(), 1, "{list:#?}");
    assert_eq!(list.groups[0].ids.len(), 3);
    assert_eq!(list.approvals[0].title, "Did you add the server `ant` to your own config?");
}

#[tokio::test]
async fn what_the_user_saves_in_an_editor_asks_nothing() {
    let mut harness = running().await;
    let before = harness.status("demo").await.pid;
    save(&mut harness, 2, json!({ "demo": with_argument("--saved"), "other": demo(json!({})) }));
    restarted(&mut harness, "demo", before).await;
    restart_engine(&mut harness).await;
    harness.until("demo", Status::Connected).await;
    no_question(&mut harness).await;
}

/// An editor reloads a file that another program has changed. Saving something else does not answer the question.
#[tokio::test]
async fn saving_a_file_does_not_answer_what_another_program_wrote_into_it() {
    let mut harness = running().await;
    let evil = with_argument("--evil");
    write(&harness, json!({ "demo": evil, "other": demo(json!({})) }));
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    let before = harness.status("other").await.pid;
    save(&mut harness, 2, json!({ "demo": evil, "other": with_argument("--saved") }));
    loop {
        let now = harness.status("other").await;
        if now.status == Status::Connected && now.pid != before {
            break;
        }
        harness.editor.event::<ServerChanged>().await;
    }
    let waiting = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    assert_eq!(waiting.id, question.id);
    // Neither does a change through a command.
    harness.run(add("more", demo(json!({})), Scope::User)).await;
    assert!(harness.status("demo").await.needs_trust);
}

#[tokio::test]
async fn what_is_changed_through_a_command_asks_nothing() {
    let mut harness = running().await;
    harness.editor.close(&harness.home.paths().user_config());
    harness.run(add("more", demo(json!({})), Scope::User)).await;
    harness.until("more", Status::Connected).await;
    harness.run(policy("demo", "echo", Some(Level::AllowAlways), Scope::User)).await;
    no_question(&mut harness).await;
    restart_engine(&mut harness).await;
    harness.until("more", Status::Connected).await;
    no_question(&mut harness).await;
}

#[tokio::test]
async fn levels_values_of_variables_and_enabling_ask_nothing() {
    let mut harness = running().await;
    let mut servers = json!({ "demo": demo(json!({ "echo": "deny" })), "other": demo(json!({})) });
    servers["other"]["enabled"] = json!(false);
    write(&harness, servers.clone());
    harness.run(ConfigReload {}).await;
    harness.until("other", Status::Disabled).await;
    no_question(&mut harness).await;
    servers["other"]["enabled"] = json!(true);
    write(&harness, servers.clone());
    harness.until("other", Status::Connected).await;
    no_question(&mut harness).await;

    // A new variable asks, a new value does not, unless it makes the program load code.
    servers["other"]["env"] = json!({ "TOKEN": "one", "LD_PRELOAD": "" });
    write(&harness, servers.clone());
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.resolve(&question, "allow-project").await;
    let pid = harness.until("other", Status::Connected).await.pid;
    servers["other"]["env"]["TOKEN"] = json!("two");
    write(&harness, servers.clone());
    restarted(&mut harness, "other", pid).await;
    servers["other"]["env"]["LD_PRELOAD"] = json!("/tmp/evil.so");
    write(&harness, servers);
    harness.approvals(ApprovalKind::Trust, 1).await;
}

#[tokio::test]
async fn a_state_of_an_older_version_asks_nothing() {
    let mut harness = running().await;
    harness.engine.shutdown().await;
    // The older versions recorded no launches, but other decisions.
    let database = harness.home.paths().state_dir.join("state.db");
    let connection = rusqlite::Connection::open(database).unwrap();
    assert_eq!(connection.execute("DELETE FROM trust WHERE server IN ('demo', 'other')", []).unwrap(), 2);
    drop(connection);
    write(&harness, json!({ "demo": with_argument("--quiet"), "other": demo(json!({})) }));
    restart_engine(&mut harness).await;
    harness.until("demo", Status::Connected).await;
    no_question(&mut harness).await;
}

/// Two windows with different workspaces have two engines.
#[tokio::test]
async fn a_change_that_is_agreed_to_in_one_workspace_is_not_asked_about_in_another() {
    let mut harness = running().await;
    let engine = Engine::start(harness.home.paths(), Settings::default());
    let mut other = open_editor(&harness.home, &engine).await;
    other.ignore("mcp/serverChanged");
    write(&harness, json!({ "demo": with_argument("--quiet"), "other": demo(json!({})) }));
    let asks = |changed: &ApprovalsChanged| !changed.approvals.is_empty();
    other.event_where(asks).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.resolve(&question, "allow-project").await;
    other.event_where(|changed: &ApprovalsChanged| changed.approvals.is_empty()).await;
    engine.shutdown().await;
}
