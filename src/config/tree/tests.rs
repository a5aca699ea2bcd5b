use proptest::prelude::*;

use super::*;
use crate::text::lines::{Encoding, LineIndex};

fn problems(text: &str) -> String {
    let index = LineIndex::new(text);
    let shown = |problem: &Problem| {
        let place = index.position(problem.span.start, Encoding::Utf16);
        format!("{}:{} {}", place.line + 1, place.column + 1, problem.message)
    };
    parse(text, 64).problems.iter().map(shown).collect::<Vec<_>>().join("\n")
}

fn value(text: &str) -> String {
    parse(text, 64).root.map(|root| root.to_value().to_string()).unwrap_or_default()
}

#[test]
fn comments_and_trailing_commas_are_the_only_extensions_of_json() {
    let text = "\u{feff}// head\n{ \"a\": [1, 2,], /* x */ \"b\": { \"c\": null, }, } // end";
    assert_eq!(problems(text), "");
    assert_eq!(value(text), r#"{"a":[1,2],"b":{"c":null}}"#);
    assert_eq!(parse(text, 64).comments.len(), 3);
    insta::assert_snapshot!(problems("{ 'a': 'x' }"), @"
    1:3 strings need double quotes
    1:8 strings need double quotes
    ");
    insta::assert_snapshot!(problems("{ a: 0x1F, \"b\": NaN, \"c\": True, \"d\": +1 }"), @"
    1:3 keys need double quotes
    1:6 `0x1F` is not a valid JSON number
    1:17 unexpected word `NaN`
    1:27 unexpected word `True`
    1:38 expected a value, found `+`
    ");
}

#[test]
fn a_truncated_file_is_reported_at_its_end() {
    for text in ["{", "{ \"a\"", "{ \"a\":", "{ \"a\": [1,", "{ \"a\": \"x", "{ \"a\": 1", "[{}"] {
        let column = text.len() + 1;
        assert_eq!(problems(text), format!("1:{column} unexpected end of file"), "{text}");
        assert_eq!(
            problems(&format!("{text}\n")).ends_with("unexpected end of file"),
            !text.ends_with("\"x"),
            "{text}"
        );
    }
    assert_eq!(problems(" // nothing\n"), "2:1 the file is empty");
}

#[test]
fn a_missing_comma_does_not_affect_anything_else() {
    let text = "{\n  \"a\": 1\n  \"b\": [1 2],,\n  \"c\": ,\n  \"d\": 4\n}";
    insta::assert_snapshot!(problems(text), @"
    2:8 missing `,`
    3:9 missing `,`
    3:14 expected a key, found `,`
    4:3 `c` has no value
    ");
    assert_eq!(value(text), r#"{"a":1,"b":[1,2],"c":null,"d":4}"#);
    assert!(parse(text, 64).whole);
}

#[test]
fn a_missing_quote_is_one_problem() {
    assert_eq!(problems("{\n \"a\": \"x,\n \"b\": 1\n}"), "2:7 unterminated string: `\"` is missing");
}

#[test]
fn lines_and_columns_are_correct_with_all_line_endings_and_emoji() {
    for end in ["\n", "\r\n", "\r"] {
        let text = format!("{{{end}  \"🦀\": 1,{end}  \"🦀🦀\": nope{end}}}");
        assert_eq!(problems(&text), "3:11 unexpected word `nope`", "{end:?}");
    }
}

#[test]
fn the_depth_is_limited_and_no_text_overflows_the_stack() {
    assert_eq!(problems(&("[".repeat(64) + &"]".repeat(64))), "");
    assert_eq!(problems(&"[".repeat(200_000)), "1:65 nested deeper than 64 levels (setting `limits.config-depth`)");
    parse(&"{\"a\":".repeat(200_000), usize::MAX);
}

#[test]
fn escapes_are_decoded_and_invalid_ones_reported() {
    assert_eq!(value(r#""\u0041\n\ud83e\udd80\"""#), r#""A\n🦀\"""#);
    assert_eq!(problems(r#"["\x41", "\ud83e", "\u12"]"#).lines().count(), 3);
    assert_eq!(problems("[\"a\tb\"]"), "1:4 strings must not contain control characters; write `\\u0009` instead");
}

#[test]
fn bytes_that_are_not_utf8_are_reported() {
    assert_eq!(&*decode(b"\xef\xbb\xbf{}").unwrap(), "{}");
    let utf16: Vec<u8> = "{ \"servers\": {} }".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(decode(&utf16).unwrap_err().starts_with("the file is not UTF-8 (it looks like UTF-16)"));
    assert!(decode(b"\xff\xfe{\0}\0").unwrap_err().starts_with("the file is not UTF-8 (it looks like UTF-16)"));
    assert_eq!(
        decode(b"{ \xff }").unwrap_err(),
        "the file is not UTF-8 (first invalid byte at offset 2); save it as UTF-8"
    );
}

/// The path and part at the `$0` of a text.
fn place(marked: &str) -> String {
    let offset = marked.find("$0").unwrap();
    let tree = parse(&marked.replace("$0", ""), 64);
    let Some(place) = tree.locate(offset) else { return "nowhere".to_owned() };
    let part = match place.part {
        Part::Key(_) => "key",
        Part::Value(_) => "value",
        Part::Between(_) => "between",
    };
    format!("{} {part}", show(&place.path))
}

#[test]
fn an_offset_is_located_even_in_an_invalid_text() {
    assert_eq!(place(r#"{ "ser$0vers": {} }"#), "servers key");
    assert_eq!(place(r#"{ "servers": { $0 } }"#), "servers between");
    assert_eq!(place(r#"{ "servers": { "fs": { "args": ["a", "b$0"] } } }"#), "servers.fs.args[1] value");
    assert_eq!(place(r#"{ "servers": { "fs": { "type": $0 } } }"#), "servers.fs.type value");
    assert_eq!(place(r#"{ "servers": { "fs": { "type": "st$0"#), "servers.fs.type value");
    assert_eq!(place(r#"{ "servers": { "fs": { "ty$0"#), "servers.fs.ty key");
    assert_eq!(place(r#"{ "a b": [$0] }"#), r#"["a b"] between"#);
    assert_eq!(place("$0  {}"), "nowhere");
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é🦀\\n\"]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,3}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The crate `jsonc-parser`, configured to accept only comments and trailing commas as extensions.
fn reference(text: &str) -> Option<Value> {
    let options = jsonc_parser::ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: true,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    jsonc_parser::parse_to_serde_value(text, &options).ok()
}

proptest! {
    #[test]
    fn written_values_can_be_parsed(value in any_value()) {
        let tree = parse(&serde_json::to_string_pretty(&value).unwrap(), 64);
        prop_assert!(tree.valid());
        prop_assert_eq!(tree.root.unwrap().to_value(), value);
    }

    #[test]
    fn no_text_causes_a_panic_and_spans_are_inside_the_text(text in "[\\[\\]{}:,\"'/*a\\\\u0-9 \n\r\te.+-🦀]{0,60}") {
        let tree = parse(&text, 8);
        for problem in &tree.problems {
            prop_assert!(text.get(problem.span.clone()).is_some(), "{:?} in {:?}", problem, text);
        }
        for offset in 0..=text.len() {
            tree.locate(offset);
        }
        // An independent parser reads valid text the same way. It does not accept a byte order mark.
        if tree.valid() {
            let plain = text.strip_prefix('\u{feff}').unwrap_or(&text);
            prop_assert_eq!(tree.root.map(|root| root.to_value()), Some(reference(plain).unwrap_or(Value::Null)));
        }
    }
}
