//! `mcp-sidecar export`: servers of ours, written the way another program wants them.

use std::io::{self, Write};
use std::path::PathBuf;

use super::context::{Context, contents, dialect_names, read_dialect};
use super::{Status, print};
use crate::config;
use crate::config::interop::{Dialect, Homes, export_to};
use crate::model::ServerName;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// For whom
    #[arg(value_name = "PROGRAM", value_parser = read_dialect, help = dialect_names())]
    to: Dialect,
    /// Servers to export; all when none is named
    #[arg(value_name = "SERVER")]
    servers: Vec<ServerName>,
    /// Put them into this file, whose other contents stay, in place of printing them
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// For programs
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let contents = contents(context.folder(&settings)?, &settings, &paths);
    let loaded = config::load(&contents, &Default::default(), &settings.limits);
    let Arguments { to, servers, path, json } = arguments;
    let path = path.map(std::path::absolute).transpose()?;
    let servers = (!servers.is_empty()).then_some(servers);
    let exported = export_to(to, servers.as_deref(), path.as_deref(), &loaded, Homes::discover().as_ref())?;
    if json {
        print(&format!("{:#}\n", serde_json::to_value(&exported)?))?;
        return Ok(Status::Ok);
    }
    // Not on stdout, which may lead into a file.
    for (name, note) in exported.notes.iter().flat_map(|(name, notes)| notes.iter().map(move |note| (name, note))) {
        writeln!(io::stderr(), "note: {name}: {note}").ok();
    }
    match &exported.path {
        Some(path) => print(&format!("written to {}\n", path.display()))?,
        None => print(&exported.text)?,
    }
    Ok(Status::Ok)
}
