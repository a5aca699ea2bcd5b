//! Checks JSON and finds its fields in a single pass, without parsing the values. A parser that skips values does the same,
//! but not the depth and the escapes at once, and a result of a megabyte would be read four times.

use std::ops::Range;

use serde_json::value::RawValue;

/// Deeper texts are not read to their end: one bit for each level.
const MAX_DEPTH: u32 = u128::BITS;
/// A number with fewer digits and no exponent is not huge.
const MAX_DIGITS: usize = 300;
/// Strings are searched by this many bytes at a time.
const WORD: usize = size_of::<u64>();

/// Reads one text from its start. Whatever returns `None` has met something that is not JSON, or too deep.
#[derive(Default)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How many objects are being read.
    depth: u32,
    deepest: u32,
    has_surrogates: bool,
    has_huge_number: bool,
}

/// A value that a scanner has read from its first byte to its last.
#[derive(Debug, Clone, Copy)]
pub struct Json<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

impl<'a> Json<'a> {
    /// A value at a place where a scanner has found one. Only for `ResultParts`, whose ranges come from a scanner.
    pub(super) fn part(text: &'a str, range: Range<usize>) -> Self {
        Self { text, start: range.start, end: range.end }
    }

    pub fn get(&self) -> &'a str {
        self.text.get(self.range()).unwrap_or_default()
    }

    /// Where it is in the text of the scanner.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// A copy that is not checked again.
    #[expect(unsafe_code, reason = "a parser would check a megabyte once more")]
    pub fn to_raw(self) -> Box<RawValue> {
        // SAFETY: only `Scanner::value` and `Scanner::object` create these, and `part` for what they have found: one valid
        // value without whitespace around it.
        unsafe { RawValue::from_string_unchecked(self.get().to_owned()) }
    }
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, ..Self::default() }
    }

    /// How deep the values were nested that are read by now.
    pub fn deepest(&self) -> usize {
        self.deepest as usize
    }

    /// Whether a string contains the escape of a surrogate, alone or in a pair.
    pub fn has_surrogates(&self) -> bool {
        self.has_surrogates
    }

    /// Whether there is a number that many programs cannot represent, such as `1e999`.
    pub fn has_huge_number(&self) -> bool {
        self.has_huge_number
    }

    /// Whether the next value is an object.
    pub fn is_object(&mut self) -> bool {
        self.skip_space();
        self.byte() == Some(b'{')
    }

    /// Whether only whitespace is left.
    pub fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    /// Reads an object. Calls `field` with each key, without its quotes but with its escapes. It reads the value and returns
    /// it.
    pub fn object(&mut self, mut field: impl FnMut(&mut Self, &'a str) -> Option<Json<'a>>) -> Option<Json<'a>> {
        self.skip_space();
        let start = self.at;
        self.skip_byte(b'{')?;
        self.skip_space();
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        if self.skip_byte(b'}').is_some() {
            self.depth -= 1;
            return Some(self.json(start));
        }
        loop {
            let key = self.key()?;
            let value_start = self.at;
            let value = field(self, self.text.get(key)?)?;
            if value.range() != (value_start..self.at) {
                return None;
            }
            self.skip_space();
            if self.skip_byte(b'}').is_some() {
                self.depth -= 1;
                return Some(self.json(start));
            }
            self.skip_byte(b',')?;
            self.skip_space();
        }
    }

    /// Reads any value.
    pub fn value(&mut self) -> Option<Json<'a>> {
        self.skip_space();
        let start = self.at;
        // For each level, whether it is an object.
        let (mut levels, mut depth) = (0_u128, 0);
        loop {
            let is_empty = match self.byte()? {
                open @ (b'{' | b'[') => {
                    let is_object = open == b'{';
                    self.at += 1;
                    depth += 1;
                    self.deepest = self.deepest.max(self.depth + depth);
                    if depth > MAX_DEPTH {
                        return None;
                    }
                    levels = levels << 1 | u128::from(is_object);
                    self.skip_space();
                    let is_empty = self.byte()? == if is_object { b'}' } else { b']' };
                    if !is_empty && is_object {
                        self.key()?;
                    }
                    is_empty
                }
                other => {
                    self.scalar(other)?;
                    true
                }
            };
            if !is_empty {
                continue;
            }
            loop {
                if depth == 0 {
                    return Some(self.json(start));
                }
                self.skip_space();
                let is_object = levels & 1 == 1;
                match self.byte()? {
                    b',' => {
                        self.at += 1;
                        self.skip_space();
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    b'}' if is_object => {}
                    b']' if !is_object => {}
                    _ => return None,
                }
                self.at += 1;
                depth -= 1;
                levels >>= 1;
            }
        }
    }

    /// What was read since `start`.
    fn json(&self, start: usize) -> Json<'a> {
        Json { text: self.text, start, end: self.at }
    }

    /// A key with its colon, up to the value.
    fn key(&mut self) -> Option<Range<usize>> {
        let start = self.at + 1;
        self.skip_byte(b'"')?;
        self.string()?;
        let key = start..self.at - 1;
        self.skip_space();
        self.skip_byte(b':')?;
        self.skip_space();
        Some(key)
    }

    fn scalar(&mut self, first: u8) -> Option<()> {
        match first {
            b'"' => {
                self.at += 1;
                self.string()
            }
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => None,
        }
    }

    /// The rest of a string after its first quote.
    fn string(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        loop {
            while let Some(word) = bytes.get(self.at..self.at + WORD) {
                let special = special_bytes(u64::from_le_bytes(word.try_into().ok()?));
                if special != 0 {
                    self.at += special.trailing_zeros() as usize / 8;
                    break;
                }
                self.at += WORD;
            }
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.escape()?,
                0..0x20 => return None,
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        match bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = bytes.get(self.at + 2..self.at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.has_surrogates |= matches!(digits, [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..]);
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    fn number(&mut self) -> Option<()> {
        let start = self.at;
        self.skip_byte(b'-');
        if self.skip_byte(b'0').is_none() {
            self.digits()?;
        }
        if self.skip_byte(b'.').is_some() {
            self.digits()?;
        }
        let has_exponent = self.skip_byte(b'e').or_else(|| self.skip_byte(b'E')).is_some();
        if has_exponent {
            self.skip_byte(b'+').or_else(|| self.skip_byte(b'-'));
            self.digits()?;
        }
        if has_exponent || self.at - start > MAX_DIGITS {
            let number = self.text.get(start..self.at)?;
            self.has_huge_number |= number.parse().is_ok_and(f64::is_infinite);
        }
        Some(())
    }

    /// At least one digit.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.text.as_bytes().get(self.at..)?.starts_with(word.as_bytes()).then(|| self.at += word.len())
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_byte(&mut self, byte: u8) -> Option<()> {
        (self.byte() == Some(byte)).then(|| self.at += 1)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
    }
}

/// Marks each byte that is a quote, a backslash or a control character by its highest bit. Only the lowest mark is exact: the
/// subtractions may borrow from the byte above a marked one.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    (is_zero(word ^ (ONES * b'"' as u64)) | is_zero(word ^ (ONES * b'\\' as u64)) | is_control) & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    /// Whether the whole text is one value, and how deep it is.
    fn depth(text: &str) -> Option<usize> {
        let mut scanner = Scanner::new(text);
        scanner.value()?;
        let depth = scanner.deepest();
        scanner.is_at_end().then_some(depth)
    }

    #[test]
    fn huge_numbers_are_found() {
        let is_huge = |text: &str| {
            let mut scanner = Scanner::new(text);
            scanner.value().unwrap();
            scanner.has_huge_number()
        };
        let digits = "9".repeat(400);
        for huge in ["1e999", "[1,-2.5E+400]", &digits] {
            assert!(is_huge(huge), "{huge}");
        }
        for other in ["1e308", "1e-999", "0e999", "123456789012345678901234567890", "\"1e999\"", &format!("0.{digits}")]
        {
            assert!(!is_huge(other), "{other}");
        }
    }

    fn fields(text: &str) -> Option<Vec<(&str, &str)>> {
        let mut fields = Vec::new();
        Scanner::new(text).object(|scanner, key| {
            let value = scanner.value()?;
            fields.push((key, value.get()));
            Some(value)
        })?;
        Some(fields)
    }

    #[test]
    fn only_outer_fields_are_found() {
        let json = r#" { "a" : [ 1, {"b": "}"}, "\"]" ] , "isError":true,"c":"x\\", "d" : {} , "e":null } "#;
        let expected =
            [("a", r#"[ 1, {"b": "}"}, "\"]" ]"#), ("isError", "true"), ("c", r#""x\\""#), ("d", "{}"), ("e", "null")];
        assert_eq!(fields(json).unwrap(), expected);
        assert_eq!(fields(" { } "), Some(Vec::new()));
    }

    #[test]
    fn other_values_have_no_fields() {
        for json in ["[{\"a\":1}]", "null", "\"{\\\"a\\\":1}\"", "1", "", "{\"a\"}", "{\"a\":1", "{\"a\":1,}", "{1:1}"]
        {
            assert_eq!(fields(json), None, "{json}");
        }
    }

    #[test]
    fn the_depth_is_that_of_the_deepest_value() {
        for (json, expected) in [("1", 0), ("[]", 1), ("[[],{}]", 2), (r#"{"a":[{"b":"[[["}],"c":1}"#, 3)] {
            assert_eq!(depth(json), Some(expected), "{json}");
        }
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(depth(&nested(128)), Some(128));
        assert_eq!(depth(&nested(129)), None);
        assert_eq!(depth(&nested(200_000)), None);
    }

    #[test]
    fn surrogates_are_noticed_in_every_spelling() {
        for (json, expected) in
            [(r#""\ud83d\ude00""#, true), (r#""\uDBFF""#, true), (r#""\\ud83d \ud7ff \u00e9""#, false)]
        {
            let mut scanner = Scanner::new(json);
            scanner.value().unwrap();
            assert_eq!(scanner.has_surrogates(), expected, "{json}");
        }
    }

    #[test]
    fn a_field_has_the_one_value_that_was_read() {
        let read = |text, field: fn(&mut Scanner<'static>) -> Option<Json<'static>>| {
            Scanner::new(text).object(|scanner, _| field(scanner)).map(|json| json.get())
        };
        let twice: fn(&mut Scanner<'static>) -> _ = |scanner| {
            scanner.value();
            scanner.value()
        };
        assert_eq!(read(r#" {"a":1} "#, Scanner::value), Some(r#"{"a":1}"#));
        assert_eq!(read(r#"{"a":1 2}"#, twice), None);
        assert_eq!(read(r#"{"a":,"b":1}"#, |_| Scanner::new("1").value()), None);
    }

    #[test]
    fn special_bytes_are_found_wherever_they_are_in_a_word() {
        for special in ["\"", "\\", "\u{1f}", "\0"] {
            for before in 0..24 {
                let text = format!("\"{}{special}", "é#!".repeat(8).chars().take(before).collect::<String>());
                let is_end = special == "\"";
                assert_eq!(Scanner::new(&text).value().is_some(), is_end, "{text:?}");
            }
        }
    }

    /// Texts that are nearly JSON.
    fn nearly_json() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"",
            "\"a\"",
            "\"é\\n\"",
            "\\",
            "\\u00e9",
            "\\ud83d",
            "\\x",
            "0",
            "-",
            "1",
            "-1.5e+3",
            "01",
            "1.",
            ".5",
            "e",
            "true",
            "null",
            "nul",
            " ",
            "\n",
            "\t",
            "\u{b}",
            "\u{1}",
            "{\"a\":",
            "{\"a\":1}",
            "[1,",
            "long text in a string",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,20}".prop_map(Value::from),
            "[\\x00-\\x7f]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-z\"\\\\]{0,9}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_accepts_what_a_parser_accepts(text in nearly_json()) {
            // Lone surrogates are valid for both, because neither reads what is in a string.
            let parsed = serde_json::from_str::<&RawValue>(&text);
            prop_assert_eq!(depth(&text).is_some(), parsed.is_ok(), "{:?}", text);
        }

        #[test]
        fn it_accepts_all_json_and_finds_the_same_fields(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
            prop_assert!(depth(&text).is_some(), "{}", text);
            let found = fields(&text).map(|fields| {
                let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                fields.into_iter().map(|(key, value)| (read(&format!("\"{key}\"")), read(value))).collect::<Vec<_>>()
            });
            // A parser reads the fields from the same text, because it does not keep every number as it was.
            let parsed = serde_json::from_str::<Value>(&text).unwrap();
            let expected = parsed.as_object().map(|fields| {
                fields.iter().map(|(key, value)| (Value::from(key.as_str()), value.clone())).collect::<Vec<_>>()
            });
            prop_assert_eq!(found, expected);
        }
    }
}
