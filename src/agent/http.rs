//! The endpoint for agents that need a URL. It listens on this machine only and requires a token.
//!
//! rmcp implements streamable HTTP and checks `Host` and `Origin`. The token is checked before the request is read. Results
//! are passed on as raw JSON (`raw_results`).

mod connections;
mod core_tasks;
pub mod raw_results;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::byte_budget::ByteBudget;
use super::handler::Handler;
use super::session::new_workflow;
use super::{AgentOptions, Endpoint};
use crate::engine::folders::ClaimedBy;
use crate::paths::make_private_folder;
use crate::policy::hex;
use connections::{Connections, RequestPeer};

const PATH: &str = "/mcp";
/// A session that is idle for this long is closed, because agents may leave without closing it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Listens until it is dropped or the future of `serve` is.
pub struct HttpEndpoint {
    endpoint: Endpoint,
    options: AgentOptions,
    listener: TcpListener,
    port: u16,
    token: Token,
}

/// The digest of the token, and the file that contains the token. The file is deleted when this is dropped.
struct Token {
    digest: Arc<[u8]>,
    file: PathBuf,
}

impl Endpoint {
    /// Listens on this machine, on any free port if `port` is 0. The token is in a file in `folder` that only this user
    /// can read. It is a new one, unless agents know the `token` of an engine that has ended.
    pub async fn listen(
        &self,
        options: AgentOptions,
        port: u16,
        token: Option<String>,
        folder: &Path,
        name: &str,
    ) -> io::Result<HttpEndpoint> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        let token = Token::new(&folder.join(format!("{name}.{port}.token")), token)?;
        Ok(HttpEndpoint { endpoint: self.clone(), options, listener, port, token })
    }
}

impl HttpEndpoint {
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    pub fn token_file(&self) -> &Path {
        &self.token.file
    }

    /// Serves agents until the future is dropped.
    pub async fn serve(self) -> io::Result<()> {
        let Self { endpoint, options, listener, port, token } = self;
        let claim = endpoint.engine.claim(ClaimedBy::Agent);
        let environment = endpoint.engine.take_environment(ClaimedBy::Agent, options.environment.clone());
        environment.set_folders(std::slice::from_ref(&options.folder)).await;
        claim.set(vec![options.folder.clone()]).await;
        let limits = endpoint.engine.settings().borrow().limits.clone();
        let stop = CancellationToken::new();
        let _stop = stop.clone().drop_guard();
        let authorities = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(authorities.iter().map(|authority| format!("http://{authority}")))
            .with_allowed_hosts(authorities)
            .with_max_request_body_bytes(limits.message_bytes)
            .with_cancellation_token(stop);
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(IDLE_TIMEOUT);
        let sessions = Arc::new(sessions);
        let _sessions = Sessions(sessions.clone());
        let (handlers, calls) = (Arc::new(Semaphore::new(limits.agents)), Semaphore::new(limits.agent_calls));
        let calls = Arc::new(calls);
        let budget = Arc::new(ByteBudget::new(&limits, endpoint.pending_bytes.clone()));
        let messages = (limits.message_bytes, budget.clone());
        let (limit, workflow) = (limits.agents, new_workflow());
        let make = move || {
            let Ok(permit) = handlers.clone().try_acquire_owned() else {
                let text = format!("too many agents: {limit} are already connected");
                return Err(io::Error::other(text));
            };
            let (calls, budget) = (calls.clone(), budget.clone());
            Ok(Handler::typed(endpoint.clone(), options.clone(), calls, budget, workflow.clone(), permit))
        };
        let service = StreamableHttpService::new(make, sessions, config);
        let router = Router::new()
            .route_service(PATH, service)
            .layer(middleware::from_fn_with_state(messages, core_tasks::rewrite))
            .layer(middleware::from_fn(raw_results::unpack))
            .layer(middleware::from_fn_with_state(token.digest.clone(), admit));
        let service = router.into_make_service_with_connect_info::<RequestPeer>();
        axum::serve(Connections::new(listener, limits.agent_calls), service).await
    }
}

/// Rejects requests without the token. Comparing digests makes timing attacks useless.
async fn admit(State(token): State<Arc<[u8]>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let header = header.and_then(|value| value.split_once(' '));
    let bearer = header.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, token)| token.trim());
    if bearer.is_some_and(|bearer| *digest(bearer) == *token) {
        if let Some(ConnectInfo(RequestPeer(peer))) = request.extensions().get() {
            peer.admit();
        }
        return next.run(request).await;
    }
    tracing::warn!("rejected a request without the token");
    let mut refusal =
        (StatusCode::UNAUTHORIZED, "this endpoint requires a token: `Authorization: Bearer TOKEN`\n").into_response();
    refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refusal
}

fn digest(token: &str) -> Arc<[u8]> {
    Arc::from(Sha256::digest(token).as_slice())
}

impl Token {
    fn new(file: &Path, known: Option<String>) -> io::Result<Self> {
        if let Some(folder) = file.parent() {
            make_private_folder(folder)?;
        }
        let mut bits = [0u8; 32];
        getrandom::fill(&mut bits).map_err(|error| io::Error::other(error.to_string()))?;
        let is_token =
            |known: &String| known.len() == 2 * bits.len() && known.bytes().all(|byte| byte.is_ascii_hexdigit());
        let token = known.filter(is_token).unwrap_or_else(|| hex(&bits));
        // A killed process may have left it behind. No other user can write to this folder.
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        io::Write::write_all(&mut options.open(file)?, token.as_bytes())?;
        Ok(Self { digest: digest(&token), file: file.to_owned() })
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        std::fs::remove_file(&self.file).ok();
    }
}

/// The sessions of one listener. Closed when this is dropped.
struct Sessions(Arc<LocalSessionManager>);

impl Drop for Sessions {
    fn drop(&mut self) {
        let sessions = self.0.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let ids: Vec<_> = sessions.sessions.read().await.keys().cloned().collect();
                for id in ids {
                    sessions.close_session(&id).await.ok();
                }
            });
        }
    }
}
