//! Runs the commands about tools and their forms.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::{Answer, answer, wire};
use crate::engine::Engine;
use crate::engine::server_actions::Tone;
use crate::engine::snapshot::OfferedTool;
use crate::model::{Error, Result, ToolId};
use crate::policy::GrantMatch;
use crate::protocol::answers::{CheckedForm, ToolList};
use crate::protocol::commands;
use crate::protocol::types::ToolInfo;
use crate::protocol::{form, server_form};

pub async fn tools(engine: &Engine, params: &commands::Tools) -> Result<Answer> {
    let granted = engine.granted().await;
    let snapshot = engine.now();
    let views = snapshot.select(params.server.as_ref())?;
    let mut tools = Vec::new();
    for view in &views {
        let shown = view.shown_tools().filter(|_| !params.all);
        let all = view.tools.values().filter(|_| params.all);
        tools.extend(shown.chain(all).map(|offered| ToolEntry::of(offered, granted.find(view, offered))));
    }
    wire(&ToolList { tools })
}

/// A tool in a list. Most are rendered once and then only copied: an editor lists them often, and there may be thousands.
#[derive(Serialize)]
#[serde(untagged)]
enum ToolEntry<'a> {
    Rendered(&'a RawValue),
    Info(Box<ToolInfo>),
}

impl<'a> ToolEntry<'a> {
    fn of(offered: &'a OfferedTool, granted: GrantMatch) -> Self {
        let info = || ToolInfo::new(offered, &granted);
        let rendered = match granted {
            GrantMatch::None => offered.listed(|| to_raw_value(&info()).ok()),
            GrantMatch::Active(_) | GrantMatch::Suspended(_) => None,
        };
        rendered.map_or_else(|| Self::Info(Box::new(info())), Self::Rendered)
    }
}

/// The tool with this whole name.
pub fn find_tool(engine: &Engine, name: &str) -> Result<Arc<OfferedTool>> {
    let id = engine.now().resolve_tool(parse_tool(name)?);
    let snapshot = engine.now();
    let view = snapshot.server(&id.server)?;
    match (view.tools.get(&id.tool), view.usable()) {
        (Some(found), _) => Ok(found.clone()),
        (None, Err(error @ Error::Disabled { .. })) => Err(error),
        (None, _) => Err(Error::NoTool { server: id.server, tool: id.tool.to_string() }),
    }
}

/// Waits while the server of the tool is starting: the user may just have added or trusted it.
pub async fn started_tool(engine: &Engine, name: &str) -> Result<Arc<OfferedTool>> {
    let mut snapshots = engine.snapshot();
    loop {
        let snapshot = snapshots.borrow_and_update().clone();
        let starts = |server| snapshot.server(server).is_ok_and(|view| view.summary().tone == Tone::Busy);
        match find_tool(engine, name) {
            Err(Error::NoTool { server, .. }) if starts(&server) => {
                snapshots.changed().await.map_err(|_| Error::Cancelled)?;
            }
            found => return found,
        }
    }
}

pub fn parse_tool(name: &str) -> Result<ToolId> {
    ToolId::parse(name)
        .ok_or_else(|| Error::InvalidParams(format!("`{name}` is not a tool; expected mcp__SERVER__TOOL")))
}

pub async fn check_form(engine: &Engine, params: &commands::FormCheck) -> Result<Answer> {
    let (arguments, problems) = match (&params.tool, &params.approval, &params.server) {
        (None, None, Some(server)) => {
            return answer::<commands::FormCheck>(server_form::check(engine, server, &params.values).await?);
        }
        (Some(tool), None, None) => form::check(&find_tool(engine, tool)?.tool.input_schema, &params.values),
        (None, Some(id), None) => {
            let approvals = engine.approvals().list();
            let schema = approvals.iter().find(|approval| approval.id == *id).and_then(|found| found.schema.as_ref());
            let schema = schema.and_then(Value::as_object);
            let schema = schema.ok_or_else(|| Error::NotFound(format!("no question with a form has the id `{id}`")))?;
            form::check(schema, &params.values)
        }
        _ => {
            return Err(Error::InvalidParams(
                "`mcp.form.check` takes one of `tool`, `approval` and `server`".to_owned(),
            ));
        }
    };
    answer::<commands::FormCheck>(CheckedForm { arguments, problems, ..CheckedForm::default() })
}
