//! What the user agrees to when an agent calls: a question ends with its agent, says where to answer it, moves on when
//! the editor closes, and its answer is bound to what was shown.

use std::time::{Duration, Instant};

use mcp_sidecar::engine::Notice;
use mcp_sidecar::protocol::answers::Resolved;
use mcp_sidecar::protocol::commands::{ApprovalResolve, Approvals, Calls, Metrics};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::protocol::types::{AnswerPlace, AnsweredIn, Approval, ApprovalKind, ApprovalOutcome, ClosedApproval};
use mcp_sidecar::settings::Settings;
use mcp_sidecar::store::CallQuery;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::reads::question;
use crate::support::commands::{name, object, resolve};
use crate::support::harness::demo;
use crate::support::{TestEditor, attach_to};

/// Less than the five seconds that a question waits for an editor to come back.
const AT_ONCE: Duration = Duration::from_secs(4);

/// An editor with the abilities of the plugin, and a name.
async fn open(host: &Host, name: &str) -> TestEditor {
    let (mut editor, _end) = attach_to(&host.engine);
    for noise in [
        "textDocument/publishDiagnostics",
        "mcp/log",
        "mcp/callFinished",
        "mcp/configReloaded",
        "mcp/toolsChanged",
        "mcp/serverChanged",
    ] {
        editor.ignore(noise);
    }
    let abilities = json!({ "version": "0", "approvals": true, "elicitation": true });
    let more = json!({ "clientInfo": { "name": name }, "processId": 4242,
        "capabilities": { "experimental": { "mcpSidecar": abilities } } });
    editor.initialize(&[&host.home.project()], more).await;
    editor
}

/// An agent that has listed its tools.
async fn connect(host: &Host, capabilities: Value) -> RawAgent {
    let mut agent = RawAgent::new(host.connect(1 << 20));
    agent.initialize(capabilities).await;
    agent.ask(1, "tools/list", json!({})).await;
    agent
}

/// Waits until no question is shown.
async fn no_question(editor: &mut TestEditor) {
    editor.event_where(|changed: &ApprovalsChanged| changed.approvals.is_empty()).await;
}

/// Waits until a question has ended.
async fn ending(editor: &mut TestEditor) -> ClosedApproval {
    editor.event_where(|changed: &ApprovalsChanged| !changed.closed.is_empty()).await.closed.remove(0)
}

async fn begin_echo(agent: &mut RawAgent, id: i64, text: &str) {
    agent.begin(id, "tools/call", json!({ "name": "demo__echo", "arguments": { "text": text } })).await;
}

/// The text of a result.
fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("not a result: {answer:#}"))
}

/// The newest record of a call.
async fn last_record(host: &Host) -> mcp_sidecar::model::CallRecord {
    host.engine.calls(CallQuery::default()).await.unwrap().remove(0)
}

fn settings(text: &str) -> Settings {
    let (settings, problems) = Settings::from_toml(text);
    assert_eq!(problems, []);
    settings
}

#[tokio::test]
async fn a_question_shows_the_metadata_that_the_server_gets_besides_the_arguments() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({})).await;
    let note = |meta: Value| json!({ "name": "demo__echo", "arguments": { "text": "x" }, "_meta": meta });
    let own = json!({ "progressToken": 1, "mcp-sidecar/workflow": "w" });
    agent.begin(2, "tools/call", note(own)).await;
    let asked = question(&mut editor).await;
    assert!(!asked.detail.contains("metadata"), "it stays here: {asked:?}");
    editor.call(resolve(&asked, "allow-once")).await.unwrap();
    agent.next().await;
    agent.begin(3, "tools/call", note(json!({ "example.com/to": "all\u{200b}" }))).await;
    let asked = question(&mut editor).await;
    let line = "The agent also sends metadata, which no rule checks (27 bytes): {\"example.com/to\":\"all⟨U+200B⟩\"}";
    assert!(asked.detail.contains(line), "{asked:?}");
    editor.call(resolve(&asked, "allow-once")).await.unwrap();
    agent.next().await;
    agent.begin(4, "tools/call", note(json!({ "example.com/to": "all ".repeat(5_000) }))).await;
    let asked = question(&mut editor).await;
    let detail = &asked.detail;
    assert!(detail.contains("which no rule checks (20021 bytes)") && detail.len() < 2_000, "{detail}");
}

#[tokio::test]
async fn an_agent_that_goes_takes_its_questions_and_its_calls_with_it() {
    let host = Host::new(json!({ "demo": demo(json!({ "countdown": "allow-session" })) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({})).await;
    let mut notices = host.engine.notices();
    let countdown = json!({ "name": "demo__countdown", "arguments": { "from": 100, "interval": 100 } });
    agent.begin(2, "tools/call", countdown).await;
    begin_echo(&mut agent, 3, "x").await;
    let question = question(&mut editor).await;
    let gone = Instant::now();
    drop(agent);
    assert_eq!(ending(&mut editor).await.message, "withdrawn: the agent disconnected");
    let late = editor.call(resolve(&question, "allow-once")).await.unwrap_err();
    assert_eq!(late.kind(), Some(ErrorKind::NotFound), "{late}");
    let mut ended = Vec::new();
    while ended.len() < 2 {
        if let Notice::CallFinished(record) = notices.recv().await.unwrap() {
            ended.push(record.error.clone().unwrap());
        }
    }
    assert_eq!(ended, ["the agent disconnected", "the agent disconnected"]);
    assert!(gone.elapsed() < AT_ONCE, "{:?}", gone.elapsed());
}

#[tokio::test]
async fn a_waiting_call_reports_progress_that_says_where_to_answer() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({})).await;
    agent.notifications.clear();
    let call = json!({ "name": "demo__countdown", "arguments": { "from": 2, "interval": 5 }, "_meta": { "progressToken": 7 } });
    agent.begin(2, "tools/call", call).await;
    let question = question(&mut editor).await;
    let mut values = Vec::new();
    for _ in 0..2 {
        let progress = agent.notified("notifications/progress").await;
        assert_eq!(progress["message"], "waiting for your approval in Neovim");
        assert_eq!(progress["progressToken"], 7);
        values.push(progress["progress"].as_f64().unwrap());
    }
    editor.call(resolve(&question, "allow-once")).await.unwrap();
    assert_eq!(text(&agent.next().await), "lift-off");
    let reported = agent.notifications.iter().filter(|message| message["method"] == "notifications/progress");
    values.extend(reported.map(|message| message["params"]["progress"].as_f64().unwrap()));
    assert!(values.is_sorted_by(|one, next| one < next), "{values:?}");
    assert_eq!(values.last(), Some(&2.0), "the values of the tool are not changed: {values:?}");
}

#[tokio::test]
async fn the_question_of_a_closed_editor_moves_on_to_the_agent() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({ "elicitation": {} })).await;
    begin_echo(&mut agent, 2, "x").await;
    question(&mut editor).await;
    drop(editor);
    let asked = agent.next().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked:#}");
    let offered = &asked["params"]["requestedSchema"]["properties"]["decision"]["oneOf"];
    let offered: Vec<&Value> = offered.as_array().unwrap().iter().map(|one| &one["const"]).collect();
    assert_eq!(offered, ["allow-once", "deny"], "an answer in the agent's dialog is for this once");
    let yes = json!({ "action": "accept", "content": { "decision": "allow-once" } });
    agent.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes })).await;
    assert_eq!(text(&agent.next().await), "x");
    let record = last_record(&host).await;
    assert_eq!(record.decision, "allow-once");
    assert_eq!(record.decided_by, "user in the dialog of the agent `liner`, this once");
}

#[tokio::test]
async fn the_form_of_a_server_moves_on_in_the_same_way() {
    let host = Host::new(json!({ "demo": demo(json!({ "*": "allow-session" })) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({ "elicitation": {} })).await;
    agent.begin(2, "tools/call", json!({ "name": "demo__ask_name", "arguments": {} })).await;
    assert_eq!(question(&mut editor).await.kind, ApprovalKind::Elicitation);
    drop(editor);
    let asked = agent.next().await;
    assert_eq!(asked["params"]["message"], "What is your name?", "{asked:#}");
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    agent.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer })).await;
    assert_eq!(text(&agent.next().await), "Hello, Ada!");
}

#[tokio::test]
async fn an_editor_that_comes_back_finds_its_question() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({ "elicitation": {} })).await;
    begin_echo(&mut agent, 2, "x").await;
    let before = question(&mut editor).await;
    drop(editor);
    let mut editors = host.engine.editors().subscribe();
    editors.wait_for(|count| *count == 0).await.unwrap();
    let mut editor = open(&host, "Neovim").await;
    let after = question(&mut editor).await;
    assert_eq!(after.id, before.id);
    editor.call(resolve(&after, "allow-once")).await.unwrap();
    assert_eq!(text(&agent.next().await), "x", "the agent was not asked");
}

#[tokio::test]
async fn a_question_without_anyone_to_ask_is_refused_without_a_way_around_it() {
    let host = Host::new(json!({ "demo": demo(json!({ "add": "deny" })) }));
    let folder = host.home.project().file_name().unwrap().to_str().unwrap().to_owned();
    let place = format!("The user can allow this in an editor that has `{folder}` open.");
    let unasked = format!("`mcp__demo__echo` was not allowed: there was no one to ask. {place}");
    let unasked = unasked.as_str();
    let mut plain = connect(&host, json!({})).await;
    begin_echo(&mut plain, 2, "x").await;
    assert_eq!(text(&plain.next().await), unasked);
    // Programs without a user answer such a question themselves.
    let mut headless = connect(&host, json!({ "elicitation": {} })).await;
    let by = "declined in the dialog of the agent `liner`, by the user or by the agent itself";
    // This is also true if a person declined.
    let declined = format!(
        "`mcp__demo__echo` was not allowed: there was no one to ask, or the user declined in the agent's dialog. {place}"
    );
    let endings = [("cancel", unasked, "there was no one to ask"), ("decline", &*declined, by)];
    for (id, (action, said, decided_by)) in (2..).zip(endings) {
        begin_echo(&mut headless, id, "x").await;
        let asked = headless.next().await;
        headless.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": action } })).await;
        assert_eq!(text(&headless.next().await), said, "{action}");
        assert_eq!(last_record(&host).await.decided_by, decided_by);
    }
    plain.begin(3, "tools/call", json!({ "name": "demo__add", "arguments": { "a": 1, "b": 2 } })).await;
    assert_eq!(text(&plain.next().await), "`mcp__demo__add` was denied: its level is `deny`");
    let record = last_record(&host).await;
    assert!(record.decided_by.contains("mcp.json:1"), "{record:?}");
    let mut editor = open(&host, "Neovim").await;
    begin_echo(&mut plain, 4, "x").await;
    question(&mut editor).await;
    drop(editor);
    assert_eq!(text(&plain.next().await), unasked, "the last editor has closed");
}

#[tokio::test]
async fn a_setting_decides_whether_the_agent_may_ask() {
    let servers = json!({ "demo": demo(json!({})) });
    let never = Host::with(servers.clone(), settings("[approvals]\nask-agent = 'never'\n"));
    let mut agent = connect(&never, json!({ "elicitation": {} })).await;
    begin_echo(&mut agent, 2, "x").await;
    assert!(text(&agent.next().await).contains("there was no one to ask"));

    let always = Host::with(servers, settings("[approvals]\nask-agent = 'always'\n"));
    let mut editor = open(&always, "Neovim").await;
    let mut agent = connect(&always, json!({ "elicitation": {} })).await;
    for id in [2, 3] {
        begin_echo(&mut agent, id, "x").await;
        let shown = question(&mut editor).await;
        let asked = agent.next().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked:#}");
        if id == 2 {
            let yes = json!({ "action": "accept", "content": { "decision": "allow-once" } });
            agent.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes })).await;
        } else {
            // The editor still shows the question, so this is not a no.
            agent.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "cancel" } })).await;
            agent.ask(9, "ping", json!({})).await;
            editor.call(resolve(&shown, "allow-once")).await.unwrap();
        }
        assert_eq!(text(&agent.next().await), "x");
        no_question(&mut editor).await;
    }
    // An answer in the editor closes the dialog of the agent.
    begin_echo(&mut agent, 4, "x").await;
    let shown = question(&mut editor).await;
    let asked = agent.next().await;
    editor.call(resolve(&shown, "allow-once")).await.unwrap();
    assert_eq!(text(&agent.next().await), "x");
    assert_eq!(agent.notified("notifications/cancelled").await["requestId"], asked["id"]);
}

/// The call is no longer what the agent asked for, whatever rule matches it now.
#[tokio::test]
async fn a_call_that_the_user_changed_is_theirs_and_the_agent_is_told_how_it_ended() {
    let rules = json!([{ "when": { "sides": { "max": 6 } }, "level": "allow-session" },
        { "when": { "sides": { "in": [99] } }, "level": "deny" }, "require-approval"]);
    let host = Host::new(json!({ "demo": demo(json!({ "roll_dice": rules })) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({})).await;
    let user = "user in Neovim (process 4242)";
    let cases = [
        (30, "allow-once", format!("{user}, who changed the arguments")),
        (5, "allow-once", format!("{user}, who changed the arguments (also allowed by ")),
        (99, "deny", format!("after the {user} changed the arguments")),
    ];
    for (id, (sides, decision, by)) in (2..).zip(cases) {
        agent.begin(id, "tools/call", json!({ "name": "demo__roll_dice", "arguments": { "sides": 20 } })).await;
        let shown = question(&mut editor).await;
        let arguments = Some(object(json!({ "sides": sides })));
        editor.call(ApprovalResolve { arguments, ..resolve(&shown, "allow-once") }).await.unwrap();
        let answer = agent.next().await;
        let said = text(&answer);
        let change = format!("The user changed the arguments of this call before allowing it: sides: 20 → {sides}");
        assert!(said.starts_with(&change), "{said}");
        assert_eq!(
            said.ends_with("\n`mcp__demo__roll_dice` was denied: its level is `deny`"),
            decision == "deny",
            "{said}"
        );
        let record = last_record(&host).await;
        assert_eq!(record.decision, decision);
        assert!(record.decided_by.contains(&by), "{}", record.decided_by);
        let arguments = [record.arguments.unwrap(), record.requested_arguments.unwrap()].map(|json| json.to_string());
        assert_eq!(arguments, [format!("{{\"sides\":{sides}}}"), "{\"sides\":20}".to_owned()]);
        no_question(&mut editor).await;
    }
}

#[tokio::test]
async fn a_denied_call_is_not_asked_again_at_once() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({})).await;
    begin_echo(&mut agent, 2, "x").await;
    let first = question(&mut editor).await;
    let note = Some("not on this branch".to_owned());
    editor.call(ApprovalResolve { note, ..resolve(&first, "deny") }).await.unwrap();
    let denied = text(&agent.next().await).to_owned();
    no_question(&mut editor).await;
    begin_echo(&mut agent, 3, "x").await;
    let again = agent.next().await;
    assert!(text(&again).contains("the user denied it: not on this branch"), "{again:#}");
    assert_ne!(text(&again), denied, "the agent learns that it asked again");
    assert!(last_record(&host).await.decided_by.ends_with(", less than a minute ago"));
    begin_echo(&mut agent, 4, "y").await;
    let other = question(&mut editor).await;
    assert_eq!(other.arguments, Some(json!({ "text": "y" })), "other arguments are another call");
    editor.call(resolve(&other, "allow-once")).await.unwrap();
    assert_eq!(text(&agent.next().await), "y");
    let mut another = RawAgent::new(host.connect_as(
        mcp_sidecar::agent::AgentOptions { label: Some("another".to_owned()), ..Default::default() },
        1 << 20,
    ));
    another.initialize(json!({})).await;
    begin_echo(&mut another, 2, "x").await;
    question(&mut editor).await;
}

#[tokio::test]
async fn the_user_can_change_a_call_and_the_agent_is_told_how() {
    let rule = json!([{ "when": { "text": "secret" }, "level": "deny" }, "require-approval"]);
    let host = Host::new(json!({ "demo": demo(json!({ "echo": rule })) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({})).await;
    begin_echo(&mut agent, 2, "rm -r /").await;
    let asked = question(&mut editor).await;
    let edited = |asked: &Approval, arguments: Value| ApprovalResolve {
        arguments: Some(object(arguments)),
        ..resolve(asked, "allow-once")
    };
    let invalid = editor.call(edited(&asked, json!({ "text": 5 }))).await.unwrap_err();
    assert_eq!(invalid.kind(), Some(ErrorKind::InvalidArguments), "{invalid}");
    editor.call(edited(&asked, json!({ "text": "ls" }))).await.unwrap();
    let result = agent.next().await;
    assert_eq!(
        text(&result),
        "The user changed the arguments of this call before allowing it: text: \"rm -r /\" → \"ls\""
    );
    assert_eq!(result["result"]["content"][1]["text"], "ls", "{result:#}");
    let record = editor.call(Calls::default()).await.unwrap().calls.remove(0);
    assert_eq!(record.arguments, Some(json!({ "text": "ls" })));
    assert_eq!(record.requested_arguments, Some(json!({ "text": "rm -r /" })));

    no_question(&mut editor).await;
    begin_echo(&mut agent, 3, "x").await;
    let asked = question(&mut editor).await;
    editor.call(edited(&asked, json!({ "text": "secret" }))).await.unwrap();
    let refused = agent.next().await;
    assert!(text(&refused).contains("its level is `deny`"), "the rules apply to the new arguments: {refused:#}");
}

#[tokio::test]
async fn a_record_says_who_decided_and_how_long_that_took() {
    let host = Host::new(json!({ "demo": demo(json!({ "countdown": "allow-session" })) }));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({})).await;
    begin_echo(&mut agent, 2, "x").await;
    let asked = question(&mut editor).await;
    let meanwhile = json!({ "name": "demo__countdown", "arguments": { "from": 3, "interval": 100 } });
    agent.begin(3, "tools/call", meanwhile).await;
    assert_eq!(agent.next().await["id"], 3);
    editor.call(resolve(&asked, "allow-once")).await.unwrap();
    assert_eq!(text(&agent.next().await), "x");
    agent.begin(4, "tools/call", json!({ "name": "demo__echo", "arguments": { "text": 5 } })).await;
    agent.next().await;
    let calls = editor.call(Calls { tool: Some("echo".to_owned()), ..Calls::default() }).await.unwrap().calls;
    let [invalid, allowed] = &calls[..] else { panic!("{calls:?}") };
    assert_eq!((&*invalid.decision, &*invalid.decided_by), ("invalid", "invalid-arguments"));
    assert_eq!(allowed.decided_by, "user in Neovim (process 4242)");
    assert!(allowed.waited_ms >= 300.0, "{allowed:?}");
    assert!(allowed.duration_ms < 300.0, "the time of the user is not the tool's: {allowed:?}");
    let metrics = editor.call(Metrics { server: Some(name("demo")) }).await.unwrap();
    let echo = metrics.servers[0].tools.iter().find(|tool| tool.tool == "echo").unwrap();
    assert_eq!(echo.calls, 1, "an invalid call has not run: {echo:?}");
    assert!(echo.p99_ms < 300.0 && echo.waited_ms >= 300.0, "{echo:?}");
}

#[tokio::test]
async fn the_calls_of_one_agent_are_answered_together() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut editor = open(&host, "Neovim").await;
    let (mut agent, mut other) = (connect(&host, json!({})).await, connect(&host, json!({})).await);
    begin_echo(&mut other, 2, "other").await;
    question(&mut editor).await;
    for (id, text) in (2..).zip(["x", "y", "z"]) {
        begin_echo(&mut agent, id, text).await;
        editor.event_where(|changed: &ApprovalsChanged| changed.approvals.len() as i64 == id).await;
    }
    let list = editor.call(Approvals::default()).await.unwrap();
    let [group] = &list.groups[..] else { panic!("{list:?}") };
    let ids: Vec<String> = list.approvals[1..].iter().map(|each| each.id.clone()).collect();
    assert_eq!(group.ids, ids, "the call of another connection is not one of them");
    assert_eq!((group.kind, &*group.title), (ApprovalKind::Tool, "The agent `liner` wants to make 3 calls"));
    let offered: Vec<&str> = group.answers.iter().map(|answer| &*answer.label).collect();
    assert_eq!(offered, ["Deny all 3", "Allow all 3 once"]);
    assert_eq!(list.approvals[1].summary, "`echo` on `demo` {\"text\":\"x\"}");

    begin_echo(&mut agent, 5, "late").await;
    editor.event_where(|changed: &ApprovalsChanged| changed.approvals.len() == 5).await;
    let answer = editor.call(ApprovalResolve::several(group.ids.clone(), "allow-once")).await.unwrap();
    assert_eq!(answer, Resolved { resolved: ids, gone: vec![], effect: None, short_effect: None, undo: None });
    let mut results: Vec<String> = Vec::new();
    for _ in 0..3 {
        results.push(text(&agent.next().await).to_owned());
    }
    results.sort();
    assert_eq!(results, ["x", "y", "z"]);
    let left = editor.call(Approvals::default()).await.unwrap().approvals;
    let left: Vec<_> = left.into_iter().map(|each| each.arguments.unwrap()["text"].take()).collect();
    assert_eq!(left, ["other", "late"], "a question that came later is not answered");
}

#[tokio::test]
async fn an_editor_is_told_that_the_agent_answered_or_left() {
    let servers = json!({ "demo": demo(json!({})) });
    let host = Host::with(servers, settings("[approvals]\nask-agent = 'always'\n"));
    let mut editor = open(&host, "Neovim").await;
    let mut agent = connect(&host, json!({ "elicitation": {} })).await;
    begin_echo(&mut agent, 2, "x").await;
    question(&mut editor).await;
    let asked = agent.next().await;
    let yes = json!({ "action": "accept", "content": { "decision": "allow-once" } });
    agent.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes })).await;
    assert_eq!(text(&agent.next().await), "x");
    let closed = ending(&mut editor).await;
    let agent_dialog = AnsweredIn { place: AnswerPlace::Agent, name: Some("liner".to_owned()), pid: None };
    assert_eq!(closed.by, Some(agent_dialog));
    assert_eq!(closed.message, "“Allow once”, by the user in the dialog of the agent `liner`, this once");
    begin_echo(&mut agent, 3, "x").await;
    question(&mut editor).await;
    drop(agent);
    let closed = ending(&mut editor).await;
    assert_eq!((closed.outcome, closed.by), (ApprovalOutcome::Withdrawn, None), "{}", closed.message);
}
