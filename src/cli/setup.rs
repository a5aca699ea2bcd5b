//! `mcp-sidecar setup`: adds `mcp-sidecar connect` to the config files of an agent.

mod duplicates;
mod file_edit;
mod hooks;
mod targets;

use std::io::{self, Write};

use anyhow::Context as _;
use serde_json::json;

use self::duplicates::Duplicates;
use self::file_edit::FileEdit;
use self::targets::Targets;
use super::context::{Context, agents};
use super::terminal::{self, Preselected};
use super::{Status, print, print_json};
use crate::config::interop::setup::{needs_trust, note};
use crate::config::interop::{Dialect, add_sidecar, remove_sidecar};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Agent to configure
    #[arg(value_name = "AGENT", value_parser = agents())]
    agent: Dialect,
    /// Edit your user config, which applies to all projects
    #[arg(long)]
    user: bool,
    /// Edit the config of this project
    #[arg(long, conflicts_with = "user")]
    project: bool,
    /// Make the agent ask mcp-sidecar about its own tools, such as its shell, instead of adding an entry
    #[arg(long, conflicts_with = "project")]
    hooks: bool,
    /// Show the changes without writing them
    #[arg(long)]
    dry_run: bool,
    /// Remove the entry again; with --hooks, remove the hooks
    #[arg(long)]
    undo: bool,
    /// Also stop the agent from loading the servers of this project itself, without asking
    #[arg(long, short)]
    yes: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What `setup AGENT` means.
    pub fn of(agent: Dialect) -> Self {
        Self { agent, user: false, project: false, hooks: false, dry_run: false, undo: false, yes: false, json: false }
    }

    /// The changes of the agent's own files.
    fn plan(&self, targets: &Targets) -> anyhow::Result<Vec<FileEdit>> {
        let change = |text: &str| {
            Ok(if self.undo {
                remove_sidecar(self.agent, text)?
            } else {
                add_sidecar(self.agent, text, &targets.command, &targets.args)?
            })
        };
        targets.paths.iter().map(|path| FileEdit::plan(path, change)).collect()
    }
}

/// Whether the agent already uses mcp-sidecar here.
pub(super) fn is_done(agent: Dialect, context: &Context) -> anyhow::Result<bool> {
    let arguments = Arguments::of(agent);
    let edits = arguments.plan(&Targets::choose(&arguments, context)?)?;
    Ok(!edits.iter().any(FileEdit::changes))
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    if arguments.hooks {
        return hooks::run(&arguments);
    }
    let Arguments { agent, dry_run, undo, yes, json, .. } = arguments;
    let targets = Targets::choose(&arguments, context)?;
    let mut edits = arguments.plan(&targets)?;
    let changed = edits.iter().any(FileEdit::changes);
    let mut notes = targets.notes.clone();
    if !undo {
        notes.extend(note(agent).map(str::to_owned));
        notes.extend(trust_note(agent, &targets)?);
    }
    for mut twice in Duplicates::find(agent, &targets, undo)? {
        match twice.settings.take() {
            Some(settings) if yes || dry_run || (!json && asked(&twice.question(undo), context)?) => {
                if dry_run && !yes {
                    notes.push(format!("{} (--yes answers yes)", twice.question(undo)));
                }
                edits.push(settings);
            }
            Some(_) if undo => {}
            Some(_) => notes.push(format!("{}; run this again with --yes to disable them there", twice.note())),
            None => notes.push(twice.note()),
        }
    }
    let mut files = Vec::new();
    for edit in &edits {
        let backup = if dry_run { None } else { edit.write()? };
        files.push((edit, backup));
    }
    if json {
        let files = files
            .iter()
            .map(|(edit, backup)| json!({ "path": edit.path, "changed": edit.changes(), "backup": backup }));
        let shown = json!({ "changed": changed, "files": files.collect::<Vec<_>>(), "notes": notes });
        return print_json(&shown);
    }
    for note in &notes {
        writeln!(io::stderr(), "note: {note}").ok();
    }
    let title = agent.title();
    let paths: Vec<String> = targets.paths.iter().map(|path| path.display().to_string()).collect();
    let paths = paths.join(", ");
    let mut text = match (changed, undo) {
        (false, true) => format!("{paths}: mcp-sidecar is not set up; nothing to undo\n"),
        (false, false) => format!("{title} already uses mcp-sidecar: {paths}\n"),
        (true, _) if dry_run => String::new(),
        (true, true) => format!("{title} no longer uses mcp-sidecar: {paths}\n"),
        (true, false) => format!("{title} now uses mcp-sidecar: {paths}\nrestart {title} to see the tools\n"),
    };
    for (edit, backup) in files {
        if dry_run {
            text.push_str(&edit.diff());
        } else if edit.changes() && !targets.paths.contains(&edit.path) {
            text.push_str(&format!("changed {}\n", edit.path.display()));
        }
        if let Some(backup) = backup {
            text.push_str(&format!("backup of the old file: {}\n", backup.display()));
        }
    }
    print(&text)?;
    Ok(Status::Ok)
}

/// Asks in the terminal. Without one, the answer is no.
fn asked(question: &str, context: &Context) -> anyhow::Result<bool> {
    let confirm = terminal::confirm(question, Preselected::No);
    Ok(terminal::is_interactive() && context.runtime()?.block_on(confirm)?)
}

/// What the user has to do before the agent reads the file of the project.
fn trust_note(agent: Dialect, targets: &Targets) -> anyhow::Result<Option<String>> {
    let Some(config) = targets.user_file.as_ref().filter(|_| targets.is_project) else { return Ok(None) };
    let config = file_edit::read(config)?.unwrap_or_default();
    let real = targets.folder.canonicalize().context("cannot read the workspace folder")?;
    let ignores = needs_trust(agent, &config, &targets.folder) && needs_trust(agent, &config, &real);
    let title = agent.title();
    Ok(ignores.then(|| {
        format!(
            "{title} ignores the file of a project that it does not trust: start {title} in {} once and trust it, or use \
             --user",
            targets.folder.display()
        )
    }))
}
