//! The user's decisions in memory, and each change as a row in the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, Row, params};

use crate::model::{ServerName, Timestamp};
use crate::policy::Pin;
use crate::policy::grants::{Grant, GrantScope};
use crate::policy::trust::{Fingerprint, TrustKey, TrustRecord};

/// All decisions that outlive a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decisions {
    pub trust: BTreeMap<TrustKey, TrustRecord>,
    pub grants: Vec<Arc<Grant>>,
}

/// One decision.
#[derive(Debug, Clone)]
pub enum Change {
    Trust(TrustKey, Arc<Fingerprint>),
    /// The user denied the definition with this digest.
    Distrust(TrustKey, String),
    Forget(TrustKey),
    Grant(Arc<Grant>),
    Revoke(Vec<String>),
}

impl Decisions {
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Trust(key, fingerprint) => {
                let record = self.trust.entry(key.clone()).or_default();
                record.trusted = Some(fingerprint.clone());
                if record.denied.as_ref() == Some(&fingerprint.digest) {
                    record.denied = None;
                }
            }
            Change::Distrust(key, digest) => {
                let record = self.trust.entry(key.clone()).or_default();
                if record.trusted.as_ref().is_some_and(|trusted| trusted.digest == *digest) {
                    record.trusted = None;
                }
                record.denied = Some(digest.clone());
            }
            Change::Forget(key) => {
                self.trust.remove(key);
            }
            Change::Grant(grant) => {
                self.grants.retain(|older| !grant.replaces(older));
                self.grants.push(grant.clone());
            }
            Change::Revoke(ids) => self.grants.retain(|grant| !ids.contains(&grant.id)),
        }
    }

    /// Whether the user has trusted the same in any worktree of the repository. The fingerprint names the repository, so it
    /// is enough to compare it.
    pub fn trusts_anywhere(&self, key: &TrustKey, fingerprint: &Fingerprint) -> bool {
        self.about(key).any(|record| record.trusted.as_ref().is_some_and(|known| known.covers(fingerprint)))
    }

    /// The same for a denial.
    pub fn denies_anywhere(&self, key: &TrustKey, fingerprint: &Fingerprint) -> bool {
        self.about(key).any(|record| record.denied.as_ref() == Some(&fingerprint.digest))
    }

    /// The decisions about servers of this name, in all projects.
    fn about(&self, key: &TrustKey) -> impl Iterator<Item = &TrustRecord> {
        self.trust.iter().filter(|(other, _)| other.server == key.server).map(|(_, record)| record)
    }

    /// All decisions as changes, to write them to a new file.
    pub fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (key, record) in &self.trust {
            changes.extend(record.trusted.iter().map(|trusted| Change::Trust(key.clone(), trusted.clone())));
            changes.extend(record.denied.iter().map(|denied| Change::Distrust(key.clone(), denied.clone())));
        }
        changes.extend(self.grants.iter().cloned().map(Change::Grant));
        changes
    }

    pub fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut decisions = Self::default();
        let mut trust = connection.prepare_cached("SELECT project, server, decision, fingerprint FROM trust")?;
        let mut rows = trust.query([])?;
        while let Some(row) = rows.next()? {
            decisions.read_trust(row)?;
        }
        let mut grants = connection.prepare_cached(
            "SELECT id, server, tool, scope, project, fingerprint, pin, definition, since FROM grants ORDER BY since",
        )?;
        let mut rows = grants.query([])?;
        while let Some(row) = rows.next()? {
            decisions.grants.extend(read_grant(row)?.map(Arc::new));
        }
        Ok(decisions)
    }

    /// An invalid row is skipped: the user is asked again, and nothing is allowed by accident.
    fn read_trust(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let (project, server): (String, String) = (row.get(0)?, row.get(1)?);
        let (decision, fingerprint): (String, String) = (row.get(2)?, row.get(3)?);
        let Ok(server) = ServerName::new(&server) else { return Ok(()) };
        let record = self.trust.entry(TrustKey { project: PathBuf::from(project), server }).or_default();
        match decision.as_str() {
            "trusted" => record.trusted = serde_json::from_str(&fingerprint).ok().map(Arc::new),
            _ => record.denied = Some(fingerprint),
        }
        Ok(())
    }
}

fn read_grant(row: &Row<'_>) -> rusqlite::Result<Option<Grant>> {
    let (server, scope): (String, String) = (row.get(1)?, row.get(3)?);
    let (Ok(server), Some(scope)) = (ServerName::new(&server), GrantScope::parse(&scope)) else { return Ok(None) };
    Ok(Some(Grant {
        id: row.get(0)?,
        server,
        tool: row.get(2)?,
        scope,
        project: row.get::<_, Option<String>>(4)?.map(PathBuf::from),
        fingerprint: row.get(5)?,
        pin: Pin { digest: row.get(6)?, text: row.get(7)? },
        since: Timestamp::from_unix_millis(row.get(8)?),
    }))
}

impl Change {
    /// Writes this change in a shared transaction. If the database rejects the row, only this change is skipped, and
    /// the reason is returned.
    pub fn write_alone(&self, connection: &Connection) -> rusqlite::Result<Option<String>> {
        connection.execute_batch("SAVEPOINT change")?;
        let rejected = match self.write(connection) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                connection.execute_batch("ROLLBACK TO change")?;
                Some(error.to_string())
            }
            written => {
                written?;
                None
            }
        };
        connection.execute_batch("RELEASE change")?;
        Ok(rejected)
    }

    fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        match self {
            Self::Trust(key, fingerprint) => {
                let text = serde_json::to_string(fingerprint).unwrap_or_default();
                put_trust(connection, key, "trusted", &text)?;
                connection.execute(
                    "DELETE FROM trust WHERE project = ?1 AND server = ?2 AND decision = 'denied' AND fingerprint = ?3",
                    params![path_text(&key.project), key.server.as_str(), fingerprint.digest],
                )?;
            }
            Self::Distrust(key, digest) => {
                put_trust(connection, key, "denied", digest)?;
                connection.execute(
                    "DELETE FROM trust WHERE project = ?1 AND server = ?2 AND decision = 'trusted'
                        AND json_extract(fingerprint, '$.digest') = ?3",
                    params![path_text(&key.project), key.server.as_str(), digest],
                )?;
            }
            Self::Forget(key) => {
                connection.execute(
                    "DELETE FROM trust WHERE project = ?1 AND server = ?2",
                    params![path_text(&key.project), key.server.as_str()],
                )?;
            }
            Self::Grant(grant) => put_grant(connection, grant)?,
            Self::Revoke(ids) => {
                for id in ids {
                    connection.execute("DELETE FROM grants WHERE id = ?1", [id])?;
                }
            }
        }
        Ok(())
    }
}

fn put_trust(connection: &Connection, key: &TrustKey, decision: &str, fingerprint: &str) -> rusqlite::Result<usize> {
    connection.execute(
        "INSERT OR REPLACE INTO trust (project, server, decision, fingerprint, time) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![path_text(&key.project), key.server.as_str(), decision, fingerprint, Timestamp::now().unix_millis()],
    )
}

fn put_grant(connection: &Connection, grant: &Grant) -> rusqlite::Result<()> {
    let project = grant.project.as_deref().map(path_text);
    connection.execute(
        "DELETE FROM grants WHERE server = ?1 AND tool = ?2 AND scope = ?3 AND project IS ?4 AND fingerprint IS ?5",
        params![grant.server.as_str(), grant.tool, grant.scope.as_str(), project, grant.fingerprint],
    )?;
    connection.execute(
        "INSERT OR REPLACE INTO grants (id, server, tool, scope, project, fingerprint, pin, definition, since)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            grant.id,
            grant.server.as_str(),
            grant.tool,
            grant.scope.as_str(),
            project,
            grant.fingerprint,
            grant.pin.digest,
            grant.pin.text,
            grant.since.unix_millis()
        ],
    )?;
    Ok(())
}

/// A path as text. If it is not UTF-8, it is escaped: then it matches nothing, and the user is asked again.
pub fn path_text(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}
