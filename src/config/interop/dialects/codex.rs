//! Codex, whose file is TOML (`toml`). It expands nothing, but passes on variables by name.

use serde_json::{Value, json};

use crate::config::interop::file::ForeignFile;
use crate::config::interop::format::{
    ByName, Disabled, ExportKeys, Format, HeadersByName, OAuthKeys, RemoteSupport, Scopes, SetupRules, Syntax, Unit,
};
use crate::paths;

pub const FORMAT: Format = Format {
    name: "codex",
    title: "Codex",
    section: "mcp_servers",
    syntax: Syntax::Toml,
    has_comments: true,
    project_files: &[".codex/config.toml"],
    user_files: |homes| vec![homes.folder("CODEX_HOME", ".codex").join("config.toml")],
    read: |root| ForeignFile::of_section(root, FORMAT.section),
    export: ExportKeys {
        remote: RemoteSupport::Http,
        by_name: Some(ByName {
            env: "env_vars",
            headers: Some(HeadersByName { headers: "env_http_headers", bearer: "bearer_token_env_var" }),
        }),
        cwd: Some("cwd"),
        headers: "http_headers",
        oauth: OAuthKeys {
            client_id: Some("client_id"),
            callback_port: Some("callback_port"),
            scopes: Scopes::InEntry,
            ..OAuthKeys::NONE
        },
        disabled: Disabled::Key("enabled", false),
        startup_timeout: Some(("startup_timeout_sec", Unit::Seconds)),
        timeout: Some(("tool_timeout_sec", Unit::Seconds)),
        hidden_tools: Some("disabled_tools"),
        shown_tools: Some("enabled_tools"),
        ..ExportKeys::COMMON
    },
    setup: SetupRules {
        entry: |entry| {
            // Codex passes on only a few variables. Without these, `connect` would not find the engine of the editor, nor
            // the keyring.
            let variables = paths::VARIABLES.iter().chain(&["DBUS_SESSION_BUS_ADDRESS"]);
            entry.insert("env_vars".to_owned(), variables.copied().collect());
            // mcp-sidecar asks about each call, so Codex need not.
            entry.insert("default_tools_approval_mode".to_owned(), json!("approve"));
        },
        tried_with: Some("codex mcp list"),
        ..Format::COMMON.setup
    },
    ..Format::COMMON
};

/// Whether the user's config says that Codex may load the config file of this project.
pub fn trusts(config: &Value, folder: &str) -> bool {
    let level = config.get("projects").and_then(|projects| projects.get(folder)?.get("trust_level"));
    level.and_then(Value::as_str) == Some("trusted")
}
