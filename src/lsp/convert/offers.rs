//! Lenses, hints and actions in LSP's words.

use std::collections::HashMap;

use serde_json::{Value, json};
use tower_lsp::lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeLens, Command, Diagnostic, InlayHint, InlayHintKind,
    InlayHintLabel, InlayHintTooltip, NumberOrString, TextEdit, Url, WorkspaceEdit,
};

use super::Places;
use crate::config::Problem;
use crate::ide;
use crate::ide::actions::{Deed, Kind, Offer};
use crate::ide::hints::Hint;
use crate::ide::lenses::Lens;

/// Where a lens or an action is shown.
pub struct Shown<'a> {
    pub uri: &'a Url,
    pub version: i32,
    /// The editor does nothing by itself with the answer of a command: the outcome has to be told.
    pub plain: bool,
}

impl Places {
    pub fn lens(&self, lens: &Lens, shown: &Shown<'_>) -> CodeLens {
        let command = command(&lens.title, &lens.command, shown);
        CodeLens { range: self.range(&lens.span), command: Some(command), data: None }
    }

    pub fn hint(&self, hint: &Hint) -> InlayHint {
        InlayHint {
            position: self.position(hint.at),
            label: InlayHintLabel::String(hint.label.clone()),
            kind: Some(InlayHintKind::TYPE),
            text_edits: None,
            tooltip: hint.tooltip.clone().map(InlayHintTooltip::String),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        }
    }

    /// Actions for the menu. `told` are the diagnostics that the editor asks about; an action that removes one of
    /// them says so.
    pub fn offers(&self, offers: &[Offer], shown: &Shown<'_>, told: &[Diagnostic]) -> Vec<CodeAction> {
        let action = |offer: &Offer| CodeAction {
            is_preferred: offer.is_preferred(offers).then_some(true),
            ..self.offer(offer, shown, told)
        };
        offers.iter().map(action).collect()
    }

    fn offer(&self, offer: &Offer, shown: &Shown<'_>, told: &[Diagnostic]) -> CodeAction {
        let removed = offer.problem.as_ref().map(|problem| self.among(problem, told)).unwrap_or_default();
        let mut action = CodeAction {
            title: offer.title.clone(),
            kind: Some(kind(offer.kind)),
            diagnostics: (!removed.is_empty()).then_some(removed),
            ..CodeAction::default()
        };
        match &offer.deed {
            Deed::Run(run) => action.command = Some(command(&offer.title, run, shown)),
            Deed::Keep(span) => {
                let params = json!({ "uri": shown.uri, "range": self.range(span) });
                let keep = ide::command::Command { name: "mcp.secret.keep", params };
                action.command = Some(command(&offer.title, &keep, shown));
            }
            Deed::Edit(edits) => {
                let edit = |edit: &crate::config::problem::TextEdit| TextEdit {
                    range: self.range(&edit.span),
                    new_text: edit.text.clone(),
                };
                let changes = HashMap::from([(shown.uri.clone(), edits.iter().map(edit).collect())]);
                action.edit = Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() });
            }
        }
        action
    }

    fn among(&self, problem: &Problem, told: &[Diagnostic]) -> Vec<Diagnostic> {
        let (range, code) = (self.range(&problem.span), Some(NumberOrString::String(problem.code.to_owned())));
        told.iter().filter(|each| each.range == range && each.code == code).cloned().collect()
    }
}

/// The actions that the editor asked for, in the form that it knows: one that knows no actions gets bare commands.
pub fn menu(
    actions: Vec<CodeAction>,
    only: Option<&[CodeActionKind]>,
    shown: &Shown<'_>,
    knows_actions: bool,
) -> Vec<CodeActionOrCommand> {
    let wanted = |action: &CodeAction| {
        let kind = action.kind.as_ref().map_or("", CodeActionKind::as_str);
        let within = |only: &CodeActionKind| {
            let only = only.as_str();
            only.is_empty() || kind == only || kind.strip_prefix(only).is_some_and(|rest| rest.starts_with('.'))
        };
        only.is_none_or(|kinds| kinds.is_empty() || kinds.iter().any(within))
    };
    let actions = actions.into_iter().filter(wanted);
    match knows_actions {
        true => actions.map(CodeActionOrCommand::CodeAction).collect(),
        false => actions.filter_map(|action| bare(action, shown.version)).map(CodeActionOrCommand::Command).collect(),
    }
}

/// An action as a command and nothing else: an edit becomes a command that has the edit made.
fn bare(action: CodeAction, version: i32) -> Option<Command> {
    if action.command.is_some() {
        return action.command;
    }
    let (uri, edits) = action.edit?.changes?.into_iter().next()?;
    let params = json!({ "uri": uri, "version": version, "edits": edits, "label": action.title });
    Some(Command { title: action.title, command: "mcp.edit.apply".to_owned(), arguments: Some(vec![params]) })
}

fn command(title: &str, command: &ide::command::Command, shown: &Shown<'_>) -> Command {
    let mut params = command.params.clone();
    if let Some(fields) = params.as_object_mut() {
        if fields.get("uri").is_some_and(Value::is_null) {
            fields.insert("uri".to_owned(), json!(shown.uri));
        }
        if shown.plain {
            fields.insert("show".to_owned(), json!(true));
        }
    }
    Command { title: title.to_owned(), command: command.name.to_owned(), arguments: Some(vec![params]) }
}

fn kind(kind: Kind) -> CodeActionKind {
    match kind {
        Kind::QuickFix => CodeActionKind::QUICKFIX,
        Kind::Rewrite => CodeActionKind::REFACTOR_REWRITE,
        // Not `source`: editors keep those out of the menu at the cursor.
        Kind::Run => CodeActionKind::new("refactor.mcp"),
    }
}
