//! One request and its outcome: a JSON response, an event stream (resumed if it breaks and the server sent an event
//! id), or an error.

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta, JsonRpcRequest, ProtocolVersion, RequestId,
};
use serde::Deserialize;
use serde_json::Value;

use super::super::net::{EVENT_STREAM, Events, JSON, RemoteError, Request, content_type};
use super::session::{SESSION_ID, Session, resume_pause};
use super::{HttpState, Report, lock};
use crate::model::json_memory::is_light;
use crate::text::{mask, one_line};

/// Attempts in a row to resume a stream without success.
const MAX_RESUMES: u32 = 5;

/// A sent request, as far as the transport needs it.
struct SentRequest {
    id: RequestId,
    method: String,
    /// The revision of this request: from 2026-07-28 on it is part of the request.
    version: Option<ProtocolVersion>,
    /// Whether it requests the first page of a list.
    is_first_page: bool,
}

impl HttpState {
    pub(super) async fn exchange(
        &self,
        request: JsonRpcRequest<ClientRequest>,
        report: &mut Report,
    ) -> Result<(), RemoteError> {
        let version = request.request.get_meta().protocol_version();
        let id = request.id.clone();
        let message = ClientJsonRpcMessage::Request(request);
        let value = serde_json::to_value(&message)
            .map_err(|error| RemoteError::InvalidConfig(format!("cannot serialize the message as JSON: {error}")))?;
        let method = value.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(version) = &version {
            lock(&self.session).version = Some(version.clone());
        }
        if method == "initialize" {
            // This may be the second attempt, after a server refused the newer handshake.
            *lock(&self.session) = Session::default();
        }
        if !is_quick(&method) {
            self.background_settled().await;
        }
        let is_first_page = value.pointer("/params/cursor").is_none();
        let sent = SentRequest { id, method, version, is_first_page };
        let post = self.post(&value, &sent.method);
        let has_session = post.headers.contains_key(SESSION_ID);
        let answer = self.origin.fetch(&self.origin.url, &post).await?;
        lock(&self.session).note(&answer, sent.method == "initialize" && answer.status().is_success());

        let status = answer.status();
        match content_type(&answer).as_str() {
            _ if status == StatusCode::NOT_FOUND && has_session => Err(RemoteError::SessionLost),
            // The response comes on the background stream, or the call times out. Without that stream it never comes.
            _ if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => {
                let alone = sent.version.is_some()
                    || tokio::time::timeout(self.head, self.no_background_stream.cancelled()).await.is_ok();
                match alone {
                    true => Err(RemoteError::NotMcp(format!("HTTP {} without a response", status.as_u16()))),
                    false => Ok(()),
                }
            }
            kind if !status.is_success() => self.handle_refusal(answer, kind == JSON, &sent, has_session, report).await,
            JSON => {
                let body = self.origin.read(answer).await?;
                match self.deliver(&body, &sent, report).await {
                    true => Ok(()),
                    false => Err(RemoteError::NotMcp(no_answer(&body, &sent.method))),
                }
            }
            EVENT_STREAM => self.follow(answer, &sent, report).await,
            "" => Err(RemoteError::NotMcp("a response without a content type".to_owned())),
            kind => Err(RemoteError::NotMcp(kind.to_owned())),
        }
    }

    /// Sends a message without a response: a notification, or our response to the server.
    pub(super) async fn notify(&self, message: &ClientJsonRpcMessage) -> Result<(), RemoteError> {
        let value = serde_json::to_value(message)
            .map_err(|error| RemoteError::InvalidConfig(format!("cannot serialize the message as JSON: {error}")))?;
        let method = value.get("method").and_then(Value::as_str).unwrap_or_default();
        let mut post = self.post(&value, method);
        post.head_timeout = Some(self.head);
        let has_session = post.headers.contains_key(SESSION_ID);
        let answer = self.origin.fetch(&self.origin.url, &post).await?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND if has_session => Err(RemoteError::SessionLost),
            status => Err(RemoteError::status(status, "")),
        }
    }

    fn post(&self, message: &Value, method: &str) -> Request {
        let mut headers: HeaderMap = {
            let session = lock(&self.session);
            let mut headers = session.headers();
            // The era is unknown before the first response, and older servers ignore these headers.
            if !session.has_sessions() || method == "initialize" {
                headers.extend(lock(&self.tools).headers(message));
                headers.remove(SESSION_ID);
            }
            headers
        };
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        Request {
            method: Method::POST,
            headers,
            body: Some(message.to_string().into_bytes()),
            head_timeout: is_quick(method).then_some(self.head),
        }
    }

    /// Delivers the messages of one JSON text. Returns true if our response was among them.
    async fn deliver(&self, text: &str, sent: &SentRequest, report: &mut Report) -> bool {
        match sent.method.as_str() {
            "initialize" => {
                if let Some(version) = negotiated_version(text) {
                    lock(&self.session).version = Some(version);
                }
            }
            "tools/list" if sent.version.is_some() => {
                let changed = lock(&self.tools).learn(text, sent.is_first_page);
                if let Some(changed) = changed {
                    return self.sender.deliver_answer(&changed, &sent.id).await.answered;
                }
            }
            _ => {}
        }
        let delivered = self.sender.deliver_answer(text, &sent.id).await;
        if delivered.any {
            report.message();
        }
        delivered.answered
    }

    /// Reads an event stream up to our response.
    async fn follow(&self, answer: Response, sent: &SentRequest, report: &mut Report) -> Result<(), RemoteError> {
        let mut events = Events::new(answer, self.origin.limit);
        let (mut failures, mut empty) = (0, 0);
        loop {
            while let Some(event) = events.next().await? {
                failures = 0;
                if !event.data.is_empty() {
                    empty = 0;
                }
                if self.deliver(&event.data, sent, report).await {
                    return Ok(());
                }
            }
            let resumable = sent.version.is_none() && failures < MAX_RESUMES;
            let Some(last_id) = events.last_id().filter(|_| resumable).map(str::to_owned) else {
                return Err(RemoteError::StreamEnded);
            };
            let retry = events.retry();
            empty += 1;
            events = loop {
                tokio::time::sleep(resume_pause(retry, failures, empty)).await;
                failures += 1;
                match self.stream(Some(&last_id)).await {
                    Ok(events) => break events.resuming(&last_id, retry),
                    Err(reason) if failures >= MAX_RESUMES || reason.needs_auth() => return Err(reason),
                    Err(RemoteError::Refused(_) | RemoteError::Unreachable(_) | RemoteError::HeadersTimeout(_)) => {}
                    Err(reason) => {
                        tracing::debug!(%reason, "cannot resume the event stream");
                        return Err(RemoteError::StreamEnded);
                    }
                }
            };
        }
    }

    /// An error status may still come with a JSON-RPC response.
    async fn handle_refusal(
        &self,
        answer: Response,
        json: bool,
        sent: &SentRequest,
        has_session: bool,
        report: &mut Report,
    ) -> Result<(), RemoteError> {
        let status = answer.status();
        let body = match json {
            true => self.origin.read(answer).await.unwrap_or_default(),
            false => String::new(),
        };
        let refusal = match is_light(&body) {
            true => serde_json::from_str::<Refusal>(&body).unwrap_or_default(),
            false => Refusal::default(),
        };
        if refusal.id.as_ref().is_some_and(|id| !id.is_null())
            && self.sender.deliver_answer(&body, &sent.id).await.answered
        {
            report.message();
            return Ok(());
        }
        let handshake = match (sent.method.as_str(), refusal.error.clone()) {
            ("initialize" | "server/discover", Some(error)) => Some(error),
            // A server that does not know the method and sends no JSON-RPC error.
            ("server/discover", None) => {
                let text = format!("`server/discover` was refused with HTTP {}", status.as_u16());
                Some(ErrorData::invalid_request(text, None))
            }
            _ => None,
        };
        if let Some(error) = handshake.filter(|_| status.is_client_error()) {
            // Converted to a JSON-RPC error, so that the handshake can try the other era.
            self.sender.refuse(error, &sent.id).await;
            report.message();
            return Ok(());
        }
        if status == StatusCode::BAD_REQUEST && has_session && refusal.error.is_some() {
            // Some servers send this after a restart, when they do not know the session.
            return Err(RemoteError::SessionLost);
        }
        Err(RemoteError::status(status, refusal.error.as_ref().map_or("", |error| error.message.as_ref())))
    }
}

/// Whether a server must answer a request quickly, and without asking anything. A tool may take as long as its call.
fn is_quick(method: &str) -> bool {
    method.ends_with("/list") || matches!(method, "initialize" | "server/discover" | "ping" | "logging/setLevel")
}

/// Describes a body without a response.
fn no_answer(body: &str, method: &str) -> String {
    match body.trim() {
        "" => "an empty response".to_owned(),
        body if serde_json::from_str::<serde::de::IgnoredAny>(body).is_ok() => {
            format!("JSON without a response to `{method}`")
        }
        body => format!("`{}`, which is not valid JSON", one_line(&mask(body), 80)),
    }
}

/// A JSON-RPC error, perhaps without an id.
#[derive(Default, Deserialize)]
struct Refusal {
    id: Option<Value>,
    error: Option<ErrorData>,
}

/// The protocol version in the response to `initialize`.
fn negotiated_version(text: &str) -> Option<ProtocolVersion> {
    #[derive(Deserialize)]
    struct Answer {
        result: Settled,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settled {
        protocol_version: ProtocolVersion,
    }
    serde_json::from_str::<Answer>(text).ok().map(|answer| answer.result.protocol_version)
}
