//! The questions of an agent about its own tools: what an answer counts for, and what is recorded.

use mcp_sidecar::engine::Notice;
use mcp_sidecar::engine::gate::agent_tool::{HookAnswer, HookEvent, HookQuestion};
use mcp_sidecar::model::{CallRecord, HookAgent};
use mcp_sidecar::protocol::commands::Agents;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::protocol::types::Approval;
use mcp_sidecar::settings::Settings;
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::raw_agent::Host;
use crate::support::TestEditor;
use crate::support::commands::resolve;
use crate::support::harness::open_editor;

use HookAgent::{ClaudeCode, Codex, Copilot};
use HookEvent::{BeforeTool, PermissionRequest};

/// An engine with these rules for agents' own tools, and an editor.
async fn host(agent_tools: Value, settings: &str) -> (Host, TestEditor) {
    let (settings, problems) = Settings::from_toml(settings);
    assert_eq!(problems, []);
    let host = Host::with_config(json!({ "servers": {}, "agentTools": agent_tools }), settings);
    let mut editor = open_editor(&host.home, &host.engine).await;
    editor.ignore("mcp/agentsChanged");
    editor.handle("mcp/buffer", |_| Ok(json!({})));
    // A command is answered when the rules apply.
    editor.call(Agents {}).await.unwrap();
    (host, editor)
}

/// A question of this agent, which works in the project.
fn question(host: &Host, agent: HookAgent, event: HookEvent, (tool, arguments): &(&str, Value)) -> HookQuestion {
    HookQuestion {
        agent,
        event,
        tool: (*tool).to_owned(),
        arguments: arguments.as_object().unwrap().clone(),
        folder: host.home.project(),
        session: Some("one".to_owned()),
    }
}

fn command(text: &str) -> (&'static str, Value) {
    ("Bash", json!({ "command": text }))
}

/// Asks a question that must be shown to the user. Returns what is shown, and the answer to come.
async fn begin(host: &Host, editor: &mut TestEditor, question: HookQuestion) -> (Approval, JoinHandle<HookAnswer>) {
    let (engine, asked) = (host.engine.clone(), question.clone());
    let mut answer = tokio::spawn(async move { engine.answer_hook(asked, None).await });
    tokio::select! {
        mut changed = editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()) => {
            (changed.approvals.remove(0), answer)
        }
        answer = &mut answer => panic!("the user was not asked: {question:?}: {answer:?}"),
    }
}

/// Waits until no question is shown.
async fn no_question(editor: &mut TestEditor) {
    editor.event_where(|changed: &ApprovalsChanged| changed.approvals.is_empty()).await;
}

/// Asks a question that must be shown to the user, who answers it.
async fn answered(host: &Host, editor: &mut TestEditor, question: HookQuestion, decision: &str) -> HookAnswer {
    let (asked, answer) = begin(host, editor, question).await;
    editor.call(resolve(&asked, decision)).await.unwrap();
    no_question(editor).await;
    answer.await.unwrap()
}

async fn records(host: &Host) -> Vec<CallRecord> {
    host.engine.calls(CallQuery::default()).await.unwrap()
}

fn denied_by_the_user() -> HookAnswer {
    HookAnswer::Deny("the user denied it".to_owned())
}

#[tokio::test]
async fn a_permission_for_one_use_counts_once() {
    let (host, mut editor) = host(json!({ "claude-code": { "Bash": "allow-once" } }), "").await;
    let ask = || question(&host, ClaudeCode, BeforeTool, &command("make"));
    assert_eq!(host.engine.answer_hook(ask(), None).await, HookAnswer::Allow);
    assert_eq!(answered(&host, &mut editor, ask(), "deny").await, denied_by_the_user());
    let decisions: Vec<String> = records(&host).await.into_iter().map(|record| record.decision).collect();
    assert_eq!(decisions, ["deny", "allow-once"]);
}

/// Some agents ask before they use a tool, and once more for the permission.
#[tokio::test]
async fn an_answer_before_a_tool_counts_for_the_same_action_only() {
    let rules = json!({ "*": "require-approval" });
    let (host, mut editor) = host(json!({ "claude-code": rules, "codex": rules, "copilot": rules }), "").await;
    host.home.write("notes.md", "milk\n");
    let edit = |more: Value| {
        let mut edit = json!({ "file_path": "notes.md", "old_string": "milk", "new_string": "tea" });
        edit.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("Edit", edit)
    };
    let diff = |line: &str| format!("\n--- a/dev/null\n+++ b/new.md\n@@ -1,0 +1,1 @@\n{line}\n");
    let new_file = |text: &str, more: Value| {
        let mut create = json!({ "path": host.home.path("project/new.md"), "file_text": text });
        create.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("create", create)
    };
    let permission = ("edit", json!({ "file_path": host.home.path("project/new.md"), "diff": diff("+tea") }));
    let described = ("Bash", json!({ "command": "make", "description": "Builds it" }));
    let unconfined = ("Bash", json!({ "command": "make", "dangerouslyDisableSandbox": true }));
    let page = ("WebFetch", json!({ "url": "https://example.com/" }));
    let cases = [
        (ClaudeCode, command("make"), described, "", true),
        (ClaudeCode, command("make"), unconfined, "", false),
        (ClaudeCode, command("make"), command("make install"), "", false),
        (ClaudeCode, command("make"), ("mcp__production__run", json!({ "command": "make" })), "", false),
        (ClaudeCode, command("make"), command("make"), "other", false),
        (ClaudeCode, edit(json!({})), edit(json!({})), "", true),
        (ClaudeCode, edit(json!({})), edit(json!({ "replace_all": true })), "", false),
        (ClaudeCode, edit(json!({})), edit(json!({})), "other", false),
        (ClaudeCode, page.clone(), page, "", false),
        (Codex, ("apply_patch", json!({ "input": "x" })), ("apply_patch", json!({ "input": "x" })), "other", false),
        (Copilot, new_file("tea\n", json!({})), permission.clone(), "", true),
        (Copilot, new_file("oil\n", json!({ "diff": diff("+tea") })), permission, "", false),
    ];
    for (number, (agent, first, second, folder, is_same)) in cases.into_iter().enumerate() {
        let session = Some(number.to_string());
        let first = HookQuestion { session: session.clone(), ..question(&host, agent, BeforeTool, &first) };
        let allowed = answered(&host, &mut editor, first, "allow-once").await;
        assert_eq!(allowed, HookAnswer::Allow, "case {number}");
        let folder = host.home.project().join(folder);
        let second = HookQuestion { session, folder, ..question(&host, agent, PermissionRequest, &second) };
        if is_same {
            assert_eq!(host.engine.answer_hook(second, None).await, HookAnswer::Allow, "case {number}");
        } else {
            assert_eq!(answered(&host, &mut editor, second, "deny").await, denied_by_the_user(), "case {number}");
        }
    }
}

#[tokio::test]
async fn a_denied_action_is_not_asked_about_again_at_once() {
    let (host, mut editor) = host(json!({}), "").await;
    let ask = || question(&host, ClaudeCode, PermissionRequest, &command("make"));
    assert_eq!(answered(&host, &mut editor, ask(), "deny").await, denied_by_the_user());
    let again = "the user denied it. That was less than a minute ago, so they were not asked again";
    assert_eq!(host.engine.answer_hook(ask(), None).await, HookAnswer::Deny(again.to_owned()));
    let records = records(&host).await;
    let [again, first] = &records[..] else { panic!("{records:?}") };
    assert_eq!((first.decision.as_str(), again.decision.as_str()), ("deny", "deny"));
    assert!(first.decided_by.starts_with("user in "), "{first:?}");
    assert_eq!(again.decided_by, format!("{}, less than a minute ago", first.decided_by));
}

/// An earlier answer may be above the ceiling, too.
#[tokio::test]
async fn a_ceiling_holds_for_an_agents_own_tools() {
    let (host, mut editor) = host(json!({}), "").await;
    let ask = || question(&host, Codex, PermissionRequest, &command("make"));
    assert_eq!(answered(&host, &mut editor, ask(), "allow-session").await, HookAnswer::Allow);
    assert_eq!(host.engine.answer_hook(ask(), None).await, HookAnswer::Allow);
    let before = || question(&host, Codex, BeforeTool, &command("ls"));
    assert_eq!(host.engine.answer_hook(before(), None).await, HookAnswer::NoRule);
    // The settings can name the agent as it is called here, or as it reports itself to servers.
    for sections in [
        "[agents.codex]\nceiling = 'deny'\n[agents.codex-mcp-client]\n",
        "[agents.codex-mcp-client]\nceiling = 'deny'\n",
        "[agents.'*']\n[agents.codex-mcp-client]\nceiling = 'deny'\n",
        "[agents.'*']\nceiling = 'deny'\n",
    ] {
        let mut views = host.engine.views();
        std::fs::write(host.home.path("config/config.toml"), sections).unwrap();
        views.changed().await.unwrap();
        let denied = HookAnswer::Deny("a rule denies it".to_owned());
        assert_eq!(host.engine.answer_hook(before(), None).await, denied, "{sections}");
        let record = records(&host).await.remove(0);
        assert!(record.decided_by.contains(".ceiling ("), "{record:?}");
    }
    let mut views = host.engine.views();
    std::fs::write(host.home.path("config/config.toml"), "[agents.codex]\nceiling = 'require-approval'\n").unwrap();
    views.changed().await.unwrap();
    assert_eq!(answered(&host, &mut editor, ask(), "deny").await, denied_by_the_user());
    assert_eq!(host.engine.answer_hook(before(), None).await, HookAnswer::NoRule);
}

#[tokio::test]
async fn an_allowed_action_is_denied_if_a_rule_denies_it_by_then() {
    let (host, mut editor) = host(json!({}), "").await;
    editor.heed("mcp/configReloaded");
    let ask = question(&host, ClaudeCode, PermissionRequest, &command("make"));
    let (asked, answer) = begin(&host, &mut editor, ask).await;
    let rules = json!({ "servers": {}, "agentTools": { "claude-code": { "Bash": "deny" } } });
    std::fs::write(host.home.path("config/mcp.json"), rules.to_string()).unwrap();
    editor.notification("mcp/configReloaded").await;
    editor.call(resolve(&asked, "allow-always")).await.unwrap();
    assert_eq!(answer.await.unwrap(), HookAnswer::Deny("a rule denies it".to_owned()));
    assert!(host.engine.grants().await.is_empty(), "the answer does not count for later");
}

#[tokio::test]
async fn a_command_that_is_not_read_whole_is_denied_with_advice() {
    let rules = json!([{ "when": { "command": { "matches": "rm .*" } }, "level": "deny" }, "allow-session"]);
    let (host, _editor) = host(json!({ "claude-code": { "Bash": rules } }), "").await;
    let nested = format!("{}echo x{}", "$(".repeat(100), ")".repeat(100));
    for (text, is_advised) in [("rm x", false), (nested.as_str(), true)] {
        let answer = host.engine.answer_hook(question(&host, ClaudeCode, BeforeTool, &command(text)), None).await;
        let HookAnswer::Deny(reason) = &answer else { panic!("{text}: {answer:?}") };
        assert_eq!(reason.contains("split it into shorter commands"), is_advised, "{text}: {reason}");
        assert_eq!(reason == "a rule denies it", !is_advised, "{text}: {reason}");
    }
}

#[tokio::test]
async fn an_action_is_left_to_the_agent_if_its_record_cannot_be_written() {
    let rules = json!({ "claude-code": { "Bash": "allow-session" } });
    let (host, _editor) = host(rules, "audit = 'strict'\n").await;
    let ask = || question(&host, ClaudeCode, BeforeTool, &command("make"));
    assert_eq!(host.engine.answer_hook(ask(), None).await, HookAnswer::Allow);
    let lock = rusqlite::Connection::open(host.home.path("state/state.db")).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let answer = host.engine.answer_hook(ask(), None).await;
    assert!(matches!(answer, HookAnswer::Ask(_)), "{answer:?}");
    lock.execute_batch("ROLLBACK").unwrap();
    assert_eq!(records(&host).await.remove(0).decision, "ask");
}

#[tokio::test]
async fn a_question_that_ends_with_its_hook_is_recorded() {
    let (host, mut editor) = host(json!({}), "").await;
    let mut notices = host.engine.notices();
    let ask = question(&host, ClaudeCode, PermissionRequest, &command("make"));
    let (_, answer) = begin(&host, &mut editor, ask).await;
    answer.abort();
    no_question(&mut editor).await;
    let record = loop {
        if let Notice::CallFinished(record) = notices.recv().await.unwrap() {
            break record;
        }
    };
    assert_eq!((record.decision.as_str(), record.decided_by.as_str()), ("deny", "the agent disconnected"));
}
