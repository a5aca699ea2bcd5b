//! Results as they go out: a server's text in the envelope of the agent's era, and our own refusals as results that a
//! model can read.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Error;
use crate::text::{mask, visible};

/// How much of an error a model is shown.
const LONGEST: usize = 8_000;

/// What the newer era asks of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// As the server sent it: before 2026-07-28.
    Plain,
    /// With a `resultType`.
    Typed,
    /// With a `resultType`, and how long it may be kept: not at all.
    Cacheable,
}

impl Shape {
    pub fn apply(self, raw: Arc<RawValue>) -> Arc<RawValue> {
        if self == Self::Plain {
            return raw;
        }
        let has = Has::of(raw.get());
        let mut fields = String::new();
        if !has.result_type {
            fields.push_str(r#""resultType":"complete","#);
        }
        if self == Self::Cacheable && !has.ttl {
            fields.push_str(r#""ttlMs":0,"#);
        }
        if self == Self::Cacheable && !has.scope {
            fields.push_str(r#""cacheScope":"private","#);
        }
        let Some(rest) = raw.get().trim_start().strip_prefix('{').filter(|_| !fields.is_empty()) else { return raw };
        // An object without fields takes no comma.
        let rest = rest.trim_start();
        let fields = if rest.starts_with('}') { fields.trim_end_matches(',') } else { fields.as_str() };
        let text = format!("{{{fields}{rest}");
        RawValue::from_string(text).map_or(raw, Arc::from)
    }
}

/// Which fields are there already. A text that nowhere holds such a word is not read.
#[derive(Default)]
struct Has {
    result_type: bool,
    ttl: bool,
    scope: bool,
}

impl Has {
    fn of(text: &str) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            result_type: Option<serde::de::IgnoredAny>,
            ttl_ms: Option<serde::de::IgnoredAny>,
            cache_scope: Option<serde::de::IgnoredAny>,
        }
        let words = ["\"resultType\"", "\"ttlMs\"", "\"cacheScope\""];
        let may = words.iter().any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some());
        let Some(fields) = may.then(|| serde_json::from_str::<Fields>(text).ok()).flatten() else {
            return Self::default();
        };
        Self {
            result_type: fields.result_type.is_some(),
            ttl: fields.ttl_ms.is_some(),
            scope: fields.cache_scope.is_some(),
        }
    }
}

/// A result in rmcp's own types, for a transport that carries no text. What of a list these cannot read is left out, so
/// that one odd entry does not take the others along.
pub fn typed<T: DeserializeOwned>(raw: &RawValue) -> Result<T, ErrorData> {
    let odd = |error: serde_json::Error| ErrorData::internal_error(format!("the answer cannot be read: {error}"), None);
    let first = match serde_json::from_str(raw.get()) {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(raw.get()) else { return Err(odd(first)) };
    for (key, value) in &mut fields {
        if let Value::Array(items) = value {
            let count = items.len();
            items.retain(|item| serde_json::from_value::<T>(json!({ key: [item] })).is_ok());
            tracing::warn!(list = key, left_out = count - items.len(), "entries that cannot be read");
        }
    }
    serde_json::from_value(Value::Object(fields)).map_err(odd)
}

/// Why a call did not run, as a result that the model reads and can act on.
pub fn refusal(error: &Error) -> CallToolResult {
    let mut text = visible(&mask(&error.to_string()), LONGEST);
    if let Some(violations) = error.violations().filter(|violations| violations.len() > 1) {
        for violation in violations {
            text.push_str(&format!("\n{}: {}", violation.path, visible(&violation.message, 500)));
        }
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The same where only an error of the protocol is possible.
pub fn error(error: &Error) -> ErrorData {
    let text = visible(&mask(&error.to_string()), LONGEST);
    match error {
        Error::InvalidParams(_) | Error::InvalidArguments { .. } | Error::NoServer(_) | Error::NoTool { .. } => {
            ErrorData::invalid_params(text, None)
        }
        Error::NotFound(_) | Error::Missing { .. } => ErrorData::resource_not_found(text, None),
        _ => ErrorData::internal_error(text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(shape: Shape, text: &str) -> String {
        shape.apply(Arc::from(RawValue::from_string(text.to_owned()).unwrap())).get().to_owned()
    }

    #[test]
    fn a_result_of_the_older_era_gets_what_the_newer_one_asks_for() {
        assert_eq!(shaped(Shape::Plain, r#"{"content":[]}"#), r#"{"content":[]}"#);
        assert_eq!(shaped(Shape::Typed, r#"{"content":[]}"#), r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(shaped(Shape::Typed, "{ }"), r#"{"resultType":"complete"}"#);
        assert_eq!(
            shaped(Shape::Cacheable, r#"{"ttlMs":5,"tools":[]}"#),
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5,"tools":[]}"#
        );
    }

    #[test]
    fn one_odd_entry_of_a_list_does_not_take_the_others_along() {
        let text = r#"{"tools":[{"name":"a","inputSchema":{}},{"name":5},{"name":"b","inputSchema":{}}]}"#;
        let listed: rmcp::model::ListToolsResult = typed(&RawValue::from_string(text.to_owned()).unwrap()).unwrap();
        assert_eq!(listed.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(typed::<rmcp::model::ListToolsResult>(RawValue::NULL).is_err());
    }

    #[test]
    fn a_word_inside_the_result_is_not_taken_for_the_field() {
        assert_eq!(
            shaped(Shape::Typed, r#"{"content":[{"resultType":1}]}"#),
            r#"{"resultType":"complete","content":[{"resultType":1}]}"#
        );
        assert_eq!(shaped(Shape::Typed, r#"{"resultType":"complete"}"#), r#"{"resultType":"complete"}"#);
    }
}
