//! What an agent hears without asking for it again: log messages, resources that change; and an agent that goes.

use mcp_sidecar::engine::{Action, Notice};
use mcp_sidecar::model::ServerName;
use serde_json::{Value, json};

use crate::line::{Host, Line};
use crate::support::desk::demo;

fn host() -> Host {
    Host::new(json!({ "demo": demo(json!({ "*": "allow-session" })) }))
}

/// A request of the newer era says everything about itself, and how much it wants to hear.
fn meta(log_level: Option<&str>) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "liner", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(level) = log_level {
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
    }
    meta
}

#[tokio::test]
async fn what_a_server_logs_reaches_an_agent_as_severe_as_it_asked_for() {
    let host = host();
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.call(2, "demo__take_note", json!({ "text": "a" })).await;
    let told = agent.notified("notifications/message").await;
    assert_eq!((&told["level"], &told["logger"]), (&json!("info"), &json!("demo")), "{told:#}");
    assert!(told["data"].as_str().unwrap().contains("kept note 1"), "{told:#}");

    assert!(agent.ask(3, "logging/setLevel", json!({ "level": "warning" })).await["result"].is_object());
    agent.call(4, "demo__take_note", json!({ "text": "b" })).await;
    agent.call(5, "demo__forget_notes", json!({})).await;
    // The note of the lesser call would have come first.
    let told = agent.notified("notifications/message").await;
    assert_eq!(told["level"], "warning", "{told:#}");
}

#[tokio::test]
async fn a_request_of_the_newer_era_says_for_itself_what_it_wants_to_hear() {
    let host = host();
    let mut agent = Line::new(host.connect(1 << 20));
    agent.ask(1, "server/discover", json!({ "_meta": meta(None) })).await;
    agent.ask(2, "tools/list", json!({ "_meta": meta(None) })).await;
    let note = |level| json!({ "name": "demo__take_note", "arguments": { "text": "x" }, "_meta": meta(level) });
    for (id, level) in [(3, None), (4, Some("error"))] {
        let answer = agent.ask(id, "tools/call", note(level)).await;
        assert!(answer["result"]["content"].is_array(), "{answer:#}");
    }
    assert_eq!(agent.notifications, [Value::Null; 0], "nobody asked for it");
    agent.begin(5, "tools/call", note(Some("debug"))).await;
    let told = agent.notified("notifications/message").await;
    assert!(told["data"].as_str().unwrap().contains("kept note 3"), "{told:#}");
}

#[tokio::test]
async fn a_resource_that_several_watch_is_told_to_each_until_it_goes() {
    let host = host();
    let (mut first, mut second) = (host.agent().await, host.agent().await);
    let uri = json!({ "uri": "demo://notes" });
    for agent in [&mut first, &mut second] {
        agent.ask(1, "resources/list", json!({})).await;
        assert!(agent.ask(2, "resources/subscribe", uri.clone()).await["result"].is_object());
    }
    first.call(3, "demo__take_note", json!({ "text": "a" })).await;
    for agent in [&mut first, &mut second] {
        assert_eq!(agent.notified("notifications/resources/updated").await["uri"], "demo://notes");
    }
    // One that leaves, or says so, does not make the other deaf.
    assert!(first.ask(4, "resources/unsubscribe", uri.clone()).await["result"].is_object());
    first.call(5, "demo__take_note", json!({ "text": "b" })).await;
    second.notified("notifications/resources/updated").await;
    assert!(first.notifications.iter().all(|told| told["method"] != "notifications/resources/updated"));
    let missing = first.ask(6, "resources/subscribe", json!({ "uri": "other://x" })).await;
    assert_eq!(missing["error"]["code"], -32002, "{missing:#}");
}

#[tokio::test]
async fn a_subscription_of_the_newer_era_hears_what_it_named_and_nothing_else() {
    let host = host();
    let mut agent = Line::new(host.connect(1 << 20));
    agent.ask(1, "server/discover", json!({ "_meta": meta(None) })).await;
    agent.ask(2, "tools/list", json!({ "_meta": meta(None) })).await;
    let wanted = json!({ "resourceSubscriptions": ["demo://notes"] });
    agent.begin(3, "subscriptions/listen", json!({ "notifications": wanted, "_meta": meta(None) })).await;
    let accepted = agent.notified("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["notifications"]["resourceSubscriptions"], json!(["demo://notes"]), "{accepted:#}");
    // The server hears of it a moment later; until then a change tells nobody.
    for id in 4.. {
        let note = json!({ "name": "demo__take_note", "arguments": { "text": "x" }, "_meta": meta(None) });
        agent.ask(id, "tools/call", note).await;
        if let Some(told) = agent.notifications.iter().find(|told| told["method"] == "notifications/resources/updated")
        {
            assert_eq!(told["params"]["uri"], "demo://notes", "{told:#}");
            break;
        }
        tokio::task::yield_now().await;
    }
    let others = ["notifications/tools/list_changed", "notifications/resources/list_changed"];
    assert!(agent.notifications.iter().all(|told| !others.contains(&told["method"].as_str().unwrap())));
}

#[tokio::test]
async fn an_agent_that_goes_takes_its_calls_back_and_they_are_recorded() {
    let host = host();
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let mut notices = host.engine.notices();
    let params = json!({ "name": "demo__countdown", "arguments": { "from": 9 }, "_meta": { "progressToken": 1 } });
    agent.begin(2, "tools/call", params).await;
    agent.notified("notifications/progress").await;
    drop(agent);
    let record = loop {
        if let Notice::CallFinished(record) = notices.recv().await.unwrap() {
            break record;
        }
    };
    assert_eq!((record.tool.as_str(), record.error.as_deref()), ("countdown", Some("cancelled")));
    // The server goes on for the others.
    let mut other = host.agent().await;
    assert_eq!(other.call(1, "demo__add", json!({ "a": 1, "b": 2 })).await["content"][0]["text"], "3");
}

#[tokio::test]
async fn a_server_that_was_restarted_tells_of_changes_all_the_same() {
    let host = host();
    let mut agent = host.agent().await;
    agent.ask(1, "resources/list", json!({})).await;
    assert!(agent.ask(2, "resources/subscribe", json!({ "uri": "demo://notes" })).await["result"].is_object());
    host.engine.act(Action::Restart, Some(ServerName::new("demo").unwrap()), Default::default()).await.unwrap();
    // The new process hears of it a moment later; until then a change tells nobody.
    for id in 3.. {
        agent.call(id, "demo__take_note", json!({ "text": "x" })).await;
        if agent.notifications.iter().any(|told| told["method"] == "notifications/resources/updated") {
            break;
        }
        tokio::task::yield_now().await;
    }
}
