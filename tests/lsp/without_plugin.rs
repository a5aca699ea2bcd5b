//! An editor without our plugin, which supports only commands and edits: every fix works, every outcome is shown, and
//! approvals are shown one at a time.

use std::path::Path;
use std::sync::{Arc, Mutex};

use mcp_sidecar::engine::Engine;
use mcp_sidecar::engine::gate::{AgentConnection, CallRequest};
use mcp_sidecar::lsp_client::CommandError;
use mcp_sidecar::model::{CallId, ToolId};
use mcp_sidecar::protocol::commands::{Approvals, Grants, Servers, ToolOpen};
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::types::{ServerStatus, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::commands::{name, object, resolve, start, tool_call};
use crate::support::harness::{demo, open_editor, scripted};
use crate::support::{Home, TestEditor, attach_to, uri};

/// The texts of the edits that the editor was asked to make.
type Applied = Arc<Mutex<Vec<Value>>>;

async fn editor(home: &Home, more: Value, settings: Settings) -> (TestEditor, Applied) {
    let engine = Engine::start(home.paths(), settings);
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    editor.handle("window/showMessageRequest", |_| Ok(Value::Null));
    let applied = Applied::default();
    let taken = applied.clone();
    editor.handle("workspace/applyEdit", move |params| {
        taken.lock().unwrap().push(params["edit"]["changes"].clone());
        Ok(json!({ "applied": true }))
    });
    let mut capabilities = json!({ "workspace": { "applyEdit": true } });
    for (key, value) in more.as_object().unwrap() {
        capabilities[key] = value.clone();
    }
    editor.initialize(&[&home.project()], json!({ "capabilities": capabilities })).await;
    (editor, applied)
}

async fn actions(editor: &mut TestEditor, path: &Path, line: u32, character: u32) -> Vec<Value> {
    actions_for(editor, path, line, character, json!({ "diagnostics": [] })).await
}

async fn actions_for(editor: &mut TestEditor, path: &Path, line: u32, character: u32, context: Value) -> Vec<Value> {
    let at = json!({ "line": line, "character": character });
    let range = json!({ "start": at, "end": at });
    let params = json!({ "textDocument": { "uri": uri(path) }, "range": range, "context": context });
    editor.request("textDocument/codeAction", params).await.unwrap().as_array().unwrap().clone()
}

/// Clicks a command.
async fn click(editor: &mut TestEditor, commands: &[Value], title: &str) -> Result<Value, CommandError> {
    let found = commands.iter().find(|command| command["title"] == title);
    let command = found.unwrap_or_else(|| panic!("no {title}: {commands:#?}"));
    assert!(command["command"].is_string() && command["arguments"].is_array(), "a bare command: {command:#}");
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    editor.request("workspace/executeCommand", params).await
}

#[tokio::test]
async fn a_quick_fix_is_a_command_that_applies_its_edit() {
    let home = Home::new();
    let text = "{ \"servers\": {\n  \"a\": { \"comand\": \"sh\" } // kept\n} }";
    let path = home.write("mcp.json", text);
    let (mut editor, applied) = editor(&home, json!({}), Settings::default()).await;
    editor.open(&path, text);
    let commands = actions(&mut editor, &path, 1, 10).await;
    click(&mut editor, &commands, "Change to `command`").await.unwrap();
    let changes = applied.lock().unwrap().remove(0);
    let edit = &changes[uri(&path)][0];
    assert_eq!(edit["newText"], "\"command\"");
    assert_eq!(edit["range"]["start"], json!({ "line": 1, "character": 9 }));
    editor.change(&path, 2, "{}");
    let late = click(&mut editor, &commands, "Change to `command`").await.unwrap_err();
    assert_eq!(late.kind(), Some(ErrorKind::Conflict), "an edit for an older text is not made: {late}");
    editor.quit().await;
}

#[tokio::test]
async fn a_secret_is_moved_from_the_file_to_the_keyring() {
    let home = Home::new();
    let text =
        "{ \"servers\": { \"a\": { \"command\": \"sh\", \"env\": { \"API_TOKEN\": \"Bearer s3cr3t-value\" } } } }";
    let path = home.write("mcp.json", text);
    let mut settings = Settings::default();
    // Machines that run tests have no keyring.
    settings.secrets.file = true;
    let (mut editor, applied) = editor(&home, json!({}), settings).await;
    editor.ignore("window/showMessage");
    editor.open(&path, text);
    let column = text.find("\"Bearer").unwrap() as u32;
    let commands = actions(&mut editor, &path, 0, column + 2).await;
    click(&mut editor, &commands, "Move to the keyring as `API_TOKEN`").await.unwrap();
    let changes = applied.lock().unwrap().remove(0);
    assert_eq!(changes[uri(&path)][0]["newText"], "\"Bearer ${keyring:API_TOKEN}\"");
    let kept = std::fs::read_dir(home.path("state")).unwrap().map(|entry| entry.unwrap().path());
    let holding = kept.filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("s3cr3t-value")));
    assert_eq!(holding.count(), 1, "it is kept where the settings say");
    editor.quit().await;
}

#[tokio::test]
async fn the_outcome_of_a_code_lens_is_shown() {
    let home = Home::new();
    let text = json!({ "servers": { "demo": demo(json!({})) } }).to_string();
    let path = home.paths().user_config();
    std::fs::write(&path, &text).unwrap();
    let window = json!({ "window": { "showDocument": { "support": true } } });
    let (mut editor, applied) = editor(&home, window, Settings::default()).await;
    let documents = Applied::default();
    let taken = documents.clone();
    editor.handle("window/showDocument", move |params| {
        taken.lock().unwrap().push(params["uri"].clone());
        Ok(json!({ "success": true }))
    });
    editor.open(&path, &text);
    editor.call(start("demo")).await.unwrap();
    let lenses = editor.ask_about("textDocument/codeLens", &path).await;
    let lenses: Vec<Value> = lenses.as_array().unwrap().iter().map(|lens| lens["command"].clone()).collect();
    for (title, shown) in [("Test", "connected"), ("Restart", "demo: connected"), ("Reload", "nothing changed")] {
        click(&mut editor, &lenses, title).await.unwrap();
        let message = editor.notification("window/showMessage").await;
        assert!(message["message"].as_str().unwrap().contains(shown), "{title}: {message:#}");
    }
    click(&mut editor, &lenses, "Show log").await.unwrap();
    let shown = url::Url::parse(documents.lock().unwrap()[0].as_str().unwrap()).unwrap().to_file_path().unwrap();
    assert!(std::fs::read_to_string(shown).unwrap().contains("sidecar"), "the log is a text to read");
    editor.handle("window/showMessageRequest", |params| Ok(params["actions"][0].clone()));
    let added = click(&mut editor, &lenses, "Add server…").await.unwrap();
    let changes = applied.lock().unwrap().remove(0);
    let new = changes[uri(&path)][0]["newText"].as_str().unwrap();
    assert!(new.contains(added["server"].as_str().unwrap()), "{new}");
    editor.quit().await;
}

fn titles(commands: &[Value], prefix: &str) -> Vec<String> {
    let titles = commands.iter().map(|command| command["title"].as_str().unwrap().to_owned());
    titles.filter(|title| title.starts_with(prefix)).collect()
}

#[tokio::test]
async fn a_question_that_waits_is_in_the_menu_of_any_file_when_the_user_asks_for_it() {
    let home = Home::new();
    home.write("mcp.json", &json!({ "servers": { "demo": demo(json!({})) } }).to_string());
    let source = home.write("main.rs", "fn main() {}");
    // The message about trust is closed, which decides nothing.
    let (mut editor, _) = editor(&home, json!({}), Settings::default()).await;
    editor.open(&source, "fn main() {}");
    let invoked = json!({ "diagnostics": [], "triggerKind": 1 });
    let menu = loop {
        let menu = actions_for(&mut editor, &source, 0, 0, invoked.clone()).await;
        if !titles(&menu, "Review").is_empty() {
            break menu;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(titles(&menu, "Review"), ["Review: Trust the server `demo`…"]);
    let automatic = json!({ "diagnostics": [], "triggerKind": 2 });
    let bulb = actions_for(&mut editor, &source, 0, 0, automatic).await;
    assert_eq!(titles(&bulb, "Review"), [] as [String; 0], "no light bulb on every line");
    editor.ignore("window/showMessage");
    editor.handle("window/showMessageRequest", |params| {
        assert!(params["message"].as_str().unwrap().starts_with("Trust the server `demo`?"));
        let yes = params["actions"].as_array().unwrap().iter().find(|action| action["title"] == "Trust");
        Ok(yes.unwrap().clone())
    });
    click(&mut editor, &menu, "Review: Trust the server `demo`…").await.unwrap();
    loop {
        let started = editor.call(start("demo")).await;
        if started.is_ok_and(|answer| answer.servers[0].status == Status::Connected) {
            break;
        }
    }
    editor.quit().await;
}

#[tokio::test]
async fn a_server_lists_its_tools_and_the_rule_of_a_tool_calls_it() {
    let home = Home::new();
    let text = json!({ "servers": { "demo": demo(json!({ "forget_notes": "allow-session", "picture": "deny" })) } });
    let text = serde_json::to_string_pretty(&text).unwrap();
    let path = home.paths().user_config();
    std::fs::write(&path, &text).unwrap();
    let window = json!({ "window": { "showDocument": { "support": true } } });
    let (mut editor, _) = editor(&home, window, Settings::default()).await;
    let (shown, mut documents) = mpsc::unbounded_channel();
    editor.handle("window/showDocument", move |params| {
        shown.send(params["uri"].as_str().unwrap().to_owned()).unwrap();
        Ok(json!({ "success": true }))
    });
    editor.open(&path, &text);
    editor.call(start("demo")).await.unwrap();
    let line_of = |word: &str| text.lines().position(|line| line.contains(word)).unwrap() as u32;
    let all = actions(&mut editor, &path, line_of("\"demo\""), 6).await;
    let all = titles(&all, "Call");
    assert!(all.contains(&"Call `echo` of `demo`…".to_owned()) && all.len() > 3, "{all:?}");
    assert!(!all.contains(&"Call `picture` of `demo`…".to_owned()), "a call would be denied: {all:?}");
    // From any column of its line, also in front of the name and behind the bracket.
    let name_line = text.lines().find(|line| line.contains("\"demo\"")).unwrap().len() as u32;
    for column in [0, 3, name_line] {
        let here = actions(&mut editor, &path, line_of("\"demo\""), column).await;
        assert_eq!(titles(&here, "Call"), all, "column {column}");
    }
    let rule_line = text.lines().find(|line| line.contains("forget_notes")).unwrap().len() as u32;
    for column in [0, rule_line] {
        let here = actions(&mut editor, &path, line_of("forget_notes"), column).await;
        assert_eq!(titles(&here, "Call"), ["Call `forget_notes` of `demo`…"], "column {column}");
    }
    let none = actions(&mut editor, &path, line_of("\"servers\""), 0).await;
    assert_eq!(titles(&none, "Call"), [] as [String; 0]);
    let one = actions(&mut editor, &path, line_of("forget_notes"), 12).await;
    assert_eq!(titles(&one, "Call"), ["Call `forget_notes` of `demo`…"]);
    let result = click(&mut editor, &one, "Call `forget_notes` of `demo`…").await.unwrap();
    assert_eq!(result["tool"], "forget_notes");
    let document = url::Url::parse(&documents.recv().await.unwrap()).unwrap().to_file_path().unwrap();
    assert_eq!(std::fs::read_to_string(document).unwrap(), result["content"][0]["text"].as_str().unwrap());
    let needs = editor.call(ToolOpen { tool: "mcp__demo__echo".to_owned() }).await.unwrap_err();
    assert!(needs.message.contains("needs arguments (text)"), "{needs}");
    editor.quit().await;
}

#[tokio::test]
async fn settings_are_requested_again_when_they_change() {
    let home = Home::new();
    let text = "{ \"servers\": {} }";
    let path = home.write("mcp.json", text);
    let workspace = json!({ "workspace": { "applyEdit": true, "configuration": true } });
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    let (asked, mut asks) = mpsc::unbounded_channel();
    let mut answers = vec![json!([null]), json!([{ "editor": { "hideLenses": ["reload"] } }])];
    editor.handle("workspace/configuration", move |params| {
        asked.send(params["items"][0]["section"].clone()).unwrap();
        Ok(answers.pop().unwrap())
    });
    editor.initialize(&[&home.project()], json!({ "capabilities": workspace })).await;
    editor.open(&path, text);
    let titles = |lenses: &Value| -> Vec<String> {
        lenses.as_array().unwrap().iter().map(|lens| lens["command"]["title"].as_str().unwrap().to_owned()).collect()
    };
    // The editor answers that request before this one, so the settings are applied.
    while asks.try_recv().is_err() {
        editor.ask_about("textDocument/codeLens", &path).await;
    }
    assert_eq!(titles(&editor.ask_about("textDocument/codeLens", &path).await), ["Add server…"]);
    editor.notify("workspace/didChangeConfiguration", json!({ "settings": null }));
    while asks.try_recv().is_err() {
        editor.ask_about("textDocument/codeLens", &path).await;
    }
    editor.quit().await;
}

#[tokio::test]
async fn messages_about_trust_are_shown_one_at_a_time_and_do_not_delay_a_call() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let servers =
        json!({ "servers": { "a": { "command": "sh" }, "b": { "command": "sh" }, "c": { "command": "sh" } } });
    home.write("mcp.json", &servers.to_string());
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    let asked = Applied::default();
    let taken = asked.clone();
    editor.handle("window/showMessageRequest", move |params| {
        taken.lock().unwrap().push(params["message"].clone());
        let message = params["message"].as_str().unwrap();
        // The user allows the call, wants to see the servers one by one, and closes the other messages.
        Ok(match message {
            _ if message.contains("echo") => json!({ "title": "Allow once" }),
            _ if message.starts_with("Trust 3 servers") => json!({ "title": "One by one" }),
            _ => json!(null),
        })
    });
    editor.initialize(&[&home.project()], json!({})).await;
    editor.call(start("mine")).await.unwrap();
    let call = tool_call("mcp__mine__echo", json!({ "text": "x" }));
    let answer = editor.call(call).await.unwrap();
    assert_eq!(answer.decision, "allow-once");
    while asked.lock().unwrap().len() < 5 {
        editor.call(Approvals::default()).await.unwrap();
    }
    let messages: Vec<String> = asked
        .lock()
        .unwrap()
        .iter()
        .map(|message| message.as_str().unwrap().lines().next().unwrap().to_owned())
        .collect();
    for name in ["a", "b", "c"] {
        assert_eq!(
            messages.iter().filter(|message| message.contains(&format!("Trust the server `{name}`?"))).count(),
            1,
            "{messages:?}"
        );
    }
    editor.quit().await;
}

/// An editor without a prompt, and the messages that it was asked to show.
async fn asked_by_message(
    home: &Home,
    answer: impl Fn(&Value) -> Result<Value, Value> + Send + 'static,
) -> (TestEditor, Applied) {
    asked_in(&Engine::start(home.paths(), Settings::default()), home, answer).await
}

/// The same with an engine that runs.
async fn asked_in(
    engine: &Engine,
    home: &Home,
    answer: impl Fn(&Value) -> Result<Value, Value> + Send + 'static,
) -> (TestEditor, Applied) {
    let (mut editor, _end) = attach_to(engine);
    editor.ignore("textDocument/publishDiagnostics");
    let asked = Applied::default();
    let taken = asked.clone();
    editor.handle("window/showMessageRequest", move |params| {
        taken.lock().unwrap().push(params.clone());
        answer(params)
    });
    editor.initialize(&[&home.project()], json!({})).await;
    (editor, asked)
}

#[tokio::test]
async fn whatever_closes_a_message_refuses_the_call_at_once() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let closed = [
        Ok(json!(null)),
        Ok(json!({})),
        Ok(json!({ "title": "" })),
        Ok(json!({ "title": "Something else" })),
        Ok(json!({ "title": "Not now" })),
        Ok(json!(5)),
        Err(json!({ "code": -32603, "message": "the dialog failed" })),
    ];
    let (count, mut answers) = (closed.len(), closed.into_iter());
    let answers = Mutex::new(move || answers.next().unwrap());
    let (mut editor, asked) = asked_by_message(&home, move |_| (answers.lock().unwrap())()).await;
    let call = tool_call("mcp__mine__echo", json!({ "text": "x" }));
    for _ in 0..count {
        let refused = editor.call(call.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Denied), "{refused}");
        assert!(refused.message.contains("the message was closed"), "{refused}");
    }
    assert_eq!(editor.call(Grants {}).await.unwrap().grants, [], "nothing is remembered");
    for message in asked.lock().unwrap().iter() {
        assert_eq!(message["actions"][0]["title"], "Not now", "some editors preselect the first button: {message:#}");
    }
    editor.quit().await;
}

/// Waits until this many messages were shown.
async fn shown(editor: &mut TestEditor, asked: &Applied, count: usize) {
    while asked.lock().unwrap().len() < count {
        editor.call(Approvals::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_message_that_is_never_answered_does_not_hold_up_the_next_question() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let (mut editor, asked) = asked_by_message(&home, |params| match params["message"].as_str().unwrap() {
        message if message.contains("one") => Err(Value::Null),
        _ => Ok(json!({ "title": "Allow once" })),
    })
    .await;
    let _forgotten = editor.start(tool_call("mcp__mine__echo", json!({ "text": "one" })));
    shown(&mut editor, &asked, 1).await;
    let begun = std::time::Instant::now();
    editor.call(tool_call("mcp__mine__echo", json!({ "text": "two" }))).await.unwrap();
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// Emacs refuses a dialog while another one is open. The user has not seen it, so it is not a no.
#[tokio::test]
async fn a_message_that_an_editor_cannot_show_next_to_another_one_is_shown_after_it() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let mut is_busy = true;
    let (mut editor, asked) = {
        let answer = Mutex::new(move |params: &Value| match params["message"].as_str().unwrap() {
            message if message.contains("one") => Err(Value::Null),
            _ if std::mem::replace(&mut is_busy, false) => Err(json!({ "code": -32603, "message": "busy" })),
            _ => Ok(json!({ "title": "Allow once" })),
        });
        asked_by_message(&home, move |params| (answer.lock().unwrap())(params)).await
    };
    let first = editor.start(tool_call("mcp__mine__echo", json!({ "text": "one" })));
    shown(&mut editor, &asked, 1).await;
    let second = editor.start(tool_call("mcp__mine__echo", json!({ "text": "two" })));
    shown(&mut editor, &asked, 2).await;
    let waiting = editor.call(Approvals::default()).await.unwrap().approvals;
    assert_eq!(waiting.len(), 2, "{waiting:#?}");
    editor.call(resolve(&waiting[0], "deny")).await.unwrap();
    assert_eq!(editor.answer(first).await.unwrap_err().kind(), Some(ErrorKind::Denied));
    assert_eq!(editor.answer(second).await.unwrap().decision, "allow-once");
}

/// A yes to a dialog that is out of date must not look as if it counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_comes_too_late_says_that_it_had_no_effect() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let mut other = open_editor(&home, &engine).await;
    // By the time of an answer it has joined, so the next editor is not told.
    assert!(other.call(Approvals::default()).await.unwrap().approvals.is_empty());
    let (mut editor, _end) = attach_to(&engine);
    editor.ignore("textDocument/publishDiagnostics");
    editor.handle("window/showMessageRequest", move |_| {
        // Meanwhile, the question is answered elsewhere.
        let elsewhere = async {
            let question = other.call(Approvals::default()).await.unwrap().approvals.remove(0);
            other.call(resolve(&question, "deny")).await.unwrap();
        };
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(elsewhere));
        Ok(json!({ "title": "Always allow" }))
    });
    editor.initialize(&[&home.project()], json!({})).await;
    let refused = editor.call(tool_call("mcp__mine__echo", json!({ "text": "x" }))).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ErrorKind::Denied), "{refused}");
    let notice = editor.notification("window/showMessage").await;
    assert!(notice["message"].as_str().unwrap().starts_with("mcp-sidecar: Your answer had no effect"), "{notice}");
    assert_eq!(editor.call(Grants {}).await.unwrap().grants, []);
}

#[tokio::test]
async fn an_answer_that_lasts_is_confirmed_with_what_takes_it_back() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let (mut editor, _asked) = asked_by_message(&home, |_| Ok(json!({ "title": "Allow in this project" }))).await;
    editor.call(tool_call("mcp__mine__echo", json!({ "text": "x" }))).await.unwrap();
    let notice = editor.notification("window/showMessage").await;
    let expected = "mcp-sidecar: The tool `echo` of `mine` is allowed in this project. To undo this, run `mcp-sidecar \
                    grants` in a terminal.";
    assert_eq!(notice["message"], expected);
    editor.quit().await;
}

/// The user of a plain editor decides about the same as any other.
#[tokio::test]
async fn a_message_says_what_the_tool_does_and_that_the_file_has_unsaved_changes() {
    let home = Home::new();
    let file = home.write("a.txt", "saved\n");
    let schema =
        json!({ "type": "object", "properties": { "path": { "type": "string" }, "content": { "type": "string" } } });
    let tool = json!({ "name": "write_file", "description": "Writes a file.", "inputSchema": schema,
        "annotations": { "destructiveHint": true, "openWorldHint": true } });
    let files = scripted(&home.project(), "files", json!({ "tools": [tool] }));
    std::fs::write(home.paths().user_config(), json!({ "servers": { "files": files } }).to_string()).unwrap();
    let engine = Engine::start(home.paths(), Settings::default());
    let (mut editor, asked) = asked_in(&engine, &home, |_| Ok(json!({ "title": "Not now" }))).await;
    editor.open(&file, "saved\n");
    editor.change(&file, 2, "saved\ntyped\n");
    editor.call(start("files")).await.unwrap();
    let arguments: Vec<Value> =
        (0..3).map(|number| json!({ "path": "a.txt", "content": format!("new {number}\n") })).collect();
    // Calls that wait at the same time are shown together, which may take several attempts.
    let mut has_group = false;
    while !has_group {
        let calls = begin_calls_of(&engine, "mcp__files__write_file", &arguments);
        while !calls.iter().all(RunningCall::is_finished) {
            editor.call(Approvals::default()).await.unwrap();
        }
        for message in std::mem::take(&mut *asked.lock().unwrap()) {
            let text = message["message"].as_str().unwrap();
            let count = text.matches("\"path\": \"a.txt\"").count();
            has_group |= count > 1;
            for part in [
                "The tool says that it may destroy data and accesses the network or other external systems.",
                "Writes a file.",
                "`a.txt` has unsaved changes in your editor. The tool does not see them.",
                "\n-typed\n",
            ] {
                assert_eq!(text.matches(part).count(), count, "{part}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn an_editor_that_cannot_show_a_message_says_where_to_answer_once() {
    let home = Home::new();
    let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
    std::fs::write(home.paths().user_config(), user).unwrap();
    let (mut editor, _asked) =
        asked_by_message(&home, |_| Err(json!({ "code": -32601, "message": "method not found" }))).await;
    let call = tool_call("mcp__mine__echo", json!({ "text": "x" }));
    for _ in 0..2 {
        let refused = editor.call(call.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), Some(ErrorKind::Denied), "{refused}");
    }
    let message = editor.notification("window/showMessage").await;
    assert!(message["message"].as_str().unwrap().contains("mcp-sidecar approvals"), "{message}");
    // Fails if the message was shown twice.
    editor.quit().await;
}

#[tokio::test]
async fn a_trust_lens_asks_before_anything_starts() {
    let home = Home::new();
    let text = json!({ "servers": { "demo": demo(json!({})) } }).to_string();
    let path = home.write("mcp.json", &text);
    let (mut editor, asked) = asked_by_message(&home, |_| Ok(json!({ "title": "Not now" }))).await;
    editor.ignore("window/showMessage");
    editor.open(&path, &text);
    let shown = async |editor: &mut TestEditor, count: usize| {
        while asked.lock().unwrap().len() < count {
            editor.call(Approvals::default()).await.unwrap();
        }
    };
    shown(&mut editor, 1).await;
    let lenses = editor.ask_about("textDocument/codeLens", &path).await;
    let lenses: Vec<Value> = lenses.as_array().unwrap().iter().map(|lens| lens["command"].clone()).collect();
    click(&mut editor, &lenses, "Trust…").await.unwrap();
    shown(&mut editor, 2).await;
    let commands = actions(&mut editor, &path, 0, 18).await;
    click(&mut editor, &commands, "Trust `demo`…").await.unwrap();
    shown(&mut editor, 3).await;
    let status = editor.call(Servers { server: Some(name("demo")) }).await.unwrap().servers.remove(0);
    assert_eq!((status.reason.as_deref(), status.needs_trust), (Some("awaiting-trust"), true), "{status:?}");
    editor.quit().await;
}

/// The titles of the buttons of a message.
fn buttons(message: &Value) -> Vec<&str> {
    message["actions"].as_array().unwrap().iter().map(|action| action["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_servers_of_a_file_are_one_message_that_shows_each() {
    let home = Home::new();
    let servers = json!({ "zebra": demo(json!({})), "ant": { "type": "http", "url": "http://127.0.0.1:1/mcp" },
        "bee": demo(json!({})) });
    home.write("mcp.json", &json!({ "servers": servers }).to_string());
    let (mut editor, asked) = asked_by_message(&home, |params| {
        let all = params["actions"].as_array().unwrap().iter().find(|action| action["title"] == "Trust all 3");
        Ok(all.unwrap().clone())
    })
    .await;
    let trusted = |server: &ServerStatus| !server.needs_trust;
    while editor.call(Servers::default()).await.unwrap().servers.iter().filter(|each| trusted(each)).count() < 3 {}
    let notice = editor.notification("window/showMessage").await;
    assert!(
        notice["message"].as_str().unwrap().ends_with("run `mcp-sidecar trust SERVER --revoke` in a terminal."),
        "{notice}"
    );
    let messages = asked.lock().unwrap().clone();
    let [message] = &messages[..] else { panic!("{messages:#?}") };
    assert_eq!(buttons(message), ["Not now", "Trust all 3", "One by one"]);
    let text = message["message"].as_str().unwrap();
    let text = text.replace(env!("CARGO_BIN_EXE_mcp-sidecar"), "mcp-sidecar");
    let text = text.replace(&home.project().display().to_string(), "~");
    insta::assert_snapshot!(text, @r"
    Trust 3 servers of `~/mcp.json`?

    `zebra`
    runs      mcp-sidecar demo-server
    program   mcp-sidecar

    `ant`
    connects  http://127.0.0.1:1/mcp (http)

    `bee`
    runs      mcp-sidecar demo-server
    program   mcp-sidecar
    ");
    editor.quit().await;
}

#[tokio::test]
async fn closing_the_message_about_a_group_decides_nothing_about_trust() {
    let home = Home::new();
    let servers = json!({ "a": { "command": "sh" }, "b": { "command": "sh" } });
    home.write("mcp.json", &json!({ "servers": servers }).to_string());
    let (mut editor, asked) = asked_by_message(&home, |params| Ok(params["actions"][0].clone())).await;
    while asked.lock().unwrap().is_empty() {
        editor.call(Approvals::default()).await.unwrap();
    }
    let waiting = editor.call(Approvals::default()).await.unwrap();
    assert_eq!((waiting.approvals.len(), waiting.groups.len()), (2, 1), "both still wait");
    assert_eq!(asked.lock().unwrap().len(), 1);
    editor.quit().await;
}

/// A call of an agent that runs.
type RunningCall = tokio::task::JoinHandle<Result<String, String>>;

fn begin_calls(engine: &Engine, texts: &[String]) -> Vec<RunningCall> {
    let arguments: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
    begin_calls_of(engine, "mcp__mine__echo", &arguments)
}

/// Begins calls of one agent.
fn begin_calls_of(engine: &Engine, tool: &str, arguments: &[Value]) -> Vec<RunningCall> {
    let call = |arguments: &Value| {
        let (engine, request) = (
            engine.clone(),
            CallRequest {
                kind: Default::default(),
                id: CallId::random(),
                tool: ToolId::parse(tool).unwrap(),
                arguments: object(arguments.clone()),
                decision: None,
                must_ask: None,
                requester: serde_json::from_value(json!({ "kind": "agent", "name": "codex" })).unwrap(),
                connection: Some(AgentConnection { number: 7, ..Default::default() }),
                workflow: None,
                timeout: None,
                meta: Default::default(),
                unknown_fields: Default::default(),
                progress: None,
                turn: Default::default(),
            },
        );
        tokio::spawn(async move {
            let outcome = engine.call(request).await.map_err(|error| error.to_string())?;
            Ok(outcome.result.raw.get().to_owned())
        })
    };
    arguments.iter().map(call).collect()
}

#[tokio::test]
async fn the_calls_of_an_agent_are_one_message_if_all_can_be_shown_in_full() {
    for (text, in_full) in [("short".to_owned(), true), ("long ".repeat(1_000), false)] {
        let home = Home::new();
        let user = json!({ "servers": { "mine": demo(json!({})) } }).to_string();
        std::fs::write(home.paths().user_config(), user).unwrap();
        let engine = Engine::start(home.paths(), Settings::default());
        // All calls wait before the editor without a prompt opens.
        let mut first = open_editor(&home, &engine).await;
        first.call(start("mine")).await.unwrap();
        let texts: Vec<String> = (0..3).map(|number| format!("{text}{number}")).collect();
        let calls = begin_calls(&engine, &texts);
        engine.approvals().subscribe().wait_for(|list| list.len() == texts.len()).await.unwrap();
        let (mut editor, _end) = attach_to(&engine);
        editor.ignore("textDocument/publishDiagnostics");
        let (shown, mut messages) = mpsc::unbounded_channel();
        editor.handle("window/showMessageRequest", move |params| {
            shown.send(params.clone()).unwrap();
            let all = buttons(params).into_iter().find(|title| title.starts_with("Allow all"));
            Ok(json!({ "title": all.unwrap_or("Not now") }))
        });
        editor.initialize(&[&home.project()], json!({})).await;
        let message = loop {
            editor.call(Approvals::default()).await.unwrap();
            if let Ok(message) = messages.try_recv() {
                break message;
            }
        };
        let text = message["message"].as_str().unwrap();
        assert!(text.starts_with("The agent `codex` wants to make 3 calls\n"), "{text}");
        let complete = texts.iter().filter(|each| text.contains(each.as_str())).count();
        if in_full {
            assert_eq!((buttons(&message), complete), (vec!["Not now", "Allow all 3 once", "One by one"], 3));
            for (call, text) in calls.into_iter().zip(&texts) {
                assert!(call.await.unwrap().unwrap().contains(text.as_str()));
            }
        } else {
            assert_eq!((buttons(&message), complete), (vec!["Not now", "One by one"], 0));
            assert!(text.ends_with("This list is shortened. Review them one by one."), "{text}");
            assert_eq!(first.call(Approvals::default()).await.unwrap().approvals.len(), 3, "another editor shows them");
        }
        assert!(messages.try_recv().is_err(), "there is one message");
    }
}
