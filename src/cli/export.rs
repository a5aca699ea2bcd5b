//! `mcp-sidecar export`: writes our servers in the config format of another program.

use std::io::{self, Write};
use std::path::PathBuf;

use super::context::{Context, contents, programs};
use super::{Status, print, print_json};
use crate::config;
use crate::config::interop::{Dialect, Homes, export_to};
use crate::model::ServerName;
use crate::protocol::answers;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Program to export to
    #[arg(value_name = "PROGRAM", value_parser = programs())]
    to: Dialect,
    /// Servers to export [default: all servers]
    #[arg(value_name = "SERVER")]
    servers: Vec<ServerName>,
    /// Add the servers to this file instead of printing them; its other contents are kept
    #[arg(long, value_name = "FILE")]
    path: Option<PathBuf>,
    /// Print JSON instead of text
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
        return print_json(&answers::Exported::from(exported));
    }
    // Not on stdout, which may be redirected to a file.
    for (name, note) in exported.notes.iter().flat_map(|(name, notes)| notes.iter().map(move |note| (name, note))) {
        writeln!(io::stderr(), "note: {name}: {note}").ok();
    }
    match &exported.path {
        Some(path) => print(&format!("wrote {}\n", path.display()))?,
        None => print(&exported.text)?,
    }
    Ok(Status::Ok)
}
