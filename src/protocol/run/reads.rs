//! Runs the commands about resources, prompts and completion.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use super::{Answer, answer, wire};
use crate::engine::Engine;
use crate::engine::approvals::AnsweredBy;
use crate::engine::editors::Identity;
use crate::engine::reads::Caller;
use crate::engine::snapshot::ServerView;
use crate::model::{Error, RawJson, Requester, RequesterKind, Result, ServerName};
use crate::policy::AgentAccess;
use crate::protocol::answers::{Completion, PromptList, ResourceList};
use crate::protocol::commands;
use crate::protocol::mcp::{PromptInfo, ResourceInfo};
use crate::protocol::types::Object;

pub fn resources(engine: &Engine, server: Option<&ServerName>) -> Result<Answer> {
    let snapshot = engine.now();
    let views = snapshot.select(server)?;
    let info =
        |view: &ServerView, raw: &Value| ResourceInfo { fields: object(raw), server: view.definition.name.clone() };
    let (mut resources, mut templates) = (Vec::new(), Vec::new());
    for view in views {
        let shows = |uri: &str| snapshot.shows(view, &view.resource(uri), &AgentAccess::default());
        let listed = view.resources().iter().filter(|each| shows(&each.uri));
        resources.extend(listed.map(|each| info(view, &each.raw)));
        let listed = view.templates().iter().filter(|each| shows(&each.uri_template));
        templates.extend(listed.map(|each| info(view, &each.raw)));
    }
    answer::<commands::Resources>(ResourceList { resources, templates })
}

pub fn prompts(engine: &Engine, server: Option<&ServerName>) -> Result<Answer> {
    let snapshot = engine.now();
    let views = snapshot.select(server)?;
    let info =
        |view: &ServerView, raw: &Value| PromptInfo { fields: object(raw), server: view.definition.name.clone() };
    let mut prompts = Vec::new();
    for view in views {
        let shows = |name: &str| snapshot.shows(view, &view.prompt(name), &AgentAccess::default());
        prompts.extend(view.prompts().iter().filter(|each| shows(&each.name)).map(|each| info(view, &each.raw)));
    }
    answer::<commands::Prompts>(PromptList { prompts })
}

/// The fields that a server sent, without those that we set ourselves.
fn object(raw: &Value) -> Object {
    let mut fields = raw.as_object().cloned().unwrap_or_default();
    fields.shift_remove("server");
    fields
}

fn completion(raw: &Value) -> Result<Answer> {
    let completion = raw.get("completion").unwrap_or(raw);
    let values = completion.get("values").and_then(Value::as_array).into_iter().flatten();
    answer::<commands::Complete>(Completion {
        values: values.filter_map(Value::as_str).map(str::to_owned).collect(),
        has_more: completion.get("hasMore").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// A subscription lasts as long as the server runs, because an agent may watch the same resource. If the server does not
/// support subscriptions, the resource is only read.
pub async fn read_resource(engine: &Engine, identity: &Identity, params: commands::ResourceRead) -> Result<Answer> {
    let caller = caller(identity, params.requester);
    if params.subscribe == Some(true) {
        engine.subscribe(caller.clone(), &params.server, &params.uri).await.ok();
    }
    bare(engine.read_resource(caller, &params.server, &params.uri).await?)
}

/// Who reads. A plugin or an agent has to be allowed, like one that calls a tool.
fn caller(identity: &Identity, requester: Option<Requester>) -> Caller {
    match requester.filter(|requester| requester.kind != RequesterKind::User) {
        Some(requester) => Caller { requester, ..Caller::default() },
        None => user(identity),
    }
}

/// The user, who asked for exactly this in an editor or shell. [`check`](super::check) refuses one that a program started.
fn user(identity: &Identity) -> Caller {
    Caller { opened_in: Some(AnsweredBy::Editor(identity.clone()).to_string().into()), ..Caller::default() }
}

fn parsed(raw: &RawValue) -> Result<Value> {
    serde_json::from_str(raw.get()).map_err(|error| Error::Io(error.to_string()))
}

/// The result of a server without fields of newer MCP versions that are not part of this contract.
fn bare(raw: RawJson) -> Result<Answer> {
    let mut fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(raw.get()).map_err(|error| Error::Io(error.to_string()))?;
    fields.remove("resultType");
    wire(&fields)
}

pub async fn get_prompt(engine: &Engine, identity: &Identity, params: commands::PromptGet) -> Result<Answer> {
    let arguments = params.arguments.unwrap_or_default();
    let caller = caller(identity, params.requester);
    bare(engine.get_prompt(caller, &params.server, &params.name, arguments).await?)
}

pub async fn complete(engine: &Engine, identity: &Identity, params: commands::Complete) -> Result<Answer> {
    let commands::Complete { server, reference, argument, context } = params;
    let fields = [("ref", Some(reference)), ("argument", Some(argument)), ("context", context)];
    let fields = fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    completion(&parsed(&engine.complete(user(identity), &server, fields.collect()).await?)?)
}
