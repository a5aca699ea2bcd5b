//! Makes the entries of lists acceptable to every SDK. Most SDKs reject a whole list because of one odd entry, and an agent
//! would lose all servers behind us. Agents get an entry without its invalid fields. The engine keeps it as it was sent.
//!
//! Each function returns what it changed, as text for the user. `null` means the same as no field, so that is not reported.

use serde_json::{Map, Value, json};

use super::schemas::{self, Removed};
use crate::model::Timestamp;

type Fields = Map<String, Value>;

/// A tool that runs only as a task becomes one that may: we run the task for an agent that does not.
fn task_support(fields: &mut Fields) {
    let support = fields.get_mut("execution").and_then(|execution| execution.get_mut("taskSupport"));
    match support.as_ref().and_then(|support| support.as_str()) {
        Some("required") => {
            if let Some(support) = support {
                *support = json!("optional");
            }
        }
        Some("optional" | "forbidden") => {}
        _ => {
            fields.shift_remove("execution");
        }
    }
}

/// An error says why agents cannot get the tool at all.
pub fn tool(fields: &mut Fields) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    if !matches!(fields.get("inputSchema"), Some(Value::Object(_))) {
        // Reported when the list is parsed.
        fields.insert("inputSchema".to_owned(), json!({ "type": "object" }));
    }
    if let Some(Value::Object(schema)) = fields.get_mut("inputSchema") {
        let removed = schemas::repair(schema, false).map_err(|reason| format!("invalid `inputSchema`: {reason}"))?;
        notes.extend(removed_parts("inputSchema", &removed));
    }
    task_support(fields);
    let mut entry = Object { fields, path: String::new(), notes: &mut notes };
    entry.common();
    entry.keep("outputSchema", "an object", Value::is_object);
    let invalid = match entry.fields.get_mut("outputSchema") {
        Some(Value::Object(schema)) => match schemas::repair(schema, true) {
            Ok(removed) => {
                entry.notes.extend(removed_parts("outputSchema", &removed));
                None
            }
            Err(reason) => Some(reason),
        },
        _ => None,
    };
    if let Some(reason) = invalid {
        entry.remove("outputSchema", &reason);
    }
    entry.nested("annotations", |annotations| {
        annotations.texts(&["title"]);
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            annotations.keep(hint, "a boolean", Value::is_boolean);
        }
    });
    Ok(notes)
}

pub fn prompt(fields: &mut Fields) -> Vec<String> {
    let mut notes = Vec::new();
    let mut entry = Object { fields, path: String::new(), notes: &mut notes };
    entry.common();
    entry.items("arguments", "an argument needs a `name`", |argument| {
        argument.texts(&["title", "description"]);
        argument.keep("required", "a boolean", Value::is_boolean);
        argument.fields.get("name").is_some_and(Value::is_string)
    });
    notes
}

/// A resource, or a template if `key` is `uriTemplate`.
pub fn resource(fields: &mut Fields, key: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let mut entry = Object { fields, path: String::new(), notes: &mut notes };
    entry.common();
    entry.texts(&["mimeType", "name"]);
    if let (None, Some(uri)) = (entry.fields.get("name"), entry.fields.get(key).cloned()) {
        entry.fields.insert("name".to_owned(), uri);
    }
    let size = entry.fields.get("size").filter(|size| !size.is_u64()).and_then(Value::as_f64);
    if let Some(size) = size.filter(|size| size.fract() == 0.0 && (0.0..1e15).contains(size)) {
        entry.fields.insert("size".to_owned(), json!(size as u64));
    }
    entry.keep("size", "a number of bytes", Value::is_u64);
    entry.nested("annotations", |annotations| {
        if let Some(Value::Array(roles)) = annotations.fields.get_mut("audience") {
            roles.retain(|role| role == "user" || role == "assistant");
        }
        annotations.keep("audience", "a list of roles", Value::is_array);
        annotations.keep("priority", "a number from 0 to 1", |priority| {
            priority.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority))
        });
        annotations.keep("lastModified", "a date with a time and an offset", is_date_time);
    });
    notes
}

fn removed_parts(schema: &str, removed: &Removed) -> Option<String> {
    let first = removed.first.as_ref()?;
    let more = if removed.count > 1 { format!(" and {} more", removed.count - 1) } else { String::new() };
    Some(format!("agents get `{schema}` without `{first}`{more}: not all of them accept it"))
}

fn is_date_time(value: &Value) -> bool {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"-:.+TZ".contains(&byte));
    value.as_str().is_some_and(|text| is_plain(text) && !text.contains(":60") && Timestamp::parse(text).is_some())
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

struct Object<'a> {
    fields: &'a mut Fields,
    /// The path to this object, up to the name of a field.
    path: String,
    notes: &'a mut Vec<String>,
}

impl Object<'_> {
    /// The fields that all entries have.
    fn common(&mut self) {
        self.texts(&["title", "description"]);
        self.keep("_meta", "an object", Value::is_object);
        self.items("icons", "an icon needs a `src`", |icon| {
            icon.texts(&["mimeType"]);
            icon.keep("theme", "`light` or `dark`", |theme| theme == "light" || theme == "dark");
            // As in a draft of the specification.
            if let Some(Value::String(sizes)) = icon.fields.get("sizes") {
                let sizes: Vec<&str> = sizes.split_whitespace().collect();
                let sizes = json!(sizes);
                icon.fields.insert("sizes".to_owned(), sizes);
            }
            icon.keep("sizes", "a list of texts", is_texts);
            icon.fields.get("src").is_some_and(Value::is_string)
        });
    }

    fn texts(&mut self, keys: &[&str]) {
        keys.iter().for_each(|key| self.keep(key, "a string", Value::is_string));
    }

    /// Removes a field if it is not valid.
    fn keep(&mut self, key: &str, expected: &str, is_valid: impl Fn(&Value) -> bool) {
        match self.fields.get(key) {
            Some(Value::Null) => drop(self.fields.shift_remove(key)),
            Some(value) if !is_valid(value) => self.remove(key, &format!("expected {expected}")),
            _ => {}
        }
    }

    fn remove(&mut self, key: &str, reason: &str) {
        self.fields.shift_remove(key);
        self.notes.push(format!("agents do not get `{}{key}`: {reason}", self.path));
    }

    fn nested(&mut self, key: &str, conform: impl FnOnce(&mut Object<'_>)) {
        self.keep(key, "an object", Value::is_object);
        if let Some(Value::Object(fields)) = self.fields.get_mut(key) {
            conform(&mut Object { fields, path: format!("{}{key}.", self.path), notes: self.notes });
        }
    }

    /// Keeps the valid items of a list of objects.
    fn items(&mut self, key: &str, needs: &str, is_valid: impl Fn(&mut Object<'_>) -> bool) {
        self.keep(key, "a list", Value::is_array);
        let Some(Value::Array(items)) = self.fields.get_mut(key) else { return };
        let path = format!("{}{key}.", self.path);
        let count = items.len();
        items.retain_mut(|item| match item {
            Value::Object(fields) => is_valid(&mut Object { fields, path: path.clone(), notes: self.notes }),
            _ => false,
        });
        if items.len() < count {
            self.notes.push(format!("agents do not get {} of `{}{key}`: {needs}", count - items.len(), self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(entry: Value) -> Fields {
        entry.as_object().cloned().unwrap()
    }

    #[test]
    fn a_valid_tool_is_not_changed() {
        let before = fields(json!({
            "name": "a", "title": "A", "inputSchema": { "type": "object", "properties": { "x": { "type": "string" } } },
            "outputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true, "own": 1 }, "_meta": { "k": 1 },
            "icons": [{ "src": "data:,", "sizes": ["any"] }], "own": 1,
        }));
        let mut after = before.clone();
        assert_eq!(tool(&mut after), Ok(Vec::new()));
        assert_eq!(after, before);
    }

    #[test]
    fn each_invalid_field_is_removed_and_reported() {
        let mut odd = fields(json!({
            "name": "a", "title": 1, "description": null, "inputSchema": null, "outputSchema": { "type": "array" },
            "annotations": { "readOnlyHint": "yes" }, "_meta": [], "icons": [{ "src": 1 }], "execution": 1,
        }));
        let notes = tool(&mut odd).unwrap();
        let left = json!({ "name": "a", "inputSchema": { "type": "object" }, "annotations": {}, "icons": [] });
        assert_eq!(Value::Object(odd), left);
        assert_eq!(
            notes,
            [
                "agents do not get `title`: expected a string",
                "agents do not get `_meta`: expected an object",
                "agents do not get 1 of `icons`: an icon needs a `src`",
                "agents do not get `outputSchema`: expected the type `object`, found `array`",
                "agents do not get `annotations.readOnlyHint`: expected a boolean",
            ]
        );
        assert!(tool(&mut fields(json!({ "name": "a", "inputSchema": { "type": "string" } }))).is_err());
    }

    #[test]
    fn prompts_and_resources_keep_what_is_valid() {
        let mut odd =
            fields(json!({ "name": "p", "arguments": [{ "name": "a", "required": "yes" }, { "name": 1 }, 2] }));
        assert_eq!(prompt(&mut odd).len(), 2);
        assert_eq!(Value::Object(odd), json!({ "name": "p", "arguments": [{ "name": "a" }] }));
        let annotations = json!({ "audience": ["user", "robot"], "priority": 2, "lastModified": "yesterday" });
        let mut odd = fields(json!({ "uri": "a:b", "name": null, "size": 3.0, "annotations": annotations }));
        assert_eq!(resource(&mut odd, "uri").len(), 2);
        let left = json!({ "uri": "a:b", "size": 3, "annotations": { "audience": ["user"] }, "name": "a:b" });
        assert_eq!(Value::Object(odd), left);
    }
}
