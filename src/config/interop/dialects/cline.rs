//! Cline: the extension and the command-line program, which have separate files.

use crate::config::interop::format::{Disabled, ExportKeys, Format, ImportRules, SetupRules, TypeNames, Unit};

pub const FORMAT: Format = Format {
    name: "cline",
    title: "Cline",
    user_files: |homes| {
        let storage = homes.vscode().join("globalStorage/saoudrizwan.claude-dev");
        [storage, homes.home.join(".cline/data")].map(|data| data.join("settings/cline_mcp_settings.json")).into()
    },
    other_files: |homes| vec![homes.home.join(".cline/mcp.json")],
    import: ImportRules { url_is_sse: true, ..Format::COMMON.import },
    export: ExportKeys {
        kinds: Some(TypeNames { stdio: None, http: "streamableHttp", sse: "sse" }),
        cwd: Some("cwd"),
        disabled: Disabled::Key("disabled", true),
        timeout: Some(("timeout", Unit::Seconds)),
        ..ExportKeys::COMMON
    },
    setup: SetupRules {
        every_user_file: true,
        tried_with: Some("a run of `cline` (the extension is untried)"),
        ..Format::COMMON.setup
    },
    ..Format::COMMON
};
