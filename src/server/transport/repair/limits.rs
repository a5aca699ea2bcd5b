//! The parts of a message that are parsed into values, and the messages of one text. A server decides how large they are, so
//! both are limited.

use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Envelope, Incoming};
use crate::model::json_memory::{each_item, is_light};

/// How many messages of one line, or of one event, are read. The rest is ignored.
const MAX_MESSAGES: usize = 1_000;

/// The messages of one text.
#[derive(Default)]
pub struct Messages {
    pub found: Vec<Incoming>,
    is_full: bool,
}

impl Messages {
    /// Adds a message. Returns false when the rest of the text must be ignored.
    pub fn add(&mut self, message: Option<Incoming>) -> bool {
        if self.found.len() < MAX_MESSAGES {
            self.found.extend(message);
        } else if message.is_some() && !self.is_full {
            self.is_full = true;
            let reason = format!("there are more than {MAX_MESSAGES} messages in one line");
            self.found.push(Incoming::Ignored(reason));
        }
        !self.is_full
    }

    /// The messages of a batch.
    pub fn of_batch(text: &str) -> serde_json::Result<Self> {
        let mut messages = Self::default();
        each_item(text, |item| {
            if !messages.is_full {
                let envelope = serde_json::from_str::<Envelope<'_>>(item.get());
                messages.add(envelope.ok().and_then(Envelope::into_message));
            }
        })?;
        Ok(messages)
    }
}

/// The params of a request or notification have too many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the params have too many values")]
pub struct TooManyValues;

/// Parses params. None if there are none, or if they are invalid.
pub fn params(raw: Option<&RawValue>) -> Result<Option<Value>, TooManyValues> {
    match raw {
        Some(raw) if !is_light(raw.get()) => Err(TooManyValues),
        raw => Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok())),
    }
}

/// Accepts an error in any form: an object, an object with missing fields, or a string. Data with too many values is left out.
pub fn error_data(raw: &RawValue) -> ErrorData {
    #[derive(Default, Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let no_reason = || "no reason given".to_owned();
    let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok();
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(raw.get()) else {
        return ErrorData::new(ErrorCode::INTERNAL_ERROR, text(raw).unwrap_or_else(no_reason), None);
    };
    let code = fields.code.and_then(|code| serde_json::from_str(code.get()).ok()).map(ErrorCode);
    let message = fields.message.filter(|message| message.get() != "null");
    let message = message.map_or_else(no_reason, |message| text(message).unwrap_or_else(|| message.get().to_owned()));
    let data = fields.data.filter(|data| is_light(data.get()));
    let data: Option<Value> = data.and_then(|data| serde_json::from_str(data.get()).ok());
    ErrorData::new(code.unwrap_or(ErrorCode::INTERNAL_ERROR), message, data.filter(|data| !data.is_null()))
}
