//! `mcp-sidecar metrics`: how long tool calls took, and how many failed.

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, print, print_json};
use crate::model::ServerName;
use crate::protocol::commands::Metrics;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show only tools of this server
    server: Option<ServerName>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let answer = engine.call(Metrics { server: arguments.server }).await?;
        if arguments.json {
            return print_json(&answer);
        }
        let mut table = Table::new(&["TOOL", "CALLS", "ERRORS", "P50", "P95", "P99"]);
        let tools = answer.servers.iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        for (server, tool) in tools.clone() {
            let millis = |millis: f64| Cell::plain(format!("{millis:.1} ms")).right();
            let color = if tool.errors > 0 { Color::Bad } else { Color::Plain };
            table.row(vec![
                Cell::plain(format!("{}/{}", server.server, one_line(&tool.tool, 200))),
                Cell::plain(tool.calls.to_string()).right(),
                Cell::new(color, tool.errors.to_string()).right(),
                millis(tool.p50_ms),
                millis(tool.p95_ms),
                millis(tool.p99_ms),
            ]);
        }
        print(&match tools.count() {
            0 => "no calls yet\n".to_owned(),
            _ => table.text(Style::of_stdout(), size().map(|size| size.columns)),
        })?;
        Ok(Status::Ok)
    })
}
