//! Reads the outer fields of a result: complete, failed, or more input required. The rest stays as it was sent.

use std::collections::BTreeMap;

use rmcp::model::InputResponses;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use crate::model::json_memory::is_light;
use crate::model::{CallId, RawJson, Scanner};
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
            Some("\"input_required\"") => match InputRequired::of(&raw) {
                Some(needed) => Self::NeedsInput(needed),
                None => Self::Other("input_required, with too many values".to_owned()),
            },
            Some("\"task\"") if content == Content::Other => Self::Task(raw),
            Some(other) if other != "\"complete\"" && content == Content::Other => {
                Self::Other(crate::text::one_line(other.trim_matches('"'), 60))
            }
            _ => Self::Complete { raw, is_error, content },
        }
    }
}

impl InputRequired {
    /// `None` if it would take too much memory.
    pub fn of(raw: &RawValue) -> Option<Self> {
        is_light(raw.get()).then(|| serde_json::from_str(raw.get()).unwrap_or_default())
    }

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

/// The text around the content stays as it is: values of the whole result could take fifty times its size.
fn converted(raw: RawJson) -> RawJson {
    let text = raw.get();
    let Some(fields) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
        return to_raw(format!(r#"{{"content":{}}}"#, content_list(text))).unwrap_or(raw);
    };
    let parts = raw.parts();
    let content = match raw.content() {
        None | Some("null") => match parts.structured_content.clone().and_then(|range| text.get(range)) {
            Some(structured) => text_block(&compact(structured)),
            None => other_fields(text).map_or_else(|| "[]".to_owned(), |fields| text_block(&fields)),
        },
        Some(content) => content_list(content),
    };
    let converted = match &parts.content {
        Some(range) => {
            let before = text.get(..range.start).unwrap_or_default();
            let after = text.get(range.end..).unwrap_or_default();
            format!("{before}{content}{after}")
        }
        None if fields.trim().is_empty() => format!(r#"{{"content":{content}}}"#),
        None => format!(r#"{{{fields},"content":{content}}}"#),
    };
    to_raw(converted).unwrap_or(raw)
}

fn to_raw(text: String) -> Option<RawJson> {
    RawValue::from_string(text).ok().map(RawJson::from)
}

/// Any value as a list of content.
fn content_list(value: &str) -> String {
    match value.as_bytes().first() {
        Some(b'[') => value.to_owned(),
        Some(b'{') => format!("[{value}]"),
        Some(b'"') => format!(r#"[{{"type":"text","text":{value}}}]"#),
        _ if value == "null" => "[]".to_owned(),
        _ => text_block(value),
    }
}

/// A list of content that shows a text.
fn text_block(text: &str) -> String {
    format!(r#"[{{"type":"text","text":{}}}]"#, Value::from(text))
}

/// A JSON text without the whitespace between its values.
fn compact(json: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let is_kept = |c: &char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
        in_string || !matches!(c, ' ' | '\n' | '\r' | '\t')
    };
    json.chars().filter(is_kept).collect()
}

/// The fields of a result that has neither content nor structured content, as text.
fn other_fields(result: &str) -> Option<String> {
    let mut fields = String::new();
    Scanner::new(result).object(|scanner, key| {
        let value = scanner.value()?;
        if !matches!(key, "_meta" | "isError" | "resultType" | "content") {
            let separator = if fields.is_empty() { '{' } else { ',' };
            fields.push_str(&format!("{separator}\"{key}\":{}", compact(value.get())));
        }
        Some(value)
    })?;
    (!fields.is_empty()).then(|| fields + "}")
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
        assert_eq!(
            shown(r#"{"structuredContent":{ "a": "x \" y", "b": [1, 2] }, "content": null}"#),
            r#"{"structuredContent":{ "a": "x \" y", "b": [1, 2] }, "content": [{"type":"text","text":"{\"a\":\"x \\\" y\",\"b\":[1,2]}"}]}"#
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
