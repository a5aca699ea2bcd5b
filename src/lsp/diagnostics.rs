//! Keeps the editor's diagnostics of all config files right: those it has open, as they are typed, and those on disk
//! that nobody has opened; what is wrong with the texts, and what went wrong with their servers.
//!
//! Works on the newest picture and never queues: while it computes, any number of changes come to one more round.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use tower_lsp::lsp_types::notification::PublishDiagnostics;
use tower_lsp::lsp_types::{CodeDescription, Diagnostic, PublishDiagnosticsParams, Url};

use super::convert::{self, Places};
use super::reference;
use super::seat::Seat;
use super::sheets::Sheets;
use crate::config::{File, Loaded, Problem};
use crate::engine::snapshot::Snapshot;
use crate::ide;
use crate::ide::live::Facts;
use crate::ide::page::Page;

/// What the editor shows for one file: which version of its buffer it is about, and what.
type Shown = (Option<i32>, Vec<Diagnostic>);

/// What a round was computed from.
#[derive(Default)]
struct Seen {
    sheets: Option<Arc<Sheets>>,
    facts: Facts,
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
        loaded.mark_unchanged();
        let servers = snapshot.borrow_and_update().clone();
        changes.mark_unchanged();
        let round = round(&seat, servers, &mut seen, &mut shown);
        if AssertUnwindSafe(round).catch_unwind().await.is_err() {
            tracing::error!("the diagnostics of this state of the files could not be computed");
        }
    }
}

async fn round(seat: &Arc<Seat>, snapshot: Arc<Snapshot>, seen: &mut Seen, shown: &mut BTreeMap<Url, Shown>) {
    let facts = Facts::of(&snapshot);
    let known = seen.sheets.clone().filter(|_| facts == seen.facts);
    let there = seat.clone();
    // Files may be read and large texts parsed: not on a thread that answers requests.
    let computed = tokio::task::spawn_blocking(move || {
        let sheets = there.sheets();
        let same = known.is_some_and(|known| Arc::ptr_eq(&known, &sheets));
        let wanted = (!same).then(|| compute(&there, &sheets, &snapshot));
        (sheets, wanted)
    });
    let Ok((sheets, Some(wanted))) = computed.await else { return };
    *seen = Seen { sheets: Some(sheets), facts };
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
fn compute(seat: &Seat, sheets: &Sheets, snapshot: &Snapshot) -> BTreeMap<Url, Shown> {
    let mut wanted = BTreeMap::new();
    let reference = seat.reference();
    let tell = |file: &File, loaded: &Loaded, snapshot: &Snapshot, places: &Places| -> Vec<Diagnostic> {
        let page = Page::of(file, loaded, snapshot, &seat.variables);
        let explained = |problem: &Problem| Diagnostic {
            code_description: reference
                .and_then(|reference| reference::place(reference, problem.code))
                .map(|href| CodeDescription { href }),
            ..places.diagnostic(problem, loaded)
        };
        ide::diagnostics::diagnostics(&page, file).iter().map(explained).collect()
    };
    for sheet in sheets.open.values() {
        if let Some(file) = sheet.file() {
            let snapshot = sheet.nothing_runs.as_deref().unwrap_or(snapshot);
            let told = tell(file, &sheet.loaded, snapshot, &sheet.places);
            wanted.insert(sheet.document.uri.clone(), (Some(sheet.document.version), told));
        }
    }
    let is_open = |file: &File| sheets.open.values().any(|sheet| sheet.path == file.source.path);
    for file in sheets.loaded.files.iter().filter(|file| !is_open(file)) {
        let places = Places::new(&file.text, seat.greeting().encoding);
        let told = tell(file, &sheets.loaded, snapshot, &places);
        if !told.is_empty() {
            convert::uri(&file.source.path).map(|uri| wanted.insert(uri, (None, told)));
        }
    }
    wanted
}
