//! What must hold when all actors rest: every server can be connected again, exactly the processes of the servers are
//! there, the records are complete and their chain is whole, and the engine has not grown.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_sidecar::lsp_client::LspClient;
use mcp_sidecar::protocol::commands::{CallsVerify, ServerAuth, Servers};
use mcp_sidecar::protocol::types::{ServerStatus, Status};

use crate::editor::report_save;
use crate::support::commands::{start, trust};
use crate::watcher::{Figures, engines_of, settled};
use crate::world::{PATIENCE, SERVERS, World, lock};

/// How long the processes of servers that were replaced may take to end.
const ENDING: Duration = Duration::from_secs(60);

/// What the engine that runs now had when it was first measured.
#[derive(Debug, Clone, Copy)]
pub struct Baseline {
    engine: u32,
    pub first: Figures,
    pub last: Figures,
}

/// Checks everything. `baseline` is that of the last time.
pub async fn check(world: &Arc<World>, baseline: Option<Baseline>) -> Result<Baseline, String> {
    let client = lock(&world.editors).values().next().cloned().ok_or("no editor is connected")?;
    world.change(None);
    report_save(world, &client);
    let servers = tokio::time::timeout(PATIENCE, all_connected(world, &client)).await;
    let servers = match servers {
        Ok(servers) => servers?,
        Err(_) => {
            let now = client.call(Servers::default()).await.map_err(|error| error.to_string())?;
            let states: Vec<_> = now.servers.iter().map(|each| (&each.name, &each.summary, &each.error)).collect();
            return Err(format!("the servers do not come back: {states:#?}"));
        }
    };
    only_processes_of(world, &servers).await?;
    let verified = client.call(CallsVerify::default()).await.map_err(|error| error.to_string())?;
    if !verified.whole {
        return Err(format!("the chain of records is broken: {}", verified.message));
    }
    world.model.check_records(&world.home.path("state/state.db"), &world.home.path("calls"));
    let engines = engines_of(&world.home.project());
    let [engine] = engines[..] else { return Err(format!("there should be one engine: {engines:?}")) };
    match baseline.filter(|baseline| baseline.engine == engine) {
        Some(baseline) => Ok(Baseline { last: settled(engine, baseline.first).await?, ..baseline }),
        None => {
            let first = Figures::of(engine).ok_or("the engine ended")?;
            Ok(Baseline { engine, first, last: first })
        }
    }
}

/// Does what a user would do until every server is connected.
async fn all_connected(world: &World, client: &LspClient) -> Result<Vec<ServerStatus>, String> {
    let mut news = world.news.subscribe();
    loop {
        news.borrow_and_update();
        let servers = client.call(Servers::default()).await.map_err(|error| error.to_string())?.servers;
        let waiting = servers.iter().find(|server| server.status != Status::Connected);
        let Some(server) = waiting else {
            if servers.len() == SERVERS.len() {
                return Ok(servers);
            }
            news.changed().await.ok();
            continue;
        };
        // Each of these commands ends when the server has come to rest.
        match server.status {
            Status::NeedsAuth => {
                client.call(ServerAuth { server: server.name.clone(), sign_out: false }).await.ok();
            }
            _ if server.needs_trust => drop(client.call(trust(server)).await),
            _ => drop(client.call(start(server.name.as_str())).await),
        }
    }
}

/// No process of a server is left but those that the engine names.
async fn only_processes_of(world: &World, servers: &[ServerStatus]) -> Result<(), String> {
    let named: BTreeSet<u32> = servers.iter().filter_map(|server| server.pid).collect();
    let until = Instant::now() + ENDING;
    loop {
        let mut left = world.processes_of_servers();
        left.retain(|(pid, _)| !named.contains(pid));
        if left.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(format!("processes that belong to no server are left: {left:?}; the servers are {named:?}"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
