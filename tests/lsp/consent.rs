//! A decision means what the user meant: it is kept, it takes effect in order, and it is used up once.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::harness::{Harness, demo, open_editor};

const ADD: &str = "mcp__demo__add";
/// Enough for a race to show, in tests that run on several threads: on one thread, commands happen to run in order.
const ROUNDS: usize = 30;

async fn desk(tools: Value) -> Harness {
    Harness::new(json!({ "servers": { "demo": demo(tools) } }), json!({})).await
}

/// The same user with a new engine, as after a restart of the machine.
async fn restarted(desk: Harness) -> Harness {
    let Harness { home, engine, editor } = desk;
    drop(editor);
    engine.shutdown().await;
    drop(engine);
    let engine = Engine::start(home.paths(), Settings::default());
    let editor = open_editor(&home, &engine).await;
    let mut desk = Harness { home, engine, editor };
    desk.until("demo", "connected").await;
    desk
}

/// What a call comes to: `asks`, `runs` or the kind of its error. A question that comes up stays open.
async fn tried(desk: &mut Harness) -> String {
    let id = desk.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    loop {
        let approvals = desk.run("mcp.approvals", json!({})).await;
        if !approvals["approvals"].as_array().unwrap().is_empty() {
            return "asks".to_owned();
        }
        if let Some(answer) = desk.editor.answered(id) {
            return answer
                .map_or_else(|error| error["data"]["kind"].as_str().unwrap().to_owned(), |_| "runs".to_owned());
        }
    }
}

#[tokio::test]
async fn every_decision_is_kept_or_forgotten_as_it_says_across_a_restart() {
    let mut table = String::new();
    for decision in ["allow-once", "allow-session", "allow-project", "allow-always", "deny", "disable"] {
        let mut desk = desk(json!({})).await;
        let call = desk.begin_call(ADD, json!({ "a": 1, "b": 2 }));
        let approval = desk.approvals("tool", 1).await.remove(0);
        desk.resolve(&approval, decision).await;
        let first = desk.editor.answer(call).await;
        let health = desk.engine.health().borrow().clone();
        assert!(health.is_good(), "{decision}: {health:?}");
        let mut desk = restarted(desk).await;
        let grants = desk.run("mcp.grants", json!({})).await["grants"].clone();
        let kept: Vec<&str> = grants.as_array().unwrap().iter().map(|grant| grant["level"].as_str().unwrap()).collect();
        let now = if first.is_ok() { "runs" } else { "is refused" };
        table.push_str(&format!("{decision:13} {now}; after a restart {} {kept:?}\n", tried(&mut desk).await));
    }
    insta::assert_snapshot!(table, @r#"
    allow-once    runs; after a restart asks []
    allow-session runs; after a restart asks []
    allow-project runs; after a restart runs ["allow-project"]
    allow-always  runs; after a restart runs ["allow-always"]
    deny          is refused; after a restart asks []
    disable       is refused; after a restart denied ["disable"]
    "#);
}

#[tokio::test]
async fn a_disabled_tool_is_disabled_in_its_own_project_only() {
    let mut desk = desk(json!({})).await;
    let call = desk.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let approval = desk.approvals("tool", 1).await.remove(0);
    desk.resolve(&approval, "disable").await;
    desk.editor.answer(call).await.unwrap_err();
    assert_eq!(tried(&mut desk).await, "denied");
    let other = desk.home.path("other");
    std::fs::create_dir(&other).unwrap();
    let folders = |path: &std::path::Path| vec![path.to_path_buf()];
    desk.engine.set_folders(folders(&other)).await;
    assert_eq!(tried(&mut desk).await, "asks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_first_answer_to_a_question_counts() {
    let mut desk = desk(json!({})).await;
    for round in 0..ROUNDS {
        let call = desk.begin_call(ADD, json!({ "a": 1, "b": 2 }));
        let id = desk.approvals("tool", 1).await.remove(0)["id"].clone();
        let deny = desk.editor.begin_command("mcp.approval.resolve", json!({ "id": id, "decision": "deny" }));
        let allow = desk.editor.begin_command("mcp.approval.resolve", json!({ "id": id, "decision": "allow-once" }));
        desk.editor.answer(deny).await.unwrap();
        let late = desk.editor.answer(allow).await.unwrap_err();
        assert_eq!(late["data"]["kind"], "not-found", "round {round}");
        assert_eq!(desk.editor.answer(call).await.unwrap_err()["data"]["kind"], "denied", "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_of_several_levels_sent_in_a_row_holds() {
    let mut desk = desk(json!({})).await;
    for round in 0..ROUNDS {
        let levels = ["allow-session", "deny", "require-approval", "deny"];
        let sent = levels.map(|level| {
            let params = json!({ "server": "demo", "tool": "add", "level": level, "scope": "session" });
            desk.editor.begin_command("mcp.tool.policy", params)
        });
        // Sent before any of them is answered: it must see them all.
        let call = desk.begin_call(ADD, json!({ "a": 1, "b": 2 }));
        for id in sent {
            desk.editor.answer(id).await.unwrap();
        }
        assert_eq!(desk.editor.answer(call).await.unwrap_err()["data"]["kind"], "denied", "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_of_several_edits_of_a_file_holds() {
    let mut desk = desk(json!({})).await;
    desk.until("demo", "connected").await;
    for round in 0..ROUNDS / 3 {
        let sent = ["allow-always", "require-approval", "deny"].map(|level| {
            let params = json!({ "server": "demo", "tool": "add", "level": level, "scope": "user" });
            desk.editor.begin_command("mcp.tool.policy", params)
        });
        let seen = desk.editor.begin_command("mcp.policies", json!({ "server": "demo", "tool": "add" }));
        for id in sent {
            desk.editor.answer(id).await.unwrap();
        }
        let seen = desk.editor.answer(seen).await.unwrap();
        assert_eq!(seen["policies"][0]["level"], "deny", "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_word_on_trust_and_on_switching_holds() {
    let mut desk = Harness::new(json!({}), json!({ "servers": { "demo": demo(json!({})) } })).await;
    desk.until("demo", "pending").await;
    for round in 0..ROUNDS / 3 {
        for last in [false, true] {
            let sent = [last, !last, last].map(|trusted| {
                desk.editor.begin_command("mcp.server.trust", json!({ "server": "demo", "trusted": trusted }))
            });
            let seen = desk.editor.begin_command("mcp.servers", json!({ "server": "demo" }));
            for id in sent {
                desk.editor.answer(id).await.unwrap();
            }
            let seen = desk.editor.answer(seen).await.unwrap();
            assert_eq!(seen["servers"][0]["needsTrust"], !last, "round {round}");
        }
    }
    desk.until("demo", "connected").await;
    for round in 0..ROUNDS {
        let sent = [false, true, false].map(|enabled| {
            desk.editor.begin_command("mcp.server.toggle", json!({ "server": "demo", "enabled": enabled }))
        });
        let tools = desk.editor.begin_command("mcp.tools", json!({ "server": "demo" }));
        for id in sent {
            desk.editor.answer(id).await.unwrap();
        }
        assert_eq!(desk.editor.answer(tools).await.unwrap()["tools"], json!([]), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_later_stop_supersedes_a_start_that_is_still_running() {
    let mut desk = desk(json!({})).await;
    desk.until("demo", "connected").await;
    for round in 0..ROUNDS / 3 {
        let sent = ["mcp.server.restart", "mcp.server.stop", "mcp.server.start", "mcp.server.stop"]
            .map(|command| desk.editor.begin_command(command, json!({ "server": "demo" })));
        for id in sent {
            desk.editor.answer(id).await.unwrap();
        }
        assert_eq!(desk.status("demo").await["status"], "stopped", "round {round}");
    }
}

/// `allow-once` in a file lets one call pass, however many come at the same time and however calls are recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn allow_once_is_used_up_by_one_of_many_parallel_calls() {
    const CALLS: usize = 60;
    for strict in [false, true] {
        let mut settings = Settings::default();
        settings.audit.strict = strict;
        let config = json!({ "servers": { "demo": demo(json!({ "add": "allow-once" })) } });
        let mut desk = Harness::with(config, json!({}), settings).await;
        desk.until("demo", "connected").await;
        for _ in 0..CALLS {
            desk.begin_call(ADD, json!({ "a": 1, "b": 2 }));
        }
        desk.approvals("tool", CALLS - 1).await;
        let calls = desk.run("mcp.calls", json!({})).await;
        assert_eq!(calls["calls"].as_array().unwrap().len(), 1, "strict: {strict}");
    }
}

/// A call that never reached the server has not used anything up.
#[tokio::test]
async fn allow_once_is_given_back_when_the_call_was_not_sent() {
    let mut settings = Settings::default();
    settings.audit.strict = true;
    let config = json!({ "servers": { "demo": demo(json!({ "add": "allow-once" })) } });
    let mut desk = Harness::with(config, json!({}), settings).await;
    desk.until("demo", "connected").await;
    let database = desk.home.path("state/state.db");
    let lock = rusqlite::Connection::open(&database).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let refused = desk.call(ADD, json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert_eq!(refused["data"]["kind"], "io", "{refused}");
    lock.execute_batch("ROLLBACK").unwrap();
    desk.call(ADD, json!({ "a": 1, "b": 2 })).await.unwrap();
    desk.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    desk.approvals("tool", 1).await;
}
