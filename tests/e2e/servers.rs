//! Public servers and both eras of MCP, over every way there is: connected, listed, and put to use.

mod hosts;

use std::process::Command;

use serde_json::{Value, json};

use crate::public::program;
use crate::support::Home;
use crate::workspace::{PROGRAM, Workspace, demo, fixture, text, with};
use hosts::Listening;

/// What `server-everything` can, whichever way it is reached.
async fn everything_works(workspace: &mut Workspace, server: &str, transport: &str) {
    let status = workspace.connected(server).await;
    assert_eq!(status["transport"], transport);
    assert_eq!(status["serverInfo"]["name"], "mcp-servers/everything");
    let tools = workspace.tools(server).await;
    assert!(tools.iter().any(|tool| tool["name"] == format!("mcp__{server}__get-sum")), "{tools:#?}");

    let sum = workspace.call(&format!("mcp__{server}__get-sum"), json!({ "a": 2, "b": 40 })).await.unwrap();
    assert!(sum.contains("42"), "{sum}");

    let resources = workspace.command("mcp.resources", json!({ "server": server })).await;
    let uri = resources["resources"][0]["uri"].clone();
    assert_eq!(resources["resources"][0]["server"], server);
    assert_eq!(resources["templates"][0]["server"], server);
    let read = workspace.command("mcp.resource.read", json!({ "server": server, "uri": uri })).await;
    assert_eq!(read["contents"][0]["uri"], uri);

    let params = json!({ "server": server, "name": "args-prompt", "arguments": { "city": "Aarhus" } });
    let prompt = workspace.command("mcp.prompt.get", params).await;
    assert!(prompt["messages"][0]["content"]["text"].as_str().unwrap().contains("Aarhus"), "{prompt:#}");

    let reference = json!({ "type": "ref/prompt", "name": "completable-prompt" });
    let argument = json!({ "name": "department", "value": "E" });
    let params = json!({ "server": server, "ref": reference, "argument": argument });
    let completed = workspace.command("mcp.complete", params).await;
    assert_eq!(completed, json!({ "values": ["Engineering"], "hasMore": false }));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_works_as_a_child_process() {
    let Some(program) = program("MCP_SERVER_EVERYTHING") else { return };
    let mut workspace = Workspace::open(json!({ "every": { "command": program, "args": ["stdio"] } })).await;
    everything_works(&mut workspace, "every", "stdio").await;
    workspace.quit().await;
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
    let warnings = workspace.status("every").await["warnings"].to_string();
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
    assert_eq!(status["scope"], "claudeai");
    assert_eq!(status["config"]["headers"]["Authorization"], "•••");
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
    let outside = json!({ "tool": "mcp__fs__read_text_file", "arguments": { "path": "/etc/hostname" } });
    let refused = workspace.command("mcp.tool.call", outside).await;
    assert_eq!(refused["isError"], true, "what the tool reports is a result: {refused:#}");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_git_server_tells_the_state_of_the_project() {
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
async fn a_time_server_tells_the_time_as_structured_content() {
    let Some(program) = program("MCP_SERVER_TIME") else { return };
    let mut workspace = Workspace::open(json!({ "time": { "command": program } })).await;
    workspace.connected("time").await;
    let params = json!({ "tool": "mcp__time__get_current_time", "arguments": { "timezone": "Europe/Copenhagen" } });
    let result = workspace.command("mcp.tool.call", params).await;
    assert_eq!(result["structuredContent"]["timezone"], "Europe/Copenhagen", "{result:#}");
    let wrong = workspace.call("mcp__time__get_current_time", json!({ "timezone": 5 })).await.unwrap_err();
    assert_eq!((&wrong["code"], &wrong["data"]["kind"]), (&json!(-32602), &json!("invalid-arguments")));
    assert_eq!(wrong["data"]["detail"][0]["path"], "/timezone");
    workspace.quit().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_oldest_and_of_the_newest_protocol_work_side_by_side() {
    let servers = json!({ "old": fixture("eras.py", &["2024-11-05"]), "new": fixture("eras.py", &["2026-07-28"]) });
    let mut workspace = Workspace::open(servers).await;
    for (server, version) in [("old", "2024-11-05"), ("new", "2026-07-28")] {
        let status = workspace.connected(server).await;
        assert_eq!(status["protocolVersion"], version);
        assert_eq!(status["serverInfo"], json!({ "name": "era", "version": version }));
        let said = workspace.call(&format!("mcp__{server}__echo"), json!({ "text": "hi" })).await;
        assert_eq!(said.unwrap(), "hi");
        let read = workspace.command("mcp.resource.read", json!({ "server": server, "uri": "era://now" })).await;
        assert_eq!(read, json!({ "contents": [{ "uri": "era://now", "text": version }] }));
        let prompt = workspace.command("mcp.prompt.get", json!({ "server": server, "name": "greet" })).await;
        assert_eq!(text(&json!({ "content": [prompt["messages"][0]["content"]] })), "greet me");
        let reference = json!({ "type": "ref/prompt", "name": "greet" });
        let argument = json!({ "name": "who", "value": "you" });
        let params = json!({ "server": server, "ref": reference, "argument": argument });
        assert_eq!(workspace.command("mcp.complete", params).await["values"], json!(["you!"]));
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
    let status = workspace.status_where("demo", |status| status["latencyMs"].is_number()).await;
    let file = workspace.home.path("config/mcp.json");
    let fields: Vec<&str> = status.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        [
            "name",
            "status",
            "enabled",
            "transport",
            "scope",
            "file",
            "line",
            "hides",
            "needsTrust",
            "serverInfo",
            "protocolVersion",
            "instructions",
            "capabilities",
            "toolCount",
            "resourceCount",
            "promptCount",
            "tools",
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
            "annotations": { "readOnly": true, "openWorld": false } })
    );
    let shown =
        json!({ "command": PROGRAM, "args": ["demo-server"], "env": { "PLAIN": "•••", "REFERRED": "${HOME}" } });
    assert_eq!(status["config"], shown);
    workspace.quit().await;
}
