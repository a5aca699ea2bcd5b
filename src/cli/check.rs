//! `mcp-sidecar check`: what is wrong with config files, for people and for CI.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::context::{Context, contents};
use super::look::Look;
use super::report::Report;
use super::{Status, print};
use crate::config::{self, Content, File, Loaded, Problem, Severity, Source, watch};
use crate::model::Scope;
use crate::paths::Paths;
use crate::settings::{Settings, SettingsFile};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Files to check; without any, every config file of the workspace
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// For programs
    #[arg(long)]
    json: bool,
}

/// A file after the check, whatever kind it is.
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
    if arguments.json {
        print(&format!("{:#}\n", to_json(&checked)))?;
    } else if checked.is_empty() {
        let looked: String = workspace.iter().map(|(source, _)| format!("  {}\n", source.path.display())).collect();
        print(&format!("nothing to check; these files would count:\n{looked}"))?;
    } else {
        print(&to_text(&checked))?;
    }
    Ok(if failed { Status::Failed } else { Status::Ok })
}

fn load(contents: &[(Source, Content)], settings: &Settings) -> Loaded {
    config::load(contents, &Default::default(), &settings.limits)
}

/// A file that was named: one of the workspace is seen among the others, any other as the only file of its own folder.
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

fn is_same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
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
            ..Problem::error("setting", problem.span.unwrap_or(0..0), problem.message)
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
        let problems = vec![Problem::error("no-file", 0..0, "no such file")];
        let servers = Vec::new();
        Self { path, scope: "project", exists: false, valid: false, servers, text: "".into(), problems }
    }

    /// A file that somebody asked for by name has to be there.
    fn or_missing(self) -> Self {
        if self.exists || !self.problems.is_empty() { self } else { Self::missing(self.path) }
    }
}

fn count(checked: &[Checked], severity: Severity) -> usize {
    checked.iter().flat_map(|file| &file.problems).filter(|problem| problem.severity == severity).count()
}

fn to_text(checked: &[Checked]) -> String {
    let look = Look::of_stdout();
    let mut text = String::new();
    for file in checked {
        let report = Report::new(&file.path, &file.text, &file.problems, look);
        text.extend(file.problems.iter().map(|problem| report.of(problem) + "\n"));
        if file.problems.iter().all(|problem| problem.severity > Severity::Warning) {
            let servers = match file.servers.len() {
                _ if file.scope == "settings" => String::new(),
                1 => ", 1 server".to_owned(),
                count => format!(", {count} servers"),
            };
            text.push_str(&format!("{}: {}{servers}\n", report.name(), look.good("ok")));
        }
    }
    let errors = count(checked, Severity::Error);
    let warnings = count(checked, Severity::Warning);
    if errors + warnings > 0 {
        text.push_str(&format!("{} and {}\n", several(errors, "error"), several(warnings, "warning")));
    }
    text
}

fn several(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn to_json(checked: &[Checked]) -> Value {
    let files: Vec<Value> = checked
        .iter()
        .map(|file| {
            let report = Report::new(&file.path, &file.text, &file.problems, Look::plain());
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
