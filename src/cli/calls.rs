//! `mcp-sidecar calls`: the call log, newest first.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::{Context, parse_number};
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, format_time, print};
use crate::model::Timestamp;
use crate::text::{one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show only calls to this server
    #[arg(long)]
    server: Option<String>,
    /// Show only calls to this tool
    #[arg(long)]
    tool: Option<String>,
    /// Show only calls of this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Show only calls since this time (2026-11-16T08:00:00Z), or of the last 30s, 15m, 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Timestamp>,
    /// Show only calls that failed or were denied
    #[arg(long)]
    failed: bool,
    /// Show at most this many calls
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = parse_number::<usize>)]
    limit: usize,
    /// Show arguments and results, if they were saved
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let params = json!({
            "server": arguments.server,
            "tool": arguments.tool,
            "workflow": arguments.workflow,
            "since": arguments.since,
            "failed": arguments.failed,
            "limit": arguments.limit,
        });
        let answer = engine.run("mcp.calls", params).await?;
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let calls = answer.get("calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if calls.is_empty() {
            print("no calls\n")?;
        } else if arguments.full {
            print(&calls.iter().map(|call| full(call, Style::of_stdout())).collect::<Vec<_>>().join("\n"))?;
        } else {
            print(&table(calls).text(Style::of_stdout(), size().map(|size| size.columns)))?;
        }
        Ok(Status::Ok)
    })
}

fn text(call: &Value, path: &str) -> String {
    one_line(call.pointer(path).and_then(Value::as_str).unwrap_or_default(), 400)
}

/// The name of the requester, or its kind if it has no name.
fn requester(call: &Value) -> String {
    match text(call, "/requester/name") {
        nameless if nameless.is_empty() => text(call, "/requester/kind"),
        name => name,
    }
}

fn duration(call: &Value) -> String {
    match call.get("durationMs").and_then(Value::as_f64).unwrap_or_default() {
        short if short < 10.0 => format!("{short:.1} ms"),
        short if short < 10_000.0 => format!("{short:.0} ms"),
        long => format!("{:.0} s", long / 1e3),
    }
}

fn outcome(call: &Value) -> Cell {
    match call.get("success") {
        Some(Value::Bool(true)) => Cell::new(Color::Good, "ok"),
        _ => {
            let why = text(call, "/error");
            let why = if why.is_empty() { why } else { format!("  {why}") };
            Cell::new(Color::Bad, "failed").and(Color::Dim, why)
        }
    }
}

fn table(calls: &[Value]) -> Table {
    let mut table = Table::new(&["TIME", "TOOL", "BY", "DECISION", "TOOK", "OUTCOME"]);
    for call in calls {
        table.row(vec![
            Cell::new(Color::Dim, format_time(&text(call, "/time"))),
            Cell::plain(format!("{}/{}", text(call, "/server"), text(call, "/tool"))),
            Cell::plain(requester(call)),
            Cell::plain(text(call, "/decision")),
            Cell::plain(duration(call)).right(),
            outcome(call),
        ]);
    }
    table
}

fn full(call: &Value, style: Style) -> String {
    let name = format!("{}/{}", text(call, "/server"), text(call, "/tool"));
    let mut shown =
        format!("{}  {}\n", style.paint(Color::Heading, &name), style.paint(Color::Dim, &text(call, "/callId")));
    let mut field = |label: &str, value: String| {
        for (number, line) in value.lines().enumerate() {
            let label = style.paint(Color::Dim, &format!("{:<9}", if number == 0 { label } else { "" }));
            shown.push_str(&format!("  {label}  {line}\n"));
        }
    };
    field("time", format_time(&text(call, "/time")));
    field("by", requester(call));
    field("workflow", text(call, "/workflow"));
    field("decision", format!("{} ({})", text(call, "/decision"), text(call, "/decidedBy")));
    let outcome = if call.get("success") == Some(&json!(true)) { "ok" } else { "failed" };
    field("outcome", format!("{outcome} after {}", duration(call)));
    field("error", visible(call.get("error").and_then(Value::as_str).unwrap_or_default(), 20_000));
    for key in ["arguments", "result"] {
        if let Some(value) = call.get(key).filter(|value| !value.is_null()) {
            field(key, visible(&format!("{value:#}"), usize::MAX));
        }
    }
    shown
}

fn parse_since(text: &str) -> Result<Timestamp, String> {
    if let Some(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let wrong = || "expected a time such as 2026-11-16T08:00:00Z, or an age such as 30s, 15m, 2h or 7d".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let ago = Duration::from_secs(number.saturating_mul(seconds));
    let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
    Ok(Timestamp::from_unix_millis(Timestamp::now().unix_millis().saturating_sub(ago)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_moment_or_how_long_ago() {
        assert_eq!(parse_since("2026-11-16T08:00:00Z").unwrap().to_string(), "2026-11-16T08:00:00.000Z");
        let then = parse_since("1h").unwrap();
        let hour = Timestamp::now().unix_millis() - then.unix_millis();
        assert!((3_600_000..3_660_000).contains(&hour));
        for wrong in ["", "h", "yesterday", "3w", "é"] {
            assert!(parse_since(wrong).is_err(), "{wrong}");
        }
    }
}
