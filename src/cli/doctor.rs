//! `mcp-sidecar doctor`: checks what is missing on this machine, and how to fix it.

use super::context::Context;
use super::engine_client::{self, Autostart};
use super::style::{Color, Style, size};
use super::{Status, print, print_json};
use crate::protocol::commands::Doctor;
use crate::protocol::types::Check;
use crate::text::{counted, mask, one_line, wrap_words};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let answer = engine.call(Doctor {}).await?;
        let failed = answer.checks.iter().filter(|check| !check.ok).count();
        if arguments.json {
            print_json(&answer)?;
        } else {
            print(&to_text(&answer.checks, failed, Style::of_stdout(), size().map(|size| size.columns)))?;
        }
        Ok(if failed == 0 { Status::Ok } else { Status::Failed })
    })
}

/// The messages are not narrower than this.
const NARROWEST: usize = 24;

fn to_text(checks: &[Check], failed: usize, style: Style, columns: Option<usize>) -> String {
    use unicode_width::UnicodeWidthStr;
    let text = |text: &str| one_line(&mask(text), 1_000);
    let width = checks.iter().map(|check| text(&check.name).width()).max().unwrap_or(0);
    let indent = format!("\n{}", " ".repeat(width + 4));
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(width + 6).max(NARROWEST));
    let mut lines = String::new();
    for check in checks {
        let name = text(&check.name);
        let gap = " ".repeat(width.saturating_sub(name.width()));
        let sign = if check.ok { style.paint(Color::Good, "✓") } else { style.paint(Color::Bad, "✗") };
        let message = wrap_words(&text(&check.message), room).join(&indent);
        lines.push_str(&format!("{sign} {name}{gap}  {message}\n"));
        if let Some(fix) = check.fix.as_deref().map(text) {
            let fix = wrap_words(&format!("→ {fix}"), room).join(&format!("{indent}  "));
            lines.push_str(&format!("  {}  {}\n", " ".repeat(width), style.paint(Color::Attention, &fix)));
        }
    }
    let end = match failed {
        0 => style.paint(Color::Good, "all checks passed"),
        failed => style.paint(Color::Bad, &format!("{} failed", counted(failed, "check"))),
    };
    lines + &format!("\n{end}\n")
}
