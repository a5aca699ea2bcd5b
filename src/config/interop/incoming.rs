//! Converts one entry of a foreign file, with the meaning that it has in its own program.

mod approvals;
mod fields;
mod permissions;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use self::fields::{Fields, text_of};
pub use self::permissions::Permissions;
use super::Dialect;
use super::format::Unit;
use super::notes::Notes;
use super::references::{convert, variable};
use crate::config::expand::Reference;
use crate::config::shape::MIN_AS_MILLISECONDS;
use crate::config::spec::{Dev, Grant, Launch, OAuth, Remote, ServerSpec, Stdio, ToolRule};
use crate::model::Level;
use crate::text::one_line;

/// Converts the entry. An error is the reason why it cannot be imported.
pub fn read(dialect: Dialect, entry: &Map<String, Value>, notes: &mut Notes) -> Result<ServerSpec, String> {
    let mut fields = Fields::new(dialect, entry.clone(), notes);
    fields.flatten("transport");
    if let Some(Value::Object(mut command)) = fields.take_object("command") {
        // Older Zed files have the program in an object.
        if let Some(path) = command.remove("path") {
            command.insert("command".to_owned(), path);
        }
        fields.merge(command);
    }
    let launch = launch(&mut fields)?;
    let enabled = fields.flag("enabled").unwrap_or(true) && !fields.flag("disabled").unwrap_or(false);
    let (startup_timeout, timeout) = timeouts(&mut fields);
    let tools = tools(&mut fields);
    let dev = dev(&mut fields);
    let display = fields.plain_text("name");
    let description = fields.plain_text("description").or(display).map(|text| one_line(&text, 500));
    approvals::note_approvals(&mut fields);
    fields.note_unused();
    Ok(ServerSpec {
        launch,
        fallback: None,
        enabled,
        auto_start: true,
        description: description.filter(|text| !text.is_empty()),
        startup_timeout,
        timeout,
        idle_timeout: None,
        tools,
        dev,
    })
}

fn launch(fields: &mut Fields<'_>) -> Result<Launch, String> {
    let written = fields.plain_text("type").or_else(|| fields.plain_text("transport"));
    let written = written.or_else(|| fields.plain_text("transportType"));
    let (title, rules) = (fields.dialect.title(), &fields.dialect.format().import);
    let (has_command, has_url) =
        (fields.has("command"), ["url", "serverUrl", "httpUrl"].iter().any(|key| fields.has(key)));
    match written.as_deref() {
        Some("stdio" | "local") => stdio(fields),
        Some("http" | "streamable-http" | "streamableHttp" | "streamable_http" | "remote") => {
            Ok(Launch::Http(remote(fields)?))
        }
        Some("sse") => Ok(Launch::Sse(remote(fields)?)),
        Some("tcp") => tcp(fields),
        Some(other) => Err(format!("it is of type `{}`, which is not supported", one_line(other, 40))),
        None if has_command && has_url => Err("it has both `command` and `url`, but no `type`".to_owned()),
        None if has_command => stdio(fields),
        None if has_url && rules.url_is_sse && !fields.has("httpUrl") => Ok(Launch::Sse(remote(fields)?)),
        None if has_url => {
            if rules.requires_type {
                fields.notes.add(format!("{title} requires a `type` with `url`; `http` is assumed"));
            }
            Ok(Launch::Http(remote(fields)?))
        }
        None if fields.has("settings") || rules.has_extensions => {
            Err(format!("it is started by an extension of {title}; the entry has no command"))
        }
        None => Err("it has no `command` or `url`".to_owned()),
    }
}

fn tcp(fields: &mut Fields<'_>) -> Result<Launch, String> {
    let port = fields.take("port").and_then(|port| text_of(&port)?.parse().ok());
    let port = port.ok_or("its `port` is not a number between 0 and 65535")?;
    Ok(Launch::Tcp { host: fields.text("host")?.unwrap_or_else(|| "127.0.0.1".to_owned()), port })
}

fn stdio(fields: &mut Fields<'_>) -> Result<Launch, String> {
    let mut words = match fields.left.get("command") {
        Some(Value::Array(_)) => fields.texts("command")?,
        _ => fields.text("command")?.into_iter().collect(),
    }
    .into_iter();
    let command = words.next().filter(|word| !word.trim().is_empty()).ok_or("its `command` is empty")?;
    let env = environment(fields)?;
    let mut args: Vec<String> = words.collect();
    args.extend(fields.texts("args")?);
    if fields.dialect.format().import.own_env {
        for arg in &mut args {
            *arg = from_own_env(&dollar(arg), &env);
        }
    }
    let env_file = fields.text("envFile")?;
    let cwd = fields.text("cwd")?.filter(|cwd| !cwd.is_empty());
    if fields.flag("sandboxEnabled") == Some(true) {
        fields.notes.add("VS Code runs it in a sandbox; mcp-sidecar does not");
    }
    Ok(Launch::Stdio(Stdio { command, args, env, env_file, cwd, inherit_env: false, sandbox: None }))
}

fn environment(fields: &mut Fields<'_>) -> Result<BTreeMap<String, Option<String>>, String> {
    let mut env = BTreeMap::new();
    let inherits = fields.dialect.format().import.own_env;
    for (name, value) in fields.object("env").unwrap_or_default() {
        let value = match value {
            Value::Null if inherits => Some(variable(&name)),
            Value::String(text) if inherits && text.is_empty() => Some(variable(&name)),
            Value::String(text) if inherits && text.trim_start().starts_with("$:") => {
                return Err(format!("the value of `{name}` comes from a command, which is not supported"));
            }
            Value::Null => None,
            other => Some(fields.convert(&text_of(&other).ok_or(format!("`env.{name}` is not a string"))?)?),
        };
        env.insert(name, value);
    }
    // Codex lists the variables that it passes on from its own environment.
    for passed in fields.list("env_vars") {
        match &passed {
            Value::String(name) => {
                env.entry(name.clone()).or_insert_with(|| Some(variable(name)));
            }
            Value::Object(entry) => {
                let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                if entry.get("source").and_then(Value::as_str) == Some("remote") {
                    fields
                        .notes
                        .add(format!("`{name}` comes from the remote environment of Codex and is not imported"));
                } else if !name.is_empty() {
                    env.entry(name.clone()).or_insert_with(|| Some(variable(&name)));
                }
            }
            _ => {}
        }
    }
    Ok(env)
}

/// `$NAME` as a whole argument, as in older mcphub files.
fn dollar(arg: &str) -> String {
    let name = arg.strip_prefix('$').filter(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    name.map_or_else(|| arg.to_owned(), variable)
}

/// Expands variables from the entry's own `env`, as mcphub does. Elsewhere, `env` is only for the program.
fn from_own_env(text: &str, env: &BTreeMap<String, Option<String>>) -> String {
    let filled = convert(text, |reference, written| {
        Ok::<_, ()>(match &reference {
            Reference::Variable { name, .. } => env.get(name).cloned().flatten().unwrap_or_else(|| written.to_owned()),
            _ => written.to_owned(),
        })
    });
    filled.unwrap_or_default()
}

fn remote(fields: &mut Fields<'_>) -> Result<Remote, String> {
    let mut url = None;
    for key in ["url", "serverUrl", "httpUrl"] {
        url = url.or(fields.text(key)?);
    }
    let url = url.filter(|url| !url.is_empty()).ok_or("its `url` is empty")?;
    if let Some((scheme @ ("unix" | "pipe"), _)) = url.split_once("://") {
        return Err(format!("its URL starts with `{scheme}://`, which is not supported"));
    }
    let mut headers = BTreeMap::new();
    for key in ["headers", "http_headers"] {
        for (name, value) in fields.object(key).unwrap_or_default() {
            let text = text_of(&value).ok_or(format!("`{key}.{name}` is not a string"))?;
            headers.insert(name, fields.convert(&text)?);
        }
    }
    for (name, value) in fields.object("env_http_headers").unwrap_or_default() {
        if let Some(from) = value.as_str() {
            headers.insert(name, variable(from));
        }
    }
    if let Some(name) = fields.plain_text("bearer_token_env_var") {
        headers.insert("Authorization".to_owned(), format!("Bearer {}", variable(&name)));
    }
    if let Some(token) = fields.plain_text("bearer_token") {
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
    }
    if fields.dialect.format().import.own_env {
        let env = environment(fields)?;
        let filled = |text: &String| from_own_env(text, &env);
        return Ok(Remote {
            url: filled(&url),
            headers: headers.iter().map(|(name, text)| (name.clone(), filled(text))).collect(),
            oauth: oauth(fields),
        });
    }
    Ok(Remote { url, headers, oauth: oauth(fields) })
}

/// All OAuth keys of other programs that have an equivalent here.
const OAUTH: &[&str] = &[
    "clientId",
    "client_id",
    "CLIENT_ID",
    "clientSecret",
    "client_secret",
    "CLIENT_SECRET",
    "scopes",
    "scope",
    "enabled",
    "callbackPort",
    "callback_port",
    "grantType",
    "grant_type",
];

fn oauth(fields: &mut Fields<'_>) -> Option<OAuth> {
    let mut written = fields.object("oauth").unwrap_or_default();
    fields.note_unknown("oauth", &written, OAUTH);
    if let Some(scopes) = fields.take("scopes") {
        written.insert("scopes".to_owned(), scopes);
    }
    // Cursor's format.
    let auth = fields.object("auth").unwrap_or_default();
    fields.note_unknown("auth", &auth, OAUTH);
    for (key, value) in auth {
        let key = match key.as_str() {
            "CLIENT_ID" => "clientId".to_owned(),
            "CLIENT_SECRET" => "clientSecret".to_owned(),
            _ => key,
        };
        written.insert(key, value);
    }
    let secret = ["clientSecret", "client_secret"].iter().any(|key| written.contains_key(*key));
    if secret {
        fields.notes.add(
            "the OAuth client secret is not imported; save it with `mcp-sidecar secret set NAME` and refer to it with \
             \"clientSecret\": \"${keyring:NAME}\"",
        );
    }
    let text = |keys: [&str; 2]| keys.iter().find_map(|key| written.get(*key)).and_then(text_of);
    let scopes = match written.get("scopes").or_else(|| written.get("scope")) {
        Some(Value::String(scopes)) => scopes.split_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(scopes)) => scopes.iter().filter_map(text_of).collect(),
        _ => Vec::new(),
    };
    let port = text(["callbackPort", "callback_port"]).and_then(|port| port.parse().ok()).filter(|port| *port > 0);
    let grant = text(["grantType", "grant_type"]).and_then(|name| Grant::named(&name)).unwrap_or_default();
    let client_id = text(["clientId", "client_id"]);
    let oauth = OAuth { client_id, client_secret: None, private_key: None, scopes, callback_port: port, grant };
    (oauth != OAuth::default()).then_some(oauth)
}

fn timeouts(fields: &mut Fields<'_>) -> (Option<Duration>, Option<Duration>) {
    let milliseconds = |number: f64| number / 1000.0;
    let unit = fields.dialect.format().export.timeout.filter(|(key, _)| *key == "timeout").map(|(_, unit)| unit);
    let plain = move |number: f64| match unit {
        Some(Unit::Milliseconds) => milliseconds(number),
        Some(Unit::Seconds) => number,
        _ if number >= MIN_AS_MILLISECONDS.as_secs_f64() => milliseconds(number),
        _ => number,
    };
    let mut read = |key: &str, unit: &dyn Fn(f64) -> f64| {
        let number = fields.left.get(key)?.as_f64()?;
        let duration = Duration::try_from_secs_f64(unit(number)).ok().filter(|duration| !duration.is_zero())?;
        fields.take(key);
        // One day is the maximum in our own files.
        Some(duration.min(Duration::from_secs(24 * 60 * 60)))
    };
    let startup = read("startup_timeout_sec", &|number| number);
    let startup = read("startup_timeout_ms", &milliseconds).or(startup);
    let timeout = read("timeout", &plain);
    let timeout = read("request_timeout_ms", &milliseconds).or(timeout);
    (startup, read("tool_timeout_sec", &|number| number).or(timeout))
}

/// Imports lists that restrict tools as levels. Lists that grant permissions are never imported.
fn tools(fields: &mut Fields<'_>) -> Vec<ToolRule> {
    let mut rules: Vec<ToolRule> = Vec::new();
    let mut add = |pattern: String, level: Level| {
        if !pattern.is_empty() && !rules.iter().any(|rule| rule.pattern == pattern) {
            rules.push(ToolRule { pattern, level: level.into() });
        }
    };
    for key in ["disabled_tools", "disabledTools", "excludeTools"] {
        fields.list(key).iter().filter_map(text_of).for_each(|name| add(name, Level::Disable));
    }
    for key in ["enabled_tools", "includeTools", "tools"] {
        if !fields.left.get(key).is_some_and(Value::is_array) {
            continue;
        }
        let names: Vec<String> = fields.list(key).iter().filter_map(text_of).collect();
        if !names.iter().any(|name| name == "*") {
            names.into_iter().for_each(|name| add(name, Level::RequireApproval));
            add("*".to_owned(), Level::Disable);
        }
    }
    rules
}

fn dev(fields: &mut Fields<'_>) -> Option<Dev> {
    let dev = fields.object("dev")?;
    if dev.contains_key("cwd") || fields.dialect.format().export.dev.is_none() {
        fields.notes.add("`dev` is not imported: its globs are relative to another folder");
        return None;
    }
    fields.note_unknown("dev", &dev, &["watch"]);
    let watch = match dev.get("watch")? {
        Value::String(glob) => vec![glob.clone()],
        Value::Array(globs) => globs.iter().filter_map(text_of).collect(),
        _ => return None,
    };
    Some(Dev { watch })
}
