//! What tools and results cost an agent: long results, sets of tools, and figures in the log.

use mcp_sidecar::agent::AgentOptions;
use mcp_sidecar::protocol::commands::{AgentSet, Agents, CallResult, Calls, Metrics, Tools};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::support::harness::{demo, open_editor};

fn host(settings: &str) -> Host {
    let (settings, problems) = Settings::from_toml(settings);
    assert_eq!(problems, []);
    let all = json!({ "*": "allow-session" });
    Host::with(json!({ "one": demo(all.clone()), "two": demo(all) }), settings)
}

fn names(answer: &Value) -> Vec<String> {
    let items = answer["result"]["tools"].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// The place that a note or a page names.
fn next_place(note: &str) -> Value {
    let start = note.find("{\"id\"").unwrap_or_else(|| panic!("{note}"));
    let end = note[start..].find('}').unwrap() + start + 1;
    serde_json::from_str(&note[start..end]).unwrap()
}

#[tokio::test]
async fn an_agent_reads_a_long_result_in_parts_and_the_user_reads_all_of_it() {
    let host = host("[agents.liner]\nresult-limit = 2000\n");
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut agent = host.agent().await;
    let listed = agent.ask(1, "tools/list", json!({})).await;
    assert!(names(&listed).contains(&"read_result".to_owned()));
    let weather = listed["result"]["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "one__weather");
    assert!(weather.unwrap().get("outputSchema").is_none(), "its structured content may be left out");

    let whole: String = (0..2_000).map(|number| format!("line {number}\n")).collect();
    let first = agent.call(2, "one__echo", json!({ "text": whole })).await;
    let content = first["content"].as_array().unwrap();
    assert_eq!(content.len(), 3, "{first:#}");
    let place = next_place(content[1]["text"].as_str().unwrap());
    assert_eq!(content[2]["type"], "resource_link");

    // By the tool.
    let mut read = text(&first).to_owned();
    let mut arguments = place.clone();
    for id in 3.. {
        let page = agent.call(id, "read_result", arguments).await;
        let (part, note) = text(&page).rsplit_once("\n[").unwrap();
        read.push_str(part);
        if note.starts_with("This is the end") {
            break;
        }
        arguments = next_place(note);
    }
    assert_eq!(read, whole);

    // By the link.
    let linked = agent.ask(50, "resources/read", json!({ "uri": content[2]["uri"] })).await;
    let page = linked["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(whole.starts_with(&format!("{}{}", text(&first), page.rsplit_once("\n[").unwrap().0)), "{page}");

    // Nobody else can read it, and a place that is not there is refused.
    let mut other = host.agent().await;
    let refused = other.call(2, "read_result", place.clone()).await;
    assert!(refused["isError"] == true && text(&refused).starts_with("the result with this id"), "{refused:#}");
    let refused = other.ask(3, "resources/read", json!({ "uri": content[2]["uri"] })).await;
    assert!(refused["error"]["code"].is_number(), "{refused:#}");
    let refused = agent.call(51, "read_result", json!({ "id": place["id"], "offset": 1_000_000 })).await;
    assert_eq!(refused["isError"], true);

    // The log has the size of the whole result, and the user can read it.
    let calls = editor.call(Calls::default()).await.unwrap().calls;
    assert!(calls.iter().all(|call| call.tool != "read_result"), "it is not a call of a server: {calls:?}");
    let call = calls.into_iter().find(|call| call.tool == "echo").unwrap();
    let (bytes, tokens) = (call.result_bytes.unwrap(), call.result_tokens.unwrap());
    assert!(bytes > whole.len() && tokens == bytes.div_ceil(4), "{bytes} {tokens}");
    let kept = editor.call(CallResult { call_id: call.call_id }).await.unwrap();
    assert_eq!(kept.blocks()[0]["text"], whole);
    let unknown = editor.call(CallResult { call_id: mcp_sidecar::model::CallId("x".into()) }).await.unwrap_err();
    assert_eq!(unknown.kind(), Some(ErrorKind::NotFound));
}

#[tokio::test]
async fn a_short_result_and_an_agent_without_a_limit_get_everything() {
    let host = host("[agents.other]\nresult-limit = 2000\n");
    let long = "x".repeat(50_000);
    let mut agent = host.agent().await;
    assert!(!names(&agent.ask(1, "tools/list", json!({})).await).contains(&"read_result".to_owned()));
    assert_eq!(text(&agent.call(2, "one__echo", json!({ "text": long })).await), long);
    let options = AgentOptions { label: Some("other".to_owned()), ..AgentOptions::default() };
    let mut other = RawAgent::new(host.connect_as(options, 1 << 20));
    other.initialize(json!({})).await;
    let weather = other.call(1, "one__weather", json!({ "city": "Rome" })).await;
    assert_eq!(weather["structuredContent"]["city"], "Rome", "{weather:#}");
}

#[tokio::test]
async fn an_agent_starts_with_a_set_and_is_switched_while_it_runs() {
    let host = host("[sets.sums]\ntools = ['*__add']\n[sets.first]\ntools = ['one__*', '!one__echo']\n");
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let options = AgentOptions { set: Some("sums".to_owned()), ..AgentOptions::default() };
    let mut agent = RawAgent::new(host.connect_as(options, 1 << 20));
    agent.initialize(json!({})).await;
    assert_eq!(names(&agent.ask(1, "tools/list", json!({})).await), ["one__add", "two__add"]);
    let hidden = agent.ask(2, "tools/call", json!({ "name": "one__echo", "arguments": { "text": "x" } })).await;
    assert_eq!(hidden["error"]["code"], -32602, "{hidden:#}");

    agent.notifications.clear();
    let set = |name: Option<&str>| AgentSet { set: name.map(str::to_owned), agent: None };
    let board = editor.call(set(Some("first"))).await.unwrap();
    assert_eq!(board.agents[0].set.as_deref(), Some("first"));
    agent.notified("notifications/tools/list_changed").await;
    let tools = names(&agent.ask(3, "tools/list", json!({})).await);
    assert!(tools.contains(&"one__add".to_owned()) && tools.iter().all(|name| name.starts_with("one__")), "{tools:?}");
    assert!(!tools.contains(&"one__echo".to_owned()));

    let unknown = editor.call(set(Some("nope"))).await.unwrap_err();
    assert_eq!(unknown.to_string(), "no set named `nope` in config.toml; there are `first`, `sums`");
    editor.call(set(None)).await.unwrap();
    agent.notified("notifications/tools/list_changed").await;
    assert_eq!(text(&agent.call(4, "two__echo", json!({ "text": "x" })).await), "x");
}

#[tokio::test]
async fn views_and_sets_count_when_the_settings_are_saved() {
    let host = host("");
    let options = AgentOptions { set: Some("later".to_owned()), ..AgentOptions::default() };
    let mut limited = RawAgent::new(host.connect_as(options, 1 << 20));
    limited.initialize(json!({})).await;
    let mut agent = host.agent().await;
    assert!(names(&agent.ask(1, "tools/list", json!({})).await).contains(&"two__echo".to_owned()));
    assert_eq!(names(&limited.ask(1, "tools/list", json!({})).await), [""; 0], "the set does not exist");
    let mut editor = open_editor(&host.home, &host.engine).await;
    let problem = editor.call(Agents {}).await.unwrap().agents[0].problem.clone();
    assert_eq!(problem.as_deref(), Some("config.toml has no set `later`, so it has no tools"));
    agent.notifications.clear();
    limited.notifications.clear();
    let settings = "[agents.liner]\nservers = ['one']\n[sets.later]\ntools = ['*__echo']\n";
    std::fs::write(host.home.path("config/config.toml"), settings).unwrap();
    let mut tools = Vec::new();
    for id in 2.. {
        // An earlier change, when the servers started, may be reported late.
        agent.notified("notifications/tools/list_changed").await;
        tools = names(&agent.ask(id, "tools/list", json!({})).await);
        if !tools.contains(&"two__echo".to_owned()) {
            break;
        }
    }
    assert!(tools.iter().all(|name| name.starts_with("one")) && tools.len() > 3, "{tools:?}");
    limited.notified("notifications/tools/list_changed").await;
    assert_eq!(names(&limited.ask(2, "tools/list", json!({})).await), ["one__echo"]);
}

#[tokio::test]
async fn the_cost_of_tools_is_in_lists_and_metrics() {
    let host = host("[agents.few]\ntools = ['one__add']\n[agents.finder]\nmode = 'search'\n");
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    agent.call(2, "one__echo", json!({ "text": "twelve chars" })).await;
    let tools = editor.call(Tools::default()).await.unwrap().tools;
    assert!(tools.iter().all(|tool| tool.tokens > 10), "{tools:?}");
    let metrics = editor.call(Metrics::default()).await.unwrap();
    let views: Vec<(&str, usize, bool)> =
        metrics.views.iter().map(|view| (view.agent.as_str(), view.tools, view.search)).collect();
    assert_eq!(views, [("finder", tools.len(), true), ("few", 1, false), ("", tools.len(), false)]);
    let sum: usize = tools.iter().map(|tool| tool.tokens).sum();
    assert_eq!(metrics.views[2].tokens, sum);
    assert!(metrics.views[0].tokens < sum);
    let one = metrics.servers.iter().find(|server| server.server.as_str() == "one").unwrap();
    assert_eq!(one.tokens, sum / 2);
    assert_eq!(one.tools[0].tool, "echo");
    assert_eq!(one.tools[0].tokens, tools.iter().find(|tool| tool.tool == "echo").map(|tool| tool.tokens));
    assert_eq!(one.tools[0].result_tokens, one.tools[0].total_result_tokens);
    assert!(one.tools[0].result_tokens > 3);
}
