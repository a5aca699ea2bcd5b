//! `mcp-sidecar import`: copies the servers of another program into one of our config files.

use std::path::{Path, PathBuf};

use super::context::{Context, contents, parse_scope, programs};
use super::{Status, print, print_json};
use crate::config::interop::{Dialect, Homes, ImportRequest, Imported, import_from};
use crate::config::{self, Loaded};
use crate::engine::record_launches;
use crate::model::Scope;
use crate::paths::Paths;
use crate::policy::trust::changed_launches;
use crate::protocol::answers;
use crate::server::process;
use crate::settings::Settings;
use crate::store::{Options, Store};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Program to import from
    #[arg(value_name = "PROGRAM", value_parser = programs())]
    from: Dialect,
    /// Read this file instead of the program's usual config files
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// Config file to write to: user, project or local
    #[arg(long, default_value = "user", value_parser = parse_scope)]
    scope: Scope,
    /// Show what would be imported without writing anything
    #[arg(long)]
    dry_run: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let Arguments { from, path, scope, dry_run, json } = arguments;
    let path = path.map(std::path::absolute).transpose()?;
    let imported = import(&ImportRequest { from, path, scope, project_only: false, dry_run }, context)?;
    if json {
        print_json(&answers::Imported::from(imported))?;
    } else {
        print(&to_text(&imported, dry_run))?;
    }
    Ok(Status::Ok)
}

/// Imports into a config file of this workspace.
pub(super) fn import(request: &ImportRequest, context: &Context) -> anyhow::Result<Imported> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let contents = contents(context.folder(&settings)?, &settings, &paths);
    let loaded = config::load(&contents, &Default::default(), &settings.limits);
    let imported = import_from(request, &loaded, Homes::discover().as_ref())?;
    if !request.dry_run && !imported.imported.is_empty() && process::started_by(std::process::id()).is_none() {
        record(&imported.path, &loaded, &paths, &settings)?;
    }
    Ok(imported)
}

/// The user made this change, so it asks nothing when the servers start.
fn record(path: &Path, before: &Loaded, paths: &Paths, settings: &Settings) -> anyhow::Result<()> {
    let Some(file) = before.file(path) else { return Ok(()) };
    let after = std::fs::read_to_string(path)?;
    let changed = changed_launches(&file.source, &file.text, &after);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let store = Store::open(&paths.database(), Options::new(Path::new(""), settings)).await;
        record_launches(&store, before, path, &after, &changed).await;
        Ok(())
    })
}

pub(super) fn to_text(imported: &Imported, dry_run: bool) -> String {
    let verb = if dry_run { "would import" } else { "imported" };
    let mut text = match imported.imported.as_slice() {
        [] => format!("{verb} nothing\n"),
        _ => format!("{verb} into {}:\n", imported.path.display()),
    };
    for name in &imported.imported {
        text.push_str(&format!("  {name}\n"));
        for note in imported.notes.get(name).into_iter().flatten() {
            text.push_str(&format!("      {note}\n"));
        }
    }
    if !imported.skipped.is_empty() {
        text.push_str("skipped:\n");
        text.extend(imported.skipped.iter().map(|(name, reason)| format!("  {name}: {reason}\n")));
    }
    text
}
