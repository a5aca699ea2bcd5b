//! The user's decisions as one picture in memory, and each change of it as a row in the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, Row, params};

use crate::model::{ServerName, Timestamp};
use crate::policy::Pin;
use crate::policy::grants::{Grant, GrantScope};
use crate::policy::trust::{Fingerprint, Remembered, TrustKey};

/// Everything the user has decided that outlives a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decisions {
    pub trust: BTreeMap<TrustKey, Remembered>,
    pub grants: Vec<Arc<Grant>>,
}

/// One decision.
#[derive(Debug, Clone)]
pub enum Change {
    Trust(TrustKey, Arc<Fingerprint>),
    /// No to the definition with this digest.
    Distrust(TrustKey, String),
    Forget(TrustKey),
    Grant(Arc<Grant>),
    Revoke(Vec<String>),
}

impl Decisions {
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Trust(key, fingerprint) => {
                let remembered = self.trust.entry(key.clone()).or_default();
                remembered.trusted = Some(fingerprint.clone());
                if remembered.denied.as_ref() == Some(&fingerprint.digest) {
                    remembered.denied = None;
                }
            }
            Change::Distrust(key, digest) => {
                let remembered = self.trust.entry(key.clone()).or_default();
                if remembered.trusted.as_ref().is_some_and(|trusted| trusted.digest == *digest) {
                    remembered.trusted = None;
                }
                remembered.denied = Some(digest.clone());
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

    /// The same picture as changes, to write it into a new file.
    pub fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (key, remembered) in &self.trust {
            changes.extend(remembered.trusted.iter().map(|trusted| Change::Trust(key.clone(), trusted.clone())));
            changes.extend(remembered.denied.iter().map(|denied| Change::Distrust(key.clone(), denied.clone())));
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

    /// A row that makes no sense is left out: the user is asked again, and nothing is allowed by accident.
    fn read_trust(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let (project, server): (String, String) = (row.get(0)?, row.get(1)?);
        let (decision, fingerprint): (String, String) = (row.get(2)?, row.get(3)?);
        let Ok(server) = ServerName::new(&server) else { return Ok(()) };
        let remembered = self.trust.entry(TrustKey { project: PathBuf::from(project), server }).or_default();
        match decision.as_str() {
            "trusted" => remembered.trusted = serde_json::from_str(&fingerprint).ok().map(Arc::new),
            _ => remembered.denied = Some(fingerprint),
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
    /// Writes this change inside a transaction that it shares with others. A row that the database rejects costs only
    /// this change: it is left out, and the reason returned.
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

/// A path as text. One that is no UTF-8 is written escaped: it then matches nothing, and the user is asked again.
pub fn path_text(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_owned)
}
