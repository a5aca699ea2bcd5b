//! A decision means what the user meant: it is kept, it takes effect in order, and it is used up once.

use futures::FutureExt;
use std::collections::BTreeMap;

use mcp_sidecar::engine::Engine;
use mcp_sidecar::model::{Level, Requester, RequesterKind, Scope};
use mcp_sidecar::protocol::commands::{
    ApprovalResolve, Approvals, Calls, ConfigReload, GrantRevoke, Grants, Policies, ServerToggle, ServerTrust, Servers,
    ToolCall, Tools,
};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::{ApprovalsChanged, ServerChanged};
use mcp_sidecar::protocol::types::{AnswerPlace, AnsweredIn, Approval, ApprovalKind, ApprovalOutcome, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::TestEditor;
use crate::support::commands::{distrust, name, policy, resolve, restart, start, stop, text, tool_call, trust};
use crate::support::harness::{Harness, demo, fixture, open_editor};

const ADD: &str = "mcp__demo__add";
/// Enough for a race to show, in tests that run on several threads: on one thread, commands happen to run in order.
const ROUNDS: usize = 30;

async fn harness(tools: Value) -> Harness {
    Harness::new(json!({ "servers": { "demo": demo(tools) } }), json!({})).await
}

/// The same user with a new engine, as after a restart of the machine.
async fn restarted(harness: Harness) -> Harness {
    let Harness { home, engine, editor } = harness;
    drop(editor);
    engine.shutdown().await;
    drop(engine);
    let engine = Engine::start(home.paths(), Settings::default());
    let editor = open_editor(&home, &engine).await;
    let mut harness = Harness { home, engine, editor };
    harness.until("demo", Status::Connected).await;
    harness
}

/// What a call comes to: `asks`, `runs` or the kind of its error. A question that comes up is withdrawn.
async fn tried(harness: &mut Harness) -> String {
    let mut call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    loop {
        let approvals = harness.run(Approvals::default()).await;
        if !approvals.approvals.is_empty() {
            return "asks".to_owned();
        }
        if let Some(answer) = (&mut call).now_or_never() {
            return answer.map_or_else(|error| error.kind().unwrap().to_string(), |_| "runs".to_owned());
        }
    }
}

#[tokio::test]
async fn every_decision_is_kept_or_forgotten_as_it_says_across_a_restart() {
    let mut table = String::new();
    for decision in ["allow-once", "allow-session", "allow-project", "allow-always", "deny", "disable"] {
        let mut harness = harness(json!({})).await;
        let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
        let approval = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
        harness.resolve(&approval, decision).await;
        let first = harness.editor.answer(call).await;
        let health = harness.engine.health().borrow().clone();
        assert!(health.is_good(), "{decision}: {health:?}");
        let mut harness = restarted(harness).await;
        let grants = harness.run(Grants {}).await.grants;
        let kept: Vec<&str> = grants.iter().map(|grant| grant.level.as_str()).collect();
        let now = if first.is_ok() { "runs" } else { "is refused" };
        table.push_str(&format!("{decision:13} {now}; after a restart {} {kept:?}\n", tried(&mut harness).await));
    }
    insta::assert_snapshot!(table, @r#"
    allow-once    runs; after a restart asks []
    allow-session runs; after a restart asks []
    allow-project runs; after a restart runs ["allow-project"]
    allow-always  runs; after a restart runs ["allow-always"]
    deny          is refused; after a restart asks []
    disable       is refused; after a restart disabled ["disable"]
    "#);
}

#[tokio::test]
async fn a_disabled_tool_is_disabled_in_its_own_project_only() {
    let mut harness = harness(json!({})).await;
    let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let approval = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&approval, "disable").await;
    harness.editor.answer(call).await.unwrap_err();
    assert_eq!(tried(&mut harness).await, "disabled");
    let other = harness.home.path("other");
    std::fs::create_dir(&other).unwrap();
    let folders = |path: &std::path::Path| vec![path.to_path_buf()];
    harness.engine.set_folders(folders(&other)).await;
    assert_eq!(tried(&mut harness).await, "asks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_first_answer_to_a_question_counts() {
    let mut harness = harness(json!({})).await;
    for round in 0..ROUNDS {
        let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
        let id = harness.approvals(ApprovalKind::Tool, 1).await.remove(0).id;
        let deny = harness.editor.start(ApprovalResolve::one(&id, "deny"));
        let allow = harness.editor.start(ApprovalResolve::one(&id, "allow-once"));
        harness.editor.answer(deny).await.unwrap();
        let late = harness.editor.answer(allow).await.unwrap_err();
        assert_eq!(late.kind(), Some(ErrorKind::NotFound), "round {round}");
        assert_eq!(harness.editor.answer(call).await.unwrap_err().kind(), Some(ErrorKind::Denied), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_of_several_levels_sent_in_a_row_holds() {
    let mut harness = harness(json!({})).await;
    for round in 0..ROUNDS {
        let levels = [Level::AllowSession, Level::Deny, Level::RequireApproval, Level::Deny];
        let sent = levels.map(|level| {
            let params = policy("demo", "add", Some(level), Scope::Session);
            harness.editor.start(params)
        });
        // Sent before any of them is answered: it must see them all.
        let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
        for id in sent {
            harness.editor.answer(id).await.unwrap();
        }
        assert_eq!(harness.editor.answer(call).await.unwrap_err().kind(), Some(ErrorKind::Denied), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_of_several_edits_of_a_file_holds() {
    let mut harness = harness(json!({})).await;
    harness.until("demo", Status::Connected).await;
    for round in 0..ROUNDS / 3 {
        let sent = [Level::AllowAlways, Level::RequireApproval, Level::Deny].map(|level| {
            let params = policy("demo", "add", Some(level), Scope::User);
            harness.editor.start(params)
        });
        let seen = harness.editor.start(Policies {
            server: Some(name("demo")),
            tool: Some("add".to_owned()),
            ..Default::default()
        });
        for id in sent {
            harness.editor.answer(id).await.unwrap();
        }
        let seen = harness.editor.answer(seen).await.unwrap();
        assert_eq!(seen.policies[0].level, Level::Deny, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_word_on_trust_and_on_switching_holds() {
    let mut harness = Harness::new(json!({}), json!({ "servers": { "demo": demo(json!({})) } })).await;
    harness.until("demo", Status::Pending).await;
    for round in 0..ROUNDS / 3 {
        for last in [false, true] {
            let shown = harness.status("demo").await;
            let sent = [last, !last, last]
                .map(|trusted| harness.editor.start(if trusted { trust(&shown) } else { distrust("demo") }));
            let seen = harness.editor.start(Servers { server: Some(name("demo")) });
            for id in sent {
                harness.editor.answer(id).await.unwrap();
            }
            let seen = harness.editor.answer(seen).await.unwrap();
            assert_eq!(seen.servers[0].needs_trust, !last, "round {round}");
        }
    }
    harness.until("demo", Status::Connected).await;
    for round in 0..ROUNDS {
        let sent =
            [false, true, false].map(|enabled| harness.editor.start(ServerToggle { server: name("demo"), enabled }));
        let tools = harness.editor.start(Tools { server: Some(name("demo")), ..Default::default() });
        for id in sent {
            harness.editor.answer(id).await.unwrap();
        }
        assert_eq!(harness.editor.answer(tools).await.unwrap().tools, [], "round {round}");
    }
}

/// Of several checks at the same time only the last one counts: the answer to each command waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_decision_about_trust_is_answered_when_it_has_taken_effect() {
    let mut harness = Harness::new(json!({}), json!({ "servers": { "demo": demo(json!({})) } })).await;
    harness.until("demo", Status::Pending).await;
    let (home, engine) = (&harness.home, &harness.engine);
    let (first, second) = tokio::join!(open_editor(home, engine), open_editor(home, engine));
    let mut editors = [first, second];
    for round in 0..ROUNDS {
        let shown = harness.status("demo").await;
        harness.run(trust(&shown)).await;
        let sent = editors.each_mut().map(|editor| editor.start(distrust("demo")));
        for (editor, id) in editors.iter_mut().zip(sent) {
            let answer = editor.answer(id).await.unwrap();
            assert!(answer.server.needs_trust, "round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_later_stop_supersedes_a_start_that_is_still_running() {
    let mut harness = harness(json!({})).await;
    harness.until("demo", Status::Connected).await;
    for round in 0..ROUNDS / 3 {
        let editor = &mut harness.editor;
        let (restarted, stopped) = (editor.start(restart("demo")), editor.start(stop("demo")));
        let (started, stopped_again) = (editor.start(start("demo")), editor.start(stop("demo")));
        for sent in [restarted, stopped, started, stopped_again] {
            editor.answer(sent).await.unwrap();
        }
        assert_eq!(harness.status("demo").await.status, Status::Stopped, "round {round}");
    }
}

/// A file is read again while an editor sets its own servers, as at the start of an editor.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_newest_config_holds_when_two_changes_of_it_overlap() {
    let harness = harness(json!({})).await;
    let engine = &harness.engine;
    let server = json!({ "type": "sdk", "name": "own" });
    for round in 0..ROUNDS * 4 {
        let project = json!({ "servers": { (format!("round-{round}")): { "command": "x", "enabled": false } } });
        harness.home.write("mcp.json", &project.to_string());
        let (reload, own) = (engine.clone(), engine.clone());
        let session = BTreeMap::from([("own".to_owned(), server.clone())]);
        let reload = tokio::spawn(async move { reload.reload().await });
        let own = tokio::spawn(async move { own.set_session(session).await });
        reload.await.unwrap().unwrap();
        own.await.unwrap().unwrap();
        assert!(engine.now().server(&name("own")).is_ok(), "round {round}");
        engine.set_session(BTreeMap::new()).await.unwrap();
    }
}

/// `allow-once` in a file lets one call pass, however many come at the same time and however calls are recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn allow_once_is_used_up_by_one_of_many_parallel_calls() {
    const CALLS: usize = 60;
    for strict in [false, true] {
        let mut settings = Settings::default();
        settings.audit.strict = strict;
        let config = json!({ "servers": { "demo": demo(json!({ "add": "allow-once" })) } });
        let mut harness = Harness::with(config, json!({}), settings).await;
        harness.until("demo", Status::Connected).await;
        let _calls: Vec<_> = (0..CALLS).map(|_| harness.begin_call(ADD, json!({ "a": 1, "b": 2 }))).collect();
        harness.approvals(ApprovalKind::Tool, CALLS - 1).await;
        let calls = harness.run(Calls::default()).await;
        assert_eq!(calls.calls.len(), 1, "strict: {strict}");
    }
}

/// A call that never reached the server has not used anything up.
#[tokio::test]
async fn allow_once_is_given_back_when_the_call_was_not_sent() {
    let mut settings = Settings::default();
    settings.audit.strict = true;
    let config = json!({ "servers": { "demo": demo(json!({ "add": "allow-once" })) } });
    let mut harness = Harness::with(config, json!({}), settings).await;
    harness.until("demo", Status::Connected).await;
    let database = harness.home.path("state/state.db");
    let lock = rusqlite::Connection::open(&database).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let refused = harness.call(ADD, json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Io), "{refused}");
    lock.execute_batch("ROLLBACK").unwrap();
    harness.call(ADD, json!({ "a": 1, "b": 2 })).await.unwrap();
    let _call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    harness.approvals(ApprovalKind::Tool, 1).await;
}

/// Nobody waits long for a log that cannot be written, however often it was tried before.
#[tokio::test]
async fn a_strict_log_that_is_locked_refuses_every_call_within_seconds() {
    let mut settings = Settings::default();
    settings.audit.strict = true;
    let config = json!({ "servers": { "demo": demo(json!({ "add": "allow-session" })) } });
    let mut harness = Harness::with(config, json!({}), settings).await;
    harness.until("demo", Status::Connected).await;
    let lock = rusqlite::Connection::open(harness.home.path("state/state.db")).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        let refused = harness.call(ADD, json!({ "a": 1, "b": 2 })).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Io), "{refused}");
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{:?}", begun.elapsed());
    lock.execute_batch("ROLLBACK").unwrap();
    harness.call(ADD, json!({ "a": 1, "b": 2 })).await.unwrap();
}

/// The user agreed to what they saw, which was another process.
#[tokio::test]
async fn a_question_is_asked_again_when_its_server_was_restarted() {
    let mut harness = harness(json!({})).await;
    let before = harness.until("demo", Status::Connected).await.pid;
    let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let first = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.run(restart("demo")).await;
    let late = harness.fails(resolve(&first, "allow-once")).await;
    assert_eq!(late.kind(), Some(ErrorKind::NotFound), "{late}");
    let second = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert!(second.detail.contains("The server was restarted while you were being asked."), "{second:?}");
    assert_ne!(harness.status("demo").await.pid, before);
    harness.resolve(&second, "allow-once").await;
    assert_eq!(text(&harness.editor.answer(call).await.unwrap()), "3");
}

/// A yes that arrives while the server restarts is not lost: the user is asked again, or the call runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_that_meets_a_restart_is_not_lost() {
    let mut harness = harness(json!({})).await;
    harness.until("demo", Status::Connected).await;
    for round in 0..ROUNDS {
        let call = harness.begin_call(ADD, json!({ "a": round, "b": 1 }));
        let first = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
        let restarting = harness.editor.start(restart("demo"));
        let answer = harness.editor.start(resolve(&first, "allow-once"));
        harness.editor.answer(restarting).await.unwrap();
        harness.editor.answer(answer).await.ok();
        let mut call = call;
        loop {
            let asked = harness.run(Approvals::default()).await.approvals;
            if let Some(again) = asked.first() {
                assert!(again.detail.contains("The server was restarted while you were being asked."), "{again:?}");
                harness.resolve(again, "allow-once").await;
            }
            if let Some(answer) = (&mut call).now_or_never() {
                match answer {
                    Ok(result) => assert_eq!(text(&result), (round + 1).to_string()),
                    // It was sent before the restart.
                    Err(error) => assert!(error.message.contains("during the request"), "{error}"),
                }
                break;
            }
        }
    }
}

/// A decision that cannot be saved is said to be lost, wherever it was made.
#[tokio::test]
async fn a_decision_that_cannot_be_saved_says_so_each_time() {
    let mut harness = harness(json!({})).await;
    harness.until("demo", Status::Connected).await;
    let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.run(resolve(&asked, "allow-project")).await;
    harness.editor.answer(call).await.unwrap();
    let grant = harness.run(Grants {}).await.grants.remove(0);
    let lock = rusqlite::Connection::open(harness.home.path("state/state.db")).unwrap();
    lock.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let revoked = harness.run(GrantRevoke { id: Some(grant.id), all: false }).await;
    let lost = "and is lost when mcp-sidecar stops.";
    assert!(revoked.warning.as_deref().is_some_and(|warning| warning.ends_with(lost)), "{revoked:?}");
    let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    let effect = harness.run(resolve(&asked, "allow-always")).await.effect.unwrap();
    assert!(effect.starts_with("The tool `add`") && effect.ends_with(lost), "{effect}");
    assert_eq!(text(&harness.editor.answer(call).await.unwrap()), "3", "it counts for now");
    let call = harness.begin_call("mcp__demo__echo", json!({ "text": "x" }));
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    let effect = harness.run(resolve(&asked, "disable")).await.effect.unwrap();
    assert!(effect.starts_with("The tool `echo`") && effect.ends_with(lost), "{effect}");
    harness.editor.answer(call).await.unwrap_err();
    lock.execute_batch("ROLLBACK").unwrap();
}

/// A name of an agent or a tool cannot end its quotation and go on in our words.
#[tokio::test]
async fn names_cannot_leave_their_quotes() {
    let mut harness = harness(json!({})).await;
    harness.until("demo", Status::Connected).await;
    let requester = Requester { kind: RequesterKind::Agent, name: "codex` is fine. Allow `everything".into() };
    let call = ToolCall { requester: Some(requester), ..tool_call(ADD, json!({ "a": 1, "b": 2 })) };
    let _call = harness.editor.start(call);
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert_eq!(asked.title.matches('`').count(), 6, "{}", asked.title);
    assert!(asked.title.starts_with("The agent `codex⟨U+0060⟩ is fine."), "{}", asked.title);
}

/// A question about trust and one about an input reach the user as soon as there is an editor, and end with the last.
#[tokio::test]
async fn questions_of_a_server_start_wait_for_an_editor_and_end_with_the_last() {
    let mut asking = demo(json!({}));
    asking["env"] = json!({ "NAME": "${input:name}" });
    let input = json!([{ "id": "name", "type": "promptString", "description": "Your name" }]);
    let user = json!({ "servers": { "asking": asking }, "inputs": input });
    let mut harness = Harness::new(user, json!({ "servers": { "demo": demo(json!({})) } })).await;
    let trust = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    let input = harness.approvals(ApprovalKind::Input, 1).await.remove(0);
    let Harness { home, engine, editor } = harness;
    drop(editor);
    let mut questions = engine.approvals().subscribe();
    questions.wait_for(|waiting| waiting.is_empty()).await.unwrap();
    let editor = open_editor(&home, &engine).await;
    let mut harness = Harness { home, engine, editor };
    assert_ne!(harness.approvals(ApprovalKind::Trust, 1).await[0].id, trust.id);
    let again = harness.approvals(ApprovalKind::Input, 1).await.remove(0);
    assert_ne!(again.id, input.id);
    let content = Some(json!({ "value": "Ada" }));
    harness.run(ApprovalResolve { content, ..resolve(&again, "accept") }).await;
    harness.until("asking", Status::Connected).await;
}

#[tokio::test]
async fn the_limit_of_open_questions_holds_for_all_of_them() {
    let mut settings = Settings::default();
    settings.limits.approvals = 1;
    let user = json!({ "servers": { "demo": demo(json!({})) } });
    let project = json!({ "servers": { "a": { "command": "sh" }, "b": { "command": "sh" } } });
    let mut harness = Harness::with(user, project, settings).await;
    harness.until("demo", Status::Connected).await;
    let first = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    let refused = harness.call(ADD, json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert!(refused.message.contains("limits.approvals"), "{refused}");
    // A server does not lose its question: it is asked when there is room.
    harness.resolve(&first, "deny").await;
    let is_other = |changed: &ApprovalsChanged| changed.approvals.iter().any(|other| other.server != first.server);
    harness.editor.event_where(is_other).await;
}

#[tokio::test]
async fn a_question_about_a_file_with_unsaved_changes_shows_the_difference_to_them() {
    let mut harness = Harness::new(json!({ "servers": { "files": fixture("server.py") } }), json!({})).await;
    harness.until("files", Status::Connected).await;
    let file = harness.home.write("notes.md", "milk\nbread\n").canonicalize().unwrap();
    let open = file.display().to_string();
    harness.editor.handle("mcp/buffer", move |params| {
        Ok(if params["file"] == open { json!({ "text": "milk\nhoney\n" }) } else { json!({}) })
    });
    let arguments = json!({ "path": "notes.md", "content": "milk\nbutter\n" });
    let _call = harness.begin_call("mcp__files__echo", arguments);
    let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    let change = question.change.unwrap();
    assert!(change.unsaved && change.diff.contains("-honey\n+butter"), "{}", change.diff);
    assert!(question.detail.contains("`notes.md` has unsaved changes in your editor"), "{}", question.detail);
    let _other = harness.begin_call("mcp__files__echo", json!({ "path": "new.md", "content": "x" }));
    let question = harness.approvals(ApprovalKind::Tool, 2).await.remove(1);
    assert!(!question.change.unwrap().unsaved && !question.detail.contains("unsaved"), "{}", question.detail);
}

#[tokio::test]
async fn one_answer_allows_all_read_only_tools_of_a_server_for_the_session() {
    let mut harness =
        Harness::new(json!({ "servers": { "demo": demo(json!({ "roll_dice": "deny" })) } }), json!({})).await;
    harness.until("demo", Status::Connected).await;
    let writes = harness.begin_call("mcp__demo__take_note", json!({ "text": "x" }));
    let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert!(!question.options.contains(&"allow-read-only".to_owned()), "this tool writes: {:?}", question.options);
    harness.resolve(&question, "deny").await;
    harness.editor.answer(writes).await.unwrap_err();
    let reads = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let question = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    let answer = question.answers.iter().find(|answer| answer.decision == "allow-read-only").unwrap();
    assert!(answer.grants && answer.lasts && answer.effect.as_ref().unwrap().contains("declares as read-only"));
    harness.resolve(&question, "allow-read-only").await;
    harness.editor.answer(reads).await.unwrap();
    harness.call("mcp__demo__echo", json!({ "text": "hi" })).await.unwrap();
    harness.call("mcp__demo__roll_dice", json!({})).await.unwrap_err();
    let _writes = harness.begin_call("mcp__demo__take_note", json!({ "text": "y" }));
    harness.approvals(ApprovalKind::Tool, 1).await;
}

/// Waits until this many questions are shown, and returns all notifications until then.
async fn shown(harness: &mut Harness, count: usize) -> Vec<ApprovalsChanged> {
    let mut seen: Vec<ApprovalsChanged> = Vec::new();
    while seen.last().is_none_or(|last| last.approvals.len() != count) {
        seen.push(harness.editor.event().await);
    }
    seen
}

fn ids(approvals: &[Approval]) -> Vec<String> {
    approvals.iter().map(|approval| approval.id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_servers_of_a_file_are_one_group_in_the_order_of_the_file() {
    const SERVERS: usize = 30;
    let names: Vec<String> = (0..SERVERS).map(|number| format!("s{:02}", (number * 7) % SERVERS)).collect();
    let servers = names.iter().map(|name| (name.clone(), json!({ "type": "sdk", "name": name })));
    let project = json!({ "servers": servers.collect::<serde_json::Map<_, _>>() });
    let mut harness = Harness::new(json!({}), project).await;
    let first = shown(&mut harness, SERVERS).await;
    assert_eq!(first.len(), 1, "all questions come at once");
    let ApprovalsChanged { approvals, groups, closed } = &first[0];
    assert_eq!((groups.len(), closed.len()), (1, 0));
    let group = &groups[0];
    let find = |id: &String| approvals.iter().find(|approval| approval.id == *id).unwrap();
    let order: Vec<&str> = group.ids.iter().map(|id| find(id).server.as_str()).collect();
    assert_eq!(order, names);
    assert_eq!(group.title, format!("Trust 30 servers of `{}`?", harness.home.project().join("mcp.json").display()));
    let answers: Vec<_> = group.answers.iter().map(|answer| (answer.label.as_str(), answer.grants)).collect();
    assert_eq!(answers, [("Trust none", false), ("Trust all 30", true), ("Trust all 30 for this session", true)]);
    assert_eq!(find(&group.ids[1]).summary, "`s07` inside the editor: s07 (sdk)");

    // Some of them, then none of the others.
    let some = vec![group.ids[0].clone(), group.ids[2].clone()];
    let answer = harness.run(ApprovalResolve::several(some.clone(), "allow-session")).await;
    assert_eq!((&answer.resolved, answer.gone.len()), (&some, 0));
    assert_eq!(answer.effect.as_deref(), Some("The servers `s00` and `s14` are trusted for this session."));
    let left = shown(&mut harness, SERVERS - 2).await;
    assert_eq!(left.len(), 1, "they end at once");
    assert_eq!(left[0].closed.iter().map(|closed| closed.id.clone()).collect::<Vec<_>>(), some);
    let answer = harness.run(ApprovalResolve::several(group.ids.clone(), "deny")).await;
    assert_eq!((answer.resolved.len(), answer.gone), (SERVERS - 2, some));
    assert_eq!(answer.effect.as_deref(), Some("28 servers are not trusted and do not start."));
    assert_eq!(shown(&mut harness, 0).await.len(), 1);
    // The answers are applied one after another.
    let mut servers = harness.run(Servers::default()).await.servers;
    while servers.iter().any(|server| server.needs_trust && server.error.is_none()) {
        harness.editor.event::<ServerChanged>().await;
        servers = harness.run(Servers::default()).await.servers;
    }
    let trusted = servers.iter().filter(|server| !server.needs_trust);
    assert_eq!(trusted.map(|server| server.name.as_str()).collect::<Vec<_>>(), ["s00", "s14"]);
}

#[tokio::test]
async fn an_answer_to_several_questions_is_for_those_that_were_shown_and_for_this_once() {
    let project = json!({ "servers": { "other": { "command": "sh" } } });
    let mut harness = Harness::new(json!({ "servers": { "demo": demo(json!({})) } }), project).await;
    let other = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    let begin = |harness: &mut Harness, number: i64| harness.begin_call(ADD, json!({ "a": number, "b": 0 }));
    let calls = [1, 2].map(|number| begin(&mut harness, number));
    let shown = ids(&harness.approvals(ApprovalKind::Tool, 2).await);
    let late = begin(&mut harness, 3);
    let all = harness.approvals(ApprovalKind::Tool, 3).await;
    assert_eq!(harness.run(Approvals::default()).await.groups, [], "calls of the user are not of one agent");

    let several = |decision: &str| ApprovalResolve::several(shown.clone(), decision);
    let both = ApprovalResolve { id: Some(shown[0].clone()), ..several("deny") };
    let content = ApprovalResolve { content: Some(json!({})), ..several("allow-once") };
    let mixed = ApprovalResolve { ids: Some(vec![shown[0].clone(), other.id.clone()]), ..several("allow-once") };
    let none = ApprovalResolve::several(Vec::new(), "deny");
    for wrong in [several("allow-always"), several("disable"), several("accept"), both, content, mixed, none] {
        let error = harness.fails(wrong).await;
        assert_eq!(error.kind(), Some(ErrorKind::InvalidParams), "{error}");
    }
    let gone = ApprovalResolve::several(vec!["x".to_owned(), "y".to_owned()], "deny");
    assert_eq!(harness.fails(gone).await.kind(), Some(ErrorKind::NotFound));
    assert_eq!(harness.approvals(ApprovalKind::Tool, 3).await, all, "nothing was answered");

    let answer = harness.run(several("allow-once")).await;
    assert_eq!((&answer.resolved, answer.gone, answer.effect), (&shown, Vec::new(), None));
    for (call, sum) in calls.into_iter().zip(["1", "2"]) {
        assert_eq!(text(&harness.editor.answer(call).await.unwrap()), sum);
    }
    let left = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    assert_eq!(left, all[2], "it arrived later");
    harness.resolve(&left, "deny").await;
    harness.editor.answer(late).await.unwrap_err();
    assert_eq!(harness.run(Grants {}).await.grants, []);
}

#[tokio::test]
async fn every_editor_is_told_how_a_question_ended() {
    let mut settings = Settings::default();
    settings.approvals.timeout = std::time::Duration::from_secs(3_600);
    let user = json!({ "servers": { "demo": demo(json!({})) } });
    let mut harness = Harness::with(user, json!({ "servers": { "other": { "command": "sh" } } }), settings).await;
    harness.until("demo", Status::Connected).await;
    let mut second = open_editor(&harness.home, &harness.engine).await;
    second.ignore("mcp/serverChanged");
    let end = async |second: &mut TestEditor, id: &str| {
        let is_end = |changed: &ApprovalsChanged| changed.closed.iter().any(|closed| closed.id == id);
        let closed = second.event_where(is_end).await.closed;
        closed.into_iter().find(|closed| closed.id == id).unwrap()
    };
    let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.resolve(&asked, "allow-once").await;
    harness.editor.answer(call).await.unwrap();
    let closed = end(&mut second, &asked.id).await;
    assert_eq!((closed.outcome, closed.decision.as_deref()), (ApprovalOutcome::Answered, Some("allow-once")));
    assert_eq!(closed.by, Some(AnsweredIn { place: AnswerPlace::Editor, name: None, pid: None }));
    let record = harness.run(Calls::default()).await.calls.remove(0);
    assert_eq!(closed.message, format!("“Allow once”, by the {}", record.decided_by));

    // A lens or the dashboard decides without answering the question.
    let asked = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.trust("other").await;
    let closed = end(&mut second, &asked.id).await;
    assert_eq!((closed.outcome, closed.decision.as_deref()), (ApprovalOutcome::Answered, Some("allow-project")));
    assert_eq!(closed.message, "“Trust”, by the user in an editor");

    let call = harness.begin_call(ADD, json!({ "a": 1, "b": 2 }));
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    harness.run(restart("demo")).await;
    let closed = end(&mut second, &asked.id).await;
    assert_eq!(closed.outcome, ApprovalOutcome::Withdrawn);
    assert_eq!(closed.message, "withdrawn: the server, the tool or its rules have changed");
    let asked = harness.approvals(ApprovalKind::Tool, 1).await.remove(0);
    drop(call);
    let closed = end(&mut second, &asked.id).await;
    assert_eq!(closed.message, "withdrawn: the call was cancelled");
}

/// The answer is stored while the next question is opened, and the check that follows it comes late.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_question_that_the_user_requests_after_a_no_stays_open() {
    let mut harness = Harness::new(json!({}), json!({ "servers": { "demo": demo(json!({})) } })).await;
    for round in 0..ROUNDS {
        let asked = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
        let no = harness.editor.start(resolve(&asked, "deny"));
        let ask = harness.editor.start(ServerTrust::ask(name("demo")));
        harness.editor.answer(no).await.unwrap();
        harness.editor.answer(ask).await.unwrap();
        // A check that comes after the late one.
        harness.run(ConfigReload {}).await;
        let again = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
        assert_ne!(again.id, asked.id, "round {round}");
    }
}
