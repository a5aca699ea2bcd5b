//! What servers can request from the engine: roots, questions to the user, sampling, secrets, a browser.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

use super::approvals::{
    Answer, Answered, AnsweredBy, Approval, Approvals, Kind, NoAnswer, Origin, Question, ShownArguments,
};
use super::asking::CallOrigin;
use super::editors::{Editors, WebPage};
use super::hub::HubCommand;
use super::slot::TrustCheck;
use super::trust::{TrustChecker, Verdict};
use super::vault::Vault;
use crate::config::address::{Target, shown_url};
use crate::config::shape::secrets::is_named;
use crate::config::spec::{Input, InputKind};
use crate::config::{Definition, Environment, Environments};
use crate::model::{CallId, Error, Requester, RequesterKind, Result, ServerName, Timestamp};
use crate::paths::{Paths, in_main_checkout, repository};
use crate::secrets::input_name;
use crate::server::host::{Host, NoTunnel, Tunnel};
use crate::server::oauth::TokenStore;
use crate::settings::Settings;
use crate::store::Store;
use crate::text::{Secret, exact, one_line, quoted, visible};

/// How much of a server's text the prompt shows. It says how much is left out.
const MAX_MESSAGE: usize = 8_000;
const FORM_ANSWERS: [&str; 3] = ["accept", "decline", "cancel"];

#[derive(Clone)]
pub struct EngineHost {
    /// For servers that all workspaces of the repository share.
    pub is_shared: bool,
    pub paths: Paths,
    pub approvals: Approvals,
    pub editors: Editors,
    pub settings: watch::Receiver<Arc<Settings>>,
    pub folders: watch::Receiver<Vec<Arc<Path>>>,
    pub environments: watch::Receiver<Arc<Environments>>,
    pub vault: Vault,
    pub store: Store,
    pub trust_checker: Arc<TrustChecker>,
    pub commands: mpsc::Sender<HubCommand>,
}

impl Host for EngineHost {
    fn roots(&self) -> Vec<Arc<Path>> {
        self.folders.borrow().clone()
    }

    fn private_folder(&self, server: &ServerName) -> PathBuf {
        let workspace = self.folders.borrow().first().map(|folder| match self.is_shared {
            true => in_main_checkout(&repository(folder)),
            false => folder.to_path_buf(),
        });
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
        async move { host.ask_user(server, calls, params).await }.boxed()
    }

    fn sample(&self, server: ServerName, params: Value) -> BoxFuture<'static, Result<Value>> {
        let host = self.clone();
        async move { host.sample_after_approval(server, params).await }.boxed()
    }

    fn input(&self, server: ServerName, input: Input) -> BoxFuture<'static, Option<Secret>> {
        let host = self.clone();
        async move { host.ask_input(server, input).await }.boxed()
    }

    fn saved_input(&self, input: &Input) -> BoxFuture<'static, Option<Secret>> {
        let (vault, name) = (self.vault.clone(), input_name(input));
        async move { vault.get(&name).await }.boxed()
    }

    fn keyring(&self, definition: &Definition, name: String) -> BoxFuture<'static, Result<Option<Secret>, String>> {
        let (host, definition) = (self.clone(), definition.clone());
        async move { host.give_entry(definition, &name).await }.boxed()
    }

    fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(self.vault.clone())
    }

    fn environments(&self) -> watch::Receiver<Arc<Environments>> {
        self.environments.clone()
    }

    fn may_start(&self, definition: Arc<Definition>, environment: Environment) -> BoxFuture<'static, bool> {
        let (trust_checker, commands) = (self.trust_checker.clone(), self.commands.clone());
        async move {
            let server = definition.name.clone();
            let may = matches!(trust_checker.check_with(definition, environment, None).await, Verdict::Trusted(_));
            if !may {
                // The hub asks the user; this does not wait for the answer.
                let (done, _) = oneshot::channel();
                commands.try_send(HubCommand::CheckTrust { server, check: TrustCheck::Again, done }).ok();
            }
            may
        }
        .boxed()
    }

    fn tunnel(&self, name: &str) -> Result<Tunnel, NoTunnel> {
        self.editors.tunnel(name)
    }
}

impl EngineHost {
    async fn ask_user(&self, server: ServerName, calls: Vec<CallId>, params: Value) -> Result<Value> {
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let url = text("url").map(str::to_owned);
        let mut detail = visible(text("message").unwrap_or_default(), MAX_MESSAGE);
        if let Some(url) = &url {
            detail.push_str(&format!("\n{}", describe_page(url)));
        }
        for field in secret_fields(params.get("requestedSchema")) {
            let field = one_line(field, 80);
            detail.push_str(&format!("\nWarning: `{field}` looks like a secret. The server will see what you enter."));
        }
        let origin = self.approvals.origin_of(&calls);
        if let Some(CallOrigin { tool, requester, .. }) = &origin {
            let by = match requester.name.as_str() {
                "" if requester.kind == RequesterKind::User => "you".to_owned(),
                "" => requester.kind.to_string(),
                name => format!("`{}`", one_line(name, 80)),
            };
            detail.push_str(&format!("\nIt asks because {by} called `{}`.", one_line(&tool.tool, 80)));
        }
        let approval = Approval {
            detail,
            requester: origin.map(|origin| origin.requester).unwrap_or_default(),
            schema: params.get("requestedSchema").cloned(),
            url: url.as_deref().map(|url| exact(&shown_url(url))),
            ..question(&server, Kind::Elicitation, format!("The server `{server}` asks you"), &FORM_ANSWERS)
        };
        let schema = approval.schema.clone();
        let question = Question { calls, elicitation: Some(params), ..approval.into() };
        let answered = match self.approvals.ask(question).await {
            Ok(answered) => answered,
            Err(NoAnswer::NobodyToAsk) => {
                tracing::info!(%server, "declined an elicitation: there is no one to ask");
                return Ok(json!({ "action": "decline" }));
            }
            Err(_) => return Ok(json!({ "action": "cancel" })),
        };
        match (answered, url) {
            // The agent has opened the page.
            (Answered { answer: Answer::Accept(_), by: AnsweredBy::Agent(_), .. }, Some(_)) => {
                Ok(json!({ "action": "accept" }))
            }
            (Answered { answer: Answer::Accept(_), .. }, Some(url)) => {
                let opened = is_web(&url) && self.editors.open_page(WebPage { url, sign_in_to: None }, None).await;
                Ok(json!({ "action": if opened { "accept" } else { "cancel" } }))
            }
            (Answered { answer: Answer::Accept(content), .. }, None) => {
                register_secrets(schema.as_ref(), &content);
                Ok(json!({ "action": "accept", "content": content }))
            }
            (Answered { answer: Answer::Decline | Answer::Decision { .. }, .. }, _) => {
                Ok(json!({ "action": "decline" }))
            }
            (Answered { answer: Answer::Cancel, .. }, _) => Ok(json!({ "action": "cancel" })),
        }
    }

    async fn sample_after_approval(&self, server: ServerName, params: Value) -> Result<Value> {
        let Some(editor) = self.editors.any(|abilities| abilities.sampling) else {
            return Err(Error::NotFound("no editor supports sampling".to_owned()));
        };
        let title = format!("The server `{server}` wants to use your model");
        let approval = Approval {
            arguments: params.as_object().map(|fields| ShownArguments::new(Arc::new(fields.clone()))),
            detail: "The server will see your model's answer to these messages.".to_owned(),
            ..question(&server, Kind::Elicitation, title, &["accept", "decline"])
        };
        match self.approvals.ask(approval.into()).await {
            Ok(Answered { answer: Answer::Accept(_), .. }) => editor.sample(server, params).await,
            _ => Err(Error::InvalidParams("the user declined sampling".to_owned())),
        }
    }

    async fn ask_input(&self, server: ServerName, input: Input) -> Option<Secret> {
        let mut property = match &input.kind {
            InputKind::Prompt => json!({ "type": "string", "title": input.description }),
            InputKind::Pick(options) => json!({ "type": "string", "title": input.description,
                "enum": options.iter().map(|(_, value)| value).collect::<Vec<_>>(),
                "enumNames": options.iter().map(|(label, _)| label).collect::<Vec<_>>() }),
        };
        if let (Some(default), Some(fields)) = (&input.default, property.as_object_mut()) {
            fields.insert("default".to_owned(), json!(default));
        }
        let title = format!("The server `{server}` needs {}", quoted(&input.id, 100));
        let approval = Approval {
            detail: visible(&input.description, MAX_MESSAGE),
            schema: Some(json!({ "type": "object", "required": ["value"], "properties": { "value": property },
                "password": input.password })),
            ..question(&server, Kind::Input, title, &FORM_ANSWERS)
        };
        let limit = self.settings.borrow().approvals.timeout;
        let answered = tokio::time::timeout(limit, self.ask_when_possible(approval)).await;
        let Ok(Some(Answer::Accept(content))) = answered else { return None };
        // A form returns an object, a plain prompt a string.
        let value = content.get("value").or_else(|| content.get(&input.id)).unwrap_or(&content).as_str()?.to_owned();
        let secret = Secret::new(value);
        self.vault.set(&input_name(&input), &secret).await;
        Some(secret)
    }

    /// Asks as soon as an editor can show the question, and again in the next one if the editor closes.
    pub(super) async fn ask_when_possible(&self, approval: Approval) -> Option<Answer> {
        let mut editors = self.editors.subscribe();
        loop {
            editors.borrow_and_update();
            let approval = Approval { id: CallId::random().0.to_string(), ..approval.clone() };
            match self.approvals.ask(approval.into()).await {
                Ok(answered) => return Some(answered.answer),
                Err(NoAnswer::NobodyToAsk) => editors.changed().await.ok()?,
                Err(_) => return None,
            }
        }
    }
}

/// A question whose optional fields are empty.
pub fn question(server: &ServerName, kind: Kind, title: String, options: &[&'static str]) -> Approval {
    Approval {
        id: CallId::random().0.to_string(),
        kind,
        origin: Origin::default(),
        group: None,
        server: server.clone(),
        tool: None,
        about: None,
        arguments: None,
        summary: title.clone(),
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
fn secret_fields(schema: Option<&Value>) -> Vec<&String> {
    let fields = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let secret = |(name, field): &(&String, &Value)| {
        let text = |key: &str| field.get(key).and_then(Value::as_str);
        is_named(name) || text("title").is_some_and(is_named) || text("format") == Some("password")
    };
    fields.into_iter().flatten().filter(secret).map(|(name, _)| name).collect()
}

/// What the user entered in these fields is masked from now on: the server may log it.
fn register_secrets(schema: Option<&Value>, content: &Value) {
    for value in secret_fields(schema).into_iter().filter_map(|name| content.get(name)) {
        Secret::new(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
}

/// Where a page really is, whatever its URL looks like.
fn describe_page(url: &str) -> String {
    match Target::of(url).filter(|_| is_web(url)) {
        Some(Target { host: Some(host), has_user, .. }) => {
            let note = if has_user { ", although its URL begins with something else" } else { "" };
            format!("The page is on `{}`{note}.", exact(&host))
        }
        _ => "Its page cannot be opened: it is not a web address.".to_owned(),
    }
}

/// Only web pages are opened: `javascript:`, `file:` and the like could be an attack.
fn is_web(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}
