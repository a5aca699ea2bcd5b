use super::*;
use crate::ide::fixture::Fixture;

fn told(fixture: &Fixture) -> String {
    let page = fixture.page();
    match hover(&page, fixture.offset) {
        Some(hover) => format!("[{}]\n{}", &page.text[hover.span], hover.markdown),
        None => "nothing".to_owned(),
    }
}

fn at(marked: &str) -> String {
    told(&Fixture::new(marked))
}

#[test]
fn a_server_tells_how_it_is_doing_and_what_it_hides() {
    let text = r#"{ "servers": { "f$0s": { "command": "x", "description": "my *files*", "tools": { "hidden": "disable" } } } }"#;
    let user = r#"{ "servers": { "fs": { "command": "old" } } }"#;
    insta::assert_snapshot!(told(&Fixture::new(text).user(user).tools("fs", &["read", "write", "hidden"])), @r#"
    ["fs"]
    **`fs`** · connected · stdio

    my \*files\*

    test-server 1.2.3 · MCP 2025-11-25

    2 tools · 0 resources · 0 prompts · latency 1.5 ms

    Scope: project (`mcp.json:1`)

    Hides: `user mcp.json:1`

    Tools: `read`, `write`
    "#);
}

#[test]
fn a_server_that_failed_tells_its_last_error_as_plain_text() {
    let text = r#"{ "servers": { "f$0s": { "command": "x" } } }"#;
    insta::assert_snapshot!(told(&Fixture::new(text).failed("fs", "exited: ![x](http://evil) ```")), @r#"
    ["fs"]
    **`fs`** · failed · stdio

    Nothing is known of its tools yet.

    Last error:
    ````text
    exited: ![x](http://evil) ```
    ````

    Scope: project (`mcp.json:1`)
    "#);
}

#[test]
fn a_server_that_is_hidden_tells_by_what() {
    let text = r#"{ "servers": { "f$0s": { "command": "x" } } }"#;
    let fixture = Fixture::new(text).user(&text.replace("$0", ""));
    let hover = hover(&fixture.page_of("/user/mcp.json"), fixture.offset).unwrap();
    assert!(hover.markdown.contains("Not in force here: `mcp.json:1` (project) comes first."), "{}", hover.markdown);
    assert!(told(&Fixture::new(text).saved("{}")).ends_with("its entry counts once the file is saved without errors."));
}

#[test]
fn a_tool_tells_its_parameters_and_why_it_has_its_level() {
    let text = r#"{ "servers": { "fs": { "command": "x", "tools": { "re$0ad": "deny", "re*": "disable" } } },
        "policy": { "readOnly": "allow-session" } }"#;
    insta::assert_snapshot!(told(&Fixture::new(text).tools("fs", &["read", "write"])), @r#"
    ["read"]
    **`mcp__fs__read`**

    ```text
    Does read
    ```

    | parameter | type | |
    |---|---|---|
    | `path` | string | required · where \| what |
    | `limit` | integer | default `10` |

    Its server says: only reads

    Level: **deny** from `mcp.json:1 tools.read`

    Shows the tool and refuses every call.

    Without effect:
    - disable from `mcp.json:1 tools.re*`
    - allow-session from `mcp.json policy.readOnly`
    "#);
}

#[test]
fn a_glob_tells_what_it_matches() {
    let text = r#"{ "servers": { "fs": { "command": "x" } }, "policy": { "denylist": [{ "server": "*", "tool": "wri$0te*" }] } }"#;
    insta::assert_snapshot!(told(&Fixture::new(text).tools("fs", &["read", "write_a", "write_b"])), @r#"
    ["write*"]
    `write*` matches 2 tools:
    - `write_a` · fs · deny
    - `write_b` · fs · deny
    "#);
    let nothing = r#"{ "policy": { "denylist": [{ "server": "x$0*", "tool": "y" }] } }"#;
    assert!(at(nothing).ends_with("`x*` matches no server."));
}

#[test]
fn an_action_tells_about_its_tool_and_its_server() {
    let text =
        r#"{ "servers": { "fs": { "command": "x" } }, "actions": [{ "title": "t", "tool": "mcp__fs__re$0ad" }] }"#;
    assert!(told(&Fixture::new(text).tools("fs", &["read"])).starts_with("[read\"]\n**`mcp__fs__read`**"));
    let text = text.replace("$0", "").replace("__fs", "__f$0s");
    assert!(told(&Fixture::new(&text).tools("fs", &["read"])).starts_with("[\"mcp__fs]\n**`fs`** · connected"));
    let stopped = r#"{ "servers": { "fs": { "command": "x", "tools": { "re$0ad": "deny" } } } }"#;
    assert!(at(stopped).ends_with("`read` · its server `fs` is stopped"));
}

#[test]
fn keys_and_words_are_explained() {
    assert!(at(r#"{ "servers": { "a": { "env$0File": "" } } }"#).ends_with("For servers of type `stdio`."));
    assert!(at(r#"{ "pol$0icy": {} }"#).starts_with("[\"policy\"]\n**`policy`**\n\nWhich tools may run"));
    assert!(at(r#"{ "policy": { "default": "con$0firm" } }"#).contains("asked about each time"));
    assert!(at(r#"{ "servers": { "a": { "tools": { "x": "allow-$0once" } } } }"#).contains("first call of a session"));
    assert!(at(r#"{ "servers": { "a": { "auto$0Approve": [] } } }"#).contains("has no effect here"));
    assert_eq!(at(r#"{ "servers": { "a": { "description": "st$0dio" } } }"#), "nothing");
    assert_eq!(
        at(r#"{ // pol$0icy
    }"#),
        "nothing"
    );
}

#[test]
fn a_variable_tells_whether_it_is_set_and_never_its_value() {
    let value = |text: &str| {
        at(&format!(
            r#"{{ "servers": {{ "a": {{ "args": ["x {text} y"] }} }}, "inputs": [{{ "id": "k", "description": "Key", "password": true }}] }}"#
        ))
    };
    assert_eq!(value("${H$0OME}"), "[${HOME}]\n**`${HOME}`**\n\n`HOME` is set in the environment of the editor.");
    assert!(value("${env:NO$0PE}").contains("`NOPE` is not set: the server is not started."));
    assert!(value("${NO$0PE:-1}").contains("the default counts"));
    assert!(value("${input:k$0}").contains("Key\n\nAsked for when a server first needs it, not shown while typed"));
    assert!(value("${input:o$0ther}").contains("Not defined"));
    assert!(value("${keyring:o$0ther}").contains("OS keyring"));
    assert!(value("${workspace$0Folder}").contains("The workspace folder that this file belongs to."));
    assert!(value("${command:r$0un}").contains("Unknown"));
    assert!(at(r#"{ "actions": [{ "arguments": { "q": "${sel$0ection}" } }] }"#).contains("The selected text."));
}
