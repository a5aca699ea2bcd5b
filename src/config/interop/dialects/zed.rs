//! Zed. The permissions of its agent are not part of the entries.

use crate::config::interop::file::ForeignFile;
use crate::config::interop::format::{Disabled, ExportKeys, Format, ImportRules, OAuthKeys, Unit};
use crate::config::interop::incoming::Permissions;

pub const FORMAT: Format = Format {
    name: "zed",
    title: "Zed",
    section: "context_servers",
    has_comments: true,
    project_files: &[".zed/settings.json"],
    user_files: |homes| {
        vec![if cfg!(windows) {
            homes.desktop.join("Zed/settings.json")
        } else {
            homes.config.join("zed/settings.json")
        }]
    },
    read: |root| ForeignFile { permissions: Permissions::read(root), ..ForeignFile::of_section(root, FORMAT.section) },
    import: ImportRules { has_extensions: true, ..Format::COMMON.import },
    export: ExportKeys {
        always_args: true,
        oauth: OAuthKeys { client_id: Some("client_id"), ..OAuthKeys::NONE },
        disabled: Disabled::Key("enabled", false),
        timeout: Some(("timeout", Unit::Seconds)),
        ..ExportKeys::COMMON
    },
    ..Format::COMMON
};
