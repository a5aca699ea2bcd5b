//! An editor: it calls tools, saves the config, manages servers, signs in and out, leaves or is killed, and comes back.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use mcp_sidecar::lsp_client::CommandError;
use mcp_sidecar::protocol::commands::{
    Calls, CallsVerify, Command, GrantRevoke, Metrics, ServerAuth, ServerRefresh, ServerToggle,
};
use mcp_sidecar::protocol::errors::ErrorKind;
use serde_json::{Value, json};

use crate::actor::Actor;
use crate::editor_session::{EditorSession, is_lost};
use crate::model::Saw;
use crate::support::commands::{name, restart, start, stop, text, tool_call};
use crate::support::uri;
use crate::world::{Change, PATIENCE, SERVERS, World, lock};

pub struct Editor {
    world: Arc<World>,
    number: usize,
    name: String,
    rng: Rng,
    session: Option<EditorSession>,
}

impl Editor {
    pub fn new(world: &Arc<World>, number: usize, rng: Rng) -> Self {
        Self { world: world.clone(), number, name: format!("editor-{number}"), rng, session: None }
    }
}

impl Actor for Editor {
    const PAUSE: Duration = Duration::from_millis(600);

    fn world(&self) -> &Arc<World> {
        &self.world
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn random(&mut self) -> &mut Rng {
        &mut self.rng
    }

    /// Connects if it is not, as the plugin does when its front has ended.
    async fn connect(&mut self) {
        for _ in 0..10 {
            if self.session.is_none() {
                let opened = EditorSession::open(&self.world, self.rng.fork());
                self.session = tokio::time::timeout(PATIENCE, opened).await.unwrap_or_else(|_| {
                    self.world.model.violation(format!("{} cannot connect: it hangs", self.name));
                    None
                });
            }
            if let Some(session) = &self.session
                && self.run_command(Calls { limit: Some(1), ..Default::default() }).await.is_some()
            {
                lock(&self.world.editors).insert(self.number, session.client.clone());
                return;
            }
            // The engine was killed.
            self.session = None;
            lock(&self.world.editors).remove(&self.number);
        }
        self.world.model.violation(format!("{} could not connect ten times", self.name));
    }

    async fn act(&mut self) {
        self.world.note(&self.name, "connects");
        self.connect().await;
        let server = SERVERS[self.rng.usize(..SERVERS.len())];
        let what = self.rng.u32(0..100);
        self.world.note(&self.name, format!("does {what} with {server}"));
        match what {
            0..50 => self.calls().await,
            50..56 => self.cancelled_call(server).await,
            56..62 => {
                self.world.model.count("restarts");
                self.run_command(restart(server)).await;
            }
            62..66 => {
                self.run_command(stop(server)).await;
                self.run_command(start(server)).await;
            }
            66..69 => {
                for enabled in [false, true] {
                    self.run_command(ServerToggle { server: name(server), enabled }).await;
                }
            }
            69..71 => drop(self.run_command(ServerRefresh { server: None, all: true }).await),
            71..80 => self.save(server),
            80..84 => {
                self.world.model.count("sign-outs");
                for sign_out in [true, false] {
                    self.run_command(ServerAuth { server: name("shop"), sign_out }).await;
                }
            }
            84..86 => drop(self.run_command(GrantRevoke { id: None, all: true }).await),
            86..90 => self.read().await,
            90..96 => self.leave().await,
            _ => {
                let calls = self.calls();
                tokio::time::timeout(Duration::from_millis(30), calls).await.ok();
                self.world.model.count("kills of editors");
                lock(&self.world.editors).remove(&self.number);
                if let Some(session) = self.session.take() {
                    session.kill().await;
                }
            }
        }
    }

    async fn leave(&mut self) {
        self.world.model.count("editors that left");
        lock(&self.world.editors).remove(&self.number);
        if let Some(session) = self.session.take()
            && let Err(reason) = session.quit(&self.world).await
        {
            self.world.model.violation(reason);
        }
    }
}

impl Editor {
    /// Runs a command that may fail, but must not hang.
    async fn run_command<C: Command>(&self, command: C) -> Option<C::Answer> {
        let session = self.session.as_ref()?;
        match tokio::time::timeout(PATIENCE, session.client.call(command)).await {
            Ok(answer) => answer.ok(),
            Err(_) => {
                self.world.model.violation(format!("{} of {} hangs", C::NAME, self.name));
                None
            }
        }
    }

    async fn calls(&mut self) {
        let Some(session) = &self.session else { return };
        let servers: Vec<_> = (0..self.rng.usize(1..4)).map(|_| SERVERS[self.rng.usize(..SERVERS.len())]).collect();
        let (model, name) = (&self.world.model, &self.name);
        let calls = servers.into_iter().map(|server| async move {
            let token = model.begin(name, server, "echo");
            let call = tool_call(&format!("mcp__{server}__echo"), json!({ "text": token }));
            match tokio::time::timeout(PATIENCE, session.client.call(call)).await {
                Ok(Ok(result)) => model.answered(&token, &text(&result)),
                Ok(Err(error)) => model.ended(&token, saw(&error)),
                Err(_) => model.violation(format!("{token} of an editor at `{server}` hangs")),
            }
        });
        join_all(calls).await;
    }

    async fn cancelled_call(&mut self, server: &str) {
        let Some(session) = &self.session else { return };
        self.world.model.count("cancelled calls");
        let token = self.world.model.begin(&self.name, server, "echo");
        let response = session.client.start(tool_call(&format!("mcp__{server}__echo"), json!({ "text": token })), None);
        tokio::time::sleep(Duration::from_millis(self.rng.u64(..40))).await;
        response.cancel();
        match tokio::time::timeout(PATIENCE, response).await {
            Ok(Ok(result)) => self.world.model.answered(&token, &text(&result)),
            Ok(Err(error)) if error.kind().is_none_or(|kind| kind == ErrorKind::Cancelled) => {
                self.world.model.ended(&token, Saw::Nothing);
            }
            Ok(Err(error)) => self.world.model.ended(&token, saw(&error)),
            Err(_) => self.world.model.violation(format!("{token}, which was cancelled, hangs")),
        }
    }

    /// Saves a change of one definition, or what all of them usually are.
    fn save(&mut self, server: &str) {
        self.world.model.count("reloads");
        let change = match self.rng.u32(..6) {
            0..3 => Some((server, Change::Launch(self.rng.u32(..)))),
            3 => Some((server, Change::Denied)),
            4 => Some((server, Change::Removed)),
            _ => None,
        };
        self.world.change(change);
        if let Some(session) = &self.session {
            report_save(&self.world, &session.client);
        }
    }

    async fn read(&mut self) {
        let file = self.world.home.path("config/mcp.json");
        if let Some(session) = &self.session {
            let text = std::fs::read_to_string(&file).unwrap();
            let document = json!({ "uri": uri(&file), "languageId": "json", "version": 1, "text": text });
            session.client.send_notification("textDocument/didOpen", &json!({ "textDocument": document }));
            let named = json!({ "textDocument": { "uri": uri(&file) } });
            for request in ["textDocument/codeLens", "textDocument/documentSymbol"] {
                let response = session.client.send_request::<Value>(request, &named);
                if tokio::time::timeout(PATIENCE, response).await.is_err() {
                    self.world.model.violation(format!("{request} hangs"));
                }
            }
            session.client.send_notification("textDocument/didClose", &named);
        }
        self.run_command(Metrics::default()).await;
        if let Some(check) = self.run_command(CallsVerify::default()).await
            && !check.whole
        {
            self.world.model.violation(format!("the chain of records is broken: {}", check.message));
        }
    }
}

/// Says that the editor has saved the config of the user.
pub fn report_save(world: &World, client: &mcp_sidecar::lsp_client::LspClient) {
    let file = world.home.path("config/mcp.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let document = json!({ "uri": uri(&file), "languageId": "json", "version": 1, "text": text });
    client.send_notification("textDocument/didOpen", &json!({ "textDocument": document }));
    for method in ["textDocument/didSave", "textDocument/didClose"] {
        client.send_notification(method, &json!({ "textDocument": { "uri": uri(&file) } }));
    }
}

fn saw(error: &CommandError) -> Saw {
    if is_lost(error) {
        return Saw::Nothing;
    }
    Saw::Refusal { is_denial: error.kind() == Some(ErrorKind::Denied), text: error.message.clone() }
}
