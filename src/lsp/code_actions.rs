//! `textDocument/codeAction`: in a config file, fixes and actions for its servers; in any other file, actions for the
//! selection.

use lsp_types::{CodeAction, CodeActionParams, CodeActionResponse};
use serde_json::json;

use super::convert::{self, PositionMap};

use super::session::EditorSession;
use crate::ide;

pub fn menu(session: &EditorSession, params: &CodeActionParams) -> Option<CodeActionResponse> {
    let uri = &params.text_document.uri;
    let document = session.documents.get(uri)?;
    let diagnostics = &params.context.diagnostics;
    let target = session.command_target(&document);
    let open = session.open_config(uri);
    let actions: Vec<CodeAction> = match open.as_ref().and_then(|open| Some((open, open.view()?))) {
        Some((open, config)) => {
            let actions = ide::actions::actions(&config, &open.positions.span(params.range), &open.problems());
            open.positions.code_actions(&actions, &target, diagnostics)
        }
        None => {
            let positions = PositionMap::new(&document.text, session.info().encoding);
            let any_tool = !ide::user_actions::text_tools(&session.engine.now()).is_empty();
            let place = json!({ "uri": uri, "range": params.range });
            let configured = &session.engine.loaded().borrow().config.actions.clone();
            let actions = ide::user_actions::actions(configured, &document.language, &place, any_tool);
            positions.code_actions(&actions, &target, diagnostics)
        }
    };
    let only = params.context.only.as_deref();
    Some(convert::menu(actions, only, &target, session.info().supports.code_actions))
}
