//! How an error of the engine looks on the wire.

use serde_json::{Map, Value, json};

use crate::model::Error;

/// `(code, data)` of the JSON-RPC error; its message is the error's own text.
pub fn wire(error: &Error) -> (i64, Value) {
    let mut data = Map::new();
    data.insert("kind".to_owned(), json!(error.kind()));
    if let Some(server) = error.server() {
        data.insert("server".to_owned(), json!(server));
    }
    if let Some(tool) = error.tool() {
        data.insert("tool".to_owned(), json!(tool));
    }
    if let Some(violations) = error.violations() {
        data.insert("detail".to_owned(), json!(violations));
    }
    (code(error), Value::Object(data))
}

fn code(error: &Error) -> i64 {
    match error.kind() {
        "invalid-params" | "invalid-arguments" => -32602,
        // As LSP has it for a request that its sender took back.
        "cancelled" => -32800,
        _ => -32001,
    }
}
