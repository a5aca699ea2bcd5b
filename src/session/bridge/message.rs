//! What a bridge reads of JSON-RPC messages and changes in them.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{BUFFER, KEPT_BUFFER, Memory};

/// The ids of our own requests begin with it.
pub const OWN: &str = "mcp-sidecar/";

pub const LOST: &str = "mcp-sidecar stopped while this request was running and is being restarted. The request may have been executed: check its effect before you send it again.";

/// Smaller messages are parsed as fast as they are copied.
const LARGE: usize = 16 << 10;

/// What is needed of a message to forward it.
#[derive(Deserialize)]
pub struct MessageHead<'a> {
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Option<Cow<'a, str>>,
}

impl<'a> MessageHead<'a> {
    pub fn of(body: &'a [u8]) -> Option<Self> {
        Self::of_large_response(body).or_else(|| serde_json::from_slice(body).ok())
    }

    /// A response that begins with its id, as our own do. The result is not read, because it can be large.
    fn of_large_response(body: &'a [u8]) -> Option<Self> {
        let rest = body.strip_prefix(br#"{"jsonrpc":"2.0","id":"#).filter(|rest| rest.len() > LARGE)?;
        let mut ids = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
        let id = ids.next()?.ok()?;
        let is_response = rest.get(ids.byte_offset()..)?.starts_with(br#","result":"#);
        is_response.then_some(Self { id: Some(id), method: None })
    }

    /// Whether it is a response to our own request.
    pub fn is_own(&self) -> bool {
        self.id.is_some_and(|id| id.get().trim_start_matches('"').starts_with(OWN))
    }
}

pub fn parsed(body: &[u8]) -> Option<Value> {
    serde_json::from_slice(body).ok()
}

pub fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

/// Adds the number of the engine to the id at `pointer`. The ids of different engines must differ, or a late response
/// would reach the wrong request.
pub fn renumber(message: &mut Value, pointer: &str, engine: u32) {
    if let Some(id) = message.pointer_mut(pointer) {
        *id = json!(format!("{OWN}{engine}/{id}"));
    }
}

/// Undoes [`renumber`]. Nothing if the id is from an engine that has ended.
pub fn restore(message: &mut Value, engine: u32) -> Option<()> {
    let id = message.get("id")?.as_str()?.strip_prefix(&format!("{OWN}{engine}/"))?;
    let id = serde_json::from_str(id).ok()?;
    set(message, "id", id);
    Some(())
}

pub fn no_engine(reason: &str) -> String {
    format!("mcp-sidecar is not running and could not be restarted: {reason}")
}

/// Reads messages with their frames.
pub struct Messages<R> {
    input: BufReader<R>,
    message: Vec<u8>,
}

impl<R: Read> Messages<R> {
    pub fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(BUFFER, input), message: Vec::new() }
    }

    /// The next message or piece of one, and whether it is complete.
    pub fn next<M: Memory>(&mut self) -> io::Result<Option<(&[u8], bool)>> {
        self.message.clear();
        self.message.shrink_to(KEPT_BUFFER);
        let is_whole = M::read(&mut self.input, &mut self.message)?;
        Ok(Some((self.message.as_slice(), is_whole)).filter(|(message, _)| !message.is_empty()))
    }
}
