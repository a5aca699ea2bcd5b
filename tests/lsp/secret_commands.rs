//! Secrets that programs of the user print: only the user configures them, and a project gets one only after a question.

use mcp_sidecar::protocol::commands::ServerLogs;
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::Home;
use crate::support::commands::{name, restart, text};
use crate::support::harness::{Harness, scripted};

/// A program that prints this and notes that it ran.
struct Program {
    home: Home,
    script: String,
}

impl Program {
    fn new(prints: &str) -> Self {
        let home = Home::new();
        let ran = home.path("state/ran");
        let script = format!("echo run >> '{}'; {prints}", ran.display());
        Self { home, script }
    }

    fn settings(&self) -> Settings {
        let command = json!(["sh", "-c", self.script]);
        let (settings, problems) = Settings::from_toml(&format!("[secret-commands]\ngithub = {command}\n"));
        assert_eq!(problems, []);
        settings
    }

    fn runs(&self) -> usize {
        std::fs::read_to_string(self.home.path("state/ran")).map_or(0, |text| text.lines().count())
    }

    fn server(&self, key: &str) -> Value {
        let tool = json!({ "name": "value", "inputSchema": { "type": "object" } });
        let mut server = scripted(&self.home.path("state"), key, json!({ "tools": [tool] }));
        server["env"] = json!({ "LEAK": "${keyring:github}" });
        server["tools"] = json!({ "*": "allow-always" });
        server
    }
}

#[tokio::test]
async fn a_project_gets_the_output_of_a_command_only_after_its_own_question() {
    let program = Program::new("echo secret-of-the-user");
    let project = json!({ "servers": { "leak": program.server("leak") } });
    let mut harness = Harness::with(json!({}), project, program.settings()).await;
    let trust = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.resolve(&trust, "allow-project").await;
    let question = harness.approvals(ApprovalKind::Elicitation, 1).await.remove(0);
    assert_eq!(question.title, "Give `github` from your program `sh` to the server `leak`?");
    assert_eq!(program.runs(), 0, "the program runs only after the answer");
    harness.resolve(&question, "decline").await;
    let failed = harness.until("leak", Status::Failed).await;
    assert!(failed.error.unwrap().contains("you did not give it `github` from your program `sh`"));
    assert_eq!(program.runs(), 0);

    harness.run(restart("leak")).await;
    let question = harness.approvals(ApprovalKind::Elicitation, 1).await.remove(0);
    harness.resolve(&question, "accept").await;
    harness.until("leak", Status::Connected).await;
    let result = harness.call("mcp__leak__value", json!({ "variable": "LEAK" })).await.unwrap();
    assert!(text(&result).contains("\"secret-of-the-user\""), "without the line break: {}", text(&result));
    harness.run(restart("leak")).await;
    harness.until("leak", Status::Connected).await;
    assert_eq!(program.runs(), 1, "a restart uses the same output");
    let logs = harness.run(ServerLogs { server: name("leak"), limit: None }).await;
    assert!(!format!("{logs:?}").contains("secret-of-the-user"), "{logs:?}");
}

#[tokio::test]
async fn servers_that_start_together_share_one_run() {
    let program = Program::new("echo secret-of-the-user");
    let user = json!({ "servers": { "one": program.server("one"), "two": program.server("two") } });
    let mut harness = Harness::with(user, json!({}), program.settings()).await;
    harness.until("one", Status::Connected).await;
    harness.until("two", Status::Connected).await;
    assert_eq!(program.runs(), 1);
}

#[tokio::test]
async fn a_command_that_fails_says_why_without_its_output() {
    for (prints, expected) in [
        ("echo secret-of-the-user; echo secret-of-the-user >&2; exit 3", "exited with code 3"),
        ("printf 'secret-of-the-user\\nsecond'", "several lines"),
        ("true", "printed nothing"),
        ("head -c 70000 /dev/zero", "more than 64 KiB"),
        ("printf '\\377'", "not text"),
    ] {
        let program = Program::new(prints);
        let user = json!({ "servers": { "mine": program.server("mine") } });
        let mut harness = Harness::with(user, json!({}), program.settings()).await;
        let failed = harness.until("mine", Status::Failed).await;
        let error = failed.error.clone().unwrap();
        assert!(error.contains("cannot get `github` from your program `sh`: ") && error.contains(expected), "{error}");
        let logs = harness.run(ServerLogs { server: name("mine"), limit: None }).await;
        assert!(!format!("{failed:?} {logs:?}").contains("secret-of-the-user"), "{failed:?} {logs:?}");
    }
}
