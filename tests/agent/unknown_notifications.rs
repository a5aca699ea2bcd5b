//! Notifications of servers that mcp-sidecar does not know reach the agent whose call is open, as the server sent them.

use serde_json::{Value, json};

use crate::notifications::meta;
use crate::raw_agent::{Host, RawAgent};
use crate::support::harness::{demo, faulty};

const SECRET: &str = "secret-of-the-server-1";

/// A server that sends these messages in each call, before its response.
fn host(sent: &[Value]) -> Host {
    let mut steps: Vec<Value> = sent.iter().map(|message| json!({ "send": message })).collect();
    steps.push(json!({ "text": "done" }));
    let mut odd = faulty(&json!({ "tools/call": steps }).to_string());
    odd["env"] = json!({ "SECRET": SECRET });
    odd["tools"] = json!({ "*": "allow-session" });
    Host::new(json!({ "odd": odd, "demo": demo(json!({ "*": "allow-session" })) }))
}

fn notification(method: &str, params: Value) -> Value {
    json!({ "method": method, "params": params })
}

/// Everything that the agent got, up to the log message that ends the messages of the server.
async fn received(agent: &mut RawAgent) -> Vec<(String, Value)> {
    let last = agent.notified("notifications/message").await;
    assert_eq!(last["data"], "the end", "{last:#}");
    let all = std::mem::take(&mut agent.notifications).into_iter();
    all.map(|mut each| (each["method"].as_str().unwrap().to_owned(), each["params"].take()))
        // Ours: the servers have just started.
        .filter(|(method, params)| !(method.ends_with("/list_changed") && params.is_null()))
        .collect()
}

fn the_end() -> Value {
    notification("notifications/message", json!({ "level": "info", "data": "the end" }))
}

#[tokio::test]
async fn an_agent_gets_unknown_notifications_of_its_call_in_order_and_with_their_params() {
    let host = host(&[
        notification("notifications/example/changed", json!({ "number": 1, "new": { "field": [true, null] } })),
        notification("com.example/tick", json!({ "number": 2, "token": "$SECRET" })),
        json!({ "method": "notifications/example/plain" }),
        the_end(),
    ]);
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.call(2, "odd__echo", json!({})).await;
    let expected = [
        ("notifications/example/changed", json!({ "number": 1, "new": { "field": [true, null] } })),
        ("com.example/tick", json!({ "number": 2, "token": "•••" })),
        ("notifications/example/plain", Value::Null),
    ];
    assert_eq!(received(&mut agent).await, expected.map(|(method, params)| (method.to_owned(), params)));
}

#[tokio::test]
async fn what_mcp_defines_or_what_is_too_long_is_not_passed_on() {
    let foreign = [
        "notifications/roots/list_changed",
        "notifications/initialized",
        "notifications/tasks/status",
        "notifications/elicitation/complete",
        "notifications/Tools/list_changed",
        "notifications/notifications/tools/list_changed",
        "notifications/resources/new",
        "tools/call",
        "sampling/createMessage",
        "with blank",
        "notifications/",
    ];
    let mut sent: Vec<Value> = foreign.iter().map(|method| notification(method, json!({ "taskId": "1" }))).collect();
    sent.push(notification("notifications/example/long", json!({ "text": "$megabyte" })));
    sent.push(notification("notifications/example/short", json!({})));
    sent.push(the_end());
    let host = host(&sent);
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.call(2, "odd__echo", json!({})).await;
    assert_eq!(received(&mut agent).await, [("notifications/example/short".to_owned(), json!({}))]);
}

#[tokio::test]
async fn servers_and_agents_since_2026_07_28_pass_them_with_the_call_that_asks_for_messages() {
    let changed = json!({ "number": 1, "new": { "field": [true, null] } });
    let steps = json!([
        { "send": notification("notifications/example/changed", changed.clone()) },
        { "send": the_end() },
        { "result": { "content": [{ "type": "text", "text": "done" }], "resultType": "complete" } },
    ]);
    for version in ["2026-07-28", "2025-11-25"] {
        let script = json!({ "version": version, "tools/call": steps });
        let mut odd = faulty(&script.to_string());
        odd["tools"] = json!({ "*": "allow-session" });
        let host = Host::new(json!({ "odd": odd }));
        let mut agent = RawAgent::new(host.connect(1 << 20));
        agent.ask(1, "server/discover", json!({ "_meta": meta(None) })).await;
        agent.ask(2, "tools/list", json!({ "_meta": meta(None) })).await;
        let call = |level| json!({ "name": "odd__echo", "arguments": {}, "_meta": meta(level) });
        let quiet = agent.ask(3, "tools/call", call(None)).await;
        assert_eq!(quiet["result"]["content"][0]["text"], "done", "{version}: {quiet:#}");
        assert_eq!(agent.notifications, [Value::Null; 0], "{version}: the request did not ask for messages");
        let answer = agent.ask(4, "tools/call", call(Some("info"))).await;
        assert_eq!(answer["result"]["content"][0]["text"], "done", "{version}: {answer:#}");
        // They come before the response of their call.
        let got: Vec<_> =
            agent.notifications.iter().map(|each| (each["method"].clone(), each["params"].clone())).collect();
        let [first, last] = got.as_slice() else { panic!("{version}: {got:#?}") };
        assert_eq!(*first, (json!("notifications/example/changed"), changed.clone()), "{version}");
        assert_eq!(last.1["data"], "the end", "{version}: {got:#?}");
    }
}

#[tokio::test]
async fn another_agent_and_an_agent_of_an_old_version_get_none() {
    let host = host(&[notification("notifications/example/changed", json!({ "private": true })), the_end()]);
    let (mut other, mut old) = (host.agent().await, RawAgent::new(host.connect(1 << 20)));
    let info = json!({ "name": "liner", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": info });
    old.ask(0, "initialize", hello).await;
    old.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    for agent in [&mut other, &mut old] {
        agent.ask(1, "tools/list", json!({})).await;
    }
    old.call(2, "odd__echo", json!({})).await;
    assert_eq!(received(&mut old).await, []);
    // It would have arrived before this response.
    other.ask(2, "ping", json!({})).await;
    assert!(!other.notifications.iter().any(|each| each["method"] == "notifications/example/changed"));
}

#[tokio::test]
async fn a_flood_of_unknown_notifications_is_bounded_and_delays_no_call() {
    let flood = json!({ "send": notification("notifications/example/flood", json!({})), "times": 20_000 });
    let mut odd = faulty(&json!({ "tools/call": [flood, { "text": "done" }] }).to_string());
    odd["tools"] = json!({ "*": "allow-session" });
    let host = Host::new(json!({ "odd": odd }));
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let result = agent.call(2, "odd__echo", json!({})).await;
    assert_eq!(result["content"][0]["text"], "done", "{result:#}");
    agent.ask(3, "ping", json!({})).await;
    let passed = agent.notifications.iter().filter(|each| each["method"] == "notifications/example/flood").count();
    assert!((1..2_000).contains(&passed), "{passed}");
}
