//! Saves of config files, applied by difference to servers that run.

use std::path::Path;

use mcp_sidecar::model::Level;
use mcp_sidecar::protocol::commands::{Config, ConfigReload, ServerRefresh, Servers, ToolForm, Tools};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::ServerRemoved;
use mcp_sidecar::protocol::types::{ServerStatus, ToolInfo};
use mcp_sidecar::protocol::types::{ShownScope, Status};
use serde_json::{Map, Value, json};

use crate::support::Home;
use crate::support::commands::{name, restart, start, stop, trust};
use crate::workspace::{Workspace, alive, demo, fixture, gone, pid, pids, text, wait_for, with, write_servers};

fn ten() -> Value {
    (0..10).map(|number| (format!("s{number}"), demo())).collect::<Map<_, _>>().into()
}

async fn connected(workspace: &mut Workspace, servers: &Value) -> Vec<u32> {
    let mut all = Vec::new();
    for name in servers.as_object().unwrap().keys() {
        all.push(pid(&workspace.connected(name).await));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_changes_one_server_of_ten_leaves_nine_processes_and_their_calls_alone() {
    let mut servers = ten();
    let mut workspace = Workspace::open(servers.clone()).await;
    let before = connected(&mut workspace, &servers).await;
    let call = workspace.begin_call_with_progress("mcp__s1__countdown", json!({ "from": 20, "interval": 50 }));
    workspace.editor().notification("$/progress").await;

    servers["s3"] = with(demo(), json!({ "env": { "CHANGED": "yes" } }));
    workspace.save(servers.clone(), json!({ "changed": ["s3"], "unchanged": 9 })).await;
    workspace.until("s3", |status| status.status == Status::Connected && pid(status) != before[3]).await;
    for (number, before) in before.iter().enumerate() {
        let now = pid(&workspace.status(&format!("s{number}")).await);
        assert_eq!(now == *before, number != 3, "s{number} was {before}, is {now}");
    }
    gone(&before[3..4]).await;
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), "lift-off");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rapid_saves_end_in_one_process_of_the_last_version() {
    let home = Home::new();
    let file = home.path("pids");
    let server = |number: usize| json!({ "one": with(fixture("faulty.py", &["plain", &number.to_string()]), json!({ "env": { "PIDS": file } })) });
    let mut workspace = Workspace::open_at(home, server(0)).await;
    for number in 1..20 {
        workspace.write(server(number));
        tokio::task::yield_now().await;
    }
    let last = server(19)["one"]["args"].clone();
    let is_last = |status: &ServerStatus| status.status == Status::Connected && status.config["args"] == last;
    let status = workspace.until("one", is_last).await;
    let before: Vec<u32> = pids(&file).into_iter().filter(|other| *other != pid(&status)).collect();
    gone(&before).await;
    assert!(alive(pid(&workspace.status("one").await)));
    assert_eq!(pids(&file).last(), Some(&pid(&status)), "nobody started after the last one");
    workspace.quit().await;
    gone(&pids(&file)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_changed_while_it_starts_is_one_process_in_the_end() {
    let home = Home::new();
    let (file, never) = (home.path("pids"), home.path("never"));
    let env = json!({ "env": { "PIDS": file } });
    let slow = with(fixture("faulty.py", &["gate", never.to_str().unwrap()]), env.clone());
    let mut workspace = Workspace::open_at(home, json!({ "one": slow })).await;
    wait_for("the slow one to start", || pids(&file).len() == 1).await;
    let quick = with(fixture("faulty.py", &["plain"]), env);
    workspace.save(json!({ "one": quick }), json!({ "changed": ["one"] })).await;
    let status = workspace.until("one", |status| status.status == Status::Connected).await;
    let [first, second] = pids(&file)[..] else { panic!("two should have started, one after the other") };
    assert_eq!(pid(&status), second);
    gone(&[first]).await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_does_not_parse_changes_nothing_and_is_reported() {
    let servers = json!({ "demo": demo() });
    let mut workspace = Workspace::open(servers.clone()).await;
    let before = workspace.connected("demo").await;
    let file = workspace.home.path("config/mcp.json");
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &good[..good.len() / 2]).unwrap();
    let reload = workspace.reloaded(|reload| !reload.errors.is_empty()).await;
    let errors = &reload.errors[file.to_str().unwrap()];
    assert!(errors[0].contains("unexpected end of file"), "{reload:?}");
    assert_eq!((reload.changed.len(), reload.removed.len(), reload.unchanged), (0, 0, 1));
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "still here" })).await.unwrap(), "still here");
    let files = workspace.run(Config {}).await.files;
    let state = files.iter().find(|each| Path::new(&each.path) == file).unwrap();
    assert_eq!((state.exists, state.valid), (true, false));

    workspace.save(servers, json!({ "unchanged": 1 })).await;
    assert_eq!(pid(&workspace.status("demo").await), pid(&before));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_levels_keeps_the_process_and_counts_at_once() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    let before = workspace.connected("demo").await;
    let level = |tools: &[ToolInfo], name: &str| {
        let tool = tools.iter().find(|tool| tool.tool == name).unwrap_or_else(|| panic!("no {name}"));
        (tool.level, tool.source.clone())
    };
    assert_eq!(level(&workspace.tools("demo").await, "echo").0, Level::AllowAlways);

    let levels = json!({ "tools": { "echo": "deny", "add": "disable" } });
    workspace.save(json!({ "demo": with(demo(), levels) }), json!({ "policyOnly": ["demo"] })).await;
    let tools = workspace.tools("demo").await;
    assert_eq!(level(&tools, "echo").0, Level::Deny);
    assert!(level(&tools, "echo").1.contains("mcp.json"), "{}", level(&tools, "echo").1);
    assert_eq!(level(&tools, "add").0, Level::Disable);
    assert_eq!(level(&tools, "weather").0, Level::AllowAlways);
    let shown = workspace.run(Tools { server: Some(name("demo")), ..Default::default() }).await;
    assert!(shown.tools.iter().all(|tool| tool.tool != "add"), "disabled tools are hidden");
    let refused = workspace.call("mcp__demo__echo", json!({ "text": "no" })).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Denied));
    assert_eq!(pid(&workspace.status("demo").await), pid(&before));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_removed_is_gone_with_its_process_and_its_tools() {
    let mut workspace = Workspace::open(json!({ "stays": demo(), "goes": demo() })).await;
    let goes = pid(&workspace.connected("goes").await);
    let call = workspace.begin_call_with_progress("mcp__goes__countdown", json!({ "from": 100, "interval": 100 }));
    workspace.editor().notification("$/progress").await;
    workspace.save(json!({ "stays": demo() }), json!({ "removed": ["goes"], "unchanged": 1 })).await;
    assert_eq!(workspace.editor().event::<ServerRemoved>().await.name.as_str(), "goes");
    let lost = workspace.editor().answer(call).await.unwrap_err();
    assert_eq!(lost.kind(), Some(ErrorKind::ConnectionFailed), "{lost:?}");
    gone(&[goes]).await;
    let unknown = workspace.call("mcp__goes__echo", json!({ "text": "" })).await.unwrap_err();
    let list = json!({ "title": "List the servers", "command": "mcp.servers", "arguments": {} });
    let data = json!({ "kind": "not-found", "server": "goes", "tool": "echo", "remedy": list });
    assert_eq!(json!(unknown.data), data);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_appear_later_are_noticed_in_every_scope() {
    let home = Home::new();
    let mut workspace = Workspace::start(home, json!({}));
    std::fs::remove_file(workspace.home.path("config/mcp.json")).unwrap();
    workspace.greet(json!({})).await;
    assert_eq!(workspace.run(Servers::default()).await.servers, []);

    write_servers(&workspace.home, json!({ "mine": demo() }));
    assert_eq!(workspace.connected("mine").await.scope, ShownScope::User);

    let config = json!({ "servers": { "theirs": demo() } }).to_string();
    let file = workspace.home.write(".vscode/mcp.json", &config);
    let status = workspace.until("theirs", |status| status.reason.as_deref() == Some("awaiting-trust")).await;
    assert_eq!((status.scope, status.file.as_deref()), (ShownScope::Project, file.to_str()));
    assert_eq!((status.needs_trust, status.pid), (true, None), "nothing runs before it is trusted");
    let status = workspace.until("theirs", |status| status.trust_digest.is_some()).await;
    let trusted = workspace.run(trust(&status)).await;
    assert!(!trusted.server.needs_trust);
    workspace.until("theirs", |status| status.status == Status::Connected).await;

    std::fs::remove_file(&file).unwrap();
    assert_eq!(workspace.editor().event::<ServerRemoved>().await.name.as_str(), "theirs");
    workspace.quit().await;
}

/// Its tools change with each call, and it does not report that.
fn silent_change() -> Value {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let script = json!({ "tools": [tool("one")], "after tools/call": [{ "tools": [tool("two")] }] });
    fixture("faulty.py", &[&script.to_string()])
}

fn offers(status: &ServerStatus, tool: &str) -> bool {
    status.tools.iter().map(|tool| tool.name.as_str()).eq([tool])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_asks_a_running_server_for_its_lists_again() {
    let mut workspace = Workspace::open(json!({ "quiet": silent_change(), "off": off() })).await;
    workspace.connected("quiet").await;
    workspace.call("mcp__quiet__one", json!({})).await.unwrap();
    assert!(offers(&workspace.status("quiet").await, "one"));
    let refresh = |server: &str| ServerRefresh { server: Some(name(server)), all: false };
    let status = workspace.run(refresh("quiet")).await.servers.remove(0);
    assert!(offers(&status, "two"), "{:?}", status.tools);
    workspace.run(stop("quiet")).await;
    let error = workspace.editor().call(refresh("quiet")).await.unwrap_err();
    assert_eq!(error.message, "server `quiet` is not running; start it first");
    assert_eq!(workspace.editor().call(refresh("off")).await.unwrap_err().kind(), Some(ErrorKind::Disabled));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_also_refreshes_the_running_servers() {
    let mut workspace = Workspace::open(json!({ "quiet": silent_change() })).await;
    workspace.connected("quiet").await;
    workspace.call("mcp__quiet__one", json!({})).await.unwrap();
    workspace.run(ConfigReload {}).await;
    workspace.until("quiet", |status| offers(status, "two")).await;
    workspace.quit().await;
}

fn off() -> Value {
    with(demo(), json!({ "enabled": false }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_server_does_not_start_and_the_error_offers_to_enable_it() {
    let mut workspace = Workspace::open(json!({ "off": off() })).await;
    let started = workspace.editor().call(start("off")).await.map(drop);
    let restarted = workspace.editor().call(restart("off")).await.map(drop);
    let called = workspace.call("mcp__off__echo", json!({})).await.map(drop);
    let form = workspace.editor().call(ToolForm { tool: "mcp__off__echo".to_owned() }).await.map(drop);
    for error in [started, restarted, called, form].map(Result::unwrap_err) {
        assert_eq!(error.kind(), Some(ErrorKind::Disabled), "{error}");
        assert_eq!(error.data.unwrap().remedy.unwrap().command, "mcp.server.enable");
    }
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_stops_and_its_next_call_starts_it_again() {
    let mut workspace = Workspace::open(json!({ "demo": with(demo(), json!({ "idleTimeout": 0.2 })) })).await;
    let first = pid(&workspace.connected("demo").await);
    let asleep = workspace.until("demo", |status| status.status == Status::Stopped).await;
    assert_eq!(
        (asleep.reason.as_deref(), asleep.summary.text.as_str()),
        (Some("asleep"), "asleep: starts when it is used")
    );
    gone(&[first]).await;
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "awake" })).await.unwrap(), "awake");
    workspace.quit().await;
}
