//! The handshake in both eras, on every transport.

use std::sync::{Arc, Mutex, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use rmcp::service::{ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::direct::DirectCalls;
use super::exchange::describe_error;
use super::subscription::Subscription;
use super::{Connection, ConnectionOptions, Era, Inner, OpenError, Request, Wire, lists, request};
use crate::model::PeerInfo;
use crate::server::client::{Client, Questions};
use crate::server::transport::ledger::Ledger;
use crate::server::transport::sdk::EditorTransport;
use crate::server::transport::stdio::{LineTransport, Outbox};
use crate::server::transport::{AnyTransport, LedgerTransport, ParkedTransport, server_info};
use crate::text::{mask, one_line};

type Service = RunningService<RoleClient, Client>;

pub async fn open(wire: Wire, options: ConnectionOptions) -> Result<Connection, OpenError> {
    let limit = options.startup_timeout;
    let ledger = match &wire {
        Wire::Remote(remote) => remote.ledger.clone(),
        Wire::Bytes { .. } | Wire::Tunnel(_) => Ledger::new(options.name.clone(), options.limits.message_bytes),
    };
    ledger.send_notices_to(options.notices.clone());
    let what = OnceLock::new();
    match tokio::time::timeout(limit, connect(wire, options, ledger.clone(), &what)).await {
        Ok(opened) => opened,
        Err(_) => {
            let hint = match ledger.skipped() {
                (0, _) if ledger.unread_bytes() > 0 => "; the server does not read its input".to_owned(),
                (0, _) => String::new(),
                (_, sample) => format!("; it sent `{sample}`, which is not MCP"),
            };
            Err(OpenError::Timeout { what: what.get().copied().unwrap_or("initialize"), limit, hint })
        }
    }
}

async fn connect(
    wire: Wire,
    options: ConnectionOptions,
    ledger: Ledger,
    what: &OnceLock<&'static str>,
) -> Result<Connection, OpenError> {
    let questions = Questions::new(options.name.clone(), options.host.clone());
    let (source, outbox) = TransportSource::new(wire, &ledger);
    let shake = |era: Era, version: ProtocolVersion| {
        let client = Client::new(questions.clone(), ledger.clone(), version);
        shake_hands(&source, client, era, &ledger)
    };
    let first = options.era.unwrap_or(Era::Initialize);
    what.set(method(first)).ok();
    let (era, service) = match shake(first, ProtocolVersion::LATEST_WITH_INITIALIZE).await {
        Ok(service) => (first, service),
        Err(HandshakeError::Final(error)) => return Err(error),
        Err(HandshakeError::Refused(refusal)) => {
            let (era, version) = next_attempt(first, &refusal);
            tracing::debug!(server = %options.name, code = refusal.code.0, "refused {}, trying {}", method(first), method(era));
            let refused = OpenError::Refused {
                message: format!("the server refused `{}`: {}", method(first), describe_error(&refusal)),
            };
            match shake(era, version).await {
                Ok(service) => (era, service),
                Err(HandshakeError::Final(OpenError::Closed { .. } | OpenError::Io { .. })) if era != first => {
                    return Err(OpenError::OtherEra { era, message: refused.to_string() });
                }
                Err(HandshakeError::Final(error @ (OpenError::NeedsAuth | OpenError::RetryAfter { .. }))) => {
                    return Err(error);
                }
                Err(_) => return Err(refused),
            }
        }
    };
    if let Some(version) = service.peer().peer_info().map(|info| info.protocol_version.clone())
        && !ProtocolVersion::KNOWN_VERSIONS.contains(&version)
    {
        let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
        let message = format!(
            "the server uses the MCP version `{}`, which mcp-sidecar does not support; it supports {}",
            one_line(&mask(version.as_str()), 40),
            known.join(", ")
        );
        return Err(OpenError::Refused { message });
    }
    // In the newer era, rmcp adds metadata to every request.
    let direct = outbox.filter(|_| era == Era::Initialize).map(DirectCalls::new);
    Ok(build(options, ledger, direct, questions, era, service).await)
}

/// Creates the connection of a running service.
async fn build(
    options: ConnectionOptions,
    ledger: Ledger,
    direct: Option<DirectCalls>,
    questions: Questions,
    era: Era,
    service: Service,
) -> Connection {
    let peer = service.peer().clone();
    // Lists are always requested, never cached by rmcp.
    peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
    let version =
        peer.peer_info().map_or(ProtocolVersion::LATEST_WITH_INITIALIZE, |info| info.protocol_version.clone());
    let raw = ledger.handshake_result().unwrap_or_else(super::answer::empty);
    let mut info = server_info::peer_info(&raw, era, &version);
    sanitize(&mut info, options.limits.description_bytes);
    ledger.clear_handshake_result();
    let info = Arc::new(info);
    let meta = request::level_meta(&options.log_level);
    let wants_level = meta.is_some() && info.capabilities.iter().any(|name| name == "logging");
    let connection = Connection(Arc::new(Inner {
        subscription: (era == Era::Discover).then(|| Subscription::start(peer.clone(), &info, ledger.clone())),
        name: options.name,
        budget: lists::ListBudget::new(options.limits.list_bytes),
        limits: options.limits,
        timeout: options.timeout,
        era,
        meta: meta.filter(|_| era == Era::Discover),
        peer,
        ledger,
        direct,
        questions,
        service: Mutex::new(Some(service)),
        level_task: Mutex::new(None),
        info,
    }));
    if era == Era::Initialize && wants_level {
        ask_for_level(&connection, options.log_level);
    }
    connection
}

/// Removes secrets from what a server says about itself, and truncates it.
fn sanitize(info: &mut PeerInfo, max_bytes: usize) {
    for text in [Some(&mut info.name), Some(&mut info.version), info.instructions.as_mut()].into_iter().flatten() {
        // Masked first: a truncated secret would not be recognized.
        *text = mask(text).into_owned();
        lists::truncate(text, max_bytes);
    }
    // Only the capabilities are needed later.
    if let Value::Object(fields) = Arc::make_mut(&mut info.raw) {
        fields.retain(|key, value| key != "instructions" && (key == "capabilities" || !is_large(value, max_bytes)));
        lists::mask_secrets(fields, "protocolVersion");
    }
}

fn is_large(value: &Value, max_bytes: usize) -> bool {
    value.to_string().len() > max_bytes
}

/// Requests the log level in the background, so that the start does not wait.
fn ask_for_level(connection: &Connection, level: String) {
    let inner = Arc::downgrade(&connection.0);
    let timeout = connection.0.timeout;
    let asking = tokio::spawn(async move {
        let Some(connection) = inner.upgrade().map(Connection) else { return };
        if let Err(error) = connection.request(Request::SetLevel { level }, timeout).await {
            tracing::debug!(server = %connection.0.name, %error, "the server did not set its log level");
        }
    });
    if let Ok(mut level_task) = connection.0.level_task.lock() {
        *level_task = Some(AbortOnDropHandle::new(asking));
    }
}

enum HandshakeError {
    /// The server refused this kind of handshake.
    Refused(ErrorData),
    Final(OpenError),
}

async fn shake_hands(
    source: &TransportSource,
    client: Client,
    era: Era,
    ledger: &Ledger,
) -> Result<Service, HandshakeError> {
    let transport = source.transport(ledger).await.map_err(HandshakeError::Final)?;
    let mode = match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    };
    client.serve_with_lifecycle(transport, mode).await.map_err(|error| classify(error, era, ledger))
}

fn classify(error: ClientInitializeError, era: Era, ledger: &Ledger) -> HandshakeError {
    let method = method(era);
    HandshakeError::Final(match error {
        ClientInitializeError::JsonRpcError(error) if is_other_era(error.code) => {
            return HandshakeError::Refused(error);
        }
        ClientInitializeError::JsonRpcError(error) => {
            OpenError::Refused { message: format!("the server refused `{method}`: {}", describe_error(&error)) }
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            return HandshakeError::Refused(ErrorData::unsupported_protocol_version(
                ProtocolVersion::V_2026_07_28,
                &server_supported,
            ));
        }
        ClientInitializeError::TransportError { error, .. } => OpenError::from_chain(error.error.as_ref()),
        ClientInitializeError::ConnectionClosed(_) => {
            let (lines, sample) = ledger.skipped();
            match ledger.close_reason() {
                _ if lines > 0 && ledger.is_not_mcp() => {
                    OpenError::Protocol { message: format!("this is not an MCP server: it sent `{sample}`") }
                }
                reason => {
                    let reason = reason.unwrap_or_else(|| "the server closed the connection".to_owned());
                    let hint =
                        if lines > 0 { format!("; it sent `{sample}`, which is not MCP") } else { String::new() };
                    OpenError::Closed { message: format!("{reason} before it answered `{method}`{hint}") }
                }
            }
        }
        _ => OpenError::Protocol {
            message: format!("cannot parse the response to `{method}`: it does not follow the MCP specification"),
        },
    })
}

/// Codes of servers that do not know the method or the version, or that miss the headers of the newer era. Other codes
/// are real errors.
fn is_other_era(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::HEADER_MISMATCH
            | ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::INVALID_REQUEST
            | ErrorCode::INVALID_PARAMS
    )
}

/// What to try after a refusal: an older version that the server names, or else the other era.
fn next_attempt(refused: Era, refusal: &ErrorData) -> (Era, ProtocolVersion) {
    let supported = refusal.data.as_ref().and_then(|data| data.get("supported")).cloned();
    let supported: Vec<ProtocolVersion> =
        supported.and_then(|versions| serde_json::from_value(versions).ok()).unwrap_or_default();
    let older = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .rev()
        .find(|version| version.has_initialize() && supported.contains(version));
    match (refused, older) {
        (_, Some(older)) => (Era::Initialize, older.clone()),
        (Era::Initialize, None) => (Era::Discover, ProtocolVersion::LATEST_WITH_INITIALIZE),
        (Era::Discover, None) => (Era::Initialize, ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn method(era: Era) -> &'static str {
    match era {
        Era::Initialize => "initialize",
        Era::Discover => "server/discover",
    }
}

/// Where transports come from: pipes and tunnels exist once and are put back, remote servers are connected again.
enum TransportSource {
    Once(ParkedTransport),
    Dialled(crate::server::transport::Remote),
}

impl TransportSource {
    /// The source, and what sends lines that bypass rmcp.
    fn new(wire: Wire, ledger: &Ledger) -> (Self, Option<Outbox>) {
        let once = |transport: Box<dyn AnyTransport>| Self::Once(Arc::new(Mutex::new(Some(transport))));
        match wire {
            Wire::Bytes { read, write, input_closed } => {
                let lines = LineTransport::new(read, write, input_closed, ledger.clone());
                let outbox = lines.outbox();
                (once(Box::new(lines)), Some(outbox))
            }
            Wire::Tunnel(tunnel) => (once(Box::new(EditorTransport::new(tunnel, ledger.clone()))), None),
            Wire::Remote(remote) => (Self::Dialled(remote), None),
        }
    }

    async fn transport(&self, ledger: &Ledger) -> Result<LedgerTransport, OpenError> {
        match self {
            Self::Once(parked) => {
                let transport = parked.lock().ok().and_then(|mut parked| parked.take());
                let gone = || OpenError::Closed { message: "the connection was closed".to_owned() };
                Ok(LedgerTransport::new(transport.ok_or_else(gone)?, parked.clone(), ledger.clone()))
            }
            Self::Dialled(remote) => {
                Ok(LedgerTransport::new((remote.dial)().await?, ParkedTransport::default(), ledger.clone()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::Secret;

    #[test]
    fn the_server_info_is_truncated_and_masked() {
        Secret::new("greeting-secret");
        let mut info = PeerInfo {
            name: "n greeting-secret".to_owned(),
            version: "1".repeat(200),
            instructions: Some(format!("use greeting-secret {}", "x".repeat(200))),
            raw: Arc::new(json!({
                "capabilities": { "tools": { "listChanged": true } }, "instructions": "greeting-secret",
                "serverInfo": { "name": "n greeting-secret" }, "more": "x".repeat(200)
            })),
            ..PeerInfo::default()
        };
        sanitize(&mut info, 100);
        assert_eq!((info.name.as_str(), info.version.len()), ("n •••", 100 + "…".len()));
        assert!(info.instructions.is_some_and(|text| text.starts_with("use ••• x") && text.ends_with('…')));
        let raw = json!({ "capabilities": { "tools": { "listChanged": true } }, "serverInfo": { "name": "n •••" } });
        assert_eq!(*info.raw, raw);
    }

    #[test]
    fn a_secret_at_the_truncation_limit_is_masked() {
        Secret::new("secret-at-the-cut");
        let name = format!("{}secret-at-the-cut", "x".repeat(90));
        let mut info = PeerInfo { name, ..PeerInfo::default() };
        sanitize(&mut info, 100);
        assert_eq!(info.name, format!("{}•••", "x".repeat(90)));
    }
}
