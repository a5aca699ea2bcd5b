//! `mcp-sidecar metrics`: how long tools took, and how often they failed.

use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Wake};
use super::look::{Look, Tone, size};
use super::table::{Cell, Table};
use super::{Status, print};
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only tools of this server
    server: Option<String>,
    /// For programs: what `mcp.metrics` answers
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let answer = live.run("mcp.metrics", json!({ "server": arguments.server })).await?;
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
                let tone = if count("errors") > 0 { Tone::Bad } else { Tone::Plain };
                table.row(vec![
                    Cell::plain(format!("{}/{}", name(&server, "server"), name(&tool, "tool"))),
                    Cell::plain(count("calls").to_string()).right(),
                    Cell::new(tone, count("errors").to_string()).right(),
                    millis("p50Ms"),
                    millis("p95Ms"),
                    millis("p99Ms"),
                ]);
            }
        }
        print(&match any {
            true => table.text(Look::of_stdout(), size().map(|size| size.columns)),
            false => "no calls were made yet\n".to_owned(),
        })?;
        Ok(Status::Ok)
    })
}
