//! What the editor's open config files mean together with those on disk: the picture that live features look at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::convert::Places;
use super::documents::Document;
use super::seat::Seat;
use crate::config::tree::{self, Tree};
use crate::config::{self, Content, File, Loaded, Source};
use crate::engine::Engine;
use crate::engine::snapshot::Snapshot;
use crate::ide;
use crate::ide::sight::Sight;
use crate::model::{Scope, ServerName};

/// One open config file with everything that can be said about it.
pub struct Look {
    pub document: Document,
    pub places: Places,
    tree: Tree,
    path: PathBuf,
    loaded: Arc<Loaded>,
    snapshot: Arc<Snapshot>,
    /// Whether it differs from what was last read from its file.
    unsaved: bool,
}

impl Look {
    /// Looks at a buffer; `None` when it is no config file.
    pub fn at(seat: &Seat, document: Document) -> Option<Self> {
        if !seat.is_config(&document) {
            return None;
        }
        let buffer = document.path.clone()?;
        let saved = seat.engine.loaded().borrow().clone();
        let buffers: Vec<Document> = seat.documents.all().into_iter().filter(|each| seat.is_config(each)).collect();
        let (path, loaded) = match source_of(&saved, &buffer) {
            Some(path) => (path, picture(&seat.engine, &saved, &buffers)),
            None => (buffer.clone(), Arc::new(alone(&seat.engine, &buffer, &document))),
        };
        let depth = seat.engine.settings().borrow().limits.config_depth;
        Some(Self {
            places: Places::new(&document.text, seat.greeting().encoding),
            tree: tree::parse(&document.text, depth),
            unsaved: saved.file(&path).is_some_and(|file| file.text != document.text),
            snapshot: seat.engine.now(),
            path,
            loaded,
            document,
        })
    }

    pub fn sight(&self) -> Sight<'_> {
        Sight {
            text: &self.document.text,
            tree: &self.tree,
            path: &self.path,
            loaded: &self.loaded,
            snapshot: &self.snapshot,
        }
    }

    /// Which servers a save of this buffer would ask trust for; `None` when there is nothing to save.
    pub async fn unsaved(&self, engine: &Engine) -> Option<BTreeSet<ServerName>> {
        if !self.unsaved {
            return None;
        }
        let touched = ide::save::touched(&self.loaded, &self.snapshot);
        Some(engine.would_ask(touched, self.loaded.clone()).await)
    }

    pub fn problems(&self) -> Vec<config::Problem> {
        let live = ide::live::live(&self.sight());
        self.loaded.file(&self.path).map(|file| ide::diagnostics::diagnostics(file, live)).unwrap_or_default()
    }
}

/// All config files, the open ones as they stand in the editor.
pub fn picture(engine: &Engine, saved: &Arc<Loaded>, buffers: &[Document]) -> Arc<Loaded> {
    let known = buffers.iter().filter_map(|buffer| Some((source_of(saved, buffer.path.as_deref()?)?, buffer)));
    let changed = |path: &Path, buffer: &Document| {
        saved.file(path).is_none_or(|file| !file.exists || !file.valid || file.text != buffer.text)
    };
    let overlay: BTreeMap<PathBuf, Arc<str>> = known
        .filter(|(path, buffer)| changed(path, buffer))
        .map(|(path, buffer)| (path, buffer.text.clone()))
        .collect();
    if overlay.is_empty() { saved.clone() } else { Arc::new(engine.preview(&overlay)) }
}

/// The path under which the engine knows this file; the editor may have come to it through another link.
pub fn source_of(loaded: &Loaded, path: &Path) -> Option<PathBuf> {
    if loaded.file(path).is_some() {
        return Some(path.to_owned());
    }
    let real = path.canonicalize().ok()?;
    let same = |file: &&File| file.source.path.canonicalize().is_ok_and(|other| other == real);
    loaded.files.iter().find(same).map(|file| file.source.path.to_path_buf())
}

/// A file that is named like a config file, but of no workspace folder: looked at for itself.
pub fn alone(engine: &Engine, path: &Path, buffer: &Document) -> Loaded {
    let source = Source { path: path.into(), scope: Scope::Project, folder: path.parent().map(Into::into) };
    let limits = engine.settings().borrow().limits.clone();
    config::load(&[(source, Content::Text(buffer.text.clone()))], &BTreeMap::new(), &limits)
}
