//! `mcp.action.run`: a tool called with what the cursor is on, and its result put where the action says.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tower_lsp::lsp_types::request::ShowMessageRequest;
use tower_lsp::lsp_types::{MessageActionItem, MessageType, Range, ShowMessageRequestParams, TextEdit, Url};

use super::convert::{self, Places};
use super::documents::Document;
use super::seat::Seat;
use super::show;
use crate::config::spec::{Action, ActionResult};
use crate::engine::gate::CallRequest;
use crate::engine::turns::Turn;
use crate::ide::ordinary::{self, Surroundings};
use crate::model::{Error, Requester, Result, ToolId};
use crate::paths::read_file;
use crate::protocol::commands::ActionRun;
use crate::protocol::run::{Answer, wire};
use crate::protocol::types::ToolResult;
use crate::server::connection::Progress;
use crate::text::{one_line, visible};

/// The largest file that an action may look at.
const LARGEST: usize = 16 << 20;
/// More buttons than this on a message help nobody.
const BUTTONS: usize = 20;

/// Runs one; the answer is the tool's result, whatever else was done with it.
pub async fn run(
    seat: &Seat,
    params: ActionRun,
    progress: Option<mpsc::Sender<Progress>>,
    turn: Turn,
) -> Result<Answer> {
    let page = Page::open(seat, &params)?;
    // Nothing waits while the user chooses a tool.
    let turn = if params.action.is_some() { turn } else { Turn::default() };
    let (tool, arguments, result, title) = match &params.action {
        Some(title) => {
            let action = page.action(seat, title)?;
            (action.tool, ordinary::fill(&action.arguments, &page.here), action.result, action.title)
        }
        None => {
            let (tool, argument) = choose(seat).await?;
            let text = if page.here.selection.is_empty() { &page.here.line } else { &page.here.selection };
            let title = tool.to_string();
            (title.clone(), Value::Object(Map::from_iter([(argument, json!(text))])), ActionResult::Show, title)
        }
    };
    let tool = ToolId::parse(&tool).ok_or_else(|| Error::InvalidParams(format!("`{tool}` is no tool")))?;
    let outcome = seat
        .engine
        .call(CallRequest {
            tool,
            arguments: arguments.as_object().cloned().unwrap_or_default(),
            decision: None,
            requester: Requester::default(),
            workflow: None,
            timeout: None,
            progress,
            turn,
        })
        .await?;
    let answer = ToolResult::new(&outcome)?;
    let text = text_of(&answer);
    match page.edit(result, &text) {
        _ if answer.is_error => show::message(seat, MessageType::ERROR, &text).await,
        Some(edit) => {
            // While the tool ran the user may have typed; then the place is another one.
            let moved = seat.documents.get(&page.document.uri).is_some_and(|now| now.text != page.document.text);
            if moved || !seat.apply(&page.document, vec![edit], &title).await {
                show::show(seat, &title, &text).await;
                let why = if moved { "the text has changed meanwhile" } else { "the editor would not change the text" };
                return Err(Error::Conflict(format!("{why}: the tool has run, and its result is only shown")));
            }
        }
        None => show::show(seat, &title, &text).await,
    }
    wire(&answer)
}

/// The text that an action was chosen in, and where.
struct Page {
    document: Document,
    places: Places,
    range: Range,
    here: Surroundings,
}

impl Page {
    fn open(seat: &Seat, params: &ActionRun) -> Result<Self> {
        let odd = |what: &str| Error::InvalidParams(format!("`mcp.action.run`: {what}"));
        let uri = Url::parse(&params.uri).map_err(|_| odd("`uri` is no address of a file"))?;
        let range: Range = serde_json::from_value(params.range.clone()).map_err(|_| odd("`range` is no range"))?;
        let document = match seat.documents.get(&uri) {
            Some(document) => document,
            None => from_disk(uri)?,
        };
        let places = Places::new(&document.text, seat.greeting().encoding);
        let span = places.span(range);
        let line = places.span(Range {
            start: tower_lsp::lsp_types::Position { line: range.start.line, character: 0 },
            end: tower_lsp::lsp_types::Position { line: range.start.line, character: u32::MAX },
        });
        let text = |span: std::ops::Range<usize>| document.text.get(span).unwrap_or_default().to_owned();
        let file = document.path.clone().unwrap_or_default();
        let folder = seat.folder_of(&file);
        let relative = folder.as_deref().and_then(|folder| file.strip_prefix(folder).ok()).unwrap_or(&file);
        let here = Surroundings {
            selection: text(span.clone()),
            word: ordinary::word_at(&document.text, span.start).to_owned(),
            line: text(line),
            file: file.display().to_string(),
            relative_file: relative.display().to_string(),
            filetype: document.language.clone(),
            workspace_folder: folder.map(|folder| folder.display().to_string()).unwrap_or_default(),
        };
        Ok(Self { places, range, here, document })
    }

    /// The action of this title; of several, one for this type of file.
    fn action(&self, seat: &Seat, title: &str) -> Result<Action> {
        let loaded = seat.engine.loaded().borrow().clone();
        let titled = || loaded.config.actions.iter().filter(|action| action.title == title);
        let fitting = titled().find(|action| ordinary::fits(action, &self.document.language));
        let action = fitting.or_else(|| titled().next()).cloned();
        action.ok_or_else(|| Error::NotFound(format!("no action named `{}`", one_line(title, 80))))
    }

    /// The change that puts a result into the text; none for one that is only shown.
    fn edit(&self, result: ActionResult, text: &str) -> Option<TextEdit> {
        let range = match result {
            ActionResult::Show => return None,
            ActionResult::Replace => self.range,
            ActionResult::Insert => Range { start: self.range.end, end: self.range.end },
            ActionResult::Append => {
                let end = self.places.position(self.document.text.len());
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

impl Seat {
    /// The workspace folder that a file lies in; without one the first.
    fn folder_of(&self, file: &Path) -> Option<PathBuf> {
        let folders = self.folders();
        let holding =
            folders.iter().filter(|folder| file.starts_with(folder)).max_by_key(|folder| folder.as_os_str().len());
        holding.or(folders.first()).cloned()
    }
}

/// A file that the editor has not told us about.
fn from_disk(uri: Url) -> Result<Document> {
    let path = convert::path(&uri).ok_or_else(|| Error::NotFound(format!("{uri} is not open")))?;
    let bytes = read_file(&path, LARGEST).map_err(|error| Error::Io(format!("{}: {error}", path.display())))?;
    let bytes = bytes.ok_or_else(|| Error::NotFound(format!("{} is not there", path.display())))?;
    let text: Arc<str> = String::from_utf8_lossy(&bytes).into();
    Ok(Document { uri, path: Some(path), language: String::new(), version: 0, text })
}

/// Asks which tool gets the selection; also the name of the argument that takes it.
async fn choose(seat: &Seat) -> Result<(ToolId, String)> {
    let snapshot = seat.engine.now();
    let mut takers = ordinary::takers(&snapshot);
    takers.truncate(BUTTONS);
    if takers.is_empty() {
        return Err(Error::NotFound("no connected server has a tool that takes one text".to_owned()));
    }
    let title = |id: &ToolId| format!("{}/{}", id.server, one_line(&id.tool, 64));
    let item = |id: &ToolId| MessageActionItem { title: title(id), properties: Default::default() };
    let params = ShowMessageRequestParams {
        typ: MessageType::INFO,
        message: "Which MCP tool gets the selection?".to_owned(),
        actions: Some(takers.iter().map(|(offered, _)| item(&offered.id)).collect()),
    };
    let answer = seat.editor.request::<ShowMessageRequest>(&params).await;
    let chosen = answer.ok().flatten().ok_or(Error::Cancelled)?;
    let taker = takers.iter().find(|(offered, _)| title(&offered.id) == chosen.title).ok_or(Error::Cancelled)?;
    Ok((taker.0.id.clone(), taker.1.to_owned()))
}

/// All texts of a result, made safe; what is no text is named.
fn text_of(result: &ToolResult<&RawValue>) -> String {
    let blocks: Vec<Value> = serde_json::from_str(result.content.get()).unwrap_or_default();
    let part = |content: &Value| {
        let field = |pointer: &str| content.pointer(pointer).and_then(Value::as_str);
        match field("/type") {
            Some("text") => field("/text").unwrap_or_default().to_owned(),
            Some("resource") => {
                field("/resource/text").or_else(|| field("/resource/uri")).unwrap_or_default().to_owned()
            }
            Some("resource_link") => field("/uri").unwrap_or_default().to_owned(),
            other => format!("({})", other.unwrap_or("something unknown")),
        }
    };
    let parts: Vec<String> = blocks.iter().map(part).collect();
    let text = match (parts.is_empty(), &result.structured_content) {
        (true, Some(structured)) => {
            serde_json::from_str(structured.get()).map_or_else(|_| String::new(), |value: Value| format!("{value:#}"))
        }
        _ => parts.join("\n"),
    };
    visible(&text, usize::MAX)
}
