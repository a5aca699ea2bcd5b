//! `mcp-sidecar setup AGENT --hooks`: makes an agent ask mcp-sidecar about its own tools.

use std::io::{self, Write};

use anyhow::Context as _;
use serde_json::json;

use super::file_edit::FileEdit;
use super::{Arguments, targets};
use crate::cli::{Status, print, print_json};
use crate::config::interop::Homes;
use crate::config::interop::hooks::{add_hooks, hook_agent, hooks_file, hooks_note, remove_hooks};

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Status> {
    let Arguments { agent, dry_run, undo, json, .. } = arguments;
    let title = agent.title();
    let agent = hook_agent(*agent)
        .with_context(|| format!("{title} has no hooks that can pass on its questions; omit --hooks"))?;
    let homes = Homes::discover().context("cannot find your home folder; set HOME")?;
    let program = targets::own_path()?;
    let edit = FileEdit::plan(&hooks_file(agent, &homes), |text| match undo {
        true => remove_hooks(agent, text),
        false => add_hooks(agent, text, &program),
    })?;
    let changed = edit.changes();
    let backup = if *dry_run { None } else { edit.write()? };
    let note = hooks_note(agent).filter(|_| !undo);
    let path = edit.path.display();
    if *json {
        let files = [json!({ "path": edit.path, "changed": changed, "backup": backup })];
        return print_json(
            &json!({ "changed": changed, "files": files, "notes": note.into_iter().collect::<Vec<_>>() }),
        );
    }
    if let Some(note) = note {
        writeln!(io::stderr(), "note: {note}").ok();
    }
    let mut text = match (changed, undo) {
        (false, true) => format!("{path}: no mcp-sidecar hooks found; nothing to undo\n"),
        (false, false) => format!("{title} already asks mcp-sidecar about its own tools: {path}\n"),
        (true, _) if *dry_run => edit.diff(),
        (true, true) => format!("{title} no longer asks mcp-sidecar about its own tools: {path}\n"),
        (true, false) => {
            format!("{title} now asks mcp-sidecar about its own tools: {path}\nrestart {title} to use the hooks\n")
        }
    };
    if let Some(backup) = backup {
        text.push_str(&format!("backup of the old file: {}\n", backup.display()));
    }
    print(&text)?;
    Ok(Status::Ok)
}
