//! `docs/protocol.md` and the code say the same.

use std::collections::{BTreeMap, BTreeSet};

use mcp_sidecar::protocol::commands::{AnyCommand, NAMES};
use mcp_sidecar::protocol::types::Status;
use serde_json::{Value, json};

use crate::support::Harness;
use crate::support::harness::demo;

/// Command → its two examples: what it takes, what it answers.
fn page() -> BTreeMap<String, (Value, Value)> {
    let page = include_str!("../../docs/protocol.md");
    let sections = page.split("\n### `").skip(1).filter(|section| section.starts_with("mcp."));
    sections
        .map(|section| {
            let (name, text) = section.split_once('`').unwrap();
            // The next chapter is no part of the last section.
            let text = text.split("\n## ").next().unwrap();
            let mut examples = text.split("```json\n").skip(1).map(|rest| {
                let example = rest.split("```").next().unwrap();
                serde_json::from_str(example).unwrap_or_else(|error| panic!("{name}: {error} in {example}"))
            });
            let both = (examples.next(), examples.next());
            let (Some(takes), Some(answers)) = both else { panic!("{name} needs two examples") };
            (name.to_owned(), (takes, answers))
        })
        .collect()
}

#[test]
fn the_page_has_every_command_and_no_other_and_its_examples_are_understood() {
    let page = page();
    let documented: BTreeSet<&str> = page.keys().map(String::as_str).collect();
    assert_eq!(documented, NAMES.iter().copied().collect());
    for (name, (takes, _)) in page {
        AnyCommand::parse(&name, vec![takes]).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Objects whose keys are somebody else's.
const FOREIGN: [&str; 8] =
    ["config", "inputSchema", "outputSchema", "arguments", "result", "annotations", "errors", "content"];

/// Keys of the answer that the page does not tell.
fn undocumented(path: &str, documented: &Value, real: &Value, found: &mut Vec<String>) {
    match (documented, real) {
        (Value::Object(documented), Value::Object(real)) if !documented.is_empty() => {
            for (key, value) in real.iter().filter(|(key, _)| !FOREIGN.contains(&key.as_str())) {
                match documented.get(key) {
                    Some(documented) => undocumented(&format!("{path}.{key}"), documented, value, found),
                    None => found.push(format!("{path}.{key}")),
                }
            }
        }
        (Value::Array(documented), Value::Array(real)) => {
            if let (Some(documented), Some(real)) = (documented.first(), real.first()) {
                undocumented(&format!("{path}[]"), documented, real, found);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn a_live_engine_answers_each_example_as_the_page_says() {
    let user = json!({ "servers": { "demo": demo(json!({ "echo": "require-approval" })) } });
    let mut harness = Harness::new(user, json!({})).await;
    harness.until("demo", Status::Connected).await;
    let page = page();
    let read_only = |name: &str| {
        let safe =
            ["mcp.tool.call", "mcp.servers", "mcp.server.logs", "mcp.server.test", "mcp.server.toggle", "mcp.tools"];
        let more = [
            "mcp.prompt.get",
            "mcp.complete",
            "mcp.policies",
            "mcp.resources",
            "mcp.resource.read",
            "mcp.prompts",
            "mcp.approvals",
            "mcp.grants",
        ];
        let rest = [
            "mcp.grant.revoke",
            "mcp.config",
            "mcp.config.reload",
            "mcp.calls",
            "mcp.calls.verify",
            "mcp.metrics",
            "mcp.servers.set",
            "mcp.server.start",
        ];
        safe.contains(&name) || more.contains(&name) || rest.contains(&name)
    };
    // A call first, so that the log and the metrics have something to tell.
    let (call, _) = &page["mcp.tool.call"];
    harness.editor.raw_command("mcp.tool.call", call.clone()).await.unwrap();
    let mut differences = Vec::new();
    for (name, (takes, answers)) in page.iter().filter(|(name, _)| read_only(name)) {
        let real = harness.editor.raw_command(name, takes.clone()).await.unwrap();
        for key in answers.as_object().unwrap().keys() {
            if real.get(key).is_none() {
                differences.push(format!("{name} does not answer `{key}`"));
            }
        }
        undocumented(name, answers, &real, &mut differences);
    }
    assert_eq!(differences, [] as [String; 0]);
}
