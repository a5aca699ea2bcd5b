//! `approvals`, `approve` and `deny`: questions of a running engine, answered from a shell.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{DEMO, Run, Sandbox};

const NO_ENGINE: &str = "No editor or agent has this workspace open, so there are no questions.\n";

/// A workspace with the demo server in the user's own config.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "demo": {DEMO} }} }}"#));
    sandbox
}

/// An editor that has the workspace open and shows questions, but does not answer them.
pub struct Editor {
    process: Child,
    stdin: Option<ChildStdin>,
}

impl Editor {
    pub fn open(sandbox: &Sandbox) -> Self {
        let root = url::Url::from_file_path(sandbox.path("work")).unwrap();
        let abilities = json!({ "version": "0", "approvals": true, "elicitation": true });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "processId": null,
            "capabilities": { "experimental": { "mcpSidecar": abilities } },
            "workspaceFolders": [{ "uri": root, "name": "work" }] } });
        let initialized = json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} });
        let mut process = sandbox.command(&["lsp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = process.stdin.take().unwrap();
        for message in [initialize.to_string(), initialized.to_string()] {
            write!(stdin, "Content-Length: {}\r\n\r\n{message}", message.len()).unwrap();
        }
        let mut stdout = process.stdout.take().unwrap();
        let (mut seen, mut part) = (Vec::new(), [0; 4096]);
        // The engine has read the config once it reports a server.
        while !String::from_utf8_lossy(&seen).contains("mcp/serverChanged") {
            let read = stdout.read(&mut part).unwrap();
            assert_ne!(read, 0, "the engine ended: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&part[..read]);
        }
        std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()));
        Self { process, stdin: Some(stdin) }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.process.wait().unwrap();
    }
}

/// A call that waits for an answer.
struct WaitingCall {
    process: Child,
    stderr: BufReader<ChildStderr>,
}

impl WaitingCall {
    fn begin(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut process = sandbox.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let mut said = String::new();
        stderr.read_line(&mut said).unwrap();
        assert!(said.contains("waiting for your answer"), "{said}");
        Self { process, stderr }
    }

    fn add(sandbox: &Sandbox) -> Self {
        Self::begin(sandbox, &["call", "demo/add", r#"{"a": 1, "b": 2}"#])
    }

    fn end(mut self, sandbox: &Sandbox) -> Run {
        let mut err = String::new();
        self.stderr.read_to_string(&mut err).unwrap();
        Run { err, ..sandbox.result(self.process.wait_with_output().unwrap()) }
    }
}

/// `approvals --watch`, line by line.
struct Watch {
    process: Child,
    lines: mpsc::Receiver<String>,
}

/// How long a line may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Watch {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let arguments: Vec<&str> = ["approvals", "--watch"].iter().chain(arguments).copied().collect();
        let mut process = sandbox.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while output.read_line(&mut line).is_ok_and(|length| length > 0) {
                sender.send(std::mem::take(&mut line)).ok();
            }
        });
        Self { process, lines }
    }

    fn next(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Ends it with Ctrl-C and returns its exit code.
    fn interrupt(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(self.process.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        self.process.wait().unwrap().code()
    }
}

fn json_of(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    serde_json::from_str(&sandbox.run(arguments).out).unwrap()
}

/// The only question that waits.
fn question(sandbox: &Sandbox) -> Value {
    let list = json_of(sandbox, &["approvals", "--json"]);
    assert_eq!(list["approvals"].as_array().unwrap().len(), 1, "{list:#}");
    list["approvals"][0].clone()
}

fn id(sandbox: &Sandbox) -> String {
    question(sandbox)["id"].as_str().unwrap().to_owned()
}

#[test]
fn without_an_engine_nothing_waits() {
    let sandbox = sandbox();
    for list in [&["approvals"][..], &["approvals", "1234"]] {
        let run = sandbox.run(list);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, NO_ENGINE, ""), "{list:?}");
    }
    let watch = sandbox.run(&["approvals", "--watch"]);
    let next = format!("{} Start an agent or an editor, then run this again.\n", NO_ENGINE.trim_end());
    assert_eq!((watch.code, watch.out, watch.err.as_str()), (0, next, ""));
    assert_eq!(json_of(&sandbox, &["approvals", "--json"]), json!({ "approvals": [], "groups": [] }));
    for answer in ["approve", "deny"] {
        let run = sandbox.run(&[answer, "1234"]);
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (1, "", NO_ENGINE), "{answer}");
    }
}

#[test]
fn a_waiting_call_is_listed_and_shown_in_full() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::add(&sandbox);
    let asked = question(&sandbox);
    let id = asked["id"].as_str().unwrap();
    assert_eq!((&asked["kind"], &asked["arguments"]), (&json!("tool"), &json!({ "a": 1, "b": 2 })));

    let table = sandbox.run(&["approvals"]).out;
    let (header, row) = table.split_once('\n').unwrap();
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["ID", "KIND", "BY", "SINCE", "EXPIRES", "QUESTION"]);
    assert!(row.starts_with(&format!("{}  tool  user  20", &id[..8])), "{table}");
    assert!(row.ends_with("  Run `add` on `demo`?\n") && !row.contains("\"a\""), "{table}");

    let verbose = sandbox.run(&["approvals", "--verbose"]).out;
    let one = sandbox.run(&["approvals", &id[..5]]);
    assert_eq!((one.code, one.out.as_str()), (0, verbose.as_str()));
    for part in ["Run `add` on `demo`?", "\"b\": 2", "answers   Allow once, ", &format!("id        {id}")] {
        assert!(verbose.contains(part), "{part}: {verbose}");
    }
    assert_eq!(json_of(&sandbox, &["approvals", &id[..5], "--json"])["approvals"][0], asked);
    let wrong = sandbox.run(&["approvals", "xyz"]);
    let error = "error: unknown approval `xyz`: already answered, expired or withdrawn\n";
    assert_eq!((wrong.code, wrong.err.as_str()), (1, error));

    assert_eq!(sandbox.run(&["deny", id]).code, 0);
    assert_eq!(call.end(&sandbox).code, 1);
    assert_eq!(sandbox.run(&["approvals"]).out, "no questions are waiting for an answer\n");
}

#[test]
fn an_approved_call_runs_once_and_the_record_names_the_shell() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::begin(&sandbox, &["call", "demo/take_note", r#"{"text": "hello"}"#]);
    let id = id(&sandbox);
    let wrong = sandbox.run(&["approve", "xyz"]);
    assert_eq!((wrong.code, wrong.out.as_str()), (1, ""));
    assert!(wrong.err.starts_with("error: unknown approval `xyz`"), "{}", wrong.err);

    let approve = sandbox.command(&["approve", &id[..8]]).stderr(Stdio::piped()).spawn().unwrap();
    let by = format!("user in a shell (process {}, mcp-sidecar)", approve.id());
    let answered = sandbox.result(approve.wait_with_output().unwrap());
    let said = "answered with “Allow once”: Run `take_note` on `demo`?\n";
    assert_eq!((answered.code, answered.err.as_str()), (0, said));
    let called = call.end(&sandbox);
    assert_eq!(called.code, 0, "{}", called.err);
    assert!(called.out.starts_with("saved as note 1: "), "{}", called.out);
    let again = sandbox.run(&["approve", &id]);
    let error = format!("error: unknown approval `{id}`: already answered, expired or withdrawn\n");
    assert_eq!((again.code, again.err), (1, error));

    let calls = json_of(&sandbox, &["calls", "--json"])["calls"].clone();
    assert_eq!(calls.as_array().unwrap().len(), 1, "{calls:#}");
    assert_eq!((&calls[0]["decision"], &calls[0]["decidedBy"]), (&json!("allow-once"), &json!(by)));
    let next = sandbox.run(&["call", "-y", "demo/take_note", r#"{"text": "hello"}"#]).out;
    assert!(next.starts_with("saved as note 2: "), "{next}");
}

#[test]
fn of_two_answers_at_once_one_wins() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::add(&sandbox);
    let id = id(&sandbox);
    let spawn = |_| sandbox.command(&["approve", &id]).stderr(Stdio::piped()).spawn().unwrap();
    let both: Vec<Child> = (0..2).map(spawn).collect();
    let mut runs: Vec<Run> = both.into_iter().map(|child| sandbox.result(child.wait_with_output().unwrap())).collect();
    runs.sort_by_key(|run| run.code);
    assert_eq!((runs[0].code, runs[1].code), (0, 1), "{} {}", runs[0].err, runs[1].err);
    assert!(runs[1].err.starts_with("error: unknown approval"), "{}", runs[1].err);
    assert_eq!(call.end(&sandbox).out, "3\n");
}

#[test]
fn the_note_of_a_denial_reaches_the_caller() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::add(&sandbox);
    let denied = sandbox.run(&["deny", &id(&sandbox), "--note", "use bc instead"]);
    assert_eq!(denied.code, 0, "{}", denied.err);
    let called = call.end(&sandbox);
    assert_eq!((called.code, called.out.as_str()), (1, ""));
    let error = "error: `mcp__demo__add` was denied: the user denied it: use bc instead\n";
    assert!(called.err.ends_with(error), "{}", called.err);
}

#[test]
fn the_question_of_an_agent_names_it_and_the_note_reaches_it() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let mut agent = sandbox.command(&["connect"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, mut lines) = (agent.stdin.take().unwrap(), BufReader::new(agent.stdout.take().unwrap()).lines());
    let mut response = |id: u64| -> Value {
        let messages = lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        messages.into_iter().find(|message| message["id"] == id).expect("there should be a response")
    };
    let mut send = |message: Value| writeln!(stdin, "{message}").unwrap();
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": { "name": "liner", "version": "1" } } }));
    response(1);
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    response(2);
    let mut watch = Watch::start(&sandbox, &[]);
    let call = json!({ "name": "demo__add", "arguments": { "a": 1, "b": 2 } });
    send(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call }));
    let asked = watch.next();
    assert!(asked.contains("  tool  liner  ") && asked.contains("`add` on `demo`"), "{asked}");
    assert_eq!(sandbox.run(&["deny", &id(&sandbox), "--note", "use bc instead"]).code, 0);
    let denied = response(3).to_string();
    assert!(denied.contains("use bc instead"), "{denied}");
    assert_eq!(watch.interrupt(), Some(0));
    drop(stdin);
    agent.wait().unwrap();
}

#[test]
fn an_answer_that_lasts_says_what_it_changed_and_how_to_undo_it() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::add(&sandbox);
    let answered = sandbox.run(&["approve", &id(&sandbox), "--for", "project"]);
    assert_eq!(answered.code, 0);
    insta::assert_snapshot!(answered.err, @r"
    The tool `add` of `demo` is allowed in this project.
    To undo this, run `mcp-sidecar grants revoke ID`; `mcp-sidecar grants` lists the IDs.
    ");
    assert_eq!(call.end(&sandbox).out, "3\n");
    assert_eq!(sandbox.run(&["call", "demo/add", r#"{"a": 2, "b": 2}"#]).out, "4\n");
    assert_eq!(sandbox.run(&["approve", "1234", "--for", "ever"]).code, 2);
}

#[test]
fn watch_prints_questions_that_come_and_go_until_control_c() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let mut as_json = Watch::start(&sandbox, &["--json"]);
    assert_eq!(as_json.next(), "{\"approvals\":[],\"groups\":[],\"closed\":[]}\n");
    let mut watch = Watch::start(&sandbox, &[]);
    let call = WaitingCall::add(&sandbox);
    let id = id(&sandbox);
    assert_eq!(watch.next(), format!("waiting  {}  tool  user  Run `add` on `demo`?\n", &id[..8]));
    let list: Value = serde_json::from_str(&as_json.next()).unwrap();
    assert_eq!(list["approvals"][0]["id"], id.as_str());
    let deny = sandbox.command(&["deny", &id]).stderr(Stdio::piped()).spawn().unwrap();
    let pid = deny.id();
    assert_eq!(sandbox.result(deny.wait_with_output().unwrap()).code, 0);
    let how = format!("“Deny”, by the user in a shell (process {pid}, mcp-sidecar)");
    assert_eq!(watch.next(), format!("ended    {}  tool  user  Run `add` on `demo`?  ({how})\n", &id[..8]));
    let ended: Value = serde_json::from_str(&as_json.next()).unwrap();
    let closed = json!([{ "id": id, "title": "Run `add` on `demo`?", "outcome": "answered", "decision": "deny",
        "by": { "place": "shell", "pid": pid }, "message": how }]);
    assert_eq!((&ended["approvals"], &ended["closed"]), (&json!([]), &closed));
    assert_eq!((watch.interrupt(), as_json.interrupt()), (Some(0), Some(0)));
    assert_eq!(call.end(&sandbox).code, 1);
}

#[test]
fn a_definition_is_shown_before_it_is_trusted() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", &format!(r#"{{ "servers": {{ "demo": {DEMO} }} }}"#));
    let _editor = Editor::open(&sandbox);
    let mut watch = Watch::start(&sandbox, &[]);
    let asked = watch.next();
    assert!(asked.ends_with("  trust  demo  Trust the server `demo`?\n"), "{asked}");
    let id = id(&sandbox);
    let unasked = sandbox.run(&["approve", &id]);
    assert_eq!(unasked.code, 2);
    assert!(unasked.err.contains("  runs      "), "{}", unasked.err);
    assert!(unasked.err.ends_with("error: cannot ask without a terminal; pass --yes to answer\n"), "{}", unasked.err);
    let never = sandbox.run(&["approve", &id, "--yes", "--for", "once"]);
    assert!(never.code == 2 && never.err.contains("`allow-once` is not an answer"), "{}", never.err);
    assert_eq!(sandbox.run(&["deny", &id, "--note", "no"]).code, 2);

    let refused = sandbox.at_terminal(&[("Trust? [y] yes  [n] no: ", "n")], &["approve", &id]);
    assert_eq!(refused.code, 1, "{}", refused.out);
    assert_eq!(question(&sandbox)["id"], id.as_str(), "nothing was answered");
    let trusted = sandbox.at_terminal(&[("Trust? [y] yes  [n] no: ", "y")], &["approve", &id]);
    assert_eq!(trusted.code, 0, "{}", trusted.out);
    assert!(trusted.out.contains("  runs      "), "{}", trusted.out);
    let undo = "To undo this: Revoke trust in `demo` (run `mcp-sidecar trust demo --revoke`)\n";
    assert!(trusted.out.contains(undo), "{}", trusted.out);
    assert!(watch.next().starts_with("ended    "));
    assert_eq!(sandbox.run(&["call", "-y", "demo/add", r#"{"a": 1, "b": 2}"#]).out, "3\n");
    assert_eq!(watch.interrupt(), Some(0));
}

#[test]
fn a_form_is_filled_in_at_a_terminal_and_each_problem_is_shown() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::begin(&sandbox, &["call", "-y", "demo/ask_name"]);
    let id = id(&sandbox);
    assert!(sandbox.run(&["approvals", &id]).out.contains("field     Name (text, at least 1 character"));
    let unasked = sandbox.run(&["approve", &id, "--yes"]);
    assert!(unasked.code == 2 && unasked.err.contains("cannot fill in a form"), "{}", unasked.err);
    let long = "a".repeat(101);
    let answers = [("Name (", ""), ("Name (", long.as_str()), ("Name (", "Ada")];
    let screen = sandbox.at_terminal(&answers, &["approve", &id]);
    assert_eq!(screen.code, 0, "{}", screen.out);
    assert!(screen.out.contains("What is your name?") && screen.out.contains("  this field is required"));
    assert!(screen.out.contains("is longer than 100 characters"), "{}", screen.out);
    assert_eq!(call.end(&sandbox).out, "Hello, Ada!\n");

    let call = WaitingCall::begin(&sandbox, &["call", "-y", "demo/ask_name"]);
    assert_eq!(sandbox.run(&["deny", &self::id(&sandbox)]).code, 0);
    assert_eq!(call.end(&sandbox).out, "Hello, stranger!\n");
}

/// An agent can run our commands in its shell. It can look, ask and take away, but not decide.
#[cfg(target_os = "linux")]
#[test]
fn a_shell_that_an_agent_started_cannot_decide_for_the_user() {
    const REFUSED: &str = "this program was started by the agent `claude`";
    let sandbox = sandbox();
    sandbox.write("work/mcp.json", &format!(r#"{{ "servers": {{ "project": {DEMO} }} }}"#));
    let arguments = r#"{"a": 1, "b": 2}"#;
    let decisions: [&[&str]; 5] = [
        &["call", "demo/add", arguments, "--yes"],
        &["trust", "project", "--yes"],
        &["level", "demo/add", "allow-always", "--scope", "user"],
        &["secret", "set", "github"],
        &["add", "more", "--", "true"],
    ];
    // With an engine of the subcommand, then with one that an editor shares.
    for shared in [false, true] {
        let _editor = shared.then(|| Editor::open(&sandbox));
        for decision in decisions {
            let run = sandbox.by_agent(decision);
            assert_eq!(run.code, 1, "{decision:?}: {}", run.out);
            assert!(run.err.contains(REFUSED), "{decision:?}: {}", run.err);
        }
        for harmless in
            [&["list"][..], &["level", "demo/add", "deny", "--scope", "user"], &["trust", "project", "--revoke"]]
        {
            let run = sandbox.by_agent(harmless);
            assert_eq!(run.code, 0, "{harmless:?}: {}", run.err);
        }
        assert_eq!(sandbox.run(&["level", "demo/add", "require-approval", "--scope", "user"]).code, 0);
    }
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::add(&sandbox);
    let id = id(&sandbox);
    let run = sandbox.by_agent(&["approve", &id]);
    assert!(run.code == 1 && run.err.contains(REFUSED), "{}", run.err);
    let run = sandbox.run(&["approve", &id]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(call.end(&sandbox).code, 0);
    let decided = json_of(&sandbox, &["calls", "--json"])["calls"][0]["decidedBy"].to_string();
    assert!(decided.contains("a shell (process ") && decided.contains(", mcp-sidecar)"), "{decided}");

    // It can deny, but that is not what the user said.
    let call = WaitingCall::add(&sandbox);
    let run = sandbox.by_agent(&["deny", &self::id(&sandbox), "--note", "too expensive"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let error = call.end(&sandbox).err;
    assert!(error.contains("that the agent `claude` started denied it: too expensive"), "{error}");
    let decided = json_of(&sandbox, &["calls", "--json"])["calls"][0]["decidedBy"].to_string();
    assert!(decided.starts_with("\"a shell (process ") && !decided.contains("user"), "{decided}");
    assert!(decided.ends_with(", mcp-sidecar) that the agent `claude` started\""), "{decided}");
}

/// A terminal that lists questions is a place where the user can be asked.
#[cfg(unix)]
#[test]
fn an_agent_waits_for_a_user_who_watches_in_a_terminal() {
    let sandbox = sandbox();
    let mut agent = sandbox.command(&["connect"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, stdout) = (agent.stdin.take().unwrap(), agent.stdout.take().unwrap());
    let (sender, responses) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"].is_null() {
                sender.send(message).unwrap();
            }
        }
    });
    let mut send = |message: Value| writeln!(stdin, "{message}").unwrap();
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": { "name": "liner", "version": "1" } } }));
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    while responses.recv().unwrap()["id"] != 2 {}
    std::thread::scope(|scope| {
        let screen = scope.spawn(|| sandbox.at_terminal(&[("ended    ", "\u{3}")], &["approvals", "--watch"]));
        let mut call = |id: u64| {
            let call = json!({ "name": "demo__add", "arguments": { "a": id, "b": 0 } });
            send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }));
        };
        // Refused at once until the terminal is there.
        let mut id = 3;
        call(id);
        let asked = loop {
            let list = json_of(&sandbox, &["approvals", "--json"])["approvals"].clone();
            if let Some(question) = list.as_array().unwrap().first() {
                break question["id"].as_str().unwrap().to_owned();
            }
            if let Ok(refused) = responses.try_recv() {
                assert!(refused.to_string().contains("there was no one to ask"), "{refused}");
                assert!(!screen.is_finished(), "the terminal has ended");
                id += 1;
                call(id);
            }
        };
        assert_eq!(sandbox.run(&["approve", &asked]).code, 0);
        assert_eq!(responses.recv().unwrap()["result"]["content"][0]["text"], id.to_string());
        let screen = screen.join().unwrap();
        assert!(screen.out.contains("waiting  ") && screen.out.contains("by the user in a shell"), "{}", screen.out);
    });
    drop(stdin);
    agent.wait().unwrap();
}

/// The ids of all questions that wait, and the only group.
fn group(sandbox: &Sandbox, count: usize) -> (Vec<String>, Value) {
    let list = json_of(sandbox, &["approvals", "--json"]);
    assert_eq!(list["approvals"].as_array().unwrap().len(), count, "{list:#}");
    let ids = list["groups"][0]["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned());
    (ids.collect(), list["groups"][0].clone())
}

#[test]
fn the_servers_of_a_file_are_trusted_together() {
    let sandbox = Sandbox::with_workspace();
    let servers = ["zebra", "ant", "bee"].map(|name| format!(r#""{name}": {DEMO}"#)).join(",");
    sandbox.write("work/mcp.json", &format!(r#"{{ "servers": {{ {servers} }} }}"#));
    let _editor = Editor::open(&sandbox);
    let mut watch = Watch::start(&sandbox, &[]);
    for server in ["zebra", "ant", "bee"] {
        let asked = watch.next();
        assert!(asked.ends_with(&format!("  trust  {server}  Trust the server `{server}`?\n")), "{asked}");
    }
    let (ids, _) = group(&sandbox, 3);
    let short: Vec<&str> = ids.iter().map(|id| &id[..8]).collect();
    let table = sandbox.run(&["approvals"]).out;
    let end = format!("\nTrust 3 servers of `~/work/mcp.json`?\n  mcp-sidecar approve {}\n", short.join(" "));
    assert!(table.ends_with(&end), "{table}");

    let unasked = sandbox.run(&["approve", short[0], short[2]]);
    assert!(unasked.code == 2 && unasked.err.contains("pass --yes"), "{}", unasked.err);
    let refused = sandbox.at_terminal(&[("Trust all 2? [y] yes  [n] no: ", "n")], &["approve", short[0], short[2]]);
    assert_eq!(refused.code, 1, "{}", refused.out);
    let trusted = sandbox.at_terminal(&[("Trust all 2? [y] yes  [n] no: ", "y")], &["approve", short[0], short[2]]);
    assert_eq!(trusted.code, 0, "{}", trusted.out);
    assert_eq!(trusted.out.matches("  runs      ").count(), 2, "each definition is shown: {}", trusted.out);
    let effect = "The servers `zebra` and `bee` are trusted in this project until their definitions change.";
    assert!(trusted.out.contains(effect), "{}", trusted.out);
    assert_eq!(question(&sandbox)["server"], "ant");
    assert!(watch.next().contains("(“Trust”, by the user in a shell (process"));
    assert_eq!(watch.interrupt(), Some(0));
}

#[test]
fn several_calls_are_answered_with_one_command() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let calls = [WaitingCall::add(&sandbox), WaitingCall::add(&sandbox)];
    let list = json_of(&sandbox, &["approvals", "--json"]);
    let id = |number: usize| list["approvals"][number]["id"].as_str().unwrap();
    let lasting = sandbox.run(&["approve", id(0), id(1), "--for", "always"]);
    assert_eq!(lasting.code, 1);
    assert!(lasting.err.contains("`allow-always` is not an answer to all of these questions"), "{}", lasting.err);
    let answered = sandbox.run(&["approve", id(0), id(1), id(0)]);
    assert_eq!(
        (answered.code, answered.err.as_str()),
        (0, "answered with “Allow once”: Run `add` on `demo`?\n".repeat(2).as_str())
    );
    for call in calls {
        assert_eq!(call.end(&sandbox).out, "3\n");
    }
    let calls = [WaitingCall::add(&sandbox), WaitingCall::add(&sandbox)];
    let list = json_of(&sandbox, &["approvals", "--json"]);
    let id = |number: usize| list["approvals"][number]["id"].as_str().unwrap();
    assert_eq!(sandbox.run(&["deny", id(0), id(1), "--note", "not now"]).code, 0);
    for call in calls {
        assert!(call.end(&sandbox).err.contains("the user denied it: not now"));
    }
}

#[test]
fn a_call_is_shown_in_full_before_it_is_allowed_at_a_terminal() {
    let sandbox = sandbox();
    let _editor = Editor::open(&sandbox);
    let call = WaitingCall::add(&sandbox);
    let id = id(&sandbox);
    // What was typed before the question was shown is no answer to it.
    let refused = sandbox.at_terminal(&[("", "y"), ("Allow it? [y] yes  [n] no: ", "n")], &["approve", &id]);
    assert_eq!(refused.code, 1, "{}", refused.out);
    assert!(refused.out.contains("\"a\": 1") && refused.out.contains("\"b\": 2"), "{}", refused.out);
    assert_eq!(question(&sandbox)["id"], id.as_str(), "nothing was answered");
    // Too short: it could also be the beginning of a question that has just been asked.
    assert_eq!(sandbox.run(&["approve", &id[..3]]).code, 1);
    let allowed = sandbox.at_terminal(&[("Allow it? [y] yes  [n] no: ", "y")], &["approve", &id[..4]]);
    assert_eq!(allowed.code, 0, "{}", allowed.out);
    assert_eq!(call.end(&sandbox).out, "3\n");
}
