//! Parses tool calls of agents in one pass. rmcp tries one kind of message after the other on a copy of the text, which
//! takes longer than everything else that a small call needs.

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, GetMeta, RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A call with the fields that calls usually have. rmcp parses everything else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallMessage<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    id: RequestId,
    #[serde(borrow)]
    method: Cow<'a, str>,
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    arguments: Option<Map<String, Value>>,
    #[serde(rename = "_meta")]
    meta: Option<RequestMetaObject>,
}

/// The message, if it is a tool call.
pub fn parse(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    let CallMessage { jsonrpc, id, method, params } = serde_json::from_slice(line).ok()?;
    if jsonrpc != "2.0" || method != "tools/call" {
        return None;
    }
    let mut call = CallToolRequestParams::new(params.name);
    call.arguments = params.arguments;
    let mut request = ClientRequest::CallToolRequest(CallToolRequest::new(call));
    if let Some(meta) = params.meta {
        *request.get_meta_mut() = meta;
    }
    Some(ClientJsonRpcMessage::request(request, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_parsed_as_rmcp_does() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a__b"}}"#,
            r#"{"method":"tools/call","params":{"arguments":{"x":[1,"é\n"]},"name":"a\u0062"},"jsonrpc":"2.0","id":"x"}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":5,"k":{}}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":null,"_meta":null}}"#,
        ] {
            let expected: ClientJsonRpcMessage = serde_json::from_str(text).unwrap();
            let parsed = parse(text.as_bytes()).unwrap();
            assert_eq!(format!("{parsed:?}"), format!("{expected:?}"), "{text}");
        }
    }

    #[test]
    fn everything_else_is_left_to_rmcp() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","requestState":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
            "nonsense",
        ] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
    }
}
