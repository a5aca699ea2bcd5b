//! Parses and writes JSON-RPC messages.

use rmcp::model::RequestId;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tower_lsp::jsonrpc::{Error, ErrorCode, Id};

use crate::server::transport::repair;

/// A message from the editor.
#[derive(Debug)]
pub enum Incoming {
    Request {
        id: Id,
        method: String,
        params: Option<Value>,
    },
    Notification {
        method: String,
        params: Option<Value>,
    },
    /// A response to one of our requests.
    Response {
        id: Id,
        result: Result<Value, Error>,
    },
    /// Not a valid message. The error is sent back.
    Invalid {
        id: Id,
        error: Error,
    },
}

/// Parses a message. The parser limits nesting, so no message can exhaust the stack.
pub fn read(body: &[u8]) -> Incoming {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => read_object(object),
        Ok(_) => invalid(Id::Null, "expected a JSON object"),
        Err(cause) => unparsed(body, error(ErrorCode::ParseError, format!("cannot parse JSON: {cause}"))),
    }
}

/// A message that is not valid JSON may still have a readable id, for example if it is nested too deeply. Then the error
/// is sent to the right request.
fn unparsed(body: &[u8], error: Error) -> Incoming {
    let Some(outline) = repair::outline(body, body) else { return Incoming::Invalid { id: Id::Null, error } };
    let id = match outline.id {
        RequestId::Number(number) => Id::Number(number),
        RequestId::String(text) => Id::String(text.to_string()),
    };
    match outline.is_request {
        true => Incoming::Invalid { id, error },
        false => Incoming::Response { id, result: Err(error) },
    }
}

fn read_object(mut object: Map<String, Value>) -> Incoming {
    let id = match object.remove("id") {
        None => None,
        Some(Value::String(text)) => Some(Id::String(text)),
        Some(Value::Null) => Some(Id::Null),
        Some(number) => match number.as_i64() {
            Some(number) => Some(Id::Number(number)),
            None => return invalid(Id::Null, "`id` must be an integer or a string"),
        },
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid(id.unwrap_or_default(), "`jsonrpc` must be \"2.0\"");
    }
    match (object.remove("method"), id) {
        (Some(Value::String(_)), Some(Id::Null)) => invalid(Id::Null, "the `id` of a request must not be null"),
        (Some(Value::String(method)), Some(id)) => Incoming::Request { id, method, params: params(&mut object) },
        (Some(Value::String(method)), None) => Incoming::Notification { method, params: params(&mut object) },
        (Some(_), id) => invalid(id.unwrap_or_default(), "`method` must be a string"),
        (None, Some(id)) if object.contains_key("result") || object.contains_key("error") => {
            Incoming::Response { id, result: result_of(object) }
        }
        (None, id) => invalid(id.unwrap_or_default(), "expected a request, a notification or a response"),
    }
}

/// Some editors send `null` for methods without parameters.
fn params(object: &mut Map<String, Value>) -> Option<Value> {
    object.remove("params").filter(|params| !params.is_null())
}

/// Reads only what is needed, because some editors send additional fields with an error.
fn result_of(mut object: Map<String, Value>) -> Result<Value, Error> {
    match object.remove("error") {
        Some(Value::Object(mut error)) => {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or(ErrorCode::InternalError.code());
            let message = error.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned();
            Err(Error { code: code.into(), message: message.into(), data: error.remove("data") })
        }
        _ => Ok(object.remove("result").unwrap_or_default()),
    }
}

fn invalid(id: Id, message: &'static str) -> Incoming {
    Incoming::Invalid { id, error: error(ErrorCode::InvalidRequest, message.to_owned()) }
}

pub fn error(code: ErrorCode, message: String) -> Error {
    Error { code, message: message.into(), data: None }
}

/// The response to a request of the editor. The result is raw JSON.
pub fn response(id: &Id, result: &Result<Box<RawValue>, Error>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: &'a Id,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Error>,
    }
    encode(&Response { jsonrpc: "2.0", id, result: result.as_deref().ok(), error: result.as_ref().err() })
}

/// A request if it has an id, else a notification.
pub fn call<P: Serialize + ?Sized>(id: Option<i64>, method: &str, params: &P) -> Vec<u8> {
    #[derive(Serialize)]
    struct Call<'a, P: ?Sized> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<i64>,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a P>,
    }
    // Methods without parameters pass `()`, which is not valid as `params`.
    let params = (size_of_val(params) > 0).then_some(params);
    encode(&Call { jsonrpc: "2.0", id, method, params })
}

pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_else(|cause| {
        // Only a type that cannot be serialized gets here. The other side still needs a response.
        tracing::error!(%cause, "cannot serialize a message");
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"cannot serialize the response"}}"#.to_vec()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &str) -> String {
        match read(body.as_bytes()) {
            Incoming::Request { id, method, params } => format!("request {id} {method} {params:?}"),
            Incoming::Notification { method, params } => format!("notification {method} {params:?}"),
            Incoming::Response { id, result } => {
                format!("response {id} {:?}", result.map_err(|error| error.code.code()))
            }
            Incoming::Invalid { id, error } => format!("invalid {id} {} {}", error.code.code(), error.message),
        }
    }

    #[test]
    fn every_kind_of_message_is_parsed() {
        assert_eq!(parsed(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#), "request 1 a None");
        assert_eq!(parsed(r#"{"jsonrpc":"2.0","method":"a"}"#), "notification a None");
        assert_eq!(parsed(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), "response 1 Ok(Null)");
        assert_eq!(
            parsed(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32601,"message":"no","extra":1}}"#),
            "response 1 Err(-32601)"
        );
    }

    #[test]
    fn an_invalid_message_gets_the_right_error_code() {
        assert_eq!(parsed("{").split(": ").next(), Some("invalid null -32700 cannot parse JSON"));
        assert_eq!(parsed("\u{fffd}").split(": ").next(), Some("invalid null -32700 cannot parse JSON"));
        assert_eq!(parsed("[]"), "invalid null -32600 expected a JSON object");
        assert_eq!(parsed(r#"{"id":7,"method":"a"}"#), "invalid 7 -32600 `jsonrpc` must be \"2.0\"");
        assert_eq!(
            parsed(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#),
            "invalid null -32600 `id` must be an integer or a string"
        );
        assert_eq!(
            parsed(r#"{"jsonrpc":"2.0","id":1}"#),
            "invalid 1 -32600 expected a request, a notification or a response"
        );
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{}"#, "[".repeat(200_000));
        assert!(parsed(&deep).starts_with("invalid 1 -32700 cannot parse JSON: recursion limit"));
    }

    #[test]
    fn the_error_of_a_message_that_does_not_parse_has_its_id() {
        let parsed = |body: &str| parsed(body).split(": ").next().map(str::to_owned).unwrap_or_default();
        assert_eq!(
            parsed(r#"{"jsonrpc":"2.0","id":3,"method":"a","params":["\ud83d"]}"#),
            "invalid 3 -32700 cannot parse JSON"
        );
        assert_eq!(
            parsed(r#"{"jsonrpc":"2.0","method":"a","params":[1e400],"id":"x"}"#),
            "invalid \"x\" -32700 cannot parse JSON"
        );
        let deep =
            format!(r#"{{"params":{}1{},"id":4,"method":"a","jsonrpc":"2.0"}}"#, "[".repeat(130), "]".repeat(130));
        assert_eq!(parsed(&deep), "invalid 4 -32700 cannot parse JSON");
        assert_eq!(parsed(r#"{"jsonrpc":"2.0","id":5,"result":"\ud83d"}"#), "response 5 Err(-32700)");
        assert_eq!(
            parsed(r#"{"jsonrpc":"2.0","method":"a","params":["\ud83d"]}"#),
            "invalid null -32700 cannot parse JSON"
        );
    }
}
