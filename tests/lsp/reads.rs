//! Resources, prompts and completion that the user asks for in an editor: they are not asked about, but rules that deny
//! hold, and every one leaves a record.

use mcp_sidecar::lsp_client::CommandError;
use mcp_sidecar::model::{CallKind, Level, Requester, RequesterKind, Scope};
use mcp_sidecar::protocol::commands::{
    Approvals, Calls, Policies, PromptGet, Prompts, ResourceRead, Resources, ServerToggle,
};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::{ApprovalKind, Call, Status};
use serde_json::{Value, json};

use crate::support::Harness;
use crate::support::commands::{name, policy};
use crate::support::harness::demo;

async fn harness(tools: Value, policy: Value) -> Harness {
    let user = json!({ "servers": { "demo": demo(tools) }, "policy": policy });
    let mut harness = Harness::new(user, json!({})).await;
    harness.until("demo", Status::Connected).await;
    harness
}

fn read(uri: &str) -> ResourceRead {
    ResourceRead { server: name("demo"), uri: uri.to_owned(), subscribe: None, requester: None }
}

fn greet() -> PromptGet {
    let arguments = json!({ "name": "you", "language": "Danish" }).as_object().cloned();
    PromptGet { server: name("demo"), name: "greet".to_owned(), arguments, requester: None }
}

async fn complete(harness: &mut Harness, reference: Value, argument: &str, value: &str) -> Result<Value, CommandError> {
    let argument = json!({ "name": argument, "value": value });
    let params = json!({ "server": "demo", "ref": reference, "argument": argument });
    harness.editor.raw_command("mcp.complete", params).await
}

fn denied(error: CommandError) {
    assert_eq!(error.kind(), Some(ErrorKind::Denied), "{error}");
}

/// The newest record.
async fn record(harness: &mut Harness) -> Call {
    harness.run(Calls::default()).await.calls.remove(0)
}

fn outline(call: &Call) -> (CallKind, &str, &str, bool) {
    (call.kind, &call.tool, &call.decision, call.success)
}

#[tokio::test]
async fn what_a_plugin_reads_for_a_model_is_asked_about() {
    let mut harness = harness(json!({}), json!({})).await;
    let requester = Some(Requester { kind: RequesterKind::Plugin, name: "chat".to_owned() });
    harness.run(ResourceRead { requester: requester.clone(), ..read("demo://notes") }).await;
    let call = record(&mut harness).await;
    assert_eq!((call.requester.kind, call.requester.name.as_str()), (RequesterKind::Plugin, "chat"));
    let unlisted = harness.editor.start(ResourceRead { requester, ..read("demo://note/7") });
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert!(asked.title.contains("chat"), "{}", asked.title);
    harness.resolve(&asked, "deny").await;
    denied(harness.editor.answer(unlisted).await.unwrap_err());
}

#[tokio::test]
async fn what_the_user_opens_is_not_asked_about_and_is_recorded() {
    let mut harness = harness(json!({}), json!({})).await;
    harness.run(read("demo://notes")).await;
    let call = record(&mut harness).await;
    assert_eq!(outline(&call), (CallKind::Resource, "resource:demo://notes", "allow-always", true));
    assert_eq!(call.requester.kind, RequesterKind::User);
    // Neither listed nor there: the server says so, and nobody is asked.
    assert_eq!(harness.fails(read("demo://note/7")).await.kind(), Some(ErrorKind::NotFound));
    let call = record(&mut harness).await;
    assert_eq!(outline(&call), (CallKind::Resource, "resource:demo://note/7", "allow-once", false));
    assert_eq!(call.decided_by, "user in an editor");
    harness.run(ResourceRead { subscribe: Some(true), ..read("demo://notes") }).await;
    let calls = harness.run(Calls::default()).await.calls;
    assert_eq!(outline(&calls[1]), (CallKind::Subscription, "resource:demo://notes", "allow-always", true));
    harness.run(greet()).await;
    assert_eq!(outline(&record(&mut harness).await), (CallKind::Prompt, "prompt:greet", "allow-always", true));
    let count = harness.run(Calls::default()).await.calls.len();
    complete(&mut harness, json!({ "type": "ref/prompt", "name": "greet" }), "language", "Da").await.unwrap();
    assert_eq!(harness.run(Calls::default()).await.calls.len(), count, "completion is not recorded");
    assert_eq!(harness.run(Approvals::default()).await.approvals, []);
}

#[tokio::test]
async fn no_spelling_of_a_uri_escapes_a_denial() {
    let denylist = json!({ "denylist": [{ "tool": "resource:demo://note/*" }] });
    let tools = json!({ "resource:demo://note/{number}": "deny", "*": "allow-always" });
    for (tools, policy) in [(tools, json!({})), (json!({ "*": "allow-always" }), denylist)] {
        let mut harness = harness(tools, policy).await;
        for uri in [
            "demo://note/1",
            "DEMO://note/1",
            "demo://note/%31",
            "demo://%6eote/1",
            "demo://%256eote/1",
            "demo://other/../note/1",
            "demo://other/%2e%2e/note/1",
            "demo://note//1",
            "demo:note/1",
            "demo://note/1\u{200b}",
            "demo://note/%ff",
        ] {
            denied(harness.fails(read(uri)).await);
            let call = record(&mut harness).await;
            assert_eq!(outline(&call), (CallKind::Resource, &*format!("resource:{uri}"), "deny", false));
            denied(harness.fails(read(uri)).await);
        }
        harness.run(read("demo://notes")).await;
    }
}

#[tokio::test]
async fn a_denied_prompt_and_a_denied_template_are_not_completed_either() {
    let rules = json!({ "prompt:greet": "deny", "resource:demo://note/1*": "deny" });
    let mut harness = harness(rules, json!({})).await;
    denied(harness.fails(greet()).await);
    assert_eq!(outline(&record(&mut harness).await), (CallKind::Prompt, "prompt:greet", "deny", false));
    let prompt = json!({ "type": "ref/prompt", "name": "greet", "uri": "demo://note/{number}" });
    denied(complete(&mut harness, prompt, "language", "Da").await.unwrap_err());
    assert_eq!(outline(&record(&mut harness).await), (CallKind::Completion, "prompt:greet", "deny", false));
    let template = json!({ "type": "ref/resource", "uri": "demo://note/{number}" });
    complete(&mut harness, template.clone(), "number", "2").await.unwrap();
    denied(complete(&mut harness, template, "number", "1").await.unwrap_err());
    let call = record(&mut harness).await;
    assert_eq!(outline(&call), (CallKind::Completion, "resource:demo://note/{number}", "deny", false));
    let unknown = complete(&mut harness, json!({ "type": "ref/tool", "name": "echo" }), "x", "").await.unwrap_err();
    assert_eq!(unknown.kind(), Some(ErrorKind::InvalidParams), "{unknown}");
}

#[tokio::test]
async fn arguments_that_a_rule_denies_are_not_completed_either() {
    let rules = json!({ "prompt:greet": [{ "when": { "language": "Danish" }, "level": "deny" }, "require-approval"] });
    let mut harness = harness(rules, json!({})).await;
    denied(harness.fails(greet()).await);
    let prompt = json!({ "type": "ref/prompt", "name": "greet" });
    complete(&mut harness, prompt.clone(), "language", "Du").await.unwrap();
    denied(complete(&mut harness, prompt.clone(), "language", "Danish").await.unwrap_err());
    let chosen = |arguments: Value| {
        json!({ "server": "demo", "ref": prompt, "argument": { "name": "name", "value": "y" },
            "context": { "arguments": arguments } })
    };
    harness.editor.raw_command("mcp.complete", chosen(json!({ "language": "Dutch" }))).await.unwrap();
    denied(harness.editor.raw_command("mcp.complete", chosen(json!({ "language": "Danish" }))).await.unwrap_err());
    let odd = harness.editor.raw_command("mcp.complete", chosen(json!({ "language": ["Danish"] }))).await.unwrap_err();
    assert_eq!(odd.kind(), Some(ErrorKind::InvalidParams), "{odd}");
}

#[tokio::test]
async fn everything_of_a_server_is_denied_disabled_or_turned_off_together() {
    for policy in [json!({ "default": "deny" }), json!({ "denylist": [{ "server": "demo" }] })] {
        let mut harness = harness(json!({}), policy).await;
        denied(harness.fails(read("demo://notes")).await);
        denied(harness.fails(greet()).await);
        assert_eq!(harness.run(Resources::default()).await.resources.len(), 1, "it is still listed");
    }
    let mut harness = harness(json!({ "resource:demo://notes": "disable", "prompt:*": "disable" }), json!({})).await;
    assert_eq!(harness.fails(read("demo://notes")).await.kind(), Some(ErrorKind::Disabled));
    let listed = harness.run(Resources::default()).await;
    assert_eq!((listed.resources.len(), listed.templates.len()), (0, 1));
    assert_eq!(harness.run(Prompts::default()).await.prompts.len(), 0);
    harness.run(ServerToggle { server: name("demo"), enabled: false }).await;
    for error in [harness.fails(read("demo://note/1")).await, harness.fails(greet()).await] {
        assert_eq!(error.kind(), Some(ErrorKind::Disabled), "{error}");
    }
    let call = record(&mut harness).await;
    assert_eq!(outline(&call), (CallKind::Prompt, "prompt:greet", "deny", false), "a record for this, too");
}

#[tokio::test]
async fn a_level_for_this_session_is_set_and_explained_for_a_resource() {
    let mut harness = harness(json!({}), json!({})).await;
    harness.run(policy("demo", "resource:demo://notes", Some(Level::Deny), Scope::Session)).await;
    denied(harness.fails(read("demo://notes")).await);
    denied(harness.fails(ResourceRead { subscribe: Some(true), ..read("demo://notes") }).await);
    let explain =
        Policies { server: Some(name("demo")), tool: Some("resource:demo://notes".to_owned()), ..Policies::default() };
    let explained = harness.run(explain).await.policies.remove(0);
    assert_eq!((explained.level, &*explained.source), (Level::Deny, "session level demo.resource:demo://notes"));
    // A level for all tools does not lift it.
    harness.run(policy("demo", "*", Some(Level::AllowSession), Scope::Session)).await;
    denied(harness.fails(read("demo://notes")).await);
}

#[tokio::test]
async fn a_project_server_that_is_not_trusted_is_not_read() {
    let project = json!({ "servers": { "theirs": demo(json!({ "resource:*": "allow-always" })) } });
    let mut harness = Harness::new(json!({}), project).await;
    let theirs = ResourceRead { server: name("theirs"), ..read("demo://notes") };
    assert_eq!(harness.fails(theirs).await.kind(), Some(ErrorKind::NeedsTrust));
    assert_eq!(outline(&record(&mut harness).await), (CallKind::Resource, "resource:demo://notes", "deny", false));
}
