//! One open config file at one moment: its text, what all files say, and what runs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tower_lsp::lsp_types::Url;

use super::seat::Seat;
use super::sheets::Sheet;
use crate::config::{self, File};
use crate::engine::Engine;
use crate::engine::snapshot::Snapshot;
use crate::ide;
use crate::ide::page::Page;
use crate::model::ServerName;

pub struct Look<'a> {
    pub sheet: &'a Sheet,
    file: &'a File,
    snapshot: Arc<Snapshot>,
    variables: &'a BTreeSet<String>,
}

impl<'a> Look<'a> {
    pub fn at(seat: &'a Seat, sheet: &'a Sheet) -> Option<Self> {
        let snapshot = sheet.nothing_runs.clone().unwrap_or_else(|| seat.engine.now());
        Some(Self { sheet, file: sheet.file()?, snapshot, variables: &seat.variables })
    }

    pub fn uri(&self) -> &Url {
        &self.sheet.document.uri
    }

    pub fn page(&self) -> Page<'_> {
        Page::of(self.file, &self.sheet.loaded, &self.snapshot, self.variables)
    }

    /// What `${workspaceFolder}` means in it.
    pub fn folder(&self) -> Option<&Path> {
        self.file.source.folder.as_deref().or_else(|| self.sheet.path.parent())
    }

    /// Files of variables in that folder, by name.
    pub fn env_files(&self) -> Vec<String> {
        let entries = self.folder().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(".env")).collect();
        names.sort();
        names
    }

    /// Which servers a save of this buffer would ask trust for; `None` when there is nothing to save.
    pub async fn unsaved(&self, engine: &Engine) -> Option<BTreeSet<ServerName>> {
        if !self.sheet.unsaved {
            return None;
        }
        let touched = ide::save::touched(&self.sheet.loaded, &self.snapshot);
        Some(engine.would_ask(touched, self.sheet.loaded.clone()).await)
    }

    pub fn problems(&self) -> Vec<config::Problem> {
        ide::diagnostics::diagnostics(&self.page(), self.file)
    }
}
