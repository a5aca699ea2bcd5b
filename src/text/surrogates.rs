//! JSON may contain half of a surrogate pair, such as a lone `\ud83d`, which UTF-8 cannot represent. It is replaced by
//! U+FFFD, so that the rest of the message can be read.

use std::borrow::Cow;

const REPLACEMENT: &str = "\\ufffd";

/// Replaces lone surrogates in a JSON text. Borrowed if there are none, which is the usual case.
pub fn fix_surrogates(json: &str) -> Cow<'_, str> {
    let mut fixed = String::new();
    let mut kept = 0;
    let mut from = 0;
    while let Some(at) = json.get(from..).and_then(|rest| memchr::memchr(b'\\', rest.as_bytes())).map(|at| from + at) {
        match surrogate(json, at) {
            Some(Half::High) if surrogate(json, at + 6) == Some(Half::Low) => from = at + 12,
            Some(_) => {
                fixed.push_str(json.get(kept..at).unwrap_or_default());
                fixed.push_str(REPLACEMENT);
                kept = at + 6;
                from = kept;
            }
            // Also skips `\\`, whose second backslash does not start an escape.
            None => from = json.ceil_char_boundary(at + 2),
        }
    }
    if kept == 0 {
        return Cow::Borrowed(json);
    }
    fixed.push_str(json.get(kept..).unwrap_or_default());
    Cow::Owned(fixed)
}

#[derive(PartialEq)]
enum Half {
    High,
    Low,
}

/// The surrogate that is escaped at this offset.
fn surrogate(json: &str, at: usize) -> Option<Half> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Half::High),
        0xdc00..=0xdfff => Some(Half::Low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        assert!(matches!(fix_surrogates(r#"{"a":"é \ud83d\ude00 \\ud83d \n \u00e9"}"#), Cow::Borrowed(_)));
        assert_eq!(fix_surrogates(r#""\ud83d""#), r#""\ufffd""#);
        assert_eq!(
            fix_surrogates(r#""a\uDE00b\ud83d\ud83d\ude00é\\\ud83d""#),
            r#""a\ufffdb\ufffd\ud83d\ude00é\\\ufffd""#
        );
        for odd in [r#""\ud83"#, r#""\"#, r#""\u"#, r"\é"] {
            assert_eq!(fix_surrogates(odd), odd);
        }
        assert!(serde_json::from_str::<String>(&fix_surrogates(r#""x\ud83d\n""#)).is_ok());
    }
}
