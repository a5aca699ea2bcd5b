//! How servers start, crash, restart, start lazily and are tested, as an editor sees it.

use std::collections::BTreeMap;

use mcp_sidecar::protocol::commands::{Calls, ServerStart, ServerTest, ServerToggle, Servers, ServersSet, Tools};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::ServerRemoved;
use mcp_sidecar::protocol::types::{ShownScope, Status};
use serde_json::{Map, Value, json};

use crate::support::Home;
use crate::support::commands::{name, restart, stop};
use crate::workspace::{PROGRAM, Workspace, alive, demo, fixture, gone, kill, pid, pids, text, wait_for, with};

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_does_not_delay_fifty_others() {
    let home = Home::new();
    let gate = home.path("gate");
    let mut servers: Map<String, Value> = (0..50).map(|number| (format!("s{number}"), demo())).collect();
    servers.insert("slow".to_owned(), fixture("faulty.py", &["gate", gate.to_str().unwrap()]));
    let mut workspace = Workspace::open_at(home, servers.into()).await;
    let listed = workspace.run(Servers::default()).await;
    assert_eq!(listed.servers.len(), 51);
    let slow = workspace.status("slow").await;
    assert_eq!((slow.status, slow.reason.as_deref()), (Status::Pending, Some("starting")));
    for number in 0..50 {
        workspace.connected(&format!("s{number}")).await;
    }
    assert_eq!(workspace.call("mcp__s49__echo", json!({ "text": "here" })).await.unwrap(), "here");
    assert_eq!(workspace.status("slow").await.status, Status::Pending, "it could not have started yet");
    std::fs::write(gate, "").unwrap();
    workspace.connected("slow").await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_server_that_is_still_starting_waits_for_it() {
    let home = Home::new();
    let gate = home.path("gate");
    let servers = json!({ "slow": fixture("faulty.py", &["gate", gate.to_str().unwrap()]) });
    let mut workspace = Workspace::open_at(home, servers).await;
    let call = workspace.begin_call("mcp__slow__echo", json!({ "early": true }));
    assert_eq!(workspace.status("slow").await.status, Status::Pending);
    std::fs::write(gate, "").unwrap();
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), r#"{"early": true}"#);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_ends_its_call_with_the_reason_and_restarts() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    let first = pid(&workspace.connected("demo").await);
    let call = workspace.begin_call_with_progress("mcp__demo__countdown", json!({ "from": 100, "interval": 100 }));
    workspace.editor().notification("$/progress").await;
    kill(first);
    let lost = workspace.editor().answer(call).await.unwrap_err();
    assert_eq!(json!(lost.data), json!({ "kind": "process-failed", "server": "demo", "tool": "countdown" }));
    assert_eq!(lost.message.as_str(), "server `demo`: the server was killed by signal 9 (SIGKILL)");
    let failed = workspace.until("demo", |status| status.error.is_some()).await;
    assert_eq!((failed.status, failed.pid), (Status::Pending, None));
    assert!(failed.reason.as_deref().unwrap().starts_with("retrying in "), "{failed:?}");
    let back = workspace.until("demo", |status| status.status == Status::Connected).await;
    assert_ne!(pid(&back), first);
    assert_eq!((back.restarts, back.error), (1, None));
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "again" })).await.unwrap(), "again");
    let calls = workspace.run(Calls { failed: true, ..Default::default() }).await.calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].error.as_deref(), Some(lost.message.as_str()));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_generations_of_processes_end_after_the_sidecar_is_killed() {
    let home = Home::new();
    let file = home.path("pids");
    let servers = json!({ "family": fixture("server.py", &["--family", "--pids", file.to_str().unwrap()]) });
    let mut workspace = Workspace::open_at(home, servers).await;
    workspace.connected("family").await;
    wait_for("the family", || pids(&file).len() == 4).await;
    let family = pids(&file);
    assert!(family.iter().all(|pid| alive(*pid)));
    workspace.sidecar.process.kill().await.unwrap();
    gone(&family).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lazy_server_starts_on_its_first_call_and_its_tools_are_cached() {
    let lazy = json!({ "lazy": with(demo(), json!({ "autoStart": false })) });
    let mut workspace = Workspace::open(lazy.clone()).await;
    let asleep = workspace.status("lazy").await;
    assert_eq!((asleep.status, asleep.tool_count, asleep.pid), (Status::Stopped, 0, None));
    assert_eq!(workspace.call("mcp__lazy__echo", json!({ "text": "wake up" })).await.unwrap(), "wake up");
    assert_eq!(workspace.status("lazy").await.status, Status::Connected);
    let home = workspace.quit().await;

    // A description and levels do not make it a different server.
    let lazy = json!({ "lazy": with(lazy["lazy"].clone(), json!({ "description": "sleeps", "tools": { "add": "allow-once" } })) });
    let mut workspace = Workspace::open_at(home, lazy).await;
    let asleep = workspace.status("lazy").await;
    assert_eq!((asleep.status, asleep.tool_count), (Status::Stopped, 9));
    assert_eq!(workspace.tools("lazy").await.len(), 9);
    assert_eq!(workspace.call("mcp__lazy__add", json!({ "a": 1, "b": 2 })).await.unwrap(), "3");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_restarts_when_its_source_files_change() {
    let home = Home::new();
    let sources = home.path("config/server");
    std::fs::create_dir(&sources).unwrap();
    let servers = json!({ "dev": with(demo(), json!({ "dev": { "watch": "server/**/*.ts" } })) });
    let mut workspace = Workspace::open_at(home, servers).await;
    let first = pid(&workspace.connected("dev").await);
    std::fs::write(sources.join("readme.md"), "not a source").unwrap();
    std::fs::write(sources.join("main.ts"), "// a source").unwrap();
    let again = workspace.until("dev", |status| status.status == Status::Connected && pid(status) != first).await;
    assert_eq!(again.restarts, 1);
    gone(&[first]).await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_test_reports_its_findings_and_leaves_nothing_running() {
    let home = Home::new();
    let file = home.path("pids");
    let env = json!({ "env": { "PIDS": file } });
    let faulty = |mode: &str| with(fixture("faulty.py", &[mode]), env.clone());
    let mut workspace = Workspace::open_at(home, json!({ "own": faulty("plain") })).await;
    let own = pid(&workspace.connected("own").await);

    let by_name = ServerTest { server: Some(name("own")), config: None };
    let by_config = ServerTest { server: None, config: Some(faulty("plain")) };
    for test in [by_name, by_config] {
        let good = workspace.run(test).await;
        assert_eq!((good.success, good.message.as_str()), (true, "connected: 1 tool, 0 resources, 0 prompts"));
        assert_eq!(json!(good.server_info), json!({ "name": "faulty", "version": "1" }));
        assert_eq!(good.protocol_version.as_deref(), Some("2025-06-18"));
        assert_eq!(good.tools[0].0["name"], "echo");
        assert!(good.resources.is_empty() && good.prompts.is_empty() && good.latency_ms > 0.0, "{good:?}");
    }
    let late = with(faulty("hang"), json!({ "startupTimeout": 2 }));
    for (config, message) in [
        (faulty("exit"), "the server exited with code 0 before it answered `initialize`"),
        (late, "the server did not answer `initialize` within 2 s (`startupTimeout` sets this limit)"),
    ] {
        let bad = workspace.run(ServerTest { config: Some(config.clone()), ..Default::default() }).await;
        assert_eq!((bad.success, bad.message.as_str(), bad.tools.len()), (false, message, 0));
    }
    let missing =
        workspace.run(ServerTest { config: Some(json!({ "command": "no-such-program" })), ..Default::default() }).await;
    assert!(!missing.success);
    let wrong = workspace
        .editor()
        .call(ServerTest { config: Some(json!({ "command": 5 })), ..Default::default() })
        .await
        .unwrap_err();
    assert_eq!(wrong.kind(), Some(ErrorKind::InvalidParams));

    assert_eq!(pids(&file).into_iter().filter(|pid| alive(*pid)).collect::<Vec<_>>(), [own]);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_servers_are_added_and_removed_and_errors_are_reported() {
    let mut workspace = Workspace::open(json!({ "file": demo() })).await;
    let file = pid(&workspace.connected("file").await);
    let servers = [("extra", demo()), ("file", demo()), ("bad", json!({ "command": 5 })), ("a__b", demo())];
    let servers = servers.map(|(name, config)| (name.to_owned(), config)).into();
    let result = workspace.run(ServersSet { servers }).await;
    assert_eq!((result.added.join(" "), result.removed.len()), ("extra file".to_owned(), 0));
    let errors = result.errors;
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["a__b", "bad"]);
    assert!(errors["a__b"].contains("__"), "{errors:?}");
    let extra = workspace.connected("extra").await;
    assert_eq!((extra.scope, extra.file.as_deref()), (ShownScope::Session, None));
    let over = workspace.until("file", |status| status.status == Status::Connected && pid(status) != file).await;
    assert_eq!((over.scope, over.hides[0].scope), (ShownScope::Session, ShownScope::User));

    let result = workspace.run(ServersSet { servers: BTreeMap::new() }).await;
    assert_eq!(json!(result), json!({ "added": [], "removed": ["extra", "file"], "errors": {} }));
    assert_eq!(workspace.editor().event::<ServerRemoved>().await.name.as_str(), "extra");
    workspace.until("file", |status| status.status == Status::Connected && status.scope == ShownScope::User).await;
    gone(&[pid(&extra), pid(&over)]).await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_server_keeps_its_connection_and_shows_no_tools() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    let before = pid(&workspace.connected("demo").await);
    let off = workspace.run(ServerToggle { server: name("demo"), enabled: false }).await;
    let off = &off.server;
    assert_eq!((off.status, off.enabled, off.tool_count), (Status::Connected, false, 0));
    assert_eq!(pid(off), before);
    assert_eq!(workspace.run(Tools::default()).await.tools, []);
    let refused = workspace.call("mcp__demo__echo", json!({ "text": "" })).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Disabled));
    workspace.run(ServerToggle { server: name("demo"), enabled: true }).await;
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "on" })).await.unwrap(), "on");
    assert_eq!(pid(&workspace.status("demo").await), before);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_stays_stopped_until_it_is_started() {
    let mut workspace = Workspace::open(json!({ "demo": { "command": [PROGRAM, "demo-server"] } })).await;
    let first = pid(&workspace.connected("demo").await);
    let stopped = workspace.run(stop("demo")).await.servers.remove(0);
    assert_eq!((stopped.status, stopped.pid), (Status::Stopped, None));
    assert!(!alive(first), "answered when settled");
    let started = workspace.run(ServerStart { all: true, ..Default::default() }).await.servers.remove(0);
    assert_eq!(started.status, Status::Connected, "answered when settled");
    let again = workspace.run(restart("demo")).await.servers.remove(0);
    assert_eq!(again.status, Status::Connected);
    assert_ne!(pid(&again), pid(&started));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_take_turns_to_start_and_one_that_is_called_does_not_wait_for_the_others() {
    let home = Home::new();
    let file = home.path("pids");
    let hanging = with(fixture("faulty.py", &["hang"]), json!({ "env": { "PIDS": file } }));
    let mut servers: Map<String, Value> = (0..60).map(|number| (format!("a{number}"), hanging.clone())).collect();
    servers.insert("wanted".to_owned(), fixture("faulty.py", &["plain"]));
    let mut workspace = Workspace::open_at(home, servers.into()).await;
    assert_eq!(workspace.call("mcp__wanted__echo", json!({ "a": 1 })).await.unwrap(), r#"{"a": 1}"#);
    // All together take longer than half a minute.
    let started = pids(&file).len();
    assert!(started < 30, "{started} programs started at once");
    workspace.quit().await;
}
