//! `mcp-sidecar check`: reports errors in config files, for users and for CI.

mod ci;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::context::{Context, contents, is_same_file};
use super::report::Report;
use super::style::Style;
use super::{Status, print, print_json};
use crate::config::{self, Code, Content, File, Loaded, Problem, Severity, Source, watch};
use crate::model::Scope;
use crate::paths::Paths;
use crate::settings::{Settings, SettingsFile};
use crate::text::counted;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Files to check [default: all config files of the workspace]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Print JSON instead of text
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For scripts
    Json,
    /// For code scanning: SARIF 2.1.0
    Sarif,
    /// Annotations in the log of a GitHub workflow
    Github,
}

/// The result for one file: an `mcp.json` or the settings.
struct Checked {
    path: PathBuf,
    scope: &'static str,
    exists: bool,
    valid: bool,
    servers: Vec<String>,
    text: Arc<str>,
    problems: Vec<Problem>,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings_file = Settings::from_file(&paths);
    let workspace = contents(context.folder(&settings_file.settings)?, &settings_file.settings, &paths);
    let loaded = load(&workspace, &settings_file.settings);
    let checked = if arguments.files.is_empty() {
        let mut all: Vec<Checked> = loaded.files.into_iter().map(Checked::from).collect();
        all.push(Checked::settings(&paths, settings_file));
        all.retain(|file| file.exists || !file.problems.is_empty());
        all
    } else {
        let check = |file: &PathBuf| check(file, &loaded, &paths, &settings_file);
        arguments.files.iter().map(check).collect::<Result<_, _>>()?
    };
    let failed = count(&checked, Severity::Error) > 0;
    match if arguments.json { Format::Json } else { arguments.format } {
        Format::Json => drop(print_json(&to_json(&checked))?),
        Format::Sarif => drop(print_json(&ci::sarif(&checked))?),
        Format::Github => print(&format!("{}{}", ci::annotations(&checked), summary(&checked)))?,
        Format::Text if checked.is_empty() => {
            let paths: String = workspace.iter().map(|(source, _)| format!("  {}\n", source.path.display())).collect();
            print(&format!("no config files found; these paths were checked:\n{paths}"))?;
        }
        Format::Text => print(&to_text(&checked))?,
    }
    Ok(if failed { Status::Failed } else { Status::Ok })
}

fn load(contents: &[(Source, Content)], settings: &Settings) -> Loaded {
    config::load(contents, &Default::default(), &settings.limits)
}

/// Checks one file. A file of the workspace is merged with the others; any other file is checked alone.
fn check(path: &Path, loaded: &Loaded, paths: &Paths, settings_file: &SettingsFile) -> anyhow::Result<Checked> {
    let path = std::path::absolute(path)?;
    let same = |other: &Path| other == path || is_same_file(other, &path);
    if same(&paths.settings_file()) {
        return Ok(Checked::settings(paths, settings_file.clone()));
    }
    if let Some(file) = loaded.files.iter().find(|file| same(&file.source.path)) {
        return Ok(Checked::from(file.clone()).or_missing());
    }
    let folder = path.parent().map(Arc::from);
    let source = Source { path: path.as_path().into(), scope: Scope::Project, folder };
    let content = watch::read(&path, settings_file.settings.limits.config_bytes);
    let alone = load(&[(source, content)], &settings_file.settings);
    let file = alone.files.into_iter().next();
    Ok(file.map_or_else(|| Checked::missing(path), |file| Checked::from(file).or_missing()))
}

impl From<File> for Checked {
    fn from(file: File) -> Self {
        let File { source, exists, valid, servers, problems, text, tree: _ } = file;
        Self { path: source.path.to_path_buf(), scope: source.scope.as_str(), exists, valid, servers, text, problems }
    }
}

impl Checked {
    fn settings(paths: &Paths, file: SettingsFile) -> Self {
        let problem = |problem: crate::settings::Problem| Problem {
            help: problem.help,
            ..Problem::new(Code::Setting, problem.span.unwrap_or(0..0), problem.message)
        };
        Self {
            path: paths.settings_file(),
            scope: "settings",
            exists: file.exists,
            valid: file.problems.is_empty(),
            servers: Vec::new(),
            text: file.text.into(),
            problems: file.problems.into_iter().map(problem).collect(),
        }
    }

    fn missing(path: PathBuf) -> Self {
        let problems = vec![Problem::new(Code::NoFile, 0..0, "file not found")];
        let servers = Vec::new();
        Self { path, scope: "project", exists: false, valid: false, servers, text: "".into(), problems }
    }

    /// A file that was named on the command line must exist.
    fn or_missing(self) -> Self {
        if self.exists || !self.problems.is_empty() { self } else { Self::missing(self.path) }
    }
}

fn count(checked: &[Checked], severity: Severity) -> usize {
    checked.iter().flat_map(|file| &file.problems).filter(|problem| problem.severity == severity).count()
}

fn to_text(checked: &[Checked]) -> String {
    let style = Style::of_stdout();
    let mut text = String::new();
    for file in checked {
        let report = Report::new(&file.path, &file.text, &file.problems, style);
        text.extend(file.problems.iter().map(|problem| report.render(problem) + "\n"));
        if file.problems.iter().all(|problem| problem.severity > Severity::Warning) {
            let servers = match file.scope {
                "settings" => String::new(),
                _ => format!(", {}", counted(file.servers.len(), "server")),
            };
            text.push_str(&format!("{}: {}{servers}\n", report.name(), style.good("ok")));
        }
    }
    if count(checked, Severity::Error) + count(checked, Severity::Warning) > 0 {
        text.push_str(&summary(checked));
    }
    text
}

fn summary(checked: &[Checked]) -> String {
    let errors = counted(count(checked, Severity::Error), "error");
    let warnings = counted(count(checked, Severity::Warning), "warning");
    format!("{errors} and {warnings}\n")
}

fn to_json(checked: &[Checked]) -> Value {
    let files: Vec<Value> = checked
        .iter()
        .map(|file| {
            let report = Report::new(&file.path, &file.text, &file.problems, Style::plain());
            json!({
                "path": file.path,
                "scope": file.scope,
                "exists": file.exists,
                "valid": file.valid,
                "servers": file.servers,
                "problems": file.problems.iter().map(|problem| report.json(problem)).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "files": files,
        "errors": count(checked, Severity::Error),
        "warnings": count(checked, Severity::Warning),
    })
}
