//! `mcp-sidecar import`: servers of other programs, written to a file of ours.

use std::path::PathBuf;

use super::context::{Context, contents, dialect_names, read_dialect};
use super::{Status, print};
use crate::config;
use crate::config::interop::{Dialect, Homes, ImportRequest, Imported, import_from};
use crate::model::Scope;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Whose servers
    #[arg(value_name = "PROGRAM", value_parser = read_dialect, help = dialect_names())]
    from: Dialect,
    /// This file in place of the usual ones
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// Which of our files they are written to: user, project or local
    #[arg(long, default_value = "user", value_parser = read_scope)]
    scope: Scope,
    /// Show what would be imported, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// For programs
    #[arg(long)]
    json: bool,
}

fn read_scope(text: &str) -> Result<Scope, String> {
    let scope = Scope::parse(text).filter(|scope| !matches!(scope, Scope::Managed | Scope::Session));
    scope.ok_or_else(|| "it is user, project or local".to_owned())
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let contents = contents(context.folder(&settings)?, &settings, &paths);
    let loaded = config::load(&contents, &Default::default(), &settings.limits);
    let Arguments { from, path, scope, dry_run, json } = arguments;
    let path = path.map(std::path::absolute).transpose()?;
    let request = ImportRequest { from, path, scope, dry_run };
    let imported = import_from(&request, &loaded, Homes::discover().as_ref())?;
    if json {
        print(&format!("{:#}\n", serde_json::to_value(&imported)?))?;
    } else {
        print(&to_text(&imported, dry_run))?;
    }
    Ok(Status::Ok)
}

fn to_text(imported: &Imported, dry_run: bool) -> String {
    let verb = if dry_run { "would be imported" } else { "imported" };
    let mut text = match imported.imported.as_slice() {
        [] => format!("nothing {verb}\n"),
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
