//! VS Code.

use serde_json::Value;

use crate::config::expand::Reference;
use crate::config::interop::file::ForeignFile;
use crate::config::interop::format::{ExportKeys, Format, OAuthKeys, TypeNames, Variable};
use crate::config::sections::SERVERS;

pub const FORMAT: Format = Format {
    name: "vscode",
    title: "VS Code",
    section: SERVERS,
    has_comments: true,
    project_files: &[".vscode/mcp.json"],
    loads_mcp_json: true,
    user_files: |homes| vec![homes.vscode().join("mcp.json")],
    other_files: |homes| vec![homes.vscode().join("settings.json")],
    read,
    expands: |reference, written| match reference {
        Reference::Keyring(_) | Reference::TooDeep(_) | Reference::Unknown(_) => false,
        Reference::Variable { default, .. } => written.starts_with("${env:") && default.is_none(),
        _ => true,
    },
    variable,
    export: ExportKeys {
        kinds: Some(TypeNames { stdio: Some("stdio"), http: "http", sse: "sse" }),
        unsets_env: true,
        env_file: Some("envFile"),
        cwd: Some("cwd"),
        oauth: OAuthKeys { client_id: Some("clientId"), ..OAuthKeys::NONE },
        dev: Some("dev"),
        inputs: true,
        ..ExportKeys::COMMON
    },
    ..Format::COMMON
};

/// Variables that depend on the open file, which we cannot expand.
const EDITOR_VARIABLES: &[&str] = &[
    "file",
    "fileBasename",
    "fileBasenameNoExtension",
    "fileDirname",
    "fileExtname",
    "fileWorkspaceFolder",
    "relativeFile",
    "relativeFileDirname",
    "lineNumber",
    "columnNumber",
    "selectedText",
    "execPath",
    "extensionInstallFolder",
    "defaultBuildTask",
];

/// Also for programs that are based on VS Code.
pub fn variable(name: &str, written: &str) -> Variable {
    match name {
        _ if written == "${workspaceRoot}" => Variable::Reference(Reference::WorkspaceFolder),
        _ if EDITOR_VARIABLES.contains(&name) && !written.starts_with("${env:") => Variable::OnlyThere,
        _ => Variable::Environment,
    }
}

/// Servers and inputs are also in the settings of the user, and in those of a development container.
fn read(root: &Value) -> ForeignFile {
    let mut found = ForeignFile::of_sections(root);
    let holders = [root.get("mcp"), root.pointer("/customizations/vscode/mcp")];
    for holder in holders.into_iter().flatten() {
        found.add(holder.get(SERVERS));
    }
    let holders = [Some(root)].into_iter().chain(holders).flatten();
    found.inputs = holders.filter_map(|holder| holder.get("inputs")?.as_array()).flatten().cloned().collect();
    found
}
