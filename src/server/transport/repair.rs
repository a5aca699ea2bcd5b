//! Reads what servers send, as leniently as can be done without guessing. Pure: bytes in, messages out.
//!
//! Only the envelope of a message is parsed. A result stays the text that was sent, so that a megabyte passes through
//! without being understood, and one odd field in it harms nobody. Which request a reply belongs to is not known here:
//! that is the ledger's business.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Deeper answers are refused: whoever reads them next would fail on them, or run out of stack.
pub const DEEPEST: usize = 96;
/// How many places in a line of log text are tried as the start of a message.
const TRIES: usize = 16;

/// One message of a server.
#[derive(Debug)]
pub enum Incoming {
    /// An answer to one of our requests, or what was wrong with it.
    Reply {
        id: RequestId,
        outcome: Result<Box<RawValue>, ErrorData>,
    },
    /// An error that does not say which request it is about.
    Stray(ErrorData),
    Request {
        id: RequestId,
        method: String,
        params: Option<Value>,
    },
    Notice {
        method: String,
        params: Option<Value>,
    },
}

/// What a piece of text turned out to be.
#[derive(Debug)]
pub enum Reading {
    Messages(Vec<Incoming>),
    /// The beginning of a JSON text: the rest may stand on the lines that follow.
    Incomplete,
    Junk,
}

/// Reads one line: a message, a batch of them, or several on one line, with whatever log text stands around them.
pub fn read(line: &[u8]) -> Reading {
    let line = trim(line);
    match std::str::from_utf8(line) {
        Ok(text) => read_text(text),
        // A message whose envelope can be told is refused by name; its sender learns at once instead of after a timeout.
        Err(_) => match read_text(&String::from_utf8_lossy(line)) {
            Reading::Messages(messages) => Reading::Messages(messages.into_iter().map(not_utf8).collect()),
            Reading::Incomplete | Reading::Junk => Reading::Junk,
        },
    }
}

/// Removes a byte order mark and blanks around a line.
pub fn trim(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

/// Finds the id of a message that was too long to be kept, from how it begins and ends.
pub fn id_of_cut_message(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    id_at_the_start(head).or_else(|| id_at_the_end(tail))
}

/// What can be told of a message that no parser takes: half a character, a number beyond all bounds, a thousand levels.
pub struct Outline {
    pub id: RequestId,
    /// It asks for something; otherwise it answers a request of ours.
    pub is_request: bool,
}

/// The outline of a message, from its outer fields or, where it is cut, from how it begins and ends.
pub fn outline(head: &[u8], tail: &[u8]) -> Option<Outline> {
    if let Ok(Envelope { id: Some(Id::Known(id)), method, result, error, .. }) = serde_json::from_slice(trim(head)) {
        return Some(Outline { id, is_request: method.is_some() || result.is_none() && error.is_none() });
    }
    let id = id_of_cut_message(head, tail)?;
    let holds = |word: &[u8]| [head, tail].iter().any(|part| memchr::memmem::find(part, word).is_some());
    Some(Outline { id, is_request: holds(b"\"method\"") || !holds(b"\"result\"") && !holds(b"\"error\"") })
}

fn read_text(text: &str) -> Reading {
    match text.as_bytes().first() {
        Some(b'{') => match stream(text) {
            ControlFlow::Continue(messages) if !messages.is_empty() => Reading::Messages(messages),
            ControlFlow::Continue(_) => Reading::Junk,
            ControlFlow::Break(Fault::Cut) => Reading::Incomplete,
            ControlFlow::Break(Fault::Other) => glued(text),
        },
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) => {
                let messages: Vec<_> = items
                    .iter()
                    .filter_map(|item| serde_json::from_str::<Envelope<'_>>(item.get()).ok()?.open())
                    .collect();
                if messages.is_empty() { Reading::Junk } else { Reading::Messages(messages) }
            }
            Err(error) if error.is_eof() && !text.contains(']') => Reading::Incomplete,
            Err(_) => glued(text),
        },
        Some(_) => glued(text),
        None => Reading::Junk,
    }
}

/// Messages that stand after log text on the same line.
fn glued(text: &str) -> Reading {
    for (at, _) in text.match_indices('{').take(TRIES) {
        if let Some(rest) = text.get(at..)
            && let ControlFlow::Continue(messages) = stream(rest)
            && !messages.is_empty()
        {
            return Reading::Messages(messages);
        }
    }
    Reading::Junk
}

enum Fault {
    Cut,
    Other,
}

/// Reads one object after another; text behind the last one is dropped.
fn stream(text: &str) -> ControlFlow<Fault, Vec<Incoming>> {
    let mut messages = Vec::new();
    let mut first = true;
    for envelope in serde_json::Deserializer::from_str(text).into_iter::<Envelope<'_>>() {
        match envelope {
            Ok(envelope) => messages.extend(envelope.open()),
            Err(error) if first && error.is_eof() => return ControlFlow::Break(Fault::Cut),
            Err(_) if first => return ControlFlow::Break(Fault::Other),
            Err(_) => break,
        }
        first = false;
    }
    ControlFlow::Continue(messages)
}

/// The outer fields of a message, borrowed from its text.
#[derive(Default)]
struct Envelope<'a> {
    version: bool,
    id: Option<Id>,
    method: Option<Cow<'a, str>>,
    params: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
    /// Fields that JSON-RPC does not have: a sign of a log record, where `jsonrpc` is missing too.
    foreign: bool,
}

impl<'a> Envelope<'a> {
    fn open(self) -> Option<Incoming> {
        if !self.version && self.foreign {
            return None;
        }
        let id = match self.id {
            Some(Id::Known(id)) => Some(id),
            Some(Id::Absent) | None => None,
        };
        if let Some(method) = self.method {
            let params = self.params.and_then(|params| serde_json::from_str(params.get()).ok());
            let method = method.into_owned();
            return Some(match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notice { method, params },
            });
        }
        match (id, self.error, self.result) {
            (Some(id), Some(error), _) => Some(Incoming::Reply { id, outcome: Err(error_data(error)) }),
            (Some(id), None, Some(result)) => Some(Incoming::Reply { id, outcome: shallow(result) }),
            (None, Some(error), _) => Some(Incoming::Stray(error_data(error))),
            // Who waits for it learns at once that nothing will come.
            (Some(id), None, None) if self.version => {
                let empty = ErrorData::parse_error("answer has neither a result nor an error", None);
                Some(Incoming::Reply { id, outcome: Err(empty) })
            }
            (Some(_), None, None) | (None, None, _) => None,
        }
    }
}

enum Id {
    Known(RequestId),
    Absent,
}

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(key) = map.next_key::<Name<'de>>()? {
            match key.0.as_ref() {
                "jsonrpc" => {
                    map.next_value::<IgnoredAny>()?;
                    envelope.version = true;
                }
                "id" => envelope.id = Some(id(map.next_value()?)),
                "method" => {
                    let raw: &RawValue = map.next_value()?;
                    envelope.method = serde_json::from_str::<Name<'de>>(raw.get()).ok().map(|name| name.0);
                }
                "params" => envelope.params = present(map.next_value()?),
                // A result that is `null` is a result all the same: an answer came.
                "result" => envelope.result = Some(map.next_value()?),
                "error" => envelope.error = present(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    envelope.foreign = true;
                }
            }
        }
        Ok(envelope)
    }
}

/// A string that is borrowed where it holds no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

fn id(raw: &RawValue) -> Id {
    serde_json::from_str(raw.get()).map_or(Id::Absent, Id::Known)
}

fn present(raw: &RawValue) -> Option<&RawValue> {
    (raw.get() != "null").then_some(raw)
}

fn shallow(result: &RawValue) -> Result<Box<RawValue>, ErrorData> {
    if is_deeper_than(result.get().as_bytes(), DEEPEST) {
        return Err(ErrorData::parse_error(format!("answer is nested deeper than {DEEPEST} levels"), None));
    }
    match crate::text::fix_surrogates(result.get()) {
        Cow::Borrowed(_) => Ok(result.to_owned()),
        Cow::Owned(mended) => RawValue::from_string(mended)
            .map_err(|error| ErrorData::parse_error(format!("answer cannot be read: {error}"), None)),
    }
}

/// Takes an error in whatever form it comes: an object, one that lacks half of its fields, or just a text.
fn error_data(raw: &RawValue) -> ErrorData {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or(Value::Null);
    let code = value.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = match &value {
        Value::String(text) => text.clone(),
        value => match value.get("message") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "the server gave no reason".to_owned(),
            Some(other) => other.to_string(),
        },
    };
    let code = code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode);
    ErrorData::new(code, message, value.get("data").filter(|data| !data.is_null()).cloned())
}

fn not_utf8(message: Incoming) -> Incoming {
    match message {
        Incoming::Reply { id, outcome: Ok(_) } => {
            Incoming::Reply { id, outcome: Err(ErrorData::parse_error("answer is not UTF-8", None)) }
        }
        other => other,
    }
}

/// Whether brackets nest deeper than `limit`. Few brackets cannot, so most texts are only searched for them.
pub fn is_deeper_than(text: &[u8], limit: usize) -> bool {
    memchr::memchr2_iter(b'{', b'[', text).nth(limit).is_some() && {
        let mut nesting = Nesting::default();
        nesting.feed(text);
        nesting.deepest > limit
    }
}

/// Follows brackets and strings through a JSON text that arrives in pieces.
#[derive(Debug, Default)]
pub struct Nesting {
    depth: usize,
    deepest: usize,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    pub fn feed(&mut self, text: &[u8]) {
        for byte in text {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => {
                    self.depth += 1;
                    self.deepest = self.deepest.max(self.depth);
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Whether every bracket that was opened is closed again.
    pub fn is_closed(&self) -> bool {
        self.depth == 0 && !self.in_string
    }
}

/// `{"jsonrpc":"2.0","id":7,…`: looks at the keys of the outer object until the value that was cut.
fn id_at_the_start(head: &[u8]) -> Option<RequestId> {
    let head = String::from_utf8_lossy(trim(head));
    let mut rest = head.strip_prefix('{')?.trim_start();
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let key = values.next()?.ok()?;
        rest = rest.get(values.byte_offset()..)?.trim_start().strip_prefix(':')?.trim_start();
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let value = values.next()?.ok()?;
        if key == "id" {
            return serde_json::from_str(value.get()).ok();
        }
        rest = rest.get(values.byte_offset()..)?.trim_start().strip_prefix(',')?.trim_start();
    }
}

/// `…,"jsonrpc":"2.0","id":7}`: how servers end that write the result first.
fn id_at_the_end(tail: &[u8]) -> Option<RequestId> {
    let tail = String::from_utf8_lossy(trim(tail));
    let body = tail.strip_suffix('}')?.trim_end();
    let (_, after) = body.rsplit_once("\"id\"")?;
    serde_json::from_str(after.trim_start().strip_prefix(':')?.trim()).ok()
}

#[cfg(test)]
mod tests;
