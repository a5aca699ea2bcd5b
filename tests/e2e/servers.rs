//! Public servers and both eras of MCP, over every way there is: connected, listed, and put to use.

mod hosts;

use std::process::Command;

use mcp_sidecar::protocol::commands::{Calls, Complete, PromptGet, ResourceRead, Resources};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::ShownScope;
use serde_json::{Value, json};

use crate::public::program;
use crate::sharing::Agent;
use crate::support::commands::{name, object, tool_call};
use crate::support::{Home, StdioEditor};
use crate::workspace::{PROGRAM, Workspace, demo, fixture, with};
use hosts::Listening;

/// What `server-everything` can, whichever way it is reached.
async fn everything_works(workspace: &mut Workspace, server: &str, transport: &str) {
    let status = workspace.connected(server).await;
    assert_eq!(status.transport.to_string(), transport);
    assert_eq!(status.server_info.as_ref().unwrap().name, "mcp-servers/everything");
    let tools = workspace.tools(server).await;
    assert!(tools.iter().any(|tool| tool.name == format!("mcp__{server}__get-sum")), "{tools:#?}");

    let sum = workspace.call(&format!("mcp__{server}__get-sum"), json!({ "a": 2, "b": 40 })).await.unwrap();
    assert!(sum.contains("42"), "{sum}");

    let resources = workspace.run(Resources { server: Some(name(server)) }).await;
    let uri = resources.resources[0].fields["uri"].as_str().unwrap().to_owned();
    assert_eq!(resources.resources[0].server.as_str(), server);
    assert_eq!(resources.templates[0].server.as_str(), server);
    let read =
        workspace.run(ResourceRead { server: name(server), uri: uri.clone(), subscribe: None, requester: None }).await;
    assert_eq!(read.contents[0].uri.as_str(), uri);

    let params = PromptGet {
        server: name(server),
        name: "args-prompt".to_owned(),
        arguments: Some(object(json!({ "city": "Aarhus" }))),
        requester: None,
    };
    let prompt = workspace.run(params).await;
    assert!(prompt.messages[0].content.text.as_ref().unwrap().contains("Aarhus"), "{prompt:?}");

    let reference = json!({ "type": "ref/prompt", "name": "completable-prompt" });
    let argument = json!({ "name": "department", "value": "E" });
    let params =
        Complete { server: name(server), reference: reference.clone(), argument: argument.clone(), context: None };
    let completed = workspace.run(params).await;
    assert_eq!((completed.values.join(" "), completed.has_more), ("Engineering".to_owned(), false));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_as_a_child_process() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let mut workspace = Workspace::open(json!({ "every": { "command": program, "args": ["stdio"] } })).await;
    everything_works(&mut workspace, "every", "stdio").await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_is_read_through_the_gate() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let home = Home::new();
    let every = |tools: Value| json!({ "command": program, "args": ["stdio"], "tools": tools });
    let rules = json!({
        "resource:demo://resource/dynamic/blob/{resourceId}": "deny",
        "prompt:completable-prompt": "deny",
        "resource:demo://resource/dynamic/text/1": "allow-session",
    });
    let config = json!({ "servers": { "every": every(rules) } });
    std::fs::write(home.path("config/mcp.json"), config.to_string()).unwrap();
    let mut agent = Agent::start_with(&home, &home.project(), &[]).await;
    let listed = agent.ask(1, "resources/list", json!({})).await;
    let uri = &listed["result"]["resources"][0]["uri"];
    let read = agent.ask(2, "resources/read", json!({ "uri": uri })).await;
    assert!(read["result"]["contents"].is_array(), "{read:#}");
    let read = agent.ask(3, "resources/read", json!({ "uri": "demo://resource/dynamic/text/1" })).await;
    assert!(read["result"]["contents"].is_array(), "{read:#}");
    let completed = |kind: &str, key: &str, name: &str, argument: &str| json!({ "ref": { "type": kind, key: name }, "argument": { "name": argument, "value": "" } });
    let template = "demo://resource/dynamic/blob/{resourceId}";
    for (id, method, params) in [
        (4, "resources/read", json!({ "uri": "demo://resource/dynamic/text/2" })),
        (5, "resources/read", json!({ "uri": "demo://resource/dynamic/blob/1" })),
        (6, "resources/read", json!({ "uri": "demo://resource/dynamic/bl%6fb/1" })),
        (7, "resources/read", json!({ "uri": "demo://resource/dynamic/text/../blob/1" })),
        (8, "resources/read", json!({ "uri": "demo://no/such/template" })),
        (9, "resources/subscribe", json!({ "uri": "demo://resource/dynamic/blob/1" })),
        (10, "prompts/get", json!({ "name": "every__completable-prompt", "arguments": { "department": "Sales" } })),
        (11, "completion/complete", completed("ref/prompt", "name", "every__completable-prompt", "department")),
        (12, "completion/complete", completed("ref/resource", "uri", template, "resourceId")),
    ] {
        let refused = agent.ask(id, method, params).await;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        let is_refused =
            message.contains(" was denied: ") || message.contains(" was not allowed: there was no one to ask");
        assert!(is_refused, "{id}: {refused:#}");
    }
    let mut window = StdioEditor::start(&home, &[]);
    window.editor.initialize(&[&home.project()], json!({})).await;
    let calls = window.editor.call(Calls::default()).await.unwrap().calls;
    let outline: Vec<_> =
        calls.iter().rev().map(|call| format!("{} {} {}", call.kind.as_str(), call.tool, call.decision)).collect();
    let mut expected = vec![format!("resource resource:{} allow-always", uri.as_str().unwrap())];
    expected.extend(
        [
            "resource resource:demo://resource/dynamic/text/1 allow-session",
            "resource resource:demo://resource/dynamic/text/2 deny",
            "resource resource:demo://resource/dynamic/blob/1 deny",
            "resource resource:demo://resource/dynamic/bl%6fb/1 deny",
            "resource resource:demo://resource/dynamic/text/../blob/1 deny",
            "resource resource:demo://no/such/template deny",
            "subscription resource:demo://resource/dynamic/blob/1 deny",
            "prompt prompt:completable-prompt deny",
            "completion prompt:completable-prompt deny",
            "completion resource:demo://resource/dynamic/blob/{resourceId} deny",
        ]
        .map(str::to_owned),
    );
    assert_eq!(outline, expected);
    agent.quit().await;
    assert!(window.quit().await.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_over_streamable_http() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let server = Listening::start(&program, "streamableHttp").await;
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let mut workspace = Workspace::open(json!({ "every": { "url": url } })).await;
    everything_works(&mut workspace, "every", "http").await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_over_legacy_sse_with_a_warning() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let server = Listening::start(&program, "sse").await;
    let url = format!("http://127.0.0.1:{}/sse", server.port);
    let mut workspace = Workspace::open(json!({ "every": { "type": "sse", "url": url } })).await;
    everything_works(&mut workspace, "every", "sse").await;
    let warnings = workspace.status("every").await.warnings.join("\n");
    assert!(warnings.contains("sse"), "{warnings}");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_on_a_port() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let port = hosts::on_a_port(program, "stdio").await;
    let mut workspace = Workspace::open(json!({ "every": { "port": port } })).await;
    everything_works(&mut workspace, "every", "tcp").await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_inside_the_editor() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let mut workspace = Workspace::start(Home::new(), json!({ "every": { "type": "sdk", "name": "inner" } }));
    hosts::inside(workspace.editor(), "inner", &program, "stdio");
    workspace.greet(json!({ "sdkServers": ["inner"] })).await;
    everything_works(&mut workspace, "every", "sdk").await;
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_as_a_connector_behind_a_proxy() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let server = Listening::start(&program, "streamableHttp").await;
    let (port, seen) = hosts::behind_a_proxy(format!("http://127.0.0.1:{}/mcp", server.port)).await;
    let url = format!("http://127.0.0.1:{port}/v1/mcp/{{id}}");
    let headers = json!({ "Authorization": "Bearer of-the-connector" });
    let definition = json!({ "type": "claudeai-proxy", "url": url, "id": "mcpsrv_01", "headers": headers });
    let mut workspace = Workspace::open(json!({ "every": definition })).await;
    everything_works(&mut workspace, "every", "claudeai-proxy").await;
    let status = workspace.status("every").await;
    assert_eq!(status.scope, ShownScope::ClaudeAi);
    assert_eq!(status.config["headers"]["Authorization"], "•••");
    let seen = seen.lock().unwrap().clone();
    assert!(seen.iter().all(|line| line == "/v1/mcp/mcpsrv_01 Bearer of-the-connector"), "{seen:?}");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filesystem_server_reads_the_project() {
    let Some(program) = program("MCP_SERVER_FILESYSTEM") else { return };
    let home = Home::new();
    let file = home.write("notes.txt", "remember the milk");
    let servers = json!({ "fs": { "command": program, "args": ["${workspaceFolder}"] } });
    let mut workspace = Workspace::open_at(home, servers).await;
    workspace.connected("fs").await;
    let read = workspace.call("mcp__fs__read_text_file", json!({ "path": file })).await.unwrap();
    assert_eq!(read, "remember the milk");
    let outside = tool_call("mcp__fs__read_text_file", json!({ "path": "/etc/hostname" }));
    let refused = workspace.run(outside).await;
    assert!(refused.is_error, "what the tool reports is a result: {refused:?}");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_server_reports_the_state_of_the_project() {
    let Some(program) = program("MCP_SERVER_GIT") else { return };
    let home = Home::new();
    home.write("new.txt", "new");
    assert!(Command::new("git").arg("init").arg("-q").arg(home.project()).status().unwrap().success());
    let project = home.project();
    let mut workspace = Workspace::open_at(home, json!({ "git": { "command": program } })).await;
    workspace.connected("git").await;
    let state = workspace.call("mcp__git__git_status", json!({ "repo_path": project })).await.unwrap();
    assert!(state.contains("new.txt"), "{state}");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_server_returns_the_time_as_structured_content() {
    let Some(program) = program("MCP_SERVER_TIME") else { return };
    let mut workspace = Workspace::open(json!({ "time": { "command": program } })).await;
    workspace.connected("time").await;
    let params = tool_call("mcp__time__get_current_time", json!({ "timezone": "Europe/Copenhagen" }));
    let result = workspace.run(params).await;
    let structured: Value = serde_json::from_str(result.structured_content.as_ref().unwrap().get()).unwrap();
    assert_eq!(structured["timezone"], "Europe/Copenhagen", "{result:?}");
    let wrong = workspace.call("mcp__time__get_current_time", json!({ "timezone": 5 })).await.unwrap_err();
    assert_eq!((wrong.code, wrong.kind()), (-32602, Some(ErrorKind::InvalidArguments)));
    assert_eq!(wrong.data.unwrap().detail.unwrap()[0].path, "/timezone");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_oldest_and_of_the_newest_protocol_work_side_by_side() {
    let servers = json!({ "old": fixture("faulty.py", &["era", "2024-11-05"]), "new": fixture("faulty.py", &["era", "2026-07-28"]) });
    let mut workspace = Workspace::open(servers).await;
    for (server, version) in [("old", "2024-11-05"), ("new", "2026-07-28")] {
        let status = workspace.connected(server).await;
        assert_eq!(status.protocol_version.as_deref(), Some(version));
        assert_eq!(json!(status.server_info), json!({ "name": "faulty", "version": version }));
        let said = workspace.call(&format!("mcp__{server}__echo"), json!({ "text": "hi" })).await;
        assert_eq!(said.unwrap(), "hi");
        let read = workspace
            .run(ResourceRead { server: name(server), uri: "era://now".to_owned(), subscribe: None, requester: None })
            .await;
        let read = &read.contents[0];
        assert_eq!((read.uri.as_str(), read.text.as_deref()), ("era://now", Some(version)));
        let prompt = workspace
            .run(PromptGet { server: name(server), name: "greet".to_owned(), arguments: None, requester: None })
            .await;
        assert_eq!(prompt.messages[0].content.text.as_deref(), Some("greet me"));
        let reference = json!({ "type": "ref/prompt", "name": "greet" });
        let argument = json!({ "name": "who", "value": "you" });
        let params =
            Complete { server: name(server), reference: reference.clone(), argument: argument.clone(), context: None };
        assert_eq!(workspace.run(params).await.values, ["you!"]);
    }
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_has_every_field_of_the_contract_and_no_other() {
    let home = Home::new();
    let definition = with(demo(), json!({ "env": { "PLAIN": "seen by nobody", "REFERRED": "${HOME}" } }));
    let mut workspace = Workspace::open_at(home, json!({ "demo": definition })).await;
    workspace.connected("demo").await;
    workspace.call("mcp__demo__echo", json!({ "text": "for the latency" })).await.unwrap();
    // Calls are measured beside the news, so that a busy server does not make news of itself all the time.
    let status = workspace.status_where("demo", |status| status.latency_ms.is_some()).await;
    let status = json!(status);
    let file = workspace.home.path("config/mcp.json");
    let fields: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "name",
            "status",
            "summary",
            "actions",
            "enabled",
            "transport",
            "launch",
            "scope",
            "file",
            "line",
            "levelScopes",
            "hides",
            "restrictions",
            "needsTrust",
            "serverInfo",
            "protocolVersion",
            "instructions",
            "capabilities",
            "toolCount",
            "resourceCount",
            "promptCount",
            "tools",
            "tokens",
            "pid",
            "startedAt",
            "latencyMs",
            "restarts",
            "warnings",
            "config",
        ]
    );
    for (field, value) in [
        ("name", json!("demo")),
        ("status", json!("connected")),
        ("enabled", json!(true)),
        ("transport", json!("stdio")),
        ("scope", json!("user")),
        ("file", json!(file)),
        ("hides", json!([])),
        ("restrictions", json!([])),
        ("needsTrust", json!(false)),
        ("serverInfo", json!({ "name": "mcp-sidecar-demo", "version": env!("CARGO_PKG_VERSION") })),
        ("protocolVersion", json!("2025-11-25")),
        ("capabilities", json!(["completions", "logging", "prompts", "resources", "tools"])),
        ("toolCount", json!(9)),
        ("resourceCount", json!(1)),
        ("promptCount", json!(1)),
        ("restarts", json!(0)),
        ("warnings", json!([])),
    ] {
        let mut found = status[field].clone();
        if let Some(list) = found.as_array_mut().filter(|_| field == "capabilities") {
            list.sort_by_key(Value::to_string);
        }
        assert_eq!(found, value, "{field}");
    }
    assert!(status["instructions"].as_str().unwrap().starts_with("Harmless"));
    assert!(status["startedAt"].as_str().unwrap().ends_with('Z'));
    let line = std::fs::read_to_string(&file).unwrap().lines().position(|line| line.contains("\"demo\"")).unwrap();
    assert_eq!(status["line"], json!(line), "lines count from 0, as everywhere in LSP");
    let echo = status["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(
        *echo,
        json!({ "name": "echo", "description": "Returns the given text",
            "annotations": { "readOnly": true, "openWorld": false }, "tokens": 59 })
    );
    let shown =
        json!({ "command": PROGRAM, "args": ["demo-server"], "env": { "PLAIN": "•••", "REFERRED": "${HOME}" } });
    assert_eq!(status["config"], shown);
    workspace.quit().await;
}
