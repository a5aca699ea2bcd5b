//! goose, whose servers are called extensions. It expands nothing, but passes on variables by name.

use serde_json::{Value, json};

use crate::config::interop::file::{ForeignFile, forget, rename};
use crate::config::interop::format::{ByName, Disabled, ExportKeys, Format, RemoteSupport, Syntax, TypeNames, Unit};

pub const FORMAT: Format = Format {
    name: "goose",
    title: "goose",
    section: "extensions",
    syntax: Syntax::Yaml { is_list: false },
    has_comments: true,
    user_files: |homes| {
        vec![if cfg!(windows) {
            homes.desktop.join("Block/goose/config/config.yaml")
        } else {
            homes.config.join("goose/config.yaml")
        }]
    },
    read,
    export: ExportKeys {
        remote: RemoteSupport::Http,
        kinds: Some(TypeNames { stdio: Some("stdio"), http: "streamable_http", sse: "sse" }),
        command: "cmd",
        always_args: true,
        env: "envs",
        by_name: Some(ByName { env: "env_keys", headers: None }),
        url: "uri",
        disabled: Disabled::Key("enabled", false),
        timeout: Some(("timeout", Unit::Seconds)),
        description: Some("description"),
        shown_tools: Some("available_tools"),
        required: |name, entry| {
            entry.insert("name".to_owned(), json!(name));
            entry.entry("description").or_insert_with(|| json!(""));
            entry.entry("enabled").or_insert(json!(true));
        },
        ..ExportKeys::COMMON
    },
    ..Format::COMMON
};

fn read(root: &Value) -> ForeignFile {
    let mut found = ForeignFile::default();
    for (name, mut entry) in ForeignFile::of_section(root, FORMAT.section).servers {
        let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
        if ["builtin", "platform", "frontend", "inline_python"].contains(&kind) {
            found.unreachable.push((name, "it is built into goose"));
            continue;
        }
        for (theirs, ours) in [("cmd", "command"), ("envs", "env"), ("env_keys", "env_vars"), ("uri", "url")] {
            rename(&mut entry, theirs, ours);
        }
        if entry.get("available_tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) {
            rename(&mut entry, "available_tools", "enabled_tools");
        }
        for key in ["name", "bundled", "available_tools"] {
            forget(&mut entry, key);
        }
        found.servers.push((name, entry));
    }
    found
}
