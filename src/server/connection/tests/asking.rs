//! Requests of a server to the client.

use super::*;

fn willing() -> Arc<FakeHost> {
    Arc::new(FakeHost { elicits: true, ..FakeHost::default() })
}

#[tokio::test]
async fn only_supported_capabilities_are_declared() {
    for (host, can) in [(willing(), true), (Arc::default(), false)] {
        let (wire, mut fake) = Fake::wired(64 << 10);
        let (options, _notices) = options_with(host);
        let opened = tokio::spawn(Connection::open(wire, options));
        let request = fake.expect("initialize").await;
        let params = &request["params"];
        assert_eq!(params["protocolVersion"], "2025-11-25");
        assert_eq!(params["clientInfo"]["name"], "mcp-sidecar");
        assert_eq!(params["capabilities"]["roots"], json!({ "listChanged": true }));
        assert_eq!(params["capabilities"].get("sampling"), None);
        let both = json!({ "form": {}, "url": {} });
        assert_eq!(params["capabilities"].get("elicitation"), can.then_some(&both));
        opened.abort();
    }
}

#[tokio::test]
async fn roots_pings_and_unknown_methods_are_answered() {
    let (connection, mut fake, _) = connected(json!({})).await;
    fake.line(r#"{"jsonrpc":"2.0","id":"r","method":"roots/list"}"#).await;
    assert_eq!(
        fake.receive().await["result"],
        json!({ "roots": [{ "uri": "file:///home/you/work%20space", "name": "work space" }] })
    );
    fake.line(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#).await;
    assert_eq!(fake.receive().await, json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    fake.line(r#"{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":{}}"#).await;
    assert_eq!(fake.receive().await["error"]["code"], -32601);
    fake.line(r#"{"jsonrpc":"2.0","id":9,"method":"x/odd"}"#).await;
    assert_eq!(fake.receive().await["error"]["code"], -32601);
    connection.roots_changed().await;
    fake.expect("notifications/roots/list_changed").await;
}

#[tokio::test]
async fn a_call_may_ask_five_questions_one_at_a_time() {
    let host = willing();
    let (connection, mut fake, _) = connected_with(json!({ "tools": {} }), host.clone()).await;
    let server = async {
        for round in 0..2 {
            let request = fake.expect("tools/call").await;
            for n in 0..50 {
                // A schema that typed libraries reject.
                let params = json!({ "message": format!("q{n}"), "requestedSchema": { "type": "object", "properties": { "x": { "anyOf": [] } } } });
                fake.line(json!({ "jsonrpc": "2.0", "id": format!("{round}-{n}"), "method": "elicitation/create", "params": params }).to_string()).await;
            }
            let mut accepted = Vec::new();
            let mut declined = 0;
            for _ in 0..50 {
                let answer = fake.receive().await;
                match answer["result"]["action"].as_str() {
                    Some("accept") => accepted.push(answer["result"]["content"]["echo"].clone()),
                    Some("decline") => declined += 1,
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((accepted.len(), declined), (5, 45));
            fake.reply(&request, json!({ "content": [] })).await;
        }
    };
    let client = async {
        call(&connection, "curious").await;
        call(&connection, "curious").await;
    };
    tokio::join!(client, server);
    assert_eq!(host.asked.load(Ordering::SeqCst), 10);
    assert_eq!(host.together.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn requests_to_the_model_wait_for_each_other_and_only_a_few_may_wait() {
    let delay = Duration::from_secs(1);
    let host = Arc::new(FakeHost { samples: true, delay, ..FakeHost::default() });
    let (connection, mut fake, _) = connected_with(json!({ "tools": {} }), host.clone()).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        for n in 0..50 {
            let params = json!({ "messages": [], "maxTokens": 1 });
            fake.line(
                json!({ "jsonrpc": "2.0", "id": n, "method": "sampling/createMessage", "params": params }).to_string(),
            )
            .await;
        }
        let mut refused = 0;
        for _ in 0..50 {
            refused += usize::from(fake.receive().await.get("error").is_some());
        }
        fake.reply(&request, json!({ "content": [] })).await;
        refused
    };
    let (_, refused) = tokio::join!(call(&connection, "curious"), server);
    assert_eq!((refused, host.asked.load(Ordering::SeqCst), host.together.load(Ordering::SeqCst)), (45, 5, 1));
}

#[tokio::test]
async fn a_request_with_too_many_values_is_refused() {
    let (wire, mut fake) = Fake::wired(2 << 20);
    let (mut options, _notices) = options();
    let limits = Arc::get_mut(&mut options.limits).unwrap();
    limits.message_bytes = 1 << 20;
    let (connection, ()) = tokio::join!(Connection::open(wire, options), fake.shake(json!({})));
    let _connection = connection.unwrap();
    let large = format!("[0{}]", ",0".repeat(100_000));
    fake.line(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"roots/list","params":{large}}}"#)).await;
    let error = fake.receive().await["error"].take();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32602), &json!("the params have too many values")));
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_time_out_during_a_question_but_ends_with_its_server() {
    let host = Arc::new(FakeHost { elicits: true, silent: true, ..FakeHost::default() });
    let (connection, mut fake, _) = connected_with(json!({ "tools": {} }), host).await;
    let server = async move {
        fake.expect("tools/call").await;
        fake.line(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"well?"}}"#).await;
        tokio::time::sleep(Duration::from_secs(200)).await;
        drop(fake);
    };
    let started = Instant::now();
    let (result, ()) = tokio::join!(call(&connection, "curious"), server);
    assert_eq!(result, "connection-failed: server `fake`: the server closed its output");
    assert_eq!(started.elapsed().as_secs(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_question_pauses_the_timeout_of_its_own_call_and_ends_with_it() {
    let host = Arc::new(FakeHost { elicits: true, silent: true, ..FakeHost::default() });
    let (connection, mut fake, _) = connected_with(json!({ "tools": {} }), host).await;
    let server = async {
        let first = fake.expect("tools/call").await;
        fake.line(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"well?"}}"#).await;
        fake.line(r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).await;
        assert_eq!(fake.receive().await["id"], 2);
        (first, fake)
    };
    let first = call(&connection, "curious");
    tokio::pin!(first);
    let (request, mut fake) = tokio::select! {
        _ = &mut first => panic!("ended before it was answered"),
        done = server => done,
    };
    let second = async {
        let started = Instant::now();
        let other = ToolCall { id: CallId("2".into()), ..permitted("slow", json!({})).call().clone() };
        let result = shown(connection.call(&Permitted::for_test(other), call_options()).await);
        (result, started.elapsed())
    };
    let (result, took) = tokio::select! {
        _ = &mut first => panic!("timed out during a question"),
        second = second => second,
    };
    assert_eq!(result.split(':').next(), Some("timeout"), "{result}");
    assert!(took < Duration::from_secs(200), "{took:?}");
    fake.expect("tools/call").await;
    fake.expect("notifications/cancelled").await;
    fake.reply(&request, json!({ "content": [] })).await;
    first.await;
    let withdrawn = fake.receive().await;
    assert_eq!((&withdrawn["id"], &withdrawn["result"]["action"]), (&json!(1), &json!("cancel")));
}

#[tokio::test]
async fn a_question_right_before_the_response_is_withdrawn() {
    let host = Arc::new(FakeHost { elicits: true, silent: true, ..FakeHost::default() });
    let (connection, mut fake, _) = connected_with(json!({ "tools": {} }), host).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        let question = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"well?"}}"#;
        let answer = json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": [] } });
        fake.send(format!("{question}\n{answer}\n")).await;
    };
    tokio::join!(call(&connection, "hasty"), server);
    let withdrawn = fake.receive().await;
    assert_eq!((&withdrawn["id"], &withdrawn["result"]["action"]), (&json!(1), &json!("cancel")));
}

#[tokio::test]
async fn the_log_level_is_set_if_the_server_supports_logging() {
    let (wire, mut fake) = Fake::wired(64 << 10);
    let (mut options, _notices) = options();
    options.log_level = "warn".to_owned();
    let (connection, ()) = tokio::join!(Connection::open(wire, options), fake.shake(json!({ "logging": {} })));
    let _connection = connection.unwrap();
    assert_eq!(fake.expect("logging/setLevel").await["params"]["level"], "warning");
}

#[tokio::test]
async fn a_page_that_must_be_visited_first_is_shown_to_the_user() {
    let host = willing();
    let (connection, mut fake, _) = connected_with(json!({ "tools": {} }), host.clone()).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        let page =
            json!({ "mode": "url", "elicitationId": "1", "url": "https://example.test/in", "message": "sign in" });
        let error = json!({ "code": -32042, "message": "sign in", "data": { "elicitations": [page] } });
        fake.line(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string()).await;
    };
    let (result, ()) = tokio::join!(call(&connection, "private"), server);
    let hint = "complete the page at https://example.test/in, then try again (error -32042)";
    assert_eq!(result, format!("protocol-error: server `fake`: sign in: {hint}"));
    assert_eq!(host.asked.load(Ordering::SeqCst), 1);
}
