//! What servers and agents bring beyond the core: metadata, extensions, tasks and pages of MCP Apps, through
//! `mcp-sidecar connect`, with the public server `everything` and an MCP App that others wrote.

use serde_json::{Value, json};

use crate::servers;
use crate::stdio_agent::{PROGRAM, StdioAgent, text};
use crate::support::Home;

const UI: &str = "io.modelcontextprotocol/ui";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const RESEARCH: &str = "everything__simulate-research-query";

/// A home whose user has this server.
fn home(name: &str, mut server: Value, levels: Value) -> Home {
    let home = Home::new();
    server["tools"] = levels;
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { name: server } }).to_string()).unwrap();
    home
}

fn everything(levels: Value) -> Option<Home> {
    let program = servers::program("MCP_SERVER_EVERYTHING")?;
    Some(home("everything", json!({ "command": program, "args": ["stdio"] }), levels))
}

fn extended() -> Home {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/extended.py");
    home("extended", json!({ "command": "python3", "args": [script] }), json!({ "*": "allow-session" }))
}

async fn start_task(agent: &mut StdioAgent, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } });
    let created = agent.ask("tools/call", params).await;
    let task = &created["result"]["task"];
    assert_eq!(task["status"], "working", "{created:#}");
    task["taskId"].as_str().unwrap().to_owned()
}

async fn status(agent: &mut StdioAgent, task: &str) -> Value {
    agent.ask("tasks/get", json!({ "taskId": task })).await["result"]["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_runs_only_as_a_task_just_works_for_an_agent_and_in_the_shell() {
    let Some(home) = everything(json!({ "*": "allow-session" })) else { return };
    let mut agent = StdioAgent::start(&home, &home.project()).await;
    let tool = agent.until_listed(RESEARCH).await;
    assert_eq!(tool["execution"]["taskSupport"], "optional", "agents without tasks may call it, too");
    let params = json!({ "name": RESEARCH, "arguments": { "topic": "ants" }, "_meta": { "progressToken": "p" } });
    let result = agent.ask("tools/call", params).await;
    assert!(text(&result).contains("# Research Report: ants"), "{result:#}");
    let progress = agent.notified("notifications/progress").await;
    assert_eq!(progress["progressToken"], "p");

    let mut shell = tokio::process::Command::new(PROGRAM);
    shell.args(["call", "mcp__everything__simulate-research-query", r#"{"topic":"bees"}"#]);
    let output = shell.envs(home.variables()).current_dir(home.project()).output().await.unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("# Research Report: bees"), "{shown}{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_starts_follows_and_lists_its_own_tasks() {
    let Some(home) = everything(json!({ "*": "allow-session" })) else { return };
    let mut agent = StdioAgent::start(&home, &home.project()).await;
    assert!(agent.server["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object(), "{:#}", agent.server);
    agent.until_listed(RESEARCH).await;
    let task = start_task(&mut agent, RESEARCH, json!({ "topic": "owls" })).await;
    assert_eq!(status(&mut agent, &task).await, "working");
    let list = agent.ask("tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"][0]["taskId"], task.as_str());

    let result = agent.ask("tasks/result", json!({ "taskId": task })).await;
    assert!(text(&result).contains("# Research Report: owls"), "{result:#}");
    assert_eq!(result["result"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], task.as_str());
    assert_eq!(status(&mut agent, &task).await, "completed");

    // A tool that is not made for it.
    let params = json!({ "name": "everything__echo", "arguments": { "message": "x" }, "task": {} });
    assert_eq!(agent.ask("tools/call", params).await["error"]["code"], -32601);
    // A task of another agent cannot be listed.
    let mut other = StdioAgent::start(&home, &home.project()).await;
    assert_eq!(other.ask("tasks/list", json!({})).await["result"]["tasks"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_needs_the_approval_of_the_user_and_can_be_cancelled() {
    let Some(home) = everything(json!({ "*": "require-approval" })) else { return };
    let mut agent = StdioAgent::with(&home, &home.project(), json!({ "elicitation": {} })).await;
    agent.until_listed(RESEARCH).await;
    let task = start_task(&mut agent, RESEARCH, json!({ "topic": "cats" })).await;
    let asked = agent.message("elicitation/create").await;
    assert_eq!(status(&mut agent, &task).await, "working", "it waits for the user");
    let yes = json!({ "action": "accept", "content": { "decision": "allow-once" } });
    agent.send(json!({ "id": asked["id"], "result": yes })).await;
    let cancelled = agent.ask("tasks/cancel", json!({ "taskId": task })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled:#}");
    assert!(agent.ask("tasks/result", json!({ "taskId": task })).await["error"].is_object());
    assert!(agent.ask("tasks/cancel", json!({ "taskId": task })).await["error"].is_object());

    // The user says no.
    let task = start_task(&mut agent, RESEARCH, json!({ "topic": "dogs" })).await;
    let asked = agent.message("elicitation/create").await;
    let no = json!({ "action": "accept", "content": { "decision": "deny" } });
    agent.send(json!({ "id": asked["id"], "result": no })).await;
    let result = agent.ask("tasks/result", json!({ "taskId": task })).await;
    assert_eq!(result["result"]["isError"], true, "{result:#}");
    assert!(text(&result).contains("was denied"), "{result:#}");
    assert_eq!(status(&mut agent, &task).await, "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_task_reaches_the_user() {
    let Some(home) = everything(json!({ "*": "allow-session" })) else { return };
    let mut agent = StdioAgent::with(&home, &home.project(), json!({ "elicitation": {} })).await;
    agent.until_listed(RESEARCH).await;
    let id = agent
        .begin("tools/call", json!({ "name": RESEARCH, "arguments": { "topic": "python", "ambiguous": true } }))
        .await;
    let asked = agent.message("elicitation/create").await;
    let choice = &asked["params"]["requestedSchema"]["properties"]["interpretation"]["oneOf"][0]["const"];
    let yes = json!({ "action": "accept", "content": { "interpretation": choice } });
    agent.send(json!({ "id": asked["id"], "result": yes })).await;
    let result = agent.response(id).await;
    assert!(text(&result).contains(&format!("python ({})", choice.as_str().unwrap())), "{result:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_unknown_fields_and_extensions_pass_in_both_directions() {
    let home = extended();
    let known = json!({ "extensions": { "example.test/known": {}, "example.test/mine": {} } });
    // The extensions of a server are known once it has started.
    let mut first = StdioAgent::start(&home, &home.project()).await;
    let tool = first.until_listed("extended__echo").await;
    assert_eq!(tool["x-unknown"], "echo");
    let mut agent = StdioAgent::with(&home, &home.project(), known).await;
    assert_eq!(agent.server["capabilities"]["extensions"], json!({ "example.test/known": { "level": 1 } }));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let meta =
        json!({ "traceparent": trace, "example.test/own": [1], "progressToken": 5, "mcp-sidecar/workflow": "w" });
    let params = json!({ "name": "extended__echo", "arguments": { "a": 1 }, "_meta": meta });
    let result = agent.ask("tools/call", params).await;
    assert_eq!(result["result"]["_meta"], json!({ "example.test/seen": true }));
    assert_eq!(result["result"]["x-unknown"], 7);
    let seen: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(seen["params"]["_meta"]["traceparent"], trace);
    assert_eq!(seen["params"]["_meta"]["example.test/own"], json!([1]));
    assert_eq!(seen["params"]["_meta"].get("mcp-sidecar/workflow"), None);
    assert_ne!(seen["params"]["_meta"]["progressToken"], 5, "the token of the other connection");
    assert!(seen["capabilities"]["extensions"][TASKS].is_object());
    assert_eq!(seen["capabilities"]["extensions"][UI]["mimeTypes"], json!(["text/html;profile=mcp-app"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_the_extension_is_followed_asked_for_and_cancelled() {
    let home = extended();
    let mut agent = StdioAgent::with(&home, &home.project(), json!({ "elicitation": {} })).await;
    agent.until_listed("extended__slow").await;
    let id = agent.begin("tools/call", json!({ "name": "extended__slow", "arguments": {} })).await;
    let asked = agent.message("elicitation/create").await;
    let yes = json!({ "action": "accept", "content": { "name": "Ada" } });
    agent.send(json!({ "id": asked["id"], "result": yes })).await;
    let result = agent.response(id).await;
    let answer: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(answer["content"]["name"], "Ada");

    let params = json!({ "name": "extended__endless", "arguments": {}, "_meta": { "progressToken": 1 } });
    let id = agent.begin("tools/call", params).await;
    agent.notified("notifications/progress").await;
    agent.send(json!({ "method": "notifications/cancelled", "params": { "requestId": id } })).await;
    loop {
        let listed = agent.call("extended__tasks", json!({})).await;
        let tasks: Value = serde_json::from_str(text(&listed)).unwrap();
        if tasks["task-1"] == "cancelled" {
            break;
        }
        assert_eq!(tasks["task-1"], "working");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_an_mcp_app_reaches_a_host_that_can_show_it() {
    let Some(app) = servers::backend("MCP_BACKEND_APP") else { return };
    let levels = json!({ "*": "allow-session", "resource:*": "allow-session" });
    let home = home("app", json!({ "command": app, "args": ["--stdio"] }), levels);
    let host = json!({ "extensions": { UI: { "mimeTypes": ["text/html;profile=mcp-app"] } } });
    let mut agent = StdioAgent::with(&home, &home.project(), host).await;
    let tool = agent.until_listed("app__get-time").await;
    let uri = tool["_meta"]["ui"]["resourceUri"].as_str().unwrap().to_owned();
    let page = agent.ask("resources/read", json!({ "uri": uri })).await;
    let content = &page["result"]["contents"][0];
    assert_eq!(content["mimeType"], "text/html;profile=mcp-app", "{page:#}");
    assert!(content["text"].as_str().unwrap().contains("<html"));
    let result = agent.call("app__get-time", json!({})).await;
    assert!(result["result"]["structuredContent"]["time"].is_string(), "{result:#}");

    // Two servers with a page of the same name: each tool leads to its own.
    let server = json!({ "command": servers::backend("MCP_BACKEND_APP"), "args": ["--stdio"], "tools": { "*": "allow-session", "resource:*": "allow-session" } });
    let both = json!({ "servers": { "one": server, "two": server } });
    let home = Home::new();
    std::fs::write(home.path("config/mcp.json"), both.to_string()).unwrap();
    let mut agent = StdioAgent::start(&home, &home.project()).await;
    for name in ["one__get-time", "two__get-time"] {
        agent.until_listed(name).await;
    }
    let mut pages = Vec::new();
    for name in ["one__get-time", "two__get-time"] {
        let uri = agent.until_listed(name).await["_meta"]["ui"]["resourceUri"].clone();
        let page = agent.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(page["result"]["contents"][0]["uri"], uri, "{page:#}");
        pages.push(uri);
    }
    assert_ne!(pages[0], pages[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_newer_era_gets_a_task_and_follows_it() {
    let Some(home) = everything(json!({ "*": "allow-session" })) else { return };
    let mut agent = StdioAgent::stateless(&home, &home.project());
    let capabilities = json!({ "extensions": { TASKS: {} } });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "newer", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let discovered = agent.ask("server/discover", json!({ "_meta": meta })).await;
    assert!(discovered["result"]["capabilities"]["extensions"][TASKS].is_object(), "{discovered:#}");
    agent.ask("tools/list", json!({ "_meta": meta })).await;
    let call = |topic: &str| json!({ "name": RESEARCH, "arguments": { "topic": topic }, "_meta": meta });
    let created = agent.ask("tools/call", call("bats")).await;
    assert_eq!(created["result"]["resultType"], "task", "{created:#}");
    let about = json!({ "taskId": created["result"]["taskId"], "_meta": meta });
    let interval = created["result"]["pollIntervalMs"].as_u64().unwrap();
    let done = loop {
        let task = agent.ask("tasks/get", about.clone()).await;
        if task["result"]["status"] != "working" {
            break task;
        }
        tokio::time::sleep(std::time::Duration::from_millis(interval)).await;
    };
    assert_eq!(done["result"]["status"], "completed", "{done:#}");
    let report = done["result"]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(report.contains("# Research Report: bats"), "{report}");

    let created = agent.ask("tools/call", call("rats")).await;
    let about = json!({ "taskId": created["result"]["taskId"], "_meta": meta });
    let cancelled = agent.ask("tasks/cancel", about.clone()).await;
    assert_eq!(cancelled["result"], json!({ "resultType": "complete" }), "{cancelled:#}");
    assert_eq!(agent.ask("tasks/get", about).await["result"]["status"], "cancelled");
}
