//! The figures of a run, in `target/soak` and in `docs/reliability.md`.

use std::fmt::Write;

use crate::director::Outcome;
use crate::support::reliability_page;
use crate::world::Options;

pub fn write(options: &Options, outcome: &Outcome) {
    let date = time::OffsetDateTime::now_utc().date().to_string();
    let text = text(options, outcome, &date);
    println!("\n{text}");
    if options.full {
        reliability_page::store("soak", &format!("{date}-{}", options.seed), &text);
        if outcome.violations.is_empty() {
            reliability_page::replace("soak", &text);
        }
    }
}

fn text(options: &Options, outcome: &Outcome, date: &str) -> String {
    let minutes = options.duration.as_secs_f64() / 60.0;
    let audit = if options.strict() { "strict" } else { "normal" };
    let mut text = format!("Last run: {date}, {minutes:.1} minutes, seed {}, `audit = \"{audit}\"`. ", options.seed);
    writeln!(text, "{} checks of the model, {} violations.\n", outcome.checkpoints, outcome.violations.len()).unwrap();
    text.push_str("| what happened | how often |\n|---|---|\n");
    for (what, count) in &outcome.counts {
        writeln!(text, "| {what} | {count} |").unwrap();
    }
    if let Some(figures) = outcome.figures {
        text.push_str("\n| the last engine | memory | descriptors | threads |\n|---|---|---|---|\n");
        for (when, figures) in [("when first measured", figures.first), ("at the end", figures.last)] {
            let (memory, descriptors, threads) = (figures.memory_mib, figures.descriptors, figures.threads);
            writeln!(text, "| {when} | {memory} MiB | {descriptors} | {threads} |").unwrap();
        }
    }
    text.push('\n');
    text
}
