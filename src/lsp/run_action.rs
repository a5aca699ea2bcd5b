//! `mcp.action.run`: calls a tool with the text at the cursor and puts the result where the action says.

use std::borrow::Borrow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, Position, Range, ShowMessageRequestParams, TextEdit, Url};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::convert::{self, PositionMap};
use super::documents::Document;
use super::session::EditorSession;
use super::show;
use crate::config::spec::{Action, ActionResult};
use crate::engine::gate::{CallRequest, Outcome};
use crate::engine::turns::Turn;
use crate::ide::user_actions::{self, EditorContext};
use crate::model::{CallId, CallKind, Error, Requester, Result, ToolId};
use crate::paths::read_file;
use crate::policy::{TrustState, location};
use crate::protocol::commands::{ActionRun, SentDocument};
use crate::protocol::form::Form;
use crate::protocol::run::{Answer, find_tool, parse_tool, wire};
use crate::protocol::types::ToolResult;
use crate::server::connection::Progress;
use crate::text::{one_line, visible};

/// The maximum size of a file that an action can read.
const MAX_FILE_SIZE: usize = 16 << 20;
/// The maximum number of buttons on a message.
const MAX_BUTTONS: usize = 20;

/// Runs an action and returns the tool's result.
pub async fn run(
    session: &EditorSession,
    params: ActionRun,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    let context = ActionContext::open(session, &params)?;
    // Other commands must not wait while the user chooses a tool.
    let turn = if params.action.is_some() { turn } else { Turn::default() };
    let (tool, arguments, result, title, must_ask) = match &params.action {
        Some(wanted) => {
            let action = context.action(session, wanted)?;
            let (title, must_ask) = (user_actions::title(&action), foreign(session, &action));
            (action.tool, user_actions::fill(&action.arguments, &context.values), action.result, title, must_ask)
        }
        None => {
            let (tool, argument) = choose(session).await?;
            let text =
                if context.values.selection.is_empty() { &context.values.line } else { &context.values.selection };
            let title = tool.to_string();
            (title.clone(), Value::Object(Map::from_iter([(argument, json!(text))])), ActionResult::Show, title, None)
        }
    };
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let outcome = call(session, parse_tool(&tool)?, arguments, must_ask, progress, turn).await?;
    let answer = ToolResult::new(&outcome)?;
    let text = text_of(&answer);
    match context.edit(result, &text) {
        _ if answer.is_error => show::message(session, MessageType::ERROR, &text).await,
        Some(edit) => {
            // If the user typed while the tool ran, the range is no longer valid.
            let changed =
                session.documents.get(&context.document.uri).is_some_and(|now| now.text != context.document.text);
            if changed || !session.apply(&context.document, vec![edit], &title).await {
                show::show(session, &title, &text).await;
                let reason = if changed { "the text has changed" } else { "the editor did not apply the edit" };
                return Err(Error::Conflict(format!("{reason}; the result is shown instead")));
            }
        }
        None => show::show(session, &title, &text).await,
    }
    wire(&answer)
}

/// Calls a tool that needs no arguments, and shows its result.
pub async fn open(
    session: &EditorSession,
    tool: &str,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    let offered = find_tool(&session.engine, tool)?;
    let form = Form::of_schema(&offered.tool.input_schema);
    let required: Vec<&str> =
        form.fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    if !required.is_empty() {
        let id = &offered.id;
        return Err(Error::InvalidParams(format!(
            "`{}` needs arguments ({}), and this editor has no form for them; use `mcp-sidecar call {}/{0}` in a shell",
            id.tool,
            one_line(&required.join(", "), 200),
            id.server
        )));
    }
    let outcome = call(session, offered.id.clone(), Map::new(), None, progress, turn).await?;
    let answer = ToolResult::new(&outcome)?;
    show::show(session, &outcome.tool.tool, &text_of(&answer)).await;
    wire(&answer)
}

/// Why the user is asked before an action of a project runs. Trust in a server of the same file includes its actions.
fn foreign(session: &EditorSession, action: &Action) -> Option<String> {
    let snapshot = session.engine.now();
    let view = parse_tool(&action.tool).ok().and_then(|tool| snapshot.servers.get(&tool.server).cloned());
    let is_own = view.is_some_and(|view| {
        let is_same_file = view.definition.scope == action.scope && view.definition.file == action.file;
        is_same_file && action.file.is_some() && view.trust_state() == TrustState::Trusted
    });
    let file = location(action.scope, action.file.as_deref(), Some(action.line));
    let title = one_line(&action.title, 80);
    (action.scope.needs_trust() && !is_own).then(|| {
        format!("The action `{title}` of this project ({file}) wants to use a server that it does not define.")
    })
}

async fn call(
    session: &EditorSession,
    tool: ToolId,
    arguments: Map<String, Value>,
    must_ask: Option<String>,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Outcome> {
    let request = CallRequest {
        kind: CallKind::Tool,
        id: CallId::random(),
        tool,
        arguments,
        decision: None,
        requester: Requester::default(),
        must_ask,
        connection: None,
        workflow: None,
        timeout: None,
        meta: Default::default(),
        unknown_fields: Default::default(),
        progress,
        turn,
    };
    session.engine.call(request).await
}

/// The text that an action was chosen in, and where.
struct ActionContext {
    document: Document,
    positions: PositionMap,
    range: Range,
    values: EditorContext,
}

impl ActionContext {
    fn open(session: &EditorSession, params: &ActionRun) -> Result<Self> {
        let invalid = |what: &str| Error::InvalidParams(format!("`mcp.action.run`: {what}"));
        let uri = Url::parse(&params.uri).map_err(|_| invalid("`uri` is not a valid URI"))?;
        let range: Range =
            serde_json::from_value(params.range.clone()).map_err(|_| invalid("`range` must be a range"))?;
        let document = match (session.documents.get(&uri), &params.document) {
            (Some(document), _) => document,
            (None, Some(SentDocument { filetype, version, text })) => Document {
                path: convert::path(&uri),
                uri,
                language: filetype.clone(),
                version: *version,
                text: text.as_str().into(),
            },
            (None, None) => from_disk(uri)?,
        };
        let positions = PositionMap::new(&document.text, session.info().encoding);
        let span = positions.span(range);
        let line = positions.span(Range {
            start: Position { line: range.start.line, character: 0 },
            end: Position { line: range.start.line, character: u32::MAX },
        });
        let text = |span: std::ops::Range<usize>| document.text.get(span).unwrap_or_default().to_owned();
        let file = document.path.clone().unwrap_or_default();
        let folder = session.folder_of(&file);
        let relative = folder.as_deref().and_then(|folder| file.strip_prefix(folder).ok()).unwrap_or(&file);
        let values = EditorContext {
            selection: text(span.clone()),
            word: user_actions::word_at(&document.text, span.start).to_owned(),
            line: text(line),
            file: file.display().to_string(),
            relative_file: relative.display().to_string(),
            filetype: document.language.clone(),
            workspace_folder: folder.map(|folder| folder.display().to_string()).unwrap_or_default(),
        };
        Ok(Self { positions, range, values, document })
    }

    fn action(&self, session: &EditorSession, wanted: &str) -> Result<Action> {
        let loaded = session.engine.loaded().borrow().clone();
        let action = user_actions::find(&loaded.config.actions, wanted, &self.document.language).cloned();
        let unknown = || format!("no action `{}`; it may have changed, so open the menu again", one_line(wanted, 80));
        action.ok_or_else(|| Error::NotFound(unknown()))
    }

    /// The edit that inserts a result into the text; `None` if the result is only shown.
    fn edit(&self, result: ActionResult, text: &str) -> Option<TextEdit> {
        let range = match result {
            ActionResult::Show => return None,
            ActionResult::Replace => self.range,
            ActionResult::Insert => Range { start: self.range.end, end: self.range.end },
            ActionResult::Append => {
                let end = self.positions.position(self.document.text.len());
                Range { start: end, end }
            }
        };
        let own_line = result == ActionResult::Append;
        let before =
            if own_line && !self.document.text.is_empty() && !self.document.text.ends_with('\n') { "\n" } else { "" };
        let after = if own_line && !text.ends_with('\n') { "\n" } else { "" };
        Some(TextEdit { range, new_text: format!("{before}{text}{after}") })
    }
}

impl EditorSession {
    /// The workspace folder that contains a file, else the first folder.
    fn folder_of(&self, file: &Path) -> Option<PathBuf> {
        let folders = self.folders();
        let containing =
            folders.iter().filter(|folder| file.starts_with(folder)).max_by_key(|folder| folder.as_os_str().len());
        containing.or(folders.first()).cloned()
    }
}

/// A file that is not open in the editor.
fn from_disk(uri: Url) -> Result<Document> {
    let path = convert::path(&uri).ok_or_else(|| Error::NotFound(format!("{uri} is not open")))?;
    let bytes = read_file(&path, MAX_FILE_SIZE)
        .map_err(|error| Error::Io(format!("cannot read {}: {error}", path.display())))?;
    let bytes = bytes.ok_or_else(|| Error::NotFound(format!("{} does not exist", path.display())))?;
    let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
    Ok(Document { uri, path: Some(path), language: String::new(), version: Document::UNKNOWN, text })
}

/// Asks the user which tool to call. Also returns the name of the argument for the selection.
async fn choose(session: &EditorSession) -> Result<(ToolId, String)> {
    let snapshot = session.engine.now();
    let mut tools = user_actions::text_tools(&snapshot);
    tools.truncate(MAX_BUTTONS);
    if tools.is_empty() {
        return Err(Error::NotFound("no connected server has a tool that takes a single text argument".to_owned()));
    }
    let title = |id: &ToolId| format!("{}/{}", id.server, one_line(&id.tool, 64));
    let item = |id: &ToolId| MessageActionItem { title: title(id), properties: Default::default() };
    let params = ShowMessageRequestParams {
        typ: MessageType::INFO,
        message: "Which MCP tool do you want to call with the selection?".to_owned(),
        actions: Some(tools.iter().map(|(offered, _)| item(&offered.id)).collect()),
    };
    let answer = session.editor.request::<ShowMessageRequest>(&params).await;
    let chosen = answer.ok().flatten().ok_or(Error::Cancelled)?;
    let (offered, argument) =
        tools.iter().find(|(offered, _)| title(&offered.id) == chosen.title).ok_or(Error::Cancelled)?;
    Ok((offered.id.clone(), (*argument).to_owned()))
}

/// All texts of a result, without control characters. Other content is represented by its type.
pub fn text_of(result: &ToolResult<impl Borrow<RawValue>>) -> String {
    let blocks: Vec<Value> = serde_json::from_str(result.content.borrow().get()).unwrap_or_default();
    let part = |content: &Value| {
        let field = |pointer: &str| content.pointer(pointer).and_then(Value::as_str);
        match field("/type") {
            Some("text") => field("/text").unwrap_or_default().to_owned(),
            Some("resource") => {
                field("/resource/text").or_else(|| field("/resource/uri")).unwrap_or_default().to_owned()
            }
            Some("resource_link") => field("/uri").unwrap_or_default().to_owned(),
            other => format!("({})", other.unwrap_or("unknown content")),
        }
    };
    let parts: Vec<String> = blocks.iter().map(part).collect();
    let text = match (parts.is_empty(), &result.structured_content) {
        (true, Some(structured)) => serde_json::from_str(structured.borrow().get())
            .map_or_else(|_| String::new(), |value: Value| format!("{value:#}")),
        _ => parts.join("\n"),
    };
    visible(&text, usize::MAX)
}
