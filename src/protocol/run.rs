//! Runs commands: each makes one engine call and converts its result. Every front runs commands here, so the shell and
//! the editors cannot disagree. An answer is serialized at once: for a thousand tools, or for a megabyte of result, a tree
//! of values would cost several times as much.

mod agents;
mod reads;
mod sign_in;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;

use super::answers::{
    ApprovalList, CallList, CheckList, ConfigFiles, EditedFiles, EditedServer, EditedTools, GrantList, LogLines,
    MetricsList, OneServer, PolicyList, Resolved, Revoked, ServerList, TemplateList,
};
use super::commands::{self, AnyCommand, Command};
use super::form::Form;
use super::server_form;
use super::types::{ServerStatus, ShownScope, ToolInfo, ToolResult};
use crate::config::interop::ImportRequest;
use crate::config::is_timeout;
use crate::config::shape::shell_split::definition_of_line;
use crate::engine::approvals::{AnsweredBy, Reply, unknown};
use crate::engine::edit::{Edited, NoBuffers, OpenBuffers, ToolOfServer};
use crate::engine::editors::Identity;
use crate::engine::gate::CallRequest;
use crate::engine::manage::TrustRequest;
use crate::engine::snapshot::ServerView;
use crate::engine::turns::Turn;
use crate::engine::{Action, Engine};
use crate::model::{
    CallId, CallKind, Error, Requester, RequesterKind, Result, Scope, ServerName, ToolId, UserDecision,
};
use crate::server::connection::Progress;
use crate::store::{CallQuery, Saved};
use tools::{check_form, started_tool, tools};
pub use tools::{find_tool, parse_tool};

/// The number of log lines if the command does not set one.
const LINES: usize = 200;

/// The serialized answer of a command.
pub type Answer = Box<RawValue>;

/// Refuses a command that decides for the user if an agent or a server started the process that sends it. Every front
/// calls it first.
pub fn check(command: &AnyCommand, identity: &Identity) -> Result<()> {
    match &identity.started_by {
        Some(by) if !command.decides_nothing() => Err(Error::StartedByAgent(by.clone())),
        _ => Ok(()),
    }
}

/// Runs a command of a front in this process, which has no files open and takes no turns.
pub async fn call<C: Command>(
    engine: &Engine,
    identity: &Identity,
    command: C,
    progress: Option<mpsc::Sender<Progress>>,
) -> Result<C::Answer> {
    let command = command.into();
    check(&command, identity)?;
    let answer = run(engine, &NoBuffers, identity, command, progress, Turn::default()).await?;
    serde_json::from_str(answer.get()).map_err(|error| Error::Io(error.to_string()))
}

/// Runs a command. `buffers` are the files that the editor has open, `identity` says which editor or shell it is,
/// `progress` receives the progress of a running tool, and later commands of the same connection wait for `turn`.
pub async fn run(
    engine: &Engine,
    buffers: &dyn OpenBuffers,
    identity: &Identity,
    command: AnyCommand,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    // A command that only reads waits for earlier changes, and no command waits for it. A change holds its turn until it
    // is made; a long one returns it as soon as its order is settled.
    let turn = if commands::only_reads(command.name()) {
        drop(turn);
        Turn::default()
    } else {
        turn
    };
    match command {
        AnyCommand::ServerAdd(params) => {
            let config = written_or_typed(params.config, params.command_line.as_deref())?;
            let inputs = params.inputs.unwrap_or_default();
            if let Some(commands::BundleFile { path, sha256 }) = params.bundle {
                engine.unpack_bundle(&path, sha256).await?;
            }
            saved::<commands::ServerAdd>(engine.add_server(buffers, params.server, config, inputs, params.scope).await?)
        }
        AnyCommand::ServerUpdate(params) => {
            let scope = file_scope(engine, &params.server, params.scope)?;
            saved::<commands::ServerUpdate>(engine.update_server(buffers, params.server, params.config, scope).await?)
        }
        AnyCommand::ServerRemove(params) => {
            let scope = file_scope(engine, &params.server, params.scope)?;
            let edited = engine.remove_server(buffers, &params.server, scope).await?;
            answer::<commands::ServerRemove>(EditedFiles { unsaved: edited.unsaved })
        }
        AnyCommand::ServerMove(params) => {
            let from = file_scope(engine, &params.server, params.from)?;
            saved::<commands::ServerMove>(match params.file {
                Some(file) if from == params.to => engine.move_to_file(buffers, params.server, from, &file).await?,
                _ => engine.move_server(buffers, params.server, from, params.to).await?,
            })
        }
        AnyCommand::ServerEnable(params) => {
            let scope = params.scope.map(|scope| file_scope(engine, &params.server, scope)).transpose()?;
            saved::<commands::ServerEnable>(engine.enable_server(buffers, params.server, params.enabled, scope).await?)
        }
        AnyCommand::ServerTimeout(params) => {
            let wrong = || Error::InvalidParams("`timeout` must be greater than 0 and at most one day".to_owned());
            let timeout = Duration::try_from_secs_f64(params.timeout).ok().filter(is_timeout).ok_or_else(wrong)?;
            saved::<commands::ServerTimeout>(engine.set_timeout(buffers, params.server, timeout).await?)
        }
        AnyCommand::ToolForm(params) => {
            let offered = started_tool(engine, &params.tool).await?;
            answer::<commands::ToolForm>(Form::of_schema(&offered.tool.input_schema))
        }
        AnyCommand::ServerForm(params) => answer::<commands::ServerForm>(server_form::form(engine, &params).await?),
        AnyCommand::FormCheck(params) => check_form(engine, &params).await,
        AnyCommand::ToolPolicy(params) => policy(engine, buffers, params).await,
        AnyCommand::Actions(_)
        | AnyCommand::ActionRun(_)
        | AnyCommand::ApprovalShow(_)
        | AnyCommand::ToolOpen(_)
        | AnyCommand::EditApply(_)
        | AnyCommand::SecretKeep(_)
        | AnyCommand::TemplateInsert(_)
        | AnyCommand::LevelChoose(_) => {
            Err(Error::InvalidParams("this command works on a text in an editor; there is none here".to_owned()))
        }
        AnyCommand::Servers(params) => {
            let snapshot = engine.now();
            answer::<commands::Servers>(statuses(engine, snapshot.select(params.server.as_ref())?))
        }
        AnyCommand::ServerStart(params) => act(engine, Action::Start, params.server, params.all, turn).await,
        AnyCommand::ServerStop(params) => act(engine, Action::Stop, params.server, params.all, turn).await,
        AnyCommand::ServerRestart(params) => act(engine, Action::Restart, params.server, params.all, turn).await,
        AnyCommand::ServerRefresh(params) => act(engine, Action::Refresh, params.server, params.all, turn).await,
        AnyCommand::ServerToggle(params) => {
            one::<commands::ServerToggle>(engine.toggle(params.server, params.enabled).await?)
        }
        AnyCommand::ServerTrust(params) => {
            let request = trust_request(&params)?;
            one::<commands::ServerTrust>(engine.trust(params.server, request, identity).await?)
        }
        AnyCommand::ServerAuth(params) => sign_in::run(engine, identity, params, turn).await,
        AnyCommand::ServerAuthPaste(params) => sign_in::paste(engine, &params),
        AnyCommand::ServerLogs(params) => {
            let lines = engine.logs(&params.server, params.limit.unwrap_or(LINES))?;
            answer::<commands::ServerLogs>(LogLines { lines: lines.into_iter().map(Into::into).collect() })
        }
        AnyCommand::ServerTest(params) => test(engine, params).await,
        AnyCommand::ServersSet(params) => {
            answer::<commands::ServersSet>(engine.set_session(params.servers).await?.into())
        }
        AnyCommand::Tools(params) => tools(engine, &params).await,
        AnyCommand::ToolCall(params) => call_tool(engine, identity, params, progress, turn).await,
        AnyCommand::Policies(params) => policies(engine, params).await,
        AnyCommand::Resources(params) => reads::resources(engine, params.server.as_ref()),
        AnyCommand::ResourceRead(params) => reads::read_resource(engine, identity, params).await,
        AnyCommand::Prompts(params) => reads::prompts(engine, params.server.as_ref()),
        AnyCommand::PromptGet(params) => reads::get_prompt(engine, identity, params).await,
        AnyCommand::Complete(params) => reads::complete(engine, identity, params).await,
        AnyCommand::Approvals(params) => answer::<commands::Approvals>(approvals(engine, params.id.as_deref())?),
        AnyCommand::ApprovalResolve(params) => {
            answer::<commands::ApprovalResolve>(resolve(engine, identity, params).await?)
        }
        AnyCommand::Grants(_) => {
            let grants = engine.grants().await.into_iter().map(Into::into).collect();
            answer::<commands::Grants>(GrantList { grants })
        }
        AnyCommand::GrantRevoke(params) => {
            if params.id.is_none() && !params.all {
                return Err(Error::InvalidParams("`mcp.grant.revoke` takes an `id` or `all: true`".to_owned()));
            }
            let (revoked, saved) = engine.revoke(params.id.as_deref()).await?;
            let warning = match saved {
                Saved::ToDisk => None,
                Saved::InMemory(why) => Some(super::convert::lost(&why)),
            };
            answer::<commands::GrantRevoke>(Revoked { revoked, warning })
        }
        AnyCommand::Config(_) => answer::<commands::Config>(files(engine)),
        AnyCommand::ConfigReload(_) => {
            let reload = engine.reload().await?;
            engine.begin_refresh().await?;
            answer::<commands::ConfigReload>((&*reload).into())
        }
        AnyCommand::ConfigImport(params) => {
            let commands::ConfigImport { from, path, scope, dry_run } = params;
            answer::<commands::ConfigImport>(
                engine.import(ImportRequest { from, path, scope, project_only: false, dry_run }).await?.into(),
            )
        }
        AnyCommand::ConfigExport(params) => {
            answer::<commands::ConfigExport>(engine.export(params.to, params.servers, params.path).await?.into())
        }
        AnyCommand::Templates(_) => {
            let templates = crate::config::templates::templates().iter().map(Into::into).collect();
            answer::<commands::Templates>(TemplateList { templates })
        }
        AnyCommand::RegistrySearch(params) => {
            let found = engine.search_registry(&params.query).await?;
            answer::<commands::RegistrySearch>(found.into())
        }
        AnyCommand::Calls(params) => {
            let (server, tool) = one_tool(engine, params.server, params.tool);
            let query = CallQuery {
                server: server.map(String::from),
                tool,
                workflow: params.workflow,
                since: params.since,
                failed: params.failed.then_some(true),
                denied: params.denied,
                agent: params.agent,
                text: params.text,
                limit: params.limit,
                worktrees: true,
            };
            let mut calls = engine.calls(query).await?;
            for call in &mut calls {
                // A call without a result says so.
                call.result.get_or_insert(Value::Null);
                call.arguments.get_or_insert(Value::Null);
            }
            answer::<commands::Calls>(CallList { calls: calls.into_iter().map(Into::into).collect() })
        }
        AnyCommand::CallsVerify(_) => answer::<commands::CallsVerify>(engine.verify_calls().await?.into()),
        AnyCommand::Metrics(params) => {
            let servers = engine.metrics(params.server.as_ref()).await?.into_iter().map(Into::into).collect();
            let views = engine.view_costs().into_iter().map(Into::into).collect();
            answer::<commands::Metrics>(MetricsList { servers, views })
        }
        AnyCommand::Agents(_) => agents::list(engine).await,
        AnyCommand::AgentSet(params) => agents::set(engine, params).await,
        AnyCommand::AgentPause(params) => agents::pause(engine, &params).await,
        AnyCommand::AgentDisconnect(params) => agents::disconnect(engine, &params).await,
        AnyCommand::Away(_) => agents::away(engine).await,
        AnyCommand::AwayAllow(params) => agents::allow_next(engine, identity, &params).await,
        AnyCommand::CallResult(params) => wire(&ToolResult::new(&*engine.large_result(&params.call_id.0)?)?),
        AnyCommand::Doctor(_) => {
            let checks = engine.doctor().await.into_iter().map(Into::into).collect();
            answer::<commands::Doctor>(CheckList { checks })
        }
    }
}

/// The scope of the file that a status means. A connector is shown with its own scope, whatever its file.
fn file_scope(engine: &Engine, server: &ServerName, shown: ShownScope) -> Result<Scope> {
    Ok(match shown {
        ShownScope::Managed => Scope::Managed,
        ShownScope::Session => Scope::Session,
        ShownScope::Local => Scope::Local,
        ShownScope::Project => Scope::Project,
        ShownScope::User => Scope::User,
        ShownScope::ClaudeAi => engine.now().server(server)?.definition.scope,
    })
}

async fn policy(engine: &Engine, buffers: &dyn OpenBuffers, params: commands::ToolPolicy) -> Result<Answer> {
    let scope = params.scope.map(|scope| file_scope(engine, &params.server, scope)).transpose()?;
    let edited = engine.set_level(buffers, params.server, &params.tool, params.level, scope).await?;
    let granted = engine.granted().await;
    let (scope, tools) = edited.answer;
    let info = |(view, offered): &ToolOfServer| ToolInfo::new(offered, &granted.find(view, offered));
    let tools: Vec<ToolInfo> = tools.iter().map(info).collect();
    answer::<commands::ToolPolicy>(EditedTools { tools, scope: scope.into(), unsaved: edited.unsaved })
}

fn written_or_typed(config: Option<Value>, line: Option<&str>) -> Result<Value> {
    match (config, line) {
        (Some(config), None) => Ok(config),
        (None, Some(line)) => definition_of_line(line).map_err(|problem| Error::InvalidParams(problem.to_owned())),
        _ => Err(Error::InvalidParams("`mcp.server.add` takes either a `config` or a `commandLine`".to_owned())),
    }
}

fn saved<C: Command<Answer = EditedServer>>(edited: Edited<Arc<ServerView>>) -> Result<Answer> {
    answer::<C>(EditedServer { server: ServerStatus::from(&*edited.answer), unsaved: edited.unsaved })
}

async fn act(engine: &Engine, action: Action, server: Option<ServerName>, all: bool, turn: Turn) -> Result<Answer> {
    if server.is_none() && !all {
        return Err(Error::InvalidParams("pass a `server` or `all: true`".to_owned()));
    }
    let views = engine.act(action, server, turn).await?;
    // The same for all of them.
    answer::<commands::ServerStart>(statuses(engine, views.iter().collect()))
}

async fn test(engine: &Engine, params: commands::ServerTest) -> Result<Answer> {
    let report = match (params.server, params.config) {
        (Some(server), None) => engine.test_server(server).await?,
        (None, Some(config)) => engine.test_config(config).await?,
        _ => return Err(Error::InvalidParams("`mcp.server.test` takes either a `server` or a `config`".to_owned())),
    };
    answer::<commands::ServerTest>(report.into())
}

fn trust_request(params: &commands::ServerTrust) -> Result<TrustRequest> {
    match (params.trusted, params.ask) {
        (None, true) => Ok(TrustRequest::Ask),
        (Some(true), false) => Ok(TrustRequest::Trust { digest: params.digest.clone() }),
        (Some(false), false) => Ok(TrustRequest::Distrust),
        _ => Err(Error::InvalidParams("`mcp.server.trust` takes either `trusted` or `ask: true`".to_owned())),
    }
}

async fn call_tool(
    engine: &Engine,
    identity: &Identity,
    params: commands::ToolCall,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    let tool = parse_tool(&params.tool)?;
    let outcome = engine
        .call(CallRequest {
            kind: CallKind::Tool,
            id: CallId::random(),
            must_ask: None,
            tool: tool.clone(),
            arguments: params.arguments.unwrap_or_default(),
            decision: params
                .decision
                .map(|decision| UserDecision { decision, by: AnsweredBy::Editor(identity.clone()).to_string().into() }),
            requester: match &identity.started_by {
                Some(by) => Requester { kind: RequesterKind::Agent, name: by.clone() },
                None => params.requester.unwrap_or_default(),
            },
            connection: None,
            workflow: params.workflow,
            timeout: params.timeout_ms.map(Duration::from_millis),
            meta: Default::default(),
            unknown_fields: Default::default(),
            progress,
            turn,
        })
        .await
        .map_err(|error| error.in_call(&tool))?;
    wire(&ToolResult::new(&outcome).map_err(|error| error.in_call(&tool))?)
}

async fn policies(engine: &Engine, params: commands::Policies) -> Result<Answer> {
    let (server, tool) = one_tool(engine, params.server, params.tool);
    let policies = engine.policies(server.as_ref(), tool.as_deref(), params.arguments.as_ref()).await?;
    answer::<commands::Policies>(PolicyList { policies: policies.into_iter().map(Into::into).collect() })
}

/// A tool by its short name, or by its whole name, which says its server already.
fn one_tool(engine: &Engine, server: Option<ServerName>, tool: Option<String>) -> (Option<ServerName>, Option<String>) {
    match tool.as_deref().and_then(ToolId::parse).map(|id| engine.now().resolve_tool(id)) {
        Some(id) => (server.or(Some(id.server)), Some(id.tool.to_string())),
        None => (server, tool),
    }
}

fn files(engine: &Engine) -> ConfigFiles {
    ConfigFiles { files: engine.loaded().borrow().files.iter().map(Into::into).collect() }
}

fn statuses(engine: &Engine, views: Vec<&Arc<ServerView>>) -> ServerList {
    ServerList {
        servers: views.into_iter().map(|view| ServerStatus::from(&**view)).collect(),
        problems: engine.health().borrow().describe().into_iter().collect(),
    }
}

fn one<C: Command<Answer = OneServer>>(view: Arc<ServerView>) -> Result<Answer> {
    answer::<C>(OneServer { server: ServerStatus::from(&*view) })
}

/// All questions that wait now.
pub fn approvals(engine: &Engine, id: Option<&str>) -> Result<ApprovalList> {
    let waiting = engine.approvals().shown_here(&engine.approvals().list());
    match id {
        Some(id) => {
            let question = waiting.iter().find(|approval| approval.id == id).ok_or_else(|| unknown(id))?;
            Ok(ApprovalList { approvals: vec![question.as_ref().into()], groups: Vec::new() })
        }
        None => Ok(ApprovalList::new(engine, &engine.approvals().list())),
    }
}

async fn resolve(engine: &Engine, identity: &Identity, params: commands::ApprovalResolve) -> Result<Resolved> {
    let commands::ApprovalResolve { id, ids, decision, note, content, arguments } = params;
    let ids = match (id, ids) {
        (Some(id), None) => vec![id],
        (None, Some(ids)) if !ids.is_empty() => ids,
        _ => return Err(Error::InvalidParams("`mcp.approval.resolve` takes either an `id` or `ids`".to_owned())),
    };
    let reply = Reply { decision: &decision, note, content, arguments };
    let (resolved, not_saved) = engine.resolve(&ids, &reply, identity).await?;
    Ok(Resolved::new(engine, resolved, &decision, not_saved.as_deref()))
}

pub fn wire<T: Serialize + ?Sized>(answer: &T) -> Result<Answer> {
    to_raw_value(answer).map_err(|error| Error::Io(format!("the answer cannot be written: {error}")))
}

/// The answer of a command, as it goes on the wire.
pub fn answer<C: Command>(answer: C::Answer) -> Result<Answer> {
    wire(&answer)
}
