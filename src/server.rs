//! The handle on one MCP server. Whatever happens to the server happens in its actor; whoever holds a [`Server`]
//! sends it a wish, looks at its last picture, or calls straight through its live connection.

pub mod backoff;
pub mod client;
pub mod connection;
pub mod guardian;
pub mod host;
pub mod logs;
pub mod process;
pub mod transport;

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use crate::model::{LogLine, ServerName, ServerState};
use crate::settings::Settings;
use host::Host;

/// What a server tells the hub. `State` is always the whole picture: the newest counts, none needs the one before.
#[derive(Debug, Clone)]
pub enum Event {
    State(Arc<ServerState>),
    Log(LogLine),
    /// A resource that somebody subscribed to has changed.
    ResourceUpdated {
        uri: String,
    },
}

/// What every server of an engine shares.
#[derive(Clone)]
pub struct Context {
    pub settings: watch::Receiver<Arc<Settings>>,
    pub host: Arc<dyn Host>,
    pub events: mpsc::Sender<(ServerName, u64, Event)>,
}
