//! The agents that are connected: what the user sees of them, and how the user holds or ends them.

use std::time::Duration;

use mcp_sidecar::engine::gate::agent_tool::{HookAnswer, HookEvent, HookQuestion};
use mcp_sidecar::model::HookAgent;
use mcp_sidecar::protocol::commands::{AgentDisconnect, AgentPause, AgentSet, Agents, Away, AwayAllow};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::{AgentsChanged, ApprovalsChanged};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::support::commands::resolve;
use crate::support::harness::{demo, open_editor};

fn host(settings: Settings) -> Host {
    Host::with(json!({ "one": demo(json!({ "*": "allow-session", "take_note": "require-approval" })) }), settings)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn the_board_shows_who_is_connected_and_what_waits_for_the_user() {
    let host = host(Settings::default());
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    assert_eq!(editor.call(Agents {}).await.unwrap().agents, []);
    let mut agent = host.agent().await;
    editor.event_where(|changed: &AgentsChanged| changed.agents == 1).await;
    agent.call(1, "one__echo", json!({ "text": "x" })).await;
    let seen = editor.call(Agents {}).await.unwrap().agents.remove(0);
    assert_eq!((seen.name.as_str(), seen.doing.as_str(), seen.paused), ("liner", "idle", false));
    assert_eq!(seen.folder, host.home.project());
    assert_eq!((seen.today.calls, seen.today.denied), (1, 0));
    assert!(seen.today.tokens > 0);

    agent.begin(2, "tools/call", json!({ "name": "one__take_note", "arguments": { "text": "x" } })).await;
    let asked = editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await;
    let seen = editor.call(Agents {}).await.unwrap().agents.remove(0);
    assert_eq!(seen.doing, "waits for you: one/take_note");
    assert_eq!(seen.calls[0].question.as_ref(), Some(&asked.approvals[0].id));
    editor.call(resolve(&asked.approvals[0], "deny")).await.unwrap();
    agent.next().await;
    let seen = editor.call(Agents {}).await.unwrap().agents.remove(0);
    assert_eq!((seen.doing.as_str(), seen.today.calls, seen.today.denied), ("idle", 2, 1));
    drop(agent);
    editor.event_where(|changed: &AgentsChanged| changed.agents == 0).await;
}

#[tokio::test]
async fn calls_of_a_paused_agent_wait_with_progress_until_it_may_go_on() {
    let host = host(Settings::default());
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut agent = host.agent().await;
    agent.call(1, "one__echo", json!({ "text": "x" })).await;
    let pause = |paused| AgentPause { agent: "liner".to_owned(), paused };
    assert!(editor.call(pause(true)).await.unwrap().agents[0].paused);
    let call = json!({ "name": "one__echo", "arguments": { "text": "later" }, "_meta": { "progressToken": 7 } });
    agent.begin(2, "tools/call", call).await;
    let progress = agent.notified("notifications/progress").await;
    assert_eq!(progress["message"], "This call waits: the user has paused this agent.", "{progress:#}");
    let seen = editor.call(Agents {}).await.unwrap().agents.remove(0);
    assert_eq!(seen.doing, "paused, one/echo waits");
    // Another agent goes on.
    let mut other = host.agent().await;
    assert!(editor.call(pause(false)).await.unwrap().agents.iter().all(|agent| !agent.paused));
    assert_eq!(text(&agent.next().await["result"]), "later");
    assert_eq!(text(&other.call(1, "one__echo", json!({ "text": "x" })).await), "x");
    let unknown = editor.call(AgentPause { agent: "nobody".to_owned(), paused: true }).await.unwrap_err();
    assert_eq!(unknown.kind(), Some(ErrorKind::NotFound));
}

#[tokio::test]
async fn a_paused_call_does_not_wait_forever() {
    let mut settings = Settings::default();
    settings.approvals.timeout = Duration::from_millis(50);
    let host = host(settings);
    let mut editor = open_editor(&host.home, &host.engine).await;
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    editor.call(AgentPause { agent: "liner".to_owned(), paused: true }).await.unwrap();
    let refused = agent.call(2, "one__echo", json!({ "text": "x" })).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(text(&refused), "`mcp__one__echo` was not allowed: the user has paused this agent");
}

/// A question of Claude Code's hook before it runs a command.
fn hook(host: &Host, event: HookEvent, command: &str) -> HookQuestion {
    HookQuestion {
        agent: HookAgent::ClaudeCode,
        event,
        tool: "Bash".to_owned(),
        arguments: json!({ "command": command }).as_object().unwrap().clone(),
        folder: host.home.project(),
        session: Some("one".to_owned()),
    }
}

#[tokio::test]
async fn the_hooks_of_a_paused_agent_wait_until_it_may_go_on() {
    let host = host(Settings::default());
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut agent = host.agent_named("claude-code").await;
    agent.ask(1, "tools/list", json!({})).await;
    let pause = |paused| AgentPause { agent: "claude-code".to_owned(), paused };
    editor.call(pause(true)).await.unwrap();
    // No rule is about the first one. Without the pause, the agent would go on at once.
    let engine = host.engine.clone();
    let unruled = hook(&host, HookEvent::BeforeTool, "ls");
    let unruled = tokio::spawn(async move { engine.answer_hook(unruled, None).await });
    editor.event_where(|changed: &AgentsChanged| changed.agents == 1).await;
    loop {
        let seen = editor.call(Agents {}).await.unwrap().agents.remove(0);
        if seen.doing == "paused, Bash waits" {
            break;
        }
        assert_eq!(seen.doing, "paused", "{seen:?}");
        assert!(!unruled.is_finished());
    }
    assert!(!unruled.is_finished());
    let engine = host.engine.clone();
    let asking = hook(&host, HookEvent::PermissionRequest, "make");
    let asking = tokio::spawn(async move { engine.answer_hook(asking, None).await });
    editor.call(pause(false)).await.unwrap();
    assert_eq!(unruled.await.unwrap(), HookAnswer::NoRule);
    let asked = editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await;
    let seen = editor.call(Agents {}).await.unwrap().agents.remove(0);
    assert_eq!(seen.doing, "waits for you: Bash");
    assert_eq!(seen.calls[0].question.as_ref(), Some(&asked.approvals[0].id));
    editor.call(resolve(&asked.approvals[0], "allow-once")).await.unwrap();
    assert_eq!(asking.await.unwrap(), HookAnswer::Allow);
    let seen = editor.call(Agents {}).await.unwrap().agents.remove(0);
    assert_eq!((seen.doing.as_str(), seen.today.calls), ("idle", 1), "what no rule is about is not counted");
}

#[tokio::test]
async fn a_hook_of_an_agent_that_stays_paused_is_left_to_the_agents_own_question() {
    let mut settings = Settings::default();
    settings.approvals.timeout = Duration::from_millis(50);
    let host = host(settings);
    let mut editor = open_editor(&host.home, &host.engine).await;
    let mut agent = host.agent_named("claude-code").await;
    agent.ask(1, "tools/list", json!({})).await;
    editor.call(AgentPause { agent: "claude-code".to_owned(), paused: true }).await.unwrap();
    for event in [HookEvent::BeforeTool, HookEvent::PermissionRequest] {
        let answer = host.engine.answer_hook(hook(&host, event, "ls"), None).await;
        assert_eq!(answer, HookAnswer::Ask("the user has paused this agent".to_owned()), "{event:?}");
    }
}

#[tokio::test]
async fn an_agent_that_lists_its_tools_before_it_is_ready_hears_of_a_change_of_its_set() {
    let host = host(Settings::default());
    std::fs::write(host.home.path("config/config.toml"), "[sets.sums]\ntools = ['one__add']\n").unwrap();
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut agent = RawAgent::new(host.connect(1 << 20));
    let info = json!({ "name": "liner", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    agent.ask(0, "initialize", params).await;
    let listed = agent.ask(1, "tools/list", json!({})).await;
    assert!(listed["result"]["tools"].as_array().unwrap().len() > 1, "{listed:#}");
    let sums = AgentSet { set: Some("sums".to_owned()), agent: None };
    while editor.call(sums.clone()).await.is_err() {}
    agent.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    agent.notified("notifications/tools/list_changed").await;
    let listed = agent.ask(2, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1, "{listed:#}");
}

#[tokio::test]
async fn an_agent_that_is_disconnected_gets_no_answer_any_more() {
    let host = host(Settings::default());
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    agent.begin(2, "tools/call", json!({ "name": "one__take_note", "arguments": { "text": "x" } })).await;
    editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await;
    let id = editor.call(Agents {}).await.unwrap().agents[0].id.clone();
    editor.call(AgentDisconnect { agent: id }).await.unwrap();
    loop {
        let line = agent.hear().await;
        assert!(!line.contains("saved"), "{line}");
        if line.is_empty() {
            break;
        }
    }
    // Its question is withdrawn.
    editor.event_where(|changed: &ApprovalsChanged| changed.approvals.is_empty()).await;
    editor.event_where(|changed: &AgentsChanged| changed.agents == 0).await;
}

#[tokio::test]
async fn what_was_refused_without_an_editor_can_be_allowed_for_the_next_time() {
    let host = host(Settings::default());
    let mut editor = open_editor(&host.home, &host.engine).await;
    for noise in ["mcp/serverChanged", "mcp/agentsChanged", "mcp/approvalsChanged"] {
        editor.ignore(noise);
    }
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    assert_eq!(editor.call(Away {}).await.unwrap().summary, None);
    editor.quit().await;
    host.engine.editors().subscribe().wait_for(|editors| *editors == 0).await.unwrap();
    // Answered when the departure is known.
    assert_eq!(host.engine.away().await.unwrap().until, None);
    let note = |id: i64, text: &str| (id, json!({ "text": text }));
    for (id, arguments) in [note(2, "milk"), note(3, "milk"), note(4, "bread")] {
        let refused = agent.call(id, "one__take_note", arguments).await;
        assert!(text(&refused).contains("there was no one to ask"), "{refused:#}");
    }
    agent.call(5, "one__echo", json!({ "text": "x" })).await;

    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/serverChanged");
    let report = editor.call(Away {}).await.unwrap();
    let summary = "While no editor was open, liner made 4 calls; 2 were refused because there was no one to ask.";
    assert_eq!(report.summary.as_deref(), Some(summary));
    assert_eq!((report.agents["liner"].calls, report.agents["liner"].denied), (4, 3));
    let milk = report.refused.iter().find(|call| call.arguments == Some(json!({ "text": "milk" }))).unwrap();
    editor.call(AwayAllow { call_id: milk.call_id.clone() }).await.unwrap();
    let saved = agent.call(6, "one__take_note", json!({ "text": "milk" })).await;
    assert!(text(&saved).starts_with("saved"), "{saved:#}");
    // It counts once, and for nothing else.
    for (id, arguments) in [note(7, "milk"), note(8, "bread")] {
        agent.begin(id, "tools/call", json!({ "name": "one__take_note", "arguments": arguments })).await;
        let asked = editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await;
        editor.call(resolve(&asked.approvals[0], "deny")).await.unwrap();
        assert_eq!(agent.next().await["result"]["isError"], true);
        editor.event_where(|changed: &ApprovalsChanged| changed.approvals.is_empty()).await;
    }
    let unknown = AwayAllow { call_id: mcp_sidecar::model::CallId("x".into()) };
    assert_eq!(editor.call(unknown).await.unwrap_err().kind(), Some(ErrorKind::NotFound));
}
