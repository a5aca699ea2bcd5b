//! `textDocument/codeAction`: in a config file what can be done with its servers, in any other file what can be done
//! with the selection.

use serde_json::json;
use tower_lsp::lsp_types::{CodeAction, CodeActionParams, CodeActionResponse};

use super::convert::{self, Places};
use super::look::Look;
use super::seat::Seat;
use crate::ide;

pub fn menu(seat: &Seat, params: &CodeActionParams) -> Option<CodeActionResponse> {
    let uri = &params.text_document.uri;
    let document = seat.documents.get(uri)?;
    let told = &params.context.diagnostics;
    let shown = seat.shown(&document);
    let sheet = seat.sheet(uri);
    let actions: Vec<CodeAction> = match sheet.as_deref().and_then(|sheet| Look::at(seat, sheet)) {
        Some(look) => {
            let places = &look.sheet.places;
            let part = places.span(params.range);
            let offers = ide::actions::actions(&look.page(), &part, &look.problems());
            places.offers(&offers, &shown, told)
        }
        None => {
            let places = Places::new(&document.text, seat.greeting().encoding);
            let snapshot = seat.engine.now();
            let any_tool = !ide::ordinary::takers(&snapshot).is_empty();
            let place = json!({ "uri": uri, "range": params.range });
            let configured = &seat.engine.loaded().borrow().config.actions.clone();
            let offers = ide::ordinary::offers(configured, &document.language, &place, any_tool);
            places.offers(&offers, &shown, told)
        }
    };
    let only = params.context.only.as_deref();
    Some(convert::menu(actions, only, &shown, seat.greeting().supports.code_actions))
}
