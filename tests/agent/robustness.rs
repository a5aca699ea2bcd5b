//! Requests of careless or hostile agents, and results that must not be changed.

use mcp_sidecar::protocol::commands::ApprovalResolve;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::settings::Settings;
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::support::commands::resolve;
use crate::support::harness::{demo, fixture, scripted};
use crate::support::{Home, TestEditor, attach_to};

fn all() -> Value {
    json!({ "*": "allow-session" })
}

#[tokio::test]
async fn a_result_is_forwarded_as_raw_json() {
    let host = Host::new(json!({ "fixture": with(fixture("server.py"), all()) }));
    let mut agent = host.agent().await;
    agent.begin(1, "tools/call", json!({ "name": "fixture__echo", "arguments": { "a": [1, 2.50] } })).await;
    let mut line = agent.hear().await;
    // Lists change while servers start.
    while line.contains("list_changed") {
        line = agent.hear().await;
    }
    // Whitespace and order are those of the server.
    let raw = r#"{"content": [{"type": "text", "text": "{\"a\": [1, 2.5]}"}]}"#;
    assert_eq!(line, format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{raw}}}\n"));
}

#[tokio::test]
async fn the_data_of_an_error_and_all_fields_of_a_result_reach_the_agent() {
    let place = Home::new();
    let tools = json!([{ "name": "run", "inputSchema": { "type": "object" } }]);
    let error = json!({ "code": -32000, "message": "boom", "data": { "line": 7 } });
    let failing = scripted(&place.path("state"), "failing", json!({ "tools": tools, "error": error }));
    let result = json!({ "toolResult": [1, 2], "_meta": { "own": 1 } });
    let legacy = scripted(&place.path("state"), "legacy", json!({ "tools": tools, "result": result }));
    let host = Host::new(json!({ "failing": with(failing, all()), "legacy": with(legacy, all()) }));
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let failed = agent.call(2, "failing__run", json!({})).await;
    assert_eq!(failed["content"][0]["text"], r#"server `failing`: boom (error -32000): {"line":7}"#, "{failed:#}");
    let called = agent.call(3, "legacy__run", json!({})).await;
    assert_eq!(called["content"], json!([{ "type": "text", "text": r#"{"toolResult":[1,2]}"# }]), "{called:#}");
    assert_eq!((&called["toolResult"], &called["_meta"]), (&json!([1, 2]), &json!({ "own": 1 })));
}

fn with(mut server: Value, tools: Value) -> Value {
    server["tools"] = tools;
    server
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_and_a_denied_call_is_a_result() {
    let host = Host::new(json!({ "demo": demo(json!({ "echo": "deny", "add": "allow-session" })) }));
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let unknown = agent.ask(2, "tools/call", json!({ "name": "demo__nope", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown:#}");
    let denied = agent.call(3, "demo__echo", json!({ "text": "x" })).await;
    assert_eq!(denied["isError"], true, "{denied:#}");
    assert!(denied["content"][0]["text"].as_str().unwrap().contains("denied"), "{denied:#}");
    let odd = agent.call(4, "demo__add", json!({ "a": "one", "b": 2 })).await;
    assert!(odd["isError"] == true && odd["content"][0]["text"].as_str().unwrap().contains("/a"), "{odd:#}");
}

#[tokio::test]
async fn agents_cannot_use_the_commands_of_editors() {
    let host = Host::new(json!({}));
    let mut agent = host.agent().await;
    for (id, method) in (1..).zip(["mcp.approval.resolve", "workspace/executeCommand", "mcp/approve", "servers/start"])
    {
        let answer = agent.ask(id, method, json!({ "id": "x", "decision": "allow-always" })).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer:#}");
    }
    let records = host.engine.calls(CallQuery::default()).await.unwrap();
    assert_eq!(records.len(), 4, "{records:#?}");
    let last = &records[0];
    assert_eq!((last.tool.as_str(), last.decided_by.as_str()), ("servers/start", "refused method"));
    assert_eq!(last.requester.name, "liner");
}

#[tokio::test]
async fn a_duplicate_id_is_rejected() {
    let host = Host::new(json!({ "demo": demo(all()) }));
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.begin(7, "tools/call", json!({ "name": "demo__countdown", "arguments": { "from": 2 } })).await;
    agent.begin(7, "tools/call", json!({ "name": "demo__echo", "arguments": { "text": "other" } })).await;
    let refused = agent.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)), "{refused:#}");
    let answered = agent.next().await;
    assert_eq!(answered["id"], 7);
    assert_ne!(answered["result"]["content"][0]["text"], "other", "{answered:#}");
}

#[tokio::test]
async fn too_many_requests_are_rejected_with_the_name_of_the_limit() {
    let mut settings = Settings::default();
    settings.limits.agent_calls = 2;
    let host = Host::with(json!({ "demo": demo(all()) }), settings);
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    for id in 2..=4 {
        agent.begin(id, "tools/call", json!({ "name": "demo__countdown", "arguments": { "from": 3 } })).await;
    }
    let refused = agent.next().await;
    assert_eq!(refused["id"], 4, "{refused:#}");
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("too many requests: "), "{refused:#}");
}

#[tokio::test]
async fn invalid_lines_are_answered_with_an_error() {
    let host = Host::new(json!({}));
    let mut agent = host.agent().await;
    agent.say("").await;
    agent.say("{{{").await;
    assert_eq!(agent.next().await["error"]["code"], -32700);
    agent.say(&"[".repeat(100_000)).await;
    assert_eq!(agent.next().await["error"]["code"], -32700);
    agent.say(r#"{"id":3,"jsonrpc":"2.0"}"#).await;
    assert_eq!(agent.next().await["error"]["code"], -32600);
    assert!(agent.ask(4, "ping", json!({})).await["result"].is_object());
}

#[tokio::test]
async fn rejected_calls_are_recorded() {
    let mut settings = Settings::default();
    settings.limits.agent_calls = 1;
    let host = Host::with(json!({ "demo": demo(all()) }), settings);
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.ask(2, "tools/call", json!({ "name": "demo__nope", "arguments": { "a": 1 } })).await;
    agent.ask(3, "tools/call", json!({ "name": "nowhere" })).await;
    let odd = agent.ask(4, "tools/call", json!({ "name": "demo__echo", "arguments": ["text"] })).await;
    assert_eq!(odd["error"]["code"], -32602, "{odd:#}");
    for id in [5, 6] {
        agent.begin(id, "tools/call", json!({ "name": "demo__countdown", "arguments": { "from": 1 } })).await;
    }
    assert_eq!(agent.next().await["id"], 6);
    assert_eq!(agent.next().await["id"], 5);
    let records = host.engine.calls(CallQuery::default()).await.unwrap();
    let mut calls: Vec<_> = records
        .iter()
        .map(|record| format!("{} {} {} {}", record.server, record.tool, record.decided_by, record.success))
        .collect();
    calls.sort();
    assert_eq!(
        calls,
        [
            "demo countdown limits.agent-calls false",
            "demo countdown user mcp.json:1 tools.* true",
            "demo echo invalid params false",
            "demo nope unknown tool false",
            "mcp-sidecar nowhere unknown tool false",
        ]
    );
    assert!(records.iter().all(|record| record.requester.name == "liner"));
}

#[tokio::test]
async fn calls_that_are_not_valid_messages_are_recorded() {
    let host = Host::new(json!({ "demo": demo(all()) }));
    let mut agent = RawAgent::new(host.connect(1 << 20));
    let call = |id: &str, name: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"demo__{name}"}}}}"#)
    };
    agent.say(&call("1", "early")).await;
    assert!(agent.next().await["error"].is_object());
    agent.initialize(json!({})).await;
    for (line, id) in [
        (call("1.5", "fraction"), Value::Null),
        (call("null", "null"), Value::Null),
        (call("2", "version").replace("2.0", "1.0"), json!(2)),
        (call("3", r"half\ud83d"), json!(3)),
        (call("4", "text").replace(r#"{"name":"demo__text"}"#, "[]"), json!(4)),
    ] {
        agent.say(&line).await;
        let refused = agent.next().await;
        assert_eq!(refused.get("id"), Some(&id), "{refused:#}");
    }
    let mut records = Vec::new();
    while records.len() < 6 {
        records = host.engine.calls(CallQuery::default()).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut calls: Vec<_> = records.iter().map(|record| format!("{} {}", record.tool, record.decided_by)).collect();
    calls.sort();
    assert_eq!(
        calls,
        [
            "? invalid message",
            "early not initialized",
            "fraction invalid message",
            "half\u{fffd} invalid message",
            "null invalid message",
            "version invalid message",
        ]
    );
}

#[tokio::test]
async fn the_messages_of_a_batch_are_answered_one_by_one() {
    let host = Host::new(json!({ "demo": demo(all()) }));
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let echo = |id: i64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "demo__echo", "arguments": { "text": "x" } } })
    };
    agent.send(json!([echo(2), { "jsonrpc": "2.0", "method": "notifications/x" }, echo(3), 5])).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(agent.next().await["id"].to_string());
    }
    ids.sort();
    assert_eq!(ids, ["2", "3", "null"]);
    agent.say("[]").await;
    assert_eq!(agent.next().await["error"]["code"], -32600);
    let pings: Vec<_> = (0..2_000).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).collect();
    agent.send(json!(pings)).await;
    while !agent.next().await["error"]["message"].as_str().unwrap_or_default().starts_with("a batch may have at most") {
    }
}

#[tokio::test]
async fn what_comes_before_the_first_request_does_not_end_the_session() {
    let host = Host::new(json!({}));
    let mut agent = RawAgent::new(host.connect(1 << 20));
    agent.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    agent.say(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    agent.say("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}").await;
    assert_eq!(agent.next().await["id"], 8);
    assert!(agent.initialize(json!({})).await["serverInfo"].is_object());
}

#[tokio::test]
async fn a_message_that_cannot_be_parsed_is_answered_with_its_id() {
    let mut settings = Settings::default();
    settings.limits.message_bytes = 64 << 10;
    let host = Host::with(json!({}), settings);
    let mut agent = host.agent().await;
    let deep = format!("{}1{}", "[".repeat(130), "]".repeat(130));
    for (id, params) in (10..).zip([r#"{"a":"\ud83d"}"#, r#"{"a":1e400}"#, &format!(r#"{{"a":{deep}}}"#)]) {
        agent.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)).await;
        let refused = agent.next().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(id), &json!(-32700)), "{refused:#}");
    }
    let long = "x".repeat(80 << 10);
    for text in [
        format!(r#"{{"jsonrpc":"2.0","id":20,"method":"ping","params":{{"a":"{long}"}}}}"#),
        format!(r#"{{"method":"ping","params":{{"a":"{long}"}},"jsonrpc":"2.0","id":20}}"#),
    ] {
        agent.say(&text).await;
        let refused = agent.next().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(20), &json!(-32600)), "{refused:#}");
    }
}

#[tokio::test]
async fn an_unknown_cursor_is_rejected() {
    let host = Host::new(json!({}));
    let mut agent = host.agent().await;
    for (id, kind) in (1..).zip(["tools", "resources", "resources/templates", "prompts"]) {
        let refused = agent.ask(id, &format!("{kind}/list"), json!({ "cursor": "junk" })).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused:#}");
    }
}

#[tokio::test]
async fn an_agent_is_notified_when_the_config_changes_its_tools() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut agent = host.agent().await;
    let tools = agent.ask(1, "tools/list", json!({})).await;
    assert!(tools["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "demo__echo"));
    agent.notifications.clear();
    let config = json!({ "servers": { "demo": demo(json!({ "echo": "disable" })) } });
    std::fs::write(host.home.path("config/mcp.json"), config.to_string()).unwrap();
    // Notifications from the start of the server may come first.
    let offers_echo =
        |answer: &Value| answer["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "demo__echo");
    for id in 2.. {
        agent.notified("notifications/tools/list_changed").await;
        if !offers_echo(&agent.ask(id, "tools/list", json!({})).await) {
            break;
        }
    }
}

#[tokio::test]
async fn the_same_uri_of_two_servers_is_qualified() {
    let host = Host::new(json!({ "one": demo(all()), "two": demo(all()) }));
    let mut agent = host.agent().await;
    let listed = agent.ask(1, "resources/list", json!({})).await;
    let uris: Vec<&str> =
        listed["result"]["resources"].as_array().unwrap().iter().filter_map(|item| item["uri"].as_str()).collect();
    assert_eq!(uris, ["mcp+one://demo://notes", "mcp+two://demo://notes"]);
    agent.call(2, "two__take_note", json!({ "text": "in two" })).await;
    let read = agent.ask(3, "resources/read", json!({ "uri": "mcp+two://demo://notes" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "in two", "{read:#}");
    assert_eq!(read["result"]["contents"][0]["uri"], "mcp+two://demo://notes");
    let missing = agent.ask(4, "resources/read", json!({ "uri": "other://x" })).await;
    assert_eq!(missing["error"]["code"], -32002, "{missing:#}");
}

#[tokio::test]
async fn the_sidecar_is_not_offered_as_its_own_server() {
    let program = env!("CARGO_BIN_EXE_mcp-sidecar");
    let host = Host::new(json!({ "self": { "command": program, "args": ["connect"], "autoStart": false } }));
    let mut agent = host.agent().await;
    assert_eq!(agent.ask(1, "tools/list", json!({})).await["result"]["tools"], json!([]));
}

#[tokio::test]
async fn an_approval_shows_the_name_of_the_agent_in_the_editor() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let (mut editor, _session): (TestEditor, _) = attach_to(&host.engine);
    for noise in ["mcp/serverChanged", "mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "mcp/callFinished"] {
        editor.ignore(noise);
    }
    let ours = json!({ "version": "1", "approvals": true });
    let more = json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } });
    editor.initialize(&[&host.home.project()], more).await;
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.begin(2, "tools/call", json!({ "name": "demo__echo", "arguments": { "text": "hej" } })).await;
    let approval =
        editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await.approvals.remove(0);
    assert_eq!(json!(approval.requester), json!({ "kind": "agent", "name": "liner" }));
    let note = Some("not now".to_owned());
    editor.call(ApprovalResolve { note, ..resolve(&approval, "deny") }).await.unwrap();
    let refused = agent.next().await;
    assert_eq!(refused["result"]["isError"], true, "{refused:#}");
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("not now"), "{refused:#}");
}

#[tokio::test]
async fn a_cancelled_call_gets_no_response() {
    let host = Host::new(json!({ "demo": demo(all()) }));
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.begin(2, "tools/call", json!({ "name": "demo__countdown", "arguments": { "from": 5 } })).await;
    agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } })).await;
    assert_eq!(agent.call(3, "demo__echo", json!({ "text": "on" })).await["content"][0]["text"], "on");
    // The id is free again.
    assert_eq!(agent.call(2, "demo__echo", json!({ "text": "again" })).await["content"][0]["text"], "again");
}
