//! A server with odd definitions does not break the lists of an agent: each SDK parses all of them.

use std::path::Path;

use serde_json::{Value, json};

use super::agent::Agent;
use super::library;
use crate::support::Home;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).display().to_string()
}

fn home() -> Home {
    let home = Home::new();
    let odd = json!({ "command": "python3", "args": [fixture("scripted.py"), fixture("nonconforming-lists.json")] });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "odd": odd } }).to_string()).unwrap();
    home
}

/// The names of a list of the fixture that agents have to see.
fn expected(key: &str) -> Vec<String> {
    let script: Value =
        serde_json::from_str(&std::fs::read_to_string(fixture("nonconforming-lists.json")).unwrap()).unwrap();
    let identity = match key {
        "resources" => "uri",
        "resourceTemplates" => "uriTemplate",
        _ => "name",
    };
    let shown = |entry: &Value| {
        let id = entry.get(identity)?.as_str().filter(|id| !id.is_empty())?;
        let is_hidden = script["hidden"].as_array().unwrap().iter().any(|hidden| hidden == id);
        match key {
            "tools" | "prompts" => (!is_hidden).then(|| format!("odd__{id}")),
            _ => Some(entry["name"].as_str().unwrap_or(id).to_owned()),
        }
    };
    let mut names: Vec<String> = script[key].as_array().unwrap().iter().filter_map(shown).collect();
    assert!(names.len() > 2, "{names:?}");
    names.sort();
    names
}

async fn lists_everything(mut agent: Agent) {
    let lists = agent.list_all().await;
    for key in ["tools", "prompts", "resources", "resourceTemplates"] {
        let mut names: Vec<String> = serde_json::from_value(lists[key].clone()).unwrap();
        names.sort();
        assert_eq!(names, expected(key), "{key}");
    }
    agent.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_parses_lists_with_nonconforming_entries() {
    for version in ["v1", "v2"] {
        let home = home();
        let Some(agent) = Agent::typescript(&home, version) else { return };
        lists_everything(agent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_parses_lists_with_nonconforming_entries() {
    for version in ["v1", "v2"] {
        let home = home();
        let Some(agent) = Agent::python(&home, version) else { return };
        lists_everything(agent).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rust_sdk_parses_lists_with_nonconforming_entries() {
    let home = home();
    lists_everything(library::agent(&home).await).await;
}
