//! `mcp-sidecar doctor`: checks what is missing on this machine, and how to fix it.

use serde_json::{Value, json};

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style};
use super::{Status, counted, print};
use crate::text::{mask, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let answer = engine.run("mcp.doctor", json!({})).await?;
        let checks = answer.get("checks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let failed = checks.iter().filter(|check| check.get("ok") != Some(&json!(true))).count();
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
        } else {
            print(&to_text(checks, failed, Style::of_stdout()))?;
        }
        Ok(if failed == 0 { Status::Ok } else { Status::Failed })
    })
}

fn to_text(checks: &[Value], failed: usize, style: Style) -> String {
    use unicode_width::UnicodeWidthStr;
    let text = |check: &Value, key: &str| {
        let text = check.get(key).and_then(Value::as_str).unwrap_or_default();
        one_line(&mask(text), 1_000)
    };
    let width = checks.iter().map(|check| text(check, "name").width()).max().unwrap_or(0);
    let mut lines = String::new();
    for check in checks {
        let name = text(check, "name");
        let gap = " ".repeat(width.saturating_sub(name.width()));
        let sign = match check.get("ok") {
            Some(Value::Bool(true)) => style.paint(Color::Good, "✓"),
            _ => style.paint(Color::Bad, "✗"),
        };
        lines.push_str(&format!("{sign} {name}{gap}  {}\n", text(check, "message")));
        if let Some(fix) = Some(text(check, "fix")).filter(|fix| !fix.is_empty()) {
            lines.push_str(&format!("  {}  {}\n", " ".repeat(width), style.paint(Color::Waiting, &format!("→ {fix}"))));
        }
    }
    let end = match failed {
        0 => style.paint(Color::Good, "all checks passed"),
        failed => style.paint(Color::Bad, &format!("{} failed", counted(failed, "check"))),
    };
    lines + &format!("\n{end}\n")
}
