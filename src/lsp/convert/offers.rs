//! Lenses, hints and actions in LSP's words.

use std::collections::HashMap;

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

impl Places {
    pub fn lens(&self, lens: &Lens) -> CodeLens {
        let command = command(&lens.title, &lens.command);
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

    /// An action for the menu. `told` are the diagnostics that the editor asks about; an action that removes one of
    /// them says so.
    pub fn offer(&self, offer: &Offer, uri: &Url, told: &[Diagnostic]) -> CodeAction {
        let removed = offer.problem.as_ref().map(|problem| self.among(problem, told)).unwrap_or_default();
        let mut action = CodeAction {
            title: offer.title.clone(),
            kind: Some(kind(offer.kind)),
            is_preferred: (offer.kind == Kind::QuickFix).then_some(true),
            diagnostics: (!removed.is_empty()).then_some(removed),
            ..CodeAction::default()
        };
        match &offer.deed {
            Deed::Run(run) => action.command = Some(command(&offer.title, run)),
            Deed::Edit(edits) => {
                let edit = |edit: &crate::config::problem::TextEdit| TextEdit {
                    range: self.range(&edit.span),
                    new_text: edit.text.clone(),
                };
                let changes = HashMap::from([(uri.clone(), edits.iter().map(edit).collect())]);
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
        false => actions.filter_map(|action| action.command).map(CodeActionOrCommand::Command).collect(),
    }
}

fn command(title: &str, command: &ide::command::Command) -> Command {
    Command { title: title.to_owned(), command: command.name.to_owned(), arguments: Some(vec![command.params.clone()]) }
}

fn kind(kind: Kind) -> CodeActionKind {
    match kind {
        Kind::QuickFix => CodeActionKind::QUICKFIX,
        Kind::Rewrite => CodeActionKind::REFACTOR_REWRITE,
        // Not `source`: editors keep those out of the menu at the cursor.
        Kind::Run => CodeActionKind::new("refactor.mcp"),
    }
}
