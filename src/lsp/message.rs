//! JSON-RPC messages: bodies taken apart on the way in, put together on the way out.

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
    /// An answer to a request of ours.
    Answer {
        id: Id,
        result: Result<Value, Error>,
    },
    /// Not a message. The error is the answer to it.
    Bad {
        id: Id,
        error: Error,
    },
}

/// Takes a body apart. Nesting is bounded by the parser, so no message can exhaust the stack.
pub fn read(body: &[u8]) -> Incoming {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => read_object(object),
        Ok(_) => bad(Id::Null, "a message is one JSON object"),
        Err(cause) => unread(body, error(ErrorCode::ParseError, format!("not JSON: {cause}"))),
    }
}

/// A message that no parser takes still says by its id who waits: half a character in it, or too many levels.
fn unread(body: &[u8], error: Error) -> Incoming {
    let Some(outline) = repair::outline(body, body) else { return Incoming::Bad { id: Id::Null, error } };
    let id = match outline.id {
        RequestId::Number(number) => Id::Number(number),
        RequestId::String(text) => Id::String(text.to_string()),
    };
    match outline.is_request {
        true => Incoming::Bad { id, error },
        false => Incoming::Answer { id, result: Err(error) },
    }
}

fn read_object(mut object: Map<String, Value>) -> Incoming {
    let id = match object.remove("id") {
        None => None,
        Some(Value::String(text)) => Some(Id::String(text)),
        Some(Value::Null) => Some(Id::Null),
        Some(number) => match number.as_i64() {
            Some(number) => Some(Id::Number(number)),
            None => return bad(Id::Null, "an id is an integer or a string"),
        },
    };
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return bad(id.unwrap_or_default(), "`jsonrpc` must be \"2.0\"");
    }
    match (object.remove("method"), id) {
        (Some(Value::String(_)), Some(Id::Null)) => bad(Id::Null, "the id of a request may not be null"),
        (Some(Value::String(method)), Some(id)) => Incoming::Request { id, method, params: params(&mut object) },
        (Some(Value::String(method)), None) => Incoming::Notification { method, params: params(&mut object) },
        (Some(_), id) => bad(id.unwrap_or_default(), "`method` must be a string"),
        (None, Some(id)) if object.contains_key("result") || object.contains_key("error") => {
            Incoming::Answer { id, result: answer_of(object) }
        }
        (None, id) => bad(id.unwrap_or_default(), "neither a request, a notification nor an answer"),
    }
}

/// `null` counts as absent, as some editors send it for methods without parameters.
fn params(object: &mut Map<String, Value>) -> Option<Value> {
    object.remove("params").filter(|params| !params.is_null())
}

/// Editors put all sorts of things beside an error, so only what is needed is read.
fn answer_of(mut object: Map<String, Value>) -> Result<Value, Error> {
    match object.remove("error") {
        Some(Value::Object(mut fault)) => {
            let code = fault.get("code").and_then(Value::as_i64).unwrap_or(ErrorCode::InternalError.code());
            let message = fault.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_owned();
            Err(Error { code: code.into(), message: message.into(), data: fault.remove("data") })
        }
        _ => Ok(object.remove("result").unwrap_or_default()),
    }
}

fn bad(id: Id, message: &'static str) -> Incoming {
    Incoming::Bad { id, error: error(ErrorCode::InvalidRequest, message.to_owned()) }
}

pub fn error(code: ErrorCode, message: String) -> Error {
    Error { code, message: message.into(), data: None }
}

/// The answer to a request of the editor. The result may be JSON that nobody has parsed.
pub fn answer(id: &Id, result: &Result<Box<RawValue>, Error>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a Id,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a Error>,
    }
    encode(&Answer { jsonrpc: "2.0", id, result: result.as_deref().ok(), error: result.as_ref().err() })
}

/// A request to the editor with an id, a notification without.
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
    // Methods without parameters have `()` here, which is no JSON that `params` may hold.
    let params = (size_of_val(params) > 0).then_some(params);
    encode(&Call { jsonrpc: "2.0", id, method, params })
}

pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_else(|cause| {
        // Only a type that refuses to be JSON gets here; the other side still needs some answer.
        tracing::error!(%cause, "message could not be written as JSON");
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"the answer could not be written as JSON"}}"#
            .to_vec()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(body: &str) -> String {
        match read(body.as_bytes()) {
            Incoming::Request { id, method, params } => format!("request {id} {method} {params:?}"),
            Incoming::Notification { method, params } => format!("notification {method} {params:?}"),
            Incoming::Answer { id, result } => format!("answer {id} {:?}", result.map_err(|error| error.code.code())),
            Incoming::Bad { id, error } => format!("bad {id} {} {}", error.code.code(), error.message),
        }
    }

    #[test]
    fn each_kind_of_message_is_told_from_the_others() {
        assert_eq!(told(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#), "request 1 a None");
        assert_eq!(told(r#"{"jsonrpc":"2.0","method":"a"}"#), "notification a None");
        assert_eq!(told(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), "answer 1 Ok(Null)");
        assert_eq!(
            told(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":-32601,"message":"no","extra":1}}"#),
            "answer 1 Err(-32601)"
        );
    }

    #[test]
    fn what_is_no_message_is_answered_with_the_right_code() {
        assert_eq!(told("{").split(": ").next(), Some("bad null -32700 not JSON"));
        assert_eq!(told("\u{fffd}").split(": ").next(), Some("bad null -32700 not JSON"));
        assert_eq!(told("[]"), "bad null -32600 a message is one JSON object");
        assert_eq!(told(r#"{"id":7,"method":"a"}"#), "bad 7 -32600 `jsonrpc` must be \"2.0\"");
        assert_eq!(
            told(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#),
            "bad null -32600 an id is an integer or a string"
        );
        assert_eq!(told(r#"{"jsonrpc":"2.0","id":1}"#), "bad 1 -32600 neither a request, a notification nor an answer");
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_stack_overflow() {
        let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{}"#, "[".repeat(200_000));
        assert!(told(&deep).starts_with("bad 1 -32700 not JSON: recursion limit"));
    }

    #[test]
    fn a_message_that_no_parser_takes_is_answered_by_its_id() {
        let told = |body: &str| told(body).split(": ").next().map(str::to_owned).unwrap_or_default();
        assert_eq!(told(r#"{"jsonrpc":"2.0","id":3,"method":"a","params":["\ud83d"]}"#), "bad 3 -32700 not JSON");
        assert_eq!(told(r#"{"jsonrpc":"2.0","method":"a","params":[1e400],"id":"x"}"#), "bad \"x\" -32700 not JSON");
        let deep =
            format!(r#"{{"params":{}1{},"id":4,"method":"a","jsonrpc":"2.0"}}"#, "[".repeat(130), "]".repeat(130));
        assert_eq!(told(&deep), "bad 4 -32700 not JSON");
        assert_eq!(told(r#"{"jsonrpc":"2.0","id":5,"result":"\ud83d"}"#), "answer 5 Err(-32700)");
        assert_eq!(told(r#"{"jsonrpc":"2.0","method":"a","params":["\ud83d"]}"#), "bad null -32700 not JSON");
    }
}
