//! A server's entry as it is written, and how to restore its masked values.

use serde_json::{Map, Value};

use crate::config::tree;

/// The entry of a server as it is written.
pub fn entry(text: &str, key: &str) -> Option<Value> {
    tree::parse(text, usize::MAX).server(key).map(|member| member.value.to_value())
}

/// Replaces masked values that come back unchanged with the values that are written in the file.
pub fn unmasked(new: &Value, old: &Value, shown: &Value) -> Value {
    if new == shown {
        return old.clone();
    }
    match (new, old, shown) {
        (Value::Object(new), Value::Object(old), Value::Object(shown)) => {
            let field = |(key, value): (&String, &Value)| match (old.get(key), shown.get(key)) {
                (Some(old), Some(shown)) => (key.clone(), unmasked(value, old, shown)),
                _ => (key.clone(), value.clone()),
            };
            Value::Object(new.iter().map(field).collect::<Map<_, _>>())
        }
        (Value::Array(new), Value::Array(old), Value::Array(shown)) => {
            let item = |(index, value): (usize, &Value)| match (old.get(index), shown.get(index)) {
                (Some(old), Some(shown)) => unmasked(value, old, shown),
                _ => value.clone(),
            };
            Value::Array(new.iter().enumerate().map(item).collect())
        }
        _ => new.clone(),
    }
}
