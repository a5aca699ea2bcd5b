//! Answers the requests of a server: roots, elicitation, sampling, ping. Its notifications are handled by the ledger.
#![allow(deprecated, reason = "roots and sampling are on their way out of MCP, but servers of today use them")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, CustomRequest, CustomResult,
    ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, ErrorData, FormElicitationCapability,
    Implementation, ListRootsResult, ProtocolVersion, RootsCapabilities, SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::RequestContext;
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::extensions;
use super::host::Host;
use super::transport::ledger::{ActiveCalls, Ledger, StreamRequest};
use super::transport::repair::TooManyValues;
use crate::model::{CallId, ServerName};

/// Questions that one call may ask the user, and requests to the user's model that may wait for one call. Further ones are
/// declined.
const QUESTIONS_PER_CALL: usize = 5;

/// Our side of a connection.
#[derive(Clone)]
pub struct Client {
    questions: Questions,
    ledger: Ledger,
    version: ProtocolVersion,
}

impl Client {
    pub fn new(questions: Questions, ledger: Ledger, version: ProtocolVersion) -> Self {
        Self { questions, ledger, version }
    }

    /// Answers one request of the server.
    async fn answer(
        &self,
        method: &str,
        params: Option<Value>,
        context: RequestContext<RoleClient>,
    ) -> Result<Value, ErrorData> {
        if let Some(reason) = context.extensions.get::<TooManyValues>() {
            return Err(ErrorData::invalid_params(reason.to_string(), None));
        }
        // On a transport with one stream per request, the call of a question is known.
        let call =
            context.extensions.get::<StreamRequest>().and_then(|StreamRequest(request)| self.ledger.call_of(request));
        let during = || context.extensions.get::<ActiveCalls>().cloned().unwrap_or_default().0;
        let calls = call.map_or_else(during, |call| vec![call]);
        tokio::select! {
            answer = self.questions.answer(method, params, calls) => answer,
            // The server no longer waits for the answer: withdraw the question.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
            _ = self.ledger.closed() => Err(ErrorData::internal_error("the connection is closed", None)),
        }
    }

    async fn typed<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &str,
        params: P,
        context: RequestContext<RoleClient>,
    ) -> Result<R, ErrorData> {
        let invalid = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
        let params = serde_json::to_value(params).map_err(invalid)?;
        serde_json::from_value(self.answer(method, Some(params), context).await?).map_err(invalid)
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        capabilities.roots = Some(roots);
        if self.questions.0.host.can_elicit() {
            let both = ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new());
            capabilities.elicitation = Some(both);
        }
        if self.questions.0.host.can_sample() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        capabilities.extensions = Some(extensions::declared());
        ClientConfig::new(capabilities, Implementation::new("mcp-sidecar", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(self.version.clone())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        self.answer(&request.method, request.params, context).await.map(CustomResult)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.typed("elicitation/create", params, context).await
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.typed("sampling/createMessage", params, context).await
    }

    async fn list_roots(&self, context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        self.typed("roots/list", json!({}), context).await
    }
}

/// The questions of one server to the user: one at a time, with a limit per call.
#[derive(Clone)]
pub struct Questions(Arc<Inner>);

struct Inner {
    server: ServerName,
    host: Arc<dyn Host>,
    one_at_a_time: Semaphore,
    /// Questions since there was last no running call.
    asked: AtomicUsize,
    /// Open questions, each with the calls that it may belong to. The lock is `std`, private to this file and held for
    /// a lookup.
    open: Mutex<Vec<(Arc<Vec<CallId>>, Instant)>>,
    /// How long the user was asked on behalf of each running call. Locked like `open`.
    answered: Mutex<HashMap<CallId, AskedTime>>,
    /// The running calls.
    calls: watch::Sender<Vec<CallId>>,
}

impl Questions {
    pub fn new(server: ServerName, host: Arc<dyn Host>) -> Self {
        Self(Arc::new(Inner {
            server,
            host,
            one_at_a_time: Semaphore::new(1),
            asked: AtomicUsize::new(0),
            open: Mutex::default(),
            answered: Mutex::default(),
            calls: watch::Sender::default(),
        }))
    }

    /// Marks a call as running while the guard lives. On most transports the call of a question is unknown, so
    /// concurrent calls share their limit.
    pub fn call(&self, id: &CallId) -> RunningCall {
        self.0.calls.send_modify(|calls| calls.push(id.clone()));
        RunningCall { questions: self.clone(), id: id.clone() }
    }

    /// The time in which the user was asked on behalf of this call: then its timeout pauses. Requests that are not calls
    /// wait for questions that belong to no call.
    pub fn asked(&self, call: Option<&CallId>) -> AskedTime {
        let now = Instant::now();
        let concerns = |calls: &Vec<CallId>| call.map_or(calls.is_empty(), |call| calls.contains(call));
        let mut asked = call.and_then(|call| lock(&self.0.answered).get(call).copied()).unwrap_or_default();
        for (calls, since) in lock(&self.0.open).iter() {
            if concerns(calls) {
                asked.add(*since, now);
            }
        }
        asked
    }

    pub fn is_asking(&self) -> bool {
        !lock(&self.0.open).is_empty()
    }

    /// Answers a request of the server that belongs to one of `calls`, or to no call.
    pub async fn answer(&self, method: &str, params: Option<Value>, calls: Vec<CallId>) -> Result<Value, ErrorData> {
        match method {
            "ping" => Ok(json!({})),
            "roots/list" => Ok(json!({ "roots": self.roots() })),
            "elicitation/create" => Ok(self.elicit(params.unwrap_or_default(), calls).await),
            "sampling/createMessage" if self.0.host.can_sample() => {
                let sampled = self.sample(params.unwrap_or_default(), calls).await;
                sampled.map_err(|reason| ErrorData::new(ErrorCode(-1), reason, None))
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("unknown method `{method}`"), None)),
        }
    }

    /// Lets the user's model answer, or says why not.
    async fn sample(&self, params: Value, calls: Vec<CallId>) -> Result<Value, String> {
        let allowed = self.allowed();
        if lock(&self.0.open).len() >= allowed {
            return Err(format!("too many questions: {allowed} are already waiting for the user"));
        }
        let open = self.open(calls);
        let sampled = async {
            let Ok(_turn) = self.0.one_at_a_time.acquire().await else { return Err("cancelled".to_owned()) };
            let sampled = self.0.host.sample(self.0.server.clone(), params).await;
            sampled.map_err(|error| error.to_string())
        };
        let ended = || Err("the call that requested it has ended".to_owned());
        open.until_calls_end(sampled).await.unwrap_or_else(ended)
    }

    /// How many questions the running calls may ask. Questions outside of calls count like one call.
    fn allowed(&self) -> usize {
        QUESTIONS_PER_CALL * self.0.calls.borrow().len().max(1)
    }

    /// Asks the user, or declines if the user cannot or should not be asked.
    pub async fn elicit(&self, params: Value, calls: Vec<CallId>) -> Value {
        if !self.0.host.can_elicit() || self.0.asked.fetch_add(1, Ordering::AcqRel) >= self.allowed() {
            return json!({ "action": "decline" });
        }
        let open = self.open(calls);
        let asked = async {
            let Ok(_turn) = self.0.one_at_a_time.acquire().await else { return json!({ "action": "cancel" }) };
            match self.0.host.elicit(self.0.server.clone(), open.calls.to_vec(), params).await {
                Ok(answer) if answer.get("action").is_some_and(Value::is_string) => answer,
                Ok(_) | Err(_) => json!({ "action": "cancel" }),
            }
        };
        open.until_calls_end(asked).await.unwrap_or_else(|| json!({ "action": "cancel" }))
    }

    fn roots(&self) -> Vec<Value> {
        let root = |path: &Arc<std::path::Path>| {
            let uri = url::Url::from_file_path(path).ok()?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            Some(json!({ "uri": uri.as_str(), "name": name.unwrap_or_else(|| path.display().to_string()) }))
        };
        self.0.host.roots().iter().filter_map(root).collect()
    }

    /// A question that is open while the guard lives.
    fn open(&self, calls: Vec<CallId>) -> OpenQuestion {
        let calls = Arc::new(calls);
        lock(&self.0.open).push((calls.clone(), Instant::now()));
        OpenQuestion { questions: self.clone(), calls }
    }
}

/// A running call.
pub struct RunningCall {
    questions: Questions,
    id: CallId,
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.questions.0.calls.send_modify(|calls| calls.retain(|id| *id != self.id));
        lock(&self.questions.0.answered).remove(&self.id);
        if self.questions.0.calls.borrow().is_empty() {
            self.questions.0.asked.store(0, Ordering::Release);
        }
    }
}

/// How long the user was asked during a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct AskedTime {
    /// When they were last asked.
    pub last: Option<Instant>,
    pub total: Duration,
}

impl AskedTime {
    fn add(&mut self, since: Instant, until: Instant) {
        self.last = self.last.max(Some(until));
        self.total += until.saturating_duration_since(since);
    }
}

struct OpenQuestion {
    questions: Questions,
    calls: Arc<Vec<CallId>>,
}

impl OpenQuestion {
    /// The answer, or `None` if every call that it may belong to has ended.
    async fn until_calls_end<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut running = self.questions.0.calls.subscribe();
        let ended = async {
            let none = |running: &Vec<CallId>| !running.iter().any(|call| self.calls.contains(call));
            if self.calls.is_empty() || running.wait_for(none).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            answer = answer => Some(answer),
            () = ended => None,
        }
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let mut open = lock(&self.questions.0.open);
        let Some(own) = open.iter().position(|(calls, _)| Arc::ptr_eq(calls, &self.calls)) else { return };
        let (calls, since) = open.swap_remove(own);
        let now = Instant::now();
        let running = self.questions.0.calls.borrow();
        for call in calls.iter().filter(|call| running.contains(call)) {
            lock(&self.questions.0.answered).entry(call.clone()).or_default().add(since, now);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
