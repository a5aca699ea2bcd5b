//! What an agent sees, the limit of its permissions, and tools that are searched instead of listed.

use mcp_sidecar::agent::AgentOptions;
use mcp_sidecar::model::Level;
use mcp_sidecar::protocol::commands::{Calls, Policies};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::settings::Settings;
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::support::commands::{self, name, resolve, tool_call};
use crate::support::harness::{demo, open_editor};

fn host(settings: &str) -> Host {
    let (settings, problems) = Settings::from_toml(settings);
    assert_eq!(problems, []);
    let all = json!({ "*": "allow-session" });
    Host::with(json!({ "one": demo(all.clone()), "two": demo(all) }), settings)
}

fn names(answer: &Value, list: &str) -> Vec<String> {
    let items = answer["result"][list].as_array().unwrap();
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

/// The text of a result.
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_hidden_server_is_neither_listed_nor_found_by_name() {
    let host = host("[agents.liner]\nservers = ['one']\n");
    let mut agent = host.agent().await;
    let tools = names(&agent.ask(1, "tools/list", json!({})).await, "tools");
    assert!(tools.contains(&"one__echo".to_owned()) && !tools.iter().any(|name| name.starts_with("two")), "{tools:?}");
    // Now that the servers have started, the instructions name them.
    let mut late = RawAgent::new(host.connect(1 << 20));
    let greeting = late.initialize(json!({})).await;
    let instructions = greeting["instructions"].as_str().unwrap();
    assert!(instructions.contains("## one") && !instructions.contains("## two"), "{instructions}");
    let call = agent.ask(2, "tools/call", json!({ "name": "two__echo", "arguments": { "text": "x" } })).await;
    assert_eq!(call["error"]["code"], -32602, "{call:#}");
    assert!(
        call["error"]["message"].as_str().unwrap().starts_with("unknown tool `two__echo`; did you mean `one__echo`")
    );
    assert_eq!(text(&agent.call(3, "one__echo", json!({ "text": "x" })).await), "x");

    assert_eq!(names(&agent.ask(4, "prompts/list", json!({})).await, "prompts"), ["one__greet"]);
    let prompt = agent.ask(5, "prompts/get", json!({ "name": "two__greet" })).await;
    assert_eq!(prompt["error"]["code"], -32602, "{prompt:#}");
    let listed = agent.ask(6, "resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "demo://notes", "no other server has it: {listed:#}");
    for (id, uri) in (7..).zip(["mcp+two://demo://notes", "mcp+nobody://demo://notes"]) {
        let read = agent.ask(id, "resources/read", json!({ "uri": uri })).await;
        assert!(read["error"]["code"].is_number(), "{read:#}");
    }
}

#[tokio::test]
async fn each_agent_has_its_own_section_in_the_settings() {
    let host = host("[agents.liner]\n[agents.'*']\ntools = ['two__*', '!two__take_*']\n");
    let mut agent = host.agent().await;
    let tools = names(&agent.ask(1, "tools/list", json!({})).await, "tools");
    assert!(tools.contains(&"one__echo".to_owned()) && tools.contains(&"two__take_note".to_owned()), "{tools:?}");
    let options = AgentOptions { label: Some("other".to_owned()), ..AgentOptions::default() };
    let mut other = RawAgent::new(host.connect_as(options, 1 << 20));
    other.initialize(json!({})).await;
    let tools = names(&other.ask(1, "tools/list", json!({})).await, "tools");
    assert!(tools.iter().all(|name| name.starts_with("two__")), "{tools:?}");
    assert!(!tools.contains(&"two__take_note".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn a_ceiling_overrides_levels_and_earlier_answers() {
    let host = host("[agents.liner]\nceiling = 'require-approval'\n");
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let asks = |changed: &ApprovalsChanged| !changed.approvals.is_empty();
    for id in 2..4 {
        agent.begin(id, "tools/call", json!({ "name": "one__echo", "arguments": { "text": "x" } })).await;
        let asked = editor.event_where(asks).await.approvals.remove(0);
        assert_eq!(asked.options, ["allow-once", "deny", "disable"], "{asked:?}");
        let refused = editor.call(resolve(&asked, "allow-always")).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::InvalidParams), "{refused}");
        editor.call(resolve(&asked, "allow-once")).await.unwrap();
        assert_eq!(text(&agent.next().await["result"]), "x");
        editor.event_where(|changed| !asks(changed)).await;
    }
    // The ceiling does not apply to the user.
    let own = tool_call("mcp__one__echo", json!({ "text": "mine" }));
    assert_eq!(editor.call(own).await.unwrap().decision, "allow-session");
    let tool = Policies { server: Some(name("one")), tool: Some("echo".to_owned()), arguments: None };
    let policy = editor.call(tool).await.unwrap().policies.remove(0);
    assert_eq!(policy.level, Level::AllowSession);
    assert_eq!(policy.agents[0].agent, "liner", "{policy:?}");
    assert_eq!(policy.agents[0].level, Level::RequireApproval);
    assert!(policy.agents[0].source.starts_with("config.toml agents.liner.ceiling ("));
}

/// The same answer counts for the user and for other agents.
#[tokio::test]
async fn an_earlier_answer_does_not_raise_an_agent_above_its_ceiling() {
    let (settings, problems) = Settings::from_toml("[agents.liner]\nceiling = 'require-approval'\n");
    assert_eq!(problems, []);
    let host = Host::with(json!({ "one": demo(json!({})) }), settings);
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let asks = |changed: &ApprovalsChanged| !changed.approvals.is_empty();
    let own = editor.start(tool_call("mcp__one__echo", json!({ "text": "mine" })));
    let asked = editor.event_where(asks).await.approvals.remove(0);
    editor.call(resolve(&asked, "allow-session")).await.unwrap();
    editor.answer(own).await.unwrap();
    editor.event_where(|changed| !asks(changed)).await;

    let options = AgentOptions { label: Some("other".to_owned()), ..AgentOptions::default() };
    let mut other = RawAgent::new(host.connect_as(options, 1 << 20));
    other.initialize(json!({})).await;
    assert_eq!(text(&other.call(2, "one__echo", json!({ "text": "x" })).await), "x");
    agent.begin(3, "tools/call", json!({ "name": "one__echo", "arguments": { "text": "x" } })).await;
    let asked = editor.event_where(asks).await.approvals.remove(0);
    assert_eq!(asked.options, ["allow-once", "deny", "disable"], "{asked:?}");
    editor.call(resolve(&asked, "deny")).await.unwrap();
    assert_eq!(agent.next().await["result"]["isError"], true);
}

#[tokio::test]
async fn a_ceiling_of_deny_denies_every_call_and_the_record_names_the_setting() {
    let host = host("[agents.liner]\nceiling = 'deny'\n");
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let refused = agent.call(2, "one__echo", json!({ "text": "x" })).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(text(&refused), "`mcp__one__echo` was denied: its level is `deny`");
    let record = host.engine.calls(CallQuery::default()).await.unwrap().remove(0);
    assert!(record.decided_by.contains("config.toml agents.liner.ceiling"), "{record:?}");
}

#[tokio::test]
async fn an_agent_that_searches_finds_tools_by_keywords_and_calls_them_by_name() {
    let host = host("[agents.liner]\nmode = 'search'\ntools = ['!two__*']\n");
    let mut agent = RawAgent::new(host.connect(1 << 20));
    agent.initialize(json!({})).await;
    let listed = agent.ask(1, "tools/list", json!({})).await;
    assert_eq!(names(&listed, "tools"), ["find_tools", "call_tool"]);
    let found = agent.call(2, "find_tools", json!({ "query": "add two numbers" })).await;
    let best = &found["structuredContent"]["tools"][0];
    assert_eq!(best["name"], "one__add", "{found:#}");
    assert!(best["inputSchema"]["properties"]["a"].is_object(), "{found:#}");
    assert!(!text(&found).contains("two__"), "{found:#}");

    let called = json!({ "name": "one__add", "arguments": { "a": 1, "b": 2 } });
    let sum = agent.call(3, "call_tool", called).await;
    assert_eq!(text(&sum), "3");
    let odd = agent.call(4, "call_tool", json!({ "name": "one__add", "arguments": { "a": "x", "b": 2 } })).await;
    assert!(odd["isError"] == true && text(&odd).contains("/a"), "{odd:#}");
    let unknown = agent.call(5, "call_tool", json!({ "name": "one__ad", "arguments": {} })).await;
    assert_eq!(unknown["isError"], true);
    assert!(text(&unknown).contains("did you mean `one__add`") && text(&unknown).contains("find_tools"), "{unknown:#}");
    let hidden = agent.call(6, "call_tool", json!({ "name": "two__add", "arguments": { "a": 1, "b": 2 } })).await;
    assert!(hidden["isError"] == true && text(&hidden).starts_with("unknown tool `two__add`"), "{hidden:#}");
    // The log knows the tool, not the way to it; those that are not there were asked for, too.
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    editor.ignore("mcp/approvalsChanged");
    let calls = editor.call(Calls::default()).await.unwrap().calls;
    let tools: Vec<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["add", "ad", "add", "add"], "{calls:?}");
}

#[tokio::test]
async fn the_list_of_an_agent_that_searches_changes_only_with_the_servers() {
    let host = Host::new(json!({ "one": demo(json!({})) }));
    let options = AgentOptions { search: true, ..AgentOptions::default() };
    let mut agent = RawAgent::new(host.connect_as(options, 1 << 20));
    agent.initialize(json!({})).await;
    let listed = agent.ask(1, "tools/list", json!({})).await;
    let described = listed["result"]["tools"][0]["description"].as_str().unwrap().to_owned();
    assert!(described.ends_with("Servers: one."), "{described}");
    agent.notifications.clear();
    let write = |servers: Value| {
        let (file, text) = (host.home.path("config/mcp.json"), json!({ "servers": servers }).to_string());
        host.engine.saved_in_editor(&file, &text);
        std::fs::write(file, text).unwrap();
    };
    // A disabled tool is no longer found, without a notification; a new server causes one.
    write(json!({ "one": demo(json!({ "echo": "disable" })) }));
    let mut id = 2;
    while agent.call(id, "find_tools", json!({ "query": "one__echo" })).await["structuredContent"]["tools"][0]["name"]
        == "one__echo"
    {
        id += 1;
    }
    assert!(
        agent.notifications.iter().all(|notification| notification["method"] != "notifications/tools/list_changed")
    );
    write(json!({ "one": demo(json!({})), "two": demo(json!({})) }));
    agent.notified("notifications/tools/list_changed").await;
}

#[tokio::test]
async fn a_server_that_is_left_out_is_not_offered() {
    let host = host("");
    let options = AgentOptions { without: vec!["two".to_owned()], ..AgentOptions::default() };
    let mut agent = RawAgent::new(host.connect_as(options, 1 << 20));
    agent.initialize(json!({})).await;
    let tools = names(&agent.ask(1, "tools/list", json!({})).await, "tools");
    assert!(tools.contains(&"one__echo".to_owned()) && !tools.iter().any(|name| name.starts_with("two")), "{tools:?}");
    let call = agent.ask(2, "tools/call", json!({ "name": "two__echo", "arguments": { "text": "x" } })).await;
    assert_eq!(call["error"]["code"], -32602, "{call:#}");
    // Somebody else sees it as before.
    let tools = names(&host.agent().await.ask(1, "tools/list", json!({})).await, "tools");
    assert!(tools.contains(&"two__echo".to_owned()), "{tools:?}");
}

#[tokio::test]
async fn a_host_that_asks_itself_skips_our_approval_except_for_read_only_and_denied_tools() {
    let levels = json!({ "*": "require-approval", "forget_notes": "deny" });
    let host = Host::with(json!({ "one": demo(levels) }), Settings::default());
    let mut editor = open_editor(&host.home, &host.engine).await;
    let ticket = editor.greeting["capabilities"]["experimental"]["mcpSidecar"]["ticket"].as_str().map(str::to_owned);
    let mut agent = RawAgent::new(host.connect_as(AgentOptions { ticket, ..AgentOptions::default() }, 1 << 20));
    agent.initialize(json!({})).await;
    let saved = agent.call(1, "one__take_note", json!({ "text": "x" })).await;
    assert!(text(&saved).starts_with("saved"), "{saved:#}");
    // Hosts do not ask about read-only tools, so we ask; and a guessed ticket has no effect.
    let mut stranger = RawAgent::new(
        host.connect_as(AgentOptions { ticket: Some("ticket".to_owned()), ..AgentOptions::default() }, 1 << 20),
    );
    stranger.initialize(json!({})).await;
    agent.begin(2, "tools/call", json!({ "name": "one__echo", "arguments": { "text": "x" } })).await;
    stranger.begin(2, "tools/call", json!({ "name": "one__take_note", "arguments": { "text": "x" } })).await;
    let asked = editor.event_where(|changed: &ApprovalsChanged| changed.approvals.len() == 2).await;
    for approval in &asked.approvals {
        editor.call(resolve(approval, "deny")).await.unwrap();
    }
    for asked in [&mut agent, &mut stranger] {
        let refused = asked.next().await;
        assert_eq!(refused["result"]["isError"], true, "{refused:#}");
    }
    let denied = agent.call(3, "one__forget_notes", json!({})).await;
    assert_eq!(denied["isError"], true, "{denied:#}");
}

#[tokio::test]
async fn a_full_name_means_the_same_tool_for_agents_and_editors() {
    let all = json!({ "*": "allow-session" });
    let host = Host::new(json!({ "a_": demo(all.clone()), "a": demo(all) }));
    let mut agent = host.agent().await;
    let listed = names(&agent.ask(1, "tools/list", json!({})).await, "tools");
    assert!(listed.contains(&"a___echo".to_owned()), "{listed:?}");
    assert!(
        !listed.iter().any(|name| name.starts_with("a__") && !name.starts_with("a___")),
        "`a` is not used: {listed:?}"
    );
    assert_eq!(text(&agent.call(2, "a___echo", json!({ "text": "x" })).await), "x");
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    editor.ignore("mcp/approvalsChanged");
    let answer = editor.call(tool_call("mcp__a___echo", json!({ "text": "y" }))).await.unwrap();
    assert_eq!((answer.server.as_str(), &*commands::text(&answer)), ("a_", "y"), "{answer:?}");
}

#[tokio::test]
async fn what_a_project_disables_or_restricts_is_not_there_for_an_agent() {
    let host = host("");
    let project =
        json!({ "servers": { "one": { "enabled": false }, "two": { "tools": { "add": "disable", "echo": "deny" } } } });
    host.home.write("mcp.json", &project.to_string());
    let mut agent = host.agent().await;
    let tools = names(&agent.ask(1, "tools/list", json!({})).await, "tools");
    assert!(tools.contains(&"two__take_note".to_owned()) && !tools.contains(&"two__add".to_owned()), "{tools:?}");
    assert!(!tools.iter().any(|name| name.starts_with("one__")), "{tools:?}");
    let denied = agent.call(2, "two__echo", json!({ "text": "x" })).await;
    assert_eq!(denied["isError"], true, "{denied:#}");
    assert!(!text(&denied).contains("mcp.json"), "{denied:#}");
}
