//! `mcp-sidecar import`: copies the servers of another program into one of our config files.

use std::path::PathBuf;

use super::context::{Context, contents, dialect_names, parse_dialect, parse_scope};
use super::{Status, print};
use crate::config;
use crate::config::interop::{Dialect, Homes, ImportRequest, Imported, import_from};
use crate::model::Scope;
use crate::protocol::answers;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[arg(value_name = "PROGRAM", value_parser = parse_dialect, help = format!("Program to import from: {}", dialect_names()))]
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
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let contents = contents(context.folder(&settings)?, &settings, &paths);
    let loaded = config::load(&contents, &Default::default(), &settings.limits);
    let Arguments { from, path, scope, dry_run, json } = arguments;
    let path = path.map(std::path::absolute).transpose()?;
    let request = ImportRequest { from, path, scope, dry_run };
    let imported = import_from(&request, &loaded, Homes::discover().as_ref())?;
    if json {
        print(&format!("{:#}\n", serde_json::to_value(answers::Imported::from(imported))?))?;
    } else {
        print(&to_text(&imported, dry_run))?;
    }
    Ok(Status::Ok)
}

fn to_text(imported: &Imported, dry_run: bool) -> String {
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
