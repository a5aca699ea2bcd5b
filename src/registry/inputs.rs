//! Texts of strangers in a definition. A fixed text must not refer to anything of the user, and what the user enters
//! becomes an entry of `inputs`.

use serde_json::{Value, json};

use super::answer;
use crate::text::one_line;

const MAX_TEXT: usize = 300;
const MAX_ID: usize = 60;

/// The inputs of one definition.
pub(super) struct Inputs {
    /// The name of the server: inputs of several servers are in one list.
    server: String,
    pub entries: Vec<Value>,
}

/// What an input says about itself.
#[derive(Default)]
pub(super) struct About<'a> {
    pub description: Option<&'a str>,
    pub default: Option<&'a str>,
    pub is_secret: bool,
    pub choices: &'a [String],
}

impl<'a> From<&'a answer::Input> for About<'a> {
    fn from(input: &'a answer::Input) -> Self {
        let answer::Input { description, default, is_secret, choices, is_required: _, value: _ } = input;
        Self { description: description.as_deref(), default: default.as_deref(), is_secret: *is_secret, choices }
    }
}

impl Inputs {
    pub fn new(server: &str) -> Self {
        Self { server: server.to_owned(), entries: Vec::new() }
    }

    /// A reference to the answer of the user. Asking for the same name twice asks the user once.
    pub fn ask(&mut self, name: &str, about: &About<'_>) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let part: String = name.chars().map(plain).take(MAX_ID).collect();
        let part = part.trim_matches('-');
        let id = format!("{}-{}", self.server, if part.is_empty() { "value" } else { part });
        let known = |entry: &Value| entry.get("id").and_then(Value::as_str) == Some(&id);
        if !self.entries.iter().any(known) {
            self.entries.push(entry(&id, name, about));
        }
        format!("${{input:{id}}}")
    }
}

fn entry(id: &str, name: &str, about: &About<'_>) -> Value {
    let description = about.description.filter(|text| !text.trim().is_empty()).unwrap_or(name);
    let kind = if about.choices.is_empty() { "promptString" } else { "pickString" };
    let mut entry = json!({ "id": id, "type": kind, "description": one_line(description, MAX_TEXT) });
    let mut put = |key: &str, value: Value| {
        if let Some(fields) = entry.as_object_mut() {
            fields.insert(key.to_owned(), value);
        }
    };
    if about.is_secret {
        put("password", json!(true));
    }
    let choices: Vec<&String> = about.choices.iter().filter(|choice| fixed(choice).is_ok()).collect();
    if !choices.is_empty() {
        put("options", json!(choices));
    }
    if let Some(default) = about.default.filter(|text| !about.is_secret && fixed(text).is_ok()) {
        put("default", json!(default));
    }
    entry
}

/// A text as it is. `${…}` would be expanded here, to a secret of the user for example.
pub(super) fn fixed(text: &str) -> Result<String, String> {
    let shown = one_line(text, 80);
    if text.contains("${") {
        return Err(format!("`{shown}` contains `${{`, which would be replaced by one of your values"));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("`{shown}` contains a control character"));
    }
    Ok(text.to_owned())
}
