//! Converts a server to an entry of a foreign file. Notes list everything that the file format does not support.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Dialect;
use super::format::{Disabled, ExportKeys, RemoteSupport, Scopes, Unit};
use super::native_entry::seconds;
use super::notes::Notes;
use super::references::{to_theirs, variable};
use crate::config::spec::{Dev, Grant, Launch, OAuth, Remote, ServerSpec, Stdio, ToolRule};
use crate::model::Level;

/// Converts the server. An error is the reason why it cannot be exported.
pub fn write(dialect: Dialect, name: &str, spec: &ServerSpec, notes: &mut Notes) -> Result<Map<String, Value>, String> {
    #[rustfmt::skip]
    let ServerSpec {
        launch, fallback, enabled, auto_start, description, startup_timeout, timeout, idle_timeout, tools, dev,
    } = spec;
    let (title, keys) = (dialect.title(), &dialect.format().export);
    let mut writer = Writer { dialect, keys, entry: Map::new(), left_out: Vec::new(), notes };
    match launch {
        Launch::Stdio(stdio) => writer.stdio(stdio),
        Launch::Http(_) | Launch::Sse(_) if keys.remote == RemoteSupport::None => {
            return Err(format!("{title} only supports servers that it starts itself"));
        }
        Launch::Sse(_) if keys.remote == RemoteSupport::Http => return Err(format!("{title} does not support `sse`")),
        Launch::Http(remote) => {
            writer.remote(remote, keys.kinds.as_ref().map(|kinds| kinds.http), keys.http_url.unwrap_or(keys.url));
        }
        Launch::Sse(remote) => {
            let is_marked = keys.kinds.as_ref().is_some_and(|kinds| kinds.sse != kinds.http);
            if !is_marked && keys.http_url.is_none() {
                writer.notes.add(format!("{title} detects `sse` automatically"));
            }
            writer.remote(remote, keys.kinds.as_ref().map(|kinds| kinds.sse), keys.url);
        }
        Launch::Tcp { .. } | Launch::Sdk { .. } | Launch::ClaudeAiProxy { .. } => {
            return Err(format!("{title} does not support servers of type `{}`", launch.transport()));
        }
    }
    match keys.disabled {
        _ if *enabled => {}
        Disabled::Key(key, value) => writer.put(key, value),
        // The names of disabled servers are not part of the entries.
        Disabled::List(_) => {}
        Disabled::Nowhere => {
            return Err(format!("it is disabled, and {title} does not support disabled servers in this file"));
        }
    }
    writer.duration(keys.startup_timeout, "startupTimeout", *startup_timeout);
    writer.duration(keys.timeout, "timeout", *timeout);
    writer.tools(tools);
    writer.optional(keys.description, "description", description.as_ref().map(|text| json!(text)));
    writer.optional(keys.dev, "dev", dev.as_ref().map(|Dev { watch }| json!({ "watch": watch })));
    writer.optional(None, "autoStart", (!auto_start).then_some(Value::Null));
    writer.optional(None, "idleTimeout", idle_timeout.map(|_| Value::Null));
    writer.optional(None, "fallback", fallback.as_ref().map(|_| Value::Null));
    let Writer { mut entry, left_out, notes, .. } = writer;
    (keys.required)(name, &mut entry);
    notes.add_list(&format!("not exported (not supported by {title})"), &left_out);
    Ok(entry)
}

struct Writer<'a> {
    dialect: Dialect,
    keys: &'static ExportKeys,
    entry: Map<String, Value>,
    left_out: Vec<String>,
    notes: &'a mut Notes,
}

impl Writer<'_> {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.entry.insert(key.to_owned(), value.into());
    }

    fn leave_out(&mut self, ours: &str) {
        self.left_out.push(format!("`{ours}`"));
    }

    /// Writes a value under the program's key, if it has one.
    fn optional(&mut self, key: Option<&str>, ours: &str, value: Option<Value>) {
        match (key, value) {
            (_, None) => {}
            (Some(key), Some(value)) => self.put(key, value),
            (None, Some(_)) => self.leave_out(ours),
        }
    }

    fn duration(&mut self, key: Option<(&str, Unit)>, ours: &str, value: Option<Duration>) {
        let in_unit = |duration: Duration| match key {
            Some((_, Unit::Milliseconds)) => json!(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            _ => seconds(duration),
        };
        self.optional(key.map(|(key, _)| key), ours, value.map(in_unit));
    }

    fn convert(&mut self, text: &str) -> String {
        to_theirs(self.dialect, text, self.notes)
    }

    /// The same for a value that can be left out. Nothing is converted then, so no note is added.
    fn optional_text(&mut self, key: Option<&str>, ours: &str, text: Option<&String>) {
        let value = text.map(|text| if key.is_some() { self.convert(text).into() } else { Value::Null });
        self.optional(key, ours, value);
    }

    fn stdio(&mut self, stdio: &Stdio) {
        let Stdio { command, args, env, env_file, cwd, inherit_env, sandbox } = stdio;
        if let Some(kind) = self.keys.kinds.as_ref().and_then(|kinds| kinds.stdio) {
            self.put("type", kind);
        }
        let command = self.convert(command);
        let args: Vec<String> = args.iter().map(|arg| self.convert(arg)).collect();
        if self.keys.command_is_list {
            self.put(self.keys.command, [vec![command], args].concat());
        } else {
            self.put(self.keys.command, command);
            if !args.is_empty() || self.keys.always_args {
                self.put("args", args);
            }
        }
        self.environment(env);
        self.optional_text(self.keys.env_file, "envFile", env_file.as_ref());
        self.optional_text(self.keys.cwd, "cwd", cwd.as_ref());
        self.optional(None, "inheritEnv", inherit_env.then_some(Value::Null));
        self.optional(None, "sandbox", sandbox.as_ref().map(|_| Value::Null));
    }

    fn environment(&mut self, env: &BTreeMap<String, Option<String>>) {
        let mut written = Map::new();
        let mut passed = Vec::new();
        for (name, value) in env {
            match value {
                Some(text) if self.keys.by_name.is_some() && *text == variable(name) => passed.push(name.clone()),
                Some(text) => {
                    written.insert(name.clone(), self.convert(text).into());
                }
                None if self.keys.unsets_env => {
                    written.insert(name.clone(), Value::Null);
                }
                None => self.leave_out(&format!("env.{name}: null")),
            }
        }
        if !written.is_empty() {
            self.put(self.keys.env, written);
        }
        if let Some(by_name) = self.keys.by_name.filter(|_| !passed.is_empty()) {
            self.put(by_name.env, passed);
        }
    }

    fn remote(&mut self, remote: &Remote, kind: Option<&str>, url_key: &str) {
        let Remote { url, headers: own_headers, oauth } = remote;
        let url = self.convert(url);
        if let Some(kind) = kind {
            self.put("type", kind);
        }
        self.put(url_key, url);
        let by_name = self.keys.by_name.and_then(|by_name| by_name.headers);
        let mut headers = Map::new();
        let mut from_variables = Map::new();
        for (name, text) in own_headers {
            if let Some(by_name) = by_name {
                if let Some(token) = text.strip_prefix("Bearer ").and_then(one_variable)
                    && name.eq_ignore_ascii_case("authorization")
                {
                    self.put(by_name.bearer, token);
                    continue;
                }
                if let Some(from) = one_variable(text) {
                    from_variables.insert(name.clone(), from.into());
                    continue;
                }
            }
            headers.insert(name.clone(), self.convert(text).into());
        }
        match self.keys.headers_in {
            _ if headers.is_empty() => {}
            Some(holder) => self.put(holder, json!({ self.keys.headers: headers })),
            None => self.put(self.keys.headers, headers),
        }
        if let Some(by_name) = by_name.filter(|_| !from_variables.is_empty()) {
            self.put(by_name.headers, from_variables);
        }
        if let Some(oauth) = oauth {
            self.oauth(oauth);
        }
    }

    fn oauth(&mut self, oauth: &OAuth) {
        let OAuth { client_id, client_secret, private_key, scopes, callback_port, grant } = oauth;
        let keys = &self.keys.oauth;
        let secret = client_secret.as_deref().map(|secret| self.convert(secret));
        let (scopes_key, scopes) = match keys.scopes {
            _ if scopes.is_empty() => (None, None),
            Scopes::None => (None, Some(Value::Null)),
            Scopes::List => (Some("scopes"), Some(json!(scopes))),
            Scopes::Text(key) => (Some(key), Some(json!(scopes.join(" ")))),
            Scopes::InEntry => {
                self.put("scopes", scopes.clone());
                (None, None)
            }
        };
        let mut written = Map::new();
        let values = [
            (keys.client_id, "clientId", client_id.as_ref().map(|id| json!(id))),
            (keys.client_secret, "clientSecret", secret.map(Value::from)),
            (keys.callback_port, "callbackPort", callback_port.map(Value::from)),
            (scopes_key, "scopes", scopes),
            // None of the other programs has a key for these.
            (None, "privateKey", private_key.as_ref().map(|_| Value::Null)),
            (None, "grantType", (*grant != Grant::default()).then_some(Value::Null)),
        ];
        for (key, ours, value) in values {
            match (key, value) {
                (_, None) => {}
                (Some(key), Some(value)) => {
                    written.insert(key.to_owned(), value);
                }
                (None, Some(_)) => self.leave_out(&format!("oauth.{ours}")),
            }
        }
        if !written.is_empty() {
            self.put(keys.holder, written);
        }
    }

    /// Hidden tools stay hidden if the format supports it. Other levels have no equivalent.
    fn tools(&mut self, tools: &[ToolRule]) {
        let plain = |level: Level| {
            let rules = tools.iter().filter(move |rule| rule.level.cases.is_empty() && rule.level.rest == level);
            rules.map(|rule| rule.pattern.clone())
        };
        let exact = |name: &String| !name.contains(['*', '?', '[', '{']);
        if self.keys.hidden_tools.is_none() && self.keys.shown_tools.is_none() {
            return self.optional(None, "tools", (!tools.is_empty()).then_some(Value::Null));
        }
        let hidden = self.keys.hidden_tools.iter().flat_map(|_| plain(Level::Disable).filter(exact));
        let hidden: Vec<String> = hidden.collect();
        let only = self.keys.shown_tools.filter(|_| plain(Level::Disable).any(|name| name == "*"));
        let shown: Vec<String> = only.iter().flat_map(|_| plain(Level::RequireApproval).filter(exact)).collect();
        if hidden.len() + shown.len() + usize::from(only.is_some()) < tools.len() {
            self.leave_out("tools (all levels except disable)");
        }
        if let Some(only) = only {
            self.put(only, shown);
        }
        if let Some(key) = self.keys.hidden_tools.filter(|_| !hidden.is_empty()) {
            self.put(key, hidden);
        }
    }
}

/// The name of the variable, if the text is a single reference to a variable.
fn one_variable(text: &str) -> Option<String> {
    use crate::config::expand::{Piece, Reference, pieces};
    match pieces(text).as_slice() {
        [Piece::Reference { reference: Reference::Variable { name, default: None }, .. }] => Some(name.clone()),
        _ => None,
    }
}
