//! Every message of a session in both directions is valid LSP, by the official types of the protocol.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use mcp_sidecar::engine::Engine;
use mcp_sidecar::lsp;
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split};

use crate::servers;
use crate::support::commands::start;
use crate::support::harness::demo;
use crate::support::{Home, TestEditor, uri};

type Recorded = Arc<Mutex<Vec<u8>>>;

/// Passes bytes on and keeps them.
async fn tee(mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>, recorded: Recorded) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        recorded.lock().unwrap().extend_from_slice(&buffer[..count]);
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// The messages in a stream.
fn messages(bytes: &[u8]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(4).position(|part| part == b"\r\n\r\n") {
        let header = std::str::from_utf8(&rest[..end]).unwrap();
        let length = header.to_lowercase().split("content-length:").nth(1).unwrap().trim().parse().unwrap();
        messages.push(serde_json::from_slice(&rest[end + 4..][..length]).unwrap());
        rest = &rest[end + 4 + length..];
    }
    messages
}

#[tokio::test]
async fn every_message_of_a_session_is_valid() {
    let Some(python) = servers::lsprotocol("LSPROTOCOL_PYTHON") else { return };
    let home = Home::new();
    let (near, middle_near) = tokio::io::duplex(1 << 20);
    let (middle_far, far) = tokio::io::duplex(1 << 20);
    let (from_client, from_server) = (Recorded::default(), Recorded::default());
    let (near_reader, near_writer) = split(middle_near);
    let (far_reader, far_writer) = split(middle_far);
    let to_server = tokio::spawn(tee(near_reader, far_writer, from_client.clone()));
    let to_client = tokio::spawn(tee(far_reader, near_writer, from_server.clone()));
    let engine = Engine::start(home.paths(), Settings::default());
    let (reader, writer) = split(far);
    tokio::spawn(lsp::serve(reader, writer, engine.clone(), lsp::Peer::default()));
    let (reader, writer) = split(near);
    let mut editor = TestEditor::on(reader, writer);
    drive(&home, &mut editor).await;
    editor.quit().await;
    to_server.await.unwrap();
    to_client.await.unwrap();

    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut entries: Vec<Value> = Vec::new();
    // A request has to come before its response.
    let (client, server) = (messages(&from_client.lock().unwrap()), messages(&from_server.lock().unwrap()));
    let both = [("client", &client), ("server", &server)];
    for is_response in [false, true] {
        for (from, all) in both {
            let wanted = all.iter().filter(|message| message.get("method").is_none() == is_response);
            entries.extend(wanted.map(|message| json!({ "from": from, "message": message })));
        }
    }
    for entry in &entries {
        writeln!(file, "{entry}").unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/lsprotocol_check.py");
    let output = Command::new(python).arg(script).arg(file.path()).output().unwrap();
    let checked = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}\n{checked}", String::from_utf8_lossy(&output.stderr));
    for method in [
        "client initialize",
        "server initialize (response)",
        "server textDocument/publishDiagnostics",
        "server textDocument/completion (response)",
        "server textDocument/hover (response)",
        "server textDocument/codeLens (response)",
        "server textDocument/codeAction (response)",
        "server textDocument/rename (response)",
        "server textDocument/documentLink (response)",
        "server workspace/executeCommand (response)",
        "server workspace/applyEdit",
        "server window/showMessageRequest",
        "server window/showDocument",
        "server window/workDoneProgress/create",
        "server $/progress",
        "server window/showMessage",
        "server workspace/codeLens/refresh",
        "server workspace/inlayHint/refresh",
        "server workspace/configuration",
    ] {
        assert!(checked.lines().any(|line| line.ends_with(&format!(" {method}"))), "{method} is missing:\n{checked}");
    }
}

/// Uses everything that a client can use.
async fn drive(home: &Home, editor: &mut TestEditor) {
    let tools = json!({ "countdown": "allow-always", "eho": "deny" });
    let inputs = json!([{ "id": "k", "type": "promptString", "description": "Key" }]);
    let servers = json!({ "demo": demo(tools), "web": { "type": "http", "url": "https://example.test/${FOO}" },
        "docs": { "type": "http", "url": "https://example.test/mcp", "enabled": false, "comand": 5 } });
    let text = serde_json::to_string_pretty(&json!({ "servers": servers, "inputs": inputs })).unwrap();
    let path = home.paths().user_config();
    std::fs::write(&path, &text).unwrap();
    home.write("mcp.json", &json!({ "servers": { "docs": { "command": "sh" } } }).to_string());
    editor.ignore("textDocument/publishDiagnostics");
    editor.ignore("window/showMessage");
    editor.ignore("$/progress");
    for method in ["workspace/codeLens/refresh", "workspace/inlayHint/refresh", "window/workDoneProgress/create"] {
        editor.handle(method, |_| Ok(Value::Null));
    }
    editor.handle("window/showDocument", |_| Ok(json!({ "success": true })));
    editor.handle("workspace/applyEdit", |_| Ok(json!({ "applied": true })));
    editor.handle("workspace/configuration", |_| Ok(json!([null])));
    editor.handle("window/showMessageRequest", |params| Ok(params["actions"][0].clone()));
    let capabilities = json!({
        "general": { "positionEncodings": ["utf-8", "utf-16"] },
        "window": { "showDocument": { "support": true }, "workDoneProgress": true },
        "workspace": { "applyEdit": true, "configuration": true, "codeLens": { "refreshSupport": true },
            "inlayHint": { "refreshSupport": true }, "workspaceEdit": { "documentChanges": true } },
        "textDocument": {
            "codeAction": { "codeActionLiteralSupport": { "codeActionKind": { "valueSet": ["", "quickfix", "refactor"] } } },
            "publishDiagnostics": { "codeDescriptionSupport": true, "relatedInformation": true },
            "documentLink": { "tooltipSupport": true },
            "completion": { "completionItem": { "snippetSupport": true } }
        }
    });
    let root = json!({ "capabilities": capabilities, "rootUri": uri(&home.project()),
        "clientInfo": { "name": "recorder", "version": "1" } });
    editor.initialize(&[&home.project()], root).await;
    editor.open(&path, &text);
    editor.call(start("demo")).await.ok();
    let document = json!({ "uri": uri(&path) });
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 60, "character": 0 } });
    for method in ["documentSymbol", "foldingRange", "codeLens", "documentLink"] {
        editor.request(&format!("textDocument/{method}"), json!({ "textDocument": document })).await.unwrap();
    }
    let params = json!({ "textDocument": document, "range": whole });
    editor.request("textDocument/inlayHint", params).await.unwrap();
    for (line, words) in text.lines().enumerate() {
        let position = json!({ "line": line, "character": words.len().min(words.find('"').unwrap_or(0) + 2) });
        let at = json!({ "textDocument": document, "position": position });
        for method in ["completion", "hover", "definition", "documentHighlight", "prepareRename"] {
            editor.request(&format!("textDocument/{method}"), at.clone()).await.unwrap();
        }
        let mut references = at.clone();
        references["context"] = json!({ "includeDeclaration": true });
        editor.request("textDocument/references", references).await.unwrap();
        let mut rename = at;
        rename["newName"] = json!("other");
        editor.request("textDocument/rename", rename).await.ok();
        let positions = json!({ "textDocument": document, "positions": [position] });
        editor.request("textDocument/selectionRange", positions).await.unwrap();
        let range = json!({ "start": position, "end": position });
        let context = json!({ "diagnostics": [], "triggerKind": 1 });
        let actions = json!({ "textDocument": document, "range": range, "context": context });
        editor.request("textDocument/codeAction", actions).await.unwrap();
    }
    let countdown = json!({ "tool": "mcp__demo__countdown", "arguments": { "from": 2, "interval": 1 }, "show": true });
    editor.raw_command("mcp.tool.call", countdown).await.ok();
    editor.raw_command("mcp.doctor", json!({ "show": true })).await.unwrap();
    editor.raw_command("mcp.servers", json!({ "show": true })).await.unwrap();
    editor.raw_command("mcp.template.insert", json!({ "uri": uri(&path) })).await.unwrap();
    editor.raw_command("mcp.nothing", json!({})).await.unwrap_err();
    editor.change(&path, 2, "{ \"servers\": {,} }");
    editor.ask_about("textDocument/foldingRange", &path).await;
    let settings = home.paths().settings_file();
    editor.open(&settings, "audit = 5\n");
    let at = json!({ "textDocument": { "uri": uri(&settings) }, "position": { "line": 0, "character": 2 } });
    editor.request("textDocument/hover", at.clone()).await.unwrap();
    editor.request("textDocument/completion", at).await.unwrap();
    editor.close(&settings);
    editor.notify("textDocument/didSave", json!({ "textDocument": document }));
    editor.close(&path);
}
