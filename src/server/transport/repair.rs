//! Parses messages of servers as leniently as possible without guessing. Pure: bytes in, messages out.
//!
//! Only the envelope of a message is parsed. A result stays the original text, so that large results are cheap and an
//! invalid field in them does no harm. The ledger matches replies to requests.

mod limits;
mod quick;

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use rmcp::model::{ErrorData, RequestId};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

pub use limits::TooManyValues;
use limits::{Messages, error_data, params};

use crate::model::{RawJson, Scanner};
use crate::text::{json_reason, mask, one_line};

/// Deeper responses are rejected: clients would fail on them or overflow their stack.
pub const MAX_DEPTH: usize = 96;
/// How many positions in a line of log text are tried as the start of a message.
const MAX_STARTS: usize = 16;

/// A message of a server.
#[derive(Debug)]
pub enum Incoming {
    /// A response to one of our requests, or why it is invalid.
    Reply {
        id: RequestId,
        outcome: Result<RawJson, ErrorData>,
    },
    /// An error without a request id.
    ErrorWithoutId(ErrorData),
    Request {
        id: RequestId,
        method: String,
        params: Result<Option<Value>, TooManyValues>,
    },
    Notification {
        method: String,
        params: Option<Value>,
    },
    /// Something was ignored, and why.
    Ignored(String),
}

/// The outcome of parsing a text.
#[derive(Debug)]
pub enum Parsed {
    Messages(Vec<Incoming>),
    /// The start of a JSON text: the rest may follow on the next lines.
    Incomplete,
    Junk,
}

/// Parses one line: a message, a batch, or several messages, with log text around them.
pub fn read(line: &[u8]) -> Parsed {
    let line = trim(line);
    match std::str::from_utf8(line) {
        Ok(text) => read_text(text),
        // If the envelope is readable, the request fails immediately instead of timing out.
        Err(_) => match read_text(&String::from_utf8_lossy(line)) {
            Parsed::Messages(messages) => Parsed::Messages(messages.into_iter().map(not_utf8).collect()),
            Parsed::Incomplete | Parsed::Junk => Parsed::Junk,
        },
    }
}

/// Removes a byte order mark and surrounding whitespace.
pub fn trim(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii()
}

/// Finds the id of a message that was too long, from its start and end.
pub fn id_of_cut_message(head: &[u8], tail: &[u8]) -> Option<RequestId> {
    id_at_the_start(head).or_else(|| id_at_the_end(tail))
}

/// What is known about a message that cannot be parsed: a lone surrogate, a number out of range, too many levels.
pub struct Outline {
    pub id: RequestId,
    /// It is a request; otherwise it is a response to one of ours.
    pub is_request: bool,
}

/// The outline of a message, from its outer fields or, if it is incomplete, from its start and end.
pub fn outline(head: &[u8], tail: &[u8]) -> Option<Outline> {
    if let Ok(Envelope { id: Some(Id::Known(id)), method, result, error, .. }) = serde_json::from_slice(trim(head)) {
        return Some(Outline { id, is_request: method.is_some() || result.is_none() && error.is_none() });
    }
    let id = id_of_cut_message(head, tail)?;
    let holds = |word: &[u8]| [head, tail].iter().any(|part| memchr::memmem::find(part, word).is_some());
    Some(Outline { id, is_request: holds(b"\"method\"") || !holds(b"\"result\"") && !holds(b"\"error\"") })
}

fn read_text(text: &str) -> Parsed {
    if let Some(response) = quick::response(text) {
        return Parsed::Messages(vec![response]);
    }
    match text.as_bytes().first() {
        Some(b'{') => match parse_objects(text) {
            ControlFlow::Continue(messages) if !messages.is_empty() => Parsed::Messages(messages),
            ControlFlow::Continue(_) => Parsed::Junk,
            ControlFlow::Break(ParseError::Incomplete) => Parsed::Incomplete,
            ControlFlow::Break(ParseError::Other) => after_log_text(text),
        },
        Some(b'[') => match Messages::of_batch(text) {
            Ok(Messages { found, .. }) if found.is_empty() => Parsed::Junk,
            Ok(Messages { found, .. }) => Parsed::Messages(found),
            Err(error) if error.is_eof() && !text.contains(']') => Parsed::Incomplete,
            Err(_) => after_log_text(text),
        },
        Some(_) => after_log_text(text),
        None => Parsed::Junk,
    }
}

/// Messages after log text on the same line.
fn after_log_text(text: &str) -> Parsed {
    for (at, _) in text.match_indices('{').take(MAX_STARTS) {
        if let Some(rest) = text.get(at..)
            && let ControlFlow::Continue(messages) = parse_objects(rest)
            && !messages.is_empty()
        {
            return Parsed::Messages(messages);
        }
    }
    Parsed::Junk
}

enum ParseError {
    Incomplete,
    Other,
}

/// Parses one object after another; text after the last one is ignored.
fn parse_objects(text: &str) -> ControlFlow<ParseError, Vec<Incoming>> {
    let mut messages = Messages::default();
    let mut first = true;
    for envelope in serde_json::Deserializer::from_str(text).into_iter::<Envelope<'_>>() {
        match envelope {
            Ok(envelope) => {
                if !messages.add(envelope.into_message()) {
                    break;
                }
            }
            Err(error) if first && error.is_eof() => return ControlFlow::Break(ParseError::Incomplete),
            Err(_) if first => return ControlFlow::Break(ParseError::Other),
            Err(_) => break,
        }
        first = false;
    }
    ControlFlow::Continue(messages.found)
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
    /// Whether there are fields that JSON-RPC does not have: without `jsonrpc` it is a log record then.
    foreign: bool,
}

impl<'a> Envelope<'a> {
    fn into_message(self) -> Option<Incoming> {
        if !self.version && self.foreign {
            return None;
        }
        let id = match self.id {
            Some(Id::Known(id)) => Some(id),
            Some(Id::Absent) | None => None,
        };
        if let Some(method) = self.method {
            let params = params(self.params);
            let method = method.into_owned();
            return Some(match (id, params) {
                (Some(id), params) => Incoming::Request { id, method, params },
                (None, Ok(params)) => Incoming::Notification { method, params },
                (None, Err(reason)) => {
                    Incoming::Ignored(format!("a `{}` notification: {reason}", one_line(&mask(&method), 80)))
                }
            });
        }
        match (id, self.error, self.result) {
            (Some(id), Some(error), _) => Some(Incoming::Reply { id, outcome: Err(error_data(error)) }),
            (Some(id), None, Some(result)) => Some(Incoming::Reply { id, outcome: check_result(result) }),
            (None, Some(error), _) => Some(Incoming::ErrorWithoutId(error_data(error))),
            // The caller learns immediately that there is no result.
            (Some(id), None, None) if self.version => {
                let empty = ErrorData::parse_error("the response has neither a result nor an error", None);
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
                // A result that is `null` is a result, too.
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

/// A string that is borrowed if it has no escapes.
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

fn check_result(result: &RawValue) -> Result<RawJson, ErrorData> {
    if is_deeper_than(result.get().as_bytes(), MAX_DEPTH) {
        return Err(ErrorData::parse_error(format!("the response is nested deeper than {MAX_DEPTH} levels"), None));
    }
    let mut scanner = Scanner::new(result.get());
    scanner.value();
    if scanner.has_huge_number() {
        // Strict clients would reject the whole message.
        return Err(ErrorData::parse_error("the response contains a number that is too large", None));
    }
    let raw = match crate::text::fix_surrogates(result.get()) {
        Cow::Borrowed(_) => Ok(result.to_owned()),
        Cow::Owned(repaired) => RawValue::from_string(repaired),
    };
    raw.map(RawJson::from)
        .map_err(|error| ErrorData::parse_error(format!("cannot parse the response: {}", json_reason(&error)), None))
}

fn not_utf8(message: Incoming) -> Incoming {
    match message {
        Incoming::Reply { id, outcome: Ok(_) } => {
            Incoming::Reply { id, outcome: Err(ErrorData::parse_error("the response is not valid UTF-8", None)) }
        }
        other => other,
    }
}

/// Whether brackets are nested deeper than `limit`. Texts with few brackets are only searched for them.
pub fn is_deeper_than(text: &[u8], limit: usize) -> bool {
    memchr::memchr2_iter(b'{', b'[', text).nth(limit).is_some() && {
        let mut nesting = Nesting::default();
        nesting.feed(text);
        nesting.deepest > limit
    }
}

/// Tracks brackets and strings in a JSON text that arrives in pieces.
#[derive(Debug, Default)]
pub struct Nesting {
    depth: usize,
    deepest: usize,
    in_string: bool,
    escaped: bool,
    /// For each open bracket, whether it is that of a list; the innermost is the lowest bit.
    lists: u128,
    /// The last byte that is neither whitespace nor in a string.
    last: u8,
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
                    self.lists = self.lists << 1 | u128::from(*byte == b'[');
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.lists >>= 1;
                }
                b' ' | b'\n' | b'\r' | b'\t' => continue,
                _ => {}
            }
            self.last = *byte;
        }
    }

    /// Whether the next text must be a value, so that a bracket opens a part of this one.
    pub fn expects_value(&self) -> bool {
        let in_list = self.lists & 1 == 1;
        !self.in_string && matches!((self.last, in_list), (b':', false) | (b'[' | b',', true))
    }

    /// Whether all brackets are closed.
    pub fn is_closed(&self) -> bool {
        self.depth == 0 && !self.in_string
    }
}

/// `{"jsonrpc":"2.0","id":7,…`: reads the keys of the outer object up to the incomplete value.
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

/// `…,"jsonrpc":"2.0","id":7}`: the end of a message that has the result first.
fn id_at_the_end(tail: &[u8]) -> Option<RequestId> {
    let tail = String::from_utf8_lossy(trim(tail));
    let body = tail.strip_suffix('}')?.trim_end();
    let (_, after) = body.rsplit_once("\"id\"")?;
    serde_json::from_str(after.trim_start().strip_prefix(':')?.trim()).ok()
}

#[cfg(test)]
mod tests;
