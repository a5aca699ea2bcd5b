//! Qwen Code, which began as a copy of Gemini CLI.

use super::gemini;
use crate::config::expand::Reference;
use crate::config::interop::format::{ExportKeys, Format, ImportRules, SetupRules};

pub const FORMAT: Format = Format {
    name: "qwen",
    title: "Qwen Code",
    project_files: &[".qwen/settings.json"],
    user_files: |homes| vec![homes.folder("QWEN_HOME", ".qwen").join("settings.json")],
    expands: |reference, written| {
        matches!(reference, Reference::Variable { default: None, .. }) && !written.starts_with("${env:")
    },
    import: ImportRules { url_is_sse: true, ..Format::COMMON.import },
    export: ExportKeys { kinds: None, http_url: Some("httpUrl"), ..gemini::FORMAT.export },
    setup: SetupRules { tried_with: Some("qwen mcp list"), ..gemini::SETUP },
    ..gemini::FORMAT
};
