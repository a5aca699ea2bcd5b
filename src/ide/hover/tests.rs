use super::*;
use crate::ide::fixture::Fixture;

fn shown(fixture: &Fixture) -> String {
    let config = fixture.config();
    match hover(&config, fixture.offset) {
        Some(hover) => format!("[{}]\n{}", &config.text[hover.span], hover.markdown),
        None => "nothing".to_owned(),
    }
}

fn at(marked: &str) -> String {
    shown(&Fixture::new(marked))
}

#[test]
fn a_server_shows_its_state_and_what_it_overrides() {
    let text = r#"{ "servers": { "f$0s": { "command": "x", "description": "my *files*", "tools": { "hidden": "disable" } } } }"#;
    let user = r#"{ "servers": { "fs": { "command": "old" } } }"#;
    insta::assert_snapshot!(shown(&Fixture::new(text).user(user).tools("fs", &["read", "write", "hidden"])), @r#"
    ["fs"]
    **`fs`** · connected · stdio

    my \*files\*

    test-server 1.2.3 · MCP 2025-11-25

    2 tools (~103 tokens) · 0 resources · 0 prompts · latency 1.5 ms

    Scope: project (`mcp.json:1`)

    Overrides: `user mcp.json:1`

    Tools: `read`, `write`
    "#);
}

#[test]
fn a_failed_server_shows_its_last_error_as_plain_text() {
    let text = r#"{ "servers": { "f$0s": { "command": "x" } } }"#;
    insta::assert_snapshot!(shown(&Fixture::new(text).failed("fs", "exited: ![x](http://evil) ```")), @r#"
    ["fs"]
    **`fs`** · failed · stdio

    Its tools are not known yet.

    Last error:
    ````text
    exited: ![x](http://evil) ```
    ````

    Scope: project (`mcp.json:1`)
    "#);
}

#[test]
fn an_overridden_server_shows_what_overrides_it() {
    let text = r#"{ "servers": { "f$0s": { "command": "x" } } }"#;
    let fixture = Fixture::new(text).user(&text.replace("$0", ""));
    let hover = hover(&fixture.config_of("/user/mcp.json"), fixture.offset).unwrap();
    assert!(hover.markdown.contains("Overridden by `mcp.json:1` (scope project)."), "{}", hover.markdown);
    assert!(shown(&Fixture::new(text).saved("{}")).ends_with("save the file without errors to load this server."));
}

#[test]
fn a_tool_shows_its_parameters_and_what_sets_its_level() {
    let text = r#"{ "servers": { "fs": { "command": "x", "tools": { "re$0ad": "deny", "re*": "disable" } } },
        "policy": { "readOnly": "allow-session" } }"#;
    insta::assert_snapshot!(shown(&Fixture::new(text).tools("fs", &["read", "write"])), @r#"
    ["read"]
    **`mcp__fs__read`**

    ```text
    Does read
    ```

    | parameter | type | |
    |---|---|---|
    | `path` | string | required · where \| what |
    | `limit` | integer | default `10` |

    According to its server: read-only

    Its definition uses ~51 tokens of a model's context.

    Level: **deny**, set by `mcp.json:1 tools.read`

    Shows the tool but rejects every call.

    Overridden:
    - disable, set by `mcp.json:1 tools.re*`
    - allow-session, set by `mcp.json policy.readOnly`
    "#);
}

#[test]
fn a_glob_shows_what_it_matches() {
    let text = r#"{ "servers": { "fs": { "command": "x" } }, "policy": { "denylist": [{ "server": "*", "tool": "wri$0te*" }] } }"#;
    insta::assert_snapshot!(shown(&Fixture::new(text).tools("fs", &["read", "write_a", "write_b"])), @r#"
    ["write*"]
    `write*` matches 2 tools:
    - `write_a` · fs · deny
    - `write_b` · fs · deny
    "#);
    let nothing = r#"{ "policy": { "denylist": [{ "server": "x$0*", "tool": "y" }] } }"#;
    assert!(at(nothing).ends_with("`x*` does not match any server."));
}

#[test]
fn an_action_shows_its_tool_and_its_server() {
    let text =
        r#"{ "servers": { "fs": { "command": "x" } }, "actions": [{ "title": "t", "tool": "mcp__fs__re$0ad" }] }"#;
    assert!(shown(&Fixture::new(text).tools("fs", &["read"])).starts_with("[read\"]\n**`mcp__fs__read`**"));
    let text = text.replace("$0", "").replace("__fs", "__f$0s");
    assert!(shown(&Fixture::new(&text).tools("fs", &["read"])).starts_with("[\"mcp__fs]\n**`fs`** · connected"));
    let stopped = r#"{ "servers": { "fs": { "command": "x", "tools": { "re$0ad": "deny" } } } }"#;
    assert!(at(stopped).ends_with("`read` · server `fs` is stopped"));
}

#[test]
fn keys_and_values_are_documented() {
    assert!(at(r#"{ "servers": { "a": { "env$0File": "" } } }"#).ends_with("For servers of type `stdio`."));
    assert!(at(r#"{ "pol$0icy": {} }"#).starts_with("[\"policy\"]\n**`policy`**\n\nWhich tools may run"));
    assert!(at(r#"{ "policy": { "default": "con$0firm" } }"#).contains("require your approval"));
    assert!(at(r#"{ "servers": { "a": { "tools": { "x": "allow-$0once" } } } }"#).contains("first call in a session"));
    assert!(at(r#"{ "servers": { "a": { "auto$0Approve": [] } } }"#).contains("has no effect"));
    assert_eq!(at(r#"{ "servers": { "a": { "description": "st$0dio" } } }"#), "nothing");
    assert_eq!(
        at(r#"{ // pol$0icy
    }"#),
        "nothing"
    );
}

#[test]
fn a_variable_shows_whether_it_is_set_but_not_its_value() {
    let value = |text: &str| {
        at(&format!(
            r#"{{ "servers": {{ "a": {{ "args": ["x {text} y"] }} }}, "inputs": [{{ "id": "k", "description": "Key", "password": true }}] }}"#
        ))
    };
    assert_eq!(value("${H$0OME}"), "[${HOME}]\n**`${HOME}`**\n\n`HOME` is set in the editor's environment.");
    assert!(value("${env:NO$0PE}").contains("`NOPE` is not set, so the server cannot be started."));
    assert!(value("${NO$0PE:-1}").contains("the default is used"));
    assert!(value("${input:k$0}").contains("Key\n\nYou are asked for it when a server first needs it"));
    assert!(value("${input:k$0}").contains("It is hidden while you type."));
    assert!(value("${input:o$0ther}").contains("Not defined"));
    assert!(value("${keyring:o$0ther}").contains("OS keyring"));
    assert!(value("${workspace$0Folder}").contains("The workspace folder that this file belongs to."));
    assert!(value("${command:r$0un}").contains("Unknown"));
    assert!(at(r#"{ "actions": [{ "arguments": { "q": "${sel$0ection}" } }] }"#).contains("The selected text."));
}
