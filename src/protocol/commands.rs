//! The commands of `workspace/executeCommand`: each is a type that holds its params and names its answer.

mod agents;
mod call_log;
mod forms;
mod in_editor;
mod questions;
mod reads;
mod sign_in;

pub use agents::{AgentDisconnect, AgentPause, AgentSet, Agents, Away, AwayAllow, CallResult};
pub use call_log::{Calls, CallsVerify, Metrics};
pub use forms::{FormCheck, RegistrySearch, RegistryServer, ServerForm, ToolForm};
pub use in_editor::{
    ActionRun, Actions, ApprovalShow, EditApply, LevelChoose, SecretKeep, SentDocument, TemplateInsert, ToolOpen,
};
pub use questions::{ApprovalResolve, Approvals};
pub use reads::{Complete, PromptGet, Prompts, ResourceRead, Resources};
pub use sign_in::{ServerAuth, ServerAuthPaste};

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answers::{
    ActionList, AgentList, ApprovalList, AwayReport, CallList, CallLogCheck, CheckList, CheckedForm, Completion,
    ConfigFiles, Done, EditedFiles, EditedServer, EditedTools, Exported, FilledForm, GrantList, Imported,
    InsertedServer, KeptSecret, LogLines, MetricsList, OneServer, PolicyList, Prompt, PromptList, ReadResource,
    RegistryList, Resolved, ResourceList, Revoked, ServerList, SessionChange, TemplateList, TestReport, ToolList,
};
use super::form::Form;
use super::types::{Reload, ShownScope, ToolResult};
use crate::config::interop::Dialect;
use crate::model::{Decision, Error, Level, Requester, Result, Scope, ServerName};
use crate::text::{json_reason, one_line};

/// A command. Its name on the wire is `NAME`, its params are the type itself.
pub trait Command: Serialize + DeserializeOwned + JsonSchema + Into<AnyCommand> {
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
        }

        impl From<$command> for AnyCommand {
            fn from(command: $command) -> Self {
                Self::$command(command)
            }
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

            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$command(_) => $name,)*
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
    "mcp.server.form" => ServerForm -> FilledForm,
    "mcp.server.update" => ServerUpdate -> EditedServer,
    "mcp.server.remove" => ServerRemove -> EditedFiles,
    "mcp.server.move" => ServerMove -> EditedServer,
    "mcp.server.enable" => ServerEnable -> EditedServer,
    "mcp.server.timeout" => ServerTimeout -> EditedServer,
    "mcp.server.test" => ServerTest -> TestReport,
    "mcp.server.start" => ServerStart -> ServerList,
    "mcp.server.stop" => ServerStop -> ServerList,
    "mcp.server.restart" => ServerRestart -> ServerList,
    "mcp.server.refresh" => ServerRefresh -> ServerList,
    "mcp.server.toggle" => ServerToggle -> OneServer,
    "mcp.server.trust" => ServerTrust -> OneServer,
    "mcp.server.auth" => ServerAuth -> OneServer,
    "mcp.server.auth.paste" => ServerAuthPaste -> Done,
    "mcp.server.logs" => ServerLogs -> LogLines,
    "mcp.servers.set" => ServersSet -> SessionChange,
    "mcp.tools" => Tools -> ToolList,
    "mcp.tool.call" => ToolCall -> ToolResult,
    "mcp.tool.open" => ToolOpen -> ToolResult,
    "mcp.tool.form" => ToolForm -> Form,
    "mcp.form.check" => FormCheck -> CheckedForm,
    "mcp.tool.policy" => ToolPolicy -> EditedTools,
    "mcp.policies" => Policies -> PolicyList,
    "mcp.resources" => Resources -> ResourceList,
    "mcp.resource.read" => ResourceRead -> ReadResource,
    "mcp.prompts" => Prompts -> PromptList,
    "mcp.prompt.get" => PromptGet -> Prompt,
    "mcp.complete" => Complete -> Completion,
    "mcp.approvals" => Approvals -> ApprovalList,
    "mcp.approval.show" => ApprovalShow -> Done,
    "mcp.approval.resolve" => ApprovalResolve -> Resolved,
    "mcp.grants" => Grants -> GrantList,
    "mcp.grant.revoke" => GrantRevoke -> Revoked,
    "mcp.config" => Config -> ConfigFiles,
    "mcp.config.reload" => ConfigReload -> Reload,
    "mcp.config.import" => ConfigImport -> Imported,
    "mcp.config.export" => ConfigExport -> Exported,
    "mcp.templates" => Templates -> TemplateList,
    "mcp.registry.search" => RegistrySearch -> RegistryList,
    "mcp.calls" => Calls -> CallList,
    "mcp.calls.verify" => CallsVerify -> CallLogCheck,
    "mcp.metrics" => Metrics -> MetricsList,
    "mcp.call.result" => CallResult -> ToolResult,
    "mcp.agents" => Agents -> AgentList,
    "mcp.agent.set" => AgentSet -> AgentList,
    "mcp.agent.pause" => AgentPause -> AgentList,
    "mcp.agent.disconnect" => AgentDisconnect -> AgentList,
    "mcp.away" => Away -> AwayReport,
    "mcp.away.allow" => AwayAllow -> Done,
    "mcp.doctor" => Doctor -> CheckList,
    "mcp.actions" => Actions -> ActionList,
    "mcp.action.run" => ActionRun -> ToolResult,
    "mcp.edit.apply" => EditApply -> Done,
    "mcp.secret.keep" => SecretKeep -> KeptSecret,
    "mcp.template.insert" => TemplateInsert -> InsertedServer,
    "mcp.level.choose" => LevelChoose -> EditedFiles,
}

/// Whether the command with this name changes nothing, so that later commands need not wait for it, and it can be repeated.
pub fn only_reads(name: &str) -> bool {
    matches!(
        name,
        Servers::NAME
            | ServerTest::NAME
            | ServerLogs::NAME
            | Tools::NAME
            | ToolForm::NAME
            | FormCheck::NAME
            | Policies::NAME
            | Resources::NAME
            | ResourceRead::NAME
            | Prompts::NAME
            | PromptGet::NAME
            | Complete::NAME
            | Approvals::NAME
            | ApprovalShow::NAME
            | Grants::NAME
            | Config::NAME
            | Templates::NAME
            | RegistrySearch::NAME
            | Calls::NAME
            | CallsVerify::NAME
            | Metrics::NAME
            | CallResult::NAME
            | Agents::NAME
            | Away::NAME
            | Doctor::NAME
            | Actions::NAME
            | ServerForm::NAME
    )
}

impl AnyCommand {
    /// Whether it decides nothing for the user: it shows something, takes a permission away, or asks.
    pub fn decides_nothing(&self) -> bool {
        match self {
            Self::ToolCall(call) => call.decision.is_none(),
            Self::ServerTrust(trust) => trust.trusted == Some(false),
            Self::ApprovalResolve(answer) => answer.decision == "deny",
            Self::ToolPolicy(policy) => matches!(policy.level, Some(Level::Deny | Level::Disable)),
            Self::GrantRevoke(_) | Self::ConfigReload(_) | Self::ServerRefresh(_) => true,
            // They reach a server as the user does, without a question.
            Self::ServerTest(_) | Self::ResourceRead(_) | Self::PromptGet(_) | Self::Complete(_) => false,
            other => only_reads(other.name()),
        }
    }
}

/// Lists all servers, or one.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Servers {
    pub server: Option<ServerName>,
}

/// Adds a server to the file of a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerAdd {
    pub server: ServerName,
    pub config: Option<Value>,
    /// Instead of `config`: a command line or a URL, as the user typed it.
    pub command_line: Option<String>,
    pub scope: Scope,
    /// Entries of `inputs` that the definition refers to.
    pub inputs: Option<Vec<Value>>,
    /// The bundle with the files of the server, which is unpacked first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleFile>,
}

/// A bundle that the user has seen.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BundleFile {
    pub path: PathBuf,
    /// Another file at this path is not unpacked.
    pub sha256: String,
}

/// Replaces a definition.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerUpdate {
    pub server: ServerName,
    pub config: Value,
    pub scope: ShownScope,
}

/// Removes a server from the file of a scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerRemove {
    pub server: ServerName,
    pub scope: ShownScope,
}

/// Moves a server from one scope to another, or to another file of the same scope.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerMove {
    pub server: ServerName,
    pub from: ShownScope,
    pub to: Scope,
    /// With `to` equal to `from`: the other file, by its name in the workspace folder, such as `mcp.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Enables or disables a server. In a scope that does not define it, an entry without a definition disables it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerEnable {
    pub server: ServerName,
    pub enabled: bool,
    /// Without it, the server is disabled where it is defined, and enabled in every file that disables it.
    pub scope: Option<ShownScope>,
}

/// Sets how long a call may take without progress, in the file that defines the server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerTimeout {
    pub server: ServerName,
    /// In seconds.
    pub timeout: f64,
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
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Stops one server or all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerStop {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Restarts one server or all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerRestart {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Asks one running server, or all of them, for its tools, resources and prompts again.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServerRefresh {
    pub server: Option<ServerName>,
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Hides or shows the tools of a server. The connection stays.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerToggle {
    pub server: ServerName,
    pub enabled: bool,
}

/// Trusts a definition, withdraws that trust, or asks the user about it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ServerTrust {
    pub server: ServerName,
    pub trusted: Option<bool>,
    /// With `trusted: true`: the `trustDigest` of the definition that the user has seen.
    pub digest: Option<String>,
    /// Opens the question about trust, even if the user refused the definition before.
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub ask: bool,
}

impl ServerTrust {
    /// Trusts the definition with this digest, which the user has seen.
    pub fn trust(server: ServerName, digest: Option<String>) -> Self {
        Self { server, trusted: Some(true), digest, ask: false }
    }

    pub fn distrust(server: ServerName) -> Self {
        Self { server, trusted: Some(false), digest: None, ask: false }
    }

    /// Asks the user.
    pub fn ask(server: ServerName) -> Self {
        Self { server, trusted: None, digest: None, ask: true }
    }
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
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

/// Calls a tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
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
    /// One of the `levelScopes` of the server. Without it, the first of them.
    pub scope: Option<ShownScope>,
}

/// Explains the levels of tools. Nothing is called.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Policies {
    pub server: Option<ServerName>,
    pub tool: Option<String>,
    pub arguments: Option<Map<String, Value>>,
}

/// Lists the answers of the user that still apply.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Grants {}

/// Revokes one grant or all of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct GrantRevoke {
    pub id: Option<String>,
    #[serde(default, deserialize_with = "absent_when_null", skip_serializing_if = "std::ops::Not::not")]
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

/// Checks this machine and the configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Doctor {}

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
        Error::InvalidParams(format!("`{name}`: {field}{}", json_reason(error.inner())))
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
        let error_of = |name: &str, arguments| AnyCommand::parse(name, arguments).unwrap_err().to_string();
        assert_eq!(error_of("mcp.nope", vec![]), "no command named `mcp.nope`");
        assert!(error_of("mcp.tool.call", vec![json!({})]).contains("`tool` is missing"));
        assert!(error_of("mcp.servers", vec![json!(1)]).contains("one object"));
        assert!(error_of("mcp.servers", vec![json!({ "server": "a__b" })]).contains("separates"));
        assert_eq!(
            error_of("mcp.servers", vec![json!({ "server": 5 })]),
            "`mcp.servers`: `server`: expected a string, found the number 5"
        );
        let caller = json!({ "tool": "mcp__a__b", "requester": { "kind": "nobody" } });
        assert_eq!(
            error_of("mcp.tool.call", vec![caller]),
            "`mcp.tool.call`: `requester.kind`: `nobody` is not one of `user`, `plugin`, `agent`"
        );
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
