//! What servers can request from the engine: roots, questions to the user, sampling, secrets, a browser.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::approvals::{Answer, Approval, Approvals, Kind};
use super::asking::Askers;
use super::editors::Editors;
use super::hub::HubCommand;
use super::trust::{TrustChecker, Verdict};
use super::vault::Vault;
use crate::config::Definition;
use crate::config::shape::secrets::is_named;
use crate::config::spec::{Input, InputKind};
use crate::model::{CallId, Error, Requester, Result, ServerName, Timestamp};
use crate::paths::Paths;
use crate::secrets::{input_name, keyring_name};
use crate::server::host::{Host, Tunnel};
use crate::server::oauth::TokenStore;
use crate::settings::Settings;
use crate::text::{Secret, one_line, visible};

/// How much of a server's text the prompt shows. It says how much is left out.
const MAX_MESSAGE: usize = 8_000;
const FORM_ANSWERS: [&str; 3] = ["accept", "decline", "cancel"];

#[derive(Clone)]
pub struct EngineHost {
    pub paths: Paths,
    pub approvals: Approvals,
    pub editors: Editors,
    pub askers: Askers,
    pub settings: watch::Receiver<Arc<Settings>>,
    pub folders: watch::Receiver<Vec<Arc<Path>>>,
    pub vault: Vault,
    pub trust_checker: Arc<TrustChecker>,
    pub commands: mpsc::Sender<HubCommand>,
}

impl Host for EngineHost {
    fn roots(&self) -> Vec<Arc<Path>> {
        self.folders.borrow().clone()
    }

    fn private_folder(&self, server: &ServerName) -> PathBuf {
        let workspace = self.folders.borrow().first().cloned();
        self.paths.private_folder(workspace.as_deref(), server.as_str())
    }

    fn can_sample(&self) -> bool {
        self.editors.any(|abilities| abilities.sampling).is_some()
    }

    fn can_elicit(&self) -> bool {
        // Always declared: editors connect and disconnect while a server runs. Without one, the question is declined.
        true
    }

    fn elicit(&self, server: ServerName, calls: Vec<CallId>, params: Value) -> BoxFuture<'static, Result<Value>> {
        let host = self.clone();
        async move { host.ask_user(server, &calls, params).await }.boxed()
    }

    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>> {
        let host = self.clone();
        async move { host.sample_after_approval(server, params).await }.boxed()
    }

    fn input(&self, server: ServerName, input: Input) -> BoxFuture<'static, Option<Secret>> {
        let host = self.clone();
        async move { host.stored_or_asked(server, input).await }.boxed()
    }

    fn keyring(&self, name: String) -> BoxFuture<'static, Option<Secret>> {
        let vault = self.vault.clone();
        async move { vault.get(&keyring_name(&name)).await }.boxed()
    }

    fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(self.vault.clone())
    }

    fn may_start(&self, definition: Arc<Definition>) -> BoxFuture<'static, bool> {
        let (trust_checker, commands) = (self.trust_checker.clone(), self.commands.clone());
        async move {
            let server = definition.name.clone();
            let may = matches!(trust_checker.check(definition).await, Verdict::Trusted(_));
            if !may {
                // The hub asks the user; this does not wait for the answer.
                let (done, _) = oneshot::channel();
                commands.try_send(HubCommand::CheckTrust { server, done }).ok();
            }
            may
        }
        .boxed()
    }

    fn open_url(&self, url: String) -> BoxFuture<'static, bool> {
        match self.editors.any(|_| true) {
            Some(editor) => editor.open_url(url),
            None => std::future::ready(false).boxed(),
        }
    }

    fn tunnel(&self, name: &str) -> Option<Tunnel> {
        self.editors.tunnel(name)
    }
}

impl EngineHost {
    async fn ask_user(&self, server: ServerName, calls: &[CallId], params: Value) -> Result<Value> {
        if self.editors.any(|abilities| abilities.elicitation).is_none() {
            // The agent that requested the call may be able to ask its user.
            let limit = self.settings.borrow().approvals.timeout;
            let asked = match self.askers.of(calls) {
                // The same timeout as for a question in an editor.
                Some(asker) => tokio::time::timeout(limit, asker.elicit(params)).await.ok().flatten(),
                None => None,
            };
            return Ok(asked.unwrap_or_else(|| {
                tracing::info!(%server, "declined an elicitation: there is no one to ask");
                json!({ "action": "decline" })
            }));
        }
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let url = text("url").map(str::to_owned);
        let mut detail = visible(text("message").unwrap_or_default(), MAX_MESSAGE);
        for field in secret_fields(params.get("requestedSchema")) {
            detail.push_str(&format!("\nWarning: `{field}` looks like a secret. The server will see what you enter."));
        }
        let approval = Approval {
            detail,
            schema: params.get("requestedSchema").cloned(),
            url: url.clone(),
            ..question(&server, Kind::Elicitation, format!("The server `{server}` asks you"), &FORM_ANSWERS)
        };
        match self.ask(approval).await {
            Some(Answer::Accept(content)) => {
                if let Some(url) = url {
                    let opened = is_web(&url) && self.open_url(url).await;
                    return Ok(json!({ "action": if opened { "accept" } else { "cancel" } }));
                }
                Ok(json!({ "action": "accept", "content": content }))
            }
            Some(Answer::Decline | Answer::Decision { .. }) => Ok(json!({ "action": "decline" })),
            Some(Answer::Cancel) | None => Ok(json!({ "action": "cancel" })),
        }
    }

    async fn sample_after_approval(&self, server: ServerName, params: Value) -> Result<Value> {
        let Some(editor) = self.editors.any(|abilities| abilities.sampling) else {
            return Err(Error::NotFound("no editor supports sampling".to_owned()));
        };
        let title = format!("The server `{server}` wants to use your model");
        let approval = Approval {
            arguments: Some(params.clone()),
            detail: "The server will see your model's answer to these messages.".to_owned(),
            ..question(&server, Kind::Elicitation, title, &["accept", "decline"])
        };
        match self.ask(approval).await {
            Some(Answer::Accept(_)) => editor.sample(server, params).await,
            _ => Err(Error::InvalidParams("the user declined sampling".to_owned())),
        }
    }

    async fn stored_or_asked(&self, server: ServerName, input: Input) -> Option<Secret> {
        let name = input_name(&input);
        if let Some(known) = self.vault.get(&name).await {
            return Some(known);
        }
        let mut property = match &input.kind {
            InputKind::Prompt => json!({ "type": "string", "title": input.description }),
            InputKind::Pick(options) => json!({ "type": "string", "title": input.description,
                "enum": options.iter().map(|(_, value)| value).collect::<Vec<_>>(),
                "enumNames": options.iter().map(|(label, _)| label).collect::<Vec<_>>() }),
        };
        if let (Some(default), Some(fields)) = (&input.default, property.as_object_mut()) {
            fields.insert("default".to_owned(), json!(default));
        }
        let title = format!("The server `{server}` needs `{}`", one_line(&input.id, 100));
        let approval = Approval {
            detail: visible(&input.description, MAX_MESSAGE),
            schema: Some(json!({ "type": "object", "required": ["value"], "properties": { "value": property },
                "password": input.password })),
            ..question(&server, Kind::Input, title, &FORM_ANSWERS)
        };
        let Some(Answer::Accept(content)) = self.ask(approval).await else { return None };
        // A form returns an object, a plain prompt a string.
        let value = content.get("value").or_else(|| content.get(&input.id)).unwrap_or(&content).as_str()?.to_owned();
        let secret = Secret::new(value);
        self.vault.set(&name, &secret).await;
        Some(secret)
    }

    async fn ask(&self, approval: Approval) -> Option<Answer> {
        let (limit, most) = {
            let settings = self.settings.borrow();
            (settings.approvals.timeout, settings.limits.approvals)
        };
        self.approvals.ask(approval, limit, most).await.ok()
    }
}

/// A question whose optional fields are empty.
pub fn question(server: &ServerName, kind: Kind, title: String, options: &[&'static str]) -> Approval {
    Approval {
        id: CallId::random().0.to_string(),
        kind,
        server: server.clone(),
        tool: None,
        arguments: None,
        title,
        detail: String::new(),
        annotations: None,
        requester: Requester::default(),
        options: options.to_vec(),
        diff: None,
        change: None,
        schema: None,
        url: None,
        created_at: Timestamp::now(),
        expires_at: Timestamp::now(),
    }
}

/// The fields of a form that ask for a password or another secret, which MCP forbids.
fn secret_fields(schema: Option<&Value>) -> Vec<String> {
    let fields = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let secret = |(name, field): &(&String, &Value)| {
        let title = field.get("title").and_then(Value::as_str);
        is_named(name) || title.is_some_and(is_named)
    };
    fields.into_iter().flatten().filter(secret).map(|(name, _)| one_line(name, 80)).collect()
}

/// Only web pages are opened: `javascript:`, `file:` and the like could be an attack.
fn is_web(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}
