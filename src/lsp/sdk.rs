//! MCP servers that run inside the editor: their messages arrive as requests of the editor.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tower_lsp::jsonrpc::Error as RpcError;

use super::convert;
use super::guard::Reply;
use crate::engine::editors::Attachment;
use crate::model::Error;
use crate::protocol::answers::Done;
use crate::protocol::events::{Request, SdkClose, SdkMessage};
use crate::text::json_reason;

/// Passes a message on. It is queued at once instead of in a task, so that MCP messages keep their order.
pub fn message(attachment: Option<&Attachment>, params: Value) -> BoxFuture<'static, Reply> {
    let SdkMessage { server, message } = match parse(params) {
        Ok(message) => message,
        Err(error) => return std::future::ready(Err(error)).boxed(),
    };
    let delivered = attachment.map(|attachment| attachment.deliver_from_sdk(&server, message));
    async move {
        let is_delivered = match delivered {
            Some(delivered) => delivered.await,
            None => false,
        };
        match is_delivered {
            true => done(),
            false => Err(convert::error(&Error::NotFound(format!("the editor's server `{server}` is not connected")))),
        }
    }
    .boxed()
}

pub fn close(attachment: Option<&Attachment>, params: Value) -> Reply {
    let SdkClose { server } = parse(params)?;
    if let Some(attachment) = attachment {
        attachment.close_sdk(&server);
    }
    done()
}

fn parse<R: Request + DeserializeOwned>(params: Value) -> Result<R, RpcError> {
    let invalid = |error| Error::InvalidParams(format!("`{}`: {}", R::METHOD, json_reason(&error)));
    serde_json::from_value(params).map_err(|error| convert::error(&invalid(error)))
}

fn done() -> Reply {
    to_raw_value(&Done {}).map_err(|_| RpcError::internal_error())
}
