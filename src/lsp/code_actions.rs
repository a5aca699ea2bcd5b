//! `textDocument/codeAction`: in a config file, fixes and actions for its servers; in any other file, actions for the
//! selection.

use std::sync::Arc;

use lsp_types::{CodeAction, CodeActionParams, CodeActionResponse, CodeActionTriggerKind};
use serde_json::json;

use super::approval_messages;
use super::convert::{self, PositionMap};
use super::session::EditorSession;
use crate::ide;
use crate::ide::user_actions::MenuEntry;
use crate::model::Result;
use crate::protocol::answers::{ActionEntry, ActionList};
use crate::protocol::commands::Actions;
use crate::protocol::run::{Answer, answer};

pub fn menu(session: &EditorSession, params: &CodeActionParams) -> Option<CodeActionResponse> {
    let uri = &params.text_document.uri;
    let document = session.documents.get(uri)?;
    let diagnostics = &params.context.diagnostics;
    let target = session.command_target(&document);
    let open = session.open_config(uri);
    // Only on request: these would show a light bulb on every line.
    let invoked = params.context.trigger_kind != Some(CodeActionTriggerKind::AUTOMATIC);
    let approvals = session.engine.approvals();
    let waiting = if invoked { approvals.shown_here(&approvals.list()) } else { Vec::new() };
    let has_prompt = session.info().abilities.as_ref().is_some_and(|abilities| abilities.approvals);
    let waiting = waiting.iter().map(Arc::as_ref);
    let shown = waiting.filter(|approval| has_prompt || approval_messages::can_show(approval));
    let mut reviews = ide::user_actions::reviews(shown);
    let actions: Vec<CodeAction> = match open.as_ref().and_then(|open| Some((open, open.view()?))) {
        Some((open, config)) => {
            let part = open.positions.span(params.range);
            let mut actions = ide::actions::actions(&config, &part, &open.problems());
            if invoked {
                actions.extend(ide::actions::tool_calls(&config, &part));
                actions.extend(ide::actions::of_file(&config));
            }
            actions.append(&mut reviews);
            open.positions.code_actions(&actions, &target, diagnostics)
        }
        None => {
            let positions = PositionMap::new(&document.text, session.info().encoding);
            let range = json!(params.range);
            let mut actions = reviews;
            let listed = listed(session, &document.language).into_iter().filter(|each| invoked || each.automatic);
            actions.extend(listed.map(|each| each.code_action(uri.as_str(), &range)));
            positions.code_actions(&actions, &target, diagnostics)
        }
    };
    let only = params.context.only.as_deref();
    Some(convert::menu(actions, only, &target, session.info().supports.code_actions))
}

/// `mcp.actions`: the same for an editor that does not send its texts.
pub fn list(session: &EditorSession, params: &Actions) -> Result<Answer> {
    let entry = |MenuEntry { title, action, automatic }| ActionEntry { title, action, automatic };
    let actions = listed(session, &params.filetype).into_iter().map(entry).collect();
    answer::<Actions>(ActionList { actions })
}

fn listed(session: &EditorSession, filetype: &str) -> Vec<MenuEntry> {
    let any_tool = !ide::user_actions::text_tools(&session.engine.now()).is_empty();
    ide::user_actions::list(&session.engine.loaded().borrow().config.actions, filetype, any_tool)
}
