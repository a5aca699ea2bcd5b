//! What an agent is told when something is refused or fails: why, but neither a path nor how to change it. A model
//! would follow such a recipe.

use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::raw_agent::{Host, RawAgent};
use crate::support::harness::{demo, fixture};

/// Words of a path or a recipe.
const RECIPES: [&str; 16] = [
    "mcp.json",
    "config.toml",
    ".json",
    ".toml",
    "/tmp",
    "\"tools\":",
    "allow-session",
    "allow-always",
    "startupTimeout",
    "servers.",
    "limits.",
    "`timeout`",
    "in its config",
    "trust it",
    "set it in",
    "${",
];

fn check(what: &str, text: &str, host: &Host) {
    let home = host.home.path("");
    let own = [home.display().to_string(), env!("CARGO_MANIFEST_DIR").to_owned(), env!("HOME").to_owned()];
    for recipe in RECIPES.iter().map(|word| (*word).to_owned()).chain(own) {
        assert!(!text.contains(&recipe), "{what} contains `{recipe}`: {text}");
    }
}

/// Everything that an agent gets for a call, as text.
async fn call(agent: &mut RawAgent, id: i64, tool: &str, arguments: Value) -> String {
    let answer = agent.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await;
    let text = answer["result"]["content"][0]["text"].as_str().or(answer["error"]["message"].as_str());
    text.unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

fn settings(text: &str) -> Settings {
    let (settings, problems) = Settings::from_toml(text);
    assert_eq!(problems, []);
    settings
}

#[tokio::test]
async fn refusals_and_failures_contain_no_path_and_no_recipe() {
    let mut slow = fixture("faulty.py");
    slow["args"].as_array_mut().unwrap().push(json!("hang"));
    slow["startupTimeout"] = json!(0.5);
    let mut crash = fixture("server.py");
    crash["args"].as_array_mut().unwrap().extend([json!("--exit"), json!("3")]);
    let servers = json!({
        "demo": demo(json!({ "echo": "deny", "add": "require-approval", "countdown": "allow-always" })),
        "off": { "command": "true", "enabled": false },
        "unset": { "command": "true", "args": ["${NOT_SET_ANYWHERE}"] },
        "gone": { "command": "/nonexistent/program" },
        "file": { "command": "true", "envFile": "/nonexistent/.env" },
        "key": { "command": "true", "args": ["${keyring:none}"] },
        "closed": { "url": "http://127.0.0.1:9/mcp" },
        "crash": crash,
        "slow": slow,
    });
    let text = "[servers]\ntimeout = '200ms'\n";
    let host = Host::with(servers, settings(text));
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let mut id = 1;
    let mut refusals = Vec::new();
    for (tool, arguments) in [
        ("demo__echo", json!({ "text": "x" })),
        ("demo__add", json!({ "a": 1, "b": 2 })),
        ("demo__add", json!({ "a": "x" })),
        ("demo__countdown", json!({ "from": 100, "interval": 100 })),
        ("off__x", json!({})),
        ("nothing__x", json!({})),
    ] {
        id += 1;
        refusals.push((tool.to_owned(), call(&mut agent, id, tool, arguments).await));
    }
    // Servers that do not run are not listed; a resource of one can still be named.
    for server in ["off", "unset", "gone", "file", "key", "closed", "crash", "slow"] {
        id += 1;
        let answer = agent.ask(id, "resources/read", json!({ "uri": format!("mcp+{server}://file:///x") })).await;
        refusals.push((server.to_owned(), answer["error"]["message"].as_str().unwrap_or_default().to_owned()));
    }
    for (what, text) in &refusals {
        check(what, text, &host);
        assert!(!text.is_empty(), "{what} is answered with a reason");
    }
}

#[tokio::test]
async fn limits_do_not_name_the_setting_that_raises_them() {
    let host = Host::with(
        json!({ "demo": demo(json!({ "*": "allow-always" })) }),
        settings("[limits]\nagent-calls = 1\nmessage-bytes = '64KiB'\n"),
    );
    let mut agent = host.agent().await;
    agent.ask(1, "tools/list", json!({})).await;
    let countdown = json!({ "name": "demo__countdown", "arguments": { "from": 50, "interval": 100 } });
    agent.begin(2, "tools/call", countdown.clone()).await;
    let refused = agent.ask(3, "tools/call", countdown).await;
    check("a call too many", refused["error"]["message"].as_str().unwrap_or_default(), &host);
    let long = "x".repeat(100 << 10);
    agent.begin(4, "tools/call", json!({ "name": "demo__echo", "arguments": { "text": long } })).await;
    let refused = agent.next().await;
    check("a long message", refused["error"]["message"].as_str().unwrap(), &host);
}

#[tokio::test]
async fn the_instructions_contain_no_path() {
    let host = Host::new(json!({ "demo": demo(json!({})) }));
    let mut agent = RawAgent::new(host.connect(1 << 20));
    let greeting = agent.initialize(json!({})).await;
    check("the instructions", greeting["instructions"].as_str().unwrap(), &host);
}
