//! Claude Code.

use serde_json::{Value, json};

use crate::config::edit::{self, Edit, EditError};
use crate::config::expand::Reference;
use crate::config::interop::file::ForeignFile;
use crate::config::interop::format::{
    ExportKeys, Format, ImportRules, OAuthKeys, Scopes, SetupRules, TypeNames, Unit, Variable,
};
use crate::config::sections::MCP_SERVERS;

pub const FORMAT: Format = Format {
    name: "claude",
    title: "Claude Code",
    project_files: &[".mcp.json"],
    user_files: |homes| vec![homes.folder("CLAUDE_CONFIG_DIR", "").join(".claude.json")],
    read,
    expands,
    variable: |name, _| match name {
        "CLAUDE_PROJECT_DIR" => Variable::Reference(Reference::WorkspaceFolder),
        _ if name.starts_with("CLAUDE_PLUGIN_") => Variable::OnlyThere,
        _ => Variable::Environment,
    },
    spelling: |reference| match reference {
        Reference::Variable { name, default: None } => Some(format!("${{{name}}}")),
        Reference::WorkspaceFolder | Reference::Cwd => Some("${CLAUDE_PROJECT_DIR:-.}".to_owned()),
        Reference::UserHome => Some("${HOME}".to_owned()),
        _ => None,
    },
    import: ImportRules { requires_type: true, ..Format::COMMON.import },
    export: ExportKeys {
        kinds: Some(TypeNames { stdio: Some("stdio"), http: "http", sse: "sse" }),
        oauth: OAuthKeys {
            client_id: Some("clientId"),
            callback_port: Some("callbackPort"),
            scopes: Scopes::Text("scopes"),
            ..OAuthKeys::NONE
        },
        timeout: Some(("timeout", Unit::Milliseconds)),
        ..ExportKeys::COMMON
    },
    setup: SetupRules {
        note: Some("to be asked only once about each call, allow `mcp__mcp-sidecar` in the permissions of Claude Code"),
        tried_with: Some("claude mcp list"),
        ..Format::COMMON.setup
    },
    ..Format::COMMON
};

/// The settings of a user in a project, relative to its folder.
pub const LOCAL_SETTINGS: &str = ".claude/settings.local.json";
const REJECTED: &str = "disabledMcpjsonServers";

/// Also for programs that expand `${NAME}` and `${NAME:-default}` in the same way.
pub fn expands(reference: &Reference, written: &str) -> bool {
    matches!(reference, Reference::Variable { .. }) && !written.starts_with("${env:")
}

/// The user's servers, and those of the user in one project.
fn read(root: &Value) -> ForeignFile {
    let mut found = ForeignFile::of_sections(root);
    for (folder, project) in root.get("projects").and_then(Value::as_object).into_iter().flatten() {
        let servers = ForeignFile::of_section(project, MCP_SERVERS).servers;
        if !servers.is_empty() {
            found.projects.push((folder.into(), servers));
        }
    }
    found
}

/// The servers of `.mcp.json` that these settings disable.
pub fn rejected(settings: &Value) -> Vec<String> {
    let names = settings.get(REJECTED).and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Changes the text of the settings so that they disable exactly these servers of `.mcp.json`.
pub fn reject(text: &str, names: &[String]) -> Result<String, EditError> {
    let edit = if names.is_empty() { Edit::remove(&[REJECTED]) } else { Edit::set(&[REJECTED], json!(names)) };
    edit::apply(text, &[edit])
}
