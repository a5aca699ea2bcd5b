//! Results that are too long for an agent: it gets the beginning, and reads on page by page with `read_result`, or by the
//! link to a resource. The pages are those of one text, so both ways have the same offsets.

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData};
use rmcp::service::RequestContext;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::handler::Handler;
use super::response;
use super::session::AgentView;
use crate::engine::Engine;
use crate::engine::gate::Outcome;
use crate::model::{CallResult, RawJson, tokens};
use crate::server::heavy;
use crate::text::counted;

pub const READ: &str = "read_result";
/// What the URI of a page begins with: `mcp-sidecar://results/ID?offset=N`.
const URI: &str = "mcp-sidecar://results/";
/// What separates the blocks of a result in the text.
const BETWEEN: &str = "\n\n";

/// The tool for agents that do not read resources.
pub fn tool() -> Value {
    json!({
        "name": READ,
        "title": "Read the rest of a long result",
        "description": "Returns the next part of a result that was too long to be returned at once. The end of such a result gives the id and the offset.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "id": { "type": "string", "description": "The id of the result" },
                "offset": { "type": "integer", "minimum": 0, "description": "Where to continue" },
            },
            "required": ["id", "offset"],
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    })
}

/// Prepares the results of one agent, and keeps those that are too long for it.
pub struct ResultKeeper {
    pub engine: Engine,
    /// The number of the agent's session.
    pub agent: u64,
    pub limit: Option<usize>,
}

impl ResultKeeper {
    /// What the agent gets.
    pub fn result(&self, outcome: Outcome) -> RawJson {
        let raw = response::result(&outcome);
        let cut = self.limit.and_then(|limit| heavy(raw.get().len(), || cut(&raw, &outcome.id.0, limit)));
        let Some(cut) = cut else { return raw };
        let result = CallResult { raw, ..outcome.result };
        self.engine.large_results().keep(self.agent, Outcome { result, ..outcome });
        cut
    }
}

impl Handler {
    pub(super) fn result_keeper(&self, context: &RequestContext<RoleServer>) -> ResultKeeper {
        let (engine, agent) = (self.endpoint().engine.clone(), self.session.number);
        ResultKeeper { engine, agent, limit: self.agent_view(context).view.result_limit }
    }

    /// A page of a long result, if the URI is that of one which this agent has got.
    pub(super) fn read_page(&self, agent: &AgentView, uri: &str) -> Option<Result<RawJson, ErrorData>> {
        let place = PagePosition::of_uri(uri)?;
        let kept = self.endpoint().engine.large_results().of_agent(self.session.number, &place.id)?;
        let page = page(&kept, &place, agent.view.result_limit?);
        Some(page.map_err(|text| ErrorData::invalid_params(text, None)).and_then(|page| {
            let error = || ErrorData::internal_error("the page cannot be written", None);
            page_contents(uri, &page).ok_or_else(error)
        }))
    }
}

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePosition {
    pub id: String,
    pub offset: usize,
}

impl PagePosition {
    /// The arguments of `read_result`.
    pub fn of_arguments(arguments: &Map<String, Value>) -> Result<Self, String> {
        let id = arguments.get("id").and_then(Value::as_str).ok_or("`id` must be the id of a result")?;
        let offset = match arguments.get("offset") {
            None | Some(Value::Null) => Some(0),
            Some(offset) => offset.as_u64().and_then(|offset| usize::try_from(offset).ok()),
        };
        Ok(Self { id: id.to_owned(), offset: offset.ok_or("`offset` must be a whole number")? })
    }

    fn of_uri(uri: &str) -> Option<Self> {
        let (id, query) = uri.strip_prefix(URI)?.split_once("?offset=")?;
        Some(Self { id: id.to_owned(), offset: query.parse().ok()? })
    }

    fn uri(&self) -> String {
        format!("{URI}{}?offset={}", self.id, self.offset)
    }
}

/// A result for an agent that gets at most this many tokens at once; `None` if it gets all of it. Structured content is
/// left out, because a part of it is not what its schema says.
pub fn cut(raw: &RawJson, id: &str, limit: usize) -> Option<RawJson> {
    if raw.get().len() <= limit.saturating_mul(tokens::BYTES) || tokens::of_result(raw) <= limit {
        return None;
    }
    let mut result: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
    let text = Text::of(&mut result);
    result.shift_remove("structuredContent");
    let end = text.end_of_page(0, limit);
    let shown = text.whole.get(..end).unwrap_or_default().to_owned();
    let mut content = vec![json!({ "type": "text", "text": shown })];
    // What is not text counts, too.
    let mut left = limit.saturating_sub(tokens::of_bytes(end));
    let mut dropped = 0;
    for block in text.others {
        let cost =
            to_raw_value(&json!({ "content": [&block] })).map_or(usize::MAX, |raw| tokens::of_result(&raw.into()));
        if cost <= left {
            left -= cost;
            content.push(block);
        } else {
            dropped += 1;
        }
    }
    let next = PagePosition { id: id.to_owned(), offset: end };
    content.push(json!({ "type": "text", "text": note(&next, text.whole.len(), dropped) }));
    if end < text.whole.len() {
        let name = "The rest of this result";
        content.push(json!({ "type": "resource_link", "uri": next.uri(), "name": name, "mimeType": "text/plain" }));
    }
    result.insert("content".to_owned(), Value::Array(content));
    to_raw_value(&result).ok().map(RawJson::from)
}

/// What is left out, and how to read on.
fn note(next: &PagePosition, length: usize, dropped: usize) -> String {
    let mut note = match next.offset < length {
        true => format!(
            "[This result is too long to be returned at once. Above is the text up to byte {} of {length}. To continue, call \
             {READ} with {{\"id\": \"{}\", \"offset\": {}}}, or read the linked resource. If you only need a part of it, call \
             the tool again with arguments that select this part.",
            next.offset, next.id, next.offset
        ),
        false => format!("[Above is the whole text of this result, {length} bytes."),
    };
    if dropped > 0 {
        let (what, was) = (counted(dropped, "attachment"), if dropped == 1 { "was" } else { "were" });
        note.push_str(&format!(" {what} (such as images) {was} left out; the user can see all of it."));
    }
    note.push(']');
    note
}

/// One page of a kept result, with a note how to read on.
pub fn page(raw: &RawValue, place: &PagePosition, limit: usize) -> Result<String, String> {
    let mut result: Map<String, Value> =
        serde_json::from_str(raw.get()).map_err(|_| "this result is not an object".to_owned())?;
    let text = Text::of(&mut result);
    let length = text.whole.len();
    if place.offset > length || !text.whole.is_char_boundary(place.offset) {
        return Err(format!("`offset` is not valid for this result, which has {length} bytes"));
    }
    let end = text.end_of_page(place.offset, limit);
    let mut page = text.whole.get(place.offset..end).unwrap_or_default().to_owned();
    page.push_str(&match end < length {
        true => format!(
            "\n[Up to byte {end} of {length}. To continue, call {READ} with {{\"id\": \"{}\", \"offset\": {end}}}.]",
            place.id
        ),
        false => format!("\n[This is the end of the result, {length} bytes.]"),
    });
    Ok(page)
}

/// A page as the result of `read_result`.
pub fn page_result(page: Result<String, String>) -> CallToolResult {
    match page {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
    }
}

/// A page as the result of `resources/read`.
fn page_contents(uri: &str, page: &str) -> Option<RawJson> {
    let contents = json!({ "contents": [{ "uri": uri, "mimeType": "text/plain", "text": page }] });
    to_raw_value(&contents).ok().map(RawJson::from)
}

/// A result as one text, and the blocks that are not text.
struct Text {
    whole: String,
    others: Vec<Value>,
}

impl Text {
    /// Takes the content out of a result. Without text, the structured content is the text.
    fn of(result: &mut Map<String, Value>) -> Self {
        let mut parts: Vec<String> = Vec::new();
        let mut others = Vec::new();
        let content = result.get_mut("content").map(Value::take);
        let Some(Value::Array(blocks)) = content else { return Self { whole: structured(result), others } };
        for block in blocks {
            let own = block.get("text").or_else(|| block.get("resource")?.get("text")).and_then(Value::as_str);
            match own.map(str::to_owned) {
                Some(text) => parts.push(text),
                None => others.push(block),
            }
        }
        let whole = if parts.is_empty() { structured(result) } else { parts.join(BETWEEN) };
        Self { whole, others }
    }

    /// Where a page that begins at `start` ends: at a character, and at the end of a line if there is one near.
    fn end_of_page(&self, start: usize, limit: usize) -> usize {
        let most = start.saturating_add(limit.saturating_mul(tokens::BYTES));
        if most >= self.whole.len() {
            return self.whole.len();
        }
        let end = self.whole.floor_char_boundary(most);
        let last = self.whole.floor_char_boundary(end - (end - start) / 8);
        let line = self.whole.get(last..end).and_then(|tail| tail.rfind('\n'));
        line.map_or(end, |line| last + line + 1)
    }
}

fn structured(result: &Map<String, Value>) -> String {
    result.get("structuredContent").map(Value::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(result: &Value) -> Box<RawValue> {
        to_raw_value(result).unwrap()
    }

    fn cut_value(result: &Value, limit: usize) -> Option<Value> {
        cut(&raw(result).into(), "id1", limit).map(|raw| serde_json::from_str(raw.get()).unwrap())
    }

    #[test]
    fn a_short_result_stays_as_it_is() {
        let result = json!({ "content": [{ "type": "text", "text": "short" }], "structuredContent": { "a": 1 } });
        assert_eq!(cut_value(&result, 2_000), None);
        // The encoded bytes of an image do not count.
        let image = json!({ "content": [{ "type": "image", "data": "A".repeat(50_000), "mimeType": "image/png" }] });
        assert_eq!(cut_value(&image, 2_000), None);
    }

    #[test]
    fn all_pages_together_are_the_whole_text() {
        let text: String = (0..3_000).map(|number| format!("line {number} with ünïcödé\n")).collect();
        let result = json!({ "content": [{ "type": "text", "text": text }, { "type": "text", "text": "the end" }], "isError": true });
        let cut = cut_value(&result, 2_000).unwrap();
        assert_eq!(cut["isError"], true);
        let first = cut["content"][0]["text"].as_str().unwrap();
        assert!(first.len() <= 8_000 && first.ends_with('\n'), "{}", first.len());
        let link = cut["content"][2]["uri"].as_str().unwrap();
        let mut place = PagePosition::of_uri(link).unwrap();
        assert_eq!(place, PagePosition { id: "id1".to_owned(), offset: first.len() });
        let note = cut["content"][1]["text"].as_str().unwrap();
        assert!(note.contains(&format!("{{\"id\": \"id1\", \"offset\": {}}}", first.len())), "{note}");
        let mut whole = first.to_owned();
        loop {
            let page = page(&raw(&result), &place, 2_000).unwrap();
            let (text, note) = page.rsplit_once("\n[").unwrap();
            assert!(text.len() <= 8_000);
            whole.push_str(text);
            place.offset += text.len();
            if note.starts_with("This is the end") {
                break;
            }
            assert!(note.contains(&format!("\"offset\": {}", place.offset)), "{note}");
        }
        assert_eq!(whole, format!("{text}\n\nthe end"));
    }

    #[test]
    fn structured_content_is_left_out_and_read_as_text_if_there_is_no_other() {
        let rows: Vec<Value> = (0..2_000).map(|number| json!({ "row": number })).collect();
        let both = json!({ "content": [{ "type": "text", "text": "x".repeat(20_000) }], "structuredContent": { "rows": rows } });
        let cut = cut_value(&both, 2_000).unwrap();
        assert!(cut.get("structuredContent").is_none());
        assert!(cut["content"][0]["text"].as_str().unwrap().starts_with("xxx"));
        let only = json!({ "content": [], "structuredContent": { "rows": rows } });
        let cut = cut_value(&only, 2_000).unwrap();
        assert!(cut["content"][0]["text"].as_str().unwrap().starts_with("{\"rows\":[{\"row\":0}"));
    }

    #[test]
    fn images_stay_if_there_is_room_and_are_counted_otherwise() {
        let image = json!({ "type": "image", "data": "A".repeat(9_000), "mimeType": "image/png" });
        let result = json!({ "content": [{ "type": "text", "text": "few words" }, image, image, image] });
        let cut = cut_value(&result, 3_500).unwrap();
        let kinds: Vec<&str> =
            cut["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["text", "image", "image", "text"]);
        assert!(cut["content"][3]["text"].as_str().unwrap().contains("1 attachment (such as images) was left out"));
    }

    #[test]
    fn places_that_are_not_in_the_result_are_refused() {
        let result = raw(&json!({ "content": [{ "type": "text", "text": "é" }] }));
        for offset in [1, 3, usize::MAX] {
            assert!(page(&result, &PagePosition { id: String::new(), offset }, 2_000).unwrap_err().contains("2 bytes"));
        }
        for odd in ["mcp-sidecar://results/a", "mcp-sidecar://results/a?offset=x", "demo://results/a?offset=0"] {
            assert_eq!(PagePosition::of_uri(odd), None, "{odd}");
        }
        assert!(PagePosition::of_arguments(&Map::new()).unwrap_err().contains("`id`"));
    }
}
