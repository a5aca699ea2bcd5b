//! Finds the outer fields of a JSON object without parsing what is in them. The text must be valid JSON already, which makes
//! this several times faster than a parser.

/// The fields of an object with their values, as they are written. Nothing for any other value.
pub fn outer_fields(json: &str) -> OuterFields<'_> {
    let inside = json.trim_ascii_start().strip_prefix('{');
    OuterFields { json, at: inside.map_or(json.len(), |inside| json.len() - inside.len()) }
}

/// Iterates over keys and values. A key has its quotes and escapes.
pub struct OuterFields<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Iterator for OuterFields<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.json.as_bytes();
        let key = self.at + bytes.get(self.at..)?.iter().position(|byte| *byte == b'"')?;
        let key_end = end_of_string(bytes, key)?;
        let colon = key_end + memchr::memchr(b':', bytes.get(key_end..)?)?;
        let value = colon + 1 + bytes.get(colon + 1..)?.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let value_end = end_of_value(bytes, value)?;
        self.at = value_end;
        Some((self.json.get(key..key_end)?, self.json.get(value..value_end)?.trim_ascii_end()))
    }
}

/// The end of the string that begins at this quote.
fn end_of_string(bytes: &[u8], quote: usize) -> Option<usize> {
    let mut at = quote + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// The end of the value that begins here: the comma or bracket after it.
fn end_of_value(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at = end_of_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b',' if depth == 0 => return Some(at),
            b'}' | b']' => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return Some(at),
            },
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(json: &str) -> Vec<(&str, &str)> {
        outer_fields(json).collect()
    }

    #[test]
    fn only_outer_fields_are_found() {
        let json = r#" { "a" : [ 1, {"b": "}"}, "\"]" ] , "isError":true,"c":"x\\", "d" : {} , "e":null } "#;
        let found = fields(json);
        let expected = [
            ("\"a\"", r#"[ 1, {"b": "}"}, "\"]" ]"#),
            ("\"isError\"", "true"),
            ("\"c\"", r#""x\\""#),
            ("\"d\"", "{}"),
            ("\"e\"", "null"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn other_values_have_no_fields() {
        for json in ["[{\"a\":1}]", "{}", " { } ", "null", "\"{\\\"a\\\":1}\"", "1", ""] {
            assert!(fields(json).is_empty(), "{json}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_fields_are_those_of_a_parser(text in "\\PC{0,12}", number in 0_i64..100, deep in 0_usize..5) {
            let nested = (0..deep).fold(serde_json::json!(text), |inner, _| serde_json::json!([{ "x": inner }, ","]));
            let value = serde_json::json!({ "first": nested, &text: number, "last": [text, "]"] });
            for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
                let found = fields(&json).into_iter().map(|(key, value)| (read(key), read(value)));
                let expected = value.as_object().unwrap().iter().map(|(key, value)| (serde_json::json!(key), value.clone()));
                proptest::prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
            }
        }
    }
}
