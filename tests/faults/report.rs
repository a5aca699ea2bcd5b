//! The table of the last full run, in `target/faults` and in `docs/reliability.md`.

use std::fmt::Write;

use crate::run::{CaseResult, Options};
use crate::support::reliability_page;

pub fn write(options: &Options, results: &[CaseResult]) {
    if !options.full {
        return;
    }
    let date = time::OffsetDateTime::now_utc().date().to_string();
    let table = table(options, results, &date);
    reliability_page::store("faults", &format!("{date}-{}", options.seed), &table);
    // A part of the suite does not replace the table of all of it.
    if options.words.is_empty() {
        reliability_page::replace("fault suite", &table);
    }
}

fn table(options: &Options, results: &[CaseResult], date: &str) -> String {
    let runs = if options.runs == 1 { "1 run".to_owned() } else { format!("{} runs", options.runs) };
    let mut text = format!("Last run: {date}, {runs} of each case, seed {}.\n\n", options.seed);
    let failed = results.iter().filter(|result| result.outcome.is_err()).count();
    let skipped = results.iter().filter(|result| matches!(result.outcome, Ok(Some(_)))).count();
    let passed = results.len() - failed - skipped;
    writeln!(text, "{} cases: {passed} passed, {failed} failed, {skipped} skipped.\n", results.len()).unwrap();
    text.push_str("| case | fault | what is required | runs | outcome | peak memory | descriptors |\n|---|---|---|---|---|---|---|\n");
    for CaseResult { case, runs, outcome, idle, peak } in results {
        let outcome = match outcome {
            Ok(None) => "passed".to_owned(),
            Ok(Some(reason)) => format!("skipped: {reason}"),
            Err(_) => "**failed**".to_owned(),
        };
        let memory = if peak.peak_mib == 0 {
            String::new()
        } else if idle.peak_mib == 0 {
            format!("{} MiB", peak.peak_mib)
        } else {
            format!("{} MiB (idle: {})", peak.peak_mib, idle.peak_mib)
        };
        let descriptors = if peak.descriptors == 0 { String::new() } else { peak.descriptors.to_string() };
        writeln!(
            text,
            "| {} | {} | {} | {runs} | {outcome} | {memory} | {descriptors} |",
            case.id, case.fault, case.required
        )
        .unwrap();
    }
    text.push('\n');
    text
}
