//! The front for agents: everything that the servers of a workspace offer, as one MCP server.
//!
//! An agent lists and calls; it cannot start a server, change a rule or answer an approval. Every call takes the same
//! door as those of an editor. rmcp keeps the conversation, in both eras of MCP; lists and results pass by it as the
//! text they are, so that nothing a server says is lost or parsed on its way.

mod answer;
mod asker;
mod calls;
mod catalog;
mod desk;
mod handler;
mod http;
mod names;
mod notices;
mod search;
mod session;
mod transport;
mod watching;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ServiceExt;
use rmcp::model::ErrorData;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::engine::folders::Claimant;
use crate::model::Requester;
use calls::Waiting;
use catalog::Catalog;
use desk::Desk;
use handler::Handler;
pub use http::Http;
use session::Sight;
use transport::{Lines, Turned};
use watching::Watching;

/// Calls that were turned away and wait for their record; then nothing more is read of that agent.
const RECORDS: usize = 64;

/// What all agents of an engine share: the engine, and what it offers, written out once for all who see the same.
#[derive(Clone)]
pub struct Endpoint {
    engine: Engine,
    /// The newest catalog of each view; there are as many views as the settings name. Behind a `std` lock that is held
    /// while a catalog is made, so that it is made once; never over an await.
    catalogs: Arc<Mutex<Catalogs>>,
    watching: Watching,
    waiting: Arc<Waiting>,
}

/// By the name of the view, whether tools are searched, and which servers an agent has from elsewhere.
type Catalogs = BTreeMap<(String, bool, Vec<String>), Arc<Catalog>>;

/// The options of an agent, from the command line through the handshake to its session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct AgentOptions {
    // The workspace of the agent. It applies while no editor is attached.
    #[arg(skip)]
    #[serde(skip)]
    pub folder: PathBuf,
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
    // An editor gives it to an agent if the editor itself asks the user about each call that is not read-only.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

impl Endpoint {
    pub fn new(engine: Engine) -> Self {
        Self { engine, catalogs: Arc::default(), watching: Watching::default(), waiting: Arc::default() }
    }

    /// Serves one agent on any stream of bytes, until it goes.
    pub async fn serve<R, W>(&self, input: R, output: W, options: AgentOptions)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let claim = self.engine.claim(Claimant::Agent);
        claim.set(vec![options.folder.clone()]).await;
        let limits = self.engine.settings().borrow().limits.clone();
        let desk = Desk::new(limits.agent_calls);
        let (records, mut refused) = mpsc::channel::<Turned>(RECORDS);
        let lines = Lines::new(Box::new(input), Box::new(output), desk.clone(), limits.message_bytes, records);
        let handler = Handler::new(self.clone(), desk, options);
        let (session, endpoint) = (handler.session.clone(), self.clone());
        let recording = tokio::spawn(async move {
            while let Some(Turned { agent, tool, by, error }) = refused.recv().await {
                let who = session.sight(agent).who;
                endpoint.refused(who, &tool, Map::new(), by, &error).await;
            }
        });
        match handler.serve(lines).await {
            Ok(service) => match service.waiting().await {
                Ok(reason) => tracing::info!(?reason, "agent gone"),
                Err(error) => tracing::warn!(%error, "an agent's session ended by a fault of the sidecar"),
            },
            Err(error) => tracing::info!(%error, "an agent left before it had begun"),
        }
        // Ends with the transport, which is gone by now.
        recording.await.ok();
        drop(claim);
    }

    /// Records a call that was turned away here, before the engine heard of it.
    async fn refused(&self, who: Requester, name: &str, arguments: Map<String, Value>, by: &str, error: &ErrorData) {
        self.engine.refuse_call(who, name, arguments, by, error.message.to_string()).await;
    }

    /// What is offered now to whoever sees this much.
    fn catalog(&self, sight: &Sight) -> Arc<Catalog> {
        let snapshot = self.engine.now();
        let mut catalogs = self.catalogs.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (sight.view.agent.clone(), sight.search, sight.view.without().to_vec());
        let newest = catalogs.entry(key).or_default();
        if !newest.is_of(&snapshot) {
            *newest = Arc::new(Catalog::new(snapshot, newest, sight));
        }
        newest.clone()
    }
}
