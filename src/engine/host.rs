//! What servers may ask of the engine: roots, questions to the user, sampling, secrets, a browser.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::approvals::{Answer, Approval, Approvals, Kind};
use super::asking::Askers;
use super::editors::Editors;
use super::hub::Wish;
use super::trust::{Judge, Verdict};
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

/// How much of a server's words a prompt shows; the rest is counted, not hidden.
const WORDS: usize = 8_000;

#[derive(Clone)]
pub struct EngineHost {
    pub paths: Paths,
    pub approvals: Approvals,
    pub editors: Editors,
    pub askers: Askers,
    pub settings: watch::Receiver<Arc<Settings>>,
    pub folders: watch::Receiver<Vec<Arc<Path>>>,
    pub vault: Vault,
    pub judge: Arc<Judge>,
    pub wishes: mpsc::Sender<Wish>,
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
        // Always declared: editors come and go while a server runs, and a question nobody can answer is declined.
        true
    }

    fn elicit(&self, server: ServerName, calls: Vec<CallId>, params: Value) -> BoxFuture<'static, Result<Value>> {
        let host = self.clone();
        async move { host.put_to_user(server, &calls, params).await }.boxed()
    }

    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>> {
        let host = self.clone();
        async move { host.sample_after_approval(server, params).await }.boxed()
    }

    fn input(&self, server: ServerName, input: Input) -> BoxFuture<'static, Option<Secret>> {
        let host = self.clone();
        async move { host.known_or_asked(server, input).await }.boxed()
    }

    fn keyring(&self, name: String) -> BoxFuture<'static, Option<Secret>> {
        let vault = self.vault.clone();
        async move { vault.get(&keyring_name(&name)).await }.boxed()
    }

    fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(self.vault.clone())
    }

    fn may_start(&self, definition: Arc<Definition>) -> BoxFuture<'static, bool> {
        let (judge, wishes) = (self.judge.clone(), self.wishes.clone());
        async move {
            let server = definition.name.clone();
            let may = matches!(judge.judge(definition).await, Verdict::May(_));
            if !may {
                // The hub asks the user; nobody waits for it here.
                let (done, _) = oneshot::channel();
                wishes.try_send(Wish::Consider { server, done }).ok();
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
    async fn put_to_user(&self, server: ServerName, calls: &[CallId], params: Value) -> Result<Value> {
        if self.editors.any(|abilities| abilities.elicitation).is_none() {
            // Its user may sit at the agent that wished the call.
            let limit = self.settings.borrow().approvals.timeout;
            let asked = match self.askers.of(calls) {
                // As for a question in the editor: no answer is none.
                Some(asker) => tokio::time::timeout(limit, asker.elicit(params)).await.ok().flatten(),
                None => None,
            };
            return Ok(asked.unwrap_or_else(|| {
                tracing::info!(%server, "declined an elicitation: nobody who can ask");
                json!({ "action": "decline" })
            }));
        }
        let words = |key: &str| params.get(key).and_then(Value::as_str);
        let url = words("url").map(str::to_owned);
        let mut detail = visible(words("message").unwrap_or_default(), WORDS);
        for field in secret_fields(params.get("requestedSchema")) {
            detail.push_str(&format!("\nBeware: `{field}` looks like a secret, and {server} will see what you type."));
        }
        let approval = Approval {
            detail,
            schema: params.get("requestedSchema").cloned(),
            url: url.clone(),
            ..question(&server, Kind::Elicitation, format!("{server} asks you"), &["accept", "decline", "cancel"])
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
            return Err(Error::NotFound("no editor that offers sampling".to_owned()));
        };
        let approval = Approval {
            arguments: Some(params.clone()),
            detail: "it will see the answer of your model to the messages shown".to_owned(),
            ..question(&server, Kind::Elicitation, format!("{server} wants to use your model"), &["accept", "decline"])
        };
        match self.ask(approval).await {
            Some(Answer::Accept(_)) => editor.sample(server, params).await,
            _ => Err(Error::InvalidParams("the user declined sampling".to_owned())),
        }
    }

    async fn known_or_asked(&self, server: ServerName, input: Input) -> Option<Secret> {
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
        let approval = Approval {
            detail: visible(&input.description, WORDS),
            schema: Some(json!({ "type": "object", "required": ["value"], "properties": { "value": property },
                "password": input.password })),
            ..question(
                &server,
                Kind::Input,
                format!("{server} needs {}", one_line(&input.id, 100)),
                &["accept", "decline", "cancel"],
            )
        };
        let Some(Answer::Accept(content)) = self.ask(approval).await else { return None };
        // A form answers an object, a plain prompt a string.
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

/// A question with everything left empty that not every kind has.
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

/// The fields of a form that ask for a password or the like, which MCP forbids.
fn secret_fields(schema: Option<&Value>) -> Vec<String> {
    let fields = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let secret = |(name, field): &(&String, &Value)| {
        let title = field.get("title").and_then(Value::as_str);
        is_named(name) || title.is_some_and(is_named)
    };
    fields.into_iter().flatten().filter(secret).map(|(name, _)| one_line(name, 80)).collect()
}

/// Only pages are opened: `javascript:`, `file:` and the like are somebody's attack.
fn is_web(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}
