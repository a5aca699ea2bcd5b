//! `mcp-sidecar calls`: the call log, newest first.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Wake};
use super::look::{Look, Tone, size};
use super::table::{Cell, Table};
use super::{Status, moment, print};
use crate::model::Timestamp;
use crate::text::{one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Only calls of this server
    #[arg(long)]
    server: Option<String>,
    /// Only calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only calls that belong to this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Only calls after this time, or of the last 30s, 15m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Only calls that failed or were refused
    #[arg(long)]
    failed: bool,
    /// How many
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    /// With arguments and results, as far as they were kept
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// For programs: what `mcp.calls` answers
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let params = json!({
            "server": arguments.server,
            "tool": arguments.tool,
            "workflow": arguments.workflow,
            "since": arguments.since,
            "failed": arguments.failed,
            "limit": arguments.limit,
        });
        let answer = live.run("mcp.calls", params).await?;
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let calls = answer.get("calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if calls.is_empty() {
            print("no calls to show\n")?;
        } else if arguments.full {
            print(&calls.iter().map(|call| full(call, Look::of_stdout())).collect::<Vec<_>>().join("\n"))?;
        } else {
            print(&table(calls).text(Look::of_stdout(), size().map(|size| size.columns)))?;
        }
        Ok(Status::Ok)
    })
}

fn word(call: &Value, path: &str) -> String {
    one_line(call.pointer(path).and_then(Value::as_str).unwrap_or_default(), 400)
}

/// The name of whoever asked, or what kind of asker it was.
fn requester(call: &Value) -> String {
    match word(call, "/requester/name") {
        nameless if nameless.is_empty() => word(call, "/requester/kind"),
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
        Some(Value::Bool(true)) => Cell::new(Tone::Good, "ok"),
        _ => {
            let why = word(call, "/error");
            let why = if why.is_empty() { why } else { format!("  {why}") };
            Cell::new(Tone::Bad, "failed").and(Tone::Dim, why)
        }
    }
}

fn table(calls: &[Value]) -> Table {
    let mut table = Table::new(&["TIME", "TOOL", "BY", "DECISION", "TOOK", "OUTCOME"]);
    for call in calls {
        table.row(vec![
            Cell::new(Tone::Dim, moment(&word(call, "/time"))),
            Cell::plain(format!("{}/{}", word(call, "/server"), word(call, "/tool"))),
            Cell::plain(requester(call)),
            Cell::plain(word(call, "/decision")),
            Cell::plain(duration(call)).right(),
            outcome(call),
        ]);
    }
    table
}

fn full(call: &Value, look: Look) -> String {
    let name = format!("{}/{}", word(call, "/server"), word(call, "/tool"));
    let mut text = format!("{}  {}\n", look.tone(Tone::Heading, &name), look.tone(Tone::Dim, &word(call, "/callId")));
    let mut say = |what: &str, value: String| {
        for (number, line) in value.lines().enumerate() {
            let label = look.tone(Tone::Dim, &format!("{:<9}", if number == 0 { what } else { "" }));
            text.push_str(&format!("  {label}  {line}\n"));
        }
    };
    say("time", moment(&word(call, "/time")));
    say("by", requester(call));
    say("workflow", word(call, "/workflow"));
    say("decision", format!("{} ({})", word(call, "/decision"), word(call, "/decidedBy")));
    let went = if call.get("success") == Some(&json!(true)) { "ok" } else { "failed" };
    say("outcome", format!("{went} after {}", duration(call)));
    say("error", visible(call.get("error").and_then(Value::as_str).unwrap_or_default(), 20_000));
    for key in ["arguments", "result"] {
        if let Some(value) = call.get(key).filter(|value| !value.is_null()) {
            say(key, visible(&format!("{value:#}"), usize::MAX));
        }
    }
    text
}

fn since(text: &str) -> Result<Timestamp, String> {
    if let Some(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let wrong = || "a time is written as 2026-11-16T08:00:00Z, or as 30s, 15m, 2h, 7d ago".to_owned();
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
        assert_eq!(since("2026-11-16T08:00:00Z").unwrap().to_string(), "2026-11-16T08:00:00.000Z");
        let then = since("1h").unwrap();
        let hour = Timestamp::now().unix_millis() - then.unix_millis();
        assert!((3_600_000..3_660_000).contains(&hour));
        for wrong in ["", "h", "yesterday", "3w", "é"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
