//! Headers that repeat parts of the body, from revision 2026-07-28 on, so that a proxy can route a message without
//! reading it: the method, the name, and the arguments that a tool's schema marks.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::json_memory::{each_item, is_light};

const MARK: &str = "x-mcp-header";

/// The path of a marked argument, and its header.
type Marked = Vec<(Vec<String>, String)>;

/// The marked arguments of the tools that a server has listed.
#[derive(Default)]
pub struct MarkedTools(BTreeMap<String, Marked>);

impl MarkedTools {
    /// Reads the marks in a page of `tools/list`. If a tool has invalid marks, returns the response without it.
    pub fn learn(&mut self, answer: &str, is_first_page: bool) -> Option<String> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            result: Page<'a>,
        }
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: &'a RawValue,
        }
        let Answer { result: Page { tools } } = serde_json::from_str(answer).ok()?;
        if is_first_page {
            self.0.clear();
        }
        // Few servers mark anything, and then no tool has to be read.
        memchr::memmem::find(tools.get().as_bytes(), MARK.as_bytes())?;
        let (mut kept, mut is_changed) = (Vec::new(), false);
        each_item(tools.get(), |tool| match self.learn_tool(tool) {
            Ok(()) => kept.push(tool.get()),
            Err(reason) => {
                tracing::warn!(reason, "ignored a tool with invalid `x-mcp-header` values");
                is_changed = true;
            }
        })
        .ok()?;
        let start = (tools.get().as_ptr() as usize).checked_sub(answer.as_ptr() as usize).filter(|_| is_changed)?;
        let after = answer.get(start + tools.get().len()..)?;
        Some(format!("{}[{}]{after}", answer.get(..start)?, kept.join(",")))
    }

    fn learn_tool(&mut self, tool: &RawValue) -> Result<(), &'static str> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tool {
            #[serde(default)]
            name: String,
            #[serde(default)]
            input_schema: Value,
        }
        if memchr::memmem::find(tool.get().as_bytes(), MARK.as_bytes()).is_none() {
            return Ok(());
        }
        if !is_light(tool.get()) {
            return Err("the tool has too many values");
        }
        let Ok(Tool { name, input_schema }) = serde_json::from_str(tool.get()) else { return Ok(()) };
        let marked = marks(&input_schema)?;
        if !marked.is_empty() {
            self.0.insert(name, marked);
        }
        Ok(())
    }

    /// Headers that repeat parts of the body, from revision 2026-07-28 on, so that a proxy can route a message without
    /// reading it: the method, the name, and the arguments that a tool's schema marks.
    pub fn headers(&self, message: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some(method) = message.get("method").and_then(Value::as_str) else { return headers };
        let params = message.get("params").unwrap_or(&Value::Null);
        put(&mut headers, "mcp-method", method);
        let named = match method {
            "tools/call" | "prompts/get" => params.get("name"),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params.get("uri"),
            "tasks/get" | "tasks/update" | "tasks/cancel" => params.get("taskId"),
            _ => None,
        };
        let Some(name) = named.and_then(Value::as_str) else { return headers };
        put(&mut headers, "mcp-name", name);
        let arguments = params.get("arguments").unwrap_or(&Value::Null);
        for (path, header) in self.0.get(name).filter(|_| method == "tools/call").into_iter().flatten() {
            let value = path.iter().try_fold(arguments, |value, key| value.get(key));
            let text = match value {
                Some(Value::String(text)) => text.clone(),
                Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
                _ => continue,
            };
            put(&mut headers, &format!("mcp-param-{header}"), &text);
        }
        headers
    }
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&encoded(value))) {
        headers.insert(name, value);
    }
}

/// Encodes a header value: as base64 if plain text would not arrive unchanged.
fn encoded(value: &str) -> String {
    let non_ascii = value.bytes().any(|byte| !(0x20..=0x7e).contains(&byte));
    let padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let looks_encoded = value.starts_with("=?base64?") && value.ends_with("?=");
    match non_ascii || padded || looks_encoded {
        true => format!("=?base64?{}?=", BASE64_STANDARD.encode(value)),
        false => value.to_owned(),
    }
}

/// The marks of a schema, or why they are invalid: each must be a unique header token on a plain value that is
/// reachable through `properties` alone.
fn marks(schema: &Value) -> Result<Marked, &'static str> {
    if schema.get(MARK).is_some() {
        return Err("`x-mcp-header` on the schema itself");
    }
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), &mut found)?;
    let mut seen = BTreeSet::new();
    match found.iter().all(|(_, header)| seen.insert(header.to_ascii_lowercase())) {
        true => Ok(found),
        false => Err("two `x-mcp-header` values with the same name"),
    }
}

fn walk(schema: &Value, path: &mut Vec<String>, found: &mut Marked) -> Result<(), &'static str> {
    let Some(schema) = schema.as_object() else { return Ok(()) };
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    if let Some(mark) = property.get(MARK) {
                        found.push((path.clone(), valid(mark, property)?.to_owned()));
                    }
                    walk(property, path, found)?;
                    path.pop();
                }
            }
            (MARK, _) | ("default" | "const" | "enum" | "examples", _) => {}
            _ if marked_anywhere(value) => return Err("`x-mcp-header` outside of a property"),
            _ => {}
        }
    }
    Ok(())
}

/// Whether there is a mark in a schema, ignoring example data.
fn marked_anywhere(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.iter().any(|(key, value)| match key.as_str() {
            MARK => true,
            "default" | "const" | "enum" | "examples" => false,
            _ => marked_anywhere(value),
        }),
        Value::Array(items) => items.iter().any(marked_anywhere),
        _ => false,
    }
}

fn valid<'a>(mark: &'a Value, property: &Value) -> Result<&'a str, &'static str> {
    let name = mark.as_str().ok_or("`x-mcp-header` is not a string")?;
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err("`x-mcp-header` is not a header name");
    }
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "integer" | "boolean") => Ok(name),
        _ => Err("`x-mcp-header` on a property that is not a string, an integer or a boolean"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed(schema: Value) -> (MarkedTools, bool) {
        let mut tools = MarkedTools::default();
        let answer = json!({ "result": { "tools": [{ "name": "t", "inputSchema": schema }, { "name": "plain", "inputSchema": {} }] } });
        let changed = tools.learn(&answer.to_string(), true);
        (tools, changed.is_some_and(|text| !text.contains("\"t\"") && text.contains("\"plain\"")))
    }

    fn shown(tools: &MarkedTools, message: Value) -> String {
        let headers = tools.headers(&message);
        let lines: Vec<_> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        lines.join("\n")
    }

    #[test]
    fn the_headers_of_a_call_contain_method_tool_and_marked_arguments() {
        let (tools, dropped) = listed(json!({ "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "deep": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
        } }));
        assert!(!dropped);
        let call = json!({ "method": "tools/call", "params": { "name": "t", "arguments": { "region": "zürich", "deep": { "n": 7 } } } });
        insta::assert_snapshot!(shown(&tools, call), @r"
        mcp-method: tools/call
        mcp-name: t
        mcp-param-region: =?base64?esO8cmljaA==?=
        mcp-param-n: 7
        ");
        insta::assert_snapshot!(shown(&tools, json!({ "method": "ping" })), @"mcp-method: ping");
    }

    #[test]
    fn a_tool_with_invalid_marks_is_dropped_and_no_other() {
        for schema in [
            json!({ "x-mcp-header": "A" }),
            json!({ "properties": { "a": { "type": "string", "x-mcp-header": "" } } }),
            json!({ "properties": { "a": { "type": "string", "x-mcp-header": "a b" } } }),
            json!({ "properties": { "a": { "type": "number", "x-mcp-header": "A" } } }),
            json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" } } }),
            json!({ "properties": { "a": { "type": "array", "items": { "type": "string", "x-mcp-header": "A" } } } }),
            json!({ "$defs": { "d": { "type": "string", "x-mcp-header": "A" } } }),
        ] {
            assert!(listed(schema.clone()).1, "{schema}");
        }
        assert!(!listed(json!({ "properties": { "a": { "type": "string", "default": { "x-mcp-header": 1 } } } })).1);
    }

    #[test]
    fn only_marked_tools_of_the_last_listing_are_kept() {
        let page = |name: &str| {
            let marked = json!({ "properties": { "a": { "type": "string", "x-mcp-header": "A" } } });
            let tools = json!([{ "name": name, "inputSchema": marked }, { "name": "plain", "inputSchema": {} }]);
            json!({ "result": { "tools": tools } }).to_string()
        };
        let mut tools = MarkedTools::default();
        tools.learn(&page("old"), true);
        tools.learn(r#"{"method":"notifications/message"}"#, true);
        assert_eq!(tools.0.keys().collect::<Vec<_>>(), ["old"]);
        tools.learn(&page("one"), true);
        tools.learn(&page("two"), false);
        assert_eq!(tools.0.keys().collect::<Vec<_>>(), ["one", "two"]);
        tools.learn(r#"{"result":{"tools":[]}}"#, true);
        assert!(tools.0.is_empty());
    }
}
