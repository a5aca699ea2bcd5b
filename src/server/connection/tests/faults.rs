//! Servers that violate the protocol.

use super::*;

/// Runs one call against a server that sends `answer`, with `ID` replaced by the request id.
async fn answered(answer: impl AsRef<[u8]>) -> String {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        let id = request["id"].to_string();
        let answer = answer.as_ref();
        let at = answer.windows(2).position(|two| two == b"ID").unwrap_or(answer.len());
        let (before, after) = answer.split_at(at);
        fake.send([before, id.as_bytes(), after.strip_prefix(b"ID").unwrap_or(after), b"\n"].concat()).await;
    };
    tokio::join!(call(&connection, "echo"), server).0
}

const GOOD: &str = r#"{"content":["good"]}"#;

#[tokio::test]
async fn unusual_responses_are_understood() {
    for answer in [
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[\"good\"]}}\r",
        r#"{"jsonrpc":"2.0","id":"ID","result":{"content":["good"]}}"#,
        r#"{"id":ID,"result":{"content":["good"]}}"#,
        r#"{"jsonrpc":"1.0","id":ID,"result":{"content":["good"]}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":{"content":["good"]},"error":null}"#,
        r#"[{"jsonrpc":"2.0","id":ID,"result":{"content":["good"]}}]"#,
        r#"2026-01-01 INFO {x} {"jsonrpc":"2.0","id":ID,"result":{"content":["good"]}}"#,
        "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[\"good\"]}} done",
    ] {
        assert_eq!(answered(answer).await, GOOD, "{answer}");
    }
}

#[tokio::test]
async fn a_response_over_several_lines_is_joined() {
    let pretty = "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"result\": {\n    \"content\": [\n      {\n        \"type\": \"text\",\n        \"text\": \"a } b\"\n      }\n    ]\n  }\n}";
    // Some programs break lines without indenting them.
    let flat = pretty.replace("\n ", "\n").replace("  ", "");
    for answer in [pretty.to_owned(), flat] {
        let result: Value = serde_json::from_str(&answered(&answer).await).unwrap();
        assert_eq!(result["content"][0]["text"], "a } b", "{answer}");
    }
}

#[tokio::test]
async fn a_truncated_message_before_a_complete_one_is_dropped() {
    let answer =
        "{\"jsonrpc\":\"2.0\",\"id\":99,\"resu\n{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[\"good\"]}}";
    assert_eq!(answered(answer).await, GOOD);
    let lines = "{\n\"jsonrpc\":\"2.0\",\n{\n\"jsonrpc\":\"2.0\",\n\"id\":ID,\n\"result\":{\"content\":[\"good\"]}\n}";
    assert_eq!(answered(lines).await, GOOD);
}

#[tokio::test]
async fn unusual_errors_end_the_call_at_once() {
    let of = |error: &str| answered(format!(r#"{{"jsonrpc":"2.0","id":ID,"error":{error}}}"#));
    assert_eq!(of(r#""broken""#).await, "protocol-error: server `fake`: broken (error -32603)");
    assert_eq!(of(r#"{"code":-5}"#).await, "protocol-error: server `fake`: no reason given (error -5)");
    let stray = answered(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot parse"}}"#).await;
    assert_eq!(stray, "protocol-error: server `fake`: cannot parse (error -32700)");
}

#[tokio::test]
async fn an_invalid_response_names_the_problem() {
    let broken = answered(b"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[\"\xff\xfe\"]}}").await;
    assert_eq!(broken, "protocol-error: server `fake`: the response is not valid UTF-8 (error -32700)");
    let deep = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    let deep = answered(deep).await;
    assert_eq!(deep, "protocol-error: server `fake`: the response is nested deeper than 96 levels (error -32700)");
    let huge = answered(r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"a":1e999}}"#).await;
    assert_eq!(huge, "protocol-error: server `fake`: the response contains a number that is too large (error -32700)");
}

#[tokio::test]
async fn a_response_over_the_limit_fails_only_its_own_call() {
    let long = "x".repeat(80 << 10);
    let limit = "protocol-error: server `fake`: the response is larger than 64 KiB (`limits.message-bytes` sets this limit) (error -32603)";
    let id_first = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":["{long}"]}}}}"#);
    let id_last = format!(r#"{{"result":{{"content":["{long}"]}},"jsonrpc":"2.0","id":ID}}"#);
    let without_end = format!(r#"{{"jsonrpc":"2.0","id":ID,"result":{{"content":["{long}"#);
    for answer in [id_first.as_str(), &id_last, &without_end] {
        let (connection, mut fake, mut notices) = connected(json!({ "tools": {} })).await;
        let server = async {
            let one = fake.expect("tools/call").await;
            let two = fake.expect("tools/call").await;
            fake.line(answer.replace("ID", &one["id"].to_string())).await;
            fake.reply(&two, json!({ "content": ["good"] })).await;
        };
        let (one, two, ()) = tokio::join!(call(&connection, "one"), call(&connection, "two"), server);
        assert_eq!((one.as_str(), two.as_str()), (limit, GOOD));
        assert_eq!(notices.recv().await, Some(ServerNotice::Warning("dropped a message larger than 64 KiB".into())));
    }
}

#[tokio::test]
async fn an_endless_line_fails_the_call_before_it_ends() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let flood = async {
        fake.expect("tools/call").await;
        loop {
            fake.send([b'x'; 32 << 10]).await;
        }
    };
    let result = tokio::select! {
        result = call(&connection, "echo") => result,
        () = flood => unreachable!("the flood never ends"),
    };
    assert!(result.contains("the response is larger than 64 KiB"), "{result}");
}

#[tokio::test]
async fn junk_between_messages_is_skipped_and_counted() {
    let (connection, mut fake, mut notices) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        fake.send(b"\x1b[31mstarting\x1b[0m up\n\n\xff\xfe\xfd broken\n{\"level\":\"info\"}\n\n").await;
        for piece in json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": ["good"] } })
            .to_string()
            .as_bytes()
            .chunks(7)
        {
            fake.send(piece).await;
            tokio::task::yield_now().await;
        }
        fake.line("").await;
    };
    let (result, ()) = tokio::join!(call(&connection, "echo"), server);
    assert_eq!(result, GOOD);
    assert_eq!(connection.skipped(), 3);
    assert_eq!(notices.recv().await, Some(ServerNotice::Skipped { lines: 1, sample: "starting up".into() }));
}

#[tokio::test]
async fn only_the_first_of_several_responses_counts() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let one = fake.expect("tools/call").await;
        fake.reply(&one, json!({ "content": ["first"] })).await;
        fake.reply(&one, json!({ "content": ["second"] })).await;
        fake.refuse(&one, -1, "third").await;
        let two = fake.expect("tools/call").await;
        fake.reply(&two, json!({ "content": ["good"] })).await;
    };
    let client = async { (call(&connection, "one").await, call(&connection, "two").await) };
    let (results, ()) = tokio::join!(client, server);
    assert_eq!(results, (r#"{"content":["first"]}"#.to_owned(), GOOD.to_owned()));
}

#[tokio::test]
async fn unknown_notifications_are_ignored() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        for n in 0..1_000 {
            fake.line(format!(r#"{{"jsonrpc":"2.0","method":"notifications/odd/{n}","params":{{}}}}"#)).await;
        }
        fake.reply(&request, json!({ "content": ["good"] })).await;
    };
    let (result, ()) = tokio::join!(call(&connection, "echo"), server);
    assert_eq!(result, GOOD);
}

#[tokio::test]
async fn many_logs_keep_their_order_and_delay_no_call() {
    let (connection, mut fake, mut notices) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        for n in 0..20_000 {
            let params = json!({ "level": "info", "logger": "db", "data": n });
            fake.line(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params }).to_string())
                .await;
        }
        fake.line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
        fake.reply(&request, json!({ "content": ["good"] })).await;
    };
    // The notices are not read in the meantime.
    let (result, ()) = tokio::join!(call(&connection, "echo"), server);
    assert_eq!(result, GOOD);
    for n in 0..64 {
        let Some(ServerNotice::Log { level, text, calls }) = notices.recv().await else { panic!("{n}") };
        assert_eq!((level.as_str(), text, calls.len()), ("info", format!("db: {n}"), 1), "the call was open");
    }
    assert_eq!(notices.recv().await, Some(ServerNotice::ListChanged(ListKind::Tools)));
    fake.line(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"message":"after"}}}"#,
    )
    .await;
    let text = "dropped 19936 log messages: they arrived too fast".into();
    assert_eq!(notices.recv().await, Some(ServerNotice::Log { level: "warning".into(), text, calls: vec![] }));
    let after = ServerNotice::Log { level: "info".into(), text: "after".into(), calls: vec![] };
    assert_eq!(notices.recv().await, Some(after), "no call was open");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_reads_fails_its_calls_without_blocking() {
    let (wire, mut fake) = Fake::wired(1 << 10);
    let (options, _notices) = options();
    let (connection, ()) = tokio::join!(Connection::open(wire, options), fake.shake(json!({ "tools": {} })));
    let connection = connection.unwrap();
    let big = permitted("echo", json!({ "text": "x".repeat(50 << 10) }));
    let (one, two, three) = tokio::join!(
        connection.call(&big, call_options()),
        connection.call(&big, call_options()),
        connection.call(&big, call_options()),
    );
    let waits = "bytes have been waiting for 60 s";
    let (one, two, three) = (shown(one), shown(two), shown(three));
    assert!(
        one.starts_with("connection-failed: server `fake`: the server does not read its input") && one.ends_with(waits),
        "{one}"
    );
    assert!(two.ends_with(waits), "{two}");
    assert!(three.contains("the server does not read its input") && three.contains("limit: 128 KiB"), "{three}");
    connection.close().await;
}

#[tokio::test]
async fn an_editor_hosted_server_works_until_the_editor_disconnects() {
    let (to_editor, mut to_server) = crate::server::host::MessageQueue::new(8);
    let (from_server, from_editor) = mpsc::channel(8);
    let (options, _notices) = options();
    let server = async {
        let request: Value = to_server.recv().await.unwrap();
        from_server.send(json!({ "id": request["id"], "result": { "capabilities": { "tools": {} } } })).await.unwrap();
        assert_eq!(to_server.recv().await.unwrap()["method"], "notifications/initialized");
    };
    let (connection, ()) =
        tokio::join!(Connection::open(Wire::Tunnel(Tunnel { to_editor, from_editor }), options), server);
    let connection = connection.unwrap();
    assert_eq!(connection.peer().protocol_version, "2024-11-05");
    let server = async {
        let request = to_server.recv().await.unwrap();
        from_server.send(json!({ "id": request["id"], "result": { "content": ["good"] } })).await.unwrap();
        to_server.recv().await.unwrap();
        drop(from_server);
    };
    let client = async { (call(&connection, "one").await, call(&connection, "two").await) };
    let (results, ()) = tokio::join!(client, server);
    assert_eq!(results, (GOOD.to_owned(), "connection-failed: server `fake`: the editor has disconnected".to_owned()));
}

#[tokio::test]
async fn a_lone_surrogate_in_a_result_is_replaced() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        let result = r#"{"content":[{"type":"text","text":"a\ud83db \ud83d\ude00"}]}"#;
        fake.line(format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, request["id"])).await;
    };
    let (result, ()) = tokio::join!(call(&connection, "odd"), server);
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["content"][0]["text"], "a\u{fffd}b 😀");
}
