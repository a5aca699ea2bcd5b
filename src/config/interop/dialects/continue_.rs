//! Continue: the extensions and `cn`, which reads only the user's file.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use crate::config::expand::Reference;
use crate::config::interop::file::{ForeignFile, forget, rename};
use crate::config::interop::format::{ExportKeys, Format, FoundReferences, SetupRules, Syntax, TypeNames, Unit};

pub const FORMAT: Format = Format {
    name: "continue",
    title: "Continue",
    syntax: Syntax::Yaml { is_list: true },
    has_comments: true,
    preamble: "name: Local Config\nversion: 1.0.0\nschema: v1\n",
    project_files: &[".continue/mcpServers"],
    user_files: |homes| vec![homes.folder("CONTINUE_GLOBAL_DIR", ".continue").join("config.yaml")],
    other_files: |homes| vec![homes.folder("CONTINUE_GLOBAL_DIR", ".continue").join("mcpServers")],
    read,
    own_references,
    spelling: |reference| match reference {
        Reference::Variable { name, default: None } => Some(format!("${{{{ secrets.{name} }}}}")),
        _ => None,
    },
    export: ExportKeys {
        kinds: Some(TypeNames { stdio: None, http: "streamable-http", sse: "sse" }),
        cwd: Some("cwd"),
        headers_in: Some("requestOptions"),
        startup_timeout: Some(("connectionTimeout", Unit::Milliseconds)),
        required: |name, entry| {
            entry.insert("name".to_owned(), json!(name));
        },
        ..ExportKeys::COMMON
    },
    setup: SetupRules {
        prefers_user: true,
        note: Some("`cn` needs a model in the same file, and does not read the files of a project"),
        tried_with: Some("a run of `cn` (the extensions are untried)"),
        ..Format::COMMON.setup
    },
    ..Format::COMMON
};

/// The servers are a list, or an object in a file that was copied from another program.
fn read(root: &Value) -> ForeignFile {
    let mut found = ForeignFile::of_section(root, FORMAT.section);
    for (_, entry) in &mut found.servers {
        if let Some(headers) = entry.pointer_mut("/requestOptions/headers").map(Value::take) {
            entry["headers"] = headers;
            if entry["requestOptions"] == json!({ "headers": null }) {
                forget(entry, "requestOptions");
            }
        }
        rename(entry, "connectionTimeout", "startup_timeout_ms");
        forget(entry, "name");
    }
    found
}

/// `${{ secrets.NAME }}`, which `cn` and the extensions also look up in the environment. Others exist only there.
fn own_references(text: &str) -> FoundReferences {
    static WORD: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\$\{\{\s*(secrets\.([A-Za-z0-9_]+)|[^}]*)\s*\}\}").ok());
    let found = WORD.iter().flat_map(|pattern| pattern.captures_iter(text));
    let one = |found: regex::Captures<'_>| {
        let whole = found.get(0)?;
        let reference = match found.get(2) {
            Some(name) => Reference::Variable { name: name.as_str().to_owned(), default: None },
            None => Reference::Unknown(whole.as_str().to_owned()),
        };
        Some((whole.range(), reference))
    };
    found.filter_map(one).collect()
}
