//! The legacy HTTP+SSE transport.

use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use futures::{Stream, StreamExt};
use mcp_sidecar::config::Launch;
use mcp_sidecar::config::expand::{Expanded, Values, expand};
use mcp_sidecar::config::spec::Remote;
use tokio::sync::mpsc;

use super::mock::*;

/// What a channel brings, as a stream.
fn stream_of<T>(receiver: mpsc::Receiver<T>) -> impl Stream<Item = T> {
    futures::stream::unfold(receiver, |mut receiver| async { receiver.recv().await.map(|item| (item, receiver)) })
}

async fn greet(server: &Mock) -> Result<Client, String> {
    connect_to(Expanded::Sse(endpoint(&server.url))).await
}

/// A server of the old kind: answers to what is posted come on the stream. `place` is what its first event names.
async fn server(place: &'static str) -> Mock {
    let line: Arc<Mutex<Option<mpsc::Sender<Bytes>>>> = Arc::default();
    Mock::start(move |request| {
        let mut line = line.lock().unwrap();
        if request.method == "GET" {
            let (sender, receiver) = mpsc::channel(16);
            *line = Some(sender);
            let first = Bytes::from(format!("event: endpoint\ndata: {place}\n\n"));
            return stream(futures::stream::iter([first]).chain(stream_of(receiver)));
        }
        let said = match request.rpc() {
            "initialize" => greeting(&request),
            "resources/read" if request.body["params"]["uri"] == "hang:up" => {
                *line = None;
                return answer(202, "", "");
            }
            "resources/read" => request.result(text_result(request.uri.query().unwrap_or("no query"))),
            _ => return answer(202, "", ""),
        };
        line.as_ref().unwrap().try_send(Bytes::from(format!("event: message\n{}", event(&said)))).unwrap();
        answer(202, "", "Accepted")
    })
    .await
}

#[tokio::test]
async fn messages_go_where_the_endpoint_event_says_and_answers_come_on_the_stream() {
    let server = server("/messages?session=9").await;
    let client = greet(&server).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "session=9");
}

#[tokio::test]
async fn when_the_stream_ends_the_connection_has_ended() {
    let server = server("/messages").await;
    let client = greet(&server).await.unwrap();
    client.read("hang:up").await.unwrap_err();
    client.closed().await;
}

#[tokio::test]
async fn an_endpoint_on_another_host_is_refused() {
    let server = server("http://127.0.0.1:1/messages").await;
    let said = greet(&server).await.err().unwrap();
    assert!(said.starts_with("the server redirects to another host (http://127.0.0.1:1)"), "{said}");
}

#[tokio::test]
async fn a_response_that_is_not_an_event_stream_is_named() {
    let server = Mock::start(|_| answer(200, "text/html", "<h1>hello</h1>")).await;
    let said = greet(&server).await.err().unwrap();
    assert_eq!(said, "expected JSON or an event stream, found text/html; check `url` (or is this a captive portal?)");
}

#[tokio::test]
async fn a_connector_is_reached_by_its_id_with_the_bearer_of_its_headers() {
    let server =
        Mock::mcp(|request| answer(200, "application/json", request.result(text_result(request.uri.path())))).await;
    let url = server.url.replace("/mcp", "/v1/mcp/{id}");
    let headers = [("Authorization".to_owned(), "Bearer of-tidings".to_owned())].into();
    let launch =
        Launch::ClaudeAiProxy { id: "mcpsrv_01/../x".to_owned(), remote: Remote { url, headers, oauth: None } };
    let client = connect_to(expand(&launch, &Values::default(), None).unwrap()).await.unwrap();
    assert_eq!(client.read("t").await.unwrap(), "/v1/mcp/mcpsrv_01%2F%2E%2E%2Fx");
    assert!(server.seen().iter().all(|request| request.header("authorization") == Some("Bearer of-tidings")));
}
