//! How a connection begins: both eras, on whichever wire.

use std::sync::{Arc, Mutex, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{ErrorCode, ErrorData, ProtocolVersion};
use rmcp::service::{ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::exchange::in_words;
use super::listen::Listening;
use super::{Connection, Era, Inner, OpenError, Opening, Request, Wire, lists, request};
use crate::model::PeerInfo;
use crate::server::client::{Client, Questions};
use crate::server::transport::ledger::Ledger;
use crate::server::transport::sdk::Inside;
use crate::server::transport::stdio::Lines;
use crate::server::transport::{AnyTransport, Home, Line, greeting};
use crate::text::mask;

type Service = RunningService<RoleClient, Client>;

pub async fn open(wire: Wire, opening: Opening) -> Result<Connection, OpenError> {
    let limit = opening.startup_timeout;
    let ledger = match &wire {
        Wire::Remote(remote) => remote.ledger.clone(),
        Wire::Bytes { .. } | Wire::Tunnel(_) => Ledger::new(opening.name.clone(), opening.limits.message_bytes),
    };
    ledger.report_to(opening.happenings.clone());
    let what = OnceLock::new();
    match tokio::time::timeout(limit, connect(wire, opening, ledger.clone(), &what)).await {
        Ok(opened) => opened,
        Err(_) => {
            let hint = match ledger.skipped() {
                (0, _) if ledger.unread_bytes() > 0 => "; the server does not read".to_owned(),
                (0, _) => String::new(),
                (_, sample) => format!("; it sent “{sample}”"),
            };
            Err(OpenError::Timeout { what: what.get().copied().unwrap_or("initialize"), limit, hint })
        }
    }
}

async fn connect(
    wire: Wire,
    opening: Opening,
    ledger: Ledger,
    what: &OnceLock<&'static str>,
) -> Result<Connection, OpenError> {
    let questions = Questions::new(opening.name.clone(), opening.host.clone());
    let source = Source::new(wire, &ledger);
    let shake = |era: Era, version: ProtocolVersion| {
        let client = Client::new(questions.clone(), ledger.clone(), version);
        attempt(&source, client, era, &ledger)
    };
    let first = opening.era.unwrap_or(Era::Initialize);
    what.set(method(first)).ok();
    let (era, service) = match shake(first, ProtocolVersion::LATEST_WITH_INITIALIZE).await {
        Ok(service) => (first, service),
        Err(Trouble::Final(error)) => return Err(error),
        Err(Trouble::Refused(refusal)) => {
            let (era, version) = other(first, &refusal);
            tracing::debug!(server = %opening.name, code = refusal.code.0, "refused {}, trying {}", method(first), method(era));
            let refused =
                OpenError::Refused { message: format!("the server refused {}: {}", method(first), in_words(&refusal)) };
            match shake(era, version).await {
                Ok(service) => (era, service),
                Err(Trouble::Final(OpenError::Closed { .. } | OpenError::Io { .. })) if era != first => {
                    return Err(OpenError::OtherEra { era, message: refused.to_string() });
                }
                Err(Trouble::Final(error @ (OpenError::NeedsAuth { .. } | OpenError::RetryAfter { .. }))) => {
                    return Err(error);
                }
                Err(_) => return Err(refused),
            }
        }
    };
    Ok(begin(opening, ledger, questions, era, service).await)
}

/// Makes a connection of a service that runs.
async fn begin(opening: Opening, ledger: Ledger, questions: Questions, era: Era, service: Service) -> Connection {
    let peer = service.peer().clone();
    // What a list holds is asked anew when somebody wants to know it.
    peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
    let version =
        peer.peer_info().map_or(ProtocolVersion::LATEST_WITH_INITIALIZE, |info| info.protocol_version.clone());
    let raw = ledger.greeting().unwrap_or_else(super::answer::empty);
    let mut info = greeting::peer_info(&raw, era, &version);
    fit(&mut info, opening.limits.description_bytes);
    ledger.trim_greeting();
    let info = Arc::new(info);
    let meta = request::level_meta(&opening.log_level);
    let wants_level = meta.is_some() && info.capabilities.iter().any(|name| name == "logging");
    let connection = Connection(Arc::new(Inner {
        listening: (era == Era::Discover).then(|| Listening::start(peer.clone(), &info, ledger.clone())),
        name: opening.name,
        room: lists::Room::new(opening.limits.list_bytes),
        limits: opening.limits,
        timeout: opening.timeout,
        era,
        meta: meta.filter(|_| era == Era::Discover),
        peer,
        ledger,
        questions,
        service: Mutex::new(Some(service)),
        levelling: Mutex::new(None),
        info,
    }));
    if era == Era::Initialize && wants_level {
        ask_for_level(&connection, opening.log_level);
    }
    connection
}

/// What a server says about itself is kept without secrets, and no longer than a description may be.
fn fit(info: &mut PeerInfo, most: usize) {
    for words in [Some(&mut info.name), Some(&mut info.version), info.instructions.as_mut()].into_iter().flatten() {
        // Masked first: half a secret at the cut would not be known for one.
        *words = mask(words).into_owned();
        lists::cut_text(words, most);
    }
    // Only what it can do is asked of the rest later on; the texts stand above.
    if let Value::Object(said) = Arc::make_mut(&mut info.raw) {
        said.retain(|key, value| key != "instructions" && (key == "capabilities" || !is_large(value, most)));
        lists::conceal(said, "protocolVersion");
    }
}

fn is_large(value: &Value, most: usize) -> bool {
    value.to_string().len() > most
}

/// Asks for a log level in the background: no start waits for it.
fn ask_for_level(connection: &Connection, level: String) {
    let inner = Arc::downgrade(&connection.0);
    let timeout = connection.0.timeout;
    let asking = tokio::spawn(async move {
        let Some(connection) = inner.upgrade().map(Connection) else { return };
        if let Err(error) = connection.request(Request::SetLevel { level }, timeout).await {
            tracing::debug!(server = %connection.0.name, %error, "would not set its log level");
        }
    });
    if let Ok(mut levelling) = connection.0.levelling.lock() {
        *levelling = Some(AbortOnDropHandle::new(asking));
    }
}

enum Trouble {
    /// The server would not begin in this way.
    Refused(ErrorData),
    Final(OpenError),
}

async fn attempt(source: &Source, client: Client, era: Era, ledger: &Ledger) -> Result<Service, Trouble> {
    let line = source.line(ledger).await.map_err(Trouble::Final)?;
    let mode = match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    };
    client.serve_with_lifecycle(line, mode).await.map_err(|error| trouble(error, era, ledger))
}

fn trouble(error: ClientInitializeError, era: Era, ledger: &Ledger) -> Trouble {
    let method = method(era);
    Trouble::Final(match error {
        ClientInitializeError::JsonRpcError(error) if is_other_era(error.code) => return Trouble::Refused(error),
        ClientInitializeError::JsonRpcError(error) => {
            OpenError::Refused { message: format!("the server refused {method}: {}", in_words(&error)) }
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            return Trouble::Refused(ErrorData::unsupported_protocol_version(
                ProtocolVersion::V_2026_07_28,
                &server_supported,
            ));
        }
        ClientInitializeError::TransportError { error, .. } => OpenError::from_chain(error.error.as_ref()),
        ClientInitializeError::ConnectionClosed(_) => {
            let (lines, sample) = ledger.skipped();
            match ledger.close_reason() {
                _ if lines > 0 && ledger.is_not_mcp() => {
                    OpenError::Protocol { message: format!("not MCP: it sent “{sample}”") }
                }
                reason => {
                    let reason = reason.unwrap_or_else(|| "the server closed the connection".to_owned());
                    let hint =
                        if lines > 0 { format!("; it sent “{sample}”, which is not MCP") } else { String::new() };
                    OpenError::Closed { message: format!("{reason} before {method}{hint}") }
                }
            }
        }
        _ => OpenError::Protocol { message: format!("the server did not answer {method} as MCP has it") },
    })
}

/// Codes by which servers say that they do not know the method or the version, or miss the headers that only the newer
/// era has. Anything else is a trouble of its own.
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

/// What to try after a refusal: an older version of the same era where the server names one, else the other era.
fn other(refused: Era, refusal: &ErrorData) -> (Era, ProtocolVersion) {
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

/// Where lines come from: bytes and tunnels are there once and are handed back, remote servers are dialled again.
enum Source {
    Once(Home),
    Dialled(crate::server::transport::Remote),
}

impl Source {
    fn new(wire: Wire, ledger: &Ledger) -> Self {
        let once = |transport: Box<dyn AnyTransport>| Self::Once(Arc::new(Mutex::new(Some(transport))));
        match wire {
            Wire::Bytes { read, write } => once(Box::new(Lines::new(read, write, ledger.clone()))),
            Wire::Tunnel(tunnel) => once(Box::new(Inside::new(tunnel, ledger.clone()))),
            Wire::Remote(remote) => Self::Dialled(remote),
        }
    }

    async fn line(&self, ledger: &Ledger) -> Result<Line, OpenError> {
        match self {
            Self::Once(home) => {
                let transport = home.lock().ok().and_then(|mut home| home.take());
                let gone = || OpenError::Closed { message: "the connection was closed".to_owned() };
                Ok(Line::new(transport.ok_or_else(gone)?, home.clone(), ledger.clone()))
            }
            Self::Dialled(remote) => Ok(Line::new((remote.dial)().await?, Home::default(), ledger.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::Secret;

    #[test]
    fn what_a_server_says_about_itself_is_short_and_holds_no_secret() {
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
        fit(&mut info, 100);
        assert_eq!((info.name.as_str(), info.version.len()), ("n •••", 100 + "…".len()));
        assert!(info.instructions.is_some_and(|words| words.starts_with("use ••• x") && words.ends_with('…')));
        let raw = json!({ "capabilities": { "tools": { "listChanged": true } }, "serverInfo": { "name": "n •••" } });
        assert_eq!(*info.raw, raw);
    }

    #[test]
    fn a_secret_that_the_cut_goes_through_is_masked_all_the_same() {
        Secret::new("secret-at-the-cut");
        let name = format!("{}secret-at-the-cut", "x".repeat(90));
        let mut info = PeerInfo { name, ..PeerInfo::default() };
        fit(&mut info, 100);
        assert_eq!(info.name, format!("{}•••", "x".repeat(90)));
    }
}
