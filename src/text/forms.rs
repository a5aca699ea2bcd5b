//! The forms in which a secret may appear: as it is, escaped in JSON, in a URL, in base64 or hex, line by line.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Shorter values are too common to be masked: `1`, `true`, `info`.
const SHORTEST: usize = 6;
/// A part of a value (one line of a key, the middle of its base64) must be longer to be distinctive.
const SHORTEST_PART: usize = 12;
/// A line of a value of several lines. Log files contain them one by one.
const SHORTEST_LINE: usize = 8;

/// Every text that reveals `value`.
pub(super) fn forms(value: &str) -> BTreeSet<String> {
    let mut forms = BTreeSet::new();
    let value = value.trim();
    if value.len() < SHORTEST {
        return forms;
    }
    let escaped = json(value);
    // Tools often return JSON inside a JSON string.
    forms.insert(json(&escaped));
    forms.insert(escaped);
    forms.insert(percent(value, false));
    forms.insert(percent(value, true));
    for shift in 0..3 {
        for alphabet in [STANDARD, URL_SAFE] {
            forms.extend(
                Some(base64_inside(value.as_bytes(), shift, alphabet)).filter(|text| text.len() >= SHORTEST_PART),
            );
        }
    }
    // A private key is often printed line by line.
    forms.extend(value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE).map(str::to_owned));
    forms.insert(value.bytes().map(|byte| format!("{byte:02x}")).collect());
    forms.insert(value.bytes().map(|byte| format!("{byte:02X}")).collect());
    forms.insert(value.to_owned());
    forms
}

/// The value between the quotes of a JSON string.
fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

fn percent(value: &str, lower: bool) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => text.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ if lower => write!(text, "%{byte:02x}").unwrap_or_default(),
            _ => write!(text, "%{byte:02X}").unwrap_or_default(),
        }
    }
    text
}

type Alphabet = &'static [u8; 64];
const STANDARD: Alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: Alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The base64 characters that only depend on `bytes` if `shift` (mod 3) other bytes come before them, as in
/// `Basic base64(user:token)`.
fn base64_inside(bytes: &[u8], shift: usize, alphabet: Alphabet) -> String {
    let bit = |index: usize| -> Option<u8> {
        let byte = bytes.get((index / 8).checked_sub(shift)?)?;
        Some((byte >> (7 - index % 8)) & 1)
    };
    let characters = ((bytes.len() + shift) * 8) / 6;
    (0..characters)
        .filter_map(|character| {
            let mut six = 0u8;
            for index in character * 6..character * 6 + 6 {
                six = (six << 1) | bit(index)?;
            }
            alphabet.get(usize::from(six)).map(|byte| char::from(*byte))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_in_every_form() {
        insta::assert_snapshot!(forms("pass \"word\"/é").into_iter().collect::<Vec<_>>().join("\n"), @r#"
        706173732022776F7264222FC3A9
        706173732022776f7264222fc3a9
        Bhc3MgIndvcmQiL8Op
        cGFzcyAid29yZCIvw6
        pass "word"/é
        pass \"word\"/é
        pass \\\"word\\\"/é
        pass%20%22word%22%2F%C3%A9
        pass%20%22word%22%2f%c3%a9
        wYXNzICJ3b3JkIi/Dq
        wYXNzICJ3b3JkIi_Dq
        "#);
    }
}
