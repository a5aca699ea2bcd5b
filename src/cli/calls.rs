//! `mcp-sidecar calls`: the call log, newest first.

use std::path::Path;
use std::time::Duration;

use super::context::{Context, parse_number};
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, format_time, print, print_json};
use crate::model::{Requester, ServerName, Timestamp, tokens};
use crate::protocol::commands::{Calls, CallsVerify};
use crate::protocol::types::Call;
use crate::text::{exact, one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Show only calls to this server
    #[arg(long)]
    server: Option<ServerName>,
    /// Show only calls to this tool
    #[arg(long)]
    tool: Option<String>,
    /// Show only calls of this workflow
    #[arg(long, value_name = "ID")]
    workflow: Option<String>,
    /// Show only calls since this time (2026-11-16T08:00:00Z), or in the last 30s, 15m, 2h or 7d
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Timestamp>,
    /// Show only calls that failed or were denied
    #[arg(long)]
    failed: bool,
    /// Show only calls that you or a rule refused
    #[arg(long)]
    denied: bool,
    /// Show only calls by this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Show only calls that contain this text, in a name, the arguments, the result or the error
    #[arg(long)]
    text: Option<String>,
    /// Show at most this many calls
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = parse_number::<usize>)]
    limit: usize,
    /// Show arguments and results, if they were saved
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Check that no record was changed, instead of listing the records
    ///
    /// Exits with code 1 if another program has changed, deleted or added a record.
    #[arg(long, conflicts_with_all = ["server", "tool", "workflow", "since", "failed", "denied", "agent", "text", "limit", "full"])]
    verify: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Arguments {
            server,
            tool,
            workflow,
            since,
            failed,
            denied,
            agent,
            text,
            limit,
            full: as_full,
            verify,
            json,
        } = arguments;
        if verify {
            let answer = engine.call(CallsVerify {}).await?;
            match json {
                true => drop(print_json(&answer)?),
                false => print(&format!("{}\n", visible(&answer.message, usize::MAX)))?,
            }
            return Ok(if answer.whole { Status::Ok } else { Status::Failed });
        }
        let answer = engine
            .call(Calls { server, tool, workflow, since, failed, denied, agent, text, limit: Some(limit) })
            .await?;
        if json {
            return print_json(&answer);
        }
        let calls = &answer.calls;
        if calls.is_empty() {
            print("no calls\n")?;
        } else if as_full {
            print(&calls.iter().map(|call| full(call, Style::of_stdout())).collect::<Vec<_>>().join("\n"))?;
        } else {
            print(&table(calls, &engine.folder).text(Style::of_stdout(), size().map(|size| size.columns)))?;
        }
        Ok(Status::Ok)
    })
}

fn name(call: &Call) -> String {
    format!("{}/{}", call.server, one_line(&call.tool, 400))
}

/// The name of a requester, or its kind if it has no name.
pub(super) fn name_of(requester: &Requester) -> String {
    match requester.name.as_str() {
        "" => requester.kind.to_string(),
        name => one_line(name, 400),
    }
}

fn duration(call: &Call) -> String {
    match call.duration_ms {
        short if short < 10.0 => format!("{short:.1} ms"),
        short if short < 10_000.0 => format!("{short:.0} ms"),
        long => format!("{:.0} s", long / 1e3),
    }
}

fn outcome(call: &Call) -> Cell {
    if call.success {
        return Cell::new(Color::Good, "ok");
    }
    let why = call.error.as_deref().map(|why| format!("  {}", one_line(why, 400)));
    Cell::new(Color::Bad, "failed").and(Color::Dim, why.unwrap_or_default())
}

/// The folder is a column only if there are calls in other worktrees.
fn table(calls: &[Call], here: &Path) -> Table {
    let several = calls.iter().any(|call| call.folder.is_some());
    let mut head = vec!["TIME", "TOOL", "BY", "FOLDER", "DECISION", "TOOK", "TOKENS", "OUTCOME"];
    head.retain(|title| several || *title != "FOLDER");
    let mut table = Table::new(&head);
    for call in calls {
        let folder = call.folder.as_deref().unwrap_or(here).file_name().unwrap_or_default().to_string_lossy();
        let folder = several.then(|| Cell::plain(one_line(&folder, 80)));
        let first = [
            Cell::new(Color::Dim, format_time(call.time)),
            Cell::plain(name(call)),
            Cell::plain(name_of(&call.requester)),
        ];
        let rest = [
            Cell::plain(one_line(&call.decision, 400)),
            Cell::plain(duration(call)).right(),
            Cell::new(Color::Dim, call.result_tokens.map(|tokens| tokens.to_string()).unwrap_or_default()).right(),
            outcome(call),
        ];
        table.row(first.into_iter().chain(folder).chain(rest).collect());
    }
    table
}

fn full(call: &Call, style: Style) -> String {
    let mut shown =
        format!("{}  {}\n", style.paint(Color::Heading, &name(call)), style.paint(Color::Dim, &call.call_id.0));
    let mut field = |label: &str, value: String| {
        for (number, line) in value.lines().enumerate() {
            let label = style.paint(Color::Dim, &format!("{:<9}", if number == 0 { label } else { "" }));
            shown.push_str(&format!("  {label}  {line}\n"));
        }
    };
    field("time", format_time(call.time));
    field("by", name_of(&call.requester));
    field("folder", call.folder.as_ref().map(|folder| exact(&folder.display().to_string())).unwrap_or_default());
    field("workflow", one_line(call.workflow.as_deref().unwrap_or_default(), 400));
    field("decision", format!("{} ({})", one_line(&call.decision, 400), one_line(&call.decided_by, 400)));
    let outcome = if call.success { "ok" } else { "failed" };
    field("outcome", format!("{outcome} after {}", duration(call)));
    if let (Some(bytes), Some(tokens)) = (call.result_bytes, call.result_tokens) {
        field("size", format!("{bytes} bytes, {}", tokens::shown(tokens)));
    }
    field("error", visible(call.error.as_deref().unwrap_or_default(), 20_000));
    for (key, value) in [("arguments", &call.arguments), ("result", &call.result)] {
        if let Some(value) = value.as_ref().filter(|value| !value.is_null()) {
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
