//! GitHub Copilot CLI.

use serde_json::json;

use super::{claude, gemini};
use crate::config::interop::file::ForeignFile;
use crate::config::interop::format::{ExportKeys, Format, SetupRules, TypeNames, Unit};

pub const FORMAT: Format = Format {
    name: "copilot",
    title: "Copilot CLI",
    project_files: &[".github/mcp.json"],
    loads_mcp_json: true,
    user_files: |homes| vec![homes.folder("COPILOT_HOME", ".copilot").join("mcp-config.json")],
    read: |root| ForeignFile::of_section(root, FORMAT.section),
    own_references: gemini::own_references,
    expands: claude::expands,
    spelling: gemini::spelling,
    export: ExportKeys {
        kinds: Some(TypeNames { stdio: Some("local"), http: "http", sse: "sse" }),
        always_args: true,
        cwd: Some("cwd"),
        timeout: Some(("timeout", Unit::Milliseconds)),
        shown_tools: Some("tools"),
        required: |_, entry| {
            entry.entry("tools").or_insert_with(|| json!(["*"]));
        },
        ..ExportKeys::COMMON
    },
    setup: SetupRules { tried_with: Some("copilot mcp list"), ..Format::COMMON.setup },
    ..Format::COMMON
};
