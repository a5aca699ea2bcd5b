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
mod names;
mod notices;
mod transport;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ServiceExt;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::engine::Engine;
use crate::engine::folders::Claimant;
use catalog::Catalog;
use desk::Desk;
use handler::Handler;
use transport::Lines;

/// What all agents of an engine share: the engine, and what it offers, written out once for all of them.
#[derive(Clone)]
pub struct Endpoint {
    engine: Engine,
    /// The newest catalog. Behind a `std` lock that is held while one is made, so that it is made once; never over an
    /// await.
    catalog: Arc<Mutex<Arc<Catalog>>>,
}

impl Endpoint {
    pub fn new(engine: Engine) -> Self {
        Self { engine, catalog: Arc::default() }
    }

    /// Serves one agent on any stream of bytes, until it goes. `folder` is the workspace it came for: it counts while
    /// no editor says otherwise. `label` is what its user calls it.
    pub async fn serve<R, W>(&self, input: R, output: W, folder: PathBuf, label: Option<String>)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let claim = self.engine.claim(Claimant::Agent);
        claim.set(vec![folder]).await;
        let limits = self.engine.settings().borrow().limits.clone();
        let desk = Desk::new(limits.agent_calls);
        let lines = Lines::new(Box::new(input), Box::new(output), desk.clone(), limits.message_bytes);
        let handler = Handler::new(self.clone(), desk, label);
        match handler.serve(lines).await {
            Ok(service) => match service.waiting().await {
                Ok(reason) => tracing::info!(?reason, "agent gone"),
                Err(error) => tracing::warn!(%error, "an agent's session ended by a fault of the sidecar"),
            },
            Err(error) => tracing::info!(%error, "an agent left before it had begun"),
        }
        drop(claim);
    }

    /// What is offered now.
    fn catalog(&self) -> Arc<Catalog> {
        let snapshot = self.engine.now();
        let mut newest = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
        if !newest.is_of(&snapshot) {
            *newest = Arc::new(Catalog::new(snapshot, &newest));
        }
        newest.clone()
    }
}
