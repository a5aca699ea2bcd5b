//! `mcp-sidecar test`: starts one server, counts what it offers, and stops it again.

use serde_json::{Value, json};

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style};
use super::{Status, counted, print, terminal};
use crate::text::{mask, one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Server to test
    server: String,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let answer = engine.run("mcp.server.test", json!({ "server": arguments.server })).await?;
        let success = answer.get("success") == Some(&json!(true));
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
        } else if success {
            print(&summary(&arguments.server, &answer))?;
        } else {
            let message = answer.get("message").and_then(Value::as_str).unwrap_or("the engine gave no reason");
            let head = Style::of_stderr().ansi("1;31", "failed");
            terminal::eprint(&format!("{head}: `{}`: {}\n", arguments.server, visible(&mask(message), 20_000)))?;
        }
        Ok(if success { Status::Ok } else { Status::Failed })
    })
}

fn summary(server: &str, answer: &Value) -> String {
    let style = Style::of_stdout();
    let count = |key: &str| answer.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let text = |path: &str| one_line(answer.pointer(path).and_then(Value::as_str).unwrap_or_default(), 200);
    let latency = answer.get("latencyMs").and_then(Value::as_f64).unwrap_or_default();
    let offers = [("tools", "tool"), ("resources", "resource"), ("prompts", "prompt")];
    let offers: Vec<String> = offers.iter().map(|(key, word)| counted(count(key), word)).collect();
    let who = [text("/serverInfo/name"), text("/serverInfo/version")].join(" ");
    format!(
        "{}: `{server}` is {}, protocol {}; {}; ready after {latency:.0} ms\n",
        style.paint(Color::Good, "ok"),
        who.trim(),
        text("/protocolVersion"),
        offers.join(", "),
    )
}
