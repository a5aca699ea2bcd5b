//! `mcp-sidecar search`: finds servers in the MCP registry.

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, print, print_json, terminal};
use crate::protocol::answers::RegistryEntry;
use crate::protocol::commands::RegistrySearch;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Words to look for in names, titles and descriptions
    #[arg(required = true)]
    words: Vec<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let query = arguments.words.join(" ");
        let found = engine.call(RegistrySearch { query }).await?;
        if arguments.json {
            return print_json(&found);
        }
        found.notes.iter().try_for_each(|note| terminal::eprint(&format!("note: {note}\n")))?;
        if found.servers.is_empty() {
            print("no servers found\n")?;
            return Ok(Status::Ok);
        }
        print(&table(&found.servers).text(Style::of_stdout(), size().map(|size| size.columns)))?;
        Ok(Status::Ok)
    })
}

fn table(servers: &[RegistryEntry]) -> Table {
    let mut table = Table::new(&["NAME", "VERSION", "AS", "DESCRIPTION"]);
    for server in servers {
        let warning = server.warning.as_ref().map(|warning| format!("({warning}) ")).unwrap_or_default();
        table.row(vec![
            Cell::plain(&server.name),
            Cell::plain(&server.version),
            Cell::plain(server.packages.join(", ")),
            Cell::new(Color::Attention, warning).and(Color::Dim, server.description.clone()),
        ]);
    }
    table
}
