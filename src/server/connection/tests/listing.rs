//! Lists: pagination and invalid entries.

use super::*;

/// Lists the tools of a server that sends these pages.
async fn listed(pages: impl IntoIterator<Item = Value>) -> Lists {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        for page in pages {
            let request = fake.expect("tools/list").await;
            match page {
                Value::String(error) => fake.refuse(&request, -32000, &error).await,
                page => fake.reply(&request, page).await,
            }
        }
    };
    let (lists, ()) = tokio::join!(connection.lists(soon()), server);
    lists.unwrap()
}

fn named(name: impl Into<String>) -> Value {
    json!({ "name": name.into(), "inputSchema": { "type": "object" } })
}

fn names(lists: &Lists) -> String {
    lists.tools.iter().map(|tool| tool.name.as_ref()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn every_page_is_requested_with_the_previous_cursor() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let server = async {
        let request = fake.expect("tools/list").await;
        assert_eq!(request["params"].get("cursor"), None);
        fake.reply(&request, json!({ "tools": [named("a")], "nextCursor": "two" })).await;
        let request = fake.expect("tools/list").await;
        assert_eq!(request["params"]["cursor"], "two");
        fake.reply(&request, json!({ "tools": [named("b")], "nextCursor": null })).await;
    };
    let (lists, ()) = tokio::join!(connection.lists(soon()), server);
    let lists = lists.unwrap();
    assert_eq!((names(&lists).as_str(), lists.warnings.len()), ("a b", 0));
}

#[tokio::test]
async fn an_empty_cursor_is_a_valid_cursor() {
    let page = |name: &str, next: Value| json!({ "tools": [named(name)], "nextCursor": next });
    let lists = listed([page("a", json!("")), page("b", json!("c")), page("d", json!(null))]).await;
    assert_eq!((names(&lists).as_str(), lists.warnings.len()), ("a b d", 0), "{:?}", lists.warnings);
}

#[tokio::test]
async fn an_empty_cursor_may_mark_the_end() {
    let page = |name: &str| json!({ "tools": [named(name)], "nextCursor": "" });
    for answer in [page("a"), json!({ "tools": [] }), json!("no such page")] {
        let lists = listed([page("a"), answer]).await;
        assert_eq!((names(&lists).as_str(), lists.warnings.len()), ("a", 0), "{:?}", lists.warnings);
    }
}

#[tokio::test]
async fn a_repeated_cursor_ends_the_list() {
    let page = |name: &str, next: &str| json!({ "tools": [named(name)], "nextCursor": next });
    let lists = listed([page("one", "a"), page("two", "b"), page("three", "a")]).await;
    assert_eq!(names(&lists), "one two three");
    assert_eq!(lists.warnings, ["`tools/list` repeats a cursor: stopped at this page"]);
}

#[tokio::test]
async fn a_failed_page_keeps_the_pages_before_it() {
    let lists = listed([json!({ "tools": [named("a")], "nextCursor": "x" }), json!("out of order")]).await;
    assert_eq!(names(&lists), "a");
    assert_eq!(
        lists.warnings,
        [
            "a page of `tools/list` failed, only the pages before it are shown: server `fake`: out of order (error -32000)"
        ]
    );
}

#[tokio::test]
async fn invalid_tools_do_not_affect_the_others() {
    let lists = listed([json!({ "tools": [
        { "name": "none" },
        { "name": "null", "inputSchema": null },
        { "name": "flag", "inputSchema": true },
        { "description": "no name", "inputSchema": {} },
        7,
        { "name": "hint", "inputSchema": {}, "annotations": { "readOnlyHint": "yes", "destructiveHint": false, "title": "T" }, "x-vendor": 1 },
        named("echo"),
        named("echo"),
    ] })])
    .await;
    assert_eq!(names(&lists), "none null flag hint echo");
    assert_eq!(
        lists.warnings,
        [
            "duplicate tool `echo`: only the first one is used",
            "ignored 2 tools without `name`",
            "tool `none` has no valid `inputSchema`: it accepts any object",
            "tool `null` has no valid `inputSchema`: it accepts any object",
            "tool `flag` has no valid `inputSchema`: it accepts any object",
            "tool `hint`: agents do not get `annotations.readOnlyHint`: expected a boolean",
        ]
    );
    let hint = &lists.tools[3];
    assert_eq!(
        (hint.annotations.read_only, hint.annotations.destructive, hint.title.as_deref()),
        (None, Some(false), Some("T"))
    );
    assert_eq!(hint.raw["x-vendor"], 1);
    assert_eq!(lists.tools[0].raw["inputSchema"], Value::Null, "it is kept only once");
    assert_eq!(lists.tools[0].definition()["inputSchema"], json!({ "type": "object" }));
}

#[tokio::test]
async fn entries_beyond_a_limit_are_ignored_with_a_warning() {
    let many: Vec<Value> = (0..5_001).map(|n| named(n.to_string())).collect();
    let pages: Vec<Value> = many
        .chunks(500)
        .enumerate()
        .map(|(at, tools)| json!({ "tools": tools, "nextCursor": at.to_string() }))
        .collect();
    let lists = listed(pages).await;
    assert_eq!(lists.tools.len(), 5_000);
    assert_eq!(lists.warnings, ["more than 5000 tools: ignored the rest (`limits.tools` sets this limit)"]);

    let pages = (0..200).map(|at| json!({ "tools": [named(at.to_string())], "nextCursor": at.to_string() }));
    let lists = listed(pages).await;
    assert_eq!(lists.tools.len(), 200);
    assert_eq!(
        lists.warnings,
        ["`tools/list` has more than 200 pages: ignored the rest (`limits.pages` sets this limit)"]
    );

    let long = json!({ "name": "long", "inputSchema": {}, "description": "ä".repeat(20 << 10) });
    let lists = listed([json!({ "tools": [long] })]).await;
    assert_eq!(lists.tools[0].description.chars().count(), (16 << 10) + 1);
    assert_eq!(
        lists.warnings,
        ["the description of tool `long` was truncated to 32 KiB (`limits.description-bytes` sets this limit)"]
    );
}

#[tokio::test]
async fn only_declared_lists_and_tools_are_requested_concurrently() {
    let (connection, mut fake, _) = connected(json!({ "resources": {}, "prompts": {} })).await;
    let server = async {
        let requests = [fake.receive().await, fake.receive().await, fake.receive().await, fake.receive().await];
        for request in &requests {
            match request["method"].as_str().unwrap() {
                "resources/list" => {
                    fake.reply(
                        request,
                        json!({ "resources": [{ "uri": "file:///a", "name": "A" }, { "uri": "file:///b" }] }),
                    )
                    .await
                }
                "tools/list" | "resources/templates/list" => fake.refuse(request, -32601, "unknown").await,
                "prompts/list" => fake.reply(request, json!({ "prompts": null })).await,
                other => panic!("{other} was not offered"),
            }
        }
    };
    let (lists, ()) = tokio::join!(connection.lists(soon()), server);
    let lists = lists.unwrap();
    assert_eq!(lists.resources.iter().map(|resource| resource.name.as_str()).collect::<Vec<_>>(), ["A", "file:///b"]);
    assert_eq!(lists.warnings, ["the response to `prompts/list` has no list `prompts`"]);
}

#[tokio::test]
async fn a_changed_list_is_reported_and_reloaded() {
    let (connection, mut fake, mut notices) = connected(json!({ "tools": { "listChanged": true } })).await;
    fake.line(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    fake.line(r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///a"}}"#).await;
    assert_eq!(notices.recv().await, Some(ServerNotice::ListChanged(ListKind::Tools)));
    assert_eq!(notices.recv().await, Some(ServerNotice::ResourceUpdated("file:///a".into())));
    let server = async {
        let request = fake.expect("tools/list").await;
        fake.reply(&request, json!({ "tools": [named("new")] })).await;
    };
    let (listing, ()) = tokio::join!(connection.list(ListKind::Tools), server);
    let Listing::Tools { tools, .. } = listing.unwrap() else { panic!("tools were asked for") };
    assert_eq!(tools[0].name.as_ref(), "new");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_an_answer_times_out() {
    let (connection, mut fake, _) = connected(json!({ "tools": {} })).await;
    let (lists, _) = tokio::join!(connection.lists(soon()), fake.expect("tools/list"));
    let lists = lists.unwrap();
    assert_eq!(lists.warnings, ["`tools/list` failed: no answer within 60 s"]);
    assert_eq!(lists.unanswered, [ListKind::Tools]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_list_does_not_affect_the_others() {
    let (connection, mut fake, _) = connected(json!({ "tools": {}, "prompts": {} })).await;
    for silent in ["tools/list", "prompts/list"] {
        let server = async {
            for _ in 0..2 {
                let request = fake.receive().await;
                match request["method"].as_str().unwrap() {
                    method if method == silent => {}
                    "tools/list" => fake.reply(&request, json!({ "tools": [named("a")] })).await,
                    _ => fake.reply(&request, json!({ "prompts": [{ "name": "b" }] })).await,
                }
            }
            fake.expect("notifications/cancelled").await;
        };
        let started = Instant::now();
        let (lists, ()) = tokio::join!(connection.lists(started + Duration::from_secs(20)), server);
        let lists = lists.unwrap();
        let (waited, counts) = match silent {
            "tools/list" => (20, (0, 1)),
            _ => (5, (1, 0)),
        };
        assert_eq!((lists.tools.len(), lists.prompts.len()), counts);
        assert_eq!(lists.warnings, [format!("`{silent}` failed: no answer within {waited} s")]);
        assert_eq!(started.elapsed().as_secs(), waited);
    }
}

#[tokio::test]
async fn tools_that_were_not_declared_are_listed_too() {
    let (connection, mut fake, _) = connected(json!({})).await;
    let server = async {
        let request = fake.expect("tools/list").await;
        fake.reply(&request, json!({ "tools": [named("a")] })).await;
    };
    let (lists, ()) = tokio::join!(connection.lists(soon()), server);
    assert_eq!(names(&lists.unwrap()), "a");
}

#[tokio::test]
async fn lists_do_not_exceed_their_memory_limit() {
    let (wire, mut fake) = Fake::wired(256 << 10);
    let (mut options, _notices) = options();
    Arc::make_mut(&mut options.limits).list_bytes = 5 << 10;
    let capabilities = json!({ "tools": {}, "prompts": {} });
    let (connection, ()) = tokio::join!(Connection::open(wire, options), fake.shake(capabilities));
    let connection = connection.unwrap();
    let big =
        |name: &str| json!({ "name": name, "description": "x".repeat(1_500), "inputSchema": { "type": "object" } });
    let server = async {
        for _ in 0..2 {
            let request = fake.receive().await;
            match request["method"].as_str() {
                Some("tools/list") => {
                    let tools = [big("a"), big("b"), big("c")];
                    fake.reply(&request, json!({ "tools": tools, "nextCursor": "never asked for" })).await;
                }
                _ => fake.reply(&request, json!({ "prompts": [] })).await,
            }
        }
    };
    let (lists, ()) = tokio::join!(connection.lists(soon()), server);
    let lists = lists.unwrap();
    assert_eq!(names(&lists), "a b");
    assert_eq!(
        lists.warnings,
        ["the lists are larger than 5 KiB: ignored the rest of `tools/list` (`limits.list-bytes` sets this limit)"]
    );
}

#[tokio::test]
async fn long_texts_of_prompts_are_truncated() {
    let (connection, mut fake, _) = connected(json!({ "prompts": {} })).await;
    let server = async {
        let request = fake.expect("tools/list").await;
        fake.refuse(&request, -32601, "unknown").await;
        let request = fake.expect("prompts/list").await;
        let long = json!({ "name": "long", "title": "t".repeat(40 << 10), "description": "d" });
        fake.reply(&request, json!({ "prompts": [long] })).await;
    };
    let (lists, ()) = tokio::join!(connection.lists(soon()), server);
    let title = lists.unwrap().prompts[0].raw["title"].as_str().unwrap().len();
    assert_eq!(title, (32 << 10) + "…".len());
}
