//! `mcp-sidecar logs`: what a server has written to stderr, its log messages, and what happened to it.

use super::context::{Context, parse_number};
use super::engine_client;
use super::style::{Color, Style};
use super::{Status, complete, format_time, print, print_json};
use crate::model::{Error, ServerName};
use crate::protocol::commands::ServerLogs;
use crate::text::{mask, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Name of the server
    #[arg(add = complete::servers())]
    server: ServerName,
    /// Show this many lines
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100, value_parser = parse_number::<usize>)]
    lines: usize,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const LONGEST_LINE: usize = 10_000;

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let Arguments { server, lines, json } = arguments;
    let shown = engine_client::run_shared(context, async |engine| {
        let answer = engine.call(ServerLogs { server: server.clone(), limit: Some(lines) }).await?;
        if json {
            return print_json(&answer);
        }
        let style = Style::of_stdout();
        let line = |line: &crate::protocol::types::LogLine| {
            let head = format!("{} {} {}", format_time(line.time), line.source, line.level);
            format!("{}  {}\n", style.paint(Color::Dim, &head), visible(&mask(&line.text), LONGEST_LINE))
        };
        print(&answer.lines.iter().map(line).collect::<String>())?;
        Ok(Status::Ok)
    })?;
    shown.ok_or_else(|| {
        let why = "no editor or agent has this workspace open; the log of a server is kept only while one does";
        Error::NotFound(format!("{why}; `mcp-sidecar test {server}` starts the server and shows why it fails")).into()
    })
}
