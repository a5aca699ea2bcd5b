//! `mcp-sidecar test`: starts one server, counts what it offers, and stops it again.

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style};
use super::{Status, complete, print, print_json, terminal};
use crate::model::ServerName;
use crate::protocol::answers::TestReport;
use crate::protocol::commands::ServerTest;
use crate::text::{counted, mask, one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Server to test
    #[arg(add = complete::servers())]
    server: ServerName,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Arguments { server, json } = arguments;
        let report = engine.call(ServerTest { server: Some(server.clone()), config: None }).await?;
        if json {
            print_json(&report)?;
        } else if report.success {
            print(&summary(&server, &report))?;
        } else {
            let head = Style::of_stderr().ansi("1;31", "failed");
            terminal::eprint(&format!("{head}: `{server}`: {}\n", visible(&mask(&report.message), 20_000)))?;
        }
        Ok(if report.success { Status::Ok } else { Status::Failed })
    })
}

fn summary(server: &ServerName, report: &TestReport) -> String {
    let who = report.server_info.as_ref().map(|info| format!("{} {}", info.name, info.version));
    format!(
        "{}: `{server}` is {}, protocol {}; {}, {}, {}; ready after {:.0} ms\n",
        Style::of_stdout().paint(Color::Good, "ok"),
        one_line(who.unwrap_or_default().trim(), 400),
        one_line(report.protocol_version.as_deref().unwrap_or_default(), 200),
        counted(report.tools.len(), "tool"),
        counted(report.resources.len(), "resource"),
        counted(report.prompts.len(), "prompt"),
        report.latency_ms,
    )
}
