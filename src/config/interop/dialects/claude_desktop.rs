//! Claude Desktop.

use crate::config::interop::format::{ExportKeys, Format, RemoteSupport};

pub const FORMAT: Format = Format {
    name: "claude-desktop",
    title: "Claude Desktop",
    user_files: |homes| vec![homes.desktop.join("Claude/claude_desktop_config.json")],
    export: ExportKeys { remote: RemoteSupport::None, ..ExportKeys::COMMON },
    ..Format::COMMON
};
