//! Opens the database: schema, migrations, and what to do with an unusable file.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params_from_iter};

use super::file::{Files, Identities, InUse};

/// `mcps` as SQLite's application id. A file with another id belongs to another program.
const APPLICATION_ID: i32 = 0x6d63_7073;
/// How long to wait for another engine that has locked the file.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(3);
/// The same while the file is known to be unusable. A call waits for several attempts.
pub const IMPATIENT_TIMEOUT: Duration = Duration::from_millis(100);
/// A larger file is not checked at the start. Damage shows when it is read.
const MAX_CHECKED_BYTES: u64 = 16 << 20;

const TRUST: &str = "
    CREATE TABLE trust (
        project TEXT NOT NULL, server TEXT NOT NULL, decision TEXT NOT NULL CHECK (decision IN ('trusted', 'denied')),
        fingerprint TEXT NOT NULL, time INTEGER NOT NULL,
        PRIMARY KEY (project, server, decision)
    ) STRICT;";
const REMEMBERED: &str = "
    CREATE TABLE remembered (
        launch TEXT NOT NULL, what TEXT NOT NULL, value TEXT NOT NULL, time INTEGER NOT NULL,
        PRIMARY KEY (launch, what)
    ) STRICT;";
const NOTICES_TABLE: &str = "CREATE TABLE notices (name TEXT PRIMARY KEY) STRICT;";
/// The chain of call records. `last` and `digest` are its newest link, `pruned` and `pruned_digest` the newest one that was
/// deleted because of its age, `unchained` the newest record without a link.
const CHAINS: &str = "
    CREATE TABLE chains (
        project TEXT PRIMARY KEY, last INTEGER NOT NULL, digest BLOB NOT NULL,
        pruned INTEGER NOT NULL, pruned_digest BLOB NOT NULL, unchained INTEGER
    ) STRICT;
    CREATE TABLE links (
        project TEXT NOT NULL, number INTEGER NOT NULL, call INTEGER NOT NULL, finished INTEGER NOT NULL,
        digest BLOB NOT NULL,
        PRIMARY KEY (project, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX links_by_call ON links (call);";
/// Lists the newest calls of a workspace without sorting, and measures them without reading their arguments and results.
const CALLS_NEWEST: &str = "
    CREATE INDEX calls_newest ON calls
        (project, id, server, tool, success, decision, kind, finished, duration_us, waited_us, result_tokens);";
/// How often each tool ran on a day, so that the engine need not read the whole log when it starts.
const TOOL_DAYS: &str = "
    CREATE TABLE tool_days (
        project TEXT NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL, day INTEGER NOT NULL, calls INTEGER NOT NULL,
        PRIMARY KEY (project, server, tool, day)
    ) STRICT, WITHOUT ROWID;";

/// A new database, in the format after all migrations. To create it step by step would take several times as long.
const NEWEST: &[&str] = &[
    TRUST,
    "
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, server TEXT NOT NULL, tool TEXT NOT NULL, scope TEXT NOT NULL,
        project TEXT, fingerprint TEXT, pin TEXT NOT NULL, definition TEXT NOT NULL, since INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, project TEXT NOT NULL, time INTEGER NOT NULL,
        server TEXT NOT NULL, tool TEXT NOT NULL, requester TEXT NOT NULL, workflow TEXT,
        decision TEXT NOT NULL, decided_by TEXT NOT NULL,
        finished INTEGER NOT NULL, success INTEGER NOT NULL, error TEXT, duration_us INTEGER NOT NULL,
        arguments TEXT, result TEXT, waited_us INTEGER NOT NULL DEFAULT 0, requested TEXT,
        kind TEXT NOT NULL DEFAULT 'tool', result_bytes INTEGER, result_tokens INTEGER
    ) STRICT;",
    CALLS_NEWEST,
    TOOL_DAYS,
    CHAINS,
    REMEMBERED,
    NOTICES_TABLE,
];

/// Step n migrates from version n to n + 1. Steps are only added, never changed, and [`NEWEST`] follows.
const MIGRATIONS: [&[&str]; 8] = [
    &[
        TRUST,
        "
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, server TEXT NOT NULL, tool TEXT NOT NULL,
        scope TEXT NOT NULL CHECK (scope IN ('project', 'always')),
        project TEXT, fingerprint TEXT, pin TEXT NOT NULL, definition TEXT NOT NULL, since INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY, call_id TEXT NOT NULL, project TEXT NOT NULL, time INTEGER NOT NULL,
        server TEXT NOT NULL, tool TEXT NOT NULL, requester TEXT NOT NULL, workflow TEXT,
        decision TEXT NOT NULL, decided_by TEXT NOT NULL,
        finished INTEGER NOT NULL, success INTEGER NOT NULL, error TEXT, duration_us INTEGER NOT NULL,
        arguments TEXT, result TEXT
    ) STRICT;
    CREATE INDEX calls_by_tool ON calls (project, server, tool);",
        REMEMBERED,
    ],
    // A grant can also disable a tool. Scopes are now checked when they are read, so that a new one needs no migration.
    &[
        "
    CREATE TABLE grants_2 (
        id TEXT PRIMARY KEY, server TEXT NOT NULL, tool TEXT NOT NULL, scope TEXT NOT NULL,
        project TEXT, fingerprint TEXT, pin TEXT NOT NULL, definition TEXT NOT NULL, since INTEGER NOT NULL
    ) STRICT;
    INSERT INTO grants_2 SELECT id, server, tool, scope, project, fingerprint, pin, definition, since FROM grants;
    DROP TABLE grants;
    ALTER TABLE grants_2 RENAME TO grants;",
        NOTICES_TABLE,
    ],
    // The time that a call waited for the user is not part of its duration, and the user may change its arguments.
    &["
    ALTER TABLE calls ADD COLUMN waited_us INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE calls ADD COLUMN requested TEXT;"],
    // Resources and prompts are recorded, too.
    &["ALTER TABLE calls ADD COLUMN kind TEXT NOT NULL DEFAULT 'tool';"],
    &[CHAINS],
    // How large results are. A link covers the result itself, so it need not cover these figures.
    &["
    ALTER TABLE calls ADD COLUMN result_bytes INTEGER;
    ALTER TABLE calls ADD COLUMN result_tokens INTEGER;"],
    &[CALLS_NEWEST],
    // The newest calls of a tool are found by scanning `calls_newest`, which costs less than maintaining another index.
    &[
        "DROP INDEX calls_by_tool;",
        TOOL_DAYS,
        "
    INSERT INTO tool_days SELECT project, server, tool, time / 86400000, count(*) FROM calls
        WHERE finished = 1 AND kind = 'tool' AND decision NOT IN ('deny', 'disable', 'invalid') GROUP BY 1, 2, 3, 4;",
    ],
];

/// Shown once after an upgrade: the last format without it, and the name of the notice.
const NOTICES: [(usize, &str); 1] = [(1, PRIVATE_FOLDERS)];

/// The user's servers run in private folders now.
pub const PRIVATE_FOLDERS: &str = "private-folders";

/// How many rows are inserted with one statement.
const ROWS: usize = 16;

/// Rows to insert, as many at a time as [`insert_rows`] is fast with. Other numbers would need statements of their own.
pub fn together<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    let (many, rest) = rows.as_chunks::<ROWS>();
    many.iter().map(<[T; ROWS]>::as_slice).chain(rest.chunks(1))
}

/// Inserts rows with one statement. Between its rows, SQLite keeps the end of each index, which each statement would search
/// for again.
pub fn insert_rows(
    connection: &Connection,
    into: &str,
    rows: usize,
    values: Vec<ToSqlOutput<'_>>,
) -> rusqlite::Result<()> {
    let row = format!("({})", vec!["?"; values.len() / rows.max(1)].join(", "));
    let sql = format!("INSERT INTO {into} VALUES {}", vec![row.as_str(); rows].join(", "));
    connection.prepare_cached(&sql)?.execute(params_from_iter(values))?;
    Ok(())
}

/// An open database.
pub struct Opened {
    pub connection: Connection,
    pub in_use: InUse,
    /// The files that the connection uses.
    pub identities: Identities,
    /// Whether the file was created.
    pub is_new: bool,
    /// Where an unusable file was moved, and why.
    pub set_aside: Option<(PathBuf, String)>,
}

enum Failure {
    /// The file is damaged or not ours: it can be moved.
    Unusable(String),
    /// Disk full, no permission and the like: another file would not help.
    Unavailable(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        if is_broken(&error) { Self::Unusable(reason(&error)) } else { Self::Unavailable(reason(&error)) }
    }
}

/// A second connection, for long reads next to the owner's thread, which has the file open.
pub fn open_to_read(files: &Files) -> rusqlite::Result<Connection> {
    files.restore_deleted();
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&files.database, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Waits up to `wait` for another engine that has locked the file.
pub fn open(files: &Files, wait: Duration) -> Result<Opened, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", files.database.display());
    // Held to the end, so that another engine opens the file only when it is in order.
    let prepared = files.prepare(wait).map_err(failed)?;
    let (connected, set_aside) = match connect(files, wait) {
        Err(Failure::Unusable(why)) => {
            let aside = files.set_aside().map_err(|error| format!("{why}; it could not be moved: {error}"))?;
            files.make_private().map_err(failed)?;
            (connect(files, wait), Some((aside, why)))
        }
        connected => (connected, None),
    };
    match connected {
        Ok((connection, is_new)) => {
            files.keep();
            let identities = files.identities();
            Ok(Opened { connection, in_use: prepared.in_use, identities, is_new, set_aside })
        }
        Err(Failure::Unavailable(why) | Failure::Unusable(why)) => Err(why),
    }
}

/// Also says whether the file is new.
fn connect(files: &Files, wait: Duration) -> Result<(Connection, bool), Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&files.database, flags)?;
    connection.busy_timeout(wait)?;
    let application: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let ours = application == APPLICATION_ID || (application == 0 && version == 0 && tables == 0);
    if !ours {
        return Err(Failure::Unusable("it belongs to another program".to_owned()));
    }
    let done = usize::try_from(version).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        // Its decisions are still valid for the newer version, which may run again at any time.
        return Err(Failure::Unavailable(format!(
            "it was written by a newer version of mcp-sidecar (format {version}); update mcp-sidecar to use it"
        )));
    }
    if std::fs::metadata(&files.database).is_ok_and(|found| found.len() <= MAX_CHECKED_BYTES) {
        let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if found != "ok" {
            return Err(Failure::Unusable(format!("it is damaged: {found}")));
        }
    }
    if tables == 0 {
        // Until a new file is complete, it holds nothing that could be lost: it is written to the disk once, below.
        connection.pragma_update(None, "synchronous", "OFF")?;
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "journal_size_limit", 8 << 20)?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cell_size_check", "ON")?;
    if done < MIGRATIONS.len() {
        migrate(&mut connection, done)?;
    }
    if tables == 0 {
        files.flush().map_err(|error| Failure::Unavailable(error.to_string()))?;
    }
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    Ok((connection, tables == 0))
}

/// Runs all steps in one transaction, so that a file is never between versions.
fn migrate(connection: &mut Connection, done: usize) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let steps = if done == 0 { &[NEWEST] } else { MIGRATIONS.get(done..).unwrap_or_default() };
    steps.concat().into_iter().try_for_each(|step| transaction.execute_batch(step))?;
    for (_, name) in NOTICES.iter().filter(|(format, _)| (1..=*format).contains(&done)) {
        transaction.execute("INSERT OR REPLACE INTO notices VALUES (?1)", [name])?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX))?;
    transaction.commit()
}

/// An empty database for tests.
#[cfg(test)]
pub fn in_memory() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection, 0)?;
    Ok(connection)
}

/// Whether the file itself is damaged.
pub fn is_broken(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// An error as text for users.
pub fn reason(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "disk full".to_owned(),
        Some(ErrorCode::ReadOnly) => "the file is read-only".to_owned(),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => "the file cannot be opened".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("another program has locked the file for more than {} s", BUSY_TIMEOUT.as_secs())
        }
        Some(ErrorCode::SystemIoFailure) => format!("I/O error ({error})"),
        Some(ErrorCode::DatabaseCorrupt) => "the file is damaged".to_owned(),
        Some(ErrorCode::NotADatabase) => "the file is not a database".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every table and index with its columns, and how rows are stored and checked.
    fn format(connection: &Connection) -> Vec<String> {
        let query = "SELECT t.name, t.type, t.wr, t.strict, c.cid, c.name, c.type, c.\"notnull\", c.dflt_value, c.pk
            FROM pragma_table_list t, pragma_table_xinfo(t.name) c WHERE t.name NOT LIKE 'sqlite%'
            UNION ALL SELECT t.name, i.origin, i.\"unique\", i.partial, c.seqno, c.name, c.coll, c.\"desc\", i.name, c.key
            FROM pragma_table_list t, pragma_index_list(t.name) i, pragma_index_xinfo(i.name) c ORDER BY 1, 2, 9, 5";
        let mut statement = connection.prepare(query).unwrap();
        let row = |row: &rusqlite::Row<'_>| (0..10).map(|at| Ok(format!("{:?}", row.get_ref(at)?))).collect();
        let rows = statement.query_map([], row).unwrap();
        rows.map(|row: rusqlite::Result<Vec<String>>| row.unwrap().join(" ")).collect()
    }

    #[test]
    fn a_new_database_has_the_format_of_one_that_was_migrated() {
        let migrated = Connection::open_in_memory().unwrap();
        MIGRATIONS.concat().into_iter().for_each(|step| migrated.execute_batch(step).unwrap());
        let new = in_memory().unwrap();
        assert_eq!(format(&new), format(&migrated));
        assert!(format(&new).len() > 50, "{:#?}", format(&new));
        let checks = "SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%CHECK%'";
        let count = |connection: &Connection| connection.query_row(checks, [], |row| row.get::<_, i64>(0)).unwrap();
        assert_eq!(count(&new), count(&migrated));
    }
}
