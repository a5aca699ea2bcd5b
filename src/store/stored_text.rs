//! Texts as they are stored: masked, and truncated with the length and digest of the whole.

use std::borrow::Cow;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::text::{holds_secret, mask};

/// For names, reasons and errors; more than any of them needs.
const MAX_TEXT: usize = 8 << 10;
/// How much is read beyond the stored part, to recognize a secret across the cut.
const MARGIN: usize = 64 << 10;
/// How much of the beginning and of the end of a long text its digest covers. Results of many megabytes are usual, and calls
/// would wait for the digest of all of it.
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

/// JSON as stored: masked, and truncated at the limit, with the length of the whole and a digest.
pub fn stored_json(text: &str, limit: usize) -> String {
    match LongText::of(text, limit) {
        None => mask(text).into_owned(),
        Some(long) => long.masked().truncated(text.len(), limit),
    }
}

/// Of a result with a secret, only the length and digest are stored.
pub fn stored_result(text: &str, limit: usize) -> String {
    let withheld =
        |digest: String| json!({ "withheld": "contains a secret", "length": text.len(), "sha256": digest }).to_string();
    match LongText::of(text, limit) {
        None if holds_secret(text) => withheld(digest([mask(text).as_bytes(), &[]])),
        None => text.to_owned(),
        Some(long) if long.holds_secret() => withheld(long.masked().digest()),
        Some(long) => long.truncated(text.len(), limit),
    }
}

/// What is read of a text that is not stored as a whole. What is neither stored nor part of the digest is not even searched
/// for secrets.
struct LongText<'a> {
    beginning: Cow<'a, str>,
    end: Cow<'a, str>,
}

impl<'a> LongText<'a> {
    /// `None` for a text within the limit.
    fn of(text: &'a str, limit: usize) -> Option<Self> {
        let beginning = head(text, limit.max(DIGESTED).saturating_add(MARGIN));
        let end = text.get(text.ceil_char_boundary(text.len().saturating_sub(DIGESTED + MARGIN))..)?;
        (text.len() > limit).then_some(Self { beginning: beginning.into(), end: end.into() })
    }

    fn holds_secret(&self) -> bool {
        holds_secret(&self.beginning) || holds_secret(&self.end)
    }

    fn masked(&self) -> LongText<'_> {
        LongText { beginning: mask(&self.beginning), end: mask(&self.end) }
    }

    fn truncated(&self, length: usize, limit: usize) -> String {
        json!({ "cut": head(&self.beginning, limit), "length": length, "sha256": self.digest() }).to_string()
    }

    /// Of the masked text, because that of a short secret could be guessed.
    fn digest(&self) -> String {
        let (beginning, end) = (self.beginning.as_bytes(), self.end.as_bytes());
        let first = beginning.get(..DIGESTED).unwrap_or(beginning);
        digest([first, end.last_chunk::<DIGESTED>().map_or(end, |last| last)])
    }
}

fn digest(parts: [&[u8]; 2]) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    crate::policy::hex(&hash.finalize())
}

fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Secret;

    fn field(stored: &str, key: &str) -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(stored).unwrap()[key].clone()
    }

    #[test]
    fn a_secret_is_stored_nowhere_wherever_it_is_in_a_long_text() {
        let secret = "stored-text-secret-value";
        Secret::new(secret);
        let filler = "x".repeat(300_000);
        for at in [0, 90, 16_375, 40_000, 150_000, 280_000, 300_000] {
            let text = format!("{}{secret}{}", &filler[..at], &filler[at..]);
            for stored in [stored_result(&text, 16 << 10), stored_json(&text, 16 << 10)] {
                assert!(!stored.contains(&secret[..9]), "{at}");
                assert_eq!(field(&stored, "length"), text.len());
            }
        }
    }

    #[test]
    fn a_digest_does_not_depend_on_a_secret() {
        let text = |secret: &str| {
            Secret::new(secret);
            format!("{}{secret}{}", "x".repeat(30_000), "y".repeat(200_000))
        };
        let (one, other) = (text("digested-secret-1"), text("digested-secret-2"));
        for stored in [stored_result, stored_json] {
            let digests = [&one, &other].map(|text| field(&stored(text, 16 << 10), "sha256"));
            assert_eq!(digests[0], digests[1]);
        }
        let different = one.replace('y', "z");
        assert_ne!(field(&stored_json(&one, 9), "sha256"), field(&stored_json(&different, 9), "sha256"));
    }

    #[test]
    fn a_text_is_cut_only_beyond_the_limit() {
        assert_eq!(stored_json("\"aé\"", 5), "\"aé\"");
        assert_eq!(field(&stored_json("\"aé\"", 3), "cut"), "\"a");
        assert_eq!(stored_result("1", 1), "1");
        assert_eq!(field(&stored_result("123", 1), "cut"), "1");
    }
}
