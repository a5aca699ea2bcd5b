//! Servers that are not there, refuse, lead astray, or are something else altogether.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use futures::StreamExt;
use tokio::net::TcpListener;

use super::mock::*;

#[tokio::test]
async fn a_port_where_nothing_listens_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let error = connect(&format!("http://{address}/mcp?key=hidden")).await.unwrap_err();
    assert_eq!(error, format!("cannot connect to {address}: connection refused; is the server running?"));
}

#[tokio::test]
async fn a_plain_403_is_reported_and_not_retried() {
    let server = Mock::start(|_| answer(403, "", "")).await;
    let error = connect(&server.url).await.unwrap_err();
    assert!(error.starts_with("HTTP 403 forbidden"), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_401_requires_sign_in_with_and_without_a_challenge() {
    for challenge in [None, Some("Bearer realm=\"mcp\"")] {
        let server = Mock::start(move |_| {
            let mut response = answer(401, "", "");
            if let Some(challenge) = challenge {
                response.headers_mut().insert("www-authenticate", challenge.parse().unwrap());
            }
            response
        })
        .await;
        let error = connect(&server.url).await.unwrap_err();
        assert!(error.contains("requires authentication"), "{error}");
    }
}

#[tokio::test]
async fn a_429_says_how_long_to_wait() {
    let server = Mock::start(|_| {
        let mut response = answer(429, "", "");
        response.headers_mut().insert("retry-after", "3".parse().unwrap());
        response
    })
    .await;
    let error = connect(&server.url).await.unwrap_err();
    assert_eq!(error, "HTTP 429 too many requests; the server asks to wait 3 s");
}

#[tokio::test]
async fn the_retry_after_of_a_503_is_honoured() {
    let server = Mock::start(|_| {
        let mut response = answer(503, "", "");
        response.headers_mut().insert("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT".parse().unwrap());
        response
    })
    .await;
    let error = connect(&server.url).await.unwrap_err();
    assert_eq!(error, "HTTP 503 service unavailable; the server asks to wait 0 s");
}

#[tokio::test]
async fn a_303_does_not_resend_a_call() {
    let server = Mock::start(|_| {
        let mut response = answer(303, "", "");
        response.headers_mut().insert("location", "/elsewhere".parse().unwrap());
        response
    })
    .await;
    let error = connect(&server.url).await.unwrap_err();
    assert!(error.starts_with("HTTP 303 see other: "), "{error}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_invalid_first_response_is_reported_at_once() {
    let wrong = r#"{"jsonrpc":"2.0","id":"somebody-else","result":{}}"#;
    for (body, got) in [
        ("", "an empty response"),
        ("xx", "`xx`, which is not valid JSON"),
        (
            r#"{"jsonrpc":"2.0","id":0,"result":{"#,
            "`{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{`, which is not valid JSON",
        ),
        (wrong, "JSON without a response to `initialize`"),
    ] {
        let server = Mock::start(move |_| answer(200, "application/json", body)).await;
        let error = connect(&server.url).await.unwrap_err();
        assert_eq!(
            error,
            format!("expected JSON or an event stream, found {got}; check `url` (or is this a captive portal?)")
        );
    }
    // The same on a stream, after a word that is no answer.
    let notice = "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n";
    for body in ["data: xx\n\n", notice] {
        let server = Mock::start(move |_| answer(200, "text/event-stream", body)).await;
        let error = connect(&server.url).await.unwrap_err();
        assert!(error.starts_with("the connection ended before the response was complete"), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_not_followed_and_leaks_no_header() {
    let trap = Mock::start(|_| answer(200, "", "")).await;
    let elsewhere = trap.url.clone();
    let server = Mock::start(move |_| {
        let mut response = answer(307, "", "");
        response.headers_mut().insert("location", elsewhere.parse().unwrap());
        response
    })
    .await;
    let error = connect_to(header(&server.url, "Authorization", "Bearer do-not-leak")).await.err().unwrap();
    assert!(error.starts_with("the server redirects to another host (http://127.0.0.1:"), "{error}");
    assert!(trap.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_to_a_file_is_refused() {
    let server = Mock::start(|_| {
        let mut response = answer(302, "", "");
        response.headers_mut().insert("location", "file:///etc/passwd".parse().unwrap());
        response
    })
    .await;
    let error = connect(&server.url).await.unwrap_err();
    assert!(error.starts_with("the server redirects to another host (file:)"), "{error}");
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_with_all_headers() {
    let server = Mock::start(|request| match request.uri.path() {
        "/mcp" => {
            let mut response = answer(307, "", "");
            response.headers_mut().insert("location", "/mcp/".parse().unwrap());
            response
        }
        _ => {
            handshake(&request).unwrap_or_else(|| answer(200, "application/json", request.result(text_result("moved"))))
        }
    })
    .await;
    let client = connect_to(header(&server.url, "X-Key", "sesame-open")).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "moved");
    assert!(server.seen().iter().all(|request| request.header("x-key") == Some("sesame-open")));
}

#[tokio::test]
async fn redirect_loops_end() {
    let server = Mock::start(|_| {
        let mut response = answer(308, "", "");
        response.headers_mut().insert("location", "/mcp".parse().unwrap());
        response
    })
    .await;
    assert_eq!(connect(&server.url).await.unwrap_err(), "more than 5 redirects in a row");
}

#[tokio::test]
async fn a_web_page_instead_of_a_response_is_named() {
    let server = Mock::start(|_| answer(200, "text/html; charset=utf-8", "<h1>Welcome to our hotel</h1>")).await;
    let error = connect(&server.url).await.unwrap_err();
    assert_eq!(error, "expected JSON or an event stream, found text/html; check `url` (or is this a captive portal?)");
}

#[tokio::test]
async fn an_error_status_includes_the_servers_message() {
    let server =
        Mock::mcp(|_| answer(503, "application/json", r#"{"error":{"code":-1,"message":"back at ten"}}"#)).await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap_err(), "HTTP 503 service unavailable: back at ten");
    let server = Mock::mcp(|_| answer(500, "text/html", "<pre>stack trace</pre>")).await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap_err(), "HTTP 500 internal server error");
}

#[tokio::test]
async fn a_json_rpc_error_counts_with_any_status() {
    let server = Mock::mcp(|request| {
        let id = request.body["id"].to_string();
        answer(
            400,
            "application/json",
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no such tool"}}}}"#),
        )
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap_err(), "no such tool (error -32602)");
}

#[tokio::test]
async fn oversized_headers_are_rejected() {
    let server = Mock::start(|_| {
        let mut response = answer(200, "application/json", "{}");
        for number in 0..70 {
            let name: axum::http::HeaderName = format!("x-{number}").parse().unwrap();
            response.headers_mut().insert(name, "y".repeat(1000).parse().unwrap());
        }
        response
    })
    .await;
    assert_eq!(connect(&server.url).await.unwrap_err(), "the response headers are larger than 64 KiB");
}

#[tokio::test]
async fn a_response_over_the_limit_is_rejected() {
    let server =
        Mock::mcp(|request| answer(200, "application/json", request.result(text_result(&"x".repeat(2 << 20))))).await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(
        client.read("t").await.unwrap_err(),
        "the response is larger than 1 MiB (`limits.message-bytes` sets this limit)"
    );
}

#[tokio::test]
async fn a_slow_response_times_out_and_its_connection_closes() {
    let server = Mock::mcp(|_| {
        let drops = futures::stream::iter(0..).then(|_| async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Bytes::from_static(b" ")
        });
        answer(200, "application/json", axum::body::Body::from_stream(drops.map(Ok::<_, std::convert::Infallible>)))
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    let error = client.read_within("t", Duration::from_millis(300)).await.unwrap_err();
    assert!(error.contains("did not answer `resources/read` within"), "{error}");
    client.close().await;
    assert_eq!(server.count("notifications/cancelled"), 1);
}

#[tokio::test]
async fn every_request_carries_the_first_session_id_and_the_negotiated_version() {
    let count = AtomicUsize::new(0);
    let server = Mock::mcp(move |request| {
        let mut response = answer(200, "application/json", request.result(text_result("ok")));
        let next = format!("other-{}", count.fetch_add(1, Ordering::Relaxed));
        response.headers_mut().insert("mcp-session-id", next.parse().unwrap());
        response
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    for _ in 0..3 {
        client.read("t").await.unwrap();
    }
    client.close().await;
    let seen = server.seen();
    let (greeting, rest) = seen.split_first().unwrap();
    assert_eq!((greeting.header("mcp-session-id"), greeting.header("mcp-protocol-version")), (None, None));
    for request in rest {
        assert_eq!(request.header("mcp-session-id"), Some("first"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"), "{request:?}");
    }
    assert!(rest.iter().any(|request| request.method == "DELETE"));
}

#[tokio::test]
async fn a_forgotten_session_ends_the_connection_and_a_new_one_works() {
    for (status, kind, body) in [
        (404, "", ""),
        (
            400,
            "application/json",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no valid session"}}"#,
        ),
    ] {
        let forgotten = Arc::new(AtomicBool::new(true));
        let switch = forgotten.clone();
        let server = Mock::mcp(move |request| match switch.load(Ordering::Relaxed) {
            true => answer(status, kind, body),
            false => answer(200, "application/json", request.result(text_result("back"))),
        })
        .await;
        let client = connect(&server.url).await.unwrap();
        client.read("t").await.unwrap_err();
        // The loop of the protocol ends by itself: nobody has to find out by asking again.
        client.closed().await;
        forgotten.store(false, Ordering::Relaxed);
        let client = connect(&server.url).await.unwrap();
        assert_eq!(client.read("t").await.unwrap(), "back");
    }
}

#[tokio::test]
async fn a_server_that_goes_away_ends_the_connection_with_the_next_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Mock::mcp(|request| answer(200, "application/json", request.result(text_result("ok")))).await;
    // A door that can be shut: it passes connections on until it is dropped.
    let inner = server.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let door = tokio::spawn(async move {
        let mut open = tokio::task::JoinSet::new();
        loop {
            let (mut from, _) = listener.accept().await.unwrap();
            let mut to = tokio::net::TcpStream::connect(&inner).await.unwrap();
            open.spawn(async move { tokio::io::copy_bidirectional(&mut from, &mut to).await.ok() });
        }
    });
    let client = connect(&format!("http://{address}/mcp")).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "ok");
    door.abort();
    door.await.unwrap_err();
    client.read("t").await.unwrap_err();
    client.closed().await;
}
