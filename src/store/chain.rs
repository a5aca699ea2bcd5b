//! The chain of call records. Each link is the hash of a record and of the link before it, so a record that was changed,
//! deleted, moved or added by another program is noticed.
//!
//! Every workspace has one chain, because it has one engine. Engines share the file, and a command without an engine writes
//! to it as well: every writer of a record adds its link in the same transaction, so a chain never forks. A record of a
//! strict log has two links: one before the call, about what never changes, and one about the outcome.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

use super::database::{insert_rows, together};
use crate::model::Timestamp;
use crate::text::{counted, one_line};

/// What a link covers. The order of the columns is part of the format.
const BEGUN: &str = "SELECT id, call_id, project, time, server, tool, requester, workflow, arguments, requested, kind
    FROM calls WHERE id = ?1";
const FINISHED: &str =
    "SELECT id, call_id, project, time, server, tool, requester, workflow, arguments, requested, kind,
    decision, decided_by, finished, success, error, duration_us, result, waited_us FROM calls WHERE id = ?1";

/// What precedes the first link.
const NOTHING: [u8; 32] = [0; 32];

/// The newest link that this engine wrote. A program that rewrites the whole chain cannot change this copy of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    project: String,
    number: i64,
    digest: Vec<u8>,
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// What is wrong with the first record that breaks the chain.
    pub broken: Option<String>,
    /// Records that were compared with the chain.
    pub checked: usize,
    /// Records that were written before the chain began.
    pub unchecked: usize,
    /// The newest link in hex. It changes if any record is changed.
    pub head: Option<String>,
}

impl ChainReport {
    /// The outcome as sentences.
    pub fn message(&self) -> String {
        let mut message = match (&self.broken, self.checked) {
            (Some(broken), _) => format!("The call log was changed: {broken}."),
            (None, 0) => "There are no call records to check.".to_owned(),
            (None, 1) => "The call log is intact: 1 record is unchanged.".to_owned(),
            (None, checked) => format!("The call log is intact: {checked} records are unchanged."),
        };
        if self.unchecked > 0 {
            let (records, were) = (counted(self.unchecked, "record"), if self.unchecked == 1 { "was" } else { "were" });
            message.push_str(&format!(" {records} {were} written before the chain began and cannot be checked."));
        }
        message
    }
}

struct Chain {
    last: i64,
    digest: Vec<u8>,
    /// The newest link whose record was deleted because of its age.
    pruned: i64,
    pruned_digest: Vec<u8>,
    /// The newest record that was written before the chain began.
    unchained: Option<i64>,
}

struct Link {
    number: i64,
    call: i64,
    finished: bool,
}

/// Adds links for the records of one workspace, in the transaction that writes the records.
pub struct Appender<'c> {
    connection: &'c Connection,
    project: String,
    last: i64,
    digest: Vec<u8>,
    /// Links that are not written yet.
    links: Vec<(Link, Vec<u8>)>,
}

impl<'c> Appender<'c> {
    /// `first` is the first record that gets a link. If there is no chain yet, all records before it are outside of it.
    pub fn open(connection: &'c Connection, project: &str, first: i64) -> rusqlite::Result<Self> {
        let (last, digest) = match chain(connection, project)? {
            Some(chain) => (chain.last, chain.digest),
            None => {
                connection.execute(
                    "INSERT INTO chains (project, last, digest, pruned, pruned_digest, unchained)
                        VALUES (?1, 0, ?2, 0, ?2, (SELECT max(id) FROM calls WHERE project = ?1 AND id < ?3))",
                    params![project, NOTHING, first],
                )?;
                (0, NOTHING.to_vec())
            }
        };
        Ok(Self { connection, project: project.to_owned(), last, digest, links: Vec::new() })
    }

    /// Adds a link for a record that has these columns, in the order of the format.
    pub fn append(&mut self, call: i64, finished: bool, columns: &[ValueRef<'_>]) -> rusqlite::Result<()> {
        let link = Link { number: self.last + 1, call, finished };
        let digest = digest_of(&self.digest, &link, columns.iter().map(|column| Ok(*column)))?;
        self.add(link, digest);
        Ok(())
    }

    /// The same for a record as it is in the file.
    pub fn append_stored(&mut self, call: i64, finished: bool) -> rusqlite::Result<()> {
        let link = Link { number: self.last + 1, call, finished };
        let digest = digest(self.connection, &self.digest, &link)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        self.add(link, digest);
        Ok(())
    }

    fn add(&mut self, link: Link, digest: Vec<u8>) {
        (self.last, self.digest) = (link.number, digest.clone());
        self.links.push((link, digest));
    }

    /// Writes the links and the end of the chain.
    pub fn close(self) -> rusqlite::Result<ChainHead> {
        let Self { connection, project, last, digest, links } = self;
        for links in together(&links) {
            let values = links.iter().flat_map(|(link, digest)| {
                let [number, call, finished] = [link.number, link.call, link.finished.into()].map(ValueRef::Integer);
                [ValueRef::Text(project.as_bytes()), number, call, finished, ValueRef::Blob(digest)]
            });
            let into = "links (project, number, call, finished, digest)";
            insert_rows(connection, into, links.len(), values.map(ToSqlOutput::Borrowed).collect())?;
        }
        connection
            .prepare_cached("UPDATE chains SET last = ?2, digest = ?3 WHERE project = ?1")?
            .execute(params![project, last, digest])?;
        Ok(ChainHead { project, number: last, digest })
    }
}

/// Whether the chain still contains a link that we wrote, or it was deleted because of its age.
pub fn contains(connection: &Connection, head: &ChainHead) -> rusqlite::Result<bool> {
    let Some(chain) = chain(connection, &head.project)? else { return Ok(false) };
    if chain.pruned > head.number {
        return Ok(true);
    }
    let found: Option<Vec<u8>> = match chain.pruned == head.number {
        true => Some(chain.pruned_digest),
        false => connection
            .prepare_cached("SELECT digest FROM links WHERE project = ?1 AND number = ?2")?
            .query_row(params![head.project, head.number], |row| row.get(0))
            .optional()?,
    };
    Ok(found.is_some_and(|found| found == head.digest))
}

/// Deletes the links of records below an id, up to the first link of a record that stays.
pub fn prune(connection: &Connection, first_kept: i64) -> rusqlite::Result<()> {
    let mut chains = connection.prepare("SELECT project, last FROM chains")?;
    let chains: Vec<(String, i64)> =
        chains.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
    for (project, last) in chains {
        let kept: Option<i64> = connection
            .prepare_cached("SELECT number FROM links WHERE project = ?1 AND call >= ?2 ORDER BY number LIMIT 1")?
            .query_row(params![project, first_kept], |row| row.get(0))
            .optional()?;
        let newest_deleted = kept.unwrap_or(last + 1) - 1;
        connection.execute(
            "UPDATE chains SET pruned = links.number, pruned_digest = links.digest FROM links
                WHERE chains.project = ?1 AND links.project = ?1 AND links.number = ?2",
            params![project, newest_deleted],
        )?;
        connection
            .execute("DELETE FROM links WHERE project = ?1 AND number <= ?2", params![project, newest_deleted])?;
    }
    Ok(())
}

/// Compares every record of a workspace with its chain.
pub fn verify(connection: &mut Connection, project: &str, head: Option<&ChainHead>) -> rusqlite::Result<ChainReport> {
    // All queries see the same state, whatever is written in between.
    let snapshot = connection.transaction()?;
    let chain = chain(&snapshot, project)?;
    let unchained = chain.as_ref().map_or(Some(i64::MAX), |chain| chain.unchained);
    // A finished record needs a link about its outcome.
    let outside = "FROM calls WHERE project = ?1 AND NOT EXISTS (SELECT 1 FROM links
        WHERE links.call = calls.id AND links.project = calls.project AND links.finished >= calls.finished)";
    let unchecked = format!("SELECT count(*) {outside} AND id <= ?2");
    let unchecked: i64 = snapshot.query_row(&unchecked, params![project, unchained], |row| row.get(0))?;
    let all: i64 = snapshot.query_row("SELECT count(*) FROM calls WHERE project = ?1", [project], |row| row.get(0))?;
    let added = snapshot
        .query_row(
            &format!("SELECT server, tool, time, call_id {outside} AND (?2 IS NULL OR id > ?2) ORDER BY id LIMIT 1"),
            params![project, unchained],
            name,
        )
        .optional()?;
    let mut broken = match &chain {
        Some(chain) => broken_link(&snapshot, project, chain)?,
        None => snapshot
            .query_row("SELECT number FROM links WHERE project = ?1 LIMIT 1", [project], |row| row.get::<_, i64>(0))
            .optional()?
            .map(|_| "the end of the chain was deleted".to_owned()),
    };
    broken = broken.or_else(|| added.map(|name| format!("{name} was added or completed by another program")));
    if broken.is_none()
        && let Some(head) = head.filter(|head| head.project == project)
        && !contains(&snapshot, head)?
    {
        broken = Some(REWRITTEN.to_owned());
    }
    Ok(ChainReport {
        broken,
        checked: usize::try_from(all - unchecked).unwrap_or_default(),
        unchecked: usize::try_from(unchecked).unwrap_or_default(),
        head: chain.map(|chain| crate::policy::hex(&chain.digest)),
    })
}

/// The files are consistent, but not what this engine wrote.
pub const REWRITTEN: &str = "records that this engine wrote were deleted or replaced while it was running";

/// Follows the chain from its first link to the last one.
fn broken_link(connection: &Connection, project: &str, chain: &Chain) -> rusqlite::Result<Option<String>> {
    let mut statement =
        connection.prepare("SELECT number, call, finished, digest FROM links WHERE project = ?1 ORDER BY number")?;
    let mut links = statement.query([project])?;
    let (mut number, mut previous, mut newest) = (chain.pruned, chain.pruned_digest.clone(), None);
    let after = |newest: Option<i64>| match newest.map(|call| named(connection, call)).transpose()?.flatten() {
        Some(name) => Ok::<_, rusqlite::Error>(format!("; it came after {name}")),
        None => Ok(String::new()),
    };
    while let Some(row) = links.next()? {
        let link = Link { number: row.get(0)?, call: row.get(1)?, finished: row.get(2)? };
        number += 1;
        if link.number != number {
            return Ok(Some(format!("entry {number} of the chain is missing{}", after(newest)?)));
        }
        let Some(found) = digest(connection, &previous, &link)? else {
            return Ok(Some(format!("the record of entry {number} of the chain was deleted{}", after(newest)?)));
        };
        if found != row.get::<_, Vec<u8>>(3)? {
            let name = named(connection, link.call)?.unwrap_or_default();
            return Ok(Some(format!("{name} does not match entry {number} of the chain")));
        }
        (previous, newest) = (found, Some(link.call));
    }
    if number != chain.last || previous != chain.digest {
        let missing = format!("the newest records were deleted: the chain ends at entry {number}");
        return Ok(Some(format!("{missing} instead of {}", chain.last)));
    }
    Ok(None)
}

fn chain(connection: &Connection, project: &str) -> rusqlite::Result<Option<Chain>> {
    let mut statement = connection
        .prepare_cached("SELECT last, digest, pruned, pruned_digest, unchained FROM chains WHERE project = ?1")?;
    let read = |row: &Row<'_>| {
        Ok(Chain {
            last: row.get(0)?,
            digest: row.get(1)?,
            pruned: row.get(2)?,
            pruned_digest: row.get(3)?,
            unchained: row.get(4)?,
        })
    };
    statement.query_row([project], read).optional()
}

/// The hash of a record as it is in the file and of the link before it. `None` if the record does not exist.
fn digest(connection: &Connection, previous: &[u8], link: &Link) -> rusqlite::Result<Option<Vec<u8>>> {
    let mut statement = connection.prepare_cached(if link.finished { FINISHED } else { BEGUN })?;
    let columns = statement.column_count();
    let hash = |row: &Row<'_>| digest_of(previous, link, (0..columns).map(|column| row.get_ref(column)));
    statement.query_row([link.call], hash).optional()
}

/// The hash of these columns and of the link before.
fn digest_of<'v>(
    previous: &[u8],
    link: &Link,
    columns: impl Iterator<Item = rusqlite::Result<ValueRef<'v>>>,
) -> rusqlite::Result<Vec<u8>> {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(link.number.to_be_bytes());
    hash.update([u8::from(link.finished)]);
    for column in columns {
        // Every value has a type and a length, so that no two records have the same bytes.
        let (number, real);
        let (kind, bytes) = match column? {
            ValueRef::Null => (0, &[][..]),
            ValueRef::Integer(integer) => {
                number = integer.to_be_bytes();
                (1, &number[..])
            }
            ValueRef::Real(float) => {
                real = float.to_be_bytes();
                (2, &real[..])
            }
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(bytes) => (4, bytes),
        };
        hash.update([kind]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    Ok(hash.finalize().to_vec())
}

fn named(connection: &Connection, call: i64) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT server, tool, time, call_id FROM calls WHERE id = ?1";
    connection.query_row(sql, [call], name).optional()
}

/// Names a record for people: what was called, when, and the id of the call.
fn name(row: &Row<'_>) -> rusqlite::Result<String> {
    let short = |column: usize| row.get::<_, String>(column).map(|text| one_line(&text, 200));
    let time = Timestamp::from_unix_millis(row.get(2)?);
    Ok(format!("the record of the call to {}/{} at {time} ({})", short(0)?, short(1)?, short(3)?))
}
