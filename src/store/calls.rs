//! The call log: writes rows, masked and truncated; reads rows and percentiles.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::types::{ToSqlOutput, Value as Sql, ValueRef};
use rusqlite::{Connection, Row, params, params_from_iter};
use serde_json::{Map, Value};

use super::agent_figures::ToolDays;
use super::chain::{Appender, ChainHead};
use super::database::{insert_rows, together};
use super::decisions::path_text;
use super::owner::Owner;
use super::stored_text::{masked, stored_json, stored_result};
use super::{FinishedCall, Options};
use crate::model::{CallId, CallKind, CallRecord, Requester, ResultSize, ServerName, Timestamp};
use crate::paths::in_main_checkout;

/// Which calls to list, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallQuery {
    pub server: Option<String>,
    pub tool: Option<String>,
    pub workflow: Option<String>,
    pub since: Option<Timestamp>,
    pub failed: Option<bool>,
    pub denied: bool,
    /// The name of an agent.
    pub agent: Option<String>,
    /// Part of a name, of the arguments, the result or the error, in upper or lower case.
    pub text: Option<String>,
    pub limit: Option<usize>,
    /// Also the calls in the other worktrees of the repository.
    pub worktrees: bool,
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
    /// The median time that the calls which waited for the user did so.
    pub waited_ms: f64,
    /// The median of the tokens of a result, and of all results together.
    pub result_tokens: u64,
    pub total_result_tokens: u64,
}

/// The calls of one tool: how many failed, and in microseconds how long each ran, and how long those waited that did.
/// Also the estimated tokens of each result.
#[derive(Default)]
struct Measured {
    errors: u64,
    durations: Vec<i64>,
    waits: Vec<i64>,
    tokens: Vec<i64>,
}

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 10_000;
/// Percentiles cover only the newest calls, so that a long history neither slows them down nor hides recent changes.
const METRICS_LIMIT: i64 = 100_000;
/// The calls to measure. One that was denied or invalid never ran and has no duration. All columns are in the index.
const METRICS: &str =
    "SELECT server, tool, success, duration_us, waited_us, result_tokens FROM calls INDEXED BY calls_newest
    WHERE project = ?1 AND (?2 IS NULL OR server = ?2) AND finished = 1 AND kind = 'tool'
        AND decision NOT IN ('deny', 'disable', 'invalid')
    ORDER BY id DESC LIMIT ?3";
const UNFINISHED_ERROR: &str = "no outcome was recorded: mcp-sidecar exited during the call";

impl Owner {
    pub(super) fn begin(&mut self, call: &FinishedCall) -> Result<i64, String> {
        let options = self.shared.options();
        self.write_records(|transaction| insert(transaction, &options, std::slice::from_ref(call), false))
    }

    pub(super) fn finish(&mut self, row: i64, call: &FinishedCall) -> Result<(), String> {
        let record = &call.record;
        let limit = self.shared.options().record_bytes;
        let result = call.result.as_ref().map(|result| stored_result(result.get(), limit));
        self.write_records(|transaction| {
            let updated = transaction.execute(
                "UPDATE calls SET finished = 1, decision = ?2, decided_by = ?3, success = ?4, error = ?5,
                    duration_us = ?6, result = ?7, waited_us = ?8, result_bytes = ?9, result_tokens = ?10
                    WHERE id = ?1",
                params![
                    row,
                    masked(&record.decision),
                    masked(&record.decided_by),
                    record.success,
                    record.error.as_deref().map(masked),
                    micros(record.duration_ms),
                    result,
                    micros(record.waited_ms),
                    record.result_size.map(|size| stored_count(size.bytes)),
                    record.result_size.map(|size| stored_count(size.tokens))
                ],
            )?;
            // A record that was deleted in between, because of its age, needs no outcome.
            if updated == 0 {
                return Ok(((), None));
            }
            let project: String = transaction
                .prepare_cached("SELECT project FROM calls WHERE id = ?1")?
                .query_row([row], |row| row.get(0))?;
            let mut links = Appender::open(transaction, &project, row)?;
            links.append_stored(row, true)?;
            let mut tools = ToolDays::default();
            tools.count(record);
            tools.save(transaction, &project)?;
            Ok(((), Some(links.close()?)))
        })
    }

    pub(super) fn calls(&mut self, query: &CallQuery) -> Result<Vec<CallRecord>, String> {
        let options = self.shared.options();
        let own = path_text(&options.project);
        self.connected(|connection| {
            let mut found = Vec::new();
            let others = if query.worktrees { worktrees(connection, &options)? } else { Vec::new() };
            for project in others.iter().chain([&own]) {
                let (sql, values) = select(query, project);
                let mut statement = connection.prepare_cached(&sql)?;
                let mut rows = statement.query(params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    let record = read(row)?.map(|record| CallRecord {
                        folder: (*project != own).then(|| PathBuf::from(project)),
                        ..record
                    });
                    found.extend(record);
                }
            }
            // Each workspace writes its own batches, so ids say nothing about the order of calls in different workspaces.
            if !others.is_empty() {
                found.sort_by_key(|record| std::cmp::Reverse(record.time));
            }
            found.truncate(limit(query));
            Ok(found)
        })
    }

    pub(super) fn metrics(&mut self, server: Option<&str>) -> Result<Vec<ToolMetrics>, String> {
        let project = path_text(&self.shared.options().project);
        let mut tools: BTreeMap<String, BTreeMap<String, Measured>> = BTreeMap::new();
        self.connected(|connection| {
            let mut statement = connection.prepare_cached(METRICS)?;
            let mut rows = statement.query(params![project, server, METRICS_LIMIT])?;
            while let Some(row) = rows.next()? {
                let (server, tool) = (row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?);
                // Names are copied only once: there are many rows.
                let measured = match tools.get_mut(server).and_then(|tools| tools.get_mut(tool)) {
                    Some(measured) => measured,
                    None => tools.entry(server.to_owned()).or_default().entry(tool.to_owned()).or_default(),
                };
                measured.errors += u64::from(!row.get::<_, bool>(2)?);
                measured.durations.push(row.get(3)?);
                measured.waits.extend(Some(row.get::<_, i64>(4)?).filter(|waited| *waited > 0));
                measured.tokens.extend(row.get::<_, Option<i64>>(5)?);
            }
            Ok(())
        })?;
        let tools = tools
            .into_iter()
            .flat_map(|(server, tools)| tools.into_iter().map(move |(tool, all)| ((server.clone(), tool), all)));
        let measured = tools.filter_map(|((server, tool), measured)| {
            let Measured { errors, mut durations, mut waits, mut tokens } = measured;
            durations.sort_unstable();
            waits.sort_unstable();
            tokens.sort_unstable();
            Some(ToolMetrics {
                server: ServerName::new(&server).ok()?,
                tool,
                calls: durations.len() as u64,
                errors,
                p50_ms: millis(ranked(&durations, 50)),
                p95_ms: millis(ranked(&durations, 95)),
                p99_ms: millis(ranked(&durations, 99)),
                waited_ms: millis(ranked(&waits, 50)),
                result_tokens: ranked(&tokens, 50).unsigned_abs(),
                total_result_tokens: tokens.iter().sum::<i64>().unsigned_abs(),
            })
        });
        Ok(measured.collect())
    }
}

/// The other checkouts of the repository that have records.
fn worktrees(connection: &Connection, options: &Options) -> rusqlite::Result<Vec<String>> {
    let own = path_text(&options.project);
    let mut statement = connection.prepare_cached("SELECT project FROM chains")?;
    let mut rows = statement.query([])?;
    let mut others = Vec::new();
    while let Some(row) = rows.next()? {
        let project: String = row.get(0)?;
        if project != own && in_main_checkout(Path::new(&project)) == options.main {
            others.push(project);
        }
    }
    Ok(others)
}

/// Writes rows with their links. Returns the id of the last row.
pub fn insert(
    connection: &Connection,
    options: &Options,
    calls: &[FinishedCall],
    finished: bool,
) -> rusqlite::Result<(i64, Option<ChainHead>)> {
    let project = path_text(&options.project);
    let mut row: i64 =
        connection.prepare_cached("SELECT coalesce(max(id), 0) FROM calls")?.query_row([], |row| row.get(0))?;
    let mut links = Appender::open(connection, &project, row + 1)?;
    let mut tools = ToolDays::default();
    for calls in together(calls) {
        let stored: Vec<_> = calls.iter().map(|call| Stored::of(call, options.record_bytes)).collect();
        let mut values = Vec::with_capacity(calls.len() * COLUMNS);
        for stored in &stored {
            row += 1;
            let columns = stored.columns(row, &project, finished);
            let linked = if finished { LINKED_COLUMNS } else { BEGUN_COLUMNS };
            links.append(row, finished, columns.get(..linked).unwrap_or(&columns))?;
            values.extend(columns.map(ToSqlOutput::Borrowed));
            if finished {
                tools.count(stored.record);
            }
        }
        insert_rows(connection, CALLS, calls.len(), values)?;
    }
    tools.save(connection, &project)?;
    Ok((row, Some(links.close()?)))
}

const CALLS: &str = "calls (id, call_id, project, time, server, tool, requester, workflow, arguments, requested, kind,
    decision, decided_by, finished, success, error, duration_us, result, waited_us, result_bytes, result_tokens)";
/// The columns of a record, in the order in which links cover them.
const COLUMNS: usize = 21;
/// How many of them a link covers. It covers the result itself, so it need not cover its size.
const LINKED_COLUMNS: usize = 19;
/// How many of them never change after the call has begun.
const BEGUN_COLUMNS: usize = 11;

/// A record as it is stored: masked and truncated.
struct Stored<'a> {
    record: &'a CallRecord,
    tool: Cow<'a, str>,
    requester: String,
    workflow: Option<Cow<'a, str>>,
    arguments: String,
    requested: Option<String>,
    decision: Cow<'a, str>,
    decided_by: Cow<'a, str>,
    error: Option<Cow<'a, str>>,
    result: Option<String>,
}

impl<'a> Stored<'a> {
    fn of(call: &'a FinishedCall, limit: usize) -> Self {
        let record = &call.record;
        let stored_arguments =
            |arguments: &Map<String, Value>| stored_json(&serde_json::to_string(arguments).unwrap_or_default(), limit);
        Self {
            record,
            tool: masked(&record.tool),
            requester: masked(&serde_json::to_string(&record.requester).unwrap_or_default()).into_owned(),
            workflow: record.workflow.as_deref().map(masked),
            arguments: stored_arguments(&call.arguments),
            requested: call.requested.as_ref().map(|requested| stored_arguments(requested)),
            decision: masked(&record.decision),
            decided_by: masked(&record.decided_by),
            error: record.error.as_deref().map(masked),
            result: call.result.as_ref().map(|result| stored_result(result.get(), limit)),
        }
    }

    fn columns<'v>(&'v self, id: i64, project: &'v str, finished: bool) -> [ValueRef<'v>; COLUMNS] {
        let text = |text: &'v str| ValueRef::Text(text.as_bytes());
        let optional = |value: Option<&'v str>| value.map_or(ValueRef::Null, text);
        let number =
            |count: Option<usize>| count.map_or(ValueRef::Null, |count| ValueRef::Integer(stored_count(count)));
        let record = self.record;
        [
            ValueRef::Integer(id),
            text(&record.call_id.0),
            text(project),
            ValueRef::Integer(record.time.unix_millis()),
            text(record.server.as_str()),
            text(&self.tool),
            text(&self.requester),
            optional(self.workflow.as_deref()),
            text(&self.arguments),
            optional(self.requested.as_deref()),
            text(record.kind.as_str()),
            text(&self.decision),
            text(&self.decided_by),
            ValueRef::Integer(finished.into()),
            ValueRef::Integer(record.success.into()),
            optional(self.error.as_deref()),
            ValueRef::Integer(micros(record.duration_ms)),
            optional(self.result.as_deref()),
            ValueRef::Integer(micros(record.waited_ms)),
            number(record.result_size.map(|size| size.bytes)),
            number(record.result_size.map(|size| size.tokens)),
        ]
    }
}

/// The statement for a query. Only constant text is concatenated; all values are bound.
fn select(query: &CallQuery, project: &str) -> (String, Vec<Sql>) {
    // The index has the order of the ids, so that nothing has to be sorted.
    let mut sql = "SELECT call_id, time, server, tool, requester, workflow, decision, decided_by, finished, success,
            error, duration_us, arguments, result, waited_us, requested, kind, result_bytes, result_tokens
            FROM calls INDEXED BY calls_newest
            WHERE project = ?"
        .to_owned();
    let mut values = vec![Sql::from(project.to_owned())];
    let wanted = [
        (" AND server = ?", query.server.clone().map(Sql::from)),
        (" AND tool = ?", query.tool.clone().map(Sql::from)),
        (" AND workflow = ?", query.workflow.clone().map(Sql::from)),
        (" AND time >= ?", query.since.map(|since| Sql::from(since.unix_millis()))),
        (" AND success = ?", query.failed.map(|failed| Sql::from(i64::from(!failed)))),
        (" AND success = 0 AND decision IN ('deny', 'disable') AND 1 = ?", query.denied.then(|| Sql::from(1))),
        (" AND json_extract(requester, '$.name') = ?", query.agent.clone().map(Sql::from)),
        (
            " AND instr(lower(server || ' ' || tool || ' ' || requester || ' ' || coalesce(error, '') || ' ' ||
                coalesce(arguments, '') || ' ' || coalesce(result, '')), lower(?)) > 0",
            query.text.clone().map(Sql::from),
        ),
    ];
    for (condition, value) in wanted {
        if let Some(value) = value {
            sql.push_str(condition);
            values.push(value);
        }
    }
    sql.push_str(" ORDER BY id DESC LIMIT ?");
    values.push(Sql::from(i64::try_from(limit(query)).unwrap_or(i64::MAX)));
    (sql, values)
}

fn limit(query: &CallQuery) -> usize {
    query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT)
}

/// `None` for an invalid row.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<CallRecord>> {
    let server: String = row.get(2)?;
    let requester: String = row.get(4)?;
    let finished: bool = row.get(8)?;
    let kind: String = row.get(16)?;
    let Ok(server) = ServerName::new(&server) else { return Ok(None) };
    Ok(Some(CallRecord {
        call_id: CallId(row.get::<_, String>(0)?.into()),
        folder: None,
        time: Timestamp::from_unix_millis(row.get(1)?),
        kind: CallKind::ALL.into_iter().find(|known| known.as_str() == kind).unwrap_or_default(),
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
        waited_ms: row.get::<_, i64>(14)? as f64 / 1e3,
        requested_arguments: row.get::<_, Option<String>>(15)?.map(parsed),
        result_size: match (row.get(17)?, row.get(18)?) {
            (Some(bytes), Some(tokens)) => Some(ResultSize { bytes: read_count(bytes), tokens: read_count(tokens) }),
            _ => None,
        },
    }))
}

/// Masking may leave invalid JSON, and servers may send invalid surrogates. Such a value is shown as text.
fn parsed(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

fn stored_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn read_count(count: i64) -> usize {
    usize::try_from(count).unwrap_or_default()
}

fn micros(millis: f64) -> i64 {
    (millis * 1e3).round() as i64
}

fn millis(micros: i64) -> f64 {
    micros as f64 / 1e3
}

/// The nearest rank of sorted numbers; 0 if there are none.
fn ranked(sorted: &[i64], percent: usize) -> i64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::database;

    #[test]
    fn a_long_log_is_listed_and_measured_without_sorting() {
        let connection = database::in_memory().unwrap();
        let named = |server: &str, tool: Option<&str>| CallQuery {
            server: Some(server.to_owned()),
            tool: tool.map(str::to_owned),
            ..CallQuery::default()
        };
        let failed = CallQuery { failed: Some(true), ..CallQuery::default() };
        let queries = [CallQuery::default(), named("a", None), named("a", Some("b")), failed];
        let lists = queries.iter().map(|query| select(query, "project"));
        let metrics = (METRICS.to_owned(), vec![Sql::from("project".to_owned()), Sql::Null, Sql::from(METRICS_LIMIT)]);
        for (sql, values) in lists.chain([metrics]) {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let plan = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
            let plan: Vec<String> = plan.collect::<rusqlite::Result<_>>().unwrap();
            assert!(plan.iter().all(|step| step.contains("INDEX") && !step.contains("TEMP")), "{sql}: {plan:?}");
        }
    }
}
