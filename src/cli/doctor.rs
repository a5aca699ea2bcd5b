//! `mcp-sidecar doctor`: what is missing on this machine, and what to do about it.

use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Wake};
use super::look::{Look, Tone};
use super::{Status, print};
use crate::text::{mask, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// For programs: what `mcp.doctor` answers
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let answer = live.run("mcp.doctor", json!({})).await?;
        let checks = answer.get("checks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let wrong = checks.iter().filter(|check| check.get("ok") != Some(&json!(true))).count();
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
        } else {
            print(&told(checks, wrong, Look::of_stdout()))?;
        }
        Ok(if wrong == 0 { Status::Ok } else { Status::Failed })
    })
}

fn told(checks: &[Value], wrong: usize, look: Look) -> String {
    use unicode_width::UnicodeWidthStr;
    let text = |check: &Value, key: &str| {
        let text = check.get(key).and_then(Value::as_str).unwrap_or_default();
        one_line(&mask(text), 1_000)
    };
    let width = checks.iter().map(|check| text(check, "name").width()).max().unwrap_or(0);
    let mut told = String::new();
    for check in checks {
        let name = text(check, "name");
        let gap = " ".repeat(width.saturating_sub(name.width()));
        let sign = match check.get("ok") {
            Some(Value::Bool(true)) => look.tone(Tone::Good, "✓"),
            _ => look.tone(Tone::Bad, "✗"),
        };
        told.push_str(&format!("{sign} {name}{gap}  {}\n", text(check, "message")));
        if let Some(fix) = Some(text(check, "fix")).filter(|fix| !fix.is_empty()) {
            told.push_str(&format!("  {}  {}\n", " ".repeat(width), look.tone(Tone::Waiting, &format!("→ {fix}"))));
        }
    }
    let end = match wrong {
        0 => look.tone(Tone::Good, "everything is in order"),
        1 => look.tone(Tone::Bad, "1 thing needs your attention"),
        wrong => look.tone(Tone::Bad, &format!("{wrong} things need your attention")),
    };
    told + &format!("\n{end}\n")
}
