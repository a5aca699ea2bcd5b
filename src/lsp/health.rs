//! Shows problems with the sidecar's own files: invalid settings, rules that cannot be read, and decisions and calls that
//! cannot be stored or exported.

use lsp_types::notification::ShowMessage;
use lsp_types::{MessageType, ShowMessageParams};
use tokio::sync::watch;

use super::editor::Editor;
use crate::config::{Content, File, Loaded, Severity};
use crate::engine::Engine;
use crate::model::Scope;
use crate::settings::Settings;
use crate::store::Health;

/// Runs until the editor disconnects. Shows each problem once. `named` is false for a shell command, which disconnects at
/// once.
pub async fn report(engine: Engine, editor: Editor, named: bool) {
    let mut settings = engine.settings_file();
    let mut loaded = engine.loaded();
    let mut reported: Vec<String> = Vec::new();
    if named {
        announce_private_folders(&engine, &editor).await;
    }
    let (mut health, mut newer) = (engine.health(), engine.newer_version());
    let mut export = engine.export_failure();
    let (mut shown, mut shown_failures) = (Health::default(), Vec::new());
    loop {
        let mut problems = invalid_policies(&loaded.borrow_and_update());
        problems.extend(settings_problems(&engine, &mut settings));
        for message in problems.iter().filter(|problem| !reported.contains(*problem)).cloned() {
            editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::WARNING, message }).await;
        }
        reported = problems;
        let now = health.borrow_and_update().clone();
        let news = [
            // Said again for every decision, because each one would be lost.
            now.describe()
                .filter(|_| now.problem != shown.problem || now.unsaved != shown.unsaved)
                .map(|problem| format!("mcp-sidecar: {problem}.")),
            now.notice.clone().filter(|_| now.notice != shown.notice).map(|notice| format!("mcp-sidecar: {notice}")),
        ];
        // Each once, even if the collector only fails now and then.
        let failure = export.borrow_and_update().clone().filter(|failure| !shown_failures.contains(failure));
        let exported = failure.as_ref().map(|failure| format!("mcp-sidecar cannot export calls: {failure}."));
        shown_failures.extend(failure);
        for message in news.into_iter().flatten().chain(exported) {
            editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::WARNING, message }).await;
        }
        shown = now;
        tokio::select! {
            Ok(()) = health.changed() => {}
            Ok(()) = settings.changed() => {}
            Ok(()) = loaded.changed() => {}
            Ok(()) = export.changed() => {}
            Ok(()) = newer.changed() => {
                let version = newer.borrow_and_update().clone();
                announce_newer_version(&editor, &version.unwrap_or_default()).await;
            }
            () = editor.gone() => return,
        }
    }
}

async fn announce_newer_version(editor: &Editor, version: &str) {
    let message = format!(
        "mcp-sidecar {} is installed. This editor and its agents use {} until the editor is closed or its language server \
         is restarted.",
        version,
        env!("CARGO_PKG_VERSION")
    );
    editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::INFO, message }).await;
}

/// Before version 0.2, the user's own servers ran in the open project. The user is informed once after the upgrade.
async fn announce_private_folders(engine: &Engine, editor: &Editor) {
    let mut loaded = engine.loaded();
    tokio::select! {
        read = loaded.wait_for(|loaded| !loaded.files.is_empty()) => drop(read),
        () = editor.gone() => return,
    }
    let servers = engine.moved_to_private_folders().await;
    if servers.is_empty() {
        return;
    }
    let names: Vec<String> = servers.iter().map(|name| format!("`{name}`")).collect();
    let message = format!(
        "mcp-sidecar: some of your servers now run in private folders instead of the open project: {}. If a server \
         needs the project, add \"cwd\": \"${{workspaceFolder}}\" to its entry.",
        names.join(", ")
    );
    editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::INFO, message }).await;
}

/// The files whose rules cannot be read because of an error. They may not be open in any editor.
fn invalid_policies(loaded: &Loaded) -> Vec<String> {
    let files = loaded.config.policies.iter().filter(|policy| policy.is_invalid);
    let files = files.filter_map(|policy| loaded.file(policy.file.as_deref()?));
    let message = |file: &File| {
        let path = file.source.path.display();
        let error = file.problems.iter().find(|problem| problem.severity == Severity::Error);
        let error = error.map_or_else(String::new, |error| format!(" ({})", error.message));
        let until = match file.source.scope {
            Scope::Managed => "so no tool runs until the file is fixed",
            _ => "so you are asked before each call until you fix the file",
        };
        format!("mcp-sidecar: the rules in {path} cannot be read{error}, {until}.")
    };
    files.map(message).collect()
}

/// The problems in `config.toml` as it is now.
fn settings_problems(engine: &Engine, seen: &mut watch::Receiver<Option<Content>>) -> Option<String> {
    seen.mark_unchanged();
    let problems = Settings::from_file(engine.paths()).problems;
    let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
    let file = engine.paths().settings_file();
    (!messages.is_empty()).then(|| format!("{}: {}", file.display(), messages.join("; ")))
}
