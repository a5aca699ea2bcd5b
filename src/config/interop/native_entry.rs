//! Writes a spec as an entry of our own files, without keys that have their default value.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::shape::MIN_AS_MILLISECONDS;
use crate::config::spec::{Dev, Grant, Launch, OAuth, Remote, ServerSpec, Stdio};

pub fn entry(spec: &ServerSpec) -> Value {
    #[rustfmt::skip]
    let ServerSpec {
        launch, enabled, description, startup_timeout, timeout, tools, dev,
        // No other program has an equivalent, so they are never imported.
        fallback: _, auto_start: _, idle_timeout: _,
    } = spec;
    let mut entry = self::launch(launch);
    let mut put = |key: &str, value: Value| {
        entry.insert(key.to_owned(), value);
    };
    if !enabled {
        put("enabled", json!(false));
    }
    if let Some(description) = description {
        put("description", json!(description));
    }
    if let Some(duration) = startup_timeout {
        put("startupTimeout", limit(*duration));
    }
    if let Some(duration) = timeout {
        put("timeout", limit(*duration));
    }
    if !tools.is_empty() {
        // Only our own files have rules that depend on arguments, and those are never imported.
        let tools = tools.iter().map(|rule| (rule.pattern.clone(), json!(rule.level.rest.as_str())));
        put("tools", Value::Object(tools.collect()));
    }
    if let Some(Dev { watch }) = dev {
        put("dev", json!({ "watch": watch }));
    }
    Value::Object(entry)
}

/// In seconds, or in milliseconds if the number would be read as milliseconds anyway.
pub fn limit(duration: Duration) -> Value {
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
        // Never imported: no other program has a `sandbox` like this.
        Launch::Stdio(Stdio { command, args, env, env_file, cwd, inherit_env, sandbox: _ }) => {
            put("command", json!(command));
            if !args.is_empty() {
                put("args", json!(args));
            }
            if !env.is_empty() {
                put("env", json!(env));
            }
            if let Some(file) = env_file {
                put("envFile", json!(file));
            }
            if let Some(cwd) = cwd {
                put("cwd", json!(cwd));
            }
            if *inherit_env {
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

fn remote(Remote { url, headers, oauth }: &Remote) -> Map<String, Value> {
    let mut entry = Map::from_iter([("url".to_owned(), json!(url))]);
    if !headers.is_empty() {
        entry.insert("headers".to_owned(), json!(headers));
    }
    if let Some(OAuth { client_id, client_secret, private_key, scopes, callback_port, grant }) = oauth {
        let mut oauth = Map::new();
        if let Some(id) = client_id {
            oauth.insert("clientId".to_owned(), json!(id));
        }
        if let Some(secret) = client_secret {
            oauth.insert("clientSecret".to_owned(), json!(secret));
        }
        if let Some(key) = private_key {
            oauth.insert("privateKey".to_owned(), json!(key));
        }
        if !scopes.is_empty() {
            oauth.insert("scopes".to_owned(), json!(scopes));
        }
        if let Some(port) = callback_port {
            oauth.insert("callbackPort".to_owned(), json!(port));
        }
        if *grant != Grant::default() {
            oauth.insert("grantType".to_owned(), json!(grant.name()));
        }
        entry.insert("oauth".to_owned(), Value::Object(oauth));
    }
    entry
}
