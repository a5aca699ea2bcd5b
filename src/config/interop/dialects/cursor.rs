//! Cursor.

use super::vscode;
use crate::config::expand::Reference;
use crate::config::interop::format::{ExportKeys, Format, OAuthKeys, Scopes};

pub const FORMAT: Format = Format {
    name: "cursor",
    title: "Cursor",
    project_files: &[".cursor/mcp.json"],
    user_files: |homes| vec![homes.home.join(".cursor/mcp.json")],
    expands: |reference, written| match reference {
        Reference::Input(_) | Reference::Cwd => false,
        _ => (vscode::FORMAT.expands)(reference, written),
    },
    variable: vscode::variable,
    spelling: |reference| (*reference == Reference::Cwd).then(|| "${workspaceFolder}".to_owned()),
    export: ExportKeys {
        env_file: Some("envFile"),
        oauth: OAuthKeys {
            holder: "auth",
            client_id: Some("CLIENT_ID"),
            client_secret: Some("CLIENT_SECRET"),
            scopes: Scopes::List,
            ..OAuthKeys::NONE
        },
        ..ExportKeys::COMMON
    },
    ..Format::COMMON
};
