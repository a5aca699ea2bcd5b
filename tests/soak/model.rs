//! What must hold of calls: every call has one record with the outcome that its caller saw, every answer belongs to its
//! call, a server sees a call once, and never one that was denied.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::lock;

/// Without `audit = "strict"`, a killed engine loses the records of the last milliseconds. A loaded machine gets more.
const LOST_BEFORE_KILL: Duration = Duration::from_millis(500);
const LOST_AFTER_KILL: Duration = Duration::from_secs(10);

/// What the caller saw of the end of its call.
#[derive(Debug, Clone, PartialEq)]
pub enum Saw {
    /// It is running, or its caller or the engine has gone: it may have been carried out or not.
    Nothing,
    Answer,
    Refusal {
        is_denial: bool,
        text: String,
    },
}

#[derive(Debug, Clone)]
struct Made {
    caller: String,
    server: String,
    tool: String,
    ended: Instant,
    saw: Saw,
}

#[derive(Debug)]
struct Record {
    server: String,
    tool: String,
    requester: String,
    decision: String,
    finished: bool,
    success: bool,
    error: Option<String>,
}

#[derive(Default)]
pub struct Model {
    strict: bool,
    calls: Mutex<BTreeMap<String, Made>>,
    kills: Mutex<Vec<Instant>>,
    violations: Mutex<Vec<String>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    last: AtomicU64,
}

impl Model {
    pub fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Notes a call before it is sent. The token goes into its arguments.
    pub fn begin(&self, caller: &str, server: &str, tool: &str) -> String {
        let token = format!("call-{:06}", self.last.fetch_add(1, Ordering::Relaxed) + 1);
        let (caller, server, tool) = (caller.to_owned(), server.to_owned(), tool.to_owned());
        let made = Made { caller, server, tool, ended: Instant::now(), saw: Saw::Nothing };
        lock(&self.calls).insert(token.clone(), made);
        self.count("calls");
        token
    }

    /// Notes what the caller saw. `text` is that of the answer, which has to contain the token.
    pub fn answered(&self, token: &str, text: &str) {
        if !text.contains(token) {
            self.violation(format!("the answer to {token} belongs to another call: {text}"));
        }
        self.ended(token, Saw::Answer);
        self.count("answers");
    }

    pub fn ended(&self, token: &str, saw: Saw) {
        match saw {
            Saw::Refusal { is_denial: true, .. } => self.count("denials"),
            Saw::Refusal { .. } => self.count("failed calls"),
            Saw::Nothing => self.count("calls whose engine or caller was killed"),
            Saw::Answer => {}
        }
        if let Some(made) = lock(&self.calls).get_mut(token) {
            (made.ended, made.saw) = (Instant::now(), saw);
        }
    }

    /// A question has to be about a call that was made, with its tool.
    pub fn asked(&self, token: &str, server: &str) {
        self.count("questions");
        let fits = lock(&self.calls).get(token).is_some_and(|made| made.server == server);
        if !fits {
            self.violation(format!("a question about `{server}` shows the arguments of {token}"));
        }
    }

    pub fn engine_killed(&self) {
        lock(&self.kills).push(Instant::now());
        self.count("kills of the engine");
    }

    /// How long the engine has not been killed.
    pub fn since_kill(&self) -> Duration {
        lock(&self.kills).last().map_or(Duration::MAX, Instant::elapsed)
    }

    pub fn count(&self, what: &'static str) {
        *lock(&self.counts).entry(what).or_default() += 1;
    }

    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.counts).clone()
    }

    pub fn violation(&self, text: String) {
        let mut violations = lock(&self.violations);
        if violations.len() < 50 {
            println!("VIOLATION: {text}");
            violations.push(text);
        }
    }

    pub fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }

    /// Compares the calls with their records and with what the servers saw. Nothing may be running.
    pub fn check_records(&self, database: &Path, calls_of_servers: &Path) {
        let records = read_records(database).unwrap_or_else(|error| panic!("cannot read the records: {error}"));
        let seen = std::fs::read_to_string(calls_of_servers).unwrap_or_default();
        let calls = lock(&self.calls).clone();
        for (token, made) in &calls {
            let found = records.get(token).map_or(&[][..], Vec::as_slice);
            if let Err(reason) = self.check_one(made, found) {
                self.violation(format!("{token} {made:?}: {reason}: {found:?}"));
            }
        }
        for token in records.keys().filter(|token| !calls.contains_key(*token)) {
            self.violation(format!("a record of a call that was not made: {token}"));
        }
        let mut times: BTreeMap<&str, u32> = BTreeMap::new();
        for token in seen.lines() {
            *times.entry(token).or_default() += 1;
        }
        for (token, times) in times {
            let Some(made) = calls.get(token) else {
                self.violation(format!("a server was called with {token}, which no call contains"));
                continue;
            };
            if times > 1 {
                self.violation(format!("the server saw {token} {times} times"));
            }
            if matches!(made.saw, Saw::Refusal { is_denial: true, .. }) {
                self.violation(format!("the server saw {token}, which was denied: {made:?}"));
            }
            if !records.contains_key(token) && !self.may_be_lost(made) {
                self.violation(format!("the server saw {token}, which has no record: {made:?}"));
            }
        }
    }

    fn check_one(&self, made: &Made, found: &[Record]) -> Result<(), &'static str> {
        let record = match (found, &made.saw) {
            ([], Saw::Nothing) => return Ok(()),
            ([], _) if self.may_be_lost(made) => return Ok(()),
            ([], _) => return Err("it has no record"),
            ([record], _) => record,
            _ => return Err("it has several records"),
        };
        if made.caller.starts_with("agent") && !record.requester.contains(&format!("\"{}\"", made.caller)) {
            return Err("the record names another caller");
        }
        let is_denied = matches!(record.decision.as_str(), "deny" | "disable");
        match &made.saw {
            Saw::Nothing => Ok(()),
            _ if !record.finished => Err("the record has no outcome"),
            Saw::Answer if !record.success || is_denied => Err("the record says that it failed"),
            Saw::Answer if (&record.server, &record.tool) != (&made.server, &made.tool) => {
                Err("the record names another tool")
            }
            Saw::Refusal { .. } if record.success => Err("the record says that it worked"),
            Saw::Refusal { is_denial: true, .. } if !is_denied => Err("the record says that it was allowed"),
            Saw::Refusal { .. } if record.error.is_none() => Err("the record has no reason"),
            Saw::Answer | Saw::Refusal { .. } => Ok(()),
        }
    }

    fn may_be_lost(&self, made: &Made) -> bool {
        !self.strict
            && lock(&self.kills).iter().any(|kill| {
                made.saw == Saw::Nothing
                    || (made.ended + LOST_BEFORE_KILL >= *kill && made.ended <= *kill + LOST_AFTER_KILL)
            })
    }
}

/// The records of calls by the token in their arguments.
fn read_records(database: &Path) -> rusqlite::Result<BTreeMap<String, Vec<Record>>> {
    let connection = rusqlite::Connection::open_with_flags(database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let mut statement = connection
        .prepare("SELECT arguments, server, tool, requester, decision, finished, success, error FROM calls")?;
    let mut records: BTreeMap<String, Vec<Record>> = BTreeMap::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let arguments: Value = serde_json::from_str(&row.get::<_, String>(0)?).unwrap_or_default();
        let record = Record {
            server: row.get(1)?,
            tool: row.get(2)?,
            requester: row.get(3)?,
            decision: row.get(4)?,
            finished: row.get(5)?,
            success: row.get(6)?,
            error: row.get(7)?,
        };
        let token = arguments["text"].as_str().unwrap_or("a call without a token").to_owned();
        records.entry(token).or_default().push(record);
    }
    Ok(records)
}
