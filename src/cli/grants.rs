//! `mcp-sidecar grants`: lists and revokes the permissions that the user gave to tools.

use serde_json::{Value, json};

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, counted, print};
use crate::text::one_line;

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
        if let Some(Command::Revoke { id, all }) = &arguments.command {
            let answer = engine.run("mcp.grant.revoke", json!({ "id": id, "all": all })).await?;
            let revoked = answer.get("revoked").and_then(Value::as_u64).and_then(|count| count.try_into().ok());
            print(&format!("revoked {}\n", counted(revoked.unwrap_or_default(), "grant")))?;
            return Ok(Status::Ok);
        }
        let answer = engine.run("mcp.grants", json!({})).await?;
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let grants = answer.get("grants").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if grants.is_empty() {
            print("no grants: tools that require approval ask each time\n")?;
            return Ok(Status::Ok);
        }
        let mut table = Table::new(&["TOOL", "LEVEL", "SINCE", "ID"]);
        for grant in grants {
            let text = |key: &str| one_line(grant.get(key).and_then(Value::as_str).unwrap_or_default(), 200);
            table.row(vec![
                Cell::plain(format!("{}/{}", text("server"), text("tool"))),
                Cell::new(Color::Good, text("level")),
                Cell::plain(super::format_time(&text("since"))),
                Cell::new(Color::Dim, text("id")),
            ]);
        }
        print(&table.text(Style::of_stdout(), size().map(|size| size.columns)))?;
        Ok(Status::Ok)
    })
}
