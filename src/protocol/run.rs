//! A command carried out: one engine call, its answer in the words of the wire. Every front that speaks the contract
//! comes through here, so the shell and the editor can never disagree. An answer is written as JSON at once: a thousand
//! tools or a megabyte of result would cost several times as much by way of a tree of values.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::commands::{self, Command};
use super::types::{ConfigFile, ServerStatus, ToolInfo, ToolResult};
use crate::config::interop::ImportRequest;
use crate::engine::edit::{Edited, Pages};
use crate::engine::gate::Wish;
use crate::engine::snapshot::{Offered, ServerView};
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
    pages: &dyn Pages,
    command: Command,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    // What only reads waits for the changes before it, and nothing waits for it. A change holds its turn until it is
    // made; one that takes long gives it back as soon as its order is settled.
    let turn = if command.only_reads() { Turn::default() } else { turn };
    match command {
        Command::ServerAdd(params) => {
            let inputs = params.inputs.unwrap_or_default();
            saved(engine.add_server(pages, params.server, params.config, inputs, params.scope).await?)
        }
        Command::ServerUpdate(params) => {
            saved(engine.update_server(pages, params.server, params.config, params.scope).await?)
        }
        Command::ServerRemove(params) => {
            let edited = engine.remove_server(pages, &params.server, params.scope).await?;
            with_unsaved(json!({}), &edited.unsaved)
        }
        Command::ServerMove(params) => saved(engine.move_server(pages, params.server, params.from, params.to).await?),
        Command::ServerEnable(params) => {
            saved(engine.enable_server(pages, params.server, params.enabled, params.scope).await?)
        }
        Command::ToolPolicy(params) => policy(engine, pages, params).await,
        Command::ActionRun(_) | Command::EditApply(_) | Command::SecretKeep(_) | Command::TemplateInsert(_) => {
            Err(Error::InvalidParams("this command works on a text in an editor; there is none here".to_owned()))
        }
        Command::Servers(params) => {
            let snapshot = engine.now();
            wire_one("servers", statuses(snapshot.select(params.server.as_ref())?))
        }
        Command::ServerStart(params) => act(engine, Action::Start, params, turn).await,
        Command::ServerStop(params) => act(engine, Action::Stop, params, turn).await,
        Command::ServerRestart(params) => act(engine, Action::Restart, params, turn).await,
        Command::ServerToggle(params) => one(engine.toggle(params.server, params.enabled).await?),
        Command::ServerTrust(params) => one(engine.trust(params.server, params.trusted).await?),
        Command::ServerAuth(params) if params.sign_out => one(engine.sign_out(params.server, turn).await?),
        Command::ServerAuth(params) => one(engine.sign_in(params.server, turn).await?),
        Command::ServerLogs(params) => wire_one("lines", engine.logs(&params.server, params.limit.unwrap_or(LINES))?),
        Command::ServerTest(params) => test(engine, params).await,
        Command::ServersSet(params) => wire(&engine.set_session(params.servers).await?),
        Command::Tools(params) => tools(engine, &params).await,
        Command::ToolCall(params) => call(engine, params, progress, turn).await,
        Command::Policies(params) => policies(engine, params).await,
        Command::Resources(params) => resources(engine, params.server.as_ref()),
        Command::ResourceRead(params) => read_resource(engine, params).await,
        Command::Prompts(params) => prompts(engine, params.server.as_ref()),
        Command::PromptGet(params) => {
            bare(engine.get_prompt(&USER, &params.server, params.name, params.arguments.unwrap_or_default()).await?)
        }
        Command::Complete(params) => {
            let answer =
                engine.complete(&USER, &params.server, params.reference, params.argument, params.context).await?;
            completion(&parsed(&answer)?)
        }
        Command::Approvals(_) => wire_one("approvals", engine.approvals().list()),
        Command::ApprovalResolve(params) => {
            engine.resolve(&params.id, &params.decision, params.note, params.content)?;
            wire(&json!({}))
        }
        Command::Grants(_) => wire_one("grants", engine.grants().await),
        Command::GrantRevoke(params) => {
            if params.id.is_none() && !params.all {
                return Err(Error::InvalidParams("`mcp.grant.revoke` takes an `id` or `all: true`".to_owned()));
            }
            wire_one("revoked", engine.revoke(params.id.as_deref()).await?)
        }
        Command::Config(_) => wire_one("files", files(engine)),
        Command::ConfigReload(_) => wire(&*engine.reload().await?),
        Command::ConfigImport(params) => {
            let commands::ConfigImport { from, path, scope, dry_run } = params;
            wire(&engine.import(ImportRequest { from, path, scope, dry_run }).await?)
        }
        Command::ConfigExport(params) => wire(&engine.export(params.to, params.servers, params.path).await?),
        Command::Templates(_) => wire_one("templates", crate::config::templates::templates()),
        Command::Calls(params) => {
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
            wire_one("calls", calls)
        }
        Command::Metrics(params) => wire_one("servers", engine.metrics(params.server.as_ref()).await?),
        Command::Doctor(_) => wire_one("checks", engine.doctor().await),
    }
}

async fn policy(engine: &Engine, pages: &dyn Pages, params: commands::ToolPolicy) -> Result<Answer> {
    let edited = engine.set_level(pages, params.server, &params.tool, params.level, params.scope).await?;
    let granted = engine.granted().await;
    let info = |(view, offered): &(Arc<ServerView>, Arc<Offered>)| ToolInfo::new(offered, &granted.find(view, offered));
    let tools: Vec<ToolInfo> = edited.answer.iter().map(info).collect();
    with_unsaved(json!({ "tools": tools }), &edited.unsaved)
}

fn saved(edited: Edited<Arc<ServerView>>) -> Result<Answer> {
    with_unsaved(json!({ "server": ServerStatus::from(&*edited.answer) }), &edited.unsaved)
}

/// Names the files that count only when they are saved in the editor.
fn with_unsaved(mut answer: Value, files: &[PathBuf]) -> Result<Answer> {
    if let Some(fields) = answer.as_object_mut().filter(|_| !files.is_empty()) {
        fields.insert("unsaved".to_owned(), files.iter().map(|file| file.display().to_string()).collect());
    }
    wire(&answer)
}

async fn act(engine: &Engine, action: Action, params: commands::ServerOrAll, turn: Turn) -> Result<Answer> {
    if params.server.is_none() && !params.all {
        return Err(Error::InvalidParams("name a `server`, or say `all: true`".to_owned()));
    }
    let views = engine.act(action, params.server, turn).await?;
    wire_one("servers", statuses(views.iter().collect()))
}

async fn test(engine: &Engine, params: commands::ServerTest) -> Result<Answer> {
    let report = match (params.server, params.config) {
        (Some(server), None) => engine.test_server(server).await?,
        (None, Some(config)) => engine.test_config(config).await?,
        _ => return Err(Error::InvalidParams("`mcp.server.test` takes either a `server` or a `config`".to_owned())),
    };
    wire(&report)
}

async fn tools(engine: &Engine, params: &commands::Tools) -> Result<Answer> {
    let granted = engine.granted().await;
    let snapshot = engine.now();
    let mut tools = Vec::new();
    for view in snapshot.select(params.server.as_ref())? {
        let info = |offered: &Arc<Offered>| ToolInfo::new(offered, &granted.find(view, offered));
        if params.all {
            tools.extend(view.tools.values().map(info));
        } else {
            tools.extend(view.shown_tools().map(info));
        }
    }
    wire_one("tools", tools)
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
        .call(Wish {
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
    wire_one("policies", policies)
}

/// A tool by its short name, or by its whole name, which says its server already.
fn one_tool(engine: &Engine, server: Option<ServerName>, tool: Option<String>) -> (Option<ServerName>, Option<String>) {
    match tool.as_deref().and_then(ToolId::parse).map(|id| engine.now().meant(id)) {
        Some(id) => (server.or(Some(id.server)), Some(id.tool.to_string())),
        None => (server, tool),
    }
}

fn resources(engine: &Engine, server: Option<&ServerName>) -> Result<Answer> {
    let snapshot = engine.now();
    let views = snapshot.select(server)?;
    let resources: Vec<Value> =
        views.iter().flat_map(|view| view.resources().iter().map(|each| owned(view, &each.raw))).collect();
    let templates: Vec<Value> =
        views.iter().flat_map(|view| view.templates().iter().map(|each| owned(view, &each.raw))).collect();
    wire(&json!({ "resources": resources, "templates": templates }))
}

fn prompts(engine: &Engine, server: Option<&ServerName>) -> Result<Answer> {
    let snapshot = engine.now();
    let views = snapshot.select(server)?;
    let prompts: Vec<Value> =
        views.iter().flat_map(|view| view.prompts().iter().map(|each| owned(view, &each.raw))).collect();
    wire_one("prompts", prompts)
}

fn files(engine: &Engine) -> Vec<ConfigFile> {
    engine.loaded().borrow().files.iter().map(ConfigFile::from).collect()
}

/// What a server sent, with the server's name in it.
fn owned(view: &ServerView, raw: &Value) -> Value {
    let mut fields = raw.as_object().cloned().unwrap_or_default();
    fields.insert("server".to_owned(), json!(view.definition.name));
    Value::Object(fields)
}

fn completion(answer: &Value) -> Result<Answer> {
    let completion = answer.get("completion").unwrap_or(answer);
    wire(&json!({
        "values": completion.get("values").cloned().unwrap_or_else(|| json!([])),
        "hasMore": completion.get("hasMore").and_then(Value::as_bool).unwrap_or(false),
    }))
}

fn statuses(views: Vec<&Arc<ServerView>>) -> Vec<ServerStatus> {
    views.into_iter().map(|view| ServerStatus::from(&**view)).collect()
}

fn one(view: Arc<ServerView>) -> Result<Answer> {
    wire_one("server", ServerStatus::from(&*view))
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

/// An answer of one field.
fn wire_one<T: Serialize>(field: &'static str, value: T) -> Result<Answer> {
    wire(&BTreeMap::from([(field, value)]))
}
