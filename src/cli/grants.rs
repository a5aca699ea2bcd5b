//! `mcp-sidecar grants`: lists and revokes the permissions that the user gave to tools.

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, format_time, print, print_json, terminal};
use crate::protocol::commands::{GrantRevoke, Grants};
use crate::text::{counted, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Revoke a grant: the next call asks again
    #[command(group = clap::ArgGroup::new("which").required(true).args(["id", "all"]))]
    Revoke {
        /// ID of the grant, as listed by `mcp-sidecar grants`
        id: Option<String>,
        /// Revoke all grants
        #[arg(long)]
        all: bool,
    },
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        if let Some(Command::Revoke { id, all }) = arguments.command {
            let answer = engine.call(GrantRevoke { id, all }).await?;
            print(&format!("revoked {}\n", counted(answer.revoked, "grant")))?;
            let Some(warning) = answer.warning else { return Ok(Status::Ok) };
            terminal::eprint(&format!("warning: {warning}\n"))?;
            return Ok(Status::Failed);
        }
        let answer = engine.call(Grants {}).await?;
        if arguments.json {
            return print_json(&answer);
        }
        if answer.grants.is_empty() {
            print("no grants: tools that require approval ask each time\n")?;
            return Ok(Status::Ok);
        }
        let mut table = Table::new(&["TOOL", "LEVEL", "SINCE", "ID"]);
        for grant in &answer.grants {
            table.row(vec![
                Cell::plain(format!("{}/{}", grant.server, one_line(&grant.tool, 200))),
                Cell::new(Color::Good, grant.level.as_str()),
                Cell::plain(format_time(grant.since)),
                Cell::new(Color::Dim, one_line(&grant.id, 200)),
            ]);
        }
        print(&table.text(Style::of_stdout(), size().map(|size| size.columns)))?;
        Ok(Status::Ok)
    })
}
