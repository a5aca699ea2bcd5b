//! mcphub, a plugin of Neovim.

use serde_json::Value;

use crate::config::expand::Reference;
use crate::config::interop::file::ForeignFile;
use crate::config::interop::format::{Disabled, ExportKeys, Format, ImportRules};
use crate::config::sections::SERVERS;

pub const FORMAT: Format = Format {
    name: "mcphub",
    title: "mcphub",
    has_comments: true,
    project_files: &[".mcphub/servers.json"],
    user_files: |homes| vec![homes.config.join("mcphub/servers.json")],
    read,
    expands: |reference, _| match reference {
        Reference::Keyring(_) | Reference::TooDeep(_) | Reference::Unknown(_) => false,
        Reference::Variable { default, .. } => default.is_none(),
        _ => true,
    },
    import: ImportRules { own_env: true, ..Format::COMMON.import },
    export: ExportKeys {
        cwd: Some("cwd"),
        disabled: Disabled::Key("disabled", true),
        description: Some("description"),
        hidden_tools: Some("disabled_tools"),
        ..ExportKeys::COMMON
    },
    ..Format::COMMON
};

fn read(root: &Value) -> ForeignFile {
    let mut found = match root.get(SERVERS) {
        Some(_) => ForeignFile::of_section(root, SERVERS),
        None => ForeignFile::of_sections(root),
    };
    let native = root.get("nativeMCPServers").and_then(Value::as_object).into_iter().flatten();
    found.unreachable = native.map(|(name, _)| (name.clone(), "it is written in Lua and runs inside mcphub")).collect();
    found
}
