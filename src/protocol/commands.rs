//! The commands of `workspace/executeCommand`: their names, and what each takes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::interop::Dialect;
use crate::model::{Decision, Error, Level, Requester, Result, Scope, ServerName};
use crate::text::one_line;

/// Declares the commands once: name on the wire, variant, what it takes.
macro_rules! commands {
    ($($name:literal => $variant:ident($params:ty),)*) => {
        /// Every command, as listed in `executeCommandProvider.commands`.
        pub const NAMES: &[&str] = &[$($name),*];

        /// A command with its parameters, read and checked.
        #[derive(Debug, Clone)]
        pub enum Command { $($variant($params)),* }

        impl Command {
            /// Reads a command as it comes from the wire: one object, or nothing, as the only argument.
            pub fn parse(name: &str, arguments: Vec<Value>) -> Result<Self> {
                let params = object(name, arguments)?;
                match name {
                    $($name => read(name, params).map(Self::$variant),)*
                    _ => Err(Error::NotFound(format!("no command named `{name}`"))),
                }
            }
        }
    };
}

commands! {
    "mcp.servers" => Servers(MaybeServer),
    "mcp.server.add" => ServerAdd(ServerConfig),
    "mcp.server.update" => ServerUpdate(ServerConfig),
    "mcp.server.remove" => ServerRemove(ServerInScope),
    "mcp.server.move" => ServerMove(ServerMove),
    "mcp.server.enable" => ServerEnable(ServerEnabled),
    "mcp.server.test" => ServerTest(ServerTest),
    "mcp.server.start" => ServerStart(ServerOrAll),
    "mcp.server.stop" => ServerStop(ServerOrAll),
    "mcp.server.restart" => ServerRestart(ServerOrAll),
    "mcp.server.toggle" => ServerToggle(ServerEnabled),
    "mcp.server.trust" => ServerTrust(ServerTrust),
    "mcp.server.auth" => ServerAuth(ServerAuth),
    "mcp.server.logs" => ServerLogs(ServerLogs),
    "mcp.servers.set" => ServersSet(ServersSet),
    "mcp.tools" => Tools(Tools),
    "mcp.tool.call" => ToolCall(ToolCall),
    "mcp.tool.policy" => ToolPolicy(ToolPolicy),
    "mcp.policies" => Policies(Policies),
    "mcp.resources" => Resources(MaybeServer),
    "mcp.resource.read" => ResourceRead(ResourceRead),
    "mcp.prompts" => Prompts(MaybeServer),
    "mcp.prompt.get" => PromptGet(PromptGet),
    "mcp.complete" => Complete(Complete),
    "mcp.approvals" => Approvals(Nothing),
    "mcp.approval.resolve" => ApprovalResolve(ApprovalResolve),
    "mcp.grants" => Grants(Nothing),
    "mcp.grant.revoke" => GrantRevoke(GrantRevoke),
    "mcp.config" => Config(Nothing),
    "mcp.config.reload" => ConfigReload(Nothing),
    "mcp.config.import" => ConfigImport(ConfigImport),
    "mcp.config.export" => ConfigExport(ConfigExport),
    "mcp.templates" => Templates(Nothing),
    "mcp.calls" => Calls(Calls),
    "mcp.metrics" => Metrics(MaybeServer),
    "mcp.doctor" => Doctor(Nothing),
    "mcp.action.run" => ActionRun(ActionRun),
    "mcp.edit.apply" => EditApply(EditApply),
    "mcp.secret.keep" => SecretKeep(SecretKeep),
    "mcp.template.insert" => TemplateInsert(TemplateInsert),
}

impl Command {
    /// Whether it changes nothing, so that later commands need not wait for it.
    pub fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::Servers(_)
                | Self::ServerTest(_)
                | Self::ServerLogs(_)
                | Self::Tools(_)
                | Self::Policies(_)
                | Self::Resources(_)
                | Self::ResourceRead(_)
                | Self::Prompts(_)
                | Self::PromptGet(_)
                | Self::Complete(_)
                | Self::Approvals(_)
                | Self::Grants(_)
                | Self::Config(_)
                | Self::Templates(_)
                | Self::Calls(_)
                | Self::Metrics(_)
                | Self::Doctor(_)
        )
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct Nothing {}

#[derive(Debug, Clone, Deserialize)]
pub struct MaybeServer {
    pub server: Option<ServerName>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerOrAll {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerEnabled {
    pub server: ServerName,
    pub enabled: bool,
    pub scope: Option<Scope>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerConfig {
    pub server: ServerName,
    pub config: Value,
    pub scope: Scope,
    /// Entries of `inputs` that the definition refers to. Only when it is added.
    pub inputs: Option<Vec<Value>>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerInScope {
    pub server: ServerName,
    pub scope: Scope,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerMove {
    pub server: ServerName,
    pub from: Scope,
    pub to: Scope,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerTrust {
    pub server: ServerName,
    pub trusted: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerAuth {
    pub server: ServerName,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub sign_out: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerLogs {
    pub server: ServerName,
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServerTest {
    pub server: Option<ServerName>,
    pub config: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ServersSet {
    pub servers: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Tools {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub tool: String,
    pub arguments: Option<Map<String, Value>>,
    pub decision: Option<Decision>,
    pub requester: Option<Requester>,
    pub workflow: Option<String>,
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ToolPolicy {
    pub server: ServerName,
    pub tool: String,
    pub level: Option<Level>,
    pub scope: Scope,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Policies {
    pub server: Option<ServerName>,
    pub tool: Option<String>,
    pub arguments: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ResourceRead {
    pub server: ServerName,
    pub uri: String,
    pub subscribe: Option<bool>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct PromptGet {
    pub server: ServerName,
    pub name: String,
    pub arguments: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Complete {
    pub server: ServerName,
    #[serde(rename = "ref")]
    pub reference: Value,
    pub argument: Value,
    pub context: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ApprovalResolve {
    pub id: String,
    pub decision: String,
    pub note: Option<String>,
    pub content: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct GrantRevoke {
    pub id: Option<String>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigImport {
    pub from: Dialect,
    pub path: Option<PathBuf>,
    pub scope: Scope,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub struct ConfigExport {
    pub to: Dialect,
    #[serde(default, deserialize_with = "names")]
    pub servers: Option<Vec<ServerName>>,
    pub path: Option<PathBuf>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Calls {
    pub server: Option<ServerName>,
    pub tool: Option<String>,
    pub workflow: Option<String>,
    pub since: Option<crate::model::Timestamp>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub failed: bool,
    pub limit: Option<usize>,
}

/// An entry of `actions` by its title, chosen at a place of an open file. Without one, the user is asked which tool
/// gets the selection.
#[derive(Debug, Clone, Deserialize)]
pub struct ActionRun {
    pub action: Option<String>,
    pub uri: String,
    /// As LSP has it.
    pub range: Value,
}

/// Edits of an open text, as a menu offered them.
#[derive(Debug, Clone, Deserialize)]
pub struct EditApply {
    pub uri: String,
    /// Of the text that they are for.
    pub version: Option<i32>,
    /// As LSP has them.
    pub edits: Value,
    pub label: Option<String>,
}

/// A secret that stands at a place of an open config file.
#[derive(Debug, Clone, Deserialize)]
pub struct SecretKeep {
    pub uri: String,
    /// As LSP has it.
    pub range: Value,
}

/// A template for an open config file. Without one, the user is asked which.
#[derive(Debug, Clone, Deserialize)]
pub struct TemplateInsert {
    pub uri: String,
    pub template: Option<String>,
}

/// The one object of `arguments`. Lua writes an empty object as `[]`, so that counts as one, too.
fn object(name: &str, arguments: Vec<Value>) -> Result<Value> {
    let mut arguments = arguments.into_iter();
    match (arguments.next(), arguments.next()) {
        (None | Some(Value::Null), None) => Ok(Value::Object(Map::new())),
        (Some(Value::Array(empty)), None) if empty.is_empty() => Ok(Value::Object(Map::new())),
        (Some(params @ Value::Object(_)), None) => Ok(params),
        _ => Err(Error::InvalidParams(format!("`{name}` takes one object as its only argument"))),
    }
}

fn read<T: DeserializeOwned>(name: &str, params: Value) -> Result<T> {
    let params = lua_objects(params);
    serde_path_to_error::deserialize(params).map_err(|error| {
        let field = match error.path().to_string().as_str() {
            "." => String::new(),
            field => format!("`{}`: ", one_line(field, 80)),
        };
        Error::InvalidParams(format!("`{name}`: {field}{}", error.inner()))
    })
}

/// Fields that hold an object may come as `[]` for the same reason.
fn lua_objects(mut params: Value) -> Value {
    if let Value::Object(fields) = &mut params {
        for key in ["arguments", "servers", "config"] {
            if let Some(field) = fields.get_mut(key)
                && field.as_array().is_some_and(Vec::is_empty)
            {
                *field = Value::Object(Map::new());
            }
        }
    }
    params
}

/// A list of names. An empty one, which Lua cannot tell from an empty object, chooses nobody.
fn names<'de, D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Vec<ServerName>>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None => Ok(None),
        Some(Value::Object(empty)) if empty.is_empty() => Ok(Some(Vec::new())),
        Some(list) => serde_json::from_value(list).map(Some).map_err(serde::de::Error::custom),
    }
}

/// A `null` field means the same as an absent one.
fn absent_when_null<'de, D, T>(deserializer: D) -> std::result::Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_an_empty_list_and_null_fields_all_mean_absent() {
        for arguments in [vec![], vec![json!(null)], vec![json!([])], vec![json!({})], vec![json!({ "server": null })]]
        {
            let Ok(Command::Servers(MaybeServer { server: None })) = Command::parse("mcp.servers", arguments) else {
                panic!("should have been read as no server at all");
            };
        }
        let command = Command::parse("mcp.server.start", vec![json!({ "server": "a", "all": null })]).unwrap();
        assert!(matches!(command, Command::ServerStart(ServerOrAll { all: false, .. })));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let told = |name: &str, arguments| Command::parse(name, arguments).unwrap_err().to_string();
        assert_eq!(told("mcp.nope", vec![]), "no command named `mcp.nope`");
        assert!(told("mcp.tool.call", vec![json!({})]).contains("missing field `tool`"));
        assert!(told("mcp.servers", vec![json!(1)]).contains("one object"));
        assert!(told("mcp.servers", vec![json!({ "server": "a__b" })]).contains("separates"));
        assert_eq!(
            told("mcp.servers", vec![json!({ "server": 5 })]),
            "`mcp.servers`: `server`: invalid type: integer `5`, expected a string"
        );
        let caller = json!({ "tool": "mcp__a__b", "requester": { "kind": "nobody" } });
        assert!(told("mcp.tool.call", vec![caller]).starts_with("`mcp.tool.call`: `requester.kind`: unknown variant"));
    }

    #[test]
    fn an_empty_list_of_servers_is_none_of_them_and_no_list_is_all() {
        let servers = |params| match Command::parse("mcp.config.export", vec![params]) {
            Ok(Command::ConfigExport(export)) => export.servers.map(|servers| servers.len()),
            other => panic!("{other:?}"),
        };
        assert_eq!(servers(json!({ "to": "zed" })), None);
        assert_eq!(servers(json!({ "to": "zed", "servers": null })), None);
        assert_eq!(servers(json!({ "to": "zed", "servers": [] })), Some(0));
        assert_eq!(servers(json!({ "to": "zed", "servers": {} })), Some(0));
        assert_eq!(servers(json!({ "to": "zed", "servers": ["a"] })), Some(1));
    }
}
