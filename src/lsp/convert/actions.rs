//! Converts code lenses, inlay hints and code actions.

use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeLens, Command, Diagnostic, InlayHint, InlayHintKind,
    InlayHintLabel, InlayHintTooltip, NumberOrString, Url, WorkspaceEdit,
};
use serde_json::{Value, json};

use super::PositionMap;
use crate::config::Problem;
use crate::ide::actions::{self, Effect, Kind};
use crate::ide::hints::Hint;
use crate::ide::lenses::{Lens, THIS_FILE};
use crate::protocol::actions::Invocation;
use crate::protocol::commands::{Command as _, EditApply, LevelChoose, SecretKeep, TemplateInsert};

/// The buffer that commands of code lenses and code actions refer to.
pub struct CommandTarget<'a> {
    pub uri: &'a Url,
    pub version: Option<i32>,
    /// The editor ignores the response of a command, so we have to show the outcome.
    pub show_outcome: bool,
    /// The editor can apply edits that we send.
    pub can_edit: bool,
}

impl CommandTarget<'_> {
    /// Whether a command can work in this editor.
    pub fn can_run(&self, command: &str) -> bool {
        self.can_edit || ![EditApply::NAME, SecretKeep::NAME, TemplateInsert::NAME].contains(&command)
    }
}

impl PositionMap {
    pub fn lens(&self, lens: &Lens, target: &CommandTarget<'_>) -> CodeLens {
        let command = command(&lens.title, &lens.command, target);
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

    /// Converts code actions. An action that fixes one of the editor's `diagnostics` refers to it.
    pub fn code_actions(
        &self,
        actions: &[actions::CodeAction],
        target: &CommandTarget<'_>,
        diagnostics: &[Diagnostic],
    ) -> Vec<CodeAction> {
        let convert = |action: &actions::CodeAction| CodeAction {
            is_preferred: action.is_preferred(actions).then_some(true),
            ..self.code_action(action, target, diagnostics)
        };
        actions.iter().map(convert).collect()
    }

    fn code_action(
        &self,
        action: &actions::CodeAction,
        target: &CommandTarget<'_>,
        diagnostics: &[Diagnostic],
    ) -> CodeAction {
        let fixed = action.problem.as_ref().map(|problem| self.matching(problem, diagnostics)).unwrap_or_default();
        let mut converted = CodeAction {
            title: action.title.clone(),
            kind: Some(kind(action.kind)),
            diagnostics: (!fixed.is_empty()).then_some(fixed),
            ..CodeAction::default()
        };
        match &action.effect {
            Effect::Run(run) => converted.command = Some(command(&action.title, run, target)),
            Effect::StoreSecret(span) => {
                let keep = SecretKeep { uri: target.uri.to_string(), range: json!(self.range(span)) };
                converted.command = Some(command(&action.title, &keep.into(), target));
            }
            Effect::ChooseLevel(span) => {
                let choose = LevelChoose { uri: target.uri.to_string(), range: json!(self.range(span)) };
                converted.command = Some(command(&action.title, &choose.into(), target));
            }
            Effect::Edit(edits) => {
                let edits = edits.iter().map(|edit| self.text_edit(edit)).collect();
                let changes = HashMap::from([(target.uri.clone(), edits)]);
                converted.edit = Some(WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() });
            }
        }
        converted
    }

    fn matching(&self, problem: &Problem, diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
        let (range, code) = (self.range(&problem.span), Some(NumberOrString::String(problem.code.to_string())));
        diagnostics.iter().filter(|each| each.range == range && each.code == code).cloned().collect()
    }
}

/// The actions of the kinds in `only`. An editor without support for code actions gets plain commands.
pub fn menu(
    actions: Vec<CodeAction>,
    only: Option<&[CodeActionKind]>,
    target: &CommandTarget<'_>,
    supports_actions: bool,
) -> Vec<CodeActionOrCommand> {
    let wanted = |action: &CodeAction| {
        let kind = action.kind.as_ref().map_or("", CodeActionKind::as_str);
        let within = |only: &CodeActionKind| {
            let only = only.as_str();
            only.is_empty() || kind == only || kind.strip_prefix(only).is_some_and(|rest| rest.starts_with('.'))
        };
        only.is_none_or(|kinds| kinds.is_empty() || kinds.iter().any(within))
    };
    let can_run = |action: &CodeAction| action.command.as_ref().is_none_or(|command| target.can_run(&command.command));
    let actions = actions.into_iter().filter(wanted).filter(can_run);
    match supports_actions {
        true => actions.map(CodeActionOrCommand::CodeAction).collect(),
        false => {
            let commands = actions.filter_map(|action| as_command(action, target.version));
            commands.filter(|command| target.can_run(&command.command)).map(CodeActionOrCommand::Command).collect()
        }
    }
}

/// A code action as a plain command. An edit becomes a command that applies the edit.
fn as_command(action: CodeAction, version: Option<i32>) -> Option<Command> {
    if action.command.is_some() {
        return action.command;
    }
    let (uri, edits) = action.edit?.changes?.into_iter().next()?;
    let params = json!({ "uri": uri, "version": version, "edits": edits, "label": action.title });
    Some(Command { title: action.title, command: EditApply::NAME.to_owned(), arguments: Some(vec![params]) })
}

fn command(title: &str, invocation: &Invocation, target: &CommandTarget<'_>) -> Command {
    let mut arguments = invocation.arguments.clone();
    if arguments.get("uri").is_some_and(|uri| uri == THIS_FILE) {
        arguments.insert("uri".to_owned(), json!(target.uri));
    }
    if target.show_outcome {
        arguments.insert("show".to_owned(), json!(true));
    }
    Command {
        title: title.to_owned(),
        command: invocation.command.to_owned(),
        arguments: Some(vec![Value::Object(arguments)]),
    }
}

fn kind(kind: Kind) -> CodeActionKind {
    match kind {
        Kind::QuickFix => CodeActionKind::QUICKFIX,
        Kind::Rewrite => CodeActionKind::REFACTOR_REWRITE,
        // Not `source`: editors do not show those in the menu at the cursor.
        Kind::Run => CodeActionKind::new("refactor.mcp"),
    }
}
