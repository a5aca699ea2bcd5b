//! The table of the last full run, in `target/faults` and in `docs/reliability.md`.

use std::fmt::Write;
use std::path::Path;

use crate::run::{CaseResult, Options};

const BEGIN: &str = "<!-- fault suite -->\n";
const END: &str = "<!-- end of fault suite -->";

pub fn write(options: &Options, results: &[CaseResult]) {
    if !options.full {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let now = time::OffsetDateTime::now_utc();
    let (date, table) = (now.date(), table(options, results, &now.date().to_string()));
    let folder = root.join("target/faults");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{date}-{}.md", options.seed));
    std::fs::write(&file, &table).unwrap();
    println!("report: {}", file.display());
    // A part of the suite does not replace the table of all of it.
    if options.words.is_empty() {
        let page = root.join("docs/reliability.md");
        let text = std::fs::read_to_string(&page).unwrap();
        let (before, rest) = text.split_once(BEGIN).expect("the page has a place for the table");
        let (_, after) = rest.split_once(END).expect("the table has an end");
        std::fs::write(page, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    }
}

fn table(options: &Options, results: &[CaseResult], date: &str) -> String {
    let mut text = format!("Last run: {date}, {} runs of each case, seed {}.\n\n", options.runs, options.seed);
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
