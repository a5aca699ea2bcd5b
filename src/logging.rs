//! Tracing to a daily file, with all known secrets masked.
//!
//! Nothing is ever written to stdout, which carries the protocol. If the file cannot be written, the program prints one
//! message to stderr and continues without a log.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, reload};

use crate::paths::make_private_folder;
use crate::settings;
use crate::text::{mask, one_line};

const PREFIX: &str = "mcp-sidecar";
const SUFFIX: &str = "log";
/// The maximum length of a panic message, which may quote any data.
const PANIC_CHARS: usize = 400;
/// How many lines may wait to be written. Their queue is allocated at the start, 32 bytes for each.
const MAX_WAITING_LINES: usize = 8_192;

/// Changes the level at run time. There is one subscriber per process, and therefore one handle.
static FILTER: OnceLock<reload::Handle<Targets, Registry>> = OnceLock::new();

/// Keeps logging active. Dropping it flushes the log, so `main` holds it.
pub struct Logging {
    _guard: Option<WorkerGuard>,
}

/// Starts logging to a file in this folder. Never fails: the program also works without a log.
pub fn start(folder: &Path, log: &settings::Log) -> Logging {
    log_panics();
    let (writer, guard) = match open(folder, log.days) {
        Ok((writer, guard)) => (Some(writer), Some(guard)),
        Err(error) => {
            let reason = one_line(&error.to_string(), PANIC_CHARS);
            writeln!(io::stderr(), "mcp-sidecar: cannot create a log file in {}: {reason}", folder.display()).ok();
            (None, None)
        }
    };
    let Some(writer) = writer else { return Logging { _guard: None } };
    let (filter, handle) = reload::Layer::new(filter(&log.level));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Masked { inner: writer });
    // A second start in one process (tests) keeps the first subscriber.
    if tracing_subscriber::registry().with(filter).with(lines).try_init().is_ok() {
        FILTER.set(handle).ok();
    }
    Logging { _guard: guard }
}

/// Sets the level, which `settings` has validated.
pub fn set_level(level: &str) {
    if let Some(handle) = FILTER.get()
        && let Err(error) = handle.reload(filter(level))
    {
        tracing::warn!(%error, level, "cannot set the log level");
    }
}

/// The newest log file, if there is one.
pub fn newest_file(folder: &Path) -> Option<PathBuf> {
    // The names contain the date, so the greatest is the newest.
    std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| is_ours(path)).max()
}

/// Uses the level for our own crate. Other crates only log warnings: at `debug` they would fill the file.
fn filter(level: &str) -> Targets {
    let own = level.parse().unwrap_or(LevelFilter::INFO);
    Targets::new().with_default(own.min(LevelFilter::WARN)).with_target("mcp_sidecar", own)
}

fn open(folder: &Path, days: usize) -> io::Result<(NonBlocking, WorkerGuard)> {
    make_private_folder(folder)?;
    let appender = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(PREFIX)
        .filename_suffix(SUFFIX)
        .max_log_files(days.max(1))
        .build(folder)
        .map_err(io::Error::other)?;
    let file = PrivateFile { appender, folder: folder.to_owned(), day: None };
    Ok(NonBlockingBuilder::default().buffered_lines_limit(MAX_WAITING_LINES).finish(file))
}

/// The rolling file. Each new file is made readable by its owner only.
struct PrivateFile {
    appender: RollingFileAppender,
    folder: PathBuf,
    day: Option<time::Date>,
}

impl Write for PrivateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Writing may have created a new file. The folder is private, so the delay is harmless.
        let written = self.appender.write(bytes)?;
        let today = time::OffsetDateTime::now_utc().date();
        if self.day != Some(today) {
            self.day = Some(today);
            restrict(&self.folder);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.appender.flush()
    }
}

fn restrict(folder: &Path) {
    #[cfg(unix)]
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| is_ours(&entry.path())) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o600)).ok();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

fn is_ours(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(&format!(".{SUFFIX}")))
}

/// Masks all known secrets in what is written. Each event is one write, so no secret is split.
#[derive(Clone)]
struct Masked<W> {
    inner: W,
}

impl<W: Write> Write for Masked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_all(mask(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<'a, W: Write + Clone + 'a> MakeWriter<'a> for Masked<W> {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Logs panics, truncated and masked. Prints only the location to stderr, because the message may quote a config.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or_else(|| "an unknown location".to_owned(), ToString::to_string);
        let payload = info.payload();
        let message = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        tracing::error!(%place, message = %mask(&one_line(message, PANIC_CHARS)), "panic");
        let more = if FILTER.get().is_some() { "; run `mcp-sidecar log` for details" } else { "" };
        writeln!(io::stderr(), "mcp-sidecar: internal error at {place}{more}").ok();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Secret;

    #[test]
    fn the_log_contains_no_secrets_and_is_private() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("logs");
        let (writer, guard) = open(&folder, 7).unwrap();
        let subscriber = tracing_subscriber::registry()
            .with(filter("info"))
            .with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(Masked { inner: writer }));
        Secret::new("swordfish-of-the-log");
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "mcp_sidecar", header = "Bearer swordfish-of-the-log", "sent");
            tracing::info!(target: "rmcp", "too chatty");
            tracing::warn!(target: "rmcp", "worth knowing");
            tracing::debug!(target: "mcp_sidecar", "below the level");
        });
        drop(guard);

        let file = newest_file(&folder).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let messages: Vec<_> = text
            .lines()
            .map(|line| line.split_once("mcp_sidecar: ").or(line.split_once("rmcp: ")).unwrap().1)
            .collect();
        assert_eq!(messages, ["sent header=\"Bearer •••\"", "worth knowing"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn an_unusable_folder_is_an_error_and_not_a_panic() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(open(&file.join("logs"), 7).is_err());
    }

    #[test]
    fn our_level_does_not_change_the_level_of_libraries() {
        assert_eq!(filter("debug").to_string(), "mcp_sidecar=debug,warn");
        assert_eq!(filter("error").to_string(), "mcp_sidecar=error,error");
    }
}
