//! How servers begin, die, come back, sleep and are tried out, as an editor sees it.

use serde_json::{Map, Value, json};

use crate::support::Home;
use crate::workspace::{PROGRAM, Workspace, alive, demo, fixture, gone, kill, pid, pids, text, wait_for, with};

#[tokio::test(flavor = "multi_thread")]
async fn fifty_servers_start_together_and_one_that_is_slow_holds_up_nobody() {
    let home = Home::new();
    let gate = home.path("gate");
    let mut servers: Map<String, Value> = (0..50).map(|number| (format!("s{number}"), demo())).collect();
    servers.insert("slow".to_owned(), fixture("faulty.py", &["gate", gate.to_str().unwrap()]));
    let mut workspace = Workspace::open_at(home, servers.into()).await;
    let listed = workspace.command("mcp.servers", json!({})).await;
    assert_eq!(listed["servers"].as_array().unwrap().len(), 51);
    let slow = workspace.status("slow").await;
    assert_eq!((&slow["status"], &slow["reason"]), (&json!("pending"), &json!("starting")));
    for number in 0..50 {
        workspace.connected(&format!("s{number}")).await;
    }
    assert_eq!(workspace.call("mcp__s49__echo", json!({ "text": "here" })).await.unwrap(), "here");
    assert_eq!(workspace.status("slow").await["status"], "pending", "it could not have started yet");
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
    assert_eq!(workspace.status("slow").await["status"], "pending");
    std::fs::write(gate, "").unwrap();
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), r#"{"early": true}"#);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_ends_its_call_with_the_reason_and_is_back_by_itself() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    let first = pid(&workspace.connected("demo").await);
    let call = workspace.begin_call_with_progress("mcp__demo__countdown", json!({ "from": 100, "interval": 100 }));
    workspace.editor().notification("$/progress").await;
    kill(first);
    let lost = workspace.editor().answer(call).await.unwrap_err();
    assert_eq!(lost["data"], json!({ "kind": "process-failed", "server": "demo", "tool": "countdown" }));
    assert_eq!(lost["message"], "server `demo`: was ended by signal 9 (SIGKILL)");
    let failed = workspace.until("demo", |status| status["error"].is_string()).await;
    assert_eq!((&failed["status"], failed.get("pid")), (&json!("pending"), None));
    assert!(failed["reason"].as_str().unwrap().starts_with("retrying in "), "{failed:#}");
    let back = workspace.until("demo", |status| status["status"] == "connected").await;
    assert_ne!(pid(&back), first);
    assert_eq!((&back["restarts"], back.get("error")), (&json!(1), None));
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "again" })).await.unwrap(), "again");
    let calls = workspace.command("mcp.calls", json!({ "failed": true })).await["calls"].clone();
    assert_eq!(calls.as_array().unwrap().len(), 1);
    assert_eq!(calls[0]["error"], lost["message"]);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_generations_of_a_server_are_gone_after_its_sidecar_was_killed() {
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
async fn a_lazy_server_starts_at_its_first_call_and_its_tools_are_known_the_next_time() {
    let lazy = json!({ "lazy": with(demo(), json!({ "autoStart": false })) });
    let mut workspace = Workspace::open(lazy.clone()).await;
    let asleep = workspace.status("lazy").await;
    assert_eq!((&asleep["status"], &asleep["toolCount"], asleep.get("pid")), (&json!("stopped"), &json!(0), None));
    assert_eq!(workspace.call("mcp__lazy__echo", json!({ "text": "wake up" })).await.unwrap(), "wake up");
    assert_eq!(workspace.status("lazy").await["status"], "connected");
    let home = workspace.quit().await;

    // Words and levels do not make it another server.
    let lazy = json!({ "lazy": with(lazy["lazy"].clone(), json!({ "description": "sleeps", "tools": { "add": "allow-once" } })) });
    let mut workspace = Workspace::open_at(home, lazy).await;
    let asleep = workspace.status("lazy").await;
    assert_eq!((&asleep["status"], &asleep["toolCount"]), (&json!("stopped"), &json!(9)));
    assert_eq!(workspace.tools("lazy").await.len(), 9);
    assert_eq!(workspace.call("mcp__lazy__add", json!({ "a": 1, "b": 2 })).await.unwrap(), "3");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_restarted_when_its_own_sources_change() {
    let home = Home::new();
    let sources = home.path("config/server");
    std::fs::create_dir(&sources).unwrap();
    let servers = json!({ "dev": with(demo(), json!({ "dev": { "watch": "server/**/*.ts" } })) });
    let mut workspace = Workspace::open_at(home, servers).await;
    let first = pid(&workspace.connected("dev").await);
    std::fs::write(sources.join("readme.md"), "not a source").unwrap();
    std::fs::write(sources.join("main.ts"), "// a source").unwrap();
    let again = workspace.until("dev", |status| status["status"] == "connected" && pid(status) != first).await;
    assert_eq!(again["restarts"], 1);
    gone(&[first]).await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_tells_what_it_found_and_leaves_nothing_running() {
    let home = Home::new();
    let file = home.path("pids");
    let env = json!({ "env": { "PIDS": file } });
    let faulty = |mode: &str| with(fixture("faulty.py", &[mode]), env.clone());
    let mut workspace = Workspace::open_at(home, json!({ "own": faulty("plain") })).await;
    let own = pid(&workspace.connected("own").await);

    for params in [json!({ "server": "own" }), json!({ "config": faulty("plain") })] {
        let good = workspace.command("mcp.server.test", params).await;
        assert_eq!(
            (&good["success"], &good["message"]),
            (&json!(true), &json!("connected: 1 tool, 0 resources, 0 prompts"))
        );
        assert_eq!(good["serverInfo"], json!({ "name": "faulty", "version": "1" }));
        assert_eq!(good["protocolVersion"], "2025-06-18");
        assert_eq!(good["tools"][0]["name"], "echo");
        assert_eq!((&good["resources"], &good["prompts"]), (&json!([]), &json!([])));
        assert!(good["latencyMs"].is_number());
    }
    let late = with(faulty("hang"), json!({ "startupTimeout": 2 }));
    for (config, message) in [
        (faulty("exit"), "exited with code 0 before initialize"),
        (late, "no answer to initialize in 2 s (`startupTimeout` sets this limit)"),
    ] {
        let bad = workspace.command("mcp.server.test", json!({ "config": config })).await;
        assert_eq!((&bad["success"], &bad["message"], &bad["tools"]), (&json!(false), &json!(message), &json!([])));
    }
    let missing = workspace.command("mcp.server.test", json!({ "config": { "command": "no-such-program" } })).await;
    assert_eq!(missing["success"], false);
    let wrong = workspace.editor().command("mcp.server.test", json!({ "config": { "command": 5 } })).await.unwrap_err();
    assert_eq!(wrong["data"]["kind"], "invalid-params");

    assert_eq!(pids(&file).into_iter().filter(|pid| alive(*pid)).collect::<Vec<_>>(), [own]);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_session_come_and_go_with_their_errors_told() {
    let mut workspace = Workspace::open(json!({ "file": demo() })).await;
    let file = pid(&workspace.connected("file").await);
    let servers = json!({ "extra": demo(), "file": demo(), "bad": { "command": 5 }, "a__b": demo() });
    let told = workspace.command("mcp.servers.set", json!({ "servers": servers })).await;
    assert_eq!((&told["added"], &told["removed"]), (&json!(["extra", "file"]), &json!([])));
    let errors = told["errors"].as_object().unwrap();
    assert_eq!(errors.keys().collect::<Vec<_>>(), ["a__b", "bad"]);
    assert!(errors["a__b"].as_str().unwrap().contains("__"), "{errors:?}");
    let extra = workspace.connected("extra").await;
    assert_eq!((&extra["scope"], extra.get("file")), (&json!("session"), None));
    let over = workspace.until("file", |status| status["status"] == "connected" && pid(status) != file).await;
    assert_eq!((&over["scope"], &over["hides"][0]["scope"]), (&json!("session"), &json!("user")));

    let told = workspace.command("mcp.servers.set", json!({ "servers": {} })).await;
    assert_eq!(told, json!({ "added": [], "removed": ["extra", "file"], "errors": {} }));
    assert_eq!(workspace.editor().notification("mcp/serverRemoved").await, json!({ "name": "extra" }));
    workspace.until("file", |status| status["status"] == "connected" && status["scope"] == "user").await;
    gone(&[pid(&extra), pid(&over)]).await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_switched_off_keeps_its_connection_and_shows_no_tools() {
    let mut workspace = Workspace::open(json!({ "demo": demo() })).await;
    let before = pid(&workspace.connected("demo").await);
    let off = workspace.command("mcp.server.toggle", json!({ "server": "demo", "enabled": false })).await;
    let off = &off["server"];
    assert_eq!((&off["status"], &off["enabled"], &off["toolCount"]), (&json!("connected"), &json!(false), &json!(0)));
    assert_eq!(pid(off), before);
    assert_eq!(workspace.command("mcp.tools", json!({})).await, json!({ "tools": [] }));
    let refused = workspace.call("mcp__demo__echo", json!({ "text": "" })).await.unwrap_err();
    assert_eq!(refused["data"]["kind"], "disabled");
    workspace.command("mcp.server.toggle", json!({ "server": "demo", "enabled": true })).await;
    assert_eq!(workspace.call("mcp__demo__echo", json!({ "text": "on" })).await.unwrap(), "on");
    assert_eq!(pid(&workspace.status("demo").await), before);
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_stopped_by_hand_stays_so_until_it_is_started_by_hand() {
    let mut workspace = Workspace::open(json!({ "demo": { "command": [PROGRAM, "demo-server"] } })).await;
    let first = pid(&workspace.connected("demo").await);
    let stopped = workspace.command("mcp.server.stop", json!({ "server": "demo" })).await["servers"][0].clone();
    assert_eq!((&stopped["status"], stopped.get("pid")), (&json!("stopped"), None));
    assert!(!alive(first), "answered when settled");
    let started = workspace.command("mcp.server.start", json!({ "all": true })).await["servers"][0].clone();
    assert_eq!(started["status"], "connected", "answered when settled");
    let again = workspace.command("mcp.server.restart", json!({ "server": "demo" })).await["servers"][0].clone();
    assert_eq!(again["status"], "connected");
    assert_ne!(pid(&again), pid(&started));
    workspace.quit().await;
}
