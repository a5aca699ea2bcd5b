//! Code actions outside of config files: the `actions` of the config, and tools that take the selection.

use serde_json::{Map, Value, json};

use super::actions::{CodeAction, Effect, Kind};
use super::command::Command;
use crate::config::spec::Action;
use crate::engine::snapshot::{OfferedTool, Snapshot};

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

/// The actions for a file of this type. `place` contains the `uri` and `range` for the command.
pub fn actions(actions: &[Action], filetype: &str, place: &Value, any_tool: bool) -> Vec<CodeAction> {
    let code_action = |title: &str, action: Option<&str>| {
        let mut params = place.clone();
        if let Some(fields) = params.as_object_mut() {
            fields.insert("action".to_owned(), json!(action));
        }
        let effect = Effect::Run(Command { name: "mcp.action.run", params });
        CodeAction { title: title.to_owned(), kind: Kind::Run, effect, problem: None }
    };
    let matching = actions.iter().filter(|action| applies_to(action, filetype));
    let mut actions: Vec<CodeAction> = matching.map(|action| code_action(&action.title, Some(&action.title))).collect();
    if any_tool {
        actions.push(code_action("Call MCP tool…", None));
    }
    actions
}

pub fn applies_to(action: &Action, filetype: &str) -> bool {
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
            file: "/w/x.rs".to_owned(),
            line: "let x;".to_owned(),
            ..EditorContext::default()
        };
        let arguments = json!({ "q": "${selection}!", "deep": ["${line} in ${file}", "${HOME} ${", 5] });
        assert_eq!(
            fill(&arguments, &context),
            json!({ "q": "a ${file} b!", "deep": ["let x; in /w/x.rs", "${HOME} ${", 5] })
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
