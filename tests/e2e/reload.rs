//! Saves of config files, applied by difference to servers that run.

use serde_json::{Map, Value, json};

use crate::support::Home;
use crate::workspace::{Workspace, alive, demo, fixture, gone, pid, pids, wait_for, with, write_servers};

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
    workspace.until("s3", |status| status["status"] == "connected" && pid(status) != before[3]).await;
    for (number, before) in before.iter().enumerate() {
        let now = pid(&workspace.status(&format!("s{number}")).await);
        assert_eq!(now == *before, number != 3, "s{number} was {before}, is {now}");
    }
    gone(&before[3..4]).await;
    assert_eq!(workspace.editor().answer(call).await.unwrap()["content"][0]["text"], "lift-off");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn saves_in_a_hurry_end_in_one_process_of_the_last_one() {
    let home = Home::new();
    let file = home.path("pids");
    let server = |number: usize| json!({ "one": with(fixture("faulty.py", &["plain", &number.to_string()]), json!({ "env": { "PIDS": file } })) });
    let mut workspace = Workspace::open_at(home, server(0)).await;
    for number in 1..20 {
        write_servers(&workspace.home, server(number));
        tokio::task::yield_now().await;
    }
    let last = server(19)["one"]["args"].clone();
    let is_last = |status: &Value| status["status"] == "connected" && status["config"]["args"] == last;
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
    let status = workspace.until("one", |status| status["status"] == "connected").await;
    let [first, second] = pids(&file)[..] else { panic!("two should have started, one after the other") };
    assert_eq!(pid(&status), second);
    gone(&[first]).await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_does_not_parse_changes_nothing_and_is_told() {
    let servers = json!({ "demo": demo() });
    let mut workspace = Workspace::open(servers.clone()).await;
    let before = workspace.connected("demo").await;
    let file = workspace.home.path("config/mcp.json");
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &good[..good.len() / 2]).unwrap();
    let told = workspace.reloaded(|told| told["errors"] != json!({})).await;
    let errors = &told["errors"][file.to_str().unwrap()];
    assert!(errors[0].as_str().unwrap().contains("unexpected end of file"), "{told:#}");
    assert_eq!((&told["changed"], &told["removed"], &told["unchanged"]), (&json!([]), &json!([]), &json!(1)));
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "still here" })).await.unwrap(), "still here");
    let files = workspace.command("mcp.config", json!({})).await["files"].clone();
    let state = files.as_array().unwrap().iter().find(|each| each["path"] == json!(file)).unwrap();
    assert_eq!((&state["exists"], &state["valid"]), (&json!(true), &json!(false)));

    workspace.save(servers, json!({ "unchanged": 1 })).await;
    assert_eq!(pid(&workspace.status("demo").await), pid(&before));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_levels_keeps_the_process_and_counts_at_once() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    let before = workspace.connected("demo").await;
    let level = |tools: &[Value], name: &str| {
        let tool = tools.iter().find(|tool| tool["tool"] == name).unwrap_or_else(|| panic!("no {name}"));
        (tool["level"].as_str().unwrap().to_owned(), tool["source"].as_str().unwrap().to_owned())
    };
    assert_eq!(level(&workspace.tools("demo").await, "echo").0, "allow-always");

    let levels = json!({ "tools": { "echo": "deny", "add": "disable" } });
    workspace.save(json!({ "demo": with(demo(), levels) }), json!({ "policyOnly": ["demo"] })).await;
    let tools = workspace.tools("demo").await;
    assert_eq!(level(&tools, "echo").0, "deny");
    assert!(level(&tools, "echo").1.contains("mcp.json"), "{}", level(&tools, "echo").1);
    assert_eq!(level(&tools, "add").0, "disable");
    assert_eq!(level(&tools, "weather").0, "allow-always");
    let shown = workspace.command("mcp.tools", json!({ "server": "demo" })).await;
    assert!(shown["tools"].as_array().unwrap().iter().all(|tool| tool["tool"] != "add"), "disabled tools are hidden");
    let refused = workspace.call("mcp__demo__echo", json!({ "text": "no" })).await.unwrap_err();
    assert_eq!(refused["data"]["kind"], "denied");
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
    assert_eq!(workspace.editor().notification("mcp/serverRemoved").await, json!({ "name": "goes" }));
    let lost = workspace.editor().answer(call).await.unwrap_err();
    assert_eq!(lost["data"]["kind"], "connection-failed", "{lost:#}");
    gone(&[goes]).await;
    let unknown = workspace.call("mcp__goes__echo", json!({ "text": "" })).await.unwrap_err();
    assert_eq!(unknown["data"], json!({ "kind": "not-found", "server": "goes", "tool": "echo" }));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_appear_later_are_noticed_whoever_they_belong_to() {
    let home = Home::new();
    let mut workspace = Workspace::start(home, json!({}));
    std::fs::remove_file(workspace.home.path("config/mcp.json")).unwrap();
    workspace.greet(json!({})).await;
    assert_eq!(workspace.command("mcp.servers", json!({})).await, json!({ "servers": [] }));

    write_servers(&workspace.home, json!({ "mine": demo() }));
    assert_eq!(workspace.connected("mine").await["scope"], "user");

    let config = json!({ "servers": { "theirs": demo() } }).to_string();
    let file = workspace.home.write(".vscode/mcp.json", &config);
    let status = workspace.until("theirs", |status| status["reason"] == "awaiting-trust").await;
    assert_eq!((&status["scope"], &status["file"]), (&json!("project"), &json!(file)));
    assert_eq!((&status["needsTrust"], status.get("pid")), (&json!(true), None), "nothing runs before it is trusted");
    let trusted = workspace.command("mcp.server.trust", json!({ "server": "theirs", "trusted": true })).await;
    assert_eq!(trusted["server"]["needsTrust"], false);
    workspace.until("theirs", |status| status["status"] == "connected").await;

    std::fs::remove_file(&file).unwrap();
    assert_eq!(workspace.editor().notification("mcp/serverRemoved").await, json!({ "name": "theirs" }));
    workspace.quit().await;
}
