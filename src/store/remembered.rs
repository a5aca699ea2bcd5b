//! Facts about a launch that spare work at the next start: the protocol era it speaks, the tools it had.

use rusqlite::{OptionalExtension, params};

use super::owner::Owner;
use crate::model::Timestamp;
use crate::text::mask;

/// A tool list of thousands fits; what does not is not worth remembering.
const LONGEST: usize = 16 << 20;

impl Owner {
    pub(super) fn remember(&mut self, launch: &str, what: &str, value: &str) -> Result<(), String> {
        if value.len() > LONGEST {
            return Err(format!("longer than {LONGEST} bytes"));
        }
        let (value, now) = (mask(value), Timestamp::now().unix_millis());
        self.write("NORMAL", |transaction| {
            transaction.execute(
                "INSERT OR REPLACE INTO remembered (launch, what, value, time) VALUES (?1, ?2, ?3, ?4)",
                params![launch, what, value, now],
            )
        })?;
        Ok(())
    }

    pub(super) fn recall(&mut self, launch: &str, what: &str) -> Option<String> {
        let recalled = self.connected(|connection| {
            let sql = "SELECT value FROM remembered WHERE launch = ?1 AND what = ?2";
            connection.query_row(sql, params![launch, what], |row| row.get(0)).optional()
        });
        recalled.ok().flatten()
    }

    /// Old calls go after `audit.keep_days`, facts about launches that nobody uses any more after ninety.
    pub(super) fn forget_old(&mut self) {
        const DAY: i64 = 24 * 60 * 60 * 1_000;
        let now = Timestamp::now().unix_millis();
        let calls = now - i64::from(self.shared.options().keep_days) * DAY;
        let forgotten = self.connected(|connection| {
            // Ids grow with time, so only rows that go are read.
            connection.execute(
                "DELETE FROM calls WHERE id < coalesce(
                    (SELECT id FROM calls WHERE time >= ?1 ORDER BY id LIMIT 1), (SELECT max(id) + 1 FROM calls))",
                [calls],
            )?;
            connection.execute("DELETE FROM remembered WHERE time < ?1", [now - 90 * DAY])
        });
        if let Err(why) = forgotten {
            tracing::warn!(%why, "old records were not deleted");
        }
    }
}
