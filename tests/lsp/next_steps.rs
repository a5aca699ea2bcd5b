//! What the user can do next is decided here and only shown by the editors: summaries, actions, remedies, answers, forms.

use mcp_sidecar::model::Scope;
use mcp_sidecar::protocol::actions::{Action, ActionKind, Tone};
use mcp_sidecar::protocol::commands::{Command, FormCheck, GrantRevoke, ServerAdd, Servers, ToolForm};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::{ApprovalKind, ServerStatus, Status};
use serde_json::{Value, json};

use crate::support::Harness;
use crate::support::commands::{name, object, tool_call};
use crate::support::harness::demo;

fn kinds(status: &ServerStatus) -> Vec<ActionKind> {
    status.actions.iter().map(|action| action.kind).collect()
}

async fn perform(harness: &mut Harness, action: &Action) {
    let arguments = Value::Object(action.arguments.clone());
    harness.editor.raw_command(&action.command, arguments).await.unwrap();
}

#[tokio::test]
async fn a_server_that_a_rule_forbids_shows_the_reason_and_does_not_offer_trust() {
    let user = json!({ "servers": {}, "policy": { "commands": ["only-this"] } });
    let project = json!({ "servers": { "tool": demo(json!({})) } });
    let mut harness = Harness::new(user, project).await;
    let status = harness.until("tool", Status::Failed).await;
    assert_eq!(status.summary.tone, Tone::Bad);
    assert!(status.summary.text.starts_with("failed: "), "{status:?}");
    assert!(status.cause.as_ref().unwrap().contains("not in the list of allowed programs"), "{status:?}");
    use ActionKind::{Disable, Move, Remove};
    assert_eq!(kinds(&status), [Disable, Move, Move, Remove]);
    assert_eq!(status.remedy, None, "neither trust nor a start would help");
}

#[tokio::test]
async fn every_action_of_a_server_can_be_sent_as_it_is() {
    use ActionKind::{Disable, HideTools, Move, Refresh, Remove, Restart, ShowLog, Stop, Test};
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    let status = harness.until("demo", Status::Connected).await;
    assert_eq!(kinds(&status), [Stop, Restart, Refresh, Test, ShowLog, HideTools, Disable, Move, Move, Remove]);
    for action in status.actions.iter().filter(|action| ![Move, Disable, Remove].contains(&action.kind)) {
        perform(&mut harness, action).await;
    }
    let hidden = harness.status("demo").await;
    assert_eq!(
        (hidden.summary.text.as_str(), hidden.remedy.unwrap().command.as_str()),
        ("tools hidden", "mcp.server.toggle")
    );
    let remove = status.actions.last().unwrap();
    assert!(remove.kind == Remove && remove.destructive);
    perform(&mut harness, remove).await;
    let gone = harness.fails(Servers { server: Some(name("demo")) }).await;
    assert_eq!(gone.kind(), Some(ErrorKind::NotFound));
}

#[tokio::test]
async fn an_error_that_the_user_can_do_something_about_says_what() {
    async fn remedy<C: Command>(harness: &mut Harness, command: C) -> String {
        let error = harness.fails(command).await;
        assert!(!error.message.contains("mcp."), "a text names no command: {}", error.message);
        let remedy = error.data.unwrap().remedy.unwrap();
        format!("{} → {} {}", remedy.title, remedy.command, Value::Object(remedy.arguments))
    }
    let project = json!({ "servers": { "theirs": demo(json!({})) } });
    let mut harness = Harness::new(json!({ "servers": { "mine": demo(json!({})) } }), project).await;
    harness.until("mine", Status::Connected).await;
    let unknown = Servers { server: Some(name("mien")) };
    assert_eq!(remedy(&mut harness, unknown).await, "List the servers → mcp.servers {}");
    assert_eq!(
        remedy(&mut harness, tool_call("mcp__mine__nothing", json!({}))).await,
        r#"List the tools of `mine` → mcp.tools {"server":"mine","all":true}"#
    );
    let trust = remedy(&mut harness, tool_call("mcp__theirs__echo", json!({}))).await;
    assert!(trust.starts_with("Trust `theirs`… → mcp.server.trust "), "{trust}");
    let unknown = GrantRevoke { id: Some("none".to_owned()), all: false };
    assert_eq!(remedy(&mut harness, unknown).await, "List the grants → mcp.grants {}");
}

#[tokio::test]
async fn a_question_comes_with_its_answers_and_what_they_change() {
    let user = json!({ "servers": { "demo": demo(json!({ "echo": "require-approval" })) } });
    let mut harness = Harness::new(user, json!({})).await;
    harness.until("demo", Status::Connected).await;
    let _call = harness.begin_call("mcp__demo__echo", json!({ "text": "hi" }));
    let answers = harness.approvals(ApprovalKind::Tool, 1).await.remove(0).answers;
    let flag = |set: bool, word: &str| if set { format!(" {word}") } else { String::new() };
    let lines = answers.iter().map(|answer| {
        let flags = flag(answer.grants, "grants") + &flag(answer.lasts, "lasts");
        format!("{}: {}{flags}", answer.decision, answer.label)
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    allow-once: Allow once grants
    allow-session: Allow for this session grants lasts
    allow-read-only: Allow all read-only tools for this session grants lasts
    allow-project: Allow in this project grants lasts
    allow-always: Always allow grants lasts
    deny: Deny
    disable: Disable this tool lasts
    ");
    assert_eq!(answers[4].effect.as_deref(), Some("The tool `echo` of `demo` is always allowed."));
    assert_eq!(answers[4].undo.as_ref().unwrap().command, "mcp.grants");
    assert_eq!(answers[0].undo, None);
}

#[tokio::test]
async fn a_form_is_filled_in_with_what_the_user_types() {
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), json!({})).await;
    // The server is still starting, and the form waits for it.
    let tool = "mcp__demo__roll_dice";
    let form = harness.run(ToolForm { tool: tool.to_owned() }).await;
    let fields: Vec<String> = form.fields.iter().map(|field| format!("{} {:?}", field.name, field.kind)).collect();
    insta::assert_snapshot!(fields.join("\n"), @r"
    sides Integer
    count Integer
    ");
    let check =
        |values: Value| FormCheck { tool: Some(tool.to_owned()), approval: None, server: None, values: object(values) };
    let checked = harness.run(check(json!({ "sides": "six" }))).await;
    assert_eq!(checked.problems[0].path, "/sides");
    let checked = harness.run(check(json!({ "sides": "6" }))).await;
    assert_eq!((checked.arguments, checked.problems), (object(json!({ "sides": 6 })), vec![]));
    let unknown = harness.fails(ToolForm { tool: "mcp__demo__none".to_owned() }).await;
    assert_eq!(unknown.kind(), Some(ErrorKind::NotFound));
}

#[tokio::test]
async fn a_typed_command_line_is_split_like_a_shell() {
    let mut harness = Harness::new(json!({}), json!({})).await;
    let add = |server: &str, config: Option<Value>, line: &str| ServerAdd {
        server: name(server),
        config,
        command_line: Some(line.to_owned()),
        scope: Scope::Session,
        inputs: None,
        bundle: None,
    };
    let added = harness.run(add("a", None, r#"node -e "a b" 'c d'"#)).await;
    assert_eq!(added.server.config, json!({ "command": "node", "args": ["-e", "a b", "c d"] }));
    let added = harness.run(add("b", None, " http://127.0.0.1:9/mcp ")).await;
    assert_eq!(added.server.config, json!({ "url": "http://127.0.0.1:9/mcp" }));
    for (line, problem) in [("node -e \"a", "an unclosed quote"), ("  ", "found nothing")] {
        let error = harness.fails(add("c", None, line)).await;
        assert_eq!(error.kind(), Some(ErrorKind::InvalidParams));
        assert!(error.message.contains(problem), "{}", error.message);
    }
    let both = harness.fails(add("d", Some(json!({ "command": "x" })), "x")).await;
    assert_eq!(both.kind(), Some(ErrorKind::InvalidParams));
}
