//! The editor's open config files, understood together with those on disk: once for each state of their texts, however
//! many requests ask about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tower_lsp::lsp_types::Url;

use super::convert::Places;
use super::documents::Document;
use super::seat::Seat;
use crate::config::{self, Content, File, Loaded, Source};
use crate::engine::Engine;
use crate::engine::snapshot::Snapshot;
use crate::model::Scope;
use crate::settings::Settings;
use crate::text::lines::Encoding;

/// One open config file.
pub struct Sheet {
    pub document: Document,
    pub places: Places,
    /// The path under which the engine knows it.
    pub path: Arc<Path>,
    /// All files; for a file of no workspace folder that one alone.
    pub loaded: Arc<Loaded>,
    /// What runs as far as this file can know: of a file that the engine does not, nothing does.
    pub nothing_runs: Option<Arc<Snapshot>>,
    /// Whether it differs from what was last read from its file.
    pub unsaved: bool,
}

impl Sheet {
    pub fn file(&self) -> Option<&File> {
        self.loaded.file(&self.path)
    }
}

/// All config files in one state of their texts.
pub struct Sheets {
    /// The open ones as they stand in the editor.
    pub loaded: Arc<Loaded>,
    pub open: BTreeMap<Url, Arc<Sheet>>,
}

/// The newest state that somebody asked for. Behind a lock because requests run side by side; it is held for a
/// comparison only, and who comes while a state is being made waits for that one.
#[derive(Default)]
pub struct Shelf {
    newest: Mutex<Option<Arc<State>>>,
}

/// What a state is made from, and what was made of it.
struct State {
    saved: Arc<Loaded>,
    settings: Arc<Settings>,
    buffers: Vec<Document>,
    made: OnceLock<Arc<Sheets>>,
}

impl Seat {
    /// The open config files as they are now.
    pub fn sheets(&self) -> Arc<Sheets> {
        let saved = self.engine.loaded().borrow().clone();
        let settings = self.engine.settings().borrow().clone();
        let buffers = self.documents.filter(|document| self.is_config(document));
        let state = self.shelf.state(saved, settings, buffers);
        state.made.get_or_init(|| Arc::new(Sheets::make(&self.engine, &state, self.greeting().encoding))).clone()
    }

    /// An open config file; `None` for any other buffer.
    pub fn sheet(&self, uri: &Url) -> Option<Arc<Sheet>> {
        // Asked about every file in which somebody types, so what is no config file is not looked at any further.
        let document = self.documents.get(uri)?;
        if self.is_config(&document) { self.sheets().open.get(uri).cloned() } else { None }
    }
}

impl Shelf {
    fn state(&self, saved: Arc<Loaded>, settings: Arc<Settings>, buffers: Vec<Document>) -> Arc<State> {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |state: &State| {
            Arc::ptr_eq(&state.saved, &saved) && Arc::ptr_eq(&state.settings, &settings) && state.buffers == buffers
        };
        match newest.as_ref().filter(|state| same(state)) {
            Some(state) => state.clone(),
            None => newest.insert(Arc::new(State { saved, settings, buffers, made: OnceLock::new() })).clone(),
        }
    }
}

impl Sheets {
    fn make(engine: &Engine, state: &State, encoding: Encoding) -> Self {
        let known: Vec<(&Document, Option<Arc<Path>>)> = state
            .buffers
            .iter()
            .map(|buffer| (buffer, buffer.path.as_deref().and_then(|path| source_of(&state.saved, path))))
            .collect();
        let loaded = picture(engine, &state.saved, &known);
        let sheet = |(buffer, source): (&Document, Option<Arc<Path>>)| {
            let path = buffer.path.as_deref()?;
            let alone = || (path.into(), Arc::new(alone(path, buffer, &state.settings)));
            let nothing_runs = source.is_none().then(Arc::default);
            let (path, loaded) = source.map(|source| (source, loaded.clone())).unwrap_or_else(alone);
            let sheet = Sheet {
                unsaved: state.saved.file(&path).is_some_and(|file| file.text != buffer.text),
                places: Places::new(&buffer.text, encoding),
                document: buffer.clone(),
                path,
                loaded,
                nothing_runs,
            };
            Some((buffer.uri.clone(), Arc::new(sheet)))
        };
        Self { open: known.into_iter().filter_map(sheet).collect(), loaded }
    }
}

/// All config files, the open ones as they stand in the editor.
fn picture(engine: &Engine, saved: &Arc<Loaded>, buffers: &[(&Document, Option<Arc<Path>>)]) -> Arc<Loaded> {
    let changed = |path: &Path, buffer: &Document| {
        saved.file(path).is_none_or(|file| !file.exists || !file.valid || file.text != buffer.text)
    };
    let overlay: BTreeMap<PathBuf, Arc<str>> = buffers
        .iter()
        .filter_map(|(buffer, source)| Some((source.as_deref()?, buffer)))
        .filter(|(path, buffer)| changed(path, buffer))
        .map(|(path, buffer)| (path.to_owned(), buffer.text.clone()))
        .collect();
    if overlay.is_empty() { saved.clone() } else { Arc::new(engine.preview(&overlay)) }
}

/// The path under which the engine knows this file; the editor may have come to it through another link.
fn source_of(loaded: &Loaded, path: &Path) -> Option<Arc<Path>> {
    if let Some(file) = loaded.file(path) {
        return Some(file.source.path.clone());
    }
    let real = path.canonicalize().ok()?;
    let same = |file: &&File| file.source.path.canonicalize().is_ok_and(|other| other == real);
    loaded.files.iter().find(same).map(|file| file.source.path.clone())
}

/// A file that is named like a config file, but of no workspace folder: looked at for itself.
fn alone(path: &Path, buffer: &Document, settings: &Settings) -> Loaded {
    let source = Source { path: path.into(), scope: Scope::Project, folder: path.parent().map(Into::into) };
    config::load(&[(source, Content::Text(buffer.text.clone()))], &BTreeMap::new(), &settings.limits)
}
