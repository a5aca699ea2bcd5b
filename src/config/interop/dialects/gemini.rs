//! Gemini CLI.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::claude;
use crate::config::expand::Reference;
use crate::config::interop::file::ForeignFile;
use crate::config::interop::format::{
    Disabled, ExportKeys, Format, FoundReferences, OAuthKeys, Scopes, SetupRules, TypeNames, Unit,
};

pub const FORMAT: Format = Format {
    name: "gemini",
    title: "Gemini CLI",
    has_comments: true,
    project_files: &[".gemini/settings.json"],
    user_files: |homes| vec![homes.folder("GEMINI_CLI_HOME", "").join(".gemini/settings.json")],
    read,
    own_references,
    expands: claude::expands,
    spelling,
    export: ExportKeys {
        kinds: Some(TypeNames { stdio: None, http: "http", sse: "sse" }),
        cwd: Some("cwd"),
        oauth: OAuthKeys {
            client_id: Some("clientId"),
            client_secret: Some("clientSecret"),
            scopes: Scopes::List,
            ..OAuthKeys::NONE
        },
        disabled: Disabled::List(EXCLUDED),
        timeout: Some(("timeout", Unit::Milliseconds)),
        description: Some("description"),
        hidden_tools: Some("excludeTools"),
        shown_tools: Some("includeTools"),
        ..ExportKeys::COMMON
    },
    setup: SetupRules {
        note: Some("Gemini CLI starts MCP servers only in folders that you trust; it asks when you start it in one"),
        tried_with: Some("gemini mcp list"),
        ..SETUP
    },
    ..Format::COMMON
};

/// The place of the names of disabled servers, also in Qwen Code.
const EXCLUDED: [&str; 2] = ["mcp", "excluded"];

/// Also for Qwen Code.
pub const SETUP: SetupRules = SetupRules {
    entry: |entry| {
        // mcp-sidecar asks about each call, so the program need not.
        entry.insert("trust".to_owned(), json!(true));
    },
    ..Format::COMMON.setup
};

/// Also for Qwen Code.
pub fn read(root: &Value) -> ForeignFile {
    let mut found = ForeignFile::of_section(root, FORMAT.section);
    let excluded = root.get(EXCLUDED[0]).and_then(|mcp| mcp.get(EXCLUDED[1])).and_then(Value::as_array);
    let excluded: Vec<&str> = excluded.into_iter().flatten().filter_map(Value::as_str).collect();
    for (_, entry) in found.servers.iter_mut().filter(|(name, _)| excluded.contains(&name.as_str())) {
        if let Value::Object(entry) = entry {
            entry.insert("disabled".to_owned(), json!(true));
        }
    }
    found
}

/// `$NAME`, also for other programs that expand it.
pub fn own_references(text: &str) -> FoundReferences {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\$([A-Za-z_][A-Za-z0-9_]*)").ok());
    let found = NAME.iter().flat_map(|pattern| pattern.captures_iter(text));
    let one = |found: regex::Captures<'_>| {
        let reference = Reference::Variable { name: found.get(1)?.as_str().to_owned(), default: None };
        Some((found.get(0)?.range(), reference))
    };
    found.filter_map(one).collect()
}

/// `${NAME}` and `${NAME:-default}`, also for other programs that expand them.
pub fn spelling(reference: &Reference) -> Option<String> {
    match reference {
        Reference::Variable { name, default: None } => Some(format!("${{{name}}}")),
        Reference::UserHome => Some("${HOME}".to_owned()),
        _ => None,
    }
}
