//! Reads what nearly every message is: a flawless response, alone on its line. One pass checks it and finds its parts.

use super::{Incoming, MAX_DEPTH};
use crate::model::{RawJson, ResultParts, Scanner};

/// A response. `None` for everything else, and for what has to be repaired.
pub fn response(text: &str) -> Option<Incoming> {
    let (mut id, mut result) = (None, None);
    let mut scanner = Scanner::new(text);
    scanner.object(|scanner, key| match key {
        "jsonrpc" => scanner.value(),
        "id" if id.is_none() => {
            let value = scanner.value()?;
            id = Some(serde_json::from_str(value.get()).ok()?);
            Some(value)
        }
        "result" if result.is_none() => {
            let (value, parts) = match scanner.is_object() {
                true => ResultParts::read(scanner)?,
                false => (scanner.value()?, ResultParts::default()),
            };
            result = Some((value, parts));
            Some(value)
        }
        _ => None,
    })?;
    // The message itself is one level.
    let is_flawless = scanner.is_at_end()
        && scanner.deepest() <= MAX_DEPTH + 1
        && !(scanner.has_surrogates() || scanner.has_huge_number());
    let (id, (value, parts)) = (id?, result.filter(|_| is_flawless)?);
    Some(Incoming::Reply { id, outcome: Ok(RawJson::with_parts(value.to_raw(), parts)) })
}
