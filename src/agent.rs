//! The front for agents: presents all servers of a workspace as one MCP server.
//!
//! An agent can list and call tools. It cannot start a server, change a permission or answer an approval. Its calls go
//! through the same gate as those of an editor. rmcp manages the session, for protocol versions with and without
//! `initialize`. Lists and results bypass rmcp as raw JSON, so that nothing is lost or parsed on the way.

mod asker;
mod byte_budget;
mod call_message;
mod callers;
mod calls;
mod catalog;
mod direct_calls;
mod extensions;
mod handler;
mod http;
mod long_results;
mod lookup;
mod names;
mod notices;
mod outbox;
mod pending_responses;
mod response;
mod search;
mod session;
mod subscriptions;
mod tasks;
mod transport;
mod unknown_fields;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ServiceExt;
use rmcp::model::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::Environment;
use crate::engine::Engine;
use crate::engine::folders::ClaimedBy;
use crate::model::Requester;
use callers::Callers;
use calls::SuspendedCalls;
use catalog::Catalog;
use direct_calls::DirectCalls;
use handler::Handler;
pub use http::HttpEndpoint;
use pending_responses::PendingResponses;
use session::AgentView;
use subscriptions::Subscriptions;
use tasks::Tasks;
use transport::{LineTransport, RejectedCall};

/// How many rejected calls may wait to be recorded before we stop reading from the agent.
const MAX_UNRECORDED: usize = 64;

/// What all agents of a workspace share: the engine, and the rendered lists of everything it offers.
#[derive(Clone)]
pub struct Endpoint {
    engine: Engine,
    /// The newest catalog of each view. The settings limit the number of views. The `std` lock is held while a catalog is
    /// built, so that it is built once, but never across an await.
    catalogs: Arc<Mutex<Catalogs>>,
    subscriptions: Subscriptions,
    suspended: Arc<SuspendedCalls>,
    callers: Arc<Callers>,
    tasks: Arc<Tasks>,
    /// The memory that the pending requests of all agents take.
    pending_bytes: PendingBytes,
}

/// The memory that pending requests take.
pub type PendingBytes = Arc<AtomicUsize>;

/// Key: the name of the view, whether tools are searched, how long names may be, which servers are left out, and the set.
type Catalogs = BTreeMap<(String, bool, usize, Vec<String>, Option<String>), Arc<Catalog>>;

/// The options of an agent, from the command line through the handshake to its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct AgentOptions {
    // The workspace of the agent. It applies while no editor is attached.
    #[arg(skip)]
    #[serde(skip)]
    pub folder: PathBuf,
    // The process at the other end of the socket.
    #[arg(skip)]
    #[serde(skip)]
    pub process: Option<u32>,
    // Supplies variables that definitions refer to. It applies while no editor is attached.
    #[arg(skip)]
    #[serde(skip)]
    pub environment: Environment,
    /// Name of the agent in approvals and in the call log, instead of the name it reports
    #[arg(long = "name", value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Offer only `find_tools` and `call_tool`, to keep a long list of tools out of the agent's context
    #[arg(long)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub search: bool,
    /// Leave out a server that the agent already connects to itself (repeatable)
    #[arg(long, value_name = "SERVER")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Offer only the tools of this set in config.toml
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    // An editor gives it to an agent if the editor itself asks the user about each call that is not read-only.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

impl Endpoint {
    pub fn new(engine: Engine) -> Self {
        Self::sharing(engine, PendingBytes::default())
    }

    /// The same, with the limit of memory that other endpoints have.
    pub fn sharing(engine: Engine, pending_bytes: PendingBytes) -> Self {
        Self {
            engine,
            catalogs: Arc::default(),
            subscriptions: Subscriptions::default(),
            suspended: Arc::default(),
            callers: Arc::default(),
            tasks: Arc::default(),
            pending_bytes,
        }
    }

    /// Serves one agent on any stream of bytes until it disconnects.
    pub async fn serve<R, W>(&self, input: R, output: W, options: AgentOptions)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let claim = self.engine.claim(ClaimedBy::Agent);
        let environment = self.engine.take_environment(ClaimedBy::Agent, options.environment.clone());
        environment.set_folders(std::slice::from_ref(&options.folder)).await;
        claim.set(vec![options.folder.clone()]).await;
        let limits = self.engine.settings().borrow().limits.clone();
        let pending = PendingResponses::new(&limits, self.pending_bytes.clone());
        let (records, mut rejected) = mpsc::channel::<RejectedCall>(MAX_UNRECORDED);
        let gone = CancellationToken::new();
        let (input, output) = (Box::new(input), Box::new(output));
        let direct = Arc::<DirectCalls>::default();
        let lines = LineTransport::new(
            input,
            output,
            pending.clone(),
            limits.message_bytes,
            records,
            gone.clone(),
            direct.clone(),
        );
        let _gone = gone.clone().drop_guard();
        let handler = Arc::new(Handler::new(self.clone(), pending, options, gone));
        handler.session.register();
        let cut_off = handler.session.cut_off.clone();
        let (session, endpoint) = (handler.session.clone(), self.clone());
        let recording = tokio::spawn(async move {
            while let Some(RejectedCall { agent, tool, reason, error }) = rejected.recv().await {
                let requester = session.agent_view(agent).requester;
                endpoint.record_rejected(requester, &tool, Map::new(), reason, &error).await;
            }
        });
        match handler.clone().serve(lines).await {
            Ok(service) => {
                direct.begin(handler, service.peer().clone());
                tokio::select! {
                    ended = service.waiting() => match ended {
                        Ok(reason) => tracing::info!(?reason, "agent disconnected"),
                        Err(error) => tracing::warn!(%error, "the session of an agent failed"),
                    },
                    () = cut_off.cancelled() => tracing::info!("the user disconnected an agent"),
                }
            }
            Err(error) => tracing::info!(%error, "an agent disconnected before initialize"),
        }
        // Ends with the transport, which has been dropped.
        recording.await.ok();
        drop((claim, environment));
    }

    /// Records a call that was rejected before it reached the engine.
    async fn record_rejected(
        &self,
        requester: Requester,
        name: &str,
        arguments: Map<String, Value>,
        reason: &str,
        error: &ErrorData,
    ) {
        self.engine.refuse_call(requester, name, arguments, reason, error.message.to_string()).await;
    }

    /// What is currently offered to an agent with this view.
    fn catalog(&self, agent: &AgentView) -> Arc<Catalog> {
        let snapshot = self.engine.now();
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        let (view, set) = (&agent.view, agent.view.set().map(str::to_owned));
        let key = (view.agent.clone(), agent.search, agent.name_limit, view.without().to_vec(), set);
        let newest = catalogs.entry(key).or_default();
        if !newest.is_of(&snapshot, view) {
            *newest = Arc::new(Catalog::new(snapshot, newest, agent));
        }
        newest.clone()
    }
}
