//! The keys of a foreign entry, each taken once, so that what is left over can be told.

use serde_json::{Map, Value};

use crate::config::interop::Dialect;
use crate::config::interop::notes::Notes;
use crate::config::interop::references;

/// Keys that a program writes for itself: nobody misses them.
const PRIVATE: &[&str] = &["gallery", "version", "source", "metadata", "remoteConfigured", "$schema", "alwaysLoad"];

pub struct Fields<'a> {
    pub dialect: Dialect,
    pub left: Map<String, Value>,
    pub notes: &'a mut Notes,
    /// Keys of inner objects that mean nothing here.
    unknown: Vec<String>,
}

impl<'a> Fields<'a> {
    pub fn new(dialect: Dialect, entry: Map<String, Value>, notes: &'a mut Notes) -> Self {
        // `null` says nothing, whatever the key.
        let left = entry.into_iter().filter(|(_, value)| !value.is_null()).collect();
        Self { dialect, left, notes, unknown: Vec::new() }
    }

    pub fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    pub fn take(&mut self, key: &str) -> Option<Value> {
        self.left.remove(key)
    }

    /// The keys of an inner object become keys of the entry, where it has none of that name.
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

    /// Takes a value only when it is an object.
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

    /// A text in which nothing is filled in.
    pub fn plain_text(&mut self, key: &str) -> Option<String> {
        self.left.get(key).is_some_and(Value::is_string).then(|| self.take(key))?.as_ref().and_then(text_of)
    }

    /// A text in our words.
    pub fn text(&mut self, key: &str) -> Result<Option<String>, String> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let text = text_of(&value).ok_or_else(|| format!("its `{key}` is no text"))?;
        self.convert(&text).map(Some)
    }

    pub fn texts(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| self.convert(&text_of(item).ok_or_else(|| format!("its `{key}` holds more than texts"))?))
                .collect(),
            Some(_) => Err(format!("its `{key}` is no list")),
        }
    }

    pub fn convert(&mut self, text: &str) -> Result<String, String> {
        references::to_ours(self.dialect, text, self.notes)
    }

    /// Remembers the keys of an inner object that are none of `known`, for [`Self::note_unused`].
    pub fn note_unknown(&mut self, key: &str, inner: &Map<String, Value>, known: &[&str]) {
        let unknown = inner.iter().filter(|(name, value)| !value.is_null() && !known.contains(&name.as_str()));
        self.unknown.extend(unknown.map(|(name, _)| format!("`{key}.{name}`")));
    }

    /// What nobody asked for is told, so that it is not missed in silence.
    pub fn note_unused(&mut self) {
        let mut rest = std::mem::take(&mut self.unknown);
        rest.extend(self.left.keys().filter(|key| !PRIVATE.contains(&key.as_str())).map(|key| format!("`{key}`")));
        rest.sort();
        self.notes.add_list("not taken over, without a meaning here", &rest);
    }
}

/// A text, or a number or flag that somebody wrote without quotes.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
