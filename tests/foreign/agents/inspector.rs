//! The MCP Inspector on the command line, as an agent: a process for each instruction, and Ctrl-C to take a call back.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::PROGRAM;
use super::agent::{Agent, Reports};
use crate::servers::client;
use crate::support::Home;

pub fn agent(home: &Home) -> Option<Agent> {
    let inspector = Inspector {
        program: client("MCP_CLIENT_INSPECTOR")?,
        home: home.path("inspector"),
        project: home.project(),
        variables: home.variables().map(|(name, value)| format!("{name}={}", value.display())).into(),
    };
    let mut agent = Agent::new(|mut instructions, reports| async move {
        let mut running = 0;
        while let Some(instruction) = instructions.recv().await {
            match instruction["do"].as_str().unwrap() {
                "list" => {
                    let listed = output(inspector.start(&["--method", "tools/list"])).await.unwrap();
                    let tools = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone());
                    reports.send(json!({ "tools": tools.collect::<Vec<_>>() })).ok();
                }
                "cancel" => interrupt(running).await,
                _ => {
                    let process = inspector.call(&instruction);
                    running = process.id().unwrap();
                    tokio::spawn(tell(process, reports.clone()));
                }
            }
        }
        reports.send(json!({ "left": true })).ok();
    });
    // It shows results only.
    agent.tells_progress = false;
    Some(agent)
}

struct Inspector {
    program: PathBuf,
    /// Where it may keep things of its own.
    home: PathBuf,
    project: PathBuf,
    variables: Vec<String>,
}

impl Inspector {
    fn call(&self, instruction: &Value) -> Child {
        let mut arguments = vec!["--method".to_owned(), "tools/call".to_owned()];
        arguments.extend(["--tool-name".to_owned(), instruction["tool"].as_str().unwrap().to_owned()]);
        for (name, value) in instruction["arguments"].as_object().unwrap() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            arguments.extend(["--tool-arg".to_owned(), format!("{name}={value}")]);
        }
        self.start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// In a process group of its own, as a shell starts it.
    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = Command::new(&self.program);
        command.arg("--cli").env("HOME", &self.home).current_dir(&self.project).process_group(0).kill_on_drop(true);
        for variable in &self.variables {
            command.args(["-e", variable]);
        }
        command.args([PROGRAM, "connect"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

async fn output(process: Child) -> Result<Value, String> {
    let output = process.wait_with_output().await.unwrap();
    serde_json::from_slice(&output.stdout).map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
}

async fn tell(process: Child, reports: Reports) {
    let report = match output(process).await {
        Ok(result) => json!({ "result": result }),
        Err(error) => json!({ "error": error }),
    };
    reports.send(report).ok();
}

/// What Ctrl-C does: everybody in front of the terminal hears it.
async fn interrupt(group: u32) {
    Command::new("kill").args(["-INT", "--", &format!("-{group}")]).status().await.unwrap();
}
