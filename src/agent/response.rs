//! Results for agents: a server's JSON with the fields that the agent's protocol version requires, and our own errors as
//! results that a model can read.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::model::Error;
use crate::text::{mask, visible};

/// The longest error text that is sent to a model.
const LONGEST: usize = 8_000;

/// Which fields a result needs since 2026-07-28.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// None: as the server sent it, before 2026-07-28.
    Plain,
    /// With a `resultType`.
    Typed,
    /// With a `resultType`, and marked as not cacheable.
    Cacheable,
}

impl Shape {
    pub fn apply(self, raw: Arc<RawValue>) -> Arc<RawValue> {
        if self == Self::Plain {
            return raw;
        }
        let present = PresentFields::of(raw.get());
        let mut fields = String::new();
        if !present.result_type {
            fields.push_str(r#""resultType":"complete","#);
        }
        if self == Self::Cacheable && !present.ttl {
            fields.push_str(r#""ttlMs":0,"#);
        }
        if self == Self::Cacheable && !present.scope {
            fields.push_str(r#""cacheScope":"private","#);
        }
        let Some(rest) = raw.get().trim_start().strip_prefix('{').filter(|_| !fields.is_empty()) else { return raw };
        // No comma before an empty object.
        let rest = rest.trim_start();
        let fields = if rest.starts_with('}') { fields.trim_end_matches(',') } else { fields.as_str() };
        let text = format!("{{{fields}{rest}");
        RawValue::from_string(text).map_or(raw, Arc::from)
    }
}

/// Which fields the result already has. It is parsed only if it contains one of the names.
#[derive(Default)]
struct PresentFields {
    result_type: bool,
    ttl: bool,
    scope: bool,
}

impl PresentFields {
    fn of(text: &str) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            result_type: Option<serde::de::IgnoredAny>,
            ttl_ms: Option<serde::de::IgnoredAny>,
            cache_scope: Option<serde::de::IgnoredAny>,
        }
        let names = ["\"resultType\"", "\"ttlMs\"", "\"cacheScope\""];
        let found = names.iter().any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some());
        let Some(fields) = found.then(|| serde_json::from_str::<Fields>(text).ok()).flatten() else {
            return Self::default();
        };
        Self {
            result_type: fields.result_type.is_some(),
            ttl: fields.ttl_ms.is_some(),
            scope: fields.cache_scope.is_some(),
        }
    }
}

/// A result in rmcp's types, for a transport that cannot send raw JSON. Entries of a list that rmcp cannot parse are left
/// out, so that one bad entry does not affect the others.
pub fn typed<T: DeserializeOwned>(raw: &RawValue) -> Result<T, ErrorData> {
    let invalid = |error: serde_json::Error| {
        ErrorData::internal_error(format!("cannot parse the response of the server: {error}"), None)
    };
    let first = match serde_json::from_str(raw.get()) {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(raw.get()) else { return Err(invalid(first)) };
    for (key, value) in &mut fields {
        if let Value::Array(items) = value {
            let count = items.len();
            items.retain(|item| serde_json::from_value::<T>(json!({ key: [item] })).is_ok());
            tracing::warn!(list = key, left_out = count - items.len(), "left out entries that cannot be parsed");
        }
    }
    serde_json::from_value(Value::Object(fields)).map_err(invalid)
}

/// Why a call did not run, as a result that the model can read.
pub fn refusal(error: &Error) -> CallToolResult {
    let mut text = visible(&mask(&error.to_string()), LONGEST);
    if let Some(violations) = error.violations().filter(|violations| violations.len() > 1) {
        for violation in violations {
            text.push_str(&format!("\n{}: {}", violation.path, visible(&violation.message, 500)));
        }
    }
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The same as a protocol error, where a result is not possible.
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
    fn required_fields_are_added() {
        assert_eq!(shaped(Shape::Plain, r#"{"content":[]}"#), r#"{"content":[]}"#);
        assert_eq!(shaped(Shape::Typed, r#"{"content":[]}"#), r#"{"resultType":"complete","content":[]}"#);
        assert_eq!(shaped(Shape::Typed, "{ }"), r#"{"resultType":"complete"}"#);
        assert_eq!(
            shaped(Shape::Cacheable, r#"{"ttlMs":5,"tools":[]}"#),
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5,"tools":[]}"#
        );
    }

    #[test]
    fn one_invalid_entry_of_a_list_does_not_affect_the_others() {
        let text = r#"{"tools":[{"name":"a","inputSchema":{}},{"name":5},{"name":"b","inputSchema":{}}]}"#;
        let listed: rmcp::model::ListToolsResult = typed(&RawValue::from_string(text.to_owned()).unwrap()).unwrap();
        assert_eq!(listed.tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(typed::<rmcp::model::ListToolsResult>(RawValue::NULL).is_err());
    }

    #[test]
    fn a_field_inside_the_content_is_not_mistaken_for_the_result_field() {
        assert_eq!(
            shaped(Shape::Typed, r#"{"content":[{"resultType":1}]}"#),
            r#"{"resultType":"complete","content":[{"resultType":1}]}"#
        );
        assert_eq!(shaped(Shape::Typed, r#"{"resultType":"complete"}"#), r#"{"resultType":"complete"}"#);
    }
}
