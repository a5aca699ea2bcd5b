//! The question of an agent's hook: one line with it, one line with the answer. Nothing else can be asked this way.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::handshake::{self, Front, Hello};
use super::join::join_running;
use super::open_workspaces::OpenWorkspaces;
use crate::engine::Shared;
use crate::engine::folders::ClaimedBy;
use crate::engine::gate::agent_tool::{HookAnswer, HookQuestion};
use crate::paths::Paths;
use crate::server::process::MARK;

/// How long a hook may take to send its question.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers the question of a hook. Ends without an answer if the hook has gone.
pub async fn answer(
    shared: &Shared,
    workspaces: &OpenWorkspaces,
    root: PathBuf,
    process: Option<u32>,
    mut read: BufReader<OwnedReadHalf>,
    mut write: OwnedWriteHalf,
) {
    let mut line = Vec::new();
    let mut bounded = (&mut read).take(handshake::MAX_HOOK as u64);
    let read_line = tokio::time::timeout(QUESTION_TIMEOUT, bounded.read_until(b'\n', &mut line)).await;
    let question = read_line.ok().and_then(|_| serde_json::from_slice::<HookQuestion>(&line).ok());
    let Some(question) = question else {
        tracing::warn!("a hook without a valid question");
        return;
    };
    drop(line);
    let mut rest = tokio::io::sink();
    let answer = tokio::select! {
        answer = answer_in(shared, workspaces, root, process, question) => answer,
        // Ends when the hook is killed, for example because the agent has ended.
        _ = tokio::io::copy(&mut read, &mut rest) => return,
    };
    write.write_all(&handshake::line(&answer)).await.ok();
}

async fn answer_in(
    shared: &Shared,
    workspaces: &OpenWorkspaces,
    root: PathBuf,
    process: Option<u32>,
    question: HookQuestion,
) -> HookAnswer {
    if workspaces.is_open(&root) {
        let workspace = workspaces.join(root.clone()).await;
        // Returns when the rules of this folder apply: its other fronts may have just connected.
        let claim = workspace.engine.claim(ClaimedBy::Agent);
        claim.set(vec![root]).await;
        return workspace.engine.answer_hook(question, process).await;
    }
    // A question must not start servers.
    let engine = shared.open_on_demand();
    engine.set_folders(vec![root]).await;
    let answer = engine.answer_hook(question, process).await;
    engine.close().await;
    answer
}

/// Asks the engine that runs for this folder. `None` if there is none, or if it does not take the question.
pub fn ask_running(
    folder: &Path,
    root: &Path,
    paths: &Paths,
    question: &HookQuestion,
    limit: Duration,
) -> Option<HookAnswer> {
    let hello = Hello { mark: std::env::var(MARK).ok(), ..Hello::of(Front::Hook, root) };
    let mut joined = join_running(folder, paths, &hello).ok().flatten()?;
    let answered = joined.ask(&handshake::line(question), limit);
    let answer = answered.ok().and_then(|line| serde_json::from_slice(&line).ok());
    Some(answer.unwrap_or_else(|| HookAnswer::Ask("the engine of mcp-sidecar did not answer".to_owned())))
}
