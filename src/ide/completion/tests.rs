use super::*;
use crate::config::tree;
use crate::ide::fixture::{self, Fixture};

fn env_files() -> Vec<String> {
    vec![".env".to_owned(), ".env.local".to_owned()]
}

/// The labels of all items.
fn offered(marked: &str) -> String {
    labels(&Fixture::new(marked))
}

fn labels(fixture: &Fixture) -> String {
    let completions = complete(&fixture.config(), fixture.offset, env_files);
    completions.items.iter().map(|item| item.label.as_str()).collect::<Vec<_>>().join(" ")
}

/// The text after an item was chosen in an editor without snippets.
fn chosen(fixture: &Fixture, label: &str) -> String {
    let completions = complete(&fixture.config(), fixture.offset, env_files);
    let Some(item) = completions.items.iter().find(|item| item.label == label) else {
        panic!("{label} is missing; the items are {}", labels(fixture));
    };
    let typed = &fixture.text[completions.span.start..fixture.offset];
    assert!(item.filter.starts_with(typed), "{:?} does not start with `{typed}`", item.filter);
    let mut edits = item.edits.clone();
    edits.push(TextEdit { span: completions.span, text: item.text.clone() });
    fixture::apply(&fixture.text, &edits)
}

fn choose(marked: &str, label: &str) -> String {
    let text = chosen(&Fixture::new(marked), label);
    assert!(tree::parse(&text, 64).valid(), "invalid text: {text}");
    text
}

#[test]
fn an_empty_file_gets_its_skeleton() {
    assert_eq!(choose("$0", "servers"), r#"{ "servers": {} }"#);
}

#[test]
fn missing_keys_are_completed_with_an_initial_value() {
    assert_eq!(offered("{ $0 }"), "servers inputs policy agentTools actions $schema");
    assert_eq!(offered(r#"{ "mcpServers": {}, $0 }"#), "inputs policy agentTools actions $schema");
    assert_eq!(offered(r#"{ "agentTools": { $0 } }"#), "claude-code codex gemini copilot *");
    assert_eq!(choose("{ $0 }", "policy"), r#"{ "policy": {} }"#);
    assert_eq!(choose(r#"{ "po$0" }"#, "policy"), r#"{ "policy": {} }"#);
    assert_eq!(choose(r#"{ po$0 }"#, "policy"), r#"{ "policy": {} }"#);
    assert_eq!(choose(r#"{ "po$0": {} }"#, "policy"), r#"{ "policy": {} }"#);
}

#[test]
fn a_comma_is_added_where_one_is_needed() {
    let text = "{\n  \"inputs\": [] // none\n  \"po$0\"\n  \"actions\": []\n}";
    assert_eq!(choose(text, "policy"), "{\n  \"inputs\": [], // none\n  \"policy\": {},\n  \"actions\": []\n}");
    assert_eq!(choose(r#"{ $0"actions": [] }"#, "policy"), r#"{ "policy": {},"actions": [] }"#);
}

#[test]
fn a_missing_closing_quote_does_not_affect_the_following_text() {
    let fixture = Fixture::new("{ \"servers\": { \"a\": {\n  \"com$0\n  \"args\": []\n} } }");
    assert_eq!(chosen(&fixture, "command"), "{ \"servers\": { \"a\": {\n  \"command\": \"\",\n  \"args\": []\n} } }");
    let fixture = Fixture::new("{ \"servers\": { \"a\": { \"type\": \"s$0 } } }");
    assert_eq!(chosen(&fixture, "stdio"), "{ \"servers\": { \"a\": { \"type\": \"stdio\" } } }");
}

#[test]
fn an_incomplete_file_is_completed() {
    assert!(offered(r#"{ "servers": { "a": { $0"#).starts_with("type command args env"));
    assert!(offered(r#"{ "servers": { "a": {$0"#).starts_with("type command args env"));
    assert!(offered(r#"{ "servers": { "a": { "command": "npx", "$0"#).starts_with("type args env"));
    assert_eq!(offered(r#"{ "policy": { "default": $0"#), "allow confirm deny");
    assert_eq!(offered(r#"{ "policy": { "default": "$0"#), "allow confirm deny");
    assert!(offered("{ \"servers\": { \"a\": { \"command\": \"$0").starts_with("npx uvx docker"));
}

#[test]
fn only_keys_for_the_type_of_the_server_are_completed() {
    let keys = offered(r#"{ "servers": { "a": { "url": "https://example.test", $0 } } }"#);
    assert!(keys.starts_with("type headers oauth enabled"), "{keys}");
    let keys = offered(r#"{ "servers": { "a": { "type": "tcp", $0 } } }"#);
    assert!(keys.starts_with("host port enabled"), "{keys}");
}

#[test]
fn choices_and_levels_are_completed_with_and_without_quotes() {
    assert_eq!(offered(r#"{ "servers": { "a": { "type": $0 } } }"#), "stdio http sse tcp sdk claudeai-proxy");
    let level = choose(r#"{ "policy": { "readOnly": "al$0" } }"#, "allow-session");
    assert_eq!(level, r#"{ "policy": { "readOnly": "allow-session" } }"#);
    assert_eq!(
        choose(r#"{ "servers": { "a": { "enabled": $0 } } }"#, "false"),
        r#"{ "servers": { "a": { "enabled": false } } }"#
    );
    assert_eq!(offered(r#"{ "servers": { "a": { "enabled": f$0 } } }"#), "true false");
    assert_eq!(choose(r#"{ "policy": { "default":$0 } }"#, "deny"), r#"{ "policy": { "default": "deny" } }"#);
    assert_eq!(
        offered(r#"{ "servers": { "a": { "tools": { "x": [{ "when": {}, "level": "$0" }, "deny"] } } } }"#),
        "disable deny require-approval allow-once allow-session allow-project allow-always"
    );
    assert_eq!(offered(r#"{ "actions": [{ "result": "$0" }] }"#), "show insert replace append");
}

#[test]
fn the_tools_of_a_connected_server_are_completed() {
    let saved = r#"{ "servers": { "fs": { "command": "x" }, "git": { "command": "x" } } }"#;
    let at = |marked: &str| {
        labels(&Fixture::new(marked).saved(saved).tools("fs", &["read_file", "write_file"]).tools("git", &["log"]))
    };
    assert_eq!(at(r#"{ "servers": { "fs": { "tools": { "$0" } } } }"#), "* read_file write_file");
    assert_eq!(at(r#"{ "servers": { "fs": { "tools": { "read_file": "deny", "$0"#), "* write_file");
    assert_eq!(at(r#"{ "servers": { "fs": { "disabled_tools": ["$0"] } } }"#), "read_file write_file");
    assert_eq!(at(r#"{ "policy": { "denylist": [{ "server": "git", "tool": "$0" }] } }"#), "* log");
    assert_eq!(at(r#"{ "policy": { "allowlist": [{ "server": "$0" }] } }"#), "* fs git");
    assert_eq!(at(r#"{ "actions": [{ "tool": "$0" }] }"#), "mcp__fs__read_file mcp__fs__write_file mcp__git__log");
    assert_eq!(at(r#"{ "actions": [{ "tool": "mcp__git__log", "arguments": { "$0" } }] }"#), "path limit");
    assert_eq!(at(r#"{ "servers": { "fs": { "tools": { "read_*": [{ "when": { "$0" } }] } } } }"#), "path limit");
    assert_eq!(at(r#"{ "servers": { "new": { "tools": { "$0" } } } }"#), "*");
}

#[test]
fn variables_are_completed_in_strings_set_ones_first() {
    let text = r#"{ "servers": { "a": { "args": ["${MISSING}", "x${$0y"] } }, "inputs": [{ "id": "key" }] }"#;
    insta::assert_snapshot!(offered(text), @"workspaceFolder workspaceFolderBasename userHome pathSeparator cwd input:key API_TOKEN HOME MISSING input:name keyring:name");
    let args = |typed: &str| format!(r#"{{ "servers": {{ "a": {{ "args": ["x{typed}"] }} }} }}"#);
    for typed in ["$$0", "${$0", "${A$0", "${API$0}", "${env:$0", "${env:API_$0TOK}"] {
        assert_eq!(choose(&args(typed), "API_TOKEN"), args("${env:API_TOKEN}"), "{typed}");
    }
    assert_eq!(choose(&args("${in$0"), "input:name"), args("${input:name}"));
    assert_eq!(offered(&args("plain$0")), "", "plain text has no completions");
    assert_eq!(
        offered(r#"{ "actions": [{ "arguments": { "q": "${$0" } }] }"#),
        "selection word line file relativeFile filetype workspaceFolder"
    );
}

#[test]
fn variables_are_completed_for_empty_values_that_should_use_one() {
    for value in
        [r#""env": { "A": "$0" }"#, r#""cwd": "$0""#, r#""url": "https://x.test", "headers": { "X-Key": "$0" }"#]
    {
        let marked = format!(r#"{{ "servers": {{ "a": {{ {value} }} }} }}"#);
        assert!(offered(&marked).starts_with("workspaceFolder workspaceFolderBasename userHome"), "{marked}");
        assert_eq!(choose(&marked, "API_TOKEN"), marked.replace("$0", "${env:API_TOKEN}"));
        let begun = marked.replace("$0", "x$0");
        assert_eq!(offered(&begun), "", "{begun}");
    }
    let action = r#"{ "actions": [{ "arguments": { "q": "$0" } }] }"#;
    assert_eq!(choose(action, "selection"), action.replace("$0", "${selection}"));
}

#[test]
fn env_files_are_completed() {
    let text = |value: &str| format!(r#"{{ "servers": {{ "a": {{ "envFile": {value} }} }} }}"#);
    assert_eq!(offered(&text("\"$0\"")), ".env .env.local");
    assert_eq!(choose(&text("\".en$0\""), ".env.local"), text("\".env.local\""));
    assert_eq!(choose(&text("$0"), ".env"), text("\".env\""));
    assert!(offered(&text("\"${$0\"")).starts_with("workspaceFolder"));
}

#[test]
fn a_template_inserts_a_whole_server_and_its_inputs() {
    insta::assert_snapshot!(choose(r#"{ "servers": { "$0" } }"#, "brave-search"), @r#"
    { "inputs": [{ "id": "brave-api-key", "type": "promptString", "description": "Brave Search API key", "password": true }], "servers": { "brave-search": { "command": "npx", "args": ["-y", "@brave/brave-search-mcp-server"], "env": { "BRAVE_API_KEY": "${input:brave-api-key}" } } } }
    "#);
    let there = r#"{ "inputs": [{ "id": "x" }], "servers": { $0 } }"#;
    assert!(choose(there, "postgres").starts_with(r#"{ "inputs": [{ "id": "x" }, { "id": "database-uri", "#));
    let lines = choose("{\r\n\t\"servers\": { $0 } }", "brave-search");
    assert!(lines.starts_with("{\r\n\t\"inputs\": [{ ") && lines.contains("}],\r\n\t\"servers\""), "{lines}");
    let twice = r#"{ "servers": { "git": {}, "g$0" } }"#;
    assert!(offered(twice).contains("git-2"));
    let snippet = complete(&Fixture::new(r#"{ "servers": { "$0" } }"#).config(), 16, env_files).items;
    let item = snippet.iter().find(|item| item.label == "filesystem").unwrap();
    insta::assert_snapshot!(item.snippet.as_deref().unwrap(), @r#"
    "${1:filesystem}": {
    	"command": "npx",
    	"args": ["-y", "@modelcontextprotocol/server-filesystem", "\${workspaceFolder\}"]
    \}
    "#);
}

#[test]
fn programs_and_their_common_packages_are_completed() {
    let text =
        r#"{ "servers": { "a": { "command": "$0" }, "b": { "command": "./mine" }, "c": { "command": ["py"] } } }"#;
    assert!(offered(text).ends_with("mcp-sidecar ./mine py"), "{}", offered(text));
    assert!(offered(r#"{ "servers": { "a": { "command": ["$0"] } } }"#).starts_with("npx"));
    assert!(offered(r#"{ "policy": { "commands": ["$0"] } }"#).starts_with("npx"));
    let args = offered(r#"{ "servers": { "a": { "command": "npx", "args": ["-y", "$0"] } } }"#);
    assert!(args.starts_with("@modelcontextprotocol/server-filesystem") && !args.contains("-y"), "{args}");
}

#[test]
fn long_lists_of_tools_are_filtered() {
    let names: Vec<String> = (0..1_000).map(|number| format!("tool_{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let at = |marked: &str| {
        let fixture = Fixture::new(marked).saved(r#"{ "servers": { "a": { "command": "x" } } }"#).tools("a", &names);
        let completions = complete(&fixture.config(), fixture.offset, env_files);
        (completions.items.len(), completions.incomplete)
    };
    assert_eq!(at(r#"{ "actions": [{ "tool": "$0" }] }"#), (200, true));
    assert_eq!(at(r#"{ "actions": [{ "tool": "tool_99$0" }] }"#), (11, true));
}

#[test]
fn undefined_inputs_are_completed() {
    let text = r#"{ "servers": { "a": { "args": ["${input:one}", "${input:two}"] } }, "inputs": [{ "id": "one" }, { "id": "$0" }] }"#;
    assert_eq!(offered(text), "two");
}

#[test]
fn unknown_positions_have_no_completions() {
    for text in [
        "{ // com$0\n }",
        "{ /* $0 */ }",
        r#"{ "servers": { "a": { "description": "$0" } } }"#,
        r#"{ "servers": {}$0 }"#,
        r#"{ "unknown": { "$0" } }"#,
        r#"{ "servers": { "a": { "command": "npx"$0 } } }"#,
        "{ } $0",
        "[ \"$0\" ]",
    ] {
        assert_eq!(offered(text), "", "{text}");
    }
}

#[test]
fn truncated_files_do_not_panic() {
    let text = r#"{ "servers": { "a": { "type": "stdio", "args": ["${env:HOME}", 1], "tools": { "r*": [{ "when": { "p": { "in": [] } } }, "deny"] } } }, "policy": { "denylist": [{ "server": "a" }] } } // é"#;
    for cut in (0..=text.len()).filter(|&cut| text.is_char_boundary(cut)) {
        for marked in [format!("{}$0", &text[..cut]), format!("{}$0{}", &text[..cut], &text[cut..])] {
            let fixture = Fixture::new(&marked);
            let completions = complete(&fixture.config(), fixture.offset, env_files);
            assert!(completions.items.is_empty() || fixture.text.get(completions.span.clone()).is_some(), "{marked}");
            crate::ide::hover::hover(&fixture.config(), fixture.offset);
            crate::ide::definition::definition(&fixture.config(), fixture.offset);
        }
    }
}

#[test]
fn a_server_of_the_user_can_be_disabled_or_restricted() {
    let user = r#"{ "servers": { "mail": { "command": "mail" } } }"#;
    let fixture = Fixture::new(r#"{ "servers": { "ma$0" } }"#).user(user);
    assert_eq!(chosen(&fixture, "mail"), r#"{ "servers": { "mail": { "enabled": false } } }"#);
    let fixture =
        Fixture::new(r#"{ "servers": { "mail": { "tools": { "$0" } } } }"#).user(user).tools("mail", &["send"]);
    assert!(labels(&fixture).contains("send"), "{}", labels(&fixture));
    // The user's file has nothing below it.
    let own = Fixture::new(r#"{ "servers": { "x": { "command": "x" } } }$0"#).user(r#"{ "servers": { "" } }"#);
    let config = own.config_of("/user/mcp.json");
    assert!(!complete(&config, 15, env_files).items.iter().any(|item| item.label == "x"));
}

#[test]
fn the_file_of_vs_code_gets_only_keys_that_vs_code_knows() {
    let fixture = Fixture::new(r#"{ "servers": { "a": { "command": "a", $0 } } }"#);
    let mut config = fixture.config();
    config.path = std::path::Path::new("/project/.vscode/mcp.json");
    let items = complete(&config, fixture.offset, env_files).items;
    let labels: Vec<&str> = items.iter().map(|item| item.label.as_str()).collect();
    assert_eq!(labels, ["type", "args", "env", "envFile", "cwd", "dev"]);
}
