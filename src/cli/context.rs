//! What most subcommands need to know: which workspace, which places, which settings.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use crate::config::interop::Dialect;
use crate::config::{self, Content, Source, watch};
use crate::paths::Paths;
use crate::session;
use crate::settings::{Settings, SettingsFile};

pub(super) struct Context {
    pub workspace: Option<PathBuf>,
}

impl Context {
    pub fn paths(&self) -> anyhow::Result<Paths> {
        Ok(Paths::discover()?)
    }

    /// The settings of `config.toml`. What is wrong with them is said once on stderr, and the others count.
    pub fn settings(&self, paths: &Paths) -> Settings {
        let SettingsFile { settings, problems, .. } = Settings::from_file(paths);
        for problem in problems {
            let file = paths.settings_file();
            writeln!(io::stderr(), "warning: {}: {}", file.display(), problem.message).ok();
        }
        settings
    }

    /// The workspace folder: the one that was named, or the nearest from here upwards that holds a config file or is
    /// the root of a repository, or this very folder.
    pub fn folder(&self, settings: &Settings) -> anyhow::Result<Arc<Path>> {
        if let Some(folder) = &self.workspace {
            let folder = std::path::absolute(folder)?;
            anyhow::ensure!(folder.is_dir(), "no folder {}", folder.display());
            return Ok(folder.into());
        }
        let here = std::env::current_dir().context("the current folder is gone")?;
        Ok(session::root_of(&here, &settings.files).into())
    }

    /// A runtime for the subcommands that wait for something.
    pub fn runtime(&self) -> io::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()
    }
}

/// Every config file of a workspace folder with what it holds now.
pub(super) fn contents(folder: Arc<Path>, settings: &Settings, paths: &Paths) -> Vec<(Source, Content)> {
    config::sources(&[folder], &settings.files, paths)
        .into_iter()
        .map(|source| {
            let content = watch::read(&source.path, settings.limits.config_bytes);
            (source, content)
        })
        .collect()
}

/// Another program, by its name on the command line.
pub(super) fn read_dialect(text: &str) -> Result<Dialect, String> {
    Dialect::parse(text).ok_or_else(dialect_names)
}

/// The names that there are.
pub(super) fn dialect_names() -> String {
    let names: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.name()).collect();
    format!("One of {}", names.join(", "))
}
