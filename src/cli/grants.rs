//! `mcp-sidecar grants`: what the user has allowed for longer than once, and how to take it back.

use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Wake};
use super::look::{Look, Tone, size};
use super::table::{Cell, Table};
use super::{Status, print};
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// For programs: what `mcp.grants` answers
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Take a grant back; the next call asks again
    #[command(group = clap::ArgGroup::new("which").required(true).args(["id", "all"]))]
    Revoke {
        /// As `mcp-sidecar grants` shows it
        id: Option<String>,
        /// Every grant
        #[arg(long)]
        all: bool,
    },
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        if let Some(Command::Revoke { id, all }) = &arguments.command {
            let answer = live.run("mcp.grant.revoke", json!({ "id": id, "all": all })).await?;
            let revoked = answer.get("revoked").and_then(Value::as_u64).unwrap_or_default();
            print(&format!("revoked {revoked} grant{}\n", if revoked == 1 { "" } else { "s" }))?;
            return Ok(Status::Ok);
        }
        let answer = live.run("mcp.grants", json!({})).await?;
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let grants = answer.get("grants").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if grants.is_empty() {
            print("no grants: every tool that needs approval asks each time\n")?;
            return Ok(Status::Ok);
        }
        let mut table = Table::new(&["TOOL", "LEVEL", "SINCE", "ID"]);
        for grant in grants {
            let text = |key: &str| one_line(grant.get(key).and_then(Value::as_str).unwrap_or_default(), 200);
            table.row(vec![
                Cell::plain(format!("{}/{}", text("server"), text("tool"))),
                Cell::new(Tone::Good, text("level")),
                Cell::plain(super::moment(&text("since"))),
                Cell::new(Tone::Dim, text("id")),
            ]);
        }
        print(&table.text(Look::of_stdout(), size().map(|size| size.columns)))?;
        Ok(Status::Ok)
    })
}
