//! Answers on event streams: cut, resumed, broken, and in competition with a flood of news.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures::StreamExt;

use super::mock::*;

#[tokio::test]
async fn a_response_may_follow_other_messages_on_an_event_stream() {
    let server = Mock::mcp(|request| {
        let progress =
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
        events(format!(": hello\n\n{}{}", event(progress), event(&request.result(text_result("done")))))
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "done");
}

#[tokio::test]
async fn a_stream_that_ends_without_an_event_id_fails_its_call_at_once() {
    let server = Mock::mcp(|_| events("data: {\"jsonrpc\":\"2.0\",\"meth")).await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap_err(), "the connection ended before the response was complete");
    assert!(!server.seen().iter().any(|request| request.method == "GET" && request.header("last-event-id").is_some()));
}

#[tokio::test]
async fn a_broken_stream_with_an_event_id_is_resumed_after_the_servers_delay() {
    let asked: Arc<Mutex<Option<(Instant, String)>>> = Arc::default();
    let noted = asked.clone();
    let waited: Arc<Mutex<Option<Duration>>> = Arc::default();
    let measured = waited.clone();
    let server = Mock::mcp(move |request| {
        let mut asked = noted.lock().unwrap();
        if request.method == "GET" {
            assert_eq!(request.header("last-event-id"), Some("e-7"));
            let (at, answer) = asked.take().unwrap();
            *measured.lock().unwrap() = Some(at.elapsed());
            return events(event(&answer));
        }
        *asked = Some((Instant::now(), request.result(text_result("resumed"))));
        events("id: e-7\nretry: 500\ndata:\n\n")
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "resumed");
    // Never sooner than the server asked; how much later is the machine's affair.
    assert!(waited.lock().unwrap().unwrap() >= Duration::from_millis(500));
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_fails() {
    let server = Mock::mcp(|request| match request.method == "GET" {
        true => answer(400, "", ""),
        false => events("id: e-1\nretry: 1\ndata:\n\n"),
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap_err(), "the connection ended before the response was complete");
}

#[tokio::test]
async fn an_event_that_is_not_utf8_is_skipped() {
    let server = Mock::mcp(|request| {
        let mut body = b"data: {\"broken\": \"\xff\xfe\"}\n\n".to_vec();
        body.extend(event(&request.result(text_result("still here"))).bytes());
        answer(200, "text/event-stream", body)
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "still here");
}

#[tokio::test]
async fn an_event_over_the_limit_fails_its_call_only() {
    let first = AtomicBool::new(true);
    let server = Mock::mcp(move |request| match first.swap(false, Ordering::Relaxed) {
        true => events(event(&"x".repeat(2 << 20))),
        false => events(event(&request.result(text_result("small")))),
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    assert!(client.read("t").await.unwrap_err().contains("larger than 1 MiB"));
    assert_eq!(client.read("t").await.unwrap(), "small");
}

#[tokio::test]
async fn a_busy_background_stream_does_not_delay_calls() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    let server = Mock::start(move |request| {
        if request.method == "GET" {
            let counter = counter.clone();
            let flood = futures::stream::iter(0..50_000).map(move |number| {
                counter.fetch_add(1, Ordering::Relaxed);
                let line = format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":{number}}}}}"#);
                Bytes::from(event(&line))
            });
            return stream(flood.chain(futures::stream::pending()));
        }
        handshake(&request).unwrap_or_else(|| answer(200, "application/json", request.result(text_result("through"))))
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    for _ in 0..20 {
        assert_eq!(client.read_within("t", Duration::from_secs(5)).await.unwrap(), "through");
    }
    client.close().await;
}

#[tokio::test]
async fn a_background_stream_is_resumed_from_its_last_event() {
    let (heard, mut resumed) = tokio::sync::mpsc::channel(4);
    let server = Mock::start(move |request| {
        if request.method == "GET" {
            let last = request.header("last-event-id").map(str::to_owned);
            heard.try_send(last.clone()).ok();
            return match last {
                None => events("id: n-1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"),
                Some(_) => stream(futures::stream::pending()),
            };
        }
        handshake(&request).unwrap()
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(resumed.recv().await.unwrap(), None);
    assert_eq!(resumed.recv().await.unwrap().as_deref(), Some("n-1"));
    client.close().await;
}

#[tokio::test]
async fn a_server_without_sessions_may_have_a_background_stream_too() {
    let (heard, mut asked) = tokio::sync::mpsc::channel(4);
    let server = Mock::start(move |request| match (request.method.as_str(), request.rpc()) {
        ("GET", _) => {
            heard.try_send(()).ok();
            stream(futures::stream::pending())
        }
        ("POST", "initialize") => answer(200, "application/json", greeting(&request)),
        _ => answer(202, "", ""),
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    asked.recv().await.unwrap();
    client.close().await;
}

/// A server that accepts the background stream after a delay, and tells a reader whether it had done so.
async fn slow_to_listen(delay: Duration) -> Mock {
    let asked: Arc<Mutex<Option<Instant>>> = Arc::default();
    Mock::start(move |request| {
        if request.method == "GET" {
            *asked.lock().unwrap() = Some(Instant::now());
            let mut late = stream(futures::stream::pending());
            late.extensions_mut().insert(Late(delay));
            return late;
        }
        let accepted = asked.lock().unwrap().is_some_and(|asked| asked.elapsed() >= delay);
        let text = if accepted { "after the stream" } else { "before the stream" };
        handshake(&request).unwrap_or_else(|| answer(200, "application/json", request.result(text_result(text))))
    })
    .await
}

#[tokio::test]
async fn a_request_that_may_cause_questions_waits_for_the_background_stream() {
    let server = slow_to_listen(Duration::from_millis(300)).await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "after the stream");
}

#[tokio::test]
async fn a_background_stream_that_is_never_accepted_delays_a_request_only_for_a_while() {
    let server = slow_to_listen(Duration::from_secs(3_600)).await;
    let client = connect(&server.url).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "before the stream");
}

#[tokio::test]
async fn a_request_accepted_without_a_response_fails_if_there_is_no_stream() {
    let server = Mock::mcp(|_| answer(202, "", "")).await;
    let client = connect(&server.url).await.unwrap();
    let said = client.read_within("t", Duration::from_secs(60)).await.unwrap_err();
    assert_eq!(
        said,
        "expected JSON or an event stream, found HTTP 202 without a response; check `url` (or is this a captive portal?)"
    );
}

#[tokio::test]
async fn a_cancelled_call_drops_its_stream() {
    let open = Arc::new(AtomicBool::new(false));
    let (gone, mut closed) = tokio::sync::mpsc::channel::<()>(1);
    let gone = Mutex::new(Some(gone));
    let flag = open.clone();
    let server = Mock::mcp(move |_| {
        flag.store(true, Ordering::Relaxed);
        // Dropped when the client lets go: then the channel closes.
        let kept = gone.lock().unwrap().take();
        stream(futures::stream::unfold(kept, |kept| async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Bytes::from_static(b": still thinking\n\n"), kept))
        }))
    })
    .await;
    let client = connect(&server.url).await.unwrap();
    let said = client.read_within("t", Duration::from_millis(200)).await.unwrap_err();
    assert!(said.contains("did not answer `resources/read` within"), "{said}");
    assert!(open.load(Ordering::Relaxed));
    assert!(closed.recv().await.is_none());
}
