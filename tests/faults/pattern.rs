//! Patterns for JSON values. An object matches one with at least these entries, a list one in which each pattern has an
//! element that matches, `null` what is absent. `~text` matches a string that contains the text, `!~text` one that does
//! not. `{ "<": 5 }` and `{ ">": 5 }` compare numbers, `{ "count": 2 }` the length of a list. All else has to be equal.

use serde_json::Value;

pub fn matches(pattern: &Value, value: &Value) -> bool {
    match (pattern, value) {
        (Value::Object(wanted), Value::Number(number)) => wanted.iter().all(|(key, limit)| {
            let (number, limit) = (number.as_f64().unwrap(), limit.as_f64().unwrap());
            if key == "<" { number < limit } else { key == ">" && number > limit }
        }),
        (Value::Object(wanted), Value::Array(list)) => {
            wanted.iter().all(|(key, count)| key == "count" && count.as_u64() == Some(list.len() as u64))
        }
        (Value::Object(wanted), Value::Object(object)) => {
            wanted.iter().all(|(key, wanted)| matches(wanted, object.get(key).unwrap_or(&Value::Null)))
        }
        (Value::Array(wanted), Value::Array(list)) => {
            wanted.iter().all(|wanted| list.iter().any(|each| matches(wanted, each)))
        }
        (Value::String(wanted), Value::String(text)) => match wanted.strip_prefix("!~") {
            Some(part) => !text.contains(part),
            None => wanted.strip_prefix('~').map_or(wanted == text, |part| text.contains(part)),
        },
        (Value::String(wanted), Value::Null) => wanted.starts_with("!~"),
        (wanted, value) => wanted == value,
    }
}

/// Replaces variables such as `$home` in all strings. Longer names have to come first.
pub fn fill(value: &Value, variables: &[(String, String)]) -> Value {
    match value {
        Value::String(text) => {
            let text = fill_text(text, variables);
            // A port is a number.
            match text.strip_prefix("number:").and_then(|number| number.parse::<u64>().ok()) {
                Some(number) => number.into(),
                None => text.into(),
            }
        }
        Value::Array(list) => list.iter().map(|each| fill(each, variables)).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, each)| (key.clone(), fill(each, variables)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

pub fn fill_text(text: &str, variables: &[(String, String)]) -> String {
    variables.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}
