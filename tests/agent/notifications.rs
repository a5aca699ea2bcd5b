//! Notifications for agents: log messages and changed resources; and agents that disconnect.

use mcp_sidecar::engine::{Action, Notice};
use mcp_sidecar::model::{CallKind, ServerName};
use mcp_sidecar::settings::Settings;
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::support::harness::{demo, open_editor, scripted};

fn host() -> Host {
    Host::new(json!({ "demo": demo(json!({ "*": "allow-session" })) }))
}

/// The metadata of a request since 2026-07-28, with its log level.
pub fn meta(log_level: Option<&str>) -> Value {
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
async fn an_agent_gets_log_messages_of_its_log_level() {
    let host = host();
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.call(2, "demo__take_note", json!({ "text": "a" })).await;
    let notification = agent.notified("notifications/message").await;
    assert_eq!((&notification["level"], &notification["logger"]), (&json!("info"), &json!("demo")), "{notification:#}");
    assert!(notification["data"].as_str().unwrap().contains("saved note 1"), "{notification:#}");

    assert!(agent.ask(3, "logging/setLevel", json!({ "level": "warning" })).await["result"].is_object());
    agent.call(4, "demo__take_note", json!({ "text": "b" })).await;
    agent.call(5, "demo__forget_notes", json!({})).await;
    // The message of the first call would have come first.
    let notification = agent.notified("notifications/message").await;
    assert_eq!(notification["level"], "warning", "{notification:#}");
}

#[tokio::test]
async fn log_messages_of_one_agents_call_do_not_reach_another_agent() {
    let host = host();
    let (mut caller, mut other) = (host.agent().await, host.agent().await);
    for agent in [&mut caller, &mut other] {
        agent.ask(1, "tools/list", json!({})).await;
    }
    caller.call(2, "demo__take_note", json!({ "text": "private" })).await;
    caller.notified("notifications/message").await;
    // The message would have arrived before this response.
    other.ask(2, "ping", json!({})).await;
    let leaked = other.notifications.iter().find(|notification| notification["method"] == "notifications/message");
    assert_eq!(leaked, None);
}

/// The first log message that an agent gets is that of its own call: messages arrive in order.
async fn first_message_is_own(agent: &mut RawAgent, note: u32) {
    agent.call(9, "demo__take_note", json!({ "text": "own" })).await;
    let first = agent.notified("notifications/message").await;
    assert!(first["data"].as_str().unwrap().contains(&format!("saved note {note}")), "{first:#}");
}

/// Waits until a server has logged a text.
async fn logged(notices: &mut tokio::sync::broadcast::Receiver<Notice>, text: &str) {
    loop {
        if let Notice::Log { line, .. } = notices.recv().await.unwrap()
            && line.text.contains(text)
        {
            return;
        }
    }
}

#[tokio::test]
async fn log_messages_of_an_editors_call_reach_no_agent() {
    let host = host();
    let mut notices = host.engine.notices();
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let mut editor = open_editor(&host.home, &host.engine).await;
    let note = json!({ "tool": "demo/take_note", "arguments": { "text": "private" } });
    editor.raw_command("mcp.tool.call", note.clone()).await.unwrap();
    logged(&mut notices, "saved note 1").await;
    // The same while a call of the agent runs.
    let countdown = json!({ "name": "demo__countdown", "arguments": { "from": 100, "interval": 50 },
        "_meta": { "progressToken": "p" } });
    agent.begin(2, "tools/call", countdown).await;
    agent.notified("notifications/progress").await;
    editor.raw_command("mcp.tool.call", note).await.unwrap();
    logged(&mut notices, "saved note 2").await;
    first_message_is_own(&mut agent, 3).await;
}

#[tokio::test]
async fn a_log_message_after_the_response_of_a_call_reaches_no_agent() {
    let place = tempfile::tempdir().unwrap();
    let tool = json!({ "name": "late", "inputSchema": { "type": "object" } });
    let mut late = scripted(place.path(), "late", json!({ "tools": [tool], "late_log": "too late" }));
    late["tools"] = json!({ "*": "allow-session" });
    let host = Host::new(json!({ "late": late, "demo": demo(json!({ "*": "allow-session" })) }));
    let mut notices = host.engine.notices();
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.call(2, "late__late", json!({})).await;
    logged(&mut notices, "too late").await;
    first_message_is_own(&mut agent, 1).await;
}

#[tokio::test]
async fn each_request_sets_its_own_log_level_since_2026_07_28() {
    let host = host();
    let mut agent = RawAgent::new(host.connect(1 << 20));
    agent.ask(1, "server/discover", json!({ "_meta": meta(None) })).await;
    agent.ask(2, "tools/list", json!({ "_meta": meta(None) })).await;
    let note = |level| json!({ "name": "demo__take_note", "arguments": { "text": "x" }, "_meta": meta(level) });
    for (id, level) in [(3, None), (4, Some("error"))] {
        let answer = agent.ask(id, "tools/call", note(level)).await;
        assert!(answer["result"]["content"].is_array(), "{answer:#}");
    }
    assert_eq!(agent.notifications, [Value::Null; 0], "no request asked for it");
    agent.begin(5, "tools/call", note(Some("debug"))).await;
    let notification = agent.notified("notifications/message").await;
    assert!(notification["data"].as_str().unwrap().contains("saved note 3"), "{notification:#}");
}

#[tokio::test]
async fn every_subscriber_of_a_resource_is_notified_until_it_unsubscribes() {
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
    // One agent unsubscribes; the other is still notified.
    assert!(first.ask(4, "resources/unsubscribe", uri.clone()).await["result"].is_object());
    first.call(5, "demo__take_note", json!({ "text": "b" })).await;
    second.notified("notifications/resources/updated").await;
    assert!(first.notifications.iter().all(|notification| notification["method"] != "notifications/resources/updated"));
    let missing = first.ask(6, "resources/subscribe", json!({ "uri": "other://x" })).await;
    assert_eq!(missing["error"]["code"], -32002, "{missing:#}");
}

#[tokio::test]
async fn too_many_subscriptions_and_long_uris_are_refused_and_recorded() {
    let mut settings = Settings::default();
    settings.limits.subscriptions = 1;
    let host = Host::with(json!({ "demo": demo(json!({ "*": "allow-session" })) }), settings);
    let mut agent = host.agent().await;
    agent.ask(1, "resources/list", json!({})).await;
    assert!(agent.ask(2, "resources/subscribe", json!({ "uri": "demo://notes" })).await["result"].is_object());
    for (id, uri, word) in [
        (3, "demo://notes/1".to_owned(), "limits.subscriptions"),
        (4, format!("demo://{}", "x".repeat(9_000)), "8192 bytes"),
    ] {
        let refused = agent.ask(id, "resources/subscribe", json!({ "uri": uri })).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains(word), "{refused:#}");
    }
    let records = host.engine.calls(CallQuery::default()).await.unwrap();
    let refused: Vec<_> = records.iter().filter(|record| !record.success).map(|record| &*record.decided_by).collect();
    assert_eq!(refused, ["URI too long", "limits.subscriptions"]);
    agent.ask(5, "resources/unsubscribe", json!({ "uri": "demo://notes" })).await;
    assert!(agent.ask(6, "resources/subscribe", json!({ "uri": "demo://notes" })).await["result"].is_object());
}

#[tokio::test]
async fn a_subscription_gets_only_what_it_named() {
    let host = host();
    let mut agent = RawAgent::new(host.connect(1 << 20));
    agent.ask(1, "server/discover", json!({ "_meta": meta(None) })).await;
    agent.ask(2, "tools/list", json!({ "_meta": meta(None) })).await;
    let wanted = json!({ "resourceSubscriptions": ["demo://notes"] });
    agent.begin(3, "subscriptions/listen", json!({ "notifications": wanted, "_meta": meta(None) })).await;
    let accepted = agent.notified("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["notifications"]["resourceSubscriptions"], json!(["demo://notes"]), "{accepted:#}");
    // The server is subscribed a moment later; until then, changes are not reported.
    for id in 4.. {
        let note = json!({ "name": "demo__take_note", "arguments": { "text": "x" }, "_meta": meta(None) });
        agent.ask(id, "tools/call", note).await;
        if let Some(notification) =
            agent.notifications.iter().find(|notification| notification["method"] == "notifications/resources/updated")
        {
            assert_eq!(notification["params"]["uri"], "demo://notes", "{notification:#}");
            break;
        }
        tokio::task::yield_now().await;
    }
    let others = ["notifications/tools/list_changed", "notifications/resources/list_changed"];
    assert!(agent.notifications.iter().all(|notification| !others.contains(&notification["method"].as_str().unwrap())));
}

#[tokio::test]
async fn the_calls_of_an_agent_that_disconnects_are_cancelled_and_recorded() {
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
    assert_eq!((record.tool.as_str(), record.error.as_deref()), ("countdown", Some("the agent disconnected")));
    // The server still works for others.
    let mut other = host.agent().await;
    assert_eq!(other.call(1, "demo__add", json!({ "a": 1, "b": 2 })).await["content"][0]["text"], "3");
}

#[tokio::test]
async fn subscriptions_survive_a_restart_of_the_server() {
    let host = host();
    let mut agent = host.agent().await;
    agent.ask(1, "resources/list", json!({})).await;
    assert!(agent.ask(2, "resources/subscribe", json!({ "uri": "demo://notes" })).await["result"].is_object());
    host.engine.act(Action::Restart, Some(ServerName::new("demo").unwrap()), Default::default()).await.unwrap();
    // The new process is subscribed a moment later; until then, changes are not reported.
    for id in 3.. {
        agent.call(id, "demo__take_note", json!({ "text": "x" })).await;
        if agent.notifications.iter().any(|notification| notification["method"] == "notifications/resources/updated") {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_refused_subscription_gets_no_notifications_of_others() {
    let (settings, problems) = Settings::from_toml("[agents.nosy]\nceiling = 'deny'\n");
    assert_eq!(problems, []);
    let host = Host::with(json!({ "demo": demo(json!({ "*": "allow-always" })) }), settings);
    let mut meta = meta(None);
    meta["io.modelcontextprotocol/clientInfo"]["name"] = json!("nosy");
    let (mut allowed, mut nosy) = (host.agent().await, RawAgent::new(host.connect(1 << 20)));
    allowed.ask(1, "resources/list", json!({})).await;
    assert!(allowed.ask(2, "resources/subscribe", json!({ "uri": "demo://notes" })).await["result"].is_object());
    let mut notices = host.engine.notices();
    nosy.ask(1, "server/discover", json!({ "_meta": meta })).await;
    let wanted = json!({ "resourceSubscriptions": ["demo://notes"], "resourcesListChanged": true });
    nosy.begin(2, "subscriptions/listen", json!({ "notifications": wanted, "_meta": meta })).await;
    loop {
        if let Notice::CallFinished(record) = notices.recv().await.unwrap()
            && record.requester.name == "nosy"
        {
            assert_eq!((record.kind, &*record.decision), (CallKind::Subscription, "deny"));
            break;
        }
    }
    for id in [3, 4] {
        allowed.call(id, "demo__take_note", json!({ "text": "a" })).await;
        allowed.notified("notifications/resources/updated").await;
        nosy.notified("notifications/resources/list_changed").await;
    }
    let updates = nosy.notifications.iter().filter(|message| message["method"] == "notifications/resources/updated");
    assert_eq!(updates.count(), 0);
}
