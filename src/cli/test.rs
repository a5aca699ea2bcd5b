//! `mcp-sidecar test`: starts one server, lists what it has, and ends it again.

use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Wake};
use super::look::{Look, Tone};
use super::{Status, print, terminal};
use crate::text::{mask, one_line, visible};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    server: String,
    /// For programs: what `mcp.server.test` answers
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let answer = live.run("mcp.server.test", json!({ "server": arguments.server })).await?;
        let success = answer.get("success") == Some(&json!(true));
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
        } else if success {
            print(&told(&arguments.server, &answer))?;
        } else {
            let message = answer.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
            let head = Look::of_stderr().paint("1;31", "failed");
            terminal::say(&format!("{head}: {}: {}\n", arguments.server, visible(&mask(message), 20_000)))?;
        }
        Ok(if success { Status::Ok } else { Status::Failed })
    })
}

fn told(server: &str, answer: &Value) -> String {
    let look = Look::of_stdout();
    let count = |key: &str| answer.get(key).and_then(Value::as_array).map_or(0, Vec::len);
    let text = |path: &str| one_line(answer.pointer(path).and_then(Value::as_str).unwrap_or_default(), 200);
    let latency = answer.get("latencyMs").and_then(Value::as_f64).unwrap_or_default();
    let several = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let offers = [("tools", "tool"), ("resources", "resource"), ("prompts", "prompt")];
    let offers: Vec<String> = offers.iter().map(|(key, word)| several(count(key), word)).collect();
    let who = [text("/serverInfo/name"), text("/serverInfo/version")].join(" ");
    format!(
        "{}: {server} is {}, protocol {}; {}; ready after {latency:.0} ms\n",
        look.tone(Tone::Good, "ok"),
        who.trim(),
        text("/protocolVersion"),
        offers.join(", "),
    )
}
