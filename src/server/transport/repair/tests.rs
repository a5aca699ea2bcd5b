use super::*;

/// The messages of a line, one per line.
fn shown(line: impl AsRef<[u8]>) -> String {
    match read(line.as_ref()) {
        Parsed::Incomplete => "incomplete".to_owned(),
        Parsed::Junk => "junk".to_owned(),
        Parsed::Messages(messages) => messages.into_iter().map(one).collect::<Vec<_>>().join("\n"),
    }
}

fn one(message: Incoming) -> String {
    let params = |params: Option<Value>| params.map(|params| format!(" {params}")).unwrap_or_default();
    match message {
        Incoming::Reply { id, outcome: Ok(result) } => format!("reply {id}: {}", result.get()),
        Incoming::Reply { id, outcome: Err(error) } => {
            format!("reply {id}: error {} {}", error.code.0, error.message)
        }
        Incoming::ErrorWithoutId(error) => format!("stray error {} {}", error.code.0, error.message),
        Incoming::Request { id, method, params: given } => format!("request {id} {method}{}", params(given.unwrap())),
        Incoming::Notification { method, params: given } => format!("notice {method}{}", params(given)),
        Incoming::Ignored(reason) => format!("ignored {reason}"),
    }
}

#[test]
fn a_plain_reply_keeps_its_result_as_it_was_sent() {
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":1,"result":{"b": 1,  "a":[ ]}}"#), r#"reply 1: {"b": 1,  "a":[ ]}"#);
}

#[test]
fn requests_have_an_id_and_notifications_do_not() {
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":"x","method":"ping"}"#), "request x ping");
    assert_eq!(shown(r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#), r#"notice n {"a":1}"#);
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":null,"method":"n"}"#), "notice n");
}

#[test]
fn a_missing_version_is_accepted_but_a_log_record_is_not_a_message() {
    assert_eq!(shown(r#"{"id":1,"result":{}}"#), "reply 1: {}");
    assert_eq!(shown(r#"{"level":30,"method":"GET","id":5,"msg":"served"}"#), "junk");
    assert_eq!(shown(r#"{"level":"info"}"#), "junk");
}

#[test]
fn errors_come_in_every_shape() {
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#), "reply 1: {}");
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":1,"error":"broken"}"#), "reply 1: error -32603 broken");
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-5}}"#), "reply 1: error -5 no reason given");
    assert_eq!(
        shown(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}"#),
        "stray error -32700 bad"
    );
}

#[test]
fn byte_order_marks_carriage_returns_and_log_text_around_a_message_are_dropped() {
    assert_eq!(shown("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r"), "reply 1: {}");
    assert_eq!(shown(r#"[INFO] {ready} {"jsonrpc":"2.0","id":1,"result":{}}"#), "reply 1: {}");
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":1,"result":{}} trailing"#), "reply 1: {}");
    assert_eq!(shown(r#"{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","method":"n"}"#), "reply 1: {}\nnotice n");
}

#[test]
fn a_batch_is_read_message_by_message() {
    assert_eq!(
        shown(r#"[{"jsonrpc":"2.0","id":1,"result":{}},7,{"jsonrpc":"2.0","method":"n"}]"#),
        "reply 1: {}\nnotice n"
    );
    assert_eq!(shown("[1, 2]"), "junk");
}

#[test]
fn other_text_is_junk_and_an_incomplete_message_waits_for_more() {
    assert_eq!(shown("Server listening on stdio"), "junk");
    assert_eq!(shown(""), "junk");
    assert_eq!(shown("{"), "incomplete");
    assert_eq!(shown(r#"{"jsonrpc":"2.0","#), "incomplete");
}

#[test]
fn a_response_with_invalid_utf8_fails_its_request() {
    assert_eq!(
        shown(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"t\":\"\xff\xfe\"}}"),
        "reply 4: error -32700 the response is not valid UTF-8"
    );
    assert_eq!(shown(b"\xff\xfe\xfd"), "junk");
}

#[test]
fn a_deeply_nested_response_is_rejected_without_a_stack_overflow() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(shown(deep), "reply 1: error -32700 the response is nested deeper than 96 levels");
    let wide = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{}"}}}}"#, "{[".repeat(1_000));
    assert!(shown(wide).starts_with("reply 1: {"));
}

#[test]
fn the_id_of_a_truncated_message_is_found_at_either_end() {
    let id = |head: &str, tail: &str| id_of_cut_message(head.as_bytes(), tail.as_bytes()).map(|id| id.to_string());
    assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#, "xxx").as_deref(), Some("7"));
    assert_eq!(id(r#"{"result":{"content":[{"te"#, r#"xxx"}]},"jsonrpc":"2.0","id":9}"#).as_deref(), Some("9"));
    assert_eq!(id(r#"{"result":{"id":3,"#, "xxx"), None);
    assert_eq!(id("aaaa", "bbbb"), None);
}

proptest::proptest! {
    #[test]
    fn whatever_comes_is_read_without_a_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        read(&bytes);
        id_of_cut_message(&bytes, &bytes);
    }

    #[test]
    fn whatever_looks_like_a_message_is_read_without_a_panic(
        text in r#"[ a]{0,3}[\[{]?\{"(jsonrpc|id|method|result|error|x)":("2.0"|1|null|\{\}|\[|"é|-)[,}]?("id":[0-9n"]{1,3})?[}\]]{0,3}"#
    ) {
        read(text.as_bytes());
        id_of_cut_message(text.as_bytes(), text.as_bytes());
    }

    #[test]
    fn a_response_that_is_read_quickly_is_what_the_repair_would_make_of_it(
        fields in proptest::collection::vec(
            proptest::sample::select(vec![
                r#""jsonrpc":"2.0""#, r#" "id" : 7"#, r#""id":"a""#, r#""id":null"#, r#""id":1.5"#, r#""result":{}"#, r#""result": null "#,
                r#""result":{"content":[{"isError":true}], "isError" : true}"#, r#""result":{"a":"\ud83d"}"#, r#""result":[1,]"#,
                r#""error":{}"#, r#""method":"x""#, r#""x":1"#, r#""\u0069d":7"#,
            ]),
            0..5,
        ),
        around in proptest::sample::select(vec!["", " ", "\r", "{", "x", "[1]"]),
    ) {
        let text = format!("{{{}}}{around}", fields.join(","));
        if let Some(Incoming::Reply { id, outcome: Ok(quick) }) = quick::response(&text) {
            let ControlFlow::Continue(mut slow) = parse_objects(&text) else { panic!("{text}") };
            let Some(Incoming::Reply { id: slow_id, outcome: Ok(slow) }) = slow.pop() else { panic!("{text}") };
            proptest::prop_assert_eq!(id, slow_id);
            proptest::prop_assert_eq!(quick.get(), slow.get());
            proptest::prop_assert_eq!(quick.parts(), slow.parts());
        }
    }
}

#[test]
fn a_flawless_response_is_read_quickly_and_nothing_else() {
    let nested = |levels: usize| format!(r#"{{"id":1,"result":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels));
    for text in
        [r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}} "#, r#"{"result":null,"id":"a"}"#, &nested(MAX_DEPTH)]
    {
        assert!(quick::response(text).is_some(), "{text}");
    }
    let odd = [
        r#"{"id":1,"result":{}} {}"#,
        r#"{"id":1,"result":{},"error":null}"#,
        r#"{"id":1,"id":2,"result":{}}"#,
        r#"{"id":1}"#,
    ];
    for text in odd.into_iter().chain([r#"{"id":1,"result":"\ud83d"}"#, "", "[]", &nested(MAX_DEPTH + 1)]) {
        assert!(quick::response(text).is_none(), "{text}");
    }
}

#[test]
fn a_line_with_too_many_messages_is_read_up_to_the_limit() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let batch = format!("[{}{ping}]", format!("{ping},").repeat(5_000));
    for line in [ping.repeat(5_000), batch] {
        let Parsed::Messages(messages) = read(line.as_bytes()) else { panic!("no messages") };
        assert_eq!(messages.len(), 1_001);
        assert!(matches!(messages.last(), Some(Incoming::Ignored(_))));
    }
}

#[test]
fn params_and_error_data_with_too_many_values_are_not_parsed() {
    let large = format!("[0{}]", ",0".repeat(100_000));
    let notice = shown(format!(r#"{{"jsonrpc":"2.0","method":"a/b","params":{large}}}"#));
    assert_eq!(notice, "ignored a `a/b` notification: the params have too many values");
    let request = read(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a/b","params":{large}}}"#).as_bytes());
    let Parsed::Messages(messages) = request else { panic!("no message") };
    assert!(matches!(&*messages, [Incoming::Request { params: Err(TooManyValues), .. }]));
    let error = read(format!(r#"{{"id":1,"error":{{"code":7,"message":"m","data":{large}}}}}"#).as_bytes());
    let Parsed::Messages(messages) = error else { panic!("no message") };
    let [Incoming::Reply { outcome: Err(error), .. }] = &*messages else { panic!("no error") };
    assert_eq!((error.code.0, &*error.message, &error.data), (7, "m", &None));
    // A long text is not many values.
    let long = "x".repeat(4 << 20);
    assert!(shown(format!(r#"{{"jsonrpc":"2.0","method":"a/b","params":["{long}"]}}"#)).starts_with("notice a/b"));
}
