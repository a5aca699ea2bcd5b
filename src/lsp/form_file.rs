//! A form as a TOML file that the user fills in: a comment and a line for each field.

use std::path::Path;

use tempfile::TempPath;

use crate::paths::make_private_folder;
use crate::protocol::form::{Field, FieldKind, Form};
use crate::protocol::types::Object;
use crate::text::{toml_reason, visible};

/// A file that only the user can read. It is deleted when the result is dropped.
pub fn create(folder: &Path, text: &str) -> Option<TempPath> {
    make_private_folder(folder).ok()?;
    let file = tempfile::Builder::new().prefix("answer-").suffix(".toml").tempfile_in(folder).ok()?;
    std::io::Write::write_all(&mut file.as_file(), text.as_bytes()).ok()?;
    Some(file.into_temp_path())
}

/// The file before the user fills it in.
pub fn write(question: &str, form: &Form) -> String {
    let mut file = comment(question);
    file.push_str("#\n# Fill in the values and save this file to answer.\n");
    for field in &form.fields {
        file.push('\n');
        file.push_str(&comment(&about(field)));
        file.push_str(&line(field));
    }
    file
}

/// What the user entered.
pub fn read(text: &str) -> Result<Object, String> {
    toml::from_str(text).map_err(|error| {
        let line =
            error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| before.lines().count().max(1));
        format!("line {line}: {}", toml_reason(error.message()))
    })
}

fn comment(text: &str) -> String {
    visible(text, usize::MAX).lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect()
}

fn about(field: &Field) -> String {
    let needed = if field.required { "required" } else { "optional" };
    let mut text = format!("{}: {}, {needed}", field.title, field.rule);
    if !field.choices.is_empty() {
        let titles: Vec<&str> = field.choices.iter().map(|choice| choice.title.as_str()).collect();
        text.push_str(&format!("\nChoices: {}", titles.join(", ")));
    }
    if !field.fields.is_empty() {
        let names: Vec<&str> = field.fields.iter().map(|field| field.name.as_str()).collect();
        text.push_str(&format!("\nIts fields: {}", names.join(", ")));
    }
    if let Some(help) = &field.help {
        text.push_str(&format!("\n{help}"));
    }
    text
}

fn line(field: &Field) -> String {
    let is_bare =
        !field.name.is_empty() && field.name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let key = if is_bare { field.name.clone() } else { toml::Value::String(field.name.clone()).to_string() };
    let default = field.default.as_ref().and_then(|default| toml::Value::try_from(default).ok());
    let value = match (default, field.kind) {
        (Some(default), _) => default.to_string(),
        (None, FieldKind::Multiline) => "\"\"\"\n\"\"\"".to_owned(),
        (None, FieldKind::List | FieldKind::Choices) => "[]".to_owned(),
        (None, FieldKind::Object) => object(field),
        (None, _) => "\"\"".to_owned(),
    };
    // An empty text is left out of the answer. An empty list or object would be a part of it.
    let is_sent_empty = matches!(field.kind, FieldKind::List | FieldKind::Choices | FieldKind::Object);
    let off = if is_sent_empty && !field.required && field.default.is_none() { "# " } else { "" };
    format!("{off}{key} = {value}\n")
}

fn object(field: &Field) -> String {
    let inner: Vec<String> = field.fields.iter().map(|field| format!("{} = \"\"", field.name)).collect();
    if inner.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", inner.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_file_shows_every_field_and_reads_back_as_it_was_filled_in() {
        let schema = json!({ "required": ["name", "age"], "properties": {
            "name": { "type": "string", "title": "Your name", "description": "As on\nthe card." },
            "age": { "type": "integer", "minimum": 1 },
            "color": { "enum": ["red", "blue"], "default": "red" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "home town": { "type": "string" },
        } });
        let form = Form::of_schema(schema.as_object().unwrap());
        let file = write("The server `shop` asks you\nWho are you?", &form);
        insta::assert_snapshot!(file, @r#"
        # The server `shop` asks you
        # Who are you?
        #
        # Fill in the values and save this file to answer.

        # Your name: text, required
        # As on
        # the card.
        name = ""

        # age: a whole number, at least 1, required
        age = ""

        # color: one of the choices, optional
        # Choices: red, blue
        color = "red"

        # tags: a list, optional
        # tags = []

        # home town: text, optional
        "home town" = ""
        "#);
        let filled = file.replace("name = \"\"", "name = \"Ada\"").replace("age = \"\"", "age = 7");
        let entered = form.read(&read(&filled).unwrap());
        assert_eq!(Value::Object(entered), json!({ "name": "Ada", "age": 7, "color": "red" }));
        assert!(read("name = \"\"\nage = \n").unwrap_err().starts_with("line 2: "));
    }
}
