//! Handshakes: both eras, refusals, and servers that are not MCP servers.

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, InputRequiredResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SubscriptionFilter,
    Tool,
};
use rmcp::service::{RequestContext, RoleClient, RoleServer, SubscriptionContext};
use rmcp::transport::IntoTransport;
use rmcp::{ServerHandler, ServiceExt};

use super::*;
use crate::server::transport::{Boxed, DialResult};

async fn error_of(options: ConnectionOptions, script: impl AsyncFnOnce(&mut Fake)) -> OpenError {
    let (wire, mut fake) = Fake::wired(256 << 10);
    let server = async move {
        script(&mut fake).await;
        drop(fake);
    };
    let (connection, ()) = tokio::join!(Connection::open(wire, options), server);
    connection.err().expect("no connection")
}

#[tokio::test]
async fn version_and_name_of_an_old_server_are_read() {
    let (wire, mut fake) = Fake::wired(64 << 10);
    let (options, _notices) = options();
    let server = async {
        let request = fake.expect("initialize").await;
        let result = json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} }, "serverInfo": { "name": "old", "version": "0.1", "x": 1 }, "instructions": "be nice" });
        fake.reply(&request, result).await;
        fake.expect("notifications/initialized").await;
    };
    let (connection, ()) = tokio::join!(Connection::open(wire, options), server);
    let connection = connection.unwrap();
    let info = connection.peer();
    assert_eq!(
        (info.name.as_str(), info.version.as_str(), info.protocol_version.as_str()),
        ("old", "0.1", "2024-11-05")
    );
    assert_eq!(info.instructions.as_deref(), Some("be nice"));
    assert_eq!(info.raw["serverInfo"]["x"], 1);
    assert_eq!(connection.era(), Era::Initialize);
}

#[tokio::test]
async fn requests_during_the_handshake_are_rejected_and_the_start_continues() {
    let (wire, mut fake) = Fake::wired(64 << 10);
    let (options, _notices) = options();
    let server = async {
        let request = fake.expect("initialize").await;
        fake.line(r#"{"jsonrpc":"2.0","id":"early","method":"roots/list"}"#).await;
        let answer = fake.receive().await;
        assert_eq!(
            (answer["id"].as_str(), answer["error"]["message"].as_str()),
            (Some("early"), Some("requests are not allowed before `initialize` is answered"))
        );
        fake.line(r#"{"jsonrpc":"2.0","id":"alive","method":"ping"}"#).await;
        assert_eq!(fake.receive().await, json!({ "jsonrpc": "2.0", "id": "alive", "result": {} }));
        fake.line(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}"#)
            .await;
        fake.reply(&request, json!({})).await;
        fake.expect("notifications/initialized").await;
    };
    let (connection, ()) = tokio::join!(Connection::open(wire, options), server);
    assert!(connection.is_ok());
}

#[tokio::test(start_paused = true)]
async fn silent_and_slow_servers_time_out_at_the_same_limit() {
    let (silent, _notices) = options();
    let error = error_of(silent, async |fake| {
        fake.expect("initialize").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
    assert_eq!(
        error.await.to_string(),
        "the server did not answer `initialize` within 30 s (`startupTimeout` sets this limit)"
    );

    let (dripping, _notices) = options();
    let error = error_of(dripping, async |fake| {
        fake.line("SSH-2.0-OpenSSH").await;
        for byte in "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n".repeat(9).bytes().take(300) {
            tokio::time::sleep(Duration::from_millis(200)).await;
            fake.write.write_all(&[if byte == b'\n' { b' ' } else { byte }]).await.ok();
        }
    });
    let limit = "the server did not answer `initialize` within 30 s (`startupTimeout` sets this limit); it sent `SSH-2.0-OpenSSH`, which is not MCP";
    assert_eq!(error.await.to_string(), limit);
}

#[tokio::test]
async fn an_exit_before_the_handshake_names_what_the_server_sent() {
    let (first, _notices) = options();
    let error = error_of(first, async |_| {}).await;
    assert_eq!(
        error,
        OpenError::Closed { message: "the server closed its output before it answered `initialize`".into() }
    );
    let (second, _notices) = options();
    let error = error_of(second, async |fake| fake.line("Usage: server --help").await).await;
    let message = "the server closed its output before it answered `initialize`; it sent `Usage: server --help`, which is not MCP";
    assert_eq!(error, OpenError::Closed { message: message.into() });
}

#[tokio::test]
async fn random_bytes_are_not_mcp() {
    let (options, _notices) = options();
    let error = error_of(options, async |fake| {
        let bytes: Vec<u8> = (0_u32..64 << 10).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        fake.send(bytes).await;
        // The connection stays open: only the bytes show that this is not MCP.
        while fake.lines.next_line().await.is_ok_and(|line| line.is_some()) {}
    });
    let error = error.await;
    assert!(
        matches!(&error, OpenError::Protocol { message } if message.starts_with("this is not an MCP server: it sent `")),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_endless_handshake_response_names_the_limit() {
    let (options, _notices) = options();
    let error = error_of(options, async |fake| {
        fake.expect("initialize").await;
        for _ in 0..8 {
            fake.write.write_all(&[b'x'; 32 << 10]).await.ok();
        }
    });
    let limit = "the server refused `initialize`: the response is larger than 64 KiB (`limits.message-bytes` sets this limit) (error -32603)";
    assert_eq!(error.await.to_string(), limit);
}

fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "new", "version": "2" } },
    })
}

#[tokio::test]
async fn discover_follows_on_the_same_transport_if_initialize_is_unknown() {
    let (wire, mut fake) = Fake::wired(64 << 10);
    let (mut options, _notices) = options();
    options.log_level = "debug".to_owned();
    let server = async {
        let request = fake.expect("initialize").await;
        fake.refuse(&request, -32601, "method not found").await;
        let request = fake.expect("server/discover").await;
        fake.reply(&request, discovered()).await;
        let request = fake.expect("tools/call").await;
        assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "mcp-sidecar");
        assert_eq!(request["params"]["_meta"]["io.modelcontextprotocol/logLevel"], "debug");
        fake.reply(&request, json!({ "resultType": "complete", "content": [] })).await;
        let request = fake.expect("server/discover").await;
        fake.reply(&request, discovered()).await;
    };
    let client = async {
        let connection = Connection::open(wire, options).await.unwrap();
        assert_eq!((connection.era(), connection.peer().name.as_str()), (Era::Discover, "new"));
        assert_eq!(call(&connection, "echo").await, r#"{"resultType":"complete","content":[]}"#);
        connection.ping(Duration::from_secs(5)).await.unwrap();
    };
    tokio::join!(server, client);
}

#[tokio::test]
async fn a_server_that_requires_the_headers_of_the_newer_era_belongs_to_it() {
    let (wire, mut fake) = Fake::wired(64 << 10);
    let (options, _notices) = options();
    let server = async {
        let request = fake.expect("initialize").await;
        fake.refuse(&request, -32020, "Missing MCP-Protocol-Version header").await;
        let request = fake.expect("server/discover").await;
        fake.reply(&request, discovered()).await;
    };
    let (opened, ()) = tokio::join!(Connection::open(wire, options), server);
    assert_eq!(opened.unwrap().era(), Era::Discover);
}

#[tokio::test]
async fn the_cached_era_is_tried_first_and_may_be_wrong() {
    let (wire, mut fake) = Fake::wired(64 << 10);
    let (mut options, _notices) = options();
    options.era = Some(Era::Discover);
    let server = async {
        let request = fake.expect("server/discover").await;
        fake.refuse(&request, -32601, "method not found").await;
        fake.shake(json!({})).await;
    };
    let (connection, ()) = tokio::join!(Connection::open(wire, options), server);
    assert_eq!(connection.unwrap().era(), Era::Initialize);
}

#[tokio::test]
async fn an_older_version_that_the_server_names_is_used() {
    let (wire, mut fake) = Fake::wired(64 << 10);
    let (options, _notices) = options();
    let server = async {
        let request = fake.expect("initialize").await;
        let error = json!({ "code": -32602, "message": "Unsupported protocol version", "data": { "supported": ["2024-11-05"] } });
        fake.line(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string()).await;
        let request = fake.expect("initialize").await;
        assert_eq!(request["params"]["protocolVersion"], "2024-11-05");
        fake.reply(&request, json!({ "protocolVersion": "2024-11-05" })).await;
        fake.expect("notifications/initialized").await;
    };
    let (connection, ()) = tokio::join!(Connection::open(wire, options), server);
    assert_eq!(connection.unwrap().peer().protocol_version, "2024-11-05");
}

#[tokio::test]
async fn a_version_that_is_not_a_string_is_refused_with_a_reason() {
    for (version, shown) in [(json!(5), "5"), (json!(null), "null"), (json!("banana"), "banana")] {
        let (wire, mut fake) = Fake::wired(64 << 10);
        let (options, _notices) = options();
        let server = async {
            let request = fake.expect("initialize").await;
            fake.reply(&request, json!({ "protocolVersion": version, "capabilities": { "tools": {} } })).await;
        };
        let (connection, ()) = tokio::join!(Connection::open(wire, options), server);
        let error = connection.err().unwrap().to_string();
        assert!(error.contains(&format!("the MCP version `{shown}`, which mcp-sidecar does not support")), "{error}");
    }
}

#[tokio::test]
async fn a_refusal_of_both_eras_reports_the_first_reason() {
    let (options, _notices) = options();
    let error = error_of(options, async |fake| {
        let request = fake.expect("initialize").await;
        fake.refuse(&request, -32600, "licence expired").await;
        let request = fake.expect("server/discover").await;
        fake.refuse(&request, -32601, "method not found").await;
        fake.lines.next_line().await.ok();
    });
    assert_eq!(
        error.await,
        OpenError::Refused { message: "the server refused `initialize`: licence expired (error -32600)".into() }
    );
}

/// A server of the newer era, implemented with rmcp.
struct Modern;

impl ServerHandler for Modern {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&[ProtocolVersion::V_2026_07_28])
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(vec![Tool::new("greet", "says hello", Arc::default())]))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(responses) = params.input_responses else {
            let ask = json!({
                "resultType": "input_required", "requestState": "opaque",
                "inputRequests": {
                    "name": { "method": "elicitation/create", "params": {
                        "mode": "form", "message": "your name?",
                        "requestedSchema": { "type": "object", "properties": { "echo": { "type": "string" } } } } },
                    "where": { "method": "roots/list" },
                },
            });
            let ask: InputRequiredResult = serde_json::from_value(ask).unwrap();
            return Ok(ask.into());
        };
        let text = format!(
            "{} {} {}",
            params.request_state.unwrap_or_default(),
            responses["name"]["content"]["echo"],
            responses["where"]["roots"][0]["uri"]
        );
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        context.sink().notify_tool_list_changed().await.ok();
        std::future::pending().await
    }
}

#[tokio::test]
async fn a_server_of_the_newer_era_that_hangs_up_is_reported() {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (read, write) = tokio::io::split(ours);
    let serving = tokio::spawn(async move { Modern.serve(theirs).await.err().map(|error| error.to_string()) });
    let (options, _notices) = options();
    let wire = Wire::Bytes { read: Box::new(read), write: Box::new(write), input_closed: None };
    let error = Connection::open(wire, options).await.err().unwrap();
    assert!(matches!(error, OpenError::OtherEra { era: Era::Discover, .. }), "{error:?}");
    assert!(serving.await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_of_the_newer_era_lists_asks_answers_and_reports_changes() {
    let (ours, theirs) = tokio::io::duplex(64 << 10);
    let (read, write) = tokio::io::split(ours);
    let serving = tokio::spawn(async move { Modern.serve(theirs).await.unwrap().waiting().await });
    let (mut options, mut notices) = options_with(Arc::new(FakeHost { elicits: true, ..FakeHost::default() }));
    options.era = Some(Era::Discover);
    let wire = Wire::Bytes { read: Box::new(read), write: Box::new(write), input_closed: None };
    let connection = Connection::open(wire, options).await.unwrap();
    assert_eq!((connection.era(), connection.peer().protocol_version.as_str()), (Era::Discover, "2026-07-28"));
    assert_eq!(notices.recv().await, Some(ServerNotice::ListChanged(ListKind::Tools)));
    let lists = connection.lists(soon()).await.unwrap();
    assert_eq!((lists.tools[0].name.as_ref(), lists.warnings.len()), ("greet", 0));
    let result: Value = serde_json::from_str(&call(&connection, "greet").await).unwrap();
    assert_eq!(result["content"][0]["text"], "opaque \"your name?\" \"file:///home/you/work%20space\"");
    connection.ping(Duration::from_secs(5)).await.unwrap();
    connection.close().await;
    serving.abort();
}

#[tokio::test]
async fn a_remote_server_that_refuses_one_era_is_connected_again_for_the_other() {
    let dials = Arc::new(AtomicUsize::new(0));
    let counted = dials.clone();
    // A transport that parses messages itself, like those of a library.
    let dial = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        tokio::spawn(async move {
            if let Ok(service) = Modern.serve(theirs).await {
                service.waiting().await.ok();
            }
        });
        let transport = IntoTransport::<RoleClient, _, _>::into_transport(tokio::io::split(ours));
        let dialled: DialResult = Ok(Box::new(Boxed(transport)));
        Box::pin(std::future::ready(dialled)) as BoxFuture<'static, DialResult>
    };
    let (options, mut notices) = options_with(Arc::new(FakeHost { elicits: true, ..FakeHost::default() }));
    let ledger = Ledger::new(options.name.clone(), 1 << 20);
    let connection = Connection::open(Wire::Remote(Remote { ledger, dial: Box::new(dial) }), options).await.unwrap();
    assert_eq!((connection.era(), dials.load(Ordering::SeqCst)), (Era::Discover, 2));
    assert_eq!(notices.recv().await, Some(ServerNotice::ListChanged(ListKind::Tools)));
    assert_eq!(connection.lists(soon()).await.unwrap().tools[0].name.as_ref(), "greet");
    let result: Value = serde_json::from_str(&call(&connection, "greet").await).unwrap();
    assert_eq!(result["content"][0]["text"], "opaque \"your name?\" \"file:///home/you/work%20space\"");
    connection.close().await;
}
