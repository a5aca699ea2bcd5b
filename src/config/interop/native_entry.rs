//! Writes a spec as an entry of our own files, without keys that have their default value.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::shape::MIN_AS_MILLISECONDS;
use crate::config::spec::{Launch, OAuth, Remote, ServerSpec};

pub fn entry(spec: &ServerSpec) -> Value {
    let mut entry = launch(&spec.launch);
    let mut put = |key: &str, value: Value| {
        entry.insert(key.to_owned(), value);
    };
    if !spec.enabled {
        put("enabled", json!(false));
    }
    if let Some(description) = &spec.description {
        put("description", json!(description));
    }
    if let Some(duration) = spec.startup_timeout {
        put("startupTimeout", timeout(duration));
    }
    if let Some(duration) = spec.timeout {
        put("timeout", timeout(duration));
    }
    if !spec.tools.is_empty() {
        // Only our own files have rules that depend on arguments, and those are never imported.
        let tools = spec.tools.iter().map(|rule| (rule.pattern.clone(), json!(rule.level.rest.as_str())));
        put("tools", Value::Object(tools.collect()));
    }
    if let Some(dev) = &spec.dev {
        put("dev", json!({ "watch": dev.watch }));
    }
    Value::Object(entry)
}

/// In seconds, or in milliseconds if the number would be read as milliseconds anyway.
fn timeout(duration: Duration) -> Value {
    if duration < MIN_AS_MILLISECONDS { seconds(duration) } else { json!(duration.as_millis()) }
}

/// Whole seconds as an integer.
pub fn seconds(duration: Duration) -> Value {
    if duration.subsec_nanos() == 0 { json!(duration.as_secs()) } else { json!(duration.as_secs_f64()) }
}

fn launch(launch: &Launch) -> Map<String, Value> {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| {
        entry.insert(key.to_owned(), value);
    };
    match launch {
        Launch::Stdio(stdio) => {
            put("command", json!(stdio.command));
            if !stdio.args.is_empty() {
                put("args", json!(stdio.args));
            }
            if !stdio.env.is_empty() {
                put("env", json!(stdio.env));
            }
            if let Some(file) = &stdio.env_file {
                put("envFile", json!(file));
            }
            if let Some(cwd) = &stdio.cwd {
                put("cwd", json!(cwd));
            }
            if stdio.inherit_env {
                put("inheritEnv", json!(true));
            }
        }
        Launch::Tcp { host, port } => {
            put("type", json!("tcp"));
            put("host", json!(host));
            put("port", json!(port));
        }
        Launch::Sdk { name } => {
            put("type", json!("sdk"));
            put("name", json!(name));
        }
        Launch::Http(remote) | Launch::Sse(remote) => {
            put("type", json!(launch.transport()));
            entry.extend(self::remote(remote));
        }
        Launch::ClaudeAiProxy { id, remote } => {
            put("type", json!("claudeai-proxy"));
            put("id", json!(id));
            entry.extend(self::remote(remote));
        }
    }
    entry
}

fn remote(remote: &Remote) -> Map<String, Value> {
    let mut entry = Map::from_iter([("url".to_owned(), json!(remote.url))]);
    if !remote.headers.is_empty() {
        entry.insert("headers".to_owned(), json!(remote.headers));
    }
    if let Some(OAuth { client_id, client_secret, scopes, callback_port }) = &remote.oauth {
        let mut oauth = Map::new();
        if let Some(id) = client_id {
            oauth.insert("clientId".to_owned(), json!(id));
        }
        if let Some(secret) = client_secret {
            oauth.insert("clientSecret".to_owned(), json!(secret));
        }
        if !scopes.is_empty() {
            oauth.insert("scopes".to_owned(), json!(scopes));
        }
        if let Some(port) = callback_port {
            oauth.insert("callbackPort".to_owned(), json!(port));
        }
        entry.insert("oauth".to_owned(), Value::Object(oauth));
    }
    entry
}
