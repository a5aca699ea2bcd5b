//! `hook`: the questions of agents about their own tools, with and without an engine, and answers from a shell.

use std::io::Write;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::approvals::Editor;
use crate::{DEMO, Run, Sandbox};

/// A workspace whose user has these rules for Claude Code.
fn sandbox(rules: &Value) -> Sandbox {
    let sandbox = Sandbox::with_workspace();
    let demo: Value = serde_json::from_str(DEMO).unwrap();
    let config = json!({ "servers": { "demo": demo }, "agentTools": { "claude-code": rules } });
    sandbox.write("config/mcp.json", &config.to_string());
    sandbox
}

fn rules() -> Value {
    json!({ "Bash": [
        { "when": { "command": { "matches": "rm .*" } }, "level": "deny" },
        { "when": { "command": { "in": ["git status"] } }, "level": "allow-session" },
        "require-approval"] })
}

fn question(sandbox: &Sandbox, event: &str, tool: &str, input: &Value) -> String {
    json!({ "session_id": "s1", "cwd": sandbox.path("work"), "hook_event_name": event, "tool_name": tool,
        "tool_input": input })
    .to_string()
}

/// Starts a hook with this input.
fn begin(sandbox: &Sandbox, arguments: &[&str], input: &str) -> Child {
    let mut command = sandbox.command(arguments);
    let mut hook = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A hook that gives up early closes its input.
    hook.stdin.take().unwrap().write_all(input.as_bytes()).ok();
    hook
}

fn end(sandbox: &Sandbox, hook: Child) -> Run {
    let run = sandbox.result(hook.wait_with_output().unwrap());
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", run.out);
    run
}

fn answer(sandbox: &Sandbox, event: &str, tool: &str, input: &Value) -> String {
    let hook = begin(sandbox, &["hook", "claude-code"], &question(sandbox, event, tool, input));
    end(sandbox, hook).out
}

/// What Claude Code is told before it runs a command: `allow`, `deny: REASON`, `ask: REASON`, or nothing.
fn bash(sandbox: &Sandbox, command: &str) -> String {
    said(&answer(sandbox, "PreToolUse", "Bash", &json!({ "command": command })))
}

fn said(out: &str) -> String {
    if out.is_empty() {
        return "nothing".to_owned();
    }
    let answer: Value = serde_json::from_str(out).unwrap();
    let answer = &answer["hookSpecificOutput"];
    assert_eq!(answer["hookEventName"], "PreToolUse");
    let reason = answer["permissionDecisionReason"].as_str().unwrap();
    match answer["permissionDecision"].as_str().unwrap() {
        "allow" => "allow".to_owned(),
        decision => format!("{decision}: {reason}"),
    }
}

fn json_of(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let run = sandbox.run(arguments);
    assert_eq!(run.code, 0, "{}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

/// Waits for the only question.
fn waiting(sandbox: &Sandbox) -> Value {
    loop {
        let list = json_of(sandbox, &["approvals", "--json"]);
        if let [only] = list["approvals"].as_array().unwrap().as_slice() {
            return only.clone();
        }
    }
}

fn resolve(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let question = waiting(sandbox);
    let id = question["id"].as_str().unwrap();
    let run = sandbox.run(&[&arguments[..1], &[id], &arguments[1..]].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    question
}

fn decisions(sandbox: &Sandbox) -> Vec<String> {
    let calls = json_of(sandbox, &["calls", "--agent", "claude-code", "--json"])["calls"].clone();
    let newest_first = calls.as_array().unwrap().iter().map(|call| {
        assert_eq!((&call["kind"], &call["server"]), (&json!("hook"), &json!("claude-code")), "{call:#}");
        call["decision"].as_str().unwrap().to_owned()
    });
    newest_first.collect::<Vec<_>>().into_iter().rev().collect()
}

const UNASKED: &str = "ask: mcp-sidecar: there was no one to ask";
const DENIED: &str = "deny: mcp-sidecar: a rule denies it";

#[test]
fn an_agent_is_also_known_by_its_name_in_setup() {
    let sandbox = sandbox(&rules());
    let input = question(&sandbox, "PreToolUse", "Bash", &json!({ "command": "git status" }));
    let hook = begin(&sandbox, &["hook", "claude"], &input);
    assert_eq!(said(&end(&sandbox, hook).out), "allow");
}

#[test]
fn without_an_engine_rules_decide_and_the_rest_is_left_to_the_agent() {
    let sandbox = sandbox(&rules());
    assert_eq!(bash(&sandbox, "git status"), "allow");
    assert_eq!(bash(&sandbox, "git status && rm x"), DENIED);
    assert_eq!(bash(&sandbox, "git status | sh"), UNASKED);
    assert_eq!(
        answer(&sandbox, "PreToolUse", "Read", &json!({ "file_path": "/etc/hosts" })),
        "",
        "no rule is about it"
    );
    assert_eq!(answer(&sandbox, "PermissionRequest", "Bash", &json!({ "command": "ls" })), "", "the agent asks");
    assert_eq!(answer(&sandbox, "PermissionRequest", "AskUserQuestion", &json!({})), "", "it is a dialog already");
    assert_eq!(decisions(&sandbox), ["allow-session", "deny", "ask", "ask"]);
    assert!(!sandbox.path("run").exists() || std::fs::read_dir(sandbox.path("run")).unwrap().count() == 0);
}

#[test]
fn what_is_not_a_question_is_left_to_the_agent() {
    let sandbox = sandbox(&json!({ "*": "allow-always" }));
    let event = ["hook", "claude-code", "--event", "PreToolUse"];
    let large = question(&sandbox, "PreToolUse", "Write", &json!({ "content": "x".repeat(9 << 20) }));
    for input in ["", "no JSON", "[1]", "{}", "{\"tool_name\":5}", &large] {
        let answer = said(&end(&sandbox, begin(&sandbox, &event, input)).out);
        assert!(answer.starts_with("ask: mcp-sidecar: the question "), "{answer}");
        assert_eq!(end(&sandbox, begin(&sandbox, &event[..2], input)).out, "", "without an event, silence");
    }
    let forged = sandbox.run(&["hook", "root"]);
    assert_eq!((forged.code, forged.out.as_str()), (2, ""));
}

#[test]
fn a_permission_in_a_project_has_no_effect_and_is_reported() {
    let sandbox = sandbox(&rules());
    let allows = json!({ "agentTools": { "*": { "*": "allow-always" }, "claude-code": { "Bash": "allow-always" } } });
    sandbox.write("work/mcp.json", &allows.to_string());
    assert_eq!(bash(&sandbox, "make"), UNASKED);
    assert_eq!(answer(&sandbox, "PreToolUse", "Write", &json!({ "file_path": "x" })), "");
    let checked = sandbox.run(&["check"]);
    assert_eq!(checked.out.matches("a project cannot allow an agent's own tools").count(), 2, "{}", checked.out);
    sandbox.write("work/mcp.json", &json!({ "agentTools": { "*": { "Bash": "deny" } } }).to_string());
    assert_eq!(bash(&sandbox, "git status"), DENIED);
}

#[test]
fn a_question_waits_with_the_others_and_an_answer_lasts_for_exactly_this_command() {
    let sandbox = sandbox(&json!({}));
    let _editor = Editor::open(&sandbox);
    let ask = |command: &str| {
        let input = question(&sandbox, "PermissionRequest", "Bash", &json!({ "command": command }));
        begin(&sandbox, &["hook", "claude-code"], &input)
    };
    let asked = ask("make deploy");
    let shown = resolve(&sandbox, &["approve", "--for", "session"]);
    assert_eq!(shown["title"], "Claude Code wants to run a command");
    assert_eq!((&shown["agentTool"], &shown["arguments"]["command"]), (&json!("Bash"), &json!("make deploy")));
    let detail = shown["detail"].as_str().unwrap();
    assert!(detail.contains("The agent works in ~/work "), "{detail}");
    let allowed = r#""decision":{"behavior":"allow"}"#;
    assert!(end(&sandbox, asked).out.contains(allowed));

    let again = end(&sandbox, ask("make deploy")).out;
    assert!(again.contains(allowed), "{again}");
    let grants = json_of(&sandbox, &["grants", "--json"]);
    assert_eq!(grants["grants"][0]["tool"], "agent:Bash(make deploy)");
    let other = ask("make deploy; rm x");
    let shown = resolve(&sandbox, &["deny", "--note", "not on Fridays"]);
    assert_eq!(shown["options"], json!(["allow-once", "deny"]), "what is not plain cannot be allowed for longer");
    let denied = end(&sandbox, other).out;
    assert!(denied.contains(r#""behavior":"deny""#) && denied.contains("not on Fridays"), "{denied}");

    let revoked = sandbox.run(&["grants", "revoke", "--all"]);
    assert_eq!(revoked.code, 0, "{}", revoked.err);
    let mut gone = ask("make deploy");
    waiting(&sandbox);
    gone.kill().unwrap();
    gone.wait().unwrap();
    while json_of(&sandbox, &["approvals", "--json"])["approvals"] != json!([]) {}
    assert_eq!(decisions(&sandbox)[..3], ["allow-session", "allow-session", "deny"]);
}

#[test]
fn a_change_of_a_file_is_shown_as_a_diff() {
    let sandbox = sandbox(&json!({ "Edit": "require-approval" }));
    sandbox.write("work/notes.md", "milk\nbread\nbread\n");
    let _editor = Editor::open(&sandbox);
    let file = sandbox.path("work/notes.md");
    let input = json!({ "file_path": file, "old_string": "bread", "new_string": "tea", "replace_all": true });
    let asked = begin(&sandbox, &["hook", "claude-code"], &question(&sandbox, "PreToolUse", "Edit", &input));
    let shown = resolve(&sandbox, &["approve"]);
    let diff = shown["change"]["diff"].as_str().unwrap();
    assert_eq!((diff.matches("-bread").count(), diff.matches("+tea").count()), (2, 2), "{diff}");
    assert!(shown["detail"].as_str().unwrap().contains("It changes a file of the workspace"));
    assert_eq!(said(&end(&sandbox, asked).out), "allow");
    // An agent may ask about the same change once more. The answer does not count for another change of the file.
    let again = |input: &Value| {
        begin(&sandbox, &["hook", "claude-code"], &question(&sandbox, "PermissionRequest", "Edit", input))
    };
    let asked = again(&json!({ "file_path": file, "old_string": "milk", "new_string": "wine" }));
    resolve(&sandbox, &["deny"]);
    assert!(end(&sandbox, asked).out.contains(r#""behavior":"deny""#));
    assert!(end(&sandbox, again(&input)).out.contains(r#""behavior":"allow""#));
    let outside = json!({ "file_path": "/etc/hosts", "old_string": "a", "new_string": "b" });
    let asked = begin(&sandbox, &["hook", "claude-code"], &question(&sandbox, "PreToolUse", "Edit", &outside));
    let shown = resolve(&sandbox, &["deny"]);
    assert!(shown["detail"].as_str().unwrap().contains("It changes a file outside of the workspace: /etc/hosts"));
    assert_eq!(said(&end(&sandbox, asked).out), "deny: mcp-sidecar: the user denied it");
}

/// Copilot CLI asks before it uses its shell, and again for the permission, with another description.
#[test]
fn the_answer_to_the_first_question_about_a_command_counts_for_the_second_one_only() {
    let sandbox = sandbox(&json!({}));
    let demo: Value = serde_json::from_str(DEMO).unwrap();
    let rules = json!({ "copilot": { "bash": "require-approval" } });
    sandbox.write("config/mcp.json", &json!({ "servers": { "demo": demo }, "agentTools": rules }).to_string());
    let _editor = Editor::open(&sandbox);
    let ask = |event: &str, session: &str, command: &str, description: &str| {
        let arguments = json!({ "command": command, "description": description });
        let input =
            json!({ "sessionId": session, "cwd": sandbox.path("work"), "toolName": "bash", "toolArgs": arguments });
        begin(&sandbox, &["hook", "copilot", "--event", event], &input.to_string())
    };
    let allow_first = |command: &str| {
        let before = ask("preToolUse", "s1", command, "Runs it");
        resolve(&sandbox, &["approve"]);
        assert!(end(&sandbox, before).out.contains(r#""permissionDecision":"allow""#));
    };
    let denied_when_asked = |session: &str, command: &str| {
        let other = ask("permissionRequest", session, command, "Runs it");
        resolve(&sandbox, &["deny"]);
        assert!(end(&sandbox, other).out.contains(r#""behavior":"deny""#), "{session} {command}");
    };
    allow_first("make deploy");
    denied_when_asked("s1", "make destroy");
    let second = end(&sandbox, ask("permissionRequest", "s1", "make deploy", "Runs make")).out;
    assert!(second.contains(r#""behavior":"allow""#), "{second}");
    // It counts once, and in no other session.
    denied_when_asked("s1", "make deploy");
    allow_first("make test");
    denied_when_asked("s2", "make test");
}

/// For the permission to change a file, Copilot CLI sends the difference instead of the arguments.
#[test]
fn the_answer_to_the_first_question_about_a_file_counts_for_the_same_lines_of_the_same_file() {
    let sandbox = sandbox(&json!({}));
    let demo: Value = serde_json::from_str(DEMO).unwrap();
    let rules = json!({ "copilot": { "create": "allow-session", "edit": "require-approval" } });
    sandbox.write("config/mcp.json", &json!({ "servers": { "demo": demo }, "agentTools": rules }).to_string());
    let _editor = Editor::open(&sandbox);
    let ask = |event: &str, tool: &str, key: &str, input: Value| {
        let question = json!({ "sessionId": "s1", "cwd": sandbox.path("work"), "toolName": tool, key: input });
        begin(&sandbox, &["hook", "copilot", "--event", event], &question.to_string())
    };
    let allow_first = || {
        let arguments = json!({ "path": sandbox.path("work/new.md"), "file_text": "tea\n" });
        let answer = end(&sandbox, ask("preToolUse", "create", "toolArgs", arguments)).out;
        assert!(answer.contains(r#""permissionDecision":"allow""#), "{answer}");
    };
    let permission = |name: &str, line: &str| {
        let diff = format!("\ndiff --git a/{name} b/{name}\n--- a/dev/null\n+++ b/{name}\n@@ -1,0 +1,1 @@\n{line}\n");
        let input = json!({ "file_path": sandbox.path(&format!("work/{name}")), "diff": diff });
        ask("permissionRequest", "edit", "toolInput", input)
    };
    allow_first();
    for (name, line) in [("new.md", "+oil"), ("other.md", "+tea")] {
        let other = permission(name, line);
        resolve(&sandbox, &["deny"]);
        assert!(end(&sandbox, other).out.contains(r#""behavior":"deny""#), "{name} {line}");
    }
    let second = end(&sandbox, permission("new.md", "+tea")).out;
    assert!(second.contains(r#""behavior":"allow""#), "{second}");
}
