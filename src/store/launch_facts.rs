//! Facts about a launch that save work at the next start: its MCP version, its tools.

use std::sync::PoisonError;

use rusqlite::{OptionalExtension, params};

use super::chain;
use super::owner::Owner;
use crate::model::Timestamp;
use crate::text::mask;

/// Enough for thousands of tools. A longer value is not worth storing.
const MAX_VALUE_BYTES: usize = 16 << 20;

/// Something to remember.
pub(super) struct Fact {
    pub launch: String,
    pub what: &'static str,
    pub value: String,
}

impl Owner {
    /// Writes all facts that have arrived by now.
    pub(super) fn remember(&mut self) -> Result<(), String> {
        let mut facts = std::mem::take(&mut *self.shared.facts.lock().unwrap_or_else(PoisonError::into_inner));
        facts.retain(|fact| fact.value.len() <= MAX_VALUE_BYTES);
        if facts.is_empty() {
            return Ok(());
        }
        let now = Timestamp::now().unix_millis();
        self.write("NORMAL", |transaction| {
            let mut statement = transaction.prepare_cached(
                "INSERT OR REPLACE INTO remembered (launch, what, value, time) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for Fact { launch, what, value } in &facts {
                statement.execute(params![launch, what, mask(value), now])?;
            }
            Ok(())
        })
    }

    pub(super) fn recall(&mut self, launch: &str, what: &str) -> Option<String> {
        let recalled = self.connected(|connection| {
            let sql = "SELECT value FROM remembered WHERE launch = ?1 AND what = ?2";
            connection.prepare_cached(sql)?.query_row(params![launch, what], |row| row.get(0)).optional()
        });
        recalled.ok().flatten()
    }

    /// Deletes calls after `audit.keep_days`, and facts about launches that are unused for ninety days.
    pub(super) fn delete_old(&mut self) {
        let calls = Timestamp::now().days_before(self.shared.options().keep_days);
        let facts = Timestamp::now().days_before(90);
        let forgotten = self.write("NORMAL", |transaction| {
            // Ids grow with time, so only rows to delete are read.
            let first_kept: Option<i64> = transaction.query_row(
                "SELECT coalesce((SELECT id FROM calls WHERE time >= ?1 ORDER BY id LIMIT 1), max(id) + 1) FROM calls",
                [calls.unix_millis()],
                |row| row.get(0),
            )?;
            if let Some(first_kept) = first_kept {
                chain::prune(transaction, first_kept)?;
                // A record stays as long as the chain needs it.
                transaction.execute(
                    "DELETE FROM calls WHERE id < ?1 AND NOT EXISTS (SELECT 1 FROM links WHERE links.call = calls.id)",
                    [first_kept],
                )?;
            }
            transaction.execute("DELETE FROM tool_days WHERE day < ?1", [calls.day()])?;
            transaction.execute("DELETE FROM remembered WHERE time < ?1", [facts.unix_millis()])
        });
        if let Err(why) = forgotten {
            tracing::warn!(%why, "old records were not deleted");
        }
    }
}
