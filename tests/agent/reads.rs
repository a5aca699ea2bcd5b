//! Resources, prompts and completion that an agent asks for pass the same gate as its calls.

use mcp_sidecar::model::{CallKind, CallRecord, RequesterKind};
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::protocol::types::Approval;
use mcp_sidecar::settings::Settings;
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::support::commands::resolve;
use crate::support::editor::TestEditor;
use crate::support::harness::{demo, open_editor};

async fn host(tools: Value, settings: &str) -> (Host, RawAgent) {
    let (settings, problems) = Settings::from_toml(settings);
    assert_eq!(problems, []);
    let host = Host::with(json!({ "demo": demo(tools) }), settings);
    let mut agent = host.agent().await;
    agent.ask(1, "resources/list", json!({})).await;
    (host, agent)
}

async fn read(agent: &mut RawAgent, id: i64, uri: &str) -> Value {
    agent.ask(id, "resources/read", json!({ "uri": uri })).await
}

fn denied(answer: &Value) {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(
        message.contains(" was denied: ") || message.contains(" was not allowed: there was no one to ask"),
        "{answer:#}"
    );
}

async fn record(host: &Host) -> CallRecord {
    host.engine.calls(CallQuery::default()).await.unwrap().remove(0)
}

fn outline(record: &CallRecord) -> (CallKind, &str, &str, &str) {
    assert_eq!((record.requester.kind, &*record.requester.name), (RequesterKind::Agent, "liner"));
    (record.kind, &record.tool, &record.decision, &record.decided_by)
}

/// Waits for the next question that is shown.
pub async fn question(editor: &mut TestEditor) -> Approval {
    let mut asked = editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await;
    asked.approvals.remove(0)
}

#[tokio::test]
async fn what_a_server_lists_passes_and_is_recorded() {
    let (host, mut agent) = host(json!({}), "").await;
    assert!(read(&mut agent, 2, "demo://notes").await["result"]["contents"].is_array());
    let by = "built-in default for what the server lists";
    assert_eq!(outline(&record(&host).await), (CallKind::Resource, "resource:demo://notes", "allow-always", by));
    let prompt = json!({ "name": "demo__greet", "arguments": { "name": "you", "language": "Danish" } });
    assert!(agent.ask(3, "prompts/get", prompt).await["result"]["messages"].is_array());
    assert_eq!(outline(&record(&host).await), (CallKind::Prompt, "prompt:greet", "allow-always", by));
    assert!(agent.ask(4, "resources/subscribe", json!({ "uri": "demo://notes" })).await["result"].is_object());
    assert_eq!(outline(&record(&host).await), (CallKind::Subscription, "resource:demo://notes", "allow-always", by));
    read(&mut agent, 5, "other://x").await;
    assert_eq!(outline(&record(&host).await), (CallKind::Resource, "resource:other://x", "invalid", "unknown"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_name_that_an_agent_remembers_waits_for_a_server_that_is_starting() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let wait = "until [ -e \"$0\" ]; do sleep 0.02; done; exec \"$@\"";
    let server = env!("CARGO_BIN_EXE_mcp-sidecar");
    let host = Host::new(json!({ "demo": { "command": "sh", "args": ["-c", wait, gate, server, "demo-server"] } }));
    let mut agent = host.agent().await;
    let prompt = json!({ "name": "demo__greet", "arguments": { "name": "you", "language": "Danish" } });
    let reference = json!({ "type": "ref/prompt", "name": "demo__greet" });
    let argument = json!({ "name": "language", "value": "" });
    agent.begin(2, "resources/read", json!({ "uri": "demo://notes" })).await;
    agent.begin(3, "prompts/get", prompt).await;
    agent.begin(4, "completion/complete", json!({ "ref": reference, "argument": argument })).await;
    // The agent is answered in the order of its messages until they wait, so this answer shows that they do.
    assert!(agent.ask(5, "ping", json!({})).await["result"].is_object());
    std::fs::write(gate, "").unwrap();
    for _ in 2..=4 {
        let answer = agent.next().await;
        assert!(answer["result"].is_object(), "{answer:#}");
    }
}

#[tokio::test]
async fn what_a_server_does_not_list_is_asked_about() {
    let (host, mut agent) = host(json!({ "*": "allow-always" }), "").await;
    let mut editor = open_editor(&host.home, &host.engine).await;
    agent.begin(2, "resources/read", json!({ "uri": "demo://note/7" })).await;
    let asked = question(&mut editor).await;
    assert_eq!(asked.title, "The agent `liner` wants to read `demo://note/7` from `demo`");
    let resource = asked.resource.clone().unwrap();
    assert_eq!((&*resource.uri, resource.template.as_deref()), ("demo://note/7", Some("demo://note/{number}")));
    assert_eq!((&asked.tool, &asked.arguments), (&None, &None));
    assert!(asked.detail.starts_with("The server gets this URI: demo://note/7\nIt matches the template "), "{asked:?}");
    let all = ["allow-once", "allow-session", "allow-project", "allow-always", "deny", "disable"];
    assert_eq!(asked.options, all);
    let session = &asked.answers[1];
    assert_eq!(session.effect.as_deref(), Some("The resource `demo://note/7` of `demo` is allowed for this session."));
    editor.call(resolve(&asked, "allow-session")).await.unwrap();
    assert_eq!(agent.next().await["error"]["code"], -32002, "the server was asked, and has no such note");
    let allowed = record(&host).await;
    assert_eq!((&*allowed.tool, &*allowed.decision), ("resource:demo://note/7", "allow-session"));
    // The answer counts for this URI, and for no other spelling.
    assert_eq!(read(&mut agent, 3, "demo://note/7").await["error"]["code"], -32002);
    for (id, uri) in [(4, "demo://note/8"), (5, "demo://note/%37"), (6, "demo://nothing")] {
        agent.begin(id, "resources/read", json!({ "uri": uri })).await;
        let asked = question(&mut editor).await;
        assert_eq!(asked.resource.as_ref().unwrap().uri, uri);
        editor.call(resolve(&asked, "deny")).await.unwrap();
        denied(&agent.next().await);
        assert_eq!((&*record(&host).await.tool, &*record(&host).await.decision), (&*format!("resource:{uri}"), "deny"));
    }
    agent.begin(7, "resources/subscribe", json!({ "uri": "demo://note/9" })).await;
    let asked = question(&mut editor).await;
    assert_eq!(asked.title, "The agent `liner` wants to watch `demo://note/9` of `demo` for changes");
    editor.call(resolve(&asked, "disable")).await.unwrap();
    denied(&agent.next().await);
    denied(&read(&mut agent, 8, "demo://note/%39").await);
}

#[tokio::test]
async fn the_agent_asks_its_user_if_there_is_no_editor() {
    let (host, mut agent) = host(json!({}), "").await;
    denied(&read(&mut agent, 2, "demo://note/7").await);
    assert_eq!(record(&host).await.decision, "deny");
    let mut agent = RawAgent::new(host.connect(1 << 20));
    agent.initialize(json!({ "elicitation": {} })).await;
    agent.begin(2, "resources/read", json!({ "uri": "demo://note/7" })).await;
    let asked = agent.next().await;
    assert!(asked["params"]["message"].as_str().unwrap().contains("read `demo://note/7` from `demo`"), "{asked:#}");
    let yes = json!({ "action": "accept", "content": { "decision": "allow-once" } });
    agent.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes })).await;
    assert_eq!(agent.next().await["error"]["code"], -32002);
    assert_eq!(record(&host).await.decision, "allow-once");
}

#[tokio::test]
async fn a_ceiling_holds_for_resources_prompts_and_completion() {
    let (host, mut agent) = host(json!({ "resource:*": "allow-always" }), "[agents.liner]\nceiling = 'deny'\n").await;
    let by = "config.toml agents.liner.ceiling";
    let reference = |kind: &str, key: &str, name: &str| json!({ "ref": { "type": kind, key: name }, "argument": { "name": "number", "value": "1" } });
    for (id, method, params, kind) in [
        (2, "resources/read", json!({ "uri": "demo://notes" }), CallKind::Resource),
        (3, "resources/read", json!({ "uri": "demo://note/1" }), CallKind::Resource),
        (4, "resources/subscribe", json!({ "uri": "demo://notes" }), CallKind::Subscription),
        (5, "prompts/get", json!({ "name": "demo__greet" }), CallKind::Prompt),
        (6, "completion/complete", reference("ref/prompt", "name", "demo__greet"), CallKind::Completion),
        (7, "completion/complete", reference("ref/resource", "uri", "demo://note/{number}"), CallKind::Completion),
    ] {
        denied(&agent.ask(id, method, params).await);
        let record = record(&host).await;
        assert_eq!((record.kind, &*record.decision), (kind, "deny"), "{method}");
        assert!(record.decided_by.starts_with(by), "{record:?}");
    }
}

#[tokio::test]
async fn denied_resources_and_prompts_are_refused_and_disabled_ones_are_hidden() {
    let rules = json!({ "resource:demo://note/{number}": "deny", "prompt:greet": "deny" });
    let (_host, mut agent) = host(rules, "").await;
    for (id, uri) in (2..).zip(["demo://note/1", "DEMO://note/1", "mcp+demo://demo://note/%31"]) {
        denied(&read(&mut agent, id, uri).await);
    }
    denied(&agent.ask(9, "prompts/get", json!({ "name": "demo__greet" })).await);
    let (_host, mut agent) = host(json!({ "resource:*": "disable", "prompt:*": "disable" }), "").await;
    for (id, method, list) in [
        (2, "resources/list", "resources"),
        (3, "resources/templates/list", "resourceTemplates"),
        (4, "prompts/list", "prompts"),
    ] {
        assert_eq!(agent.ask(id, method, json!({})).await["result"][list], json!([]), "{method}");
    }
    denied(&read(&mut agent, 5, "mcp+demo://demo://notes").await);
}

#[tokio::test]
async fn the_tools_of_an_agents_section_also_exclude_resources_and_prompts() {
    let listed = async |tools: &str| {
        let (_host, mut agent) = host(json!({}), &format!("[agents.liner]\ntools = {tools}\n")).await;
        let resources =
            agent.ask(2, "resources/list", json!({})).await["result"]["resources"].as_array().unwrap().len();
        let prompts = agent.ask(3, "prompts/list", json!({})).await["result"]["prompts"].as_array().unwrap().len();
        let read = read(&mut agent, 4, "mcp+demo://demo://notes").await["result"].is_object();
        (resources, prompts, read)
    };
    assert_eq!(listed("['*']").await, (1, 1, true));
    assert_eq!(listed("['!demo__resource:DEMO://*']").await, (0, 1, false));
    assert_eq!(listed("['!*__prompt:*']").await, (1, 0, true));
    assert_eq!(listed("['!demo__*']").await, (0, 0, false));
    assert_eq!(listed("['demo__echo']").await, (0, 0, false), "only this tool");
    assert_eq!(listed("['demo__echo', 'demo__prompt:greet']").await, (0, 1, false));
}
