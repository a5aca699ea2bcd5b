//! What agents did lately, and which tools were used, from the call log.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::path::Path;

use rusqlite::{Connection, params};

use super::decisions::path_text;
use super::owner::Owner;
use super::stored_text::masked;
use crate::model::{CallKind, CallRecord, Requester, RequesterKind, ServerName, Timestamp};

/// What agents of one name did in one workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AgentFigures {
    pub calls: u64,
    /// Calls that a rule or the user refused.
    pub denied: u64,
    /// The estimated tokens of all results.
    pub tokens: u64,
}

impl AddAssign for AgentFigures {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.denied += other.denied;
        self.tokens += other.tokens;
    }
}

/// What agents did, by workspace and name.
#[derive(Debug, Clone, Default)]
pub struct AllAgentFigures(BTreeMap<(String, String), AgentFigures>);

impl AllAgentFigures {
    /// What agents of this name did in this workspace.
    pub fn of(&self, workspace: &Path, name: &str) -> AgentFigures {
        let key = (path_text(&crate::paths::canonical(workspace)), name.to_owned());
        self.0.get(&key).copied().unwrap_or_default()
    }
}

/// How often a tool was called: in this workspace, and in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolCalls {
    pub here: u64,
    pub anywhere: u64,
}

/// Counts how often each tool ran on a day, in the transaction that writes the records.
#[derive(Default)]
pub(super) struct ToolDays<'c>(BTreeMap<(&'c str, &'c str, i64), i64>);

impl<'c> ToolDays<'c> {
    /// Counts a call. One that was denied or invalid never ran.
    pub(super) fn count(&mut self, record: &'c CallRecord) {
        if record.kind == CallKind::Tool && !["deny", "disable", "invalid"].contains(&record.decision.as_str()) {
            *self.0.entry((record.server.as_str(), &record.tool, record.time.day())).or_default() += 1;
        }
    }

    pub(super) fn save(self, connection: &Connection, project: &str) -> rusqlite::Result<()> {
        let mut statement = connection.prepare_cached(
            "INSERT INTO tool_days VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (project, server, tool, day) DO UPDATE SET calls = calls + excluded.calls",
        )?;
        for ((server, tool, day), calls) in self.0 {
            statement.execute(params![project, server, masked(tool), day, calls])?;
        }
        Ok(())
    }
}

impl Owner {
    pub(super) fn tool_calls(&mut self, since: Timestamp) -> Result<Vec<(ServerName, String, ToolCalls)>, String> {
        let project = path_text(&self.shared.options().project);
        self.connected(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT server, tool, sum(calls * (project = ?1)), sum(calls) FROM tool_days
                    WHERE day >= ?2 GROUP BY server, tool",
            )?;
            let mut rows = statement.query(params![project, since.day()])?;
            let mut calls = Vec::new();
            while let Some(row) = rows.next()? {
                let Ok(server) = ServerName::new(&row.get::<_, String>(0)?) else { continue };
                let count = |number: i64| number.unsigned_abs();
                let counted = ToolCalls { here: count(row.get(2)?), anywhere: count(row.get(3)?) };
                calls.push((server, row.get(1)?, counted));
            }
            Ok(calls)
        })
    }

    /// Reads from the newest record to the first call that ended too long ago: records are written when calls end.
    pub(super) fn agent_figures(&mut self, since: Timestamp) -> Result<AllAgentFigures, String> {
        self.connected(|connection| {
            let mut figures = AllAgentFigures::default();
            let mut statement = connection.prepare_cached(
                "SELECT project, time + (waited_us + duration_us) / 1000, requester,
                    success = 0 AND decision IN ('deny', 'disable'), result_tokens
                    FROM calls ORDER BY id DESC",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                if row.get::<_, i64>(1)? < since.unix_millis() {
                    break;
                }
                let requester: Requester = serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
                if requester.kind != RequesterKind::Agent {
                    continue;
                }
                *figures.0.entry((row.get(0)?, requester.name)).or_default() += AgentFigures {
                    calls: 1,
                    denied: u64::from(row.get::<_, bool>(3)?),
                    tokens: row.get::<_, Option<i64>>(4)?.unwrap_or_default().unsigned_abs(),
                };
            }
            Ok(figures)
        })
    }
}
