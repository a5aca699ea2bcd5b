//! Keeps the editor's diagnostics of all config files up to date: open files as they are typed, and files on disk that
//! are not open. They cover mistakes in the texts and failures of their servers.
//!
//! Always uses the latest state and never queues: changes that arrive during a round are handled in one more round.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use lsp_types::notification::PublishDiagnostics;
use lsp_types::{CodeDescription, Diagnostic, PublishDiagnosticsParams, Url};

use super::convert::{self, PositionMap};
use super::open_config::OpenConfigs;
use super::reference;
use super::session::EditorSession;
use crate::config::{File, Problem};
use crate::engine::snapshot::Snapshot;
use crate::ide;
use crate::ide::config_view::ConfigView;
use crate::ide::live::LiveState;

/// The diagnostics of one file, with the version of its buffer.
type Published = (Option<i32>, Vec<Diagnostic>);

/// The inputs of the previous round.
#[derive(Default)]
struct Previous {
    configs: Option<Arc<OpenConfigs>>,
    live: LiveState,
}

/// Publishes diagnostics until the session drops this future.
pub async fn publish(session: Arc<EditorSession>) {
    let mut loaded = session.engine.loaded();
    let mut snapshot = session.engine.snapshot();
    let mut changes = session.documents.changes();
    let mut previous = Previous::default();
    let mut published = BTreeMap::new();
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
        let round = round(&session, servers, &mut previous, &mut published);
        if AssertUnwindSafe(round).catch_unwind().await.is_err() {
            tracing::error!("computing diagnostics panicked");
        }
    }
}

async fn round(
    session: &Arc<EditorSession>,
    snapshot: Arc<Snapshot>,
    previous: &mut Previous,
    published: &mut BTreeMap<Url, Published>,
) {
    let live = LiveState::of(&snapshot);
    let before = previous.configs.clone().filter(|_| live == previous.live);
    let own_session = session.clone();
    // This may read files and parse large texts, so it must not block a thread that answers requests.
    let computed = tokio::task::spawn_blocking(move || {
        let configs = own_session.open_configs();
        let same = before.is_some_and(|before| Arc::ptr_eq(&before, &configs));
        let current = (!same).then(|| compute(&own_session, &configs, &snapshot));
        (configs, current)
    });
    let Ok((configs, Some(current))) = computed.await else { return };
    *previous = Previous { configs: Some(configs), live };
    for (uri, (version, diagnostics)) in difference(published, &current) {
        let params = PublishDiagnosticsParams { uri, diagnostics, version };
        session.editor.notify::<PublishDiagnostics>(&params).await;
    }
    *published = current;
}

/// The files whose diagnostics changed, with an empty list for each file that has none any more.
fn difference(published: &BTreeMap<Url, Published>, current: &BTreeMap<Url, Published>) -> Vec<(Url, Published)> {
    let cleared = published
        .iter()
        .filter(|(uri, (_, diagnostics))| !diagnostics.is_empty() && !current.contains_key(uri))
        .map(|(uri, _)| (uri.clone(), (None, Vec::new())));
    let changed = current.iter().filter(|(uri, new)| published.get(uri) != Some(new));
    cleared.chain(changed.map(|(uri, new)| (uri.clone(), new.clone()))).collect()
}

/// The diagnostics of every config file; an open buffer replaces its file.
fn compute(session: &EditorSession, configs: &OpenConfigs, snapshot: &Arc<Snapshot>) -> BTreeMap<Url, Published> {
    let mut current = BTreeMap::new();
    let reference = session.reference();
    let diagnostics = |config: &ConfigView<'_>, positions: &PositionMap| -> Vec<Diagnostic> {
        let linked = |problem: &Problem| Diagnostic {
            code_description: reference
                .and_then(|reference| reference::link(reference, problem.code))
                .map(|href| CodeDescription { href }),
            ..positions.diagnostic(problem, config.loaded)
        };
        ide::diagnostics::diagnostics(config).iter().map(linked).collect()
    };
    for config in configs.open.values().map(|config| config.at(snapshot)) {
        if let Some(view) = config.view() {
            let found = diagnostics(&view, &config.positions);
            current.insert(config.uri().clone(), (Some(config.document.version), found));
        }
    }
    let is_open = |file: &File| configs.open.values().any(|config| config.path == file.source.path);
    for file in configs.loaded.files.iter().filter(|file| !is_open(file)) {
        let view = ConfigView::of(file, &configs.loaded, snapshot, &session.variables);
        let found = diagnostics(&view, &PositionMap::new(&file.text, session.info().encoding));
        if !found.is_empty() {
            convert::uri(&file.source.path).map(|uri| current.insert(uri, (None, found)));
        }
    }
    current
}
