//! Keeps the editor's diagnostics of all config files right: those it has open, as they are typed, and those on disk
//! that nobody has opened.
//!
//! Works on the newest picture and never queues: while it computes, any number of changes come to one more round.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use tower_lsp::lsp_types::notification::PublishDiagnostics;
use tower_lsp::lsp_types::{Diagnostic, PublishDiagnosticsParams, Url};

use super::convert::{self, Places};
use super::documents::Document;
use super::seat::Seat;
use crate::config::{self, Content, File, Loaded, Source};
use crate::engine::Engine;
use crate::ide;
use crate::model::Scope;
use crate::text::lines::Encoding;

/// What the editor shows for one file: which version of its buffer it is about, and what.
type Shown = (Option<i32>, Vec<Diagnostic>);

/// What a round was computed from.
#[derive(Default)]
struct Seen {
    loaded: Option<Arc<Loaded>>,
    buffers: Vec<Document>,
}

/// Publishes until the session drops it.
pub async fn publish(seat: Arc<Seat>) {
    let mut loaded = seat.engine.loaded();
    let mut changes = seat.documents.changes();
    let mut seen = Seen::default();
    let mut shown = BTreeMap::new();
    loaded.mark_changed();
    loop {
        tokio::select! {
            alive = loaded.changed() => if alive.is_err() { return },
            alive = changes.changed() => if alive.is_err() { return },
        }
        let picture = loaded.borrow_and_update().clone();
        changes.mark_unchanged();
        let round = round(&seat, picture, &mut seen, &mut shown);
        if AssertUnwindSafe(round).catch_unwind().await.is_err() {
            tracing::error!("the diagnostics of this state of the files could not be computed");
        }
    }
}

async fn round(seat: &Seat, loaded: Arc<Loaded>, seen: &mut Seen, shown: &mut BTreeMap<Url, Shown>) {
    let buffers: Vec<Document> = seat.documents.all().into_iter().filter(|buffer| seat.is_config(buffer)).collect();
    if seen.buffers == buffers && seen.loaded.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &loaded)) {
        return;
    }
    *seen = Seen { loaded: Some(loaded.clone()), buffers: buffers.clone() };
    let (engine, encoding) = (seat.engine.clone(), seat.greeting().encoding);
    // Files may be read and large texts parsed: not on a thread that answers requests.
    let Ok(wanted) = tokio::task::spawn_blocking(move || compute(&engine, &loaded, &buffers, encoding)).await else {
        return;
    };
    for (uri, (version, diagnostics)) in difference(shown, &wanted) {
        let params = PublishDiagnosticsParams { uri, diagnostics, version };
        seat.editor.notify::<PublishDiagnostics>(&params).await;
    }
    *shown = wanted;
}

/// What changed, with an empty list for what is gone.
fn difference(shown: &BTreeMap<Url, Shown>, wanted: &BTreeMap<Url, Shown>) -> Vec<(Url, Shown)> {
    let cleared = shown
        .iter()
        .filter(|(uri, (_, diagnostics))| !diagnostics.is_empty() && !wanted.contains_key(uri))
        .map(|(uri, _)| (uri.clone(), (None, Vec::new())));
    let changed = wanted.iter().filter(|(uri, new)| shown.get(uri) != Some(new));
    cleared.chain(changed.map(|(uri, new)| (uri.clone(), new.clone()))).collect()
}

/// The diagnostics of every config file; an open buffer counts in place of its file.
fn compute(engine: &Engine, loaded: &Loaded, buffers: &[Document], encoding: Encoding) -> BTreeMap<Url, Shown> {
    let mut overlay = BTreeMap::new();
    let mut by_path = BTreeMap::new();
    let mut wanted = BTreeMap::new();
    for buffer in buffers {
        let Some(path) = &buffer.path else { continue };
        match source_of(loaded, path) {
            Some(source) => {
                overlay.insert(source.clone(), buffer.text.clone());
                by_path.insert(source, buffer);
            }
            // Named like a config file, but of no workspace folder: looked at for itself.
            None => {
                let alone = alone(engine, path, buffer);
                if let Some(file) = alone.files.first() {
                    wanted.insert(buffer.uri.clone(), (Some(buffer.version), tell(file, &alone, encoding)));
                }
            }
        }
    }
    let preview = (!overlay.is_empty()).then(|| engine.preview(&overlay));
    let picture = preview.as_ref().unwrap_or(loaded);
    for file in &picture.files {
        let diagnostics = tell(file, picture, encoding);
        match by_path.get(&*file.source.path) {
            Some(buffer) => _ = wanted.insert(buffer.uri.clone(), (Some(buffer.version), diagnostics)),
            None if diagnostics.is_empty() => {}
            None => _ = convert::uri(&file.source.path).map(|uri| wanted.insert(uri, (None, diagnostics))),
        }
    }
    wanted
}

fn tell(file: &File, loaded: &Loaded, encoding: Encoding) -> Vec<Diagnostic> {
    let places = Places::new(&file.text, encoding);
    ide::diagnostics::diagnostics(file).iter().map(|problem| places.diagnostic(problem, loaded)).collect()
}

/// The path under which the engine knows this file; the editor may have come to it through another link.
pub(super) fn source_of(loaded: &Loaded, path: &Path) -> Option<PathBuf> {
    if loaded.file(path).is_some() {
        return Some(path.to_owned());
    }
    let real = path.canonicalize().ok()?;
    let same = |file: &&File| file.source.path.canonicalize().is_ok_and(|other| other == real);
    loaded.files.iter().find(same).map(|file| file.source.path.to_path_buf())
}

fn alone(engine: &Engine, path: &Path, buffer: &Document) -> Loaded {
    let source = Source { path: path.into(), scope: Scope::Project, folder: path.parent().map(Into::into) };
    let limits = engine.settings().borrow().limits.clone();
    config::load(&[(source, Content::Text(buffer.text.clone()))], &BTreeMap::new(), &limits)
}
