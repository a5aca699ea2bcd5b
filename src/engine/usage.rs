//! How often the tools of each server were called lately, from the call log. Only used to give advice.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;

use super::hub::HubCommand;
use super::snapshot::ServerView;
use super::{Engine, Notice};
use crate::model::{CallKind, Scope, ServerName, Timestamp};
use crate::store::ToolCalls;

/// How far back the advice looks, in days.
const DAYS: u32 = 30;

/// The calls of all tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUsage {
    /// How many days the log covers.
    pub days: u32,
    servers: BTreeMap<ServerName, BTreeMap<String, ToolCalls>>,
}

/// The tools of a server that were not called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnusedTools {
    /// Their names.
    pub names: Vec<Arc<str>>,
    /// The estimated tokens of their definitions.
    pub tokens: usize,
    /// All calls of the server.
    pub calls: u64,
}

impl ToolUsage {
    fn new(days: u32, rows: Vec<(ServerName, String, ToolCalls)>) -> Self {
        let mut usage = Self { days, ..Self::default() };
        for (server, tool, calls) in rows {
            usage.servers.entry(server).or_default().insert(tool, calls);
        }
        usage
    }

    /// For tests.
    #[cfg(test)]
    pub fn of(server: &str, tools: &[(&str, u64)]) -> Self {
        let row = |(tool, calls): &(&str, u64)| {
            (ServerName::new(server).unwrap(), (*tool).to_owned(), ToolCalls { here: *calls, anywhere: *calls })
        };
        Self::new(DAYS, tools.iter().map(row).collect())
    }

    /// The shown tools of a server that were not called. A server of the user counts in all projects.
    pub fn unused(&self, view: &ServerView) -> UnusedTools {
        let counted = self.servers.get(&view.definition.name);
        let number = |calls: &ToolCalls| match view.definition.scope {
            Scope::User | Scope::Managed => calls.anywhere,
            Scope::Project | Scope::Local | Scope::Session => calls.here,
        };
        let calls = |tool: &str| counted.and_then(|tools| tools.get(tool)).map(number).unwrap_or_default();
        let unused = || view.shown_tools().filter(|offered| calls(&offered.tool.name) == 0);
        UnusedTools {
            names: unused().map(|offered| offered.tool.name.clone()).collect(),
            tokens: unused().map(|offered| offered.tokens()).sum(),
            calls: counted.into_iter().flat_map(BTreeMap::values).map(number).sum(),
        }
    }

    fn knows(&self, server: &ServerName, tool: &str) -> bool {
        let known = self.servers.get(server).and_then(|tools| tools.get(tool));
        known.is_some_and(|calls| calls.here > 0)
    }
}

impl Engine {
    /// Reads the log now, and again when a tool is called that was not called before, until the engine is dropped.
    pub(super) fn follow_usage(&self) {
        let engine = Arc::downgrade(&self.0);
        let (mut notices, mut folders) = (self.notices(), self.0.folders.subscribe());
        tokio::spawn(async move {
            let mut known = Arc::<ToolUsage>::default();
            loop {
                tokio::select! {
                    changed = folders.changed() => if changed.is_err() { return },
                    notice = notices.recv() => match notice {
                        Ok(Notice::CallFinished(record))
                            if record.kind == CallKind::Tool
                                && record.success
                                && !known.knows(&record.server, &record.tool) => {}
                        Ok(_) | Err(RecvError::Lagged(_)) => continue,
                        Err(RecvError::Closed) => return,
                    },
                }
                let Some(engine) = engine.upgrade().map(Self) else { return };
                known = engine.read_usage().await;
            }
        });
    }

    async fn read_usage(&self) -> Arc<ToolUsage> {
        let days = DAYS.min(self.0.shared.settings.borrow().audit.keep_days);
        let rows = self.0.store.tool_calls(Timestamp::now().days_before(days)).await.unwrap_or_default();
        let usage = Arc::new(ToolUsage::new(days, rows));
        self.send_command(|done| HubCommand::SetUsage { usage: usage.clone(), done }).await.ok();
        usage
    }
}
