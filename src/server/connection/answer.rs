//! Reads the outer fields of a result: complete, failed, or more input required. The rest stays as it was sent.

use std::collections::BTreeMap;

use rmcp::model::InputResponses;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::model::{CallId, RawJson};
use crate::server::client::Questions;
use crate::server::heavy;

/// A parsed result.
pub enum Answer {
    Complete {
        raw: RawJson,
        is_error: bool,
        content: Content,
    },
    NeedsInput(InputRequired),
    /// A task, which has the result later.
    Task(RawJson),
    /// An unknown kind of result.
    Other(String),
}

/// Whether a tool result has a list of content, as it should.
#[derive(Clone, Copy, PartialEq)]
pub enum Content {
    List,
    Other,
}

/// The input that a server of the newer era requires before it answers.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InputRequired {
    input_requests: Option<BTreeMap<String, InputRequest>>,
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct InputRequest {
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: Option<Value>,
}

/// The input that is sent with the repeated request.
#[derive(Default)]
pub struct Input {
    pub responses: Option<InputResponses>,
    pub state: Option<String>,
}

impl Answer {
    pub fn of(raw: RawJson) -> Self {
        let parts = heavy(raw.get().len(), || raw.parts());
        let is_error = parts.is_error;
        let content = match raw.content() {
            Some(content) if content.starts_with('[') => Content::List,
            _ => Content::Other,
        };
        match parts.result_type.clone().and_then(|range| raw.get().get(range)) {
            Some("\"input_required\"") => Self::NeedsInput(serde_json::from_str(raw.get()).unwrap_or_default()),
            Some("\"task\"") if content == Content::Other => Self::Task(raw),
            Some(other) if other != "\"complete\"" && content == Content::Other => {
                Self::Other(crate::text::one_line(other.trim_matches('"'), 60))
            }
            _ => Self::Complete { raw, is_error, content },
        }
    }
}

impl InputRequired {
    /// Answers one input request after the other.
    pub async fn ask(self, questions: &Questions, call: Option<&CallId>) -> Input {
        let mut responses = InputResponses::new();
        for (key, request) in self.input_requests.unwrap_or_default() {
            let answer =
                match questions.answer(&request.method, request.params, call.into_iter().cloned().collect()).await {
                    Ok(answer) => answer,
                    Err(error) => {
                        json!({ "action": "cancel", "error": { "code": error.code.0, "message": error.message } })
                    }
                };
            responses.insert(key, answer);
        }
        Input { responses: (!responses.is_empty()).then_some(responses), state: self.request_state }
    }
}

/// An empty object.
pub fn empty() -> RawJson {
    RawJson::from(to_raw_value(&Map::new()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
}

/// Ensures that a tool result has a list of content, so that clients can parse it: a bare text or missing content is
/// converted.
pub fn with_content(raw: RawJson, content: Content) -> RawJson {
    if content == Content::List {
        return raw;
    }
    heavy(raw.get().len(), || converted(raw))
}

fn converted(raw: RawJson) -> RawJson {
    let mut result = match serde_json::from_str(raw.get()) {
        Ok(Value::Object(result)) => result,
        Ok(other) => Map::from_iter([("content".to_owned(), other)]),
        Err(_) => return raw,
    };
    let content = match result.remove("content") {
        None | Some(Value::Null) => match result.get("structuredContent") {
            Some(structured) => json!([{ "type": "text", "text": structured.to_string() }]),
            None => json!(other_fields(&result).map(|text| json!({ "type": "text", "text": text })).as_slice()),
        },
        Some(Value::String(text)) => json!([{ "type": "text", "text": text }]),
        Some(block @ Value::Object(_)) => json!([block]),
        Some(Value::Array(blocks)) => Value::Array(blocks),
        Some(other) => json!([{ "type": "text", "text": other.to_string() }]),
    };
    result.insert("content".to_owned(), content);
    to_raw_value(&result).map_or(raw, RawJson::from)
}

/// The fields of a result that has neither content nor structured content, as text.
fn other_fields(result: &Map<String, Value>) -> Option<String> {
    let is_own = |key: &str| !matches!(key, "_meta" | "isError" | "resultType");
    let fields: Map<_, _> =
        result.iter().filter(|(key, _)| is_own(key)).map(|(key, value)| (key.clone(), value.clone())).collect();
    (!fields.is_empty()).then(|| Value::Object(fields).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::from(RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn a_valid_result_keeps_its_original_text() {
        let sent = raw(r#"{"content":[ {"type":"x-new","a":1} ],  "isError":true}"#);
        let Answer::Complete { raw, is_error, content } = Answer::of(sent.clone()) else { panic!("not complete") };
        assert!(is_error);
        assert!(std::ptr::eq(with_content(raw, content).get(), sent.get()));
    }

    #[test]
    fn content_of_any_shape_becomes_a_list() {
        let shown = |text: &str| with_content(raw(text), Content::Other).get().to_owned();
        assert_eq!(shown(r#"{"content":"hi"}"#), r#"{"content":[{"type":"text","text":"hi"}]}"#);
        assert_eq!(shown("{}"), r#"{"content":[]}"#);
        assert_eq!(
            shown(r#"{"isError":false,"a":1}"#),
            r#"{"isError":false,"a":1,"content":[{"type":"text","text":"{\"a\":1}"}]}"#
        );
        assert_eq!(shown("null"), r#"{"content":[]}"#);
        assert_eq!(shown(r#""hi""#), r#"{"content":[{"type":"text","text":"hi"}]}"#);
        assert_eq!(shown(r#"[{"type":"text","text":"a"}]"#), r#"{"content":[{"type":"text","text":"a"}]}"#);
        assert_eq!(shown(r#"{"content":{"type":"text","text":"a"}}"#), r#"{"content":[{"type":"text","text":"a"}]}"#);
    }

    #[test]
    fn an_error_flag_counts_only_when_it_is_true() {
        let flagged = |text: &str| matches!(Answer::of(raw(text)), Answer::Complete { is_error: true, .. });
        assert!(flagged(r#"{"isError":true}"#));
        assert!(!flagged(r#"{"isError":"true"}"#));
        assert!(!flagged(r#"{"content":[{"isError":true}]}"#));
    }
}
