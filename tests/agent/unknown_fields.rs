//! Fields of a call that MCP does not define reach the server. A condition about arguments does not allow them.

use mcp_sidecar::protocol::commands::{Away, AwayAllow};
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::reads::question;
use crate::support::TestEditor;
use crate::support::commands::resolve;
use crate::support::harness::{fixture, open_editor};

/// A server whose tool `echo` returns the params of its call, and may run with one text.
pub fn servers() -> Value {
    with_rule(json!([{ "when": { "text": "a" }, "level": "allow-always" }, "require-approval"]))
}

fn with_rule(rule: Value) -> Value {
    let mut server = fixture("extended.py");
    server["tools"] = json!({ "*": rule });
    json!({ "new": server })
}

pub async fn editor(host: &Host) -> TestEditor {
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    editor
}

fn call(priority: Value) -> Value {
    json!({ "name": "new__echo", "arguments": { "text": "a" }, "priority": priority })
}

/// The params that the server got.
pub fn seen(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    serde_json::from_str::<Value>(text).unwrap()["params"].take()
}

async fn agent(host: &Host) -> RawAgent {
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent
}

#[tokio::test]
async fn unknown_fields_of_a_call_reach_the_server_after_the_user_has_seen_them() {
    let host = Host::new(servers());
    let (mut editor, mut agent) = (editor(&host).await, agent(&host).await);
    // Without them, the rule allows the call.
    let plain = agent.ask(2, "tools/call", json!({ "name": "new__echo", "arguments": { "text": "a" } })).await;
    assert_eq!(seen(&plain)["arguments"], json!({ "text": "a" }));

    agent.begin(3, "tools/call", call(json!({ "level": 3, "text": "\u{202e}x" }))).await;
    let asked = question(&mut editor).await;
    let detail = &asked.detail;
    let expected = "The agent also sends fields that MCP does not define, which no rule checks: \
                    {\"priority\":{\"level\":3,\"text\":\"";
    assert!(detail.contains(expected) && !detail.contains('\u{202e}'), "{detail}");
    editor.call(resolve(&asked, "allow-once")).await.unwrap();
    let params = seen(&agent.next().await);
    assert_eq!(params["priority"], json!({ "level": 3, "text": "\u{202e}x" }), "{params:#}");
    assert_eq!((&params["name"], &params["arguments"]), (&json!("echo"), &json!({ "text": "a" })), "{params:#}");
    assert!(!params.to_string().contains("mcp-sidecar/"), "{params:#}");
    let record = host.engine.calls(CallQuery::default()).await.unwrap().remove(0);
    let arguments = record.arguments.unwrap();
    assert_eq!((record.decision.as_str(), &arguments["text"]), ("allow-once", &json!("a")));
    assert_eq!(arguments["(unknown fields)"]["priority"]["level"], 3, "{arguments:#}");

    // The answer was about that call: another one is asked about again, and its denial is not about calls without the field.
    agent.begin(4, "tools/call", call(json!(4))).await;
    let asked = question(&mut editor).await;
    editor.call(resolve(&asked, "deny")).await.unwrap();
    let denied = agent.next().await;
    assert_eq!(denied["result"]["isError"], true, "{denied:#}");
    let plain = agent.ask(5, "tools/call", json!({ "name": "new__echo", "arguments": { "text": "a" } })).await;
    assert!(seen(&plain).get("priority").is_none());
}

#[tokio::test]
async fn a_rule_about_all_calls_of_a_tool_covers_unknown_fields() {
    let host = Host::new(with_rule(json!("allow-always")));
    let mut agent = agent(&host).await;
    let answer = agent.ask(2, "tools/call", call(json!(1))).await;
    assert_eq!(seen(&answer)["priority"], 1, "{answer:#}");
    let record = host.engine.calls(CallQuery::default()).await.unwrap().remove(0);
    assert_eq!(record.arguments.unwrap()["(unknown fields)"]["priority"], 1);
}

#[tokio::test]
async fn a_call_with_unknown_fields_is_refused_if_the_user_cannot_see_them() {
    let host = Host::new(servers());
    let mut agent = agent(&host).await;
    let refused = agent.ask(2, "tools/call", call(json!(1))).await;
    assert!(refused["result"]["isError"] == true || refused["error"].is_object(), "{refused:#}");
    let long = agent.ask(3, "tools/call", call(json!("x".repeat(5_000)))).await;
    assert!(long.to_string().contains("longer than 4000 bytes"), "{long:#}");
    // Metadata cannot smuggle them in, or replace what is checked.
    let meta = json!({ "mcp-sidecar/unknown-fields": { "priority": 1, "arguments": { "text": "other" } } });
    let hidden = json!({ "name": "new__echo", "arguments": { "text": "a" }, "_meta": meta });
    let refused = agent.ask(4, "tools/call", hidden).await;
    assert!(refused["result"]["isError"] == true || refused["error"].is_object(), "{refused:#}");
}

/// It was given for the call as it was refused, which had no such fields.
#[tokio::test]
async fn a_permission_in_advance_does_not_cover_unknown_fields() {
    let host = Host::new(with_rule(json!("require-approval")));
    editor(&host).await.quit().await;
    let mut editors = host.engine.editors().subscribe();
    editors.wait_for(|editors| *editors == 0).await.unwrap();
    host.engine.away().await.unwrap();
    let mut agent = agent(&host).await;
    let plain = json!({ "name": "new__echo", "arguments": { "text": "a" } });
    let refused = agent.ask(2, "tools/call", plain.clone()).await;
    assert!(refused.to_string().contains("there was no one to ask"), "{refused:#}");
    let mut editor = editor(&host).await;
    let call_id = editor.call(Away {}).await.unwrap().refused.remove(0).call_id;
    for (id, params, is_asked) in [(3, call(json!(1)), true), (4, plain, false)] {
        editor.call(AwayAllow { call_id: call_id.clone() }).await.unwrap();
        agent.begin(id, "tools/call", params).await;
        if is_asked {
            let asked = question(&mut editor).await;
            editor.call(resolve(&asked, "deny")).await.unwrap();
        }
        let answer = agent.next().await;
        assert_eq!(answer["result"]["isError"] == true, is_asked, "{answer:#}");
    }
}
