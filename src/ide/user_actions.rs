//! Code actions outside of config files: the `actions` of the config, and tools that take the selection.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::actions::{CodeAction, Effect, Kind};
use crate::config::spec::Action;
use crate::engine::approvals::Approval;
use crate::engine::snapshot::{OfferedTool, Snapshot};
use crate::policy::location;
use crate::protocol::commands::{ActionRun, ApprovalShow};
use crate::text::one_line;

/// The longest title in a menu.
const MAX_TITLE: usize = 100;

/// The values of the variables in an action's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EditorContext {
    pub selection: String,
    pub word: String,
    pub line: String,
    pub file: String,
    pub relative_file: String,
    pub filetype: String,
    pub workspace_folder: String,
}

/// An entry of the menu for a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MenuEntry {
    pub title: String,
    /// The id of the action; `None` asks for a tool.
    pub action: Option<String>,
    /// Its `filetypes` name the type of this file, so an editor may announce it by a light bulb. Anything else would show
    /// one on every line of every file.
    pub automatic: bool,
}

impl MenuEntry {
    /// `uri` and `range` say where the command applies.
    pub fn code_action(self, uri: &str, range: &Value) -> CodeAction {
        let Self { title, action, automatic: _ } = self;
        let run = ActionRun { action, uri: uri.to_owned(), range: range.clone(), document: None };
        CodeAction { title, kind: Kind::Run, effect: Effect::Run(run.into()), problem: None }
    }
}

/// The actions for a file of this type. `any_tool` adds an entry that asks for a tool.
pub fn list(actions: &[Action], filetype: &str, any_tool: bool) -> Vec<MenuEntry> {
    let matching = actions.iter().filter(|action| applies_to(action, filetype));
    let entry = |action: &Action| MenuEntry {
        title: title(action),
        action: Some(id(action)),
        automatic: !action.filetypes.is_empty(),
    };
    let ask = any_tool.then(|| MenuEntry { title: "Call MCP tool…".to_owned(), action: None, automatic: false });
    matching.map(entry).chain(ask).collect()
}

/// Shows each question that waits for the user.
pub fn reviews<'a>(approvals: impl Iterator<Item = &'a Approval>) -> Vec<CodeAction> {
    let review = |approval: &Approval| CodeAction {
        title: format!("Review: {}…", one_line(approval.title.trim_end_matches('?'), 100)),
        kind: Kind::Run,
        effect: Effect::Run(ApprovalShow { id: approval.id.clone() }.into()),
        problem: None,
    };
    approvals.map(review).collect()
}

/// The title in the menu. An action of a project names its file, so that it cannot pretend to be the user's own.
pub fn title(action: &Action) -> String {
    let title = one_line(&action.title, MAX_TITLE);
    match action.scope.needs_trust() {
        true => format!("{title} (from {})", location(action.scope, action.file.as_deref(), None)),
        false => title,
    }
}

/// Identifies an action by its file, its position and what it does: an entry of the menu never runs another action.
pub fn id(action: &Action) -> String {
    let Action { title, tool, arguments, filetypes: _, result: _, scope: _, file, line } = action;
    let digest = Sha256::digest(json!([file, line, title, tool, arguments]).to_string());
    format!("action:{}", digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// The action with this id. The user's own actions are also found by their title.
pub fn find<'a>(actions: &'a [Action], wanted: &str, filetype: &str) -> Option<&'a Action> {
    let titled = || actions.iter().filter(|action| !action.scope.needs_trust() && action.title == wanted);
    let by_id = actions.iter().find(|action| id(action) == wanted);
    by_id.or_else(|| titled().find(|action| applies_to(action, filetype))).or_else(|| titled().next())
}

fn applies_to(action: &Action, filetype: &str) -> bool {
    action.filetypes.is_empty() || action.filetypes.iter().any(|wanted| wanted.eq_ignore_ascii_case(filetype))
}

/// Expands the variables in arguments. Values are not expanded again, so a selection may contain `${…}`.
pub fn fill(arguments: &Value, context: &EditorContext) -> Value {
    match arguments {
        Value::String(text) => Value::String(fill_text(text, context)),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, context)).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), fill(value, context))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, context: &EditorContext) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let known = after.split_once('}').and_then(|(name, behind)| Some((value(name, context)?, behind)));
        match known {
            Some((value, behind)) => {
                filled.push_str(value);
                rest = behind;
            }
            None => {
                filled.push_str("${");
                rest = after;
            }
        }
    }
    filled + rest
}

fn value<'a>(name: &str, context: &'a EditorContext) -> Option<&'a str> {
    Some(match name {
        "selection" => &context.selection,
        "word" => &context.word,
        "line" => &context.line,
        "file" => &context.file,
        "relativeFile" => &context.relative_file,
        "filetype" => &context.filetype,
        "workspaceFolder" => &context.workspace_folder,
        _ => return None,
    })
}

/// The word that contains an offset or ends there.
pub fn word_at(text: &str, offset: usize) -> &str {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let (before, after) = (text.get(..offset).unwrap_or_default(), text.get(offset..).unwrap_or_default());
    let start = before.len() - before.chars().rev().take_while(|c| part(*c)).map(char::len_utf8).sum::<usize>();
    let end = offset + after.chars().take_while(|c| part(*c)).map(char::len_utf8).sum::<usize>();
    text.get(start..end).unwrap_or_default()
}

/// The tools that need a single text argument, with the name of the argument.
pub fn text_tools(snapshot: &Snapshot) -> Vec<(&OfferedTool, &str)> {
    let shown = snapshot.servers.values().flat_map(|view| view.shown_tools());
    shown.filter_map(|offered| Some((&**offered, only_text(&offered.tool.input_schema)?))).collect()
}

fn only_text(schema: &Map<String, Value>) -> Option<&str> {
    let properties = schema.get("properties")?.as_object()?;
    let is_text = |name: &str| properties.get(name).and_then(|property| property.get("type")) == Some(&json!("string"));
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    match (required.as_slice(), properties.keys().next()) {
        ([only], _) if is_text(only) => properties.get_key_value(*only).map(|(name, _)| name.as_str()),
        ([], Some(only)) if properties.len() == 1 && is_text(only) => Some(only),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_variables_are_expanded_once() {
        let context = EditorContext {
            selection: "a ${file} b".to_owned(),
            file: "/home/you/shop/x.rs".to_owned(),
            line: "let x;".to_owned(),
            ..EditorContext::default()
        };
        let arguments = json!({ "q": "${selection}!", "deep": ["${line} in ${file}", "${HOME} ${", 5] });
        assert_eq!(
            fill(&arguments, &context),
            json!({ "q": "a ${file} b!", "deep": ["let x; in /home/you/shop/x.rs", "${HOME} ${", 5] })
        );
    }

    #[test]
    fn a_word_is_found_inside_and_at_its_end() {
        let text = "let größe = 1;";
        for offset in [4, 6, 11] {
            assert_eq!(word_at(text, offset), "größe");
        }
        assert_eq!(word_at(text, text.len()), "");
    }

    #[test]
    fn a_tool_that_needs_a_single_text_takes_the_selection() {
        let taker = |schema: Value| only_text(schema.as_object().unwrap()).map(str::to_owned);
        let text = json!({ "type": "string" });
        assert_eq!(taker(json!({ "properties": { "a": text, "b": {} }, "required": ["a"] })).as_deref(), Some("a"));
        assert_eq!(taker(json!({ "properties": { "a": text } })).as_deref(), Some("a"));
        assert_eq!(taker(json!({ "properties": { "a": text, "b": text } })), None);
        assert_eq!(taker(json!({ "properties": { "a": { "type": "number" } }, "required": ["a"] })), None);
        assert_eq!(taker(json!({})), None);
    }
}
