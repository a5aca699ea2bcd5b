//! The call log: writes rows, masked and truncated; reads rows and percentiles.

use std::collections::BTreeMap;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params, params_from_iter};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::decisions::path_text;
use super::owner::Owner;
use super::{FinishedCall, Options};
use crate::model::{CallId, CallRecord, Requester, ServerName, Timestamp};
use crate::text::{holds_secret, mask};

/// Which calls to list, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallQuery {
    pub server: Option<String>,
    pub tool: Option<String>,
    pub workflow: Option<String>,
    pub since: Option<Timestamp>,
    pub failed: Option<bool>,
    pub limit: Option<usize>,
}

/// Statistics about the calls of one tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolMetrics {
    pub server: ServerName,
    pub tool: String,
    pub calls: u64,
    pub errors: u64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
}

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 10_000;
/// Percentiles cover only the newest calls, so that a long history neither slows them down nor hides recent changes.
const METRICS_LIMIT: i64 = 100_000;
/// For names, reasons and errors; more than any of them needs.
const MAX_TEXT: usize = 8 << 10;
/// How much is read beyond the stored part, to recognize a secret across the cut.
const MARGIN: usize = 64 << 10;
const UNFINISHED_ERROR: &str = "no outcome was recorded: mcp-sidecar exited during the call";

impl Owner {
    pub(super) fn begin(&mut self, call: &FinishedCall) -> Result<i64, String> {
        let options = self.shared.options();
        self.write("NORMAL", |transaction| insert(transaction, &options, call, false))
    }

    pub(super) fn finish(&mut self, row: i64, call: &FinishedCall) -> Result<(), String> {
        let record = &call.record;
        let limit = self.shared.options().record_bytes;
        let result = call.result.as_ref().map(|result| stored_result(result.get(), limit));
        self.write("NORMAL", |transaction| {
            transaction.execute(
                "UPDATE calls SET finished = 1, decision = ?2, decided_by = ?3, success = ?4, error = ?5,
                    duration_us = ?6, result = ?7 WHERE id = ?1",
                params![
                    row,
                    masked(&record.decision),
                    masked(&record.decided_by),
                    record.success,
                    record.error.as_deref().map(masked),
                    micros(record.duration_ms),
                    result
                ],
            )
        })?;
        Ok(())
    }

    pub(super) fn calls(&mut self, query: &CallQuery) -> Result<Vec<CallRecord>, String> {
        let (sql, values) = select(query, &path_text(&self.shared.options().project));
        self.connected(|connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params_from_iter(values), read)?;
            rows.filter_map(Result::transpose).collect()
        })
    }

    pub(super) fn metrics(&mut self, server: Option<&str>) -> Result<Vec<ToolMetrics>, String> {
        let project = path_text(&self.shared.options().project);
        let mut tools: BTreeMap<(String, String), (u64, Vec<i64>)> = BTreeMap::new();
        self.connected(|connection| {
            // A denied call never ran and has no duration.
            let mut statement = connection.prepare_cached(
                "SELECT server, tool, success, duration_us FROM calls
                    WHERE project = ?1 AND (?2 IS NULL OR server = ?2) AND finished = 1
                        AND decision NOT IN ('deny', 'disable')
                    ORDER BY id DESC LIMIT ?3",
            )?;
            let mut rows = statement.query(params![project, server, METRICS_LIMIT])?;
            while let Some(row) = rows.next()? {
                let (errors, durations) = tools.entry((row.get(0)?, row.get(1)?)).or_default();
                *errors += u64::from(!row.get::<_, bool>(2)?);
                durations.push(row.get(3)?);
            }
            Ok(())
        })?;
        let measured = tools.into_iter().filter_map(|((server, tool), (errors, mut durations))| {
            durations.sort_unstable();
            Some(ToolMetrics {
                server: ServerName::new(&server).ok()?,
                tool,
                calls: durations.len() as u64,
                errors,
                p50_ms: percentile(&durations, 50),
                p95_ms: percentile(&durations, 95),
                p99_ms: percentile(&durations, 99),
            })
        });
        Ok(measured.collect())
    }
}

/// Writes one row and returns its id.
pub fn insert(
    connection: &Connection,
    options: &Options,
    call: &FinishedCall,
    finished: bool,
) -> rusqlite::Result<i64> {
    let record = &call.record;
    let requester = serde_json::to_string(&record.requester).unwrap_or_default();
    let arguments = serde_json::to_string(&*call.arguments).unwrap_or_default();
    let mut statement = connection.prepare_cached(
        "INSERT INTO calls (call_id, project, time, server, tool, requester, workflow, decision, decided_by,
                finished, success, error, duration_us, arguments, result)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
    )?;
    statement.insert(params![
        &*record.call_id.0,
        path_text(&options.project),
        record.time.unix_millis(),
        record.server.as_str(),
        masked(&record.tool),
        masked(&requester),
        record.workflow.as_deref().map(masked),
        masked(&record.decision),
        masked(&record.decided_by),
        finished,
        record.success,
        record.error.as_deref().map(masked),
        micros(record.duration_ms),
        stored_json(&arguments, options.record_bytes),
        call.result.as_ref().map(|result| stored_result(result.get(), options.record_bytes)),
    ])
}

/// The statement for a query. Only constant text is concatenated; all values are bound.
fn select(query: &CallQuery, project: &str) -> (String, Vec<Sql>) {
    let mut sql = "SELECT call_id, time, server, tool, requester, workflow, decision, decided_by, finished, success,
            error, duration_us, arguments, result FROM calls WHERE project = ?"
        .to_owned();
    let mut values = vec![Sql::from(project.to_owned())];
    let wanted = [
        (" AND server = ?", query.server.clone().map(Sql::from)),
        (" AND tool = ?", query.tool.clone().map(Sql::from)),
        (" AND workflow = ?", query.workflow.clone().map(Sql::from)),
        (" AND time >= ?", query.since.map(|since| Sql::from(since.unix_millis()))),
        (" AND success = ?", query.failed.map(|failed| Sql::from(i64::from(!failed)))),
    ];
    for (condition, value) in wanted {
        if let Some(value) = value {
            sql.push_str(condition);
            values.push(value);
        }
    }
    sql.push_str(" ORDER BY id DESC LIMIT ?");
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    values.push(Sql::from(i64::try_from(limit).unwrap_or(i64::MAX)));
    (sql, values)
}

/// `None` for an invalid row.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<CallRecord>> {
    let server: String = row.get(2)?;
    let requester: String = row.get(4)?;
    let finished: bool = row.get(8)?;
    let Ok(server) = ServerName::new(&server) else { return Ok(None) };
    Ok(Some(CallRecord {
        call_id: CallId(row.get::<_, String>(0)?.into()),
        time: Timestamp::from_unix_millis(row.get(1)?),
        server,
        tool: row.get(3)?,
        requester: serde_json::from_str::<Requester>(&requester).unwrap_or_default(),
        workflow: row.get(5)?,
        decision: row.get(6)?,
        decided_by: row.get(7)?,
        success: row.get(9)?,
        error: if finished { row.get(10)? } else { Some(UNFINISHED_ERROR.to_owned()) },
        duration_ms: row.get::<_, i64>(11)? as f64 / 1e3,
        arguments: row.get::<_, Option<String>>(12)?.map(parsed),
        result: row.get::<_, Option<String>>(13)?.map(parsed),
    }))
}

/// Masking may leave invalid JSON, and servers may send invalid surrogates. Such a value is shown as text.
fn parsed(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn masked(text: &str) -> String {
    let text = mask(text);
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

/// JSON as stored: masked, and truncated at the limit, with the length and digest of the whole.
fn stored_json(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return mask(text).into_owned();
    }
    let head = mask(head(text, limit.saturating_add(MARGIN)));
    json!({ "cut": self::head(&head, limit), "length": text.len(), "sha256": digest(text) }).to_string()
}

/// Of a result with a secret, only the length and digest are stored.
fn stored_result(text: &str, limit: usize) -> String {
    if holds_secret(text) {
        return json!({ "withheld": "contains a secret", "length": text.len(), "sha256": digest(text) }).to_string();
    }
    stored_json(text, limit)
}

/// Of the masked text: the digest of a short secret could be guessed.
fn digest(text: &str) -> String {
    crate::policy::hex(&Sha256::digest(mask(text).as_bytes()))
}

fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

fn micros(millis: f64) -> i64 {
    (millis * 1e3).round() as i64
}

/// The nearest rank of sorted durations, in milliseconds.
fn percentile(sorted: &[i64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).map_or(0.0, |micros| *micros as f64 / 1e3)
}
