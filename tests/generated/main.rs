//! Files that are generated from the types of the wire contract. They are committed; this target fails when one of them
//! is stale. `make generate` writes them again.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that cannot go on has failed")]

mod contract;
mod lua;
mod markdown;
mod typescript;

use std::path::Path;
use std::process::Command;

use contract::Contract;

/// Compares a generated file with the committed one, or writes it.
fn check(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os("MCP_SIDECAR_GENERATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "{file} is stale: run `make generate` and commit the result");
}

#[test]
fn the_types_of_the_vs_code_extension_are_current() {
    check("editors/vscode/src/protocol.ts", &typescript::generate(&Contract::read()));
}

#[test]
fn the_types_of_the_neovim_plugin_are_current() {
    check("editors/nvim/lua/mcp_sidecar/protocol.lua", &lua::generate(&Contract::read()));
}

#[test]
fn the_lists_of_the_neovim_plugin_are_current() {
    check("editors/nvim/lua/mcp_sidecar/lists.lua", &lua::lists(&Contract::read()));
}

#[test]
fn the_json_schema_is_current() {
    let schema = serde_json::to_string_pretty(&Contract::read().schema()).unwrap();
    check("docs/protocol.schema.json", &format!("{schema}\n"));
}

#[test]
fn the_tables_of_the_pages_are_current() {
    let page = |file: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let contract = Contract::read();
    check("docs/protocol.md", &markdown::protocol(&page("docs/protocol.md"), &contract));
    check("docs/agents.md", &markdown::agents(&page("docs/agents.md")));
    let schema = serde_json::from_str(&run(&["schema"])).unwrap();
    check("docs/configuration.md", &markdown::configuration(&page("docs/configuration.md"), &contract, &schema));
    check("docs/settings.md", &markdown::settings(&page("docs/settings.md")));
    check(
        "docs/commands.md",
        &markdown::commands(&page("docs/commands.md"), &|command| run(&[&["help"], command].concat())),
    );
}

/// What `mcp-sidecar` prints.
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar")).args(arguments).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}
