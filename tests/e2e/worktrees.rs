//! Several checkouts and nested projects of one repository, with real `git worktree add`: one engine process, servers in
//! their own folder, and questions in every editor of the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mcp_sidecar::protocol::answers::ServerList;
use mcp_sidecar::protocol::commands::{Agents, Approvals, Calls, Servers};
use mcp_sidecar::protocol::events::{ApprovalsChanged, CallFinished};
use mcp_sidecar::protocol::types::{Approval, ApprovalKind, ServerStatus, Status};
use serde_json::{Value, json};

use crate::processes::stage::{PROGRAM, Pids, alive};
use crate::sharing::{Agent, PATIENCE};
use crate::support::commands::{resolve, restart, start, stop, tool_call};
use crate::support::{Home, StdioEditor, TestEditor, uri};

/// A server whose tool returns its first argument. It writes its process id to the file in the second one.
const SERVER: &str = r#"import json, os, sys
with open(sys.argv[2], "a") as pids:
    pids.write(f"{os.getpid()}\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        result = { "protocolVersion": "2025-06-18", "capabilities": { "tools": {}, "resources": { "subscribe": True } },
                   "serverInfo": { "name": "here", "version": "1" } }
    elif message["method"] == "tools/list":
        result = { "tools": [{ "name": "where", "inputSchema": { "type": "object" } }] }
    elif message["method"] == "tools/call":
        result = { "content": [{ "type": "text", "text": sys.argv[1] }] }
    print(json.dumps({ "jsonrpc": "2.0", "id": message["id"], "result": result }), flush=True)
"#;

/// A repository with a server of its own, which a user with another server has open.
struct Stage {
    home: Home,
    /// The processes of the project's server, in all checkouts.
    pids: Pids,
    /// The processes of the user's server.
    own_pids: Pids,
}

impl Stage {
    fn new() -> Self {
        let home = Home::new();
        let (pids, own_pids) = (Pids::at(home.path("pids")), Pids::at(home.path("own-pids")));
        let config = definition("here", pids.path());
        home.write("mcp.json", &config.to_string());
        home.write("server.py", SERVER);
        std::fs::write(home.path("own.py"), SERVER).unwrap();
        let args = [home.path("own.py").to_str().unwrap(), "for all", own_pids.path()].map(str::to_owned);
        let own =
            json!({ "servers": { "own": { "command": "python3", "args": args, "tools": { "*": "allow-always" } } } });
        std::fs::write(home.path("config/mcp.json"), own.to_string()).unwrap();
        let stage = Self { home, pids, own_pids };
        stage.git(&["init", "--quiet", "."]);
        stage.git(&["add", "."]);
        stage.git(&["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", "first"]);
        stage
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.home.project()).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(git.env("GIT_CONFIG_NOSYSTEM", "1").status().unwrap().success(), "{arguments:?}");
    }

    fn main(&self) -> PathBuf {
        self.home.project().canonicalize().unwrap()
    }

    /// Another checkout, next to the main one.
    fn worktree(&self, name: &str) -> PathBuf {
        let folder = self.home.path(name);
        self.git(&["worktree", "add", "--quiet", "--detach", folder.to_str().unwrap()]);
        folder.canonicalize().unwrap()
    }

    async fn window(&self, folder: &Path) -> StdioEditor {
        let mut window = StdioEditor::start(&self.home, &[]);
        let noise = ["mcp/serverChanged", "mcp/toolsChanged", "mcp/log", "mcp/configReloaded", "mcp/callFinished"];
        for noise in noise.into_iter().chain(["window/showMessage", "textDocument/publishDiagnostics"]) {
            window.editor.ignore(noise);
        }
        let ours = json!({ "version": "1", "approvals": true });
        let more = json!({ "capabilities": { "experimental": { "mcpSidecar": ours } } });
        window.editor.initialize(&[folder], more).await;
        window
    }

    /// A window of the main checkout, whose server is trusted and runs.
    async fn trusted_window(&self) -> StdioEditor {
        let mut window = self.window(&self.main()).await;
        let question = asked(&mut window.editor).await;
        assert_eq!((question.kind, question.folder.as_ref()), (ApprovalKind::Trust, None));
        window.editor.call(resolve(&question, "allow-project")).await.unwrap();
        connected(&mut window.editor, "here").await;
        window
    }

    async fn agent(&self, folder: &Path) -> Agent {
        Agent::start_with(&self.home, folder, &[]).await
    }

    /// How many engines listen.
    fn engines(&self) -> usize {
        let files = std::fs::read_dir(self.home.path("runtime")).unwrap();
        files.filter(|file| file.as_ref().unwrap().path().extension() == Some("sock".as_ref())).count()
    }
}

fn definition(name: &str, pids: &str) -> Value {
    let args = ["${workspaceFolder}/server.py", "${workspaceFolder}", pids];
    json!({ "servers": { name: { "command": "python3", "args": args, "tools": { "where": "require-approval" } } } })
}

/// The next question.
async fn asked(editor: &mut TestEditor) -> Approval {
    editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()).await.approvals.remove(0)
}

/// The questions that wait now.
async fn waiting_questions(editor: &mut TestEditor) -> Vec<Approval> {
    editor.call(Approvals::default()).await.unwrap().approvals
}

async fn status(editor: &mut TestEditor, server: &str) -> ServerStatus {
    let listed = editor.call(Servers::default()).await.unwrap().servers;
    listed.into_iter().find(|status| status.name.as_str() == server).unwrap()
}

async fn until(editor: &mut TestEditor, server: &str, fits: impl Fn(&ServerStatus) -> bool) -> ServerStatus {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let status = status(editor, server).await;
        if fits(&status) {
            return status;
        }
        assert!(tokio::time::Instant::now() < end, "the status stays {status:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn connected(editor: &mut TestEditor, server: &str) -> ServerStatus {
    until(editor, server, |status| status.status == Status::Connected).await
}

/// The names of an agent's tools.
async fn tools(agent: &mut Agent, id: i64) -> Vec<String> {
    let listed = agent.ask(id, "tools/list", json!({})).await;
    let names = listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

/// Waits until the agent has these tools. It is told when they change.
async fn until_tools(agent: &mut Agent, expected: &[&str]) {
    for id in 100.. {
        if tools(agent, id).await == expected {
            return;
        }
        agent.heard(|message| message["method"] == "notifications/tools/list_changed").await;
    }
}

/// Leaves in order. How the questions have ended is not news.
async fn quit(mut window: StdioEditor) {
    window.editor.ignore("mcp/approvalsChanged");
    assert!(window.quit().await.success());
}

async fn begin_call(agent: &mut Agent, id: i64, tool: &str) {
    let call = json!({ "name": tool, "arguments": {} });
    agent.say(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call })).await;
}

/// The text of a result.
async fn text(agent: &mut Agent, id: i64) -> String {
    let answer = agent.answer(id).await;
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

#[tokio::test]
async fn the_board_counts_the_calls_of_agents_of_the_same_name_by_worktree() {
    let stage = Stage::new();
    let mut window = stage.trusted_window().await;
    let (left, right) = (stage.worktree("left"), stage.worktree("right"));
    let mut agents = (stage.agent(&left).await, stage.agent(&right).await);
    for (agent, calls) in [(&mut agents.0, 2), (&mut agents.1, 1)] {
        tools(agent, 1).await;
        for id in 10..10 + calls {
            begin_call(agent, id, "own__where").await;
            assert_eq!(text(agent, id).await, "for all");
        }
    }
    // The calls are recorded by the workspaces of the worktrees, and the board is that of the main checkout.
    let counted = async {
        loop {
            let board = window.editor.call(Agents {}).await.unwrap().agents;
            let counts: Vec<_> = board.iter().map(|agent| (agent.folder.clone(), agent.today.calls)).collect();
            if counts.iter().map(|(_, calls)| calls).sum::<u64>() >= 3 {
                return counts;
            }
        }
    };
    let counts = tokio::time::timeout(PATIENCE, counted).await.unwrap();
    assert_eq!(counts, [(left.clone(), 2), (right.clone(), 1)]);
    // So is the log.
    let calls = window.editor.call(Calls::default()).await.unwrap().calls;
    assert!(calls.is_sorted_by(|newer, older| newer.time >= older.time), "{calls:#?}");
    let mut folders: Vec<_> = calls.iter().map(|call| call.folder.as_ref().unwrap()).collect();
    folders.sort();
    assert_eq!(folders, [&left, &left, &right]);
    window.editor.heed("mcp/callFinished");
    begin_call(&mut agents.0, 20, "own__where").await;
    text(&mut agents.0, 20).await;
    window.editor.event_where(|finished: &CallFinished| finished.0.folder.as_ref() == Some(&left)).await;
    window.editor.ignore("mcp/callFinished");
    quit(window).await;
}

#[tokio::test]
async fn an_agent_in_a_worktree_uses_its_own_checkout_and_asks_in_the_editor_of_another() {
    let stage = Stage::new();
    let mut window = stage.trusted_window().await;
    let tree = stage.worktree("feature");
    std::fs::create_dir(tree.join("deep")).unwrap();

    // Trust in the same definition with the same content holds, so both have the server under its plain name.
    let mut agent = stage.agent(&tree).await;
    let mut below = stage.agent(&tree.join("deep")).await;
    for agent in [&mut agent, &mut below] {
        assert_eq!(tools(agent, 1).await, ["here__where", "own__where"]);
    }
    assert_eq!(stage.engines(), 1);
    assert_eq!(stage.pids.read().len(), 2, "one per checkout");

    begin_call(&mut agent, 2, "here__where").await;
    let question = asked(&mut window.editor).await;
    assert_eq!(question.folder.as_deref(), Some(&*tree));
    assert_eq!(question.title, "The agent `tester` wants to run `where` on `here` (in `feature`)");
    assert!(
        question.detail.starts_with(&format!("This is about another folder: {}\n", tree.display())),
        "{question:?}"
    );
    window.editor.call(resolve(&question, "allow-once")).await.unwrap();
    assert_eq!(text(&mut agent, 2).await, tree.to_str().unwrap());

    // The editor's own servers are those of its folder.
    begin_call(&mut below, 3, "here__where").await;
    let question = asked(&mut window.editor).await;
    window.editor.call(resolve(&question, "allow-session")).await.unwrap();
    assert_eq!(text(&mut below, 3).await, tree.to_str().unwrap());
    let listed = window.editor.call(Servers::default()).await.unwrap().servers;
    assert_eq!(listed.iter().map(|status| status.name.as_str()).collect::<Vec<_>>(), ["here", "own"]);
    assert_eq!(listed[0].pid, Some(stage.pids.read()[0]));

    // Without the editor, the workspace of the agents goes on. That of the editor ends.
    let [of_editor, of_agents] = stage.pids.read()[..] else { panic!("{:?}", stage.pids.read()) };
    quit(window).await;
    let gone = async {
        while alive(of_editor) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("its server should have ended");
    begin_call(&mut agent, 4, "here__where").await;
    assert_eq!(text(&mut agent, 4).await, tree.to_str().unwrap());
    assert!(alive(of_agents));

    // It comes back to the same engine.
    let mut window = stage.window(&stage.main()).await;
    connected(&mut window.editor, "here").await;
    assert_eq!((stage.engines(), stage.pids.read().len()), (1, 3));
    agent.quit().await;
    below.quit().await;
    quit(window).await;
}

#[tokio::test]
async fn trust_holds_in_a_worktree_with_the_same_content_only() {
    let stage = Stage::new();
    let mut window = stage.trusted_window().await;
    let tree = stage.worktree("changed");
    std::fs::write(tree.join("server.py"), format!("{SERVER}\n# another server\n")).unwrap();
    let mut agent = stage.agent(&tree).await;
    let question = asked(&mut window.editor).await;
    assert_eq!((question.kind, question.folder.as_deref()), (ApprovalKind::Trust, Some(&*tree)));
    assert_eq!(question.title, "Trust the server `here` (in `changed`)?");
    assert_eq!(tools(&mut agent, 1).await, ["own__where"]);
    window.editor.call(resolve(&question, "allow-project")).await.unwrap();
    until_tools(&mut agent, &["here__where", "own__where"]).await;
    // The decision is about the worktree: the main checkout stays trusted.
    quit(stage.window(&stage.main()).await).await;
    assert_eq!(status(&mut window.editor, "here").await.status, Status::Connected);
    agent.quit().await;
    quit(window).await;
}

#[tokio::test]
async fn a_folder_that_claims_to_be_a_worktree_gets_neither_trust_nor_engine() {
    let stage = Stage::new();
    let mut window = stage.trusted_window().await;
    let tree = stage.worktree("real");
    let mut agent = stage.agent(&tree).await;
    assert_eq!(tools(&mut agent, 1).await, ["here__where", "own__where"]);

    let record = stage.main().join(".git/worktrees/real");
    let copy = |name: &str| {
        let folder = stage.home.path(name);
        std::fs::create_dir(&folder).unwrap();
        for file in ["mcp.json", "server.py"] {
            std::fs::copy(tree.join(file), folder.join(file)).unwrap();
        }
        folder.canonicalize().unwrap()
    };
    // Its `.git` file names the record of another worktree.
    let file = copy("file");
    std::fs::copy(tree.join(".git"), file.join(".git")).unwrap();
    // Its `.git` folder claims to be such a record, of the trusted repository.
    let common = copy("common");
    std::fs::create_dir(common.join(".git")).unwrap();
    std::fs::copy(record.join("HEAD"), common.join(".git/HEAD")).unwrap();
    std::fs::write(common.join(".git/commondir"), stage.main().join(".git").to_str().unwrap()).unwrap();
    std::fs::write(common.join(".git/gitdir"), common.join(".git").to_str().unwrap()).unwrap();
    // Git itself believes both.
    for folder in [&file, &common] {
        let output = Command::new("git").args(["rev-parse", "--git-common-dir"]).current_dir(folder).output().unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert_eq!(folder.join(shown.trim()).canonicalize().unwrap(), stage.main().join(".git"), "{shown}");
    }
    let mut others = Vec::new();
    for (engines, folder) in (2..).zip([&file, &common]) {
        let mut other = stage.window(folder).await;
        let question = asked(&mut other.editor).await;
        assert_eq!((question.kind, question.folder.as_deref()), (ApprovalKind::Trust, None));
        assert_eq!(stage.engines(), engines);
        others.push(other);
    }
    assert_eq!(waiting_questions(&mut window.editor).await, []);
    agent.quit().await;
    quit(window).await;
}

#[tokio::test]
async fn a_nested_project_is_a_separate_workspace_in_the_same_engine() {
    let stage = Stage::new();
    let mut window = stage.trusted_window().await;
    let nested = stage.main().join("packages/one");
    let config = definition("inner", stage.pids.path());
    stage.home.write("packages/one/mcp.json", &config.to_string());
    stage.home.write("packages/one/server.py", SERVER);
    let mut agent = stage.agent(&nested).await;
    let question = asked(&mut window.editor).await;
    assert_eq!(question.title, "Trust the server `inner` (in `one`)?");
    window.editor.call(resolve(&question, "allow-session")).await.unwrap();
    until_tools(&mut agent, &["inner__where", "own__where"]).await;
    begin_call(&mut agent, 2, "inner__where").await;
    let question = asked(&mut window.editor).await;
    window.editor.call(resolve(&question, "allow-once")).await.unwrap();
    assert_eq!(text(&mut agent, 2).await, nested.to_str().unwrap());
    assert_eq!(stage.engines(), 1);

    // A shell in the main checkout sees its servers, one in the nested project those of the nested project.
    for (folder, expected) in [(stage.main(), "here"), (nested, "inner")] {
        let mut shell = Command::new(PROGRAM);
        shell.args(["list", "--json"]).envs(stage.home.variables()).current_dir(folder).stdin(Stdio::null());
        let shell = tokio::task::spawn_blocking(move || shell.output().unwrap()).await.unwrap();
        let listed: ServerList = serde_json::from_slice(&shell.stdout).unwrap();
        let names: Vec<&str> = listed.servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, [expected, "own"]);
    }
    agent.quit().await;
    quit(window).await;
}

#[tokio::test]
async fn a_server_of_the_user_runs_once_for_all_checkouts() {
    let stage = Stage::new();
    let mut window = stage.trusted_window().await;
    let tree = stage.worktree("feature");
    let mut other = stage.window(&tree).await;
    let mut agent = stage.agent(&tree).await;
    for editor in [&mut window.editor, &mut other.editor] {
        let pid = connected(editor, "own").await.pid;
        assert_eq!(pid, Some(stage.own_pids.read()[0]));
    }
    assert_eq!((stage.own_pids.read().len(), stage.engines()), (1, 1));
    begin_call(&mut agent, 1, "own__where").await;
    assert_eq!(text(&mut agent, 1).await, "for all");
    let called = window.editor.call(tool_call("mcp__own__where", json!({}))).await.unwrap();
    assert_eq!(called.blocks()[0]["text"], "for all");

    // It is one server: what one workspace does with it, the others see.
    window.editor.call(restart("own")).await.unwrap();
    let [_, second] = stage.own_pids.read()[..] else { panic!("{:?}", stage.own_pids.read()) };
    until(&mut other.editor, "own", |status| status.pid == Some(second)).await;
    window.editor.call(stop("own")).await.unwrap();
    until(&mut other.editor, "own", |status| status.status == Status::Stopped).await;
    other.editor.call(start("own")).await.unwrap();
    let third = connected(&mut window.editor, "own").await.pid.unwrap();

    // It goes on without the workspace that was first, and stops with the last.
    quit(window).await;
    let closed = async {
        while alive(stage.pids.read()[0]) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the workspace should have closed");
    begin_call(&mut agent, 2, "own__where").await;
    assert_eq!(text(&mut agent, 2).await, "for all");
    assert_eq!(status(&mut other.editor, "own").await.pid, Some(third));

    // A change restarts it once.
    let mut window = stage.window(&stage.main()).await;
    connected(&mut window.editor, "own").await;
    let file = stage.home.path("config/mcp.json");
    let changed = std::fs::read_to_string(&file).unwrap().replace("for all", "for everyone");
    for editor in [&mut window.editor, &mut other.editor] {
        // It is the user who saves it.
        editor.open(&file, &changed);
        editor.notify("textDocument/didSave", json!({ "textDocument": { "uri": uri(&file) } }));
    }
    std::fs::write(&file, changed).unwrap();
    until(&mut window.editor, "own", |status| status.pid.is_some_and(|pid| pid != third)).await;
    let fourth = connected(&mut window.editor, "own").await.pid;
    until(&mut other.editor, "own", |status| status.status == Status::Connected && status.pid == fourth).await;
    assert_eq!(stage.own_pids.read().len(), 4);
    agent.quit().await;
    quit(other).await;
    quit(window).await;
    let ended = async {
        while stage.own_pids.read().into_iter().any(alive) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("it should have ended");
}

#[tokio::test]
async fn a_server_of_the_user_that_mentions_the_folder_runs_once_per_checkout() {
    let stage = Stage::new();
    let file = stage.home.path("config/mcp.json");
    let config = std::fs::read_to_string(&file).unwrap().replace("for all", "${workspaceFolder}");
    std::fs::write(&file, config).unwrap();
    let window = stage.trusted_window().await;
    let tree = stage.worktree("feature");
    let mut agent = stage.agent(&tree).await;
    begin_call(&mut agent, 1, "own__where").await;
    assert_eq!(text(&mut agent, 1).await, tree.to_str().unwrap());
    assert_eq!(stage.own_pids.read().len(), 2);
    agent.quit().await;
    quit(window).await;
}

#[tokio::test]
async fn a_change_of_the_own_config_by_another_program_is_one_question_for_all_checkouts() {
    let stage = Stage::new();
    let mut window = stage.trusted_window().await;
    let tree = stage.worktree("feature");
    let mut other = stage.window(&tree).await;
    let mut agent = stage.agent(&tree).await;
    let file = stage.home.path("config/mcp.json");
    let original = std::fs::read_to_string(&file).unwrap();
    for (editor, decision) in [(0, "allow-project"), (1, "deny")] {
        for editor in [&mut window.editor, &mut other.editor] {
            connected(editor, "own").await;
        }
        std::fs::write(&file, original.replace("for all", decision)).unwrap();
        let editors = [&mut window.editor, &mut other.editor];
        let mut questions = Vec::new();
        for editor in editors {
            let is_about_it = |question: &Approval| question.diff.as_ref().is_some_and(|diff| diff.contains(decision));
            let changed = editor.event_where(|changed: &ApprovalsChanged| changed.approvals.iter().any(is_about_it));
            questions.push(changed.await.approvals.remove(0));
            let waiting = waiting_questions(editor).await;
            assert_eq!(waiting.len(), 1, "{waiting:#?}");
        }
        assert_eq!(questions[0].id, questions[1].id);
        let editor = if editor == 0 { &mut window.editor } else { &mut other.editor };
        editor.call(resolve(&questions[0], decision)).await.unwrap();
        for editor in [&mut window.editor, &mut other.editor] {
            match decision {
                "deny" => drop(until(editor, "own", |status| status.summary.text == "not trusted").await),
                _ => drop(until(editor, "own", |status| status.pid == stage.own_pids.read().get(1).copied()).await),
            }
        }
    }
    // Nobody is asked again.
    assert!(waiting_questions(&mut window.editor).await.is_empty());
    assert_eq!(stage.own_pids.read().len(), 2);
    until_tools(&mut agent, &["here__where"]).await;
    agent.quit().await;
    quit(other).await;
    quit(window).await;
}
