//! What most subcommands need: the workspace, the paths, the settings, and parsers for argument values.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Map, Value};

use crate::config::interop::Dialect;
use crate::config::{self, Content, Source, watch};
use crate::model::Scope;
use crate::paths::Paths;
use crate::session;
use crate::settings::{Settings, SettingsFile};
use crate::text::one_line;

/// How many threads may run tasks.
const MAX_WORKERS: usize = 4;
/// How many threads may wait for files. Some work takes long, such as to watch a large folder, so it is more than one or two.
const MAX_BLOCKING: usize = 8;
/// How long a thread that waited for files is kept.
const KEEP_ALIVE: Duration = Duration::from_millis(500);

pub(super) struct Context {
    pub workspace: Option<PathBuf>,
}

impl Context {
    pub fn paths(&self) -> anyhow::Result<Paths> {
        Ok(Paths::discover()?)
    }

    /// The settings of `config.toml`. Invalid settings are reported on stderr and ignored.
    pub fn settings(&self, paths: &Paths) -> Settings {
        let SettingsFile { settings, problems, .. } = Settings::from_file(paths);
        for problem in problems {
            let file = paths.settings_file();
            writeln!(io::stderr(), "warning: {}: {}", file.display(), problem.message).ok();
        }
        settings
    }

    /// The workspace folder: the one given with `--workspace`, or the nearest parent folder with a config file or a
    /// repository, or the current folder.
    pub fn folder(&self, settings: &Settings) -> anyhow::Result<Arc<Path>> {
        if let Some(folder) = &self.workspace {
            let folder = std::path::absolute(folder)?;
            anyhow::ensure!(folder.is_dir(), "workspace folder {} does not exist", folder.display());
            return Ok(folder.into());
        }
        let here = std::env::current_dir().context("cannot read the current folder")?;
        Ok(session::root_of(&here, &settings.files).into())
    }

    /// A runtime for the subcommands that need async. Its threads are few, because each takes memory: the work is to pass
    /// messages on, and the blocking work is to read small files.
    pub fn runtime(&self) -> io::Result<tokio::runtime::Runtime> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.clamp(1, MAX_WORKERS))
            .max_blocking_threads(MAX_BLOCKING)
            .thread_keep_alive(KEEP_ALIVE)
            .enable_all()
            .build()
    }
}

/// Every config file of a workspace folder, with its current content.
pub(super) fn contents(folder: Arc<Path>, settings: &Settings, paths: &Paths) -> Vec<(Source, Content)> {
    config::sources(&[folder], &settings.files, paths)
        .into_iter()
        .map(|source| {
            let content = watch::read(&source.path, settings.limits.config_bytes);
            (source, content)
        })
        .collect()
}

pub(super) fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Parses the name of a program whose files can be imported and exported. Help and completion list the names.
pub(super) fn programs() -> impl TypedValueParser<Value = Dialect> {
    among(|_| true)
}

/// Parses the name of an agent.
pub(super) fn agents() -> impl TypedValueParser<Value = Dialect> {
    among(Dialect::is_agent)
}

fn among(wanted: fn(Dialect) -> bool) -> impl TypedValueParser<Value = Dialect> {
    let names = Dialect::ALL.into_iter().filter(move |dialect| wanted(*dialect)).map(Dialect::name);
    PossibleValuesParser::new(names).try_map(|name| Dialect::parse(&name).ok_or("unknown program"))
}

/// Parses the scope of a config file that we may write.
pub(super) fn parse_scope(text: &str) -> Result<Scope, String> {
    Scope::parse(text)
        .filter(|scope| matches!(scope, Scope::Project | Scope::Local | Scope::User))
        .ok_or_else(|| "expected project, local or user".to_owned())
}

/// Parses a whole number. The errors of the standard library do not say what is expected.
pub(super) fn parse_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

pub(super) fn parse_seconds(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "expected a number of seconds".to_owned())
}

pub(super) fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses a JSON object that was given as text.
pub(super) fn parse_object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(format!("expected a JSON object, found `{}`", one_line(&other.to_string(), 40))),
        Err(error) if error.is_eof() && text.trim().is_empty() => {
            Err("expected a JSON object, found nothing".to_owned())
        }
        Err(error) if error.is_eof() => Err("expected a JSON object, found only its beginning".to_owned()),
        Err(error) => Err(format!("invalid JSON at line {}, column {}", error.line(), error.column())),
    }
}
