//! A command carried out: one engine call, its answer in the words of the wire. Every front that speaks the contract
//! comes through here, so the shell and the editor can never disagree. An answer is written as JSON at once: a thousand
//! tools or a megabyte of result would cost several times as much by way of a tree of values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::mpsc;

use super::answers::{
    ApprovalList, CallList, CheckList, Completion, ConfigFiles, Done, EditedFiles, EditedServer, EditedTools,
    GrantList, LogLines, MetricsList, OneServer, PolicyList, PromptList, ResourceList, Revoked, ServerList,
    TemplateList, ToolList,
};
use super::commands::{self, AnyCommand, Command};
use super::mcp::{PromptInfo, ResourceInfo};
use super::types::{Object, ServerStatus, ToolInfo, ToolResult};
use crate::config::interop::ImportRequest;
use crate::engine::edit::{Edited, OpenBuffers};
use crate::engine::gate::CallRequest;
use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::engine::turns::Turn;
use crate::engine::{Action, Engine};
use crate::model::{Error, Requester, RequesterKind, Result, ServerName, ToolId};
use crate::server::connection::Progress;
use crate::store::CallQuery;

/// Whoever speaks this protocol does so for the user.
const USER: Requester = Requester { kind: RequesterKind::User, name: String::new() };
/// How many lines are told when the asker does not say.
const LINES: usize = 200;

/// What a command came to, as it goes on the wire.
pub type Answer = Box<RawValue>;

/// Carries a command out. `pages` are the files that the asker has open, `progress` gets what a running tool reports,
/// and later commands of the same connection wait for `turn`.
pub async fn run(
    engine: &Engine,
    pages: &dyn OpenBuffers,
    command: AnyCommand,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    // What only reads waits for the changes before it, and nothing waits for it. A change holds its turn until it is
    // made; one that takes long gives it back as soon as its order is settled.
    let turn = if command.only_reads() { Turn::default() } else { turn };
    match command {
        AnyCommand::ServerAdd(params) => {
            let inputs = params.inputs.unwrap_or_default();
            saved::<commands::ServerAdd>(
                engine.add_server(pages, params.server, params.config, inputs, params.scope).await?,
            )
        }
        AnyCommand::ServerUpdate(params) => saved::<commands::ServerUpdate>(
            engine.update_server(pages, params.server, params.config, params.scope).await?,
        ),
        AnyCommand::ServerRemove(params) => {
            let edited = engine.remove_server(pages, &params.server, params.scope).await?;
            answer::<commands::ServerRemove>(EditedFiles { unsaved: edited.unsaved })
        }
        AnyCommand::ServerMove(params) => {
            saved::<commands::ServerMove>(engine.move_server(pages, params.server, params.from, params.to).await?)
        }
        AnyCommand::ServerEnable(params) => saved::<commands::ServerEnable>(
            engine.enable_server(pages, params.server, params.enabled, params.scope).await?,
        ),
        AnyCommand::ToolPolicy(params) => policy(engine, pages, params).await,
        AnyCommand::ActionRun(_)
        | AnyCommand::EditApply(_)
        | AnyCommand::SecretKeep(_)
        | AnyCommand::TemplateInsert(_) => {
            Err(Error::InvalidParams("this command works on a text in an editor; there is none here".to_owned()))
        }
        AnyCommand::Servers(params) => {
            let snapshot = engine.now();
            answer::<commands::Servers>(statuses(snapshot.select(params.server.as_ref())?))
        }
        AnyCommand::ServerStart(params) => act(engine, Action::Start, params.server, params.all, turn).await,
        AnyCommand::ServerStop(params) => act(engine, Action::Stop, params.server, params.all, turn).await,
        AnyCommand::ServerRestart(params) => act(engine, Action::Restart, params.server, params.all, turn).await,
        AnyCommand::ServerToggle(params) => {
            one::<commands::ServerToggle>(engine.toggle(params.server, params.enabled).await?)
        }
        AnyCommand::ServerTrust(params) => {
            one::<commands::ServerTrust>(engine.trust(params.server, params.trusted).await?)
        }
        AnyCommand::ServerAuth(params) if params.sign_out => {
            one::<commands::ServerAuth>(engine.sign_out(params.server, turn).await?)
        }
        AnyCommand::ServerAuth(params) => one::<commands::ServerAuth>(engine.sign_in(params.server, turn).await?),
        AnyCommand::ServerLogs(params) => {
            let lines = engine.logs(&params.server, params.limit.unwrap_or(LINES))?;
            answer::<commands::ServerLogs>(LogLines { lines: lines.into_iter().map(Into::into).collect() })
        }
        AnyCommand::ServerTest(params) => test(engine, params).await,
        AnyCommand::ServersSet(params) => {
            answer::<commands::ServersSet>(engine.set_session(params.servers).await?.into())
        }
        AnyCommand::Tools(params) => tools(engine, &params).await,
        AnyCommand::ToolCall(params) => call(engine, params, progress, turn).await,
        AnyCommand::Policies(params) => policies(engine, params).await,
        AnyCommand::Resources(params) => resources(engine, params.server.as_ref()),
        AnyCommand::ResourceRead(params) => read_resource(engine, params).await,
        AnyCommand::Prompts(params) => prompts(engine, params.server.as_ref()),
        AnyCommand::PromptGet(params) => {
            bare(engine.get_prompt(&USER, &params.server, params.name, params.arguments.unwrap_or_default()).await?)
        }
        AnyCommand::Complete(params) => {
            let answer =
                engine.complete(&USER, &params.server, params.reference, params.argument, params.context).await?;
            completion(&parsed(&answer)?)
        }
        AnyCommand::Approvals(_) => answer::<commands::Approvals>(approvals(engine)),
        AnyCommand::ApprovalResolve(params) => {
            engine.resolve(&params.id, &params.decision, params.note, params.content)?;
            answer::<commands::ApprovalResolve>(Done {})
        }
        AnyCommand::Grants(_) => {
            let grants = engine.grants().await.into_iter().map(Into::into).collect();
            answer::<commands::Grants>(GrantList { grants })
        }
        AnyCommand::GrantRevoke(params) => {
            if params.id.is_none() && !params.all {
                return Err(Error::InvalidParams("`mcp.grant.revoke` takes an `id` or `all: true`".to_owned()));
            }
            answer::<commands::GrantRevoke>(Revoked { revoked: engine.revoke(params.id.as_deref()).await? })
        }
        AnyCommand::Config(_) => answer::<commands::Config>(files(engine)),
        AnyCommand::ConfigReload(_) => answer::<commands::ConfigReload>((&*engine.reload().await?).into()),
        AnyCommand::ConfigImport(params) => {
            let commands::ConfigImport { from, path, scope, dry_run } = params;
            answer::<commands::ConfigImport>(engine.import(ImportRequest { from, path, scope, dry_run }).await?.into())
        }
        AnyCommand::ConfigExport(params) => {
            answer::<commands::ConfigExport>(engine.export(params.to, params.servers, params.path).await?.into())
        }
        AnyCommand::Templates(_) => {
            let templates = crate::config::templates::templates().iter().map(Into::into).collect();
            answer::<commands::Templates>(TemplateList { templates })
        }
        AnyCommand::Calls(params) => {
            let (server, tool) = one_tool(engine, params.server, params.tool);
            let query = CallQuery {
                server: server.map(String::from),
                tool,
                workflow: params.workflow,
                since: params.since,
                failed: params.failed.then_some(true),
                limit: params.limit,
            };
            let mut calls = engine.calls(query).await?;
            for call in &mut calls {
                // A call that brought nothing has a result that says so.
                call.result.get_or_insert(Value::Null);
                call.arguments.get_or_insert(Value::Null);
            }
            answer::<commands::Calls>(CallList { calls: calls.into_iter().map(Into::into).collect() })
        }
        AnyCommand::Metrics(params) => {
            let servers = engine.metrics(params.server.as_ref()).await?.into_iter().map(Into::into).collect();
            answer::<commands::Metrics>(MetricsList { servers })
        }
        AnyCommand::Doctor(_) => {
            let checks = engine.doctor().await.into_iter().map(Into::into).collect();
            answer::<commands::Doctor>(CheckList { checks })
        }
    }
}

async fn policy(engine: &Engine, pages: &dyn OpenBuffers, params: commands::ToolPolicy) -> Result<Answer> {
    let edited = engine.set_level(pages, params.server, &params.tool, params.level, params.scope).await?;
    let granted = engine.granted().await;
    let info =
        |(view, offered): &(Arc<ServerView>, Arc<OfferedTool>)| ToolInfo::new(offered, &granted.find(view, offered));
    let tools: Vec<ToolInfo> = edited.answer.iter().map(info).collect();
    answer::<commands::ToolPolicy>(EditedTools { tools, unsaved: edited.unsaved })
}

fn saved<C: Command<Answer = EditedServer>>(edited: Edited<Arc<ServerView>>) -> Result<Answer> {
    answer::<C>(EditedServer { server: ServerStatus::from(&*edited.answer), unsaved: edited.unsaved })
}

async fn act(engine: &Engine, action: Action, server: Option<ServerName>, all: bool, turn: Turn) -> Result<Answer> {
    if server.is_none() && !all {
        return Err(Error::InvalidParams("name a `server`, or say `all: true`".to_owned()));
    }
    let views = engine.act(action, server, turn).await?;
    // The same for all three.
    answer::<commands::ServerStart>(statuses(views.iter().collect()))
}

async fn test(engine: &Engine, params: commands::ServerTest) -> Result<Answer> {
    let report = match (params.server, params.config) {
        (Some(server), None) => engine.test_server(server).await?,
        (None, Some(config)) => engine.test_config(config).await?,
        _ => return Err(Error::InvalidParams("`mcp.server.test` takes either a `server` or a `config`".to_owned())),
    };
    answer::<commands::ServerTest>(report.into())
}

async fn tools(engine: &Engine, params: &commands::Tools) -> Result<Answer> {
    let granted = engine.granted().await;
    let snapshot = engine.now();
    let mut tools = Vec::new();
    for view in snapshot.select(params.server.as_ref())? {
        let info = |offered: &Arc<OfferedTool>| ToolInfo::new(offered, &granted.find(view, offered));
        if params.all {
            tools.extend(view.tools.values().map(info));
        } else {
            tools.extend(view.shown_tools().map(info));
        }
    }
    answer::<commands::Tools>(ToolList { tools })
}

async fn call(
    engine: &Engine,
    params: commands::ToolCall,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    let tool = ToolId::parse(&params.tool).ok_or_else(|| {
        Error::InvalidParams(format!("`{}` is no tool; a tool is named mcp__server__tool", params.tool))
    })?;
    let outcome = engine
        .call(CallRequest {
            tool: tool.clone(),
            arguments: params.arguments.unwrap_or_default(),
            decision: params.decision,
            requester: params.requester.unwrap_or_default(),
            workflow: params.workflow,
            timeout: params.timeout_ms.map(Duration::from_millis),
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

fn resources(engine: &Engine, server: Option<&ServerName>) -> Result<Answer> {
    let snapshot = engine.now();
    let views = snapshot.select(server)?;
    let info =
        |view: &ServerView, raw: &Value| ResourceInfo { fields: object(raw), server: view.definition.name.clone() };
    let resources = views.iter().flat_map(|view| view.resources().iter().map(|each| info(view, &each.raw))).collect();
    let templates = views.iter().flat_map(|view| view.templates().iter().map(|each| info(view, &each.raw))).collect();
    answer::<commands::Resources>(ResourceList { resources, templates })
}

fn prompts(engine: &Engine, server: Option<&ServerName>) -> Result<Answer> {
    let snapshot = engine.now();
    let views = snapshot.select(server)?;
    let info =
        |view: &ServerView, raw: &Value| PromptInfo { fields: object(raw), server: view.definition.name.clone() };
    let prompts = views.iter().flat_map(|view| view.prompts().iter().map(|each| info(view, &each.raw))).collect();
    answer::<commands::Prompts>(PromptList { prompts })
}

fn files(engine: &Engine) -> ConfigFiles {
    ConfigFiles { files: engine.loaded().borrow().files.iter().map(Into::into).collect() }
}

/// What a server sent, without a field that would take the place of one of ours.
fn object(raw: &Value) -> Object {
    let mut fields = raw.as_object().cloned().unwrap_or_default();
    fields.shift_remove("server");
    fields
}

fn completion(raw: &Value) -> Result<Answer> {
    let completion = raw.get("completion").unwrap_or(raw);
    answer::<commands::Complete>(Completion {
        values: completion.get("values").and_then(Value::as_array).cloned().unwrap_or_default(),
        has_more: completion.get("hasMore").and_then(Value::as_bool).unwrap_or(false),
    })
}

fn statuses(views: Vec<&Arc<ServerView>>) -> ServerList {
    ServerList { servers: views.into_iter().map(|view| ServerStatus::from(&**view)).collect() }
}

fn one<C: Command<Answer = OneServer>>(view: Arc<ServerView>) -> Result<Answer> {
    answer::<C>(OneServer { server: ServerStatus::from(&*view) })
}

/// All questions that wait now.
pub fn approvals(engine: &Engine) -> ApprovalList {
    ApprovalList { approvals: engine.approvals().list().iter().map(Into::into).collect() }
}

/// An editor that shows a resource hears of its changes for as long as the server runs: there is no end to it, because
/// an agent may watch the same one. A server that cannot tell is read all the same.
async fn read_resource(engine: &Engine, params: commands::ResourceRead) -> Result<Answer> {
    if params.subscribe == Some(true) {
        engine.subscribe(&USER, &params.server, params.uri.clone(), true).await.ok();
    }
    bare(engine.read_resource(&USER, &params.server, params.uri).await?)
}

fn parsed(raw: &RawValue) -> Result<Value> {
    serde_json::from_str(raw.get()).map_err(|error| Error::Io(error.to_string()))
}

/// A server's answer without what belongs to the envelope of a newer protocol: that is no part of ours.
fn bare(raw: Arc<RawValue>) -> Result<Answer> {
    let mut fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(raw.get()).map_err(|error| Error::Io(error.to_string()))?;
    fields.remove("resultType");
    wire(&fields)
}

pub fn wire<T: Serialize + ?Sized>(answer: &T) -> Result<Answer> {
    to_raw_value(answer).map_err(|error| Error::Io(format!("the answer cannot be written: {error}")))
}

/// The answer of a command, as it goes on the wire.
pub fn answer<C: Command>(answer: C::Answer) -> Result<Answer> {
    wire(&answer)
}
