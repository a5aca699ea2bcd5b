//! Converts a server to an entry of a foreign file. Notes list everything that the file format does not support.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Dialect;
use super::native_entry::seconds;
use super::notes::Notes;
use super::references::{to_theirs, variable};
use crate::config::spec::{Launch, OAuth, Remote, ServerSpec, Stdio};
use crate::model::Level;

/// Converts the server. An error is the reason why it cannot be exported.
pub fn write(dialect: Dialect, spec: &ServerSpec, notes: &mut Notes) -> Result<Map<String, Value>, String> {
    let mut writer = Writer { dialect, entry: Map::new(), left_out: Vec::new(), notes };
    match &spec.launch {
        Launch::Stdio(stdio) => writer.stdio(stdio),
        Launch::Http(_) | Launch::Sse(_) if dialect == Dialect::ClaudeDesktop => {
            return Err("Claude Desktop only supports servers that it starts itself".to_owned());
        }
        Launch::Sse(_) if dialect == Dialect::Codex => {
            return Err("Codex does not support `sse`".to_owned());
        }
        Launch::Http(remote) => writer.remote(remote, "http"),
        Launch::Sse(remote) => writer.remote(remote, "sse"),
        Launch::Tcp { .. } | Launch::Sdk { .. } | Launch::ClaudeAiProxy { .. } => {
            return Err(format!("{} does not support servers of type `{}`", dialect.title(), spec.launch.transport()));
        }
    }
    writer.rest(spec);
    let Writer { entry, left_out, notes, .. } = writer;
    notes.add_list(&format!("not exported (not supported by {})", dialect.title()), &left_out);
    Ok(entry)
}

struct Writer<'a> {
    dialect: Dialect,
    entry: Map<String, Value>,
    left_out: Vec<String>,
    notes: &'a mut Notes,
}

impl Writer<'_> {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.entry.insert(key.to_owned(), value.into());
    }

    fn leave_out(&mut self, key: &str) {
        self.left_out.push(format!("`{key}`"));
    }

    fn convert(&mut self, text: &str) -> String {
        to_theirs(self.dialect, text, self.notes)
    }

    fn stdio(&mut self, stdio: &Stdio) {
        use Dialect::{Claude, Cline, Codex, Cursor, McpHub, VsCode, Zed};
        if matches!(self.dialect, VsCode | Claude) {
            self.put("type", "stdio");
        }
        let command = self.convert(&stdio.command);
        self.put("command", command);
        let args: Vec<String> = stdio.args.iter().map(|arg| self.convert(arg)).collect();
        if !args.is_empty() || self.dialect == Zed {
            self.put("args", args);
        }
        self.environment(&stdio.env);
        match &stdio.env_file {
            Some(file) if matches!(self.dialect, VsCode | Cursor) => {
                let file = self.convert(file);
                self.put("envFile", file);
            }
            Some(_) => self.leave_out("envFile"),
            None => {}
        }
        match &stdio.cwd {
            Some(cwd) if matches!(self.dialect, VsCode | McpHub | Codex | Cline) => {
                let cwd = self.convert(cwd);
                self.put("cwd", cwd);
            }
            Some(_) => self.leave_out("cwd"),
            None => {}
        }
        if stdio.inherit_env {
            self.leave_out("inheritEnv");
        }
    }

    fn environment(&mut self, env: &BTreeMap<String, Option<String>>) {
        let mut written = Map::new();
        let mut passed = Vec::new();
        for (name, value) in env {
            match value {
                // Codex expands nothing, but passes on variables.
                Some(text) if self.dialect == Dialect::Codex && *text == variable(name) => passed.push(name.clone()),
                Some(text) => {
                    written.insert(name.clone(), self.convert(text).into());
                }
                None if self.dialect == Dialect::VsCode => {
                    written.insert(name.clone(), Value::Null);
                }
                None => self.leave_out(&format!("env.{name}: null")),
            }
        }
        if !written.is_empty() {
            self.put("env", written);
        }
        if !passed.is_empty() {
            self.put("env_vars", passed);
        }
    }

    fn remote(&mut self, remote: &Remote, kind: &str) {
        let url = self.convert(&remote.url);
        match self.dialect {
            Dialect::Cline => self.put("type", if kind == "http" { "streamableHttp" } else { kind }),
            Dialect::VsCode | Dialect::Claude => self.put("type", kind),
            _ if kind == "sse" => self.notes.add(format!("{} detects `sse` automatically", self.dialect.title())),
            _ => {}
        }
        self.put(if self.dialect == Dialect::Windsurf { "serverUrl" } else { "url" }, url);
        let mut headers = Map::new();
        let mut from_variables = Map::new();
        for (name, text) in &remote.headers {
            if self.dialect == Dialect::Codex {
                if let Some(token) = text.strip_prefix("Bearer ").and_then(one_variable)
                    && name.eq_ignore_ascii_case("authorization")
                {
                    self.put("bearer_token_env_var", token);
                    continue;
                }
                if let Some(from) = one_variable(text) {
                    from_variables.insert(name.clone(), from.into());
                    continue;
                }
            }
            headers.insert(name.clone(), self.convert(text).into());
        }
        if !headers.is_empty() {
            self.put(if self.dialect == Dialect::Codex { "http_headers" } else { "headers" }, headers);
        }
        if !from_variables.is_empty() {
            self.put("env_http_headers", from_variables);
        }
        if let Some(oauth) = &remote.oauth {
            self.oauth(oauth);
        }
    }

    fn oauth(&mut self, oauth: &OAuth) {
        let OAuth { client_id, client_secret, scopes, callback_port } = oauth;
        let mut written = Map::new();
        let (id_key, port_key, scopes_key) = match self.dialect {
            Dialect::VsCode => (Some("clientId"), None, None),
            Dialect::Claude => (Some("clientId"), Some("callbackPort"), Some("scopes")),
            Dialect::Cursor => (Some("CLIENT_ID"), None, Some("scopes")),
            Dialect::Zed => (Some("client_id"), None, None),
            Dialect::Codex => (Some("client_id"), Some("callback_port"), None),
            _ => (None, None, None),
        };
        let secret = client_secret.as_deref().map(|secret| self.convert(secret));
        let mut put = |key: Option<&str>, ours: &str, value: Value, left_out: &mut Vec<String>| match key {
            Some(key) => {
                written.insert(key.to_owned(), value);
            }
            None => left_out.push(format!("`oauth.{ours}`")),
        };
        if let Some(id) = client_id {
            put(id_key, "clientId", json!(id), &mut self.left_out);
        }
        if let Some(secret) = secret {
            let key = (self.dialect == Dialect::Cursor).then_some("CLIENT_SECRET");
            put(key, "clientSecret", json!(secret), &mut self.left_out);
        }
        if let Some(port) = callback_port {
            put(port_key, "callbackPort", json!(port), &mut self.left_out);
        }
        if !scopes.is_empty() {
            match self.dialect {
                Dialect::Codex => {
                    self.entry.insert("scopes".to_owned(), json!(scopes));
                }
                Dialect::Claude => put(scopes_key, "scopes", json!(scopes.join(" ")), &mut self.left_out),
                _ => put(scopes_key, "scopes", json!(scopes), &mut self.left_out),
            }
        }
        if !written.is_empty() {
            self.put(if self.dialect == Dialect::Cursor { "auth" } else { "oauth" }, written);
        }
    }

    /// Writes everything except the launch.
    fn rest(&mut self, spec: &ServerSpec) {
        use Dialect::{Claude, Cline, Codex, McpHub, VsCode, Windsurf, Zed};
        match self.dialect {
            _ if spec.enabled => {}
            Cline | McpHub | Windsurf => self.put("disabled", true),
            Zed | Codex => self.put("enabled", false),
            _ => self.leave_out("enabled: false"),
        }
        match (spec.startup_timeout, self.dialect) {
            (None, _) => {}
            (Some(duration), Codex) => self.put("startup_timeout_sec", seconds(duration)),
            _ => self.leave_out("startupTimeout"),
        }
        match (spec.timeout, self.dialect) {
            (None, _) => {}
            (Some(duration), Claude) => self.put("timeout", u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            (Some(duration), Zed | Cline) => self.put("timeout", seconds(duration)),
            (Some(duration), Codex) => self.put("tool_timeout_sec", seconds(duration)),
            _ => self.leave_out("timeout"),
        }
        self.tools(spec);
        match (&spec.description, self.dialect) {
            (None, _) => {}
            (Some(text), McpHub) => self.put("description", text.clone()),
            _ => self.leave_out("description"),
        }
        match (&spec.dev, self.dialect) {
            (None, _) => {}
            (Some(dev), VsCode) => self.put("dev", json!({ "watch": dev.watch })),
            _ => self.leave_out("dev"),
        }
        if !spec.auto_start {
            self.leave_out("autoStart");
        }
        if spec.fallback.is_some() {
            self.leave_out("fallback");
        }
    }

    /// Hidden tools stay hidden if the format supports it. Other levels have no equivalent.
    fn tools(&mut self, spec: &ServerSpec) {
        let plain = |level: Level| {
            let rules = spec.tools.iter().filter(move |rule| rule.level.cases.is_empty() && rule.level.rest == level);
            rules.map(|rule| rule.pattern.clone())
        };
        let exact = |name: &String| !name.contains(['*', '?', '[', '{']);
        let key = match self.dialect {
            Dialect::McpHub | Dialect::Codex => "disabled_tools",
            Dialect::Windsurf => "disabledTools",
            _ if spec.tools.is_empty() => return,
            _ => return self.leave_out("tools"),
        };
        let hidden: Vec<String> = plain(Level::Disable).filter(exact).collect();
        let only = self.dialect == Dialect::Codex && plain(Level::Disable).any(|name| name == "*");
        let shown: Vec<String> = if only { plain(Level::RequireApproval).filter(exact).collect() } else { Vec::new() };
        if hidden.len() + shown.len() + usize::from(only) < spec.tools.len() {
            self.leave_out("tools (all levels except disable)");
        }
        if only {
            self.put("enabled_tools", shown);
        }
        if !hidden.is_empty() {
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
