//! Tool calls of an agent: through the engine's one door, with progress, cancellation and questions on the way.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ElicitRequest, ErrorData, InputRequest,
    InputRequiredResult, InputResponses, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData as McpError, RoleServer};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::answer;
use super::asker::{ByAnswer, ByRequest, Modes, Question};
use super::handler::{Handler, is_stateless};
use crate::engine::asking::Asker;
use crate::engine::gate::{Outcome, Wish};
use crate::model::{CallId, Error, Requester, RequesterKind, Result, ToolId};
use crate::server::connection::Progress;
use crate::text::one_line;

/// Progress of one call that may wait for the agent to read it.
const REPORTS: usize = 64;
/// What the one question of a round is called.
const QUESTION: &str = "question";

/// A call on its way.
pub struct Running {
    work: BoxFuture<'static, Result<Outcome>>,
    progress: mpsc::Receiver<Progress>,
    questions: mpsc::Receiver<Question>,
}

/// Calls whose agent has a question to answer first, by what it will say when it comes again. Behind a `std` lock that
/// is private to this file and held for a look-up.
#[derive(Default)]
pub struct Waiting(Mutex<HashMap<String, (Running, oneshot::Sender<Value>)>>);

impl Waiting {
    fn put(&self, running: Running, answer: oneshot::Sender<Value>) -> String {
        let state = CallId::random().0.to_string();
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Agents that never came again: nobody waits for their answer by now.
        waiting.retain(|_, (_, answer)| !answer.is_closed());
        waiting.insert(state.clone(), (running, answer));
        state
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
        let known = self.endpoint.catalog().tool_names.get(&*request.name).cloned();
        let tool = match known {
            Some(tool) => tool,
            // An agent that remembers the name from its last visit may come before the server has started.
            None => self.settled().await.tool_names.get(&*request.name).cloned().ok_or_else(|| {
                let name = one_line(&request.name, 200);
                ErrorData::invalid_params(format!("unknown tool: {name}; tools/list tells which there are"), None)
            })?,
        };
        let running = match request.request_state.as_deref() {
            Some(state) => self.resume(state, request.input_responses)?,
            None => self.begin(tool, request.arguments.unwrap_or_default(), &context),
        };
        self.attend(running, context).await
    }

    fn begin(
        &self,
        tool: ToolId,
        arguments: serde_json::Map<String, Value>,
        context: &RequestContext<RoleServer>,
    ) -> Running {
        let (reports, progress) = mpsc::channel(REPORTS);
        let (asked, questions) = mpsc::channel(1);
        let asker = Modes::of(context).map(|modes| -> Arc<dyn Asker> {
            match is_stateless(context) {
                true => Arc::new(ByAnswer { questions: asked, modes }),
                false => Arc::new(ByRequest { peer: context.peer.clone(), modes }),
            }
        });
        let wish = Wish {
            tool,
            arguments,
            decision: None,
            requester: Requester { kind: RequesterKind::Agent, name: self.name(context) },
            workflow: None,
            timeout: None,
            progress: context.meta.get_progress_token().map(|_| reports),
        };
        let engine = self.endpoint.engine.clone();
        Running { work: async move { engine.call_for(wish, asker).await }.boxed(), progress, questions }
    }

    /// Goes on with a call that waited for an answer.
    fn resume(&self, state: &str, responses: Option<InputResponses>) -> Result<Running, McpError> {
        let Some((running, answer)) = self.waiting.take(state) else {
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
                outcome = &mut running.work => return Ok(self.finish(outcome, &context).into()),
                Some(question) = running.questions.recv() => {
                    // What cannot be read as a question is not asked; the asker hears a no.
                    let Ok(params) = serde_json::from_value(question.params) else { continue };
                    let request = InputRequest::Elicitation(ElicitRequest::new(params));
                    let requests = BTreeMap::from([(QUESTION.to_owned(), request)]);
                    let state = self.waiting.put(running, question.answer);
                    return Ok(InputRequiredResult::new(Some(requests), Some(state)).into());
                }
                // Dropping the work takes the call back.
                () = context.ct.cancelled() => return Err(answer::error(&Error::Cancelled)),
            }
        }
    }

    fn finish(&self, outcome: Result<Outcome>, context: &RequestContext<RoleServer>) -> CallToolResult {
        match outcome {
            Ok(outcome) => {
                self.lay(context, outcome.result.raw, answer::Shape::Typed);
                CallToolResult::default()
            }
            Err(error) => answer::refusal(&error),
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
