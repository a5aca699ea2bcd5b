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
use crate::config::{Content, File, Loaded, Problem};
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
    settings: Option<SettingsText>,
}

/// The text of `config.toml`: of its buffer, or otherwise of the file.
#[derive(Clone, PartialEq, Eq)]
struct SettingsText {
    uri: Url,
    version: Option<i32>,
    text: Arc<str>,
}

/// Publishes diagnostics until the session drops this future.
pub async fn publish(session: Arc<EditorSession>) {
    let mut loaded = session.engine.loaded();
    let mut snapshot = session.engine.snapshot();
    let mut changes = session.documents.changes();
    let mut folders = session.folders_settled();
    let mut settings = session.engine.settings_file();
    let mut previous = Previous::default();
    let mut published = BTreeMap::new();
    loaded.mark_changed();
    loop {
        tokio::select! {
            alive = loaded.changed() => if alive.is_err() { return },
            alive = snapshot.changed() => if alive.is_err() { return },
            alive = changes.changed() => if alive.is_err() { return },
            alive = folders.changed() => if alive.is_err() { return },
            alive = settings.changed() => if alive.is_err() { return },
        }
        folders.mark_unchanged();
        settings.mark_unchanged();
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
    let settings = settings_text(session);
    let before = previous.configs.clone().filter(|_| live == previous.live && settings == previous.settings);
    let settings_now = settings.clone();
    let own_session = session.clone();
    // This may read files and parse large texts, so it must not block a thread that answers requests.
    let computed = tokio::task::spawn_blocking(move || {
        let configs = own_session.open_configs();
        let same = before.is_some_and(|before| Arc::ptr_eq(&before, &configs));
        let current = (!same).then(|| compute(&own_session, &configs, &snapshot, settings_now.as_ref()));
        (configs, current)
    });
    let Ok((configs, Some(current))) = computed.await else { return };
    *previous = Previous { configs: Some(configs), live, settings };
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

fn settings_text(session: &EditorSession) -> Option<SettingsText> {
    let uri = convert::uri(&session.engine.paths().settings_file())?;
    let open = session.documents.all().into_iter().find(|document| session.settings_document(&document.uri).is_some());
    if let Some(document) = open {
        let version = document.known_version();
        return Some(SettingsText { uri: document.uri, version, text: document.text });
    }
    match session.engine.settings_file().borrow().as_ref()? {
        Content::Text(text) => Some(SettingsText { uri, version: None, text: text.clone() }),
        _ => None,
    }
}

/// The diagnostics of every config file and of `config.toml`; an open buffer replaces its file.
fn compute(
    session: &EditorSession,
    configs: &OpenConfigs,
    snapshot: &Arc<Snapshot>,
    settings: Option<&SettingsText>,
) -> BTreeMap<Url, Published> {
    let mut current = BTreeMap::new();
    let reference = session.reference();
    let linked = |problem: &Problem, positions: &PositionMap, loaded: &Loaded| Diagnostic {
        code_description: reference
            .and_then(|reference| reference::link(reference, problem.code.as_str()))
            .map(|href| CodeDescription { href }),
        ..positions.diagnostic(problem, loaded)
    };
    let diagnostics = |config: &ConfigView<'_>, positions: &PositionMap| -> Vec<Diagnostic> {
        let problems = ide::diagnostics::diagnostics(config);
        problems.iter().map(|problem| linked(problem, positions, config.loaded)).collect()
    };
    if let Some(SettingsText { uri, version, text }) = settings {
        let positions = PositionMap::new(text, session.info().encoding);
        let problems = ide::settings_file::diagnostics(text);
        let found: Vec<Diagnostic> =
            problems.iter().map(|problem| linked(problem, &positions, &configs.loaded)).collect();
        if version.is_some() || !found.is_empty() {
            current.insert(uri.clone(), (*version, found));
        }
    }
    for config in configs.open.values().map(|config| config.at(snapshot)) {
        if let Some(view) = config.view() {
            let found = diagnostics(&view, &config.positions);
            current.insert(config.uri().clone(), (config.document.known_version(), found));
        }
    }
    let environments = session.engine.environments();
    let is_open = |file: &File| configs.open.values().any(|config| config.path == file.source.path);
    for file in configs.loaded.files.iter().filter(|file| !is_open(file)) {
        let variables = environments.names(file.source.folder.as_deref());
        let view = ConfigView::of(file, &configs.loaded, snapshot, &variables);
        let found = diagnostics(&view, &PositionMap::new(&file.text, session.info().encoding));
        if !found.is_empty() {
            convert::uri(&file.source.path).map(|uri| current.insert(uri, (None, found)));
        }
    }
    current
}
