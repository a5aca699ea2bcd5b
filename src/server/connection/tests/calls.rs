//! Calls: results, limits, progress, cancellation.

use super::*;

#[tokio::test]
async fn a_result_arrives_as_the_server_sent_it() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        assert_eq!(request["params"]["name"], "echo");
        assert_eq!(request["params"]["arguments"], json!({}));
        fake.line(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[ {{"type":"x-new"}} ],"isError":true}}}}"#,
            request["id"]
        ))
        .await;
    };
    let (result, ()) = tokio::join!(call(&connection, "echo"), server);
    assert_eq!(result, r#"error result {"content":[ {"type":"x-new"} ],"isError":true}"#);
}

#[tokio::test]
async fn a_server_error_names_the_server_and_the_code() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        fake.refuse(&request, -32602, "no such\ntool").await;
    };
    let (result, ()) = tokio::join!(call(&connection, "echo"), server);
    assert_eq!(result, "protocol-error: server `fake`: no such tool (error -32602)");
}

#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        let cancel = fake.expect("notifications/cancelled").await;
        assert_eq!(cancel["params"]["requestId"], request["id"]);
        // Too late: it is ignored and does not affect the next call.
        fake.reply(&request, json!({ "content": ["late"] })).await;
        let request = fake.expect("tools/call").await;
        fake.reply(&request, json!({ "content": ["in time"] })).await;
    };
    let client = async {
        let late = call(&connection, "slow").await;
        (late, call(&connection, "fast").await)
    };
    let ((late, next), ()) = tokio::join!(client, server);
    assert_eq!(late, "timeout: server `fake` did not answer `slow` within 60 s (`timeout` sets this limit)");
    assert_eq!(next, r#"{"content":["in time"]}"#);
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_in_order_and_extends_the_timeout_up_to_a_limit() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let (progress, mut steps_received) = mpsc::channel(64);
    let server = async {
        let request = fake.expect("tools/call").await;
        let token = &request["params"]["_meta"]["progressToken"];
        for step in 0..20 {
            tokio::time::sleep(Duration::from_secs(50)).await;
            let params = json!({ "progressToken": token, "progress": step, "total": 20, "message": "on the way" });
            fake.line(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string())
                .await;
        }
    };
    let tool = permitted("slow", json!({}));
    let calling = connection.call(&tool, CallOptions { progress: Some(progress), ..call_options() });
    let (result, ()) = tokio::join!(calling, server);
    assert_eq!(
        shown(result),
        "timeout: server `fake` did not answer `slow` within 600 s (`servers.max-timeout` sets this limit)"
    );
    let mut steps = Vec::new();
    while let Ok(step) = steps_received.try_recv() {
        assert_eq!((step.total, step.message.as_deref()), (Some(20.0), Some("on the way")));
        steps.push(step.progress);
    }
    assert_eq!(steps, (0..11).map(f64::from).collect::<Vec<_>>());
}

#[tokio::test]
async fn many_steps_of_progress_keep_their_order() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let (progress, mut steps_received) = mpsc::channel(1_000);
    let server = async {
        let request = fake.expect("tools/call").await;
        let token = &request["params"]["_meta"]["progressToken"];
        for step in 0..1_000 {
            let params = json!({ "progressToken": token, "progress": step });
            fake.line(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }).to_string())
                .await;
        }
        fake.reply(&request, json!({ "content": [] })).await;
    };
    let tool = permitted("fast", json!({}));
    let (result, ()) =
        tokio::join!(connection.call(&tool, CallOptions { progress: Some(progress), ..call_options() }), server);
    result.unwrap();
    let mut steps = Vec::new();
    while let Ok(step) = steps_received.try_recv() {
        steps.push(step.progress);
    }
    assert_eq!(steps, (0..1_000).map(f64::from).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let tool = permitted("slow", json!({}));
    let calling = connection.call(&tool, call_options());
    let request = tokio::select! {
        _ = calling => panic!("the call must not end"),
        request = fake.expect("tools/call") => request,
    };
    let cancel = fake.expect("notifications/cancelled").await;
    assert_eq!(cancel["params"]["requestId"], request["id"]);
}

#[tokio::test]
async fn a_request_is_always_sent_before_its_cancellation() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    for _ in 0..50 {
        let tool = permitted("slow", json!({}));
        let mut calling = Box::pin(connection.call(&tool, call_options()));
        // Sent and immediately cancelled.
        for _ in 0..3 {
            assert!(futures::poll!(calling.as_mut()).is_pending());
            tokio::task::yield_now().await;
        }
        drop(calling);
        let request = fake.expect("tools/call").await;
        assert_eq!(fake.expect("notifications/cancelled").await["params"]["requestId"], request["id"]);
    }
}

#[tokio::test]
async fn a_server_that_dies_ends_its_calls_at_once() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async move {
        fake.expect("tools/call").await;
        drop(fake);
    };
    let (result, ()) = tokio::join!(call(&connection, "echo"), server);
    assert_eq!(result, "connection-failed: server `fake`: the server closed its output");
    assert_eq!(connection.closed().await, "the server closed its output");
    assert_eq!(call(&connection, "echo").await, "connection-failed: server `fake`: the server closed its output");
}

#[tokio::test]
async fn the_last_message_may_lack_a_line_end() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async move {
        let request = fake.expect("tools/call").await;
        fake.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "content": [] } }).to_string()).await;
        drop(fake);
    };
    let (result, ()) = tokio::join!(call(&connection, "echo"), server);
    assert_eq!(result, r#"{"content":[]}"#);
}

#[tokio::test]
async fn closing_ends_the_input_of_the_server() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    connection.close().await;
    assert_eq!(fake.lines.next_line().await.unwrap(), None);
    assert_eq!(connection.closed().await, "the connection was closed");
    assert!(call(&connection, "echo").await.starts_with("connection-failed: server `fake`"));
}

#[tokio::test(start_paused = true)]
async fn a_ping_measures_the_latency_and_times_out() {
    let (connection, mut fake, _) = connected(json!({})).await;
    let server = async {
        let request = fake.expect("ping").await;
        tokio::time::sleep(Duration::from_millis(250)).await;
        fake.reply(&request, json!({})).await;
        let request = fake.expect("ping").await;
        fake.refuse(&request, -32601, "what?").await;
        fake.expect("ping").await;
    };
    let client = async {
        let limit = Duration::from_secs(5);
        assert!(connection.ping(limit).await.unwrap() >= Duration::from_millis(250));
        assert!(connection.ping(limit).await.is_ok());
        assert_eq!(connection.ping(limit).await.unwrap_err().kind(), "timeout");
    };
    tokio::join!(server, client);
}

#[tokio::test]
async fn resources_prompts_and_completions_are_requested_by_name() {
    let (connection, mut fake, _) = connected(json!({ "resources": {}, "prompts": {}, "completions": {} })).await;
    let limit = Duration::from_secs(5);
    let server = async {
        for (method, params) in [
            ("resources/read", json!({ "uri": "file:///a" })),
            ("prompts/get", json!({ "name": "greet", "arguments": { "to": "you" } })),
            (
                "completion/complete",
                json!({ "ref": { "type": "ref/prompt", "name": "greet" }, "argument": { "name": "to", "value": "y" } }),
            ),
            ("resources/subscribe", json!({ "uri": "file:///a" })),
        ] {
            let mut request = fake.expect(method).await;
            request["params"].as_object_mut().unwrap().remove("_meta");
            assert_eq!(request["params"], params);
            fake.reply(&request, json!({ "asked": method })).await;
        }
    };
    let client = async {
        let arguments = json!({ "to": "you" }).as_object().cloned();
        let requests = [
            Request::ReadResource { uri: "file:///a".into() },
            Request::GetPrompt { name: "greet".into(), arguments },
            Request::Complete {
                r#ref: json!({ "type": "ref/prompt", "name": "greet" }),
                argument: json!({ "name": "to", "value": "y" }),
                context: None,
            },
            Request::Subscribe { uri: "file:///a".into() },
        ];
        for request in requests {
            let method = request.method();
            assert_eq!(connection.request(request, limit).await.unwrap().get(), json!({ "asked": method }).to_string());
        }
    };
    tokio::join!(server, client);
}

#[tokio::test]
async fn concurrent_calls_get_their_own_responses() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let mut waiting = Vec::new();
        for n in 0..512_usize {
            waiting.push(fake.expect("tools/call").await);
            // In random order.
            if waiting.len() > 64 || n > 447 {
                let request = waiting.swap_remove(n % waiting.len());
                let name = &request["params"]["name"];
                fake.reply(&request, json!({ "content": [name] })).await;
            }
        }
        for request in waiting {
            fake.reply(&request, json!({ "content": [request["params"]["name"]] })).await;
        }
    };
    let names: Vec<String> = (0..512).map(|n| format!("tool-{n}")).collect();
    let calls = futures::future::join_all(names.iter().map(|name| call(&connection, name)));
    let (results, ()) = tokio::join!(calls, server);
    for (name, result) in names.iter().zip(results) {
        assert_eq!(result, json!({ "content": [name] }).to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_message_is_a_sign_of_life_of_the_only_call() {
    let (connection, mut fake, _notices) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(40)).await;
            fake.line(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#)
                .await;
        }
        fake.reply(&request, json!({ "content": ["done"] })).await;
    };
    let (result, ()) = tokio::join!(call(&connection, "slow"), server);
    assert_eq!(result, r#"{"content":["done"]}"#);
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_the_user_is_asked_does_not_count() {
    let host = FakeHost { elicits: true, delay: Duration::from_secs(50), ..FakeHost::default() };
    let (connection, mut fake, _notices) = connected_with(json!({ "tools": {} }), Arc::new(host)).await;
    let server = async {
        let request = fake.expect("tools/call").await;
        fake.line(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#).await;
        assert_eq!(fake.receive().await["id"], "q");
        tokio::time::sleep(Duration::from_secs(20)).await;
        fake.reply(&request, json!({ "content": ["done"] })).await;
    };
    let (result, ()) = tokio::join!(call(&connection, "slow"), server);
    assert_eq!(result, r#"{"content":["done"]}"#, "50 s for the answer and 20 s for the rest");
}

#[tokio::test(start_paused = true)]
async fn the_total_limit_of_a_call_includes_all_rounds_of_input() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        loop {
            let request = fake.receive().await;
            if request["method"] == "tools/call" {
                tokio::time::sleep(Duration::from_secs(50)).await;
                fake.reply(&request, json!({ "resultType": "input_required", "requestState": "s" })).await;
            }
        }
    };
    let started = Instant::now();
    let options = CallOptions { max_timeout: Duration::from_secs(200), ..call_options() };
    let permitted = permitted("endless", json!({}));
    let result = tokio::select! {
        result = connection.call(&permitted, options) => shown(result),
        () = server => String::new(),
    };
    assert_eq!((result.split(':').next(), started.elapsed().as_secs()), (Some("timeout"), 200), "{result}");
}
