//! A server's question to the user, as a form in the terminal with one line for each field.

use serde_json::{Map, Value, json};

use super::engine_client::Question;
use super::style::{Color, Style};
use super::terminal::{self, Echo};
use crate::text::{one_line, visible};

/// The answer as parameters for `mcp.approval.resolve`. The end of the input declines.
pub(super) async fn fill(question: &Question) -> anyhow::Result<Value> {
    let style = Style::of_stderr();
    terminal::eprint(&format!("\n{}\n", style.paint(Color::Heading, &visible(&question.title, 400))))?;
    for line in visible(&question.detail, usize::MAX).lines() {
        terminal::eprint(&format!("  {line}\n"))?;
    }
    if let Some(url) = &question.url {
        let prompt = format!("  open {} in your browser?\n  [y] yes  [n] no: ", visible(url, usize::MAX));
        return Ok(accepted(yes(&prompt).await?, json!({})));
    }
    let properties = question.schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let Some(properties) = properties else {
        if let Some(arguments) = &question.arguments {
            terminal::eprint(&format!("{}\n", visible(&format!("{arguments:#}"), usize::MAX)))?;
        }
        return Ok(accepted(yes("  [y] yes  [n] no: ").await?, json!({})));
    };
    let schema = question.schema.as_ref().unwrap_or(&Value::Null);
    let hidden = question.kind == "input" && schema.get("password") == Some(&json!(true));
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|list| list.iter().any(|each| each == name))
    };
    let mut content = Map::new();
    for (name, property) in properties {
        match field(name, property, required(name), if hidden { Echo::Off } else { Echo::On }).await? {
            Field::Value(value) => {
                content.insert(name.clone(), value);
            }
            Field::Empty => {}
            Field::Declined => return Ok(json!({ "decision": "decline" })),
        }
    }
    Ok(accepted(true, Value::Object(content)))
}

enum Field {
    Value(Value),
    Empty,
    Declined,
}

/// Asks for one field until the input is valid.
async fn field(name: &str, property: &Value, required: bool, echo: Echo) -> anyhow::Result<Field> {
    let text = |key: &str| property.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let label = one_line(text("title").or(text("description")).unwrap_or(name), 200);
    let choices: Vec<&str> =
        property.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let kind = text("type").unwrap_or("string");
    let hint = match (choices.is_empty(), kind) {
        (false, _) => format!(" ({})", one_line(&choices.join(", "), 400)),
        (true, "boolean") => " (yes or no)".to_owned(),
        (true, "integer" | "number") => " (a number)".to_owned(),
        _ => String::new(),
    };
    let default = property.get("default").filter(|default| !default.is_null());
    let default_hint = default.map(|default| one_line(&format!(" [{default}]"), 100)).unwrap_or_default();
    loop {
        let Some(typed) = terminal::ask(&format!("  {label}{hint}{default_hint}: "), echo).await? else {
            return Ok(Field::Declined);
        };
        match (typed.trim(), default) {
            ("", Some(default)) => return Ok(Field::Value(default.clone())),
            ("", None) if !required => return Ok(Field::Empty),
            ("", None) => terminal::eprint("  this field is required; press Ctrl-D to decline\n")?,
            (typed, _) => match parse(typed, kind, &choices) {
                Some(value) => return Ok(Field::Value(value)),
                None => terminal::eprint(&format!("  this value is not valid{hint}\n"))?,
            },
        }
    }
}

fn parse(typed: &str, kind: &str, choices: &[&str]) -> Option<Value> {
    if !choices.is_empty() {
        return choices.contains(&typed).then(|| json!(typed));
    }
    match kind {
        "boolean" => match typed.to_lowercase().as_str() {
            "y" | "yes" | "true" => Some(json!(true)),
            "n" | "no" | "false" => Some(json!(false)),
            _ => None,
        },
        "integer" => typed.parse::<i64>().ok().map(Value::from),
        "number" => typed.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        _ => Some(json!(typed)),
    }
}

/// Whether the user answers yes. Everything else is no.
async fn yes(prompt: &str) -> anyhow::Result<bool> {
    let typed = terminal::ask(prompt, Echo::On).await?.unwrap_or_default();
    Ok(matches!(typed.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn accepted(yes: bool, content: Value) -> Value {
    if yes { json!({ "decision": "accept", "content": content }) } else { json!({ "decision": "decline" }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_converted_to_the_type_of_the_field() {
        assert_eq!(parse("7", "integer", &[]), Some(json!(7)));
        assert_eq!(parse("7.5", "integer", &[]), None);
        assert_eq!(parse("inf", "number", &[]), None);
        assert_eq!(parse("Yes", "boolean", &[]), Some(json!(true)));
        assert_eq!(parse("7", "string", &[]), Some(json!("7")));
        assert_eq!(parse("red", "string", &["red", "blue"]), Some(json!("red")));
        assert_eq!(parse("green", "string", &["red", "blue"]), None);
    }
}
