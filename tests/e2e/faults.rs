//! Servers that misbehave: what their status says, how their calls end, and that nothing else is affected.

use std::io::{self, Read};
use std::net::TcpListener;

use mcp_sidecar::protocol::commands::{ApprovalResolve, Calls, ServerLogs, ToolCall};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::{ApprovalsChanged, LogMessage};
use mcp_sidecar::protocol::types::{ServerStatus, Status};
use serde_json::{Value, json};

use crate::support::Home;
use crate::support::commands::{name, object, resolve, stop};
use crate::workspace::{Workspace, alive, demo, fixture, gone, pids, text, with};

/// A workspace with one server that has this fault, beside one that has none.
async fn with_fault(mode: &[&str], more: Value) -> (Workspace, Faulty) {
    let home = Home::new();
    let file = home.path("pids");
    let definition = with(with(fixture("faulty.py", mode), json!({ "env": { "PIDS": file } })), more);
    let mut workspace = Workspace::open_at(home, json!({ "bad": definition, "good": demo() })).await;
    workspace.connected("good").await;
    (workspace, Faulty { file })
}

struct Faulty {
    file: std::path::PathBuf,
}

impl Faulty {
    /// The good server still works, and of the bad one nothing is left at the end.
    async fn end(self, mut workspace: Workspace) {
        let said = workspace.call("mcp__good__echo", json!({ "text": "well" })).await;
        assert_eq!(said.unwrap(), "well", "a broken server harms only itself");
        workspace.quit().await;
        gone(&pids(&self.file)).await;
    }
}

fn has(list: &[String], part: &str) {
    assert!(list.iter().any(|each| each.contains(part)), "no “{part}” in {list:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_exits_at_once_is_retried_later() {
    let (mut workspace, faulty) = with_fault(&["exit"], json!({})).await;
    let status = workspace.until("bad", |status| status.error.is_some()).await;
    assert_eq!(status.error.as_deref(), Some("the server exited with code 0 before it answered `initialize`"));
    assert_eq!(status.status, Status::Pending);
    assert!(status.reason.as_deref().unwrap().starts_with("retrying in "));
    let error = workspace.call("mcp__bad__echo", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::ProcessFailed), "{error:?}");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_initialize_times_out() {
    let (mut workspace, faulty) = with_fault(&["hang"], json!({ "startupTimeout": 2 })).await;
    let error = workspace.failure("bad").await;
    assert_eq!(error, "the server did not answer `initialize` within 2 s (`startupTimeout` sets this limit)");
    gone(&pids(&faulty.file)).await;
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_between_messages_is_skipped_and_counted() {
    let (mut workspace, faulty) = with_fault(&["junk"], json!({})).await;
    workspace.connected("bad").await;
    assert_eq!(workspace.call("mcp__bad__echo", json!({ "a": 1 })).await.unwrap(), r#"{"a": 1}"#);
    // Three lines of junk before each of five: initialize, the word that it is done, log level, tools, call.
    let skipped = |status: &ServerStatus| status.warnings.join("\n").contains("that are not MCP messages: 15 so far");
    workspace.status_where("bad", skipped).await;
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_response_fails_its_call_in_bounded_memory() {
    let (mut workspace, faulty) = with_fault(&["pour"], json!({})).await;
    workspace.connected("bad").await;
    let error = workspace.call("mcp__bad__echo", json!({})).await.unwrap_err();
    assert!(error.message.contains("16 MiB"), "{error:?}");
    assert_eq!(error.kind(), Some(ErrorKind::ProtocolError));
    #[cfg(target_os = "linux")]
    {
        let sidecar = workspace.engine();
        let status = std::fs::read_to_string(format!("/proc/{sidecar}/status")).unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kilobytes < 256 << 10, "{kilobytes} kB at its largest");
    }
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_reads_fails_its_calls_without_blocking() {
    let (mut workspace, faulty) = with_fault(&["deaf"], json!({ "timeout": 1 })).await;
    workspace.connected("bad").await;
    let large = json!({ "text": "x".repeat(1 << 20) });
    let calls: Vec<_> = (0..3).map(|_| workspace.begin_call("mcp__bad__echo", large.clone())).collect();
    assert_eq!(workspace.call("mcp__good__echo", json!({ "text": "meanwhile" })).await.unwrap(), "meanwhile");
    for call in calls {
        let error = workspace.editor().answer(call).await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::ConnectionFailed));
        assert!(error.message.contains("does not read"), "{error:?}");
    }
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn daemons_end_with_the_server_that_started_them() {
    let (mut workspace, faulty) = with_fault(&["daemons"], json!({})).await;
    workspace.connected("bad").await;
    let family = pids(&faulty.file);
    assert_eq!(family.iter().filter(|pid| alive(**pid)).count(), 3);
    workspace.run(stop("bad")).await;
    assert!(family.iter().all(|pid| !alive(*pid)), "answered when settled");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_stderr_is_drained() {
    let (mut workspace, faulty) = with_fault(&["shout"], json!({})).await;
    workspace.connected("bad").await;
    assert_eq!(workspace.call("mcp__bad__echo", json!({ "a": 1 })).await.unwrap(), r#"{"a": 1}"#);
    let lines = workspace.run(ServerLogs { server: name("bad"), limit: Some(100_000) }).await;
    assert!(json!(lines).to_string().len() < 512 << 10);
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_of_three_responses_counts_and_one_call_is_recorded() {
    let (mut workspace, faulty) = with_fault(&["triple"], json!({})).await;
    workspace.connected("bad").await;
    assert_eq!(workspace.call("mcp__bad__echo", json!({})).await.unwrap(), "answer 1");
    assert_eq!(workspace.call("mcp__bad__echo", json!({})).await.unwrap(), "answer 1");
    let calls = workspace.run(Calls { server: Some(name("bad")), ..Default::default() }).await.calls;
    assert_eq!(calls.len(), 2, "one record for each call");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_response_is_dropped() {
    let (mut workspace, faulty) = with_fault(&["late"], json!({})).await;
    workspace.connected("bad").await;
    let late = ToolCall {
        tool: "mcp__bad__echo".to_owned(),
        arguments: Some(object(json!({ "late": true }))),
        timeout_ms: Some(100),
        ..Default::default()
    };
    let error = workspace.editor().call(late).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::Timeout));
    // It reads one message after another: when it answers this, the late answer has come, too.
    assert_eq!(workspace.call("mcp__bad__echo", json!({ "late": false })).await.unwrap(), r#"{"late": false}"#);
    let calls = workspace.run(Calls { server: Some(name("bad")), failed: true, ..Default::default() }).await.calls;
    assert_eq!(calls.len(), 1);
    assert!(calls[0].error.as_deref().unwrap().contains("within 0.1 s"), "{calls:?}");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_cursor_ends_with_a_warning_and_the_tools_so_far() {
    let (mut workspace, faulty) = with_fault(&["circle"], json!({})).await;
    let status = workspace.connected("bad").await;
    has(&status.warnings, "`tools/list` repeats a cursor");
    let names: Vec<String> = workspace.tools("bad").await.into_iter().map(|tool| tool.tool).collect();
    assert_eq!(names, ["echo-a", "echo-b"]);
    faulty.end(workspace).await;
}

/// Answers `initialize` with a version only, then `tools/list`, and nothing else.
const VERSION_ONLY: &str = r#"
import json, sys
results = {
    "initialize": {"protocolVersion": "2025-06-18"},
    "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") in results:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}), flush=True)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_sends_only_its_version_connects_at_once() {
    let definition = json!({ "command": "python3", "args": ["-c", VERSION_ONLY], "startupTimeout": 600 });
    let mut workspace = Workspace::open(json!({ "bare": definition })).await;
    let status = workspace.connected("bare").await;
    assert_eq!((status.tool_count, status.warnings), (1, Vec::<String>::new()));
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_silent_list_connects_and_its_status_names_the_list() {
    let script = json!({ "offers": ["tools", "prompts"], "tools/list": [] }).to_string();
    let (mut workspace, faulty) = with_fault(&[&script], json!({ "startupTimeout": 2 })).await;
    let status = workspace.connected("bad").await;
    assert_eq!((status.tool_count, status.prompt_count), (0, 1));
    has(&status.warnings, "`tools/list` failed: no answer within ");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_tools_cannot_be_listed_connects_with_a_warning() {
    let script =
        json!({ "offers": ["tools", "prompts"], "tools/list": [{ "error": { "code": -32603, "message": "no" } }] });
    let (mut workspace, faulty) = with_fault(&[&script.to_string()], json!({})).await;
    let status = workspace.connected("bad").await;
    assert_eq!((status.tool_count, status.prompt_count), (0, 1));
    assert_eq!(status.warnings, ["`tools/list` failed: no (error -32603)"]);
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_tool_is_ignored_with_a_warning() {
    let (mut workspace, faulty) = with_fault(&["twins"], json!({})).await;
    let status = workspace.connected("bad").await;
    has(&status.warnings, "duplicate tool `echo`");
    let tools = workspace.tools("bad").await;
    assert_eq!((tools.len(), tools[0].description.as_str()), (1, "says it back"));
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_in_a_schema_are_neither_fetched_nor_followed_forever() {
    let page = TcpListener::bind("127.0.0.1:0").unwrap();
    page.set_nonblocking(true).unwrap();
    let url = format!("http://{}/schema.json", page.local_addr().unwrap());
    let (mut workspace, faulty) = with_fault(&["refs", &url], json!({})).await;
    workspace.connected("bad").await;
    assert_eq!(workspace.tools("bad").await[0].input_schema["properties"]["page"]["$ref"], json!(url));
    let nested = json!({ "self": { "self": { "page": 1, "file": 2 } } });
    match workspace.call("mcp__bad__echo", nested).await {
        Ok(said) => assert!(said.contains("self"), "{said}"),
        Err(error) => assert_eq!(error.kind(), Some(ErrorKind::InvalidArguments), "{error:?}"),
    }
    assert_eq!(page.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "somebody fetched it");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_not_utf8_ends_its_call_at_once() {
    let (mut workspace, faulty) = with_fault(&["bytes"], json!({})).await;
    workspace.connected("bad").await;
    let error = workspace.call("mcp__bad__echo", json!({})).await.unwrap_err();
    assert!(error.message.contains("the response is not valid UTF-8"), "{error:?}");
    assert_eq!(error.kind(), Some(ErrorKind::ProtocolError));
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_before_the_handshake_are_rejected_and_the_start_continues() {
    let (mut workspace, faulty) = with_fault(&["eager"], json!({})).await;
    workspace.connected("bad").await;
    let answers = workspace.call("mcp__bad__echo", json!({})).await.unwrap();
    assert_eq!(answers, r#"["error", "error", "error"]"#);
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_may_ask_the_user_five_questions_one_at_a_time() {
    let (mut workspace, faulty) = with_fault(&["nosy"], json!({})).await;
    workspace.connected("bad").await;
    let call = workspace.begin_call("mcp__bad__echo", json!({}));
    for _ in 0..5 {
        let waiting = |news: &ApprovalsChanged| !news.approvals.is_empty();
        let news = workspace.editor().event_where(waiting).await;
        let [approval] = &news.approvals[..] else { panic!("one at a time: {news:?}") };
        assert_eq!(approval.title, "The server `bad` asks you");
        let detail = &approval.detail;
        assert!(detail.contains("`password` looks like a secret") && !detail.contains("`city`"), "{detail}");
        let answer = ApprovalResolve { content: Some(json!({ "city": "Rome" })), ..resolve(approval, "accept") };
        workspace.run(answer).await;
    }
    assert_eq!(text(&workspace.editor().answer(call).await.unwrap()), r#"{"accept": 5, "decline": 45}"#);
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_log_messages_are_throttled_and_the_call_is_answered() {
    let (mut workspace, faulty) = with_fault(&["chatty"], json!({})).await;
    workspace.connected("bad").await;
    assert_eq!(workspace.call("mcp__bad__echo", json!({ "a": 1 })).await.unwrap(), r#"{"a": 1}"#);
    workspace.editor().event_where(|log: &LogMessage| log.text.contains("logged too fast")).await;
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_port_is_named_and_retried_later() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut workspace = Workspace::open(json!({ "tcp": { "port": port }, "http": { "url": url } })).await;
    for server in ["tcp", "http"] {
        let status = workspace.until(server, |status| status.error.is_some()).await;
        let error = status.error.as_deref().unwrap();
        assert!(error.starts_with(&format!("cannot connect to 127.0.0.1:{port}: connection refused")), "{error}");
        assert!(status.reason.as_deref().unwrap().starts_with("retrying in "));
        let error = workspace.call(&format!("mcp__{server}__any"), json!({})).await.unwrap_err();
        assert_eq!(error.kind(), Some(ErrorKind::ConnectionFailed));
    }
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_on_a_port_are_not_mcp() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut noise = vec![0; 64 << 10];
            std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut noise).unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut stream, &noise).await.ok();
            // Held open: what came has to be enough to tell.
            std::mem::forget(stream);
        }
    });
    let mut workspace = Workspace::open(json!({ "noise": { "port": port } })).await;
    let error = workspace.failure("noise").await;
    assert!(error.contains("not an MCP server"), "{error}");
    let error = workspace.call("mcp__noise__any", json!({})).await.unwrap_err();
    assert!([Some(ErrorKind::ProtocolError), Some(ErrorKind::ConnectionFailed)].contains(&error.kind()), "{error:?}");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_hosted_server_may_time_out_or_be_missing() {
    let server = |name: &str| json!({ "type": "sdk", "name": name, "startupTimeout": 2 });
    let servers = json!({ "silent": server("inner"), "absent": server("nobody"), "good": demo() });
    let mut workspace = Workspace::start(Home::new(), servers);
    workspace.editor().handle("mcp/sdk/message", |_| Ok(json!({})));
    workspace.greet(json!({ "sdkServers": ["inner"] })).await;
    workspace.connected("good").await;
    let error = workspace.failure("silent").await;
    assert!(error.starts_with("the server did not answer `initialize` within 2 s"), "{error}");
    let error = workspace.failure("absent").await;
    assert!(error.contains("`nobody`"), "{error}");
    let error = workspace.call("mcp__silent__any", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::ConnectionFailed));
    workspace.quit().await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_cleared_its_environment_ends_with_the_engine() {
    let (mut workspace, faulty) = with_fault(&["scrub"], json!({})).await;
    workspace.connected("bad").await;
    let family = pids(&faulty.file);
    assert_eq!(family.iter().filter(|pid| alive(**pid)).count(), 2);
    faulty.end(workspace).await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_closes_its_input_is_noticed_at_once() {
    let (mut workspace, faulty) = with_fault(&["closed"], json!({})).await;
    let status = workspace.until("bad", |status| status.error.is_some()).await;
    assert_eq!(status.error.as_deref(), Some("the server closed its input"));
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_protocol_version_is_refused_with_a_reason() {
    let (mut workspace, faulty) = with_fault(&[r#"{"version": "1999-banana"}"#], json!({})).await;
    let error = workspace.failure("bad").await;
    assert!(
        error.starts_with("the server uses the MCP version `1999-banana`, which mcp-sidecar does not support"),
        "{error}"
    );
    assert!(error.contains("2025-11-25"), "{error}");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_whose_names_mean_something_in_rules_are_ignored_with_a_warning() {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let names = ["*", "read_*", "a\nb", "[ab]", "plain.name-1"];
    let script = json!({ "tools": names.map(tool) }).to_string();
    let (mut workspace, faulty) = with_fault(&[&script], json!({})).await;
    let status = workspace.connected("bad").await;
    let tools: Vec<String> = workspace.tools("bad").await.into_iter().map(|tool| tool.tool).collect();
    assert_eq!(tools, ["plain.name-1"]);
    has(&status.warnings, "ignored tool `read_*`: its name contains");
    faulty.end(workspace).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_with_look_ahead_stops_nothing_and_is_named_in_a_warning() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "(?=.*b)a" } } });
    let script = json!({ "tools": [{ "name": "echo", "inputSchema": schema }] }).to_string();
    let (mut workspace, faulty) = with_fault(&[&script], json!({})).await;
    let status = workspace.connected("bad").await;
    has(&status.warnings, "arguments are not checked against the pattern `(?=.*b)a`");
    // With backtracking, each of these takes minutes, and there are more of them than threads.
    let long = json!({ "a": "a".repeat(1_000_000) });
    let calls: Vec<_> = (0..8).map(|_| workspace.begin_call("mcp__bad__echo", long.clone())).collect();
    assert_eq!(workspace.call("mcp__good__echo", json!({ "text": "meanwhile" })).await.unwrap(), "meanwhile");
    for call in calls {
        workspace.editor().answer(call).await.unwrap();
    }
    faulty.end(workspace).await;
}
