//! Keeps the editor's diagnostics of all config files right: those it has open, as they are typed, and those on disk
//! that nobody has opened; what is wrong with the texts, and what went wrong with their servers.
//!
//! Works on the newest picture and never queues: while it computes, any number of changes come to one more round.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tower_lsp::lsp_types::notification::PublishDiagnostics;
use tower_lsp::lsp_types::{Diagnostic, PublishDiagnosticsParams, Url};

use super::convert::{self, Places};
use super::documents::Document;
use super::look;
use super::seat::Seat;
use crate::config::{File, Loaded, tree};
use crate::engine::Engine;
use crate::engine::snapshot::Snapshot;
use crate::ide;
use crate::ide::live::Facts;
use crate::ide::sight::Sight;
use crate::text::lines::Encoding;

/// What the editor shows for one file: which version of its buffer it is about, and what.
type Shown = (Option<i32>, Vec<Diagnostic>);

/// What a round was computed from.
#[derive(Default)]
struct Seen {
    loaded: Option<Arc<Loaded>>,
    buffers: Vec<Document>,
    facts: Facts,
    /// All files, the open ones as they stand in the editor: kept, as servers change more often than texts.
    picture: Arc<Loaded>,
}

/// Publishes until the session drops it.
pub async fn publish(seat: Arc<Seat>) {
    let mut loaded = seat.engine.loaded();
    let mut snapshot = seat.engine.snapshot();
    let mut changes = seat.documents.changes();
    let mut seen = Seen::default();
    let mut shown = BTreeMap::new();
    loaded.mark_changed();
    loop {
        tokio::select! {
            alive = loaded.changed() => if alive.is_err() { return },
            alive = snapshot.changed() => if alive.is_err() { return },
            alive = changes.changed() => if alive.is_err() { return },
        }
        let files = loaded.borrow_and_update().clone();
        let servers = snapshot.borrow_and_update().clone();
        changes.mark_unchanged();
        let round = round(&seat, files, servers, &mut seen, &mut shown);
        if AssertUnwindSafe(round).catch_unwind().await.is_err() {
            tracing::error!("the diagnostics of this state of the files could not be computed");
        }
    }
}

async fn round(
    seat: &Seat,
    loaded: Arc<Loaded>,
    snapshot: Arc<Snapshot>,
    seen: &mut Seen,
    shown: &mut BTreeMap<Url, Shown>,
) {
    let buffers: Vec<Document> = seat.documents.all().into_iter().filter(|buffer| seat.is_config(buffer)).collect();
    let same_texts = seen.buffers == buffers && seen.loaded.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &loaded));
    let facts = Facts::of(&snapshot);
    if same_texts && facts == seen.facts {
        return;
    }
    let (engine, encoding) = (seat.engine.clone(), seat.greeting().encoding);
    let known = same_texts.then(|| seen.picture.clone());
    let (files, open) = (loaded.clone(), buffers.clone());
    // Files may be read and large texts parsed: not on a thread that answers requests.
    let computed = tokio::task::spawn_blocking(move || {
        let picture = known.unwrap_or_else(|| look::picture(&engine, &files, &open));
        let wanted = compute(&engine, &picture, &snapshot, &open, encoding);
        (picture, wanted)
    });
    let Ok((picture, wanted)) = computed.await else { return };
    *seen = Seen { loaded: Some(loaded), buffers, facts, picture };
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
fn compute(
    engine: &Engine,
    picture: &Loaded,
    snapshot: &Snapshot,
    buffers: &[Document],
    encoding: Encoding,
) -> BTreeMap<Url, Shown> {
    let mut by_path = BTreeMap::new();
    let mut wanted = BTreeMap::new();
    let depth = engine.settings().borrow().limits.config_depth;
    for buffer in buffers {
        let Some(path) = &buffer.path else { continue };
        match look::source_of(picture, path) {
            Some(source) => _ = by_path.insert(source, buffer),
            None => {
                let alone = look::alone(engine, path, buffer);
                if let Some(file) = alone.files.first() {
                    let told = tell(file, &alone, &Snapshot::default(), depth, encoding);
                    wanted.insert(buffer.uri.clone(), (Some(buffer.version), told));
                }
            }
        }
    }
    for file in &picture.files {
        let diagnostics = tell(file, picture, snapshot, depth, encoding);
        match by_path.get(&*file.source.path) {
            Some(buffer) => _ = wanted.insert(buffer.uri.clone(), (Some(buffer.version), diagnostics)),
            None if diagnostics.is_empty() => {}
            None => _ = convert::uri(&file.source.path).map(|uri| wanted.insert(uri, (None, diagnostics))),
        }
    }
    wanted
}

/// What is wrong with the text of a file, and with what runs because of it.
fn tell(file: &File, loaded: &Loaded, snapshot: &Snapshot, depth: usize, encoding: Encoding) -> Vec<Diagnostic> {
    let places = Places::new(&file.text, encoding);
    let tree = tree::parse(&file.text, depth);
    let sight = Sight { text: &file.text, tree: &tree, path: &file.source.path, loaded, snapshot };
    let live = if file.exists { ide::live::live(&sight) } else { Vec::new() };
    ide::diagnostics::diagnostics(file, live).iter().map(|problem| places.diagnostic(problem, loaded)).collect()
}
