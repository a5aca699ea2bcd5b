//! The clients of the SDKs in the same client scenarios of the official suite as our connections, so that a scenario
//! that no client passes can be distinguished from one that only we do not pass.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::connections::play_each;
use crate::servers::client;
use crate::suite::{Outcomes, Side, Suite};
use crate::support::reliability_page;

/// Takes some minutes, so `make conformance` runs it, and `cargo test` does not.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes; `make conformance` runs it"]
async fn the_page_compares_our_connections_with_the_clients_of_the_sdks() {
    let (Some(stable), Some(next)) = (Suite::find(), Suite::next()) else { return };
    let ours = ("mcp-sidecar", format!("{} conformance", env!("CARGO_BIN_EXE_mcp-sidecar")));
    let script = |name: &str| format!("{}/tests/foreign/compared/{name}", env!("CARGO_MANIFEST_DIR"));
    let [clients, node, python] =
        ["MCP_CLIENTS", "MCP_CLIENT_NODE", "MCP_CLIENT_PYTHON_V1"].map(|key| client(key).unwrap());
    let typescript = |version: &str| {
        format!("env MCP_CLIENTS={} {} {} {version}", clients.display(), node.display(), script("typescript.mjs"))
    };
    let of_python = ("Python SDK 1", format!("{} {}", python.display(), script("python.py")));
    let mut text = format!("Last run: {}.\n\n", time::OffsetDateTime::now_utc().date());
    for (title, suite, contenders) in [
        ("Stable suite", &stable, vec![ours.clone(), ("TypeScript SDK 1", typescript("v1")), of_python]),
        ("Next suite, 2026-07-28", &next, vec![ours, ("TypeScript SDK 2", typescript("v2"))]),
    ] {
        let mut results = Vec::new();
        for (name, command) in &contenders {
            results.push((*name, play_each(suite, command).await));
        }
        // What is expected of ours is checked here as well, in the same run.
        suite.judge(Side::Client, &results[0].1);
        text.push_str(&table(title, &results));
    }
    reliability_page::replace("conformance", &text);
}

/// How many scenarios each client passes, and those that not all of them pass.
fn table(title: &str, results: &[(&str, Outcomes)]) -> String {
    let names: Vec<&str> = results.iter().map(|(name, _)| *name).collect();
    let mut text = format!("| {title} | {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len() + 1));
    let passed = |outcomes: &Outcomes| outcomes.values().filter(|outcome| outcome.is_ok()).count();
    let passed: Vec<String> =
        results.iter().map(|(_, outcomes)| format!("{} of {}", passed(outcomes), outcomes.len())).collect();
    writeln!(text, "| client scenarios passed | {} |", passed.join(" | ")).unwrap();
    let failed: BTreeSet<&String> = results
        .iter()
        .flat_map(|(_, outcomes)| outcomes.iter().filter(|(_, outcome)| outcome.is_err()).map(|(scenario, _)| scenario))
        .collect();
    for scenario in failed {
        let marks: Vec<&str> =
            results.iter().map(|(_, outcomes)| if outcomes[scenario].is_ok() { "passed" } else { "failed" }).collect();
        writeln!(text, "| `{scenario}` | {} |", marks.join(" | ")).unwrap();
    }
    text.push('\n');
    text
}

#[test]
fn only_scenarios_on_which_clients_differ_or_fail_are_listed() {
    let outcomes =
        |second: Result<(), String>| Outcomes::from([("one".to_owned(), Ok(())), ("two".to_owned(), second)]);
    let results = [("ours", outcomes(Err("reason".to_owned()))), ("theirs", outcomes(Ok(())))];
    let expected = "| Suite | ours | theirs |\n|---|---|---|\n| client scenarios passed | 1 of 2 | 2 of 2 |\n\
                    | `two` | failed | passed |\n\n";
    assert_eq!(table("Suite", &results), expected);
}
