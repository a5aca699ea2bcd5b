//! `manifest.json` of a bundle as a definition.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::registry::Offer;
use crate::registry::convert::server_name;
use crate::registry::inputs::{About, Inputs};
use crate::text::{json_reason, one_line};

#[derive(Deserialize)]
struct Manifest {
    name: String,
    server: Server,
    #[serde(default)]
    user_config: BTreeMap<String, UserConfig>,
    #[serde(default)]
    compatibility: Compatibility,
}

#[derive(Deserialize)]
struct Server {
    r#type: String,
    entry_point: String,
    #[serde(default)]
    mcp_config: Option<Launch>,
}

#[derive(Default, Deserialize)]
struct Launch {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    platform_overrides: BTreeMap<String, Launch>,
}

#[derive(Deserialize)]
struct UserConfig {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    sensitive: bool,
    #[serde(default)]
    default: Value,
}

#[derive(Default, Deserialize)]
struct Compatibility {
    #[serde(default)]
    platforms: Option<Vec<String>>,
}

/// The platform as a manifest names it.
const PLATFORM: &str = if cfg!(windows) {
    "win32"
} else if cfg!(target_os = "macos") {
    "darwin"
} else {
    "linux"
};

/// `folder` is where the bundle will be, `has` says whether it contains a file.
pub fn offer(text: &str, folder: &Path, has: impl Fn(&str) -> bool) -> Result<Offer, String> {
    let manifest: Manifest =
        serde_json::from_str(text).map_err(|error| format!("its manifest.json: {}", json_reason(&error)))?;
    let Manifest { name, server, user_config, compatibility } = manifest;
    if compatibility.platforms.is_some_and(|platforms| !platforms.iter().any(|platform| platform == PLATFORM)) {
        return Err(format!("it does not support this system (`{PLATFORM}`)"));
    }
    let name = server_name(&name);
    let folder = folder.to_str().ok_or("the path of the folder for bundles is not UTF-8")?;
    let mut launch = server.mcp_config.unwrap_or_default();
    if let Some(other) = launch.platform_overrides.remove(PLATFORM) {
        launch.command = other.command.or(launch.command);
        launch.args = other.args.or(launch.args);
        launch.env.extend(other.env);
    }
    let entry = format!("${{__dirname}}/{}", server.entry_point);
    let (command, args) = match (launch.command, launch.args, server.r#type.as_str()) {
        (Some(command), args, _) => (command, args.unwrap_or_default()),
        (None, args, "node") => ("node".to_owned(), args.unwrap_or_else(|| vec![entry])),
        (None, args, "python") => ("python3".to_owned(), args.unwrap_or_else(|| vec![entry])),
        (None, args, "binary") => (entry, args.unwrap_or_default()),
        (None, _, other) => return Err(format!("servers of type `{}` are not supported", one_line(other, 30))),
    };
    // A path in the bundle, as manifests of programs write it.
    let command = if has(&command) { format!("${{__dirname}}/{command}") } else { command };
    let mut filler = Filler { folder, user_config: &user_config, inputs: Inputs::new(&name), unset: Vec::new() };
    let command = filler.fill(&command)?.ok_or("its command is a setting without a value")?;
    let mut filled = Vec::new();
    for arg in &args {
        filled.extend(filler.fill(arg)?);
    }
    let mut env = Map::new();
    for (name, value) in &launch.env {
        if let Some(value) = filler.fill(value)? {
            env.insert(name.clone(), json!(value));
        }
    }
    let mut config = json!({ "command": command, "args": filled, "cwd": folder });
    if let (false, Some(fields)) = (env.is_empty(), config.as_object_mut()) {
        fields.insert("env".to_owned(), Value::Object(env));
    }
    let notes = match filler.unset.as_slice() {
        [] => Vec::new(),
        unset => vec![format!("optional and not set: {}", unset.join(", "))],
    };
    Ok(Offer { name, config, inputs: filler.inputs.entries, notes })
}

struct Filler<'a> {
    folder: &'a str,
    user_config: &'a BTreeMap<String, UserConfig>,
    inputs: Inputs,
    unset: Vec<String>,
}

impl Filler<'_> {
    /// Replaces `${…}`; `None` if the text needs a setting that is optional and has no value.
    fn fill(&mut self, text: &str) -> Result<Option<String>, String> {
        if text.chars().any(char::is_control) {
            return Err(format!("`{}` contains a control character", one_line(text, 80)));
        }
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inner, behind)) = after.split_once('}') else { break };
            filled.push_str(before);
            match self.value(inner)? {
                Some(value) => filled.push_str(&value),
                None => return Ok(None),
            }
            rest = behind;
        }
        filled.push_str(rest);
        Ok(Some(filled))
    }

    fn value(&mut self, inner: &str) -> Result<Option<String>, String> {
        if let Some(key) = inner.strip_prefix("user_config.") {
            let Some(setting) = self.user_config.get(key) else {
                return Err(format!("it uses the setting `{}`, which it does not define", one_line(key, 60)));
            };
            let default = match &setting.default {
                Value::String(text) => Some(text.replace("${HOME}", "~")),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(flag) => Some(flag.to_string()),
                Value::Array(items) => items.first().and_then(Value::as_str).map(|text| text.replace("${HOME}", "~")),
                Value::Null | Value::Object(_) => None,
            };
            if !setting.required && default.is_none() {
                self.unset.push(one_line(key, 60));
                return Ok(None);
            }
            let description = setting.description.as_deref().or(setting.title.as_deref());
            let about = About { description, default: default.as_deref(), is_secret: setting.sensitive, choices: &[] };
            return Ok(Some(self.inputs.ask(key, &about)));
        }
        let home = |name: &str| Some(format!("${{userHome}}/{name}"));
        Ok(match inner {
            "__dirname" => Some(self.folder.to_owned()),
            "/" | "pathSeparator" => Some(std::path::MAIN_SEPARATOR.to_string()),
            "HOME" => Some("${userHome}".to_owned()),
            "DESKTOP" => home("Desktop"),
            "DOCUMENTS" => home("Documents"),
            "DOWNLOADS" => home("Downloads"),
            // It could name a secret of the user.
            other => return Err(format!("it uses `${{{}}}`, which a bundle cannot use", one_line(other, 60))),
        })
    }
}
