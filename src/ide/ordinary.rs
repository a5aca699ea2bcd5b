//! What ordinary files are offered: the `actions` of the config, and tools that can take the selection.

use serde_json::{Map, Value, json};

use super::actions::{Deed, Kind, Offer};
use super::command::Command;
use crate::config::spec::Action;
use crate::engine::snapshot::{OfferedTool, Snapshot};

/// A place in an ordinary file, as an action's arguments may speak of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub selection: String,
    pub word: String,
    pub line: String,
    pub file: String,
    pub relative_file: String,
    pub filetype: String,
    pub workspace_folder: String,
}

/// The actions for a file of this type. `place` is what each command is told about where it was chosen: `uri`, `range`.
pub fn offers(actions: &[Action], filetype: &str, place: &Value, any_tool: bool) -> Vec<Offer> {
    let offer = |title: &str, action: Option<&str>| {
        let mut params = place.clone();
        if let Some(fields) = params.as_object_mut() {
            fields.insert("action".to_owned(), json!(action));
        }
        let deed = Deed::Run(Command { name: "mcp.action.run", params });
        Offer { title: title.to_owned(), kind: Kind::Run, deed, problem: None }
    };
    let fitting = actions.iter().filter(|action| fits(action, filetype));
    let mut offers: Vec<Offer> = fitting.map(|action| offer(&action.title, Some(&action.title))).collect();
    if any_tool {
        offers.push(offer("Call MCP tool…", None));
    }
    offers
}

pub fn fits(action: &Action, filetype: &str) -> bool {
    action.filetypes.is_empty() || action.filetypes.iter().any(|wanted| wanted.eq_ignore_ascii_case(filetype))
}

/// The arguments with every placeholder replaced, once: what a selection holds is never taken for a placeholder.
pub fn fill(arguments: &Value, here: &Surroundings) -> Value {
    match arguments {
        Value::String(text) => Value::String(fill_text(text, here)),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, here)).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), fill(value, here))).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, here: &Surroundings) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let known = after.split_once('}').and_then(|(name, behind)| Some((value(name, here)?, behind)));
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

fn value<'a>(name: &str, here: &'a Surroundings) -> Option<&'a str> {
    Some(match name {
        "selection" => &here.selection,
        "word" => &here.word,
        "line" => &here.line,
        "file" => &here.file,
        "relativeFile" => &here.relative_file,
        "filetype" => &here.filetype,
        "workspaceFolder" => &here.workspace_folder,
        _ => return None,
    })
}

/// The word that an offset lies in or at the end of.
pub fn word_at(text: &str, offset: usize) -> &str {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let (before, after) = (text.get(..offset).unwrap_or_default(), text.get(offset..).unwrap_or_default());
    let start = before.len() - before.chars().rev().take_while(|c| part(*c)).map(char::len_utf8).sum::<usize>();
    let end = offset + after.chars().take_while(|c| part(*c)).map(char::len_utf8).sum::<usize>();
    text.get(start..end).unwrap_or_default()
}

/// The tools that need one text and nothing else, each with the name of the argument that takes it.
pub fn takers(snapshot: &Snapshot) -> Vec<(&OfferedTool, &str)> {
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
    fn placeholders_are_replaced_once_and_only_those_that_exist() {
        let here = Surroundings {
            selection: "a ${file} b".to_owned(),
            file: "/w/x.rs".to_owned(),
            line: "let x;".to_owned(),
            ..Surroundings::default()
        };
        let arguments = json!({ "q": "${selection}!", "deep": ["${line} in ${file}", "${HOME} ${", 5] });
        assert_eq!(
            fill(&arguments, &here),
            json!({ "q": "a ${file} b!", "deep": ["let x; in /w/x.rs", "${HOME} ${", 5] })
        );
    }

    #[test]
    fn a_word_is_found_from_inside_and_from_its_end() {
        let text = "let größe = 1;";
        for offset in [4, 6, 11] {
            assert_eq!(word_at(text, offset), "größe");
        }
        assert_eq!(word_at(text, text.len()), "");
    }

    #[test]
    fn a_tool_takes_the_selection_when_it_needs_one_text_and_nothing_else() {
        let taker = |schema: Value| only_text(schema.as_object().unwrap()).map(str::to_owned);
        let text = json!({ "type": "string" });
        assert_eq!(taker(json!({ "properties": { "a": text, "b": {} }, "required": ["a"] })).as_deref(), Some("a"));
        assert_eq!(taker(json!({ "properties": { "a": text } })).as_deref(), Some("a"));
        assert_eq!(taker(json!({ "properties": { "a": text, "b": text } })), None);
        assert_eq!(taker(json!({ "properties": { "a": { "type": "number" } }, "required": ["a"] })), None);
        assert_eq!(taker(json!({})), None);
    }
}
