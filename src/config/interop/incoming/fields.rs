//! The keys of a foreign entry. Each is taken once, so that unused keys can be listed in a note.

use serde_json::{Map, Value};

use crate::config::interop::Dialect;
use crate::config::interop::notes::Notes;
use crate::config::interop::references;

/// Internal keys of other programs, which need no note.
const PRIVATE: &[&str] = &["gallery", "version", "source", "metadata", "remoteConfigured", "$schema", "alwaysLoad"];

pub struct Fields<'a> {
    pub dialect: Dialect,
    pub left: Map<String, Value>,
    pub notes: &'a mut Notes,
    /// Keys of nested objects that have no equivalent here.
    unknown: Vec<String>,
}

impl<'a> Fields<'a> {
    pub fn new(dialect: Dialect, entry: Map<String, Value>, notes: &'a mut Notes) -> Self {
        // A key with `null` is the same as a missing key.
        let left = entry.into_iter().filter(|(_, value)| !value.is_null()).collect();
        Self { dialect, left, notes, unknown: Vec::new() }
    }

    pub fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.left.remove(key)
    }

    /// Moves the keys of a nested object to the entry, unless it already has them.
    pub fn flatten(&mut self, key: &str) {
        if let Some(Value::Object(inner)) = self.take_object(key) {
            self.merge(inner);
        }
    }

    pub fn merge(&mut self, inner: Map<String, Value>) {
        for (key, value) in inner {
            self.left.entry(key).or_insert(value);
        }
    }

    /// Takes a value if it is an object.
    pub fn take_object(&mut self, key: &str) -> Option<Value> {
        self.left.get(key).is_some_and(Value::is_object).then(|| self.take(key))?
    }

    pub fn object(&mut self, key: &str) -> Option<Map<String, Value>> {
        match self.take_object(key) {
            Some(Value::Object(map)) => Some(map),
            _ => None,
        }
    }

    pub fn list(&mut self, key: &str) -> Vec<Value> {
        match self.left.get(key) {
            Some(Value::Array(_)) => match self.take(key) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let flag = self.left.get(key)?.as_bool()?;
        self.take(key);
        Some(flag)
    }

    /// A string without references.
    pub fn plain_text(&mut self, key: &str) -> Option<String> {
        self.left.get(key).is_some_and(Value::is_string).then(|| self.take(key))?.as_ref().and_then(text_of)
    }

    /// A string, with its references converted to our syntax.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let text = text_of(&value).ok_or_else(|| format!("its `{key}` is not a string"))?;
        self.convert(&text).map(Some)
    }

    pub fn texts(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| {
                    self.convert(&text_of(item).ok_or_else(|| format!("its `{key}` is not a list of strings"))?)
                })
                .collect(),
            Some(_) => Err(format!("its `{key}` is not a list")),
        }
    }

    pub fn convert(&mut self, text: &str) -> Result<String, String> {
        references::to_ours(self.dialect, text, self.notes)
    }

    /// Remembers the unknown keys of a nested object for [`Self::note_unused`].
    pub fn note_unknown(&mut self, key: &str, inner: &Map<String, Value>, known: &[&str]) {
        let unknown = inner.iter().filter(|(name, value)| !value.is_null() && !known.contains(&name.as_str()));
        self.unknown.extend(unknown.map(|(name, _)| format!("`{key}.{name}`")));
    }

    /// Adds a note about all keys that were not used.
    pub fn note_unused(&mut self) {
        let mut rest = std::mem::take(&mut self.unknown);
        rest.extend(self.left.keys().filter(|key| !PRIVATE.contains(&key.as_str())).map(|key| format!("`{key}`")));
        rest.sort();
        self.notes.add_list("not imported (no equivalent in mcp-sidecar)", &rest);
    }
}

/// A string, or a number or boolean without quotes.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
