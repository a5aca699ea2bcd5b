//! Texts as they are stored: masked, and truncated with the length and digest of the whole.

use std::borrow::Cow;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::text::{holds_secret, mask};

/// For names, reasons and errors; more than any of them needs.
const MAX_TEXT: usize = 8 << 10;
/// How much is read beyond the stored part, to recognize a secret across the cut.
const MARGIN: usize = 64 << 10;
/// How much of the beginning and of the end of a long text its digest covers.
const DIGESTED: usize = 32 << 10;

/// A name, a reason or an error as stored.
pub fn masked(text: &str) -> Cow<'_, str> {
    let text = mask(text);
    // A text has at most as many characters as bytes.
    match Some(text.len()).filter(|length| *length > MAX_TEXT).and_then(|_| text.char_indices().nth(MAX_TEXT)) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text,
    }
}

/// JSON as stored: masked, and truncated at the limit, with the length and digest of the whole.
pub fn stored_json(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return mask(text).into_owned();
    }
    let beginning = mask(head(text, limit.saturating_add(MARGIN)));
    cut_json(head(&beginning, limit), text.len(), mask(text))
}

/// What is stored of a text that is too long.
fn cut_json(cut: &str, length: usize, masked: Cow<'_, str>) -> String {
    json!({ "cut": cut, "length": length, "sha256": digest(masked) }).to_string()
}

/// Of a result with a secret, only the length and digest are stored.
pub fn stored_result(text: &str, limit: usize) -> String {
    if holds_secret(text) {
        return json!({ "withheld": "contains a secret", "length": text.len(), "sha256": digest(mask(text)) })
            .to_string();
    }
    match text.len() {
        length if length <= limit => text.to_owned(),
        length => cut_json(head(text, limit), length, Cow::Borrowed(text)),
    }
}

/// The digest of the masked text, because that of a short secret could be guessed. Of a long text without a secret, only the
/// beginning and the end count: results of many megabytes are usual, and calls would wait for their digests.
fn digest(masked: Cow<'_, str>) -> String {
    let bytes = masked.as_bytes();
    let mut hash = Sha256::new();
    match (&masked, bytes.first_chunk::<DIGESTED>(), bytes.last_chunk::<DIGESTED>()) {
        (Cow::Borrowed(_), Some(first), Some(last)) if bytes.len() > 2 * DIGESTED => {
            hash.update(first);
            hash.update(last);
        }
        _ => hash.update(bytes),
    }
    crate::policy::hex(&hash.finalize())
}

fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}
