//! Windsurf.

use crate::config::expand::Reference;
use crate::config::interop::format::{Disabled, ExportKeys, Format};

pub const FORMAT: Format = Format {
    name: "windsurf",
    title: "Windsurf",
    user_files: |homes| vec![homes.home.join(".codeium/windsurf/mcp_config.json")],
    expands: |reference, written| {
        written.starts_with("${env:") && matches!(reference, Reference::Variable { default: None, .. })
    },
    export: ExportKeys {
        url: "serverUrl",
        disabled: Disabled::Key("disabled", true),
        hidden_tools: Some("disabledTools"),
        ..ExportKeys::COMMON
    },
    ..Format::COMMON
};
