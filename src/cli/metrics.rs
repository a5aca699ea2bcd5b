//! `mcp-sidecar metrics`: how long tool calls took, how many failed, and what tools cost in tokens.

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

/// What the last columns mean.
const COLUMNS: &str =
    "DEFINITION, RESULT and RESULTS: estimated tokens of the definition, of a median result, of all results\n";

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let answer = engine.call(Metrics { server: arguments.server }).await?;
        if arguments.json {
            return print_json(&answer);
        }
        let mut table =
            Table::new(&["TOOL", "CALLS", "ERRORS", "P50", "P95", "P99", "DEFINITION", "RESULT", "RESULTS"]);
        let tools = answer.servers.iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
        let plain = |text: String| Cell::plain(text).right();
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
                plain(tool.tokens.map(|tokens| tokens.to_string()).unwrap_or_default()),
                plain(tool.result_tokens.to_string()),
                plain(tool.total_result_tokens.to_string()),
            ]);
        }
        let (style, width) = (Style::of_stdout(), size().map(|size| size.columns));
        print(&match tools.count() {
            0 => "no calls yet\n".to_owned(),
            _ => table.text(style, width) + COLUMNS,
        })?;
        if answer.views.iter().any(|view| view.tools > 0) {
            let mut costs = Table::new(&["AGENTS", "TOOLS", "TOKENS", ""]);
            for view in &answer.views {
                let name = match view.agent.as_str() {
                    "" if answer.views.len() == 1 => "all",
                    "" => "others",
                    name => name,
                };
                let search = if view.search { "searched with find_tools" } else { "" };
                costs.row(vec![
                    Cell::plain(one_line(name, 80)),
                    plain(view.tools.to_string()),
                    plain(view.tokens.to_string()),
                    Cell::new(Color::Dim, search),
                ]);
            }
            print(&format!("\n{}", costs.text(style, width)))?;
        }
        Ok(Status::Ok)
    })
}
