//! Agents that ask for too much at once.

use std::time::Duration;

use mcp_sidecar::settings::Settings;
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::raw_agent::{Host, RawAgent};
use crate::support::attach_to;
use crate::support::bad_client::{BadClient, Framing, Step, call};
use crate::support::harness::{demo, faulty};

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("not an error: {answer:#}"))
}

/// An agent whose calls wait for an editor that never answers.
async fn waiting_agents(settings: Settings) -> (Host, RawAgent, RawAgent) {
    let host = Host::with(json!({ "demo": demo(json!({})) }), settings);
    let (mut editor, _session) = attach_to(&host.engine);
    let ours = json!({ "version": "1", "approvals": true });
    editor
        .initialize(&[&host.home.project()], json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } }))
        .await;
    tokio::spawn(async move { editor.hung_up().await });
    let (mut one, mut other) = (host.agent().await, host.agent().await);
    one.ask(1, "tools/list", json!({})).await;
    other.ask(1, "tools/list", json!({})).await;
    (host, one, other)
}

#[tokio::test]
async fn the_memory_of_pending_requests_is_limited_for_each_agent_and_for_all() {
    let mut settings = Settings::default();
    (settings.limits.pending_bytes, settings.limits.total_pending_bytes) = (1_000_000, 1_500_000);
    let (host, mut one, mut other) = waiting_agents(settings).await;
    let large = json!({ "name": "demo__echo", "arguments": { "text": "x".repeat(400_000) } });
    one.begin(2, "tools/call", large.clone()).await;
    one.begin(3, "tools/call", large.clone()).await;
    let refused = one.ask(4, "tools/call", large.clone()).await;
    assert!(message(&refused).contains("`limits.pending-bytes`"), "{refused:#}");
    other.begin(2, "tools/call", large.clone()).await;
    let refused = other.ask(3, "tools/call", large.clone()).await;
    assert!(message(&refused).contains("`limits.total-pending-bytes`"), "{refused:#}");
    // What is cancelled makes room.
    one.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } })).await;
    assert!(one.ask(5, "ping", json!({})).await["result"].is_object());
    other.begin(4, "tools/call", large).await;
    assert!(other.ask(5, "ping", json!({})).await["result"].is_object());
    drop(one);
    let records = host.engine.calls(CallQuery::default()).await.unwrap();
    assert!(records.iter().any(|record| record.decided_by == "limits.total-pending-bytes"), "{records:#?}");
}

#[tokio::test]
async fn a_message_of_many_small_values_counts_with_the_memory_that_it_takes() {
    let mut settings = Settings::default();
    settings.limits.pending_bytes = 1_000_000;
    let (_host, mut agent, _) = waiting_agents(settings).await;
    // 100 kB of text, which become 2.5 MB of values.
    let dense = call("demo__echo", json!({ "text": "x", "more": vec![0; 50_000] }));
    agent.send(dense).await;
    let refused = agent.next().await;
    assert_eq!(refused["id"], 1, "{refused:#}");
    assert!(message(&refused).contains("`limits.pending-bytes`"), "{refused:#}");
}

/// An agent with a small pipe, and a server that answers each call with this text.
async fn reader(
    room: usize,
    text: &str,
    settings: Settings,
) -> (Host, BadClient<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>) {
    let mut server = faulty(&json!({ "tools/call": [{ "text": text }] }).to_string());
    server["tools"] = json!({ "*": "allow-session" });
    // Megabytes take their time on a busy machine.
    server["timeout"] = json!(300_000);
    let host = Host::with(json!({ "large": server }), settings);
    let (read, write) = tokio::io::split(host.connect(room));
    let mut agent = BadClient::new(read, write, Framing::Lines);
    agent.initialize_agent().await;
    (host, agent)
}

#[tokio::test]
async fn an_agent_that_reads_slowly_gets_all_its_results() {
    let (_host, mut agent) = reader(64 << 10, "$megabyte", Settings::default()).await;
    let request = call("large__echo", json!({}));
    agent
        .run(&[
            Step::Flood { request, first: 1, count: 40 },
            // Slower than the results arrive: twice as much as may wait is there before this ends.
            Step::ReadSlowly { bytes: 4 << 20, piece: 64 << 10, pause: Duration::from_millis(20) },
            Step::Responses(40),
        ])
        .await;
    for response in &agent.responses {
        assert_eq!(response["result"]["content"][0]["text"].as_str().map(str::len), Some(1 << 20), "{response:#}");
    }
}

#[tokio::test]
async fn an_agent_that_does_not_read_is_disconnected_without_affecting_others() {
    let mut settings = Settings::default();
    settings.limits.message_bytes = 64 << 10;
    let (host, mut deaf) = reader(4 << 10, "$text", settings).await;
    let mut other = host.agent().await;
    other.ask(1, "tools/list", json!({})).await;
    let request = call("large__echo", json!({ "text": "x".repeat(30_000) }));
    let flood = tokio::spawn(async move {
        // Ends because the agent is disconnected; until then its requests wait.
        deaf.run(&[Step::Flood { request, first: 1, count: 200 }]).await;
        deaf
    });
    let before = std::time::Instant::now();
    let answer = other.call(2, "large__echo", json!({ "text": "quick" })).await;
    assert_eq!(answer["content"][0]["text"], "quick");
    assert!(before.elapsed() < Duration::from_secs(8), "another agent waited for {:?}", before.elapsed());
    let mut deaf = flood.await.unwrap();
    deaf.run(&[Step::HungUp]).await;
    assert_eq!(other.call(3, "large__echo", json!({ "text": "still" })).await["content"][0]["text"], "still");
}
