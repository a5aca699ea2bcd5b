//! MCP servers that run inside the editor: their messages arrive as requests of the editor.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Error as RpcError;

use super::convert;
use super::guard::Reply;
use crate::engine::editors::Attachment;
use crate::model::Error;

/// Passes a message on. This happens at once instead of in a task, so that MCP messages keep their order.
pub fn message(attachment: Option<&Attachment>, params: &Value) -> Reply {
    let server = params.get("server").and_then(Value::as_str).unwrap_or_default();
    let message = params.get("message").cloned().unwrap_or_default();
    match attachment {
        Some(attachment) if attachment.deliver_from_sdk(server, message) => done(),
        _ => Err(convert::error(&Error::NotFound(format!("the editor's server `{server}` is not connected")))),
    }
}

pub fn close(attachment: Option<&Attachment>, params: &Value) -> Reply {
    if let (Some(attachment), Some(server)) = (attachment, params.get("server").and_then(Value::as_str)) {
        attachment.close_sdk(server);
    }
    done()
}

fn done() -> Reply {
    to_raw_value(&json!({})).map_err(|_| RpcError::internal_error())
}
