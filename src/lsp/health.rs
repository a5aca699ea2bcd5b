//! Tells the user what is wrong with the sidecar's own files: settings that do not count, decisions and calls that
//! cannot be kept.

use tower_lsp::lsp_types::notification::ShowMessage;
use tower_lsp::lsp_types::{MessageType, ShowMessageParams};

use super::editor::Editor;
use crate::engine::Engine;
use crate::settings::Settings;
use crate::store::Health;

/// Runs until the editor has gone. Each state is told once, and nothing while all is well. `named` says that this is an
/// editor and not a shell command that leaves at once.
pub async fn tell(engine: Engine, editor: Editor, named: bool) {
    if let Some(message) = settings(&engine) {
        editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::WARNING, message }).await;
    }
    if named {
        tell_of_private_folders(&engine, &editor).await;
    }
    let mut health = engine.health();
    let mut told = Health::default();
    loop {
        let now = health.borrow_and_update().clone();
        let news = [
            now.problem.clone().filter(|_| now.problem != told.problem).map(|problem| {
                format!("mcp-sidecar: {problem}; until that is mended, what you decide holds only while this runs")
            }),
            now.notice.clone().filter(|_| now.notice != told.notice).map(|notice| format!("mcp-sidecar: {notice}")),
        ];
        for message in news.into_iter().flatten() {
            editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::WARNING, message }).await;
        }
        told = now;
        tokio::select! {
            Ok(()) = health.changed() => {}
            () = editor.gone() => return,
        }
    }
}

/// Servers of the user ran in the open project before version 0.2; after the upgrade the user is told once.
async fn tell_of_private_folders(engine: &Engine, editor: &Editor) {
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
        "mcp-sidecar: your own servers no longer run in the open project, but in private folders: {}. If a server needs \
         the project, add \"cwd\": \"${{workspaceFolder}}\" to its entry.",
        names.join(", ")
    );
    editor.notify::<ShowMessage>(&ShowMessageParams { typ: MessageType::INFO, message }).await;
}

/// What in `config.toml` is not as it should be.
fn settings(engine: &Engine) -> Option<String> {
    let problems = Settings::from_file(engine.paths()).problems;
    let told: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
    let file = engine.paths().settings_file();
    (!told.is_empty()).then(|| format!("{}: {}", file.display(), told.join("; ")))
}
