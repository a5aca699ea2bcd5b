//! opencode.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::config::expand::Reference;
use crate::config::interop::file::{ForeignFile, rename};
use crate::config::interop::format::{
    Disabled, ExportKeys, Format, FoundReferences, OAuthKeys, Scopes, SetupRules, TypeNames, Unit,
};

pub const FORMAT: Format = Format {
    name: "opencode",
    title: "opencode",
    section: "mcp",
    has_comments: true,
    project_files: &["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"],
    user_files: |homes| {
        let folder = homes.config.join("opencode");
        ["opencode.json", "opencode.jsonc"].map(|name| folder.join(name)).into()
    },
    read,
    own_references,
    spelling: |reference| match reference {
        Reference::Variable { name, default: None } => Some(format!("{{env:{name}}}")),
        Reference::UserHome => Some("{env:HOME}".to_owned()),
        _ => None,
    },
    export: ExportKeys {
        kinds: Some(TypeNames { stdio: Some("local"), http: "remote", sse: "remote" }),
        command_is_list: true,
        env: "environment",
        cwd: Some("cwd"),
        oauth: OAuthKeys {
            client_id: Some("clientId"),
            client_secret: Some("clientSecret"),
            callback_port: Some("callbackPort"),
            scopes: Scopes::Text("scope"),
            ..OAuthKeys::NONE
        },
        disabled: Disabled::Key("enabled", false),
        timeout: Some(("timeout", Unit::Milliseconds)),
        ..ExportKeys::COMMON
    },
    setup: SetupRules { tried_with: Some("opencode mcp list"), ..Format::COMMON.setup },
    ..Format::COMMON
};

fn read(root: &Value) -> ForeignFile {
    let mut found = ForeignFile::of_section(root, FORMAT.section);
    for (_, entry) in &mut found.servers {
        rename(entry, "environment", "env");
    }
    found
}

/// `{env:NAME}`, and `{file:path}`, which only opencode can expand.
fn own_references(text: &str) -> FoundReferences {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{(env|file):([^}]+)\}").ok());
    let found = WORD.iter().flat_map(|pattern| pattern.captures_iter(text));
    let one = |found: regex::Captures<'_>| {
        let whole = found.get(0)?;
        // `${env:NAME}` is not a reference there, but its end is.
        let name = found.get(2)?.as_str().to_owned();
        let reference = match found.get(1)?.as_str() {
            "env" => Reference::Variable { name, default: None },
            _ => Reference::Unknown(whole.as_str().to_owned()),
        };
        Some((whole.range(), reference))
    };
    found.filter_map(one).collect()
}
