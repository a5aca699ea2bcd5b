//! `agents` and `set`: the board in a shell, which an agent cannot use.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::{DEMO, Sandbox};

/// An agent that is connected with `mcp-sidecar connect`.
struct Agent {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn connect(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.command(&[&["connect", "--name", "reviewer"], arguments].concat());
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut agent = Self { process, input, output };
        let info = json!({ "name": "reviewer", "version": "1" });
        agent.send(&json!({ "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info } }));
        agent.hear("serverInfo");
        agent.send(&json!({ "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        writeln!(self.input, "{message}").unwrap();
    }

    /// Reads until a line contains this text.
    fn hear(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the connection has ended; waiting for {text}");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn tools(&mut self, id: u64) -> Vec<String> {
        self.send(&json!({ "id": id, "method": "tools/list" }));
        let answer: Value = serde_json::from_str(&self.hear("\"tools\":[")).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_workspace();
    let mut demo: Value = serde_json::from_str(DEMO).unwrap();
    demo["tools"] = json!({ "*": "allow-session" });
    sandbox.write("config/mcp.json", &json!({ "servers": { "demo": demo } }).to_string());
    sandbox.write("config/config.toml", "[sets.sums]\ntools = ['demo__add']\n");
    sandbox
}

#[test]
fn the_board_shows_an_agent_and_switches_pauses_and_disconnects_it() {
    let sandbox = sandbox();
    let none = sandbox.run(&["agents"]);
    assert_eq!((none.code, none.out.as_str()), (0, "no agent is connected to this workspace\n"));
    let mut agent = Agent::connect(&sandbox, &["--set", "sums"]);
    assert_eq!(agent.tools(1), ["demo__add"]);
    let board: Value = serde_json::from_str(&sandbox.run(&["agents", "--json"]).out).unwrap();
    assert_eq!((&board["agents"][0]["name"], &board["agents"][0]["set"]), (&json!("reviewer"), &json!("sums")));
    assert_eq!(board["sets"], json!(["sums"]));
    let switched = sandbox.run(&["set", "--none"]);
    assert_eq!(switched.code, 0, "{}", switched.err);
    agent.hear("tools/list_changed");
    assert!(agent.tools(2).len() > 5);

    let paused = sandbox.run(&["agents", "pause", "reviewer"]);
    assert!(paused.out.contains("paused"), "{}", paused.out);
    let call = json!({ "name": "demo__echo", "arguments": { "text": "later" } });
    agent.send(&json!({ "id": 3, "method": "tools/call", "params": call }));
    while !sandbox.run(&["agents"]).out.contains("paused, demo/echo waits") {}
    assert_eq!(sandbox.run(&["agents", "resume", "reviewer"]).code, 0);
    agent.hear("later");
    let unknown = sandbox.run(&["set", "nope"]);
    assert!(unknown.code == 1 && unknown.err.contains("no set named `nope`"), "{}", unknown.err);
    assert_eq!(sandbox.run(&["agents", "disconnect", "reviewer"]).code, 0);
    assert!(agent.process.wait().unwrap().success());
}

#[test]
fn a_shell_that_an_agent_started_can_read_but_decide_nothing() {
    let sandbox = sandbox();
    let mut agent = Agent::connect(&sandbox, &["--set", "sums"]);
    agent.tools(1);
    let looked = sandbox.by_agent(&["agents"]);
    assert!(looked.out.contains("reviewer"), "{}", looked.err);
    for decision in [
        &["set", "--none"][..],
        &["agents", "pause", "reviewer"],
        &["agents", "disconnect", "reviewer"],
        &["agents", "allow", "x"],
    ] {
        let refused = sandbox.by_agent(decision);
        assert_ne!(refused.code, 0, "{decision:?}");
        assert!(
            refused.err.contains("this program was started by the agent `claude`"),
            "{decision:?}: {}",
            refused.err
        );
    }
    assert_eq!(agent.tools(2), ["demo__add"]);
}
