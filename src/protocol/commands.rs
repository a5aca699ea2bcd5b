//! The commands of `workspace/executeCommand`: each is a type that holds its params and names its answer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answers::{
    ApprovalList, CallList, CheckList, Completion, ConfigFiles, Done, EditedFiles, EditedServer, EditedTools, Exported,
    GrantList, Imported, InsertedServer, KeptSecret, LogLines, MetricsList, OneServer, PolicyList, Prompt, PromptList,
    ReadResource, ResourceList, Revoked, ServerList, SessionChange, TemplateList, TestReport, ToolList,
};
use super::types::{Reload, ToolResult};
use crate::config::interop::Dialect;
use crate::model::{Decision, Error, Level, Requester, Result, Scope, ServerName};
use crate::text::one_line;

/// A command. Its name on the wire is `NAME`, its params are the type itself.
pub trait Command: Serialize + DeserializeOwned + JsonSchema {
    const NAME: &'static str;
    type Answer: Serialize + DeserializeOwned + JsonSchema;
}

/// Declares every command once: its name on the wire, its params, its answer.
macro_rules! commands {
    ($($name:literal => $command:ident -> $answer:ty,)*) => {
        /// Every command, as listed in `executeCommandProvider.commands`.
        pub const NAMES: &[&str] = &[$($name),*];

        $(impl Command for $command {
            const NAME: &'static str = $name;
            type Answer = $answer;
        })*

        /// A command as it comes from the wire, parsed and checked.
        #[derive(Debug, Clone)]
        pub enum AnyCommand { $($command($command)),* }

        impl AnyCommand {
            /// Parses a command with its arguments: one object, or nothing.
            pub fn parse(name: &str, arguments: Vec<Value>) -> Result<Self> {
                let params = object(name, arguments)?;
                match name {
                    $($name => read(name, params).map(Self::$command),)*
                    _ => Err(Error::NotFound(format!("no command named `{name}`"))),
                }
            }
        }

        /// Calls a visitor with every command.
        pub fn visit(visitor: &mut impl Visitor) {
            $(visitor.command::<$command>();)*
        }
    };
}

/// Sees every command as a type; see [`visit`].
pub trait Visitor {
    fn command<C: Command>(&mut self);
}

commands! {
    "mcp.servers" => Servers -> ServerList,
    "mcp.server.add" => ServerAdd -> EditedServer,
    "mcp.server.update" => ServerUpdate -> EditedServer,
    "mcp.server.remove" => ServerRemove -> EditedFiles,
    "mcp.server.move" => ServerMove -> EditedServer,
    "mcp.server.enable" => ServerEnable -> EditedServer,
    "mcp.server.test" => ServerTest -> TestReport,
    "mcp.server.start" => ServerStart -> ServerList,
    "mcp.server.stop" => ServerStop -> ServerList,
    "mcp.server.restart" => ServerRestart -> ServerList,
    "mcp.server.toggle" => ServerToggle -> OneServer,
    "mcp.server.trust" => ServerTrust -> OneServer,
    "mcp.server.auth" => ServerAuth -> OneServer,
    "mcp.server.logs" => ServerLogs -> LogLines,
    "mcp.servers.set" => ServersSet -> SessionChange,
    "mcp.tools" => Tools -> ToolList,
    "mcp.tool.call" => ToolCall -> ToolResult,
    "mcp.tool.policy" => ToolPolicy -> EditedTools,
    "mcp.policies" => Policies -> PolicyList,
    "mcp.resources" => Resources -> ResourceList,
    "mcp.resource.read" => ResourceRead -> ReadResource,
    "mcp.prompts" => Prompts -> PromptList,
    "mcp.prompt.get" => PromptGet -> Prompt,
    "mcp.complete" => Complete -> Completion,
    "mcp.approvals" => Approvals -> ApprovalList,
    "mcp.approval.resolve" => ApprovalResolve -> Done,
    "mcp.grants" => Grants -> GrantList,
    "mcp.grant.revoke" => GrantRevoke -> Revoked,
    "mcp.config" => Config -> ConfigFiles,
    "mcp.config.reload" => ConfigReload -> Reload,
    "mcp.config.import" => ConfigImport -> Imported,
    "mcp.config.export" => ConfigExport -> Exported,
    "mcp.templates" => Templates -> TemplateList,
    "mcp.calls" => Calls -> CallList,
    "mcp.metrics" => Metrics -> MetricsList,
    "mcp.doctor" => Doctor -> CheckList,
    "mcp.action.run" => ActionRun -> ToolResult,
    "mcp.edit.apply" => EditApply -> Done,
    "mcp.secret.keep" => SecretKeep -> KeptSecret,
    "mcp.template.insert" => TemplateInsert -> InsertedServer,
}

impl AnyCommand {
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

/// Lists all servers, or one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Servers {
    pub server: Option<ServerName>,
}

/// Adds a server to the file of a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerAdd {
    pub server: ServerName,
    pub config: Value,
    pub scope: Scope,
    /// Entries of `inputs` that the definition refers to.
    pub inputs: Option<Vec<Value>>,
}

/// Replaces a definition.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerUpdate {
    pub server: ServerName,
    pub config: Value,
    pub scope: Scope,
}

/// Removes a server from the file of a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerRemove {
    pub server: ServerName,
    pub scope: Scope,
}

/// Moves a server from one scope to another.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerMove {
    pub server: ServerName,
    pub from: Scope,
    pub to: Scope,
}

/// Enables or disables a server in its file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerEnable {
    pub server: ServerName,
    pub enabled: bool,
    /// Without it, the definition that is in effect.
    pub scope: Option<Scope>,
}

/// Starts a server, or a definition, lists what it offers, and stops it again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerTest {
    pub server: Option<ServerName>,
    pub config: Option<Value>,
}

/// Starts one server or all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerStart {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

/// Stops one server or all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerStop {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

/// Restarts one server or all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerRestart {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

/// Hides or shows the tools of a server. The connection stays.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerToggle {
    pub server: ServerName,
    pub enabled: bool,
}

/// Trusts a definition, or withdraws that trust.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerTrust {
    pub server: ServerName,
    pub trusted: bool,
}

/// Signs in to a server, or out.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerAuth {
    pub server: ServerName,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub sign_out: bool,
}

/// Reads the newest lines of the log of a server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerLogs {
    pub server: ServerName,
    pub limit: Option<usize>,
}

/// Replaces all servers of the session scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServersSet {
    pub servers: BTreeMap<String, Value>,
}

/// Lists the tools of all servers, or of one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tools {
    pub server: Option<ServerName>,
    /// Include disabled tools.
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

/// Calls a tool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The whole name: `mcp__server__tool`.
    pub tool: String,
    pub arguments: Option<Map<String, Value>>,
    /// The answer of a user who has just seen these arguments in a form of the editor.
    pub decision: Option<Decision>,
    pub requester: Option<Requester>,
    pub workflow: Option<String>,
    pub timeout_ms: Option<u64>,
}

/// Sets the level of a tool, or of all that match a glob.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolPolicy {
    pub server: ServerName,
    pub tool: String,
    /// `null` removes the level.
    pub level: Option<Level>,
    pub scope: Scope,
}

/// Explains the levels of tools. Nothing is called.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Policies {
    pub server: Option<ServerName>,
    pub tool: Option<String>,
    pub arguments: Option<Map<String, Value>>,
}

/// Lists resources and resource templates.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    pub server: Option<ServerName>,
}

/// Reads a resource.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRead {
    pub server: ServerName,
    pub uri: String,
    /// Send `mcp/resourceUpdated` when it changes.
    pub subscribe: Option<bool>,
}

/// Lists prompts.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Prompts {
    pub server: Option<ServerName>,
}

/// Gets a prompt with its arguments filled in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct PromptGet {
    pub server: ServerName,
    pub name: String,
    pub arguments: Option<Map<String, Value>>,
}

/// Completes an argument, as MCP's `completion/complete` does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Complete {
    pub server: ServerName,
    #[serde(rename = "ref")]
    pub reference: Value,
    pub argument: Value,
    pub context: Option<Value>,
}

/// Lists the questions that wait for the user.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {}

/// Answers a question. The first answer counts.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalResolve {
    pub id: String,
    pub decision: String,
    pub note: Option<String>,
    /// What was filled in.
    pub content: Option<Value>,
}

/// Lists the answers of the user that still apply.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Grants {}

/// Revokes one grant or all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct GrantRevoke {
    pub id: Option<String>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub all: bool,
}

/// Lists the config files.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Config {}

/// Reads all config files again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ConfigReload {}

/// Imports servers from the files of another program.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigImport {
    pub from: Dialect,
    pub path: Option<PathBuf>,
    pub scope: Scope,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub dry_run: bool,
}

/// Writes servers in the format of another program.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConfigExport {
    pub to: Dialect,
    /// Without it, all servers.
    #[serde(default, deserialize_with = "names")]
    pub servers: Option<Vec<ServerName>>,
    pub path: Option<PathBuf>,
}

/// Lists definitions to start from.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Templates {}

/// Lists calls, newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Calls {
    pub server: Option<ServerName>,
    pub tool: Option<String>,
    pub workflow: Option<String>,
    pub since: Option<crate::model::Timestamp>,
    #[serde(default, deserialize_with = "absent_when_null")]
    pub failed: bool,
    pub limit: Option<usize>,
}

/// Reports figures of servers and tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Metrics {
    pub server: Option<ServerName>,
}

/// Checks this machine and the configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {}

/// Runs an entry of `actions`. Without `action`, the user is asked which tool gets the selection.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ActionRun {
    /// The title of the entry.
    pub action: Option<String>,
    pub uri: String,
    /// A range of LSP.
    pub range: Value,
}

/// Applies edits that a code action or a lens offered.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EditApply {
    pub uri: String,
    /// The version of the text that they are for.
    pub version: Option<i32>,
    /// Text edits of LSP.
    pub edits: Value,
    pub label: Option<String>,
}

/// Moves a secret from an open config file to the keyring.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeep {
    pub uri: String,
    /// A range of LSP.
    pub range: Value,
}

/// Inserts a template into an open config file. Without `template`, the user is asked which.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TemplateInsert {
    pub uri: String,
    pub template: Option<String>,
}

/// The one object of `arguments`. Lua writes an empty object as `[]`, so that counts as one.
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

/// Fields that hold an object may arrive as `[]` for the same reason.
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

/// A list of names. An empty one selects none; Lua writes it as an empty object.
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
            let Ok(AnyCommand::Servers(Servers { server: None })) = AnyCommand::parse("mcp.servers", arguments) else {
                panic!("should have been read as no server at all");
            };
        }
        let command = AnyCommand::parse("mcp.server.start", vec![json!({ "server": "a", "all": null })]).unwrap();
        assert!(matches!(command, AnyCommand::ServerStart(ServerStart { all: false, .. })));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let told = |name: &str, arguments| AnyCommand::parse(name, arguments).unwrap_err().to_string();
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
        let servers = |params| match AnyCommand::parse("mcp.config.export", vec![params]) {
            Ok(AnyCommand::ConfigExport(export)) => export.servers.map(|servers| servers.len()),
            other => panic!("{other:?}"),
        };
        assert_eq!(servers(json!({ "to": "zed" })), None);
        assert_eq!(servers(json!({ "to": "zed", "servers": null })), None);
        assert_eq!(servers(json!({ "to": "zed", "servers": [] })), Some(0));
        assert_eq!(servers(json!({ "to": "zed", "servers": {} })), Some(0));
        assert_eq!(servers(json!({ "to": "zed", "servers": ["a"] })), Some(1));
    }
}
