//! `mcp-sidecar metrics`: how long tool calls took, and how many failed.

use serde_json::{Value, json};

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, print};
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show only tools of this server
    server: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let answer = engine.run("mcp.metrics", json!({ "server": arguments.server })).await?;
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        let mut table = Table::new(&["TOOL", "CALLS", "ERRORS", "P50", "P95", "P99"]);
        let mut any = false;
        for server in list(&answer, "servers") {
            for tool in list(&server, "tools") {
                any = true;
                let name =
                    |value: &Value, key: &str| one_line(value.get(key).and_then(Value::as_str).unwrap_or(""), 200);
                let count = |key: &str| tool.get(key).and_then(Value::as_u64).unwrap_or_default();
                let millis = |key: &str| {
                    let millis = tool.get(key).and_then(Value::as_f64).unwrap_or_default();
                    Cell::plain(format!("{millis:.1} ms")).right()
                };
                let color = if count("errors") > 0 { Color::Bad } else { Color::Plain };
                table.row(vec![
                    Cell::plain(format!("{}/{}", name(&server, "server"), name(&tool, "tool"))),
                    Cell::plain(count("calls").to_string()).right(),
                    Cell::new(color, count("errors").to_string()).right(),
                    millis("p50Ms"),
                    millis("p95Ms"),
                    millis("p99Ms"),
                ]);
            }
        }
        print(&match any {
            true => table.text(Style::of_stdout(), size().map(|size| size.columns)),
            false => "no calls yet\n".to_owned(),
        })?;
        Ok(Status::Ok)
    })
}
