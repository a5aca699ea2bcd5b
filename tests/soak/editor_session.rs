//! One window of an editor with our plugin: its connection, and its user, who answers questions at random.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use mcp_sidecar::lsp_client::{CommandError, Event, Events, LspClient};
use mcp_sidecar::protocol::commands::ApprovalResolve;
use mcp_sidecar::protocol::errors::ErrorKind;
use mcp_sidecar::protocol::events::ApprovalsChanged;
use mcp_sidecar::protocol::types::{Approval, ApprovalKind};
use serde_json::json;
use tokio::process::Child;

use crate::world::{PATIENCE, World};

/// What LSP responds to every request of an editor that has said goodbye.
const AFTER_SHUTDOWN: i64 = -32600;

/// How long an engine that was killed may still respond.
const JUST_KILLED: Duration = Duration::from_secs(1);

pub struct EditorSession {
    pub client: LspClient,
    front: Child,
}

impl EditorSession {
    /// Starts the front. `None` if it ended before it responded.
    pub async fn open(world: &Arc<World>, rng: Rng) -> Option<Self> {
        let (front, output, input) = world.start("lsp");
        let (client, events) = LspClient::connect(output, input);
        let user = User { world: world.clone(), client: client.clone(), rng, seen: BTreeSet::new() };
        tokio::spawn(user.listen(events));
        let abilities = json!({ "version": "1", "approvals": true, "elicitation": true });
        client.initialize(Some(&world.home.project()), abilities).await.ok()?;
        Some(Self { client, front })
    }

    pub async fn quit(mut self, world: &World) -> Result<(), String> {
        // If the engine was killed, there is nobody to say goodbye to, or nobody who knows that the editor did.
        let began = Instant::now();
        let said_goodbye = self.client.shut_down().await.is_ok();
        match tokio::time::timeout(PATIENCE, self.front.wait()).await {
            Ok(Ok(status)) if status.success() || !said_goodbye => Ok(()),
            Ok(Ok(_)) if world.model.since_kill() < began.elapsed() + JUST_KILLED => Ok(()),
            Ok(status) => Err(format!("the front of an editor that left ended with {status:?}")),
            Err(_) => Err("the front of an editor that left does not end".to_owned()),
        }
    }

    pub async fn kill(mut self) {
        self.front.kill().await.ok();
    }
}

/// Whether the answer is missing because the engine or the front has ended.
pub fn is_lost(error: &CommandError) -> bool {
    error.data.is_none() && error.message.contains("ended")
}

struct User {
    world: Arc<World>,
    client: LspClient,
    rng: Rng,
    /// Questions that this user has seen.
    seen: BTreeSet<String>,
}

impl User {
    async fn listen(mut self, mut events: Events) {
        while let Some(event) = events.recv().await {
            match event {
                Event::Notification(notification) => {
                    self.world.news.send_modify(|count| *count += 1);
                    if let Some(ApprovalsChanged { approvals, .. }) = notification.parse() {
                        self.look(approvals);
                    }
                }
                // The browser of the user: follows the sign-in page back to the sidecar.
                Event::Request(request) if request.method == "window/showDocument" => {
                    let page = request.params["uri"].as_str().unwrap_or_default().to_owned();
                    tokio::spawn(async move { reqwest::get(page).await.ok() });
                    request.respond(&json!({ "success": true }));
                }
                Event::Request(request) => request.respond(&json!(null)),
                Event::Invalid(reason) => self.world.model.violation(format!("an editor got {reason}")),
            }
        }
    }

    fn look(&mut self, approvals: Vec<Approval>) {
        for approval in approvals {
            if !self.seen.insert(approval.id.clone()) {
                continue;
            }
            if approval.kind == ApprovalKind::Tool {
                let token = approval.arguments.as_ref().and_then(|arguments| arguments["text"].as_str());
                self.world.model.asked(token.unwrap_or_default(), approval.server.as_str());
            }
            let decision = match (approval.kind, self.rng.u32(..10)) {
                (ApprovalKind::Tool, 0..5) => "allow-once",
                (ApprovalKind::Tool, 5) => "allow-session",
                (ApprovalKind::Tool, 6..9) => "deny",
                (ApprovalKind::Trust, 1..10) => "allow-project",
                // The user does not look.
                _ => continue,
            };
            let delay = Duration::from_millis(self.rng.u64(..300));
            tokio::spawn(answer(self.world.clone(), self.client.clone(), approval, decision, delay));
        }
    }
}

async fn answer(world: Arc<World>, client: LspClient, approval: Approval, decision: &'static str, delay: Duration) {
    tokio::time::sleep(delay).await;
    let resolve = client.call(ApprovalResolve::one(&approval.id, decision));
    match tokio::time::timeout(PATIENCE, resolve).await {
        Ok(Ok(_)) => world.model.count("answered questions"),
        // Another editor was first, the time is over, or the caller has gone.
        Ok(Err(error)) if error.kind() == Some(ErrorKind::NotFound) => world.model.count("late answers"),
        Ok(Err(error)) if is_lost(&error) || error.code == AFTER_SHUTDOWN => {}
        Ok(Err(error)) => {
            world.model.violation(format!("`{decision}` was refused: {error:?}, for {:?}", approval.options));
        }
        Err(_) => world.model.violation("an answer to a question hangs".to_owned()),
    }
}
