//! Servers that the agent loads from a project's file itself. It then has them twice, and once without our rules.

use std::path::PathBuf;

use super::file_edit::{self, FileEdit};
use super::targets::Targets;
use crate::config::interop::Dialect;
use crate::config::interop::setup::{loaded_files, servers_in, settings_file, switch};

pub(super) struct Duplicates {
    agent: Dialect,
    file: PathBuf,
    names: Vec<String>,
    /// The change that stops the agent from loading them, or that makes it load them again.
    pub settings: Option<FileEdit>,
}

impl Duplicates {
    pub fn find(agent: Dialect, targets: &Targets, undo: bool) -> anyhow::Result<Vec<Self>> {
        let mut found = Vec::new();
        for file in loaded_files(agent).map(|name| targets.folder.join(name)) {
            if !targets.is_read(&file) {
                continue;
            }
            let names = file_edit::read(&file)?.map(|text| servers_in(agent, &text)).unwrap_or_default();
            let mut duplicates = Self { agent, file, names, settings: None };
            if let Some(settings) = settings_file(agent) {
                let mut changed = Vec::new();
                let edit = FileEdit::plan(&targets.folder.join(settings), |text| {
                    let (text, names) = switch(text, &duplicates.names, !undo)?;
                    changed = names;
                    Ok(text)
                })?;
                duplicates.names = changed;
                duplicates.settings = Some(edit);
            } else if undo {
                continue;
            }
            if !duplicates.names.is_empty() {
                found.push(duplicates);
            }
        }
        Ok(found)
    }

    pub fn note(&self) -> String {
        let (title, names, file) = (self.agent.title(), self.names.join(", "), self.file.display());
        format!("{title} also loads {names} from {file} itself, without the rules of mcp-sidecar")
    }

    pub fn question(&self, undo: bool) -> String {
        let settings = settings_file(self.agent).unwrap_or_default();
        if undo {
            let (title, names, file) = (self.agent.title(), self.names.join(", "), self.file.display());
            return format!("{title} does not load {names} from {file}. Enable them again in {settings}?");
        }
        format!("{}. Disable them in {settings}?", self.note())
    }
}
