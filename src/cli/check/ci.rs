//! The formats of `mcp-sidecar check` for CI: SARIF for code scanning, and annotations of GitHub workflows.

use std::path::Path;

use serde_json::{Value, json};
use url::Url;

use super::super::report::{Located, Report};
use super::super::style::Style;
use super::Checked;
use crate::config::{Code, Severity};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// One run in the Static Analysis Results Interchange Format.
pub(super) fn sarif(checked: &[Checked]) -> Value {
    let rule = |code: &Code| {
        let text = json!({ "text": code.description() });
        json!({
            "id": code.as_str(),
            "shortDescription": text,
            "fullDescription": text,
            "help": text,
            "helpUri": concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/configuration.md#diagnostics"),
            "defaultConfiguration": { "level": level(code.severity()) },
        })
    };
    let result = |file: &Checked, code: Code, severity: Severity, problem: Located| {
        json!({
            "ruleId": code.as_str(),
            "level": level(severity),
            "message": { "text": with_help(&problem) },
            "locations": [{ "physicalLocation": {
                "artifactLocation": { "uri": uri(&file.path) },
                "region": {
                    "startLine": problem.line,
                    "startColumn": problem.column,
                    "endLine": problem.end_line,
                    "endColumn": problem.end_column,
                },
            } }],
        })
    };
    let results: Vec<Value> =
        located(checked).map(|(file, code, severity, at)| result(file, code, severity, at)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "mcp-sidecar",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": Code::ALL.iter().map(rule).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// One workflow command for each problem. GitHub shows it at the line of the file.
pub(super) fn annotations(checked: &[Checked]) -> String {
    let annotation = |(file, code, severity, problem): (&Checked, Code, Severity, Located)| {
        let Located { line, column, end_line, end_column, .. } = problem;
        let command = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Information | Severity::Hint => "notice",
        };
        let name = property(Report::new(&file.path, &file.text, &[], Style::plain()).name());
        // GitHub rejects columns in a range of several lines.
        let columns = if line == end_line { format!(",col={column},endColumn={end_column}") } else { String::new() };
        let text = data(&with_help(&problem));
        format!("::{command} file={name},line={line},endLine={end_line}{columns},title={}::{text}\n", code.as_str())
    };
    located(checked).map(annotation).collect()
}

/// All problems, with the file of each.
fn located(checked: &[Checked]) -> impl Iterator<Item = (&Checked, Code, Severity, Located)> {
    checked.iter().flat_map(|file| {
        let report = Report::new(&file.path, &file.text, &file.problems, Style::plain());
        file.problems.iter().map(move |problem| (file, problem.code, problem.severity, report.located(problem)))
    })
}

fn with_help(problem: &Located) -> String {
    match &problem.help {
        Some(help) => format!("{}\n{help}", problem.message),
        None => problem.message.clone(),
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information | Severity::Hint => "note",
    }
}

/// Relative to the current folder, which is the root of the repository in CI; absolute for a file outside of it.
fn uri(path: &Path) -> String {
    // Parsing resolves `..`.
    let url = Url::from_file_path(path).ok().and_then(|url| Url::parse(url.as_str()).ok());
    let Some(url) = url else { return path.display().to_string() };
    let here = std::env::current_dir().ok().and_then(|here| Url::from_directory_path(here).ok());
    let near = here.and_then(|here| here.make_relative(&url)).filter(|near| !near.starts_with(".."));
    near.unwrap_or_else(|| url.into())
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
