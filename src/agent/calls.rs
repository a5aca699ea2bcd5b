//! Tool calls of an agent: through the engine's one door, with progress, cancellation and questions on the way.
#![allow(deprecated, reason = "logging is on its way out of MCP, but agents of today use it")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ErrorData, InputRequest,
    InputRequiredResult, InputResponses, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData as McpError, RoleServer};
use serde_json::{Map, Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::asker::{ByAnswer, ByRequest, Modes, Question};
use super::catalog::Catalog;
use super::handler::{Handler, is_stateless};
use super::session::Sight;
use super::{answer, notices, search};
use crate::engine::Notice;
use crate::engine::asking::Asker;
use crate::engine::gate::{CallRequest, Outcome};
use crate::engine::snapshot::ServerView;
use crate::engine::turns::Turn;
use crate::model::{CallId, Decision, Error, Result, ServerName, ToolId};
use crate::server::connection::Progress;

/// Progress of one call that may wait for the agent to read it.
const REPORTS: usize = 64;
/// How long is waited for what a server logged right before its answer.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// Calls of all agents that may wait for an answer at once.
const MOST: usize = 1_024;
/// What the one question of a round is called.
const QUESTION: &str = "question";

/// A call on its way.
pub struct Running {
    work: BoxFuture<'static, Result<Outcome>>,
    progress: mpsc::Receiver<Progress>,
    questions: mpsc::Receiver<Question>,
    server: ServerName,
    /// What servers log, where the call asked for that: since 2026-07-28 each request says it for itself.
    logs: Option<Receiver<Notice>>,
}

impl Running {
    /// The next notice, for one who asked.
    async fn notice(logs: &mut Option<Receiver<Notice>>) -> Notice {
        while let Some(receiver) = logs {
            match receiver.recv().await {
                Ok(notice) => return notice,
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => *logs = None,
            }
        }
        std::future::pending().await
    }

    /// What the server logged right before its answer takes a way of its own to us, and a moment longer. Only one who
    /// asked to hear it waits for it.
    async fn last_words(&mut self, context: &RequestContext<RoleServer>) {
        if self.logs.is_none() {
            return;
        }
        let deadline = Instant::now() + LAST_WORDS;
        while let Ok(notice) = tokio::time::timeout_at(deadline, Self::notice(&mut self.logs)).await {
            Self::log(&self.server, context, notice).await;
        }
    }

    /// Passes on what the called server logs, as severe as the request asked for.
    async fn log(own: &ServerName, context: &RequestContext<RoleServer>, notice: Notice) {
        if let (Notice::Log { server, line }, Some(least)) = (notice, context.meta.log_level())
            && server == *own
            && let Some(message) = notices::message(&server, line, least)
        {
            context.peer.notify_logging_message(message).await.ok();
        }
    }
}

/// Calls of any agent whose agent has a question to answer first, by what it will say when it comes again. Behind a `std` lock that
/// is private to this file and held for a look-up.
#[derive(Default)]
pub struct Waiting(Mutex<HashMap<String, (Running, oneshot::Sender<Value>)>>);

impl Waiting {
    fn put(&self, running: Running, answer: oneshot::Sender<Value>) -> Result<String, McpError> {
        let state = CallId::random().0.to_string();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Agents that never came again: nobody waits for their answer by now.
        waiting.retain(|_, (_, answer)| !answer.is_closed());
        if waiting.len() >= MOST {
            return Err(ErrorData::internal_error(format!("{MOST} calls wait for an answer already"), None));
        }
        waiting.insert(state.clone(), (running, answer));
        Ok(state)
    }

    fn take(&self, state: &str) -> Option<(Running, oneshot::Sender<Value>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(state)
    }
}

impl Handler {
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, McpError> {
        let _room = match self.room() {
            Ok(room) => room,
            Err(full) => {
                let who = self.sight(&context).who;
                let arguments = request.arguments.unwrap_or_default();
                self.endpoint().refused(who, &request.name, arguments, "limits.agent-calls", &full).await;
                return Err(full);
            }
        };
        if let Some(state) = request.request_state.as_deref() {
            let running = self.resume(state, request.input_responses)?;
            return self.attend(running, context).await;
        }
        let sight = self.sight(&context);
        let arguments = request.arguments.unwrap_or_default();
        match &*request.name {
            search::FIND if sight.search => Ok(self.find(&sight, &arguments).await.into()),
            search::CALL if sight.search => match self.wanted(&sight, arguments).await {
                Ok((tool, arguments)) => self.attend(self.begin(tool, arguments, &sight, &context), context).await,
                Err(text) => Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into()),
            },
            name => {
                let tool = match self.tool(&sight, name).await {
                    Ok(tool) => tool,
                    Err(names) => {
                        let text = search::unknown(name, names.tool_names.keys(), "tools/list");
                        let unknown = ErrorData::invalid_params(text, None);
                        self.endpoint().refused(sight.who, name, arguments, "unknown tool", &unknown).await;
                        return Err(unknown);
                    }
                };
                self.attend(self.begin(tool, arguments, &sight, &context), context).await
            }
        }
    }

    /// Whom a name means; else what there is.
    async fn tool(&self, sight: &Sight, name: &str) -> Result<ToolId, Arc<Catalog>> {
        if let Some(tool) = self.endpoint().catalog(sight).tool_names.get(name) {
            return Ok(tool.clone());
        }
        // An agent that remembers the name from its last visit may come before the server has started.
        let catalog = self.session.settled(sight).await;
        catalog.tool_names.get(name).cloned().ok_or(catalog)
    }

    async fn find(&self, sight: &Sight, arguments: &Map<String, Value>) -> CallToolResult {
        let catalog = self.session.settled(sight).await;
        match search::find(&catalog.searched, arguments) {
            Ok(found) => CallToolResult::structured(found),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        }
    }

    /// The tool and the arguments that `call_tool` is about; else what is wrong, in words for a model.
    async fn wanted(
        &self,
        sight: &Sight,
        arguments: Map<String, Value>,
    ) -> Result<(ToolId, Map<String, Value>), String> {
        let (name, arguments) = search::wanted(arguments)?;
        match self.tool(sight, &name).await {
            Ok(tool) => Ok((tool, arguments)),
            Err(names) => {
                let text = search::unknown(&name, names.tool_names.keys(), search::FIND);
                let unknown = ErrorData::invalid_params(text.clone(), None);
                self.endpoint().refused(sight.who.clone(), &name, arguments, "unknown tool", &unknown).await;
                Err(text)
            }
        }
    }

    fn begin(
        &self,
        tool: ToolId,
        arguments: Map<String, Value>,
        sight: &Sight,
        context: &RequestContext<RoleServer>,
    ) -> Running {
        let (reports, progress) = mpsc::channel(REPORTS);
        let (asked, questions) = mpsc::channel(1);
        let asker = Modes::of(context).map(|modes| -> Arc<dyn Asker> {
            match is_stateless(context) {
                true => Arc::new(ByAnswer { questions: asked, modes, session: self.session.number }),
                false => Arc::new(ByRequest { peer: context.peer.clone(), modes, session: self.session.number }),
            }
        });
        let server = tool.server.clone();
        let logs =
            (is_stateless(context) && context.meta.log_level().is_some()).then(|| self.endpoint().engine.notices());
        let wish = CallRequest {
            arguments,
            decision: self.asked(&tool).then_some(Decision::AllowOnce),
            tool,
            requester: sight.who.clone(),
            workflow: None,
            timeout: None,
            progress: context.meta.get_progress_token().map(|_| reports),
            // The calls of an agent are independent of each other.
            turn: Turn::default(),
        };
        let engine = self.endpoint().engine.clone();
        let work = async move { engine.call_for(wish, asker).await }.boxed();
        Running { work, progress, questions, server, logs }
    }

    /// Whether the agent's host has asked its user about a call of this tool. Such hosts let mere looks pass unasked.
    fn asked(&self, tool: &ToolId) -> bool {
        let snapshot = self.endpoint().engine.now();
        let own = |view: &Arc<ServerView>| view.tools.get(&tool.tool).cloned();
        let offered = snapshot.servers.get(&tool.server).and_then(own);
        self.session.host_asks() && offered.is_some_and(|offered| offered.tool.annotations.read_only != Some(true))
    }

    /// Goes on with a call that waited for an answer.
    fn resume(&self, state: &str, responses: Option<InputResponses>) -> Result<Running, McpError> {
        let Some((running, answer)) = self.endpoint().waiting.take(state) else {
            return Err(ErrorData::invalid_params("this call has ended meanwhile; call the tool anew", None));
        };
        let said = responses.unwrap_or_default().remove(QUESTION);
        // No answer is a no.
        answer.send(said.unwrap_or_else(|| json!({ "action": "cancel" }))).ok();
        Ok(running)
    }

    /// Follows a call to its end, or to the next question.
    async fn attend(
        &self,
        mut running: Running,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, McpError> {
        let token = context.meta.get_progress_token();
        loop {
            tokio::select! {
                biased;
                Some(progress) = running.progress.recv() => tell(&context, token.clone(), progress).await,
                outcome = &mut running.work => {
                    running.last_words(&context).await;
                    return self.finish(outcome, &context).map(Into::into);
                }
                notice = Running::notice(&mut running.logs) => Running::log(&running.server, &context, notice).await,
                Some(question) = running.questions.recv() => {
                    // What cannot be read as a question is not asked; the asker hears a no.
                    let Ok(params) = serde_json::from_value(question.params) else { continue };
                    let request = InputRequest::Elicitation(ElicitRequest::new(params));
                    let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
                    let state = self.endpoint().waiting.put(running, question.answer)?;
                    return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
                }
                // Dropping the work takes the call back.
                () = context.ct.cancelled() => return Err(answer::error(&Error::Cancelled)),
            }
        }
    }

    fn finish(
        &self,
        outcome: Result<Outcome>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, McpError> {
        match outcome {
            Ok(outcome) => self.deliver(context, outcome.result.raw, answer::Shape::Typed, CallToolResult::default()),
            Err(error) => Ok(answer::refusal(&error)),
        }
    }
}

async fn tell(context: &RequestContext<RoleServer>, token: Option<ProgressToken>, progress: Progress) {
    let Some(token) = token else { return };
    let mut params = ProgressNotificationParam::new(token, progress.progress);
    params.total = progress.total;
    params.message = progress.message;
    // An agent that has gone does not need to be told.
    context.peer.notify_progress(params).await.ok();
}
