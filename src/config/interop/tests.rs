use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::export::Export;
use super::format::Syntax;
use super::import::Import;
use super::setup::SetupError;
use super::*;
use crate::config::layers;
use crate::config::spec::Config;
use crate::config::{Content, Source};
use crate::model::Scope;
use crate::settings::Settings;

fn files(text: &str) -> Vec<(PathBuf, Arc<str>)> {
    vec![(PathBuf::from("/their/file"), text.into())]
}

fn destination(scope: Scope) -> Destination<'static> {
    static FOLDERS: LazyLock<Vec<PathBuf>> = LazyLock::new(|| vec![PathBuf::from("/home/you/shop")]);
    Destination { scope, folders: &FOLDERS, project_only: false }
}

fn imported(dialect: Dialect, text: &str) -> Import {
    import(dialect, &files(text), destination(Scope::Local), &|_| None)
}

/// The servers as one object, as in our file.
fn servers(import: &Import) -> Value {
    Value::Object(import.servers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect())
}

/// Servers, notes and skipped servers as text.
fn report(dialect: Dialect, text: &str) -> String {
    let import = imported(dialect, text);
    let mut lines: Vec<String> = import.servers.iter().map(|(name, value)| format!("{name} {value}")).collect();
    lines.extend(import.inputs.iter().map(|input| format!("input {input}")));
    let notes = import.notes.iter().flat_map(|(name, notes)| notes.iter().map(move |note| format!("{name}: {note}")));
    lines.extend(notes);
    lines.extend(import.skipped.iter().map(|(name, reason)| format!("skipped {name}: {reason}")));
    lines.join("\n")
}

/// A config file of ours, loaded.
fn config(text: &Value) -> Config {
    let path: Arc<Path> = Path::new("/home/you/shop/mcp.json").into();
    let source = Source { path, scope: Scope::Project, folder: Some(Path::new("/home/you/shop").into()) };
    let content = Content::Text(text.to_string().into());
    layers::load(&[(source, content)], &BTreeMap::new(), &Settings::default().limits).config
}

fn exported(dialect: Dialect, ours: &Value) -> Export {
    let config = config(ours);
    export(dialect, config.servers.values().map(|definition| &**definition), &config)
}

#[test]
fn servers_survive_a_round_trip_in_every_dialect() {
    let samples = [
        (
            Dialect::VsCode,
            r#"{
              // Comments and a trailing comma are fine there.
              "inputs": [{ "type": "promptString", "id": "key", "description": "API key", "password": true }],
              "servers": {
                "fs": { "type": "stdio", "command": "npx", "args": ["-y", "fs", "${workspaceFolder}"], "cwd": "${userHome}",
                        "env": { "TOKEN": "${env:TOKEN}", "KEY": "${input:key}", "DEBUG": 1, "PAGER": null },
                        "envFile": "${workspaceFolder}/.env", "dev": { "watch": "src/**/*.ts" } },
                "docs": { "type": "http", "url": "https://docs.test/mcp", "headers": { "X-Key": "${input:key}" },
                          "oauth": { "clientId": "me" } },
                "old": { "type": "sse", "url": "https://old.test/sse" },
              }
            }"#,
        ),
        (
            Dialect::Claude,
            r#"{ "mcpServers": {
                "fs": { "command": "npx", "args": ["-y", "fs", "${CLAUDE_PROJECT_DIR:-.}"], "env": { "A": "${A}", "B": "${B:-b}" }, "timeout": 90000 },
                "docs": { "type": "http", "url": "https://docs.test/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" },
                          "oauth": { "clientId": "me", "callbackPort": 8080, "scopes": "read write" } },
                "old": { "type": "sse", "url": "https://old.test/sse" }
            } }"#,
        ),
        (
            Dialect::ClaudeDesktop,
            r#"{ "globalShortcut": "", "mcpServers": { "fs": { "command": "npx", "args": ["-y", "fs", "/srv"], "env": { "LEVEL": "info" } } } }"#,
        ),
        (
            Dialect::Cursor,
            r#"{ "mcpServers": {
                "fs": { "command": "npx", "args": ["${workspaceFolder}${/}x"], "env": { "A": "${env:A}" }, "envFile": ".env" },
                "docs": { "url": "https://docs.test/mcp", "headers": { "X-Key": "${env:KEY}" }, "auth": { "CLIENT_ID": "me", "scopes": ["read"] } }
            } }"#,
        ),
        (
            Dialect::Windsurf,
            r#"{ "mcpServers": {
                "fs": { "command": "npx", "args": ["fs"], "env": { "A": "${env:A}" }, "disabled": true, "disabledTools": ["rm"] },
                "docs": { "serverUrl": "https://docs.test/mcp", "headers": { "X-Key": "${env:KEY}" } }
            } }"#,
        ),
        (
            Dialect::Zed,
            r#"{ "theme": "One", /* kept */ "context_servers": {
                "fs": { "source": "custom", "command": { "path": "npx", "args": ["fs"], "env": { "A": "1" } }, "timeout": 30 },
                "git": { "command": "git-mcp", "args": [], "enabled": false },
                "docs": { "url": "https://docs.test/mcp", "headers": { "X-Key": "open" }, "oauth": { "client_id": "me" } },
            } }"#,
        ),
        (
            Dialect::Cline,
            r#"{ "mcpServers": {
                "fs": { "transport": { "type": "stdio", "command": "npx", "args": ["fs"], "env": { "A": "1" } }, "disabled": true, "timeout": 120 },
                "docs": { "type": "streamableHttp", "url": "https://docs.test/mcp", "headers": { "X-Key": "open" } },
                "old": { "url": "https://old.test/sse" }
            } }"#,
        ),
        (
            Dialect::Codex,
            r#"
                model = "o3" # not ours
                [mcp_servers.fs]
                command = "npx"
                args = ["-y", "fs"]
                env = { LEVEL = "info" }
                env_vars = ["TOKEN", { name = "OTHER", source = "local" }]
                cwd = "/srv"
                enabled = false
                startup_timeout_sec = 20
                tool_timeout_sec = 1.5
                enabled_tools = ["read", "list"]
                disabled_tools = ["rm"]
                [mcp_servers.docs]
                url = "https://docs.test/mcp"
                bearer_token_env_var = "DOCS_TOKEN"
                http_headers = { "X-Mode" = "full" }
                env_http_headers = { "X-Key" = "DOCS_KEY" }
                scopes = ["read"]
                oauth = { client_id = "me", callback_port = 8080 }
            "#,
        ),
        (
            Dialect::Gemini,
            r#"{ "theme": "x", "mcp": { "excluded": ["fs", "other"] }, "mcpServers": {
                "fs": { "command": "npx", "args": ["$HOME_DIR", "${B:-b}"], "env": { "A": "${A}" }, "cwd": "/srv", "timeout": 90000,
                        "description": "files", "excludeTools": ["rm"], "trust": false },
                "docs": { "httpUrl": "https://docs.test/mcp", "headers": { "X-Key": "$KEY" } },
                "old": { "url": "https://old.test/sse", "type": "sse", "oauth": { "enabled": true, "clientId": "me", "scopes": ["read"] } }
            } }"#,
        ),
        (
            Dialect::Qwen,
            r#"{ "mcp": { "excluded": ["fs"] }, "mcpServers": {
                "fs": { "command": "npx", "args": ["$HOME_DIR"], "env": { "A": "${A}" }, "cwd": "/srv", "timeout": 90000, "includeTools": ["read"] },
                "docs": { "httpUrl": "https://docs.test/mcp", "headers": { "X-Key": "$KEY" } },
                "old": { "url": "https://old.test/sse" }
            } }"#,
        ),
        (
            Dialect::OpenCode,
            r#"{ "$schema": "https://opencode.ai/config.json", "mcp": {
                "fs": { "type": "local", "command": ["npx", "-y", "{env:PACKAGE}"], "environment": { "A": "{env:A}" }, "cwd": "/srv", "enabled": false, "timeout": 90000 },
                "docs": { "type": "remote", "url": "https://docs.test/mcp", "headers": { "X-Key": "x-{env:KEY}" },
                          "oauth": { "clientId": "me", "scope": "read write", "callbackPort": 8080 } },
            } }"#,
        ),
        (
            Dialect::Copilot,
            r#"{ "mcpServers": {
                "fs": { "type": "local", "command": "npx", "args": ["$PACKAGE"], "env": { "A": "${A}", "B": "${B:-b}" }, "cwd": "/srv", "tools": ["read"], "timeout": 90000 },
                "docs": { "type": "http", "url": "https://docs.test/mcp", "headers": { "X-Key": "${KEY}" }, "tools": ["*"] },
                "old": { "type": "sse", "url": "https://old.test/sse", "tools": ["*"] }
            } }"#,
        ),
        (
            Dialect::Continue,
            r#"
                name: Local Config
                models: [] # not ours
                mcpServers:
                  - name: fs
                    command: npx
                    args: ["-y", fs]
                    env: { A: "${{ secrets.A }}" }
                    cwd: /srv
                    connectionTimeout: 20000
                  - name: docs
                    type: streamable-http
                    url: https://docs.test/mcp
                    requestOptions: { headers: { X-Key: "x-${{secrets.KEY}}" } }
                  - name: old
                    type: sse
                    url: https://old.test/sse
            "#,
        ),
        (
            Dialect::Goose,
            r#"
                GOOSE_MODEL: x # not ours
                extensions:
                  fs:
                    enabled: false
                    type: stdio
                    name: fs
                    description: files
                    cmd: npx
                    args: ["-y", fs]
                    envs: { LEVEL: info }
                    env_keys: [TOKEN]
                    timeout: 300
                    bundled: null
                    available_tools: [read]
                  docs:
                    enabled: true
                    type: streamable_http
                    name: docs
                    description: ""
                    uri: https://docs.test/mcp
                    headers: { X-Mode: full }
                    timeout: 60
            "#,
        ),
        (
            Dialect::McpHub,
            r#"{ mcpServers: {
                "fs": { command: 'npx', "args": ["fs", "$HOME_DIR"], "env": { "A": null, "B": "", "C": "c" }, "cwd": "/srv",
                        "disabled": true, "disabled_tools": ["rm"], "description": "files", },
                "docs": { "url": "https://docs.test/mcp", "headers": { "X-Key": "${KEY}" } }
            } }"#,
        ),
    ];
    for (dialect, text) in samples {
        let first = imported(dialect, text);
        assert!(first.skipped.is_empty(), "{dialect}: {:?}", first.skipped);
        let ours = json!({ "servers": servers(&first), "inputs": first.inputs });
        let written = exported(dialect, &ours).text().unwrap();
        let second = imported(dialect, &written);
        assert_eq!(servers(&second), sorted(&first), "{dialect}:\n{written}");
        assert_eq!(second.inputs, first.inputs, "{dialect}");
        assert!(second.skipped.is_empty(), "{dialect}: {:?}", second.skipped);
    }
}

/// One server for each feature of ours.
const FEATURES: [(&str, &str); 15] = [
    ("plain command", r#"{ "command": "x" }"#),
    ("args", r#"{ "command": "x", "args": ["--a", "b c", "${env:PLACE}"] }"#),
    ("env", r#"{ "command": "x", "env": { "LEVEL": "info", "A": "${env:A}" } }"#),
    ("another variable", r#"{ "command": "x", "env": { "A": "${env:B}" } }"#),
    ("default of a variable", r#"{ "command": "x", "args": ["${A:-b}"] }"#),
    ("cwd", r#"{ "command": "x", "cwd": "/srv" }"#),
    ("disabled", r#"{ "command": "x", "enabled": false }"#),
    ("timeout", r#"{ "command": "x", "timeout": 90 }"#),
    ("startupTimeout", r#"{ "command": "x", "startupTimeout": 20 }"#),
    ("http", r#"{ "type": "http", "url": "https://x.test/mcp" }"#),
    ("sse", r#"{ "type": "sse", "url": "https://x.test/sse" }"#),
    ("headers", r#"{ "type": "http", "url": "https://x.test/mcp", "headers": { "X-Mode": "full" } }"#),
    (
        "variable in a header",
        r#"{ "type": "http", "url": "https://x.test/mcp", "headers": { "X-Key": "${env:KEY}" } }"#,
    ),
    ("disabled http", r#"{ "type": "http", "url": "https://x.test/mcp", "enabled": false }"#),
    ("tcp", r#"{ "type": "tcp", "host": "localhost", "port": 3001 }"#),
];

#[test]
fn an_export_keeps_each_feature_or_reports_it() {
    let mut lost: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for dialect in Dialect::ALL {
        for (feature, entry) in FEATURES {
            let ours = json!({ "s": serde_json::from_str::<Value>(entry).unwrap() });
            let export = exported(dialect, &json!({ "servers": ours }));
            let written = export.text().unwrap();
            let again = imported(dialect, &written);
            let is_enabled = |servers: &Value| servers["s"]["enabled"] != false;
            if servers(&again) == ours {
                assert!(again.skipped.is_empty(), "{dialect}, {feature}: {:?}\n{written}", again.skipped);
                continue;
            }
            let reported = export.notes.get("s").is_some_and(|notes| !notes.is_empty());
            assert!(reported, "{dialect} loses {feature} silently: {ours}\n{written}\n{}", servers(&again));
            assert!(
                again.servers.is_empty() || is_enabled(&servers(&again)) == is_enabled(&ours),
                "{dialect} enables a disabled server:\n{written}"
            );
            lost.entry(feature).or_default().push(dialect.to_string());
        }
    }
    let lost: Vec<String> =
        lost.into_iter().map(|(feature, dialects)| format!("{feature}: {}", dialects.join(", "))).collect();
    insta::assert_snapshot!(lost.join("\n"), @r"
    cwd: claude, claude-desktop, cursor, windsurf, zed, goose
    default of a variable: vscode, claude-desktop, cursor, windsurf, zed, cline, codex, qwen, opencode, continue, goose, mcphub
    disabled: vscode, claude, claude-desktop, cursor, copilot, continue
    disabled http: vscode, claude, claude-desktop, cursor, copilot, continue
    headers: claude-desktop
    http: claude-desktop
    sse: claude-desktop, cursor, windsurf, zed, codex, opencode, goose, mcphub
    startupTimeout: vscode, claude, claude-desktop, cursor, windsurf, zed, cline, gemini, qwen, opencode, copilot, goose, mcphub
    tcp: vscode, claude, claude-desktop, cursor, windsurf, zed, cline, codex, gemini, qwen, opencode, copilot, continue, goose, mcphub
    timeout: vscode, claude-desktop, cursor, windsurf, continue, mcphub
    variable in a header: claude-desktop
    ");
}

#[test]
fn timeouts_survive_a_round_trip() {
    let samples = [
        (Dialect::Cline, r#"{ "mcpServers": { "s": { "command": "x", "timeout": 3600 } } }"#, 3600),
        (Dialect::Zed, r#"{ "context_servers": { "s": { "command": "x", "timeout": 1200 } } }"#, 1200),
        (Dialect::Zed, r#"{ "context_servers": { "s": { "command": "x", "timeout": 999 } } }"#, 999),
        (Dialect::Codex, "[mcp_servers.s]\ncommand = 'x'\ntool_timeout_sec = 1000", 1000),
        (Dialect::Claude, r#"{ "mcpServers": { "s": { "command": "x", "timeout": 1800000 } } }"#, 1800),
    ];
    for (dialect, text, seconds) in samples {
        let ours = servers(&imported(dialect, text));
        let config = config(&json!({ "servers": ours }));
        let read = config.servers.values().next().and_then(|server| server.spec.timeout).unwrap();
        assert_eq!(read.as_secs(), seconds, "{dialect}: {ours}");
        let written = exported(dialect, &json!({ "servers": ours })).text().unwrap();
        assert_eq!(servers(&imported(dialect, &written)), ours, "{dialect}: {written}");
    }
    let start = "[mcp_servers.s]\ncommand = 'x'\nstartup_timeout_sec = 1000.5";
    assert_eq!(servers(&imported(Dialect::Codex, start))["s"]["startupTimeout"], 1_000_500);
}

#[test]
fn unknown_keys_are_listed_in_notes_in_both_directions() {
    insta::assert_snapshot!(report(Dialect::VsCode, r#"{ "servers": {
        "a": { "command": "x", "dev": { "watch": "src/**", "debug": { "type": "node" } }, "timeout": "30" },
        "b": { "command": "x", "dev": { "debug": { "type": "node" } }, "disabled": "yes" },
        "c": { "url": "https://x.test", "oauth": { "clientId": "me", "enterpriseManaged": true } }
    } }"#), @r#"
    a {"command":"x","dev":{"watch":["src/**"]}}
    b {"command":"x"}
    c {"type":"http","url":"https://x.test","oauth":{"clientId":"me"}}
    a: not imported (no equivalent in mcp-sidecar): `dev.debug`, `timeout`
    b: not imported (no equivalent in mcp-sidecar): `dev.debug`, `disabled`
    c: not imported (no equivalent in mcp-sidecar): `oauth.enterpriseManaged`
    "#);
    let ours = json!({ "servers": {
        "a": { "command": "x", "frobnicate": 1, "autoApprove": ["rm"], "$comment": "mine", "dev": { "watch": "src/**", "debug": {} } },
        "b": { "url": "https://x.test", "oauth": { "client_id": "me", "enterpriseManaged": true } }
    } });
    let notes = exported(Dialect::VsCode, &ours).notes;
    assert_eq!(notes["a"], ["not exported (unknown to mcp-sidecar): `frobnicate`, `autoApprove`, `dev.debug`"]);
    assert_eq!(notes["b"], ["not exported (unknown to mcp-sidecar): `oauth.enterpriseManaged`"]);
}

/// In the order of an export.
fn sorted(import: &Import) -> Value {
    let map: BTreeMap<String, Value> =
        import.servers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    json!(map)
}

#[test]
fn keys_have_the_unit_and_meaning_of_their_program() {
    let entry = |dialect, text: &str| servers(&imported(dialect, text))["s"].clone();
    let timed = r#"{ "mcpServers": { "s": { "command": "x", "timeout": 2000 } } }"#;
    assert_eq!(entry(Dialect::Claude, timed)["timeout"], 2);
    // Two thousand seconds: as a plain 2000 they would be read as two here.
    assert_eq!(entry(Dialect::Cline, timed)["timeout"], 2_000_000);
    let remote = r#"{ "mcpServers": { "s": { "url": "https://x.test/mcp" } } }"#;
    assert_eq!(entry(Dialect::Cline, remote)["type"], "sse");
    assert_eq!(entry(Dialect::Cursor, remote)["type"], "http");
    let null = r#"{ "mcpServers": { "s": { "command": "x", "env": { "A": null } } } }"#;
    assert_eq!(entry(Dialect::McpHub, null)["env"]["A"], "${env:A}");
    assert_eq!(entry(Dialect::VsCode, null)["env"]["A"], Value::Null);
    let word = r#"{ "mcpServers": { "s": { "command": "x", "args": ["${userHome}"] } } }"#;
    assert!(imported(Dialect::Cursor, word).notes.is_empty());
    assert_eq!(
        imported(Dialect::Claude, word).notes["s"],
        ["`${userHome}` is plain text in Claude Code, but is expanded here"]
    );
}

#[test]
fn automatic_approvals_become_notes_and_never_levels() {
    insta::assert_snapshot!(report(Dialect::Cline, r#"{ "mcpServers": {
        "a": { "command": "x", "autoApprove": ["read", "list"] },
        "b": { "command": "x", "alwaysAllow": ["rm"], "trust": true },
        "c": { "command": "x", "autoApprove": [] }
    } }"#), @r#"
    a {"command":"x"}
    b {"command":"x"}
    c {"command":"x"}
    a: Cline runs `read`, `list` without asking; to allow this here, set a level such as `allow-session` in `tools`
    b: Cline runs all of its tools without asking; to allow this here, set a level such as `allow-session` in `tools`
    b: Cline runs `rm` without asking; to allow this here, set a level such as `allow-session` in `tools`
    "#);
    let codex = "[mcp_servers.a]\ncommand = 'x'\ndefault_tools_approval_mode = 'approve'\n[mcp_servers.a.tools.rm]\napproval_mode = 'approve'\n";
    let import = imported(Dialect::Codex, codex);
    assert_eq!(servers(&import), json!({ "a": { "command": "x" } }));
    assert_eq!(import.notes["a"].len(), 2, "{:?}", import.notes);
}

#[test]
fn restrictions_of_zed_become_levels_and_grants_become_notes() {
    insta::assert_snapshot!(report(Dialect::Zed, r#"{
        "context_servers": { "zz": { "command": "x" }, "z": { "command": "x" } },
        "agent": {
            "tool_permissions": { "tools": {
                "mcp:zz:run": { "default": "allow" }, "mcp:zz:rm": { "default": "deny" }, "mcp:zz:ls": { "default": "confirm" }, "terminal": { "default": "allow" }
            } },
            "profiles": {
                "write": { "context_servers": { "zz": { "tools": { "bad": false, "some": true } } } },
                "ask": { "context_servers": { "zz": { "tools": { "bad": false, "some": false } } } }
            }
        }
    }"#), @r#"
    zz {"command":"x","tools":{"bad":"disable","rm":"deny"}}
    z {"command":"x"}
    zz: `some` is disabled in the Zed profile `ask` but enabled in `write`; it stays enabled here
    zz: Zed runs `run` without asking; to allow this here, set a level such as `allow-session` in `tools`
    "#);
    insta::assert_snapshot!(report(Dialect::Zed, r#"{
        "context_servers": { "z": { "command": "x" } },
        "agent": { "tool_permissions": { "default": "deny", "tools": { "mcp:z:run": { "default": "allow" } } } }
    }"#), @r#"
    z {"command":"x","tools":{"run":"require-approval","*":"deny"}}
    z: Zed runs `run` without asking; to allow this here, set a level such as `allow-session` in `tools`
    "#);
    insta::assert_snapshot!(report(Dialect::Zed, r#"{ "context_servers": { "z": { "command": "x" } }, "agent": { "always_allow_tool_actions": true } }"#), @r#"
    z {"command":"x"}
    z: Zed runs all of its tools without asking; to allow this here, set a level such as `allow-session` in `tools`
    "#);
}

#[test]
fn permissions_apply_to_servers_of_other_files() {
    let file = |path: &str, text: &str| (PathBuf::from(path), Arc::from(text));
    let files = [
        file("/home/you/shop/.zed/settings.json", r#"{ "context_servers": { "z": { "command": "x" } } }"#),
        file(
            "/home/settings.json",
            r#"{ "agent": { "tool_permissions": { "tools": { "mcp:z:rm": { "default": "deny" } } } } }"#,
        ),
    ];
    let import = import(Dialect::Zed, &files, destination(Scope::Local), &|_| None);
    assert_eq!(servers(&import), json!({ "z": { "command": "x", "tools": { "rm": "deny" } } }));
}

#[test]
fn literal_secrets_become_variables_and_are_never_shown() {
    let text = r#"{ "mcpServers": {
        "git-hub": { "command": "x", "args": ["--api-key=abcdefgh12345678", "--verbose"], "env": { "GITHUB_TOKEN": "ghp_0123456789abcdefghij", "MODE": "fast" } },
        "other": { "command": "x", "env": { "GITHUB_TOKEN": "ghp_zzzzzzzzzzzzzzzzzzzz" } },
        "same": { "command": "x", "env": { "GITHUB_TOKEN": "ghp_0123456789abcdefghij" } },
        "web": { "url": "https://me:hunter2hunter2@x.test/mcp?token=abcdefgh", "headers": { "Authorization": "Bearer abcdefghijkl" } }
    } }"#;
    let shown = report(Dialect::Cursor, text);
    for secret in ["ghp_", "abcdefgh", "hunter2"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    insta::assert_snapshot!(shown, @r#"
    git-hub {"command":"x","args":["--api-key=${env:GIT_HUB_API_KEY}","--verbose"],"env":{"GITHUB_TOKEN":"${env:GITHUB_TOKEN}","MODE":"fast"}}
    other {"command":"x","env":{"GITHUB_TOKEN":"${env:OTHER_GITHUB_TOKEN}"}}
    same {"command":"x","env":{"GITHUB_TOKEN":"${env:GITHUB_TOKEN}"}}
    web {"type":"http","url":"https://me:${env:WEB_PASSWORD}@x.test/mcp?token=${env:WEB_TOKEN_2}","headers":{"Authorization":"Bearer ${env:WEB_TOKEN}"}}
    git-hub: the secret in `args` is not copied: set the environment variable `GIT_HUB_API_KEY` instead
    git-hub: the secret in `env.GITHUB_TOKEN` is not copied: set the environment variable `GITHUB_TOKEN` instead
    other: the secret in `env.GITHUB_TOKEN` is not copied: set the environment variable `OTHER_GITHUB_TOKEN` instead
    same: the secret in `env.GITHUB_TOKEN` is not copied: set the environment variable `GITHUB_TOKEN` instead
    web: the secret in `headers.Authorization` is not copied: set the environment variable `WEB_TOKEN` instead
    web: the secret in `url` is not copied: set the environment variable `WEB_PASSWORD` instead
    web: the secret in `url` is not copied: set the environment variable `WEB_TOKEN_2` instead
    "#);
    let ours = json!({ "servers": { "a": { "command": "x", "env": { "TOKEN": "ghp_0123456789abcdefghij" } } } });
    let export = exported(Dialect::Cursor, &ours);
    assert!(export.text().unwrap().contains("${env:TOKEN}") && !export.text().unwrap().contains("ghp_"));
}

#[test]
fn servers_that_cannot_be_imported_are_skipped_with_a_reason() {
    insta::assert_snapshot!(report(Dialect::McpHub, r#"{ "nativeMCPServers": { "lua": {} }, "servers": {
        "cmd": { "command": "x", "env": { "A": "${cmd: op read key}" } },
        "old": { "command": "x", "env": { "A": "$: op read key" } },
        "both": { "command": "x", "url": "https://x.test" },
        "none": { "description": "nothing" },
        "us": { "command": "/opt/bin/mcp-sidecar", "args": ["connect"] },
        "odd name!": { "command": "x" },
        "text": "x",
        "net": { "type": "tcp", "host": "localhost", "port": 3001 },
        "far": { "type": "tcp", "port": "much" }
    } }"#), @r#"
    odd-name {"command":"x"}
    net {"type":"tcp","host":"localhost","port":3001}
    odd-name: its name in mcphub is `odd name!`
    skipped both: it has both `command` and `url`, but no `type`
    skipped cmd: it runs a command to get a value (`${cmd:…}`), which is not supported; use an environment variable instead
    skipped far: its `port` is not a number between 0 and 65535
    skipped lua: it is written in Lua and runs inside mcphub
    skipped none: it has no `command` or `url`
    skipped old: the value of `A` comes from a command, which is not supported
    skipped text: its entry is not an object
    skipped us: it is mcp-sidecar itself, which cannot be its own server
    "#);
    insta::assert_snapshot!(report(Dialect::VsCode, r#"{ "inputs": [{ "id": "k", "type": "command", "command": "c" }], "servers": {
        "pipe": { "url": "unix:///run/x.sock#/mcp" },
        "conf": { "command": "${config:x.y}" },
        "here": { "command": "x", "args": ["${file}"] },
        "asks": { "command": "x", "args": ["${input:k}", "${X}"], "sandboxEnabled": true, "gallery": "g", "frobnicate": 1 }
    } }"#), @r#"
    asks {"command":"x","args":["${input:k}","${env:X}"]}
    input {"id":"k","type":"promptString","description":"k","password":true}
    asks: `${X}` is plain text in VS Code, but is expanded here
    asks: VS Code runs it in a sandbox; mcp-sidecar does not
    asks: not imported (no equivalent in mcp-sidecar): `frobnicate`
    skipped conf: it uses `${config:x.y}`, which only VS Code can expand
    skipped here: it uses `${file}`, which only VS Code can expand
    skipped pipe: its URL starts with `unix://`, which is not supported
    "#);
    insta::assert_snapshot!(report(Dialect::Zed, r#"{ "context_servers": { "ext": { "settings": {} }, "ws": { "type": "ws", "url": "wss://x" } } }"#), @r"
    skipped ext: it is started by an extension of Zed; the entry has no command
    skipped ws: it is of type `ws`, which is not supported
    ");
}

#[test]
fn mcphub_variables_are_expanded_from_the_entrys_env_first() {
    let text = r#"{ "mcpServers": { "s": { "command": "x", "args": ["--to", "${PLACE}", "$OTHER"], "env": { "PLACE": "here" } },
                                    "w": { "url": "https://x.test/${PLACE}", "env": { "PLACE": "there" } } } }"#;
    let servers = servers(&imported(Dialect::McpHub, text));
    assert_eq!(servers["s"]["args"], json!(["--to", "here", "${env:OTHER}"]));
    assert_eq!(servers["w"], json!({ "type": "http", "url": "https://x.test/there" }));
}

#[test]
fn the_private_section_of_a_project_takes_precedence_over_the_users_servers() {
    let text = r#"{ "mcpServers": { "a": { "command": "user" }, "b": { "command": "user" } },
                    "projects": { "/home/you/shop": { "mcpServers": { "a": { "command": "local" } } }, "/other": { "mcpServers": { "c": { "command": "x" } } } } }"#;
    let local = imported(Dialect::Claude, text);
    assert_eq!(servers(&local), json!({ "a": { "command": "local" }, "b": { "command": "user" } }));
    let reason = "it is only for the project /other; import it there, into scope `local`";
    assert_eq!(local.skipped, BTreeMap::from([("c in /other".to_owned(), reason.to_owned())]));
    // What the user has in one project does not become a server of all projects.
    let user = import(Dialect::Claude, &files(text), destination(Scope::User), &|_| None);
    assert_eq!(servers(&user), json!({ "a": { "command": "user" }, "b": { "command": "user" } }));
    let reason = "it is only for the project /home/you/shop; import it into scope `local` or `project`";
    assert_eq!(user.skipped["a in /home/you/shop"], reason);
}

#[test]
fn an_invalid_file_does_not_affect_others_and_is_not_quoted() {
    let files = vec![
        (PathBuf::from("/broken.toml"), Arc::from("[mcp_servers.a\nbearer_token = \"hunter2hunter2\"")),
        (PathBuf::from("/good.toml"), Arc::from("[mcp_servers.b]\ncommand = \"x\"\n")),
    ];
    let import = import(Dialect::Codex, &files, destination(Scope::Local), &|_| None);
    assert_eq!(servers(&import), json!({ "b": { "command": "x" } }));
    let reason = &import.skipped["/broken.toml"];
    assert!(reason.starts_with("cannot parse the file: ") && !reason.contains("hunter2"), "{reason}");
}

#[test]
fn unsupported_keys_become_comments_if_the_dialect_has_comments() {
    let ours = json!({ "servers": {
        "fs": { "command": "fs-mcp", "args": ["${workspaceFolder}", "${input:key}"], "cwd": "/srv",
                "timeout": 5, "tools": { "rm": "disable", "read": "allow-session" }, "fallback": { "type": "tcp", "port": 1 } },
        "net": { "type": "tcp", "port": 3001 }
    }, "inputs": [{ "id": "key", "type": "promptString", "description": "Key", "password": true }] });
    insta::assert_snapshot!(exported(Dialect::VsCode, &ours).text().unwrap(), @r#"
    {
      "servers": {
        "fs": {
          // not exported (not supported by VS Code): `timeout`, `tools`, `fallback`
          "type": "stdio",
          "command": "fs-mcp",
          "args": ["${workspaceFolder}", "${input:key}"],
          "cwd": "/srv"
        }
      },
      "inputs": [
        {
          "id": "key",
          "type": "promptString",
          "description": "Key",
          "password": true
        }
      ]
    }
    "#);
    insta::assert_snapshot!(exported(Dialect::Codex, &ours).text().unwrap(), @r#"
    [mcp_servers.fs]
    # Codex does not expand `${workspaceFolder}`: replace it with the path
    # `${input:key}` became the environment variable `KEY`: Codex does not support this kind of value
    # Codex does not expand `${env:KEY}`: replace it with the value of `KEY`
    # not exported (not supported by Codex): `tools (all levels except disable)`, `fallback`
    command = "fs-mcp"
    args = ["${workspaceFolder}", "${env:KEY}"]
    cwd = "/srv"
    tool_timeout_sec = 5
    disabled_tools = ["rm"]
    "#);
    let plain = exported(Dialect::Claude, &ours);
    insta::assert_snapshot!(plain.text().unwrap(), @r#"
    {
      "mcpServers": {
        "fs": {
          "type": "stdio",
          "command": "fs-mcp",
          "args": ["${CLAUDE_PROJECT_DIR:-.}", "${KEY}"],
          "timeout": 5000
        }
      }
    }
    "#);
    assert_eq!(plain.notes["net"], ["not exported: Claude Code does not support servers of type `tcp`"]);
}

#[test]
fn an_export_keeps_the_rest_of_the_file() {
    let ours = json!({ "servers": { "new": { "command": "x", "autoStart": false }, "both": { "command": "y" } } });
    let zed = "{\n  // my theme\n  \"theme\": \"One\",\n  \"context_servers\": {\n    \"both\": { \"command\": \"old\", \"args\": [] }, // mine\n  },\n}\n";
    insta::assert_snapshot!(exported(Dialect::Zed, &ours).merged(zed).unwrap(), @r#"
    {
      // my theme
      "theme": "One",
      "context_servers": {
        "both": { "command": "y", "args": [] }, // mine
        "new": {
          // not exported (not supported by Zed): `autoStart`
          "command": "x",
          "args": []
        },
      },
    }
    "#);
    let codex =
        "# mine\nmodel = \"o3\"\n\n[mcp_servers.both] # old\ncommand = \"old\"\n\n[tui]\ntheme = \"x\" # dark\n";
    insta::assert_snapshot!(exported(Dialect::Codex, &ours).merged(codex).unwrap(), @r#"
    # mine
    model = "o3"

    [tui]
    theme = "x" # dark

    [mcp_servers.both]
    command = "y"

    [mcp_servers.new]
    # not exported (not supported by Codex): `autoStart`
    command = "x"
    "#);
}

#[test]
fn adding_and_removing_our_entry_restores_the_file_in_every_dialect() {
    let args = ["connect".to_owned()];
    let json =
        "{\n  // kept\n  \"a\": 1, // here\n  \"SECTION\": {\n    \"x\": { \"command\": \"x\" } // and here\n  }\n}\n";
    let toml = "# kept\nmodel = \"o3\"\n\n[mcp_servers.x] # here\ncommand = \"x\"\n# the end\n";
    let map = "# kept\nextensions: # here\n  x:\n    cmd: x # and here\n\n# the end\na: 1\n";
    let list = "# kept\nmcpServers: # here\n  - name: x\n    command: x # and here\n\n# the end\na: 1\n";
    for dialect in Dialect::ALL {
        let before = match dialect.format().syntax {
            Syntax::Json => json.replace("SECTION", dialect.format().section),
            Syntax::Toml => toml.to_owned(),
            Syntax::Yaml { is_list } => (if is_list { list } else { map }).to_owned(),
        };
        let pointed = add_sidecar(dialect, &before, "mcp-sidecar", &args).unwrap();
        assert!(pointed.contains("mcp-sidecar") && pointed.contains("connect"), "{dialect}:\n{pointed}");
        assert_eq!(add_sidecar(dialect, &pointed, "mcp-sidecar", &args).unwrap(), pointed, "{dialect}: idempotent");
        assert_eq!(remove_sidecar(dialect, &pointed).unwrap(), before, "{dialect}");
        assert_eq!(remove_sidecar(dialect, &before).unwrap(), before, "{dialect}: nothing to undo");
        let fresh = add_sidecar(dialect, "", "mcp-sidecar", &args).unwrap();
        let import = imported(dialect, &fresh);
        assert!(import.skipped["mcp-sidecar"].contains("itself"), "{dialect}: our own entry is recognized\n{fresh}");
    }
}

#[test]
fn another_server_with_our_name_is_not_changed() {
    let text = r#"{ "mcpServers": { "mcp-sidecar": { "command": "something-else" } } }"#;
    assert!(matches!(add_sidecar(Dialect::Cursor, text, "mcp-sidecar", &[]), Err(SetupError::Foreign)));
    assert!(matches!(remove_sidecar(Dialect::Cursor, text), Err(SetupError::Foreign)));
    assert!(matches!(add_sidecar(Dialect::Cursor, "{ oops", "mcp-sidecar", &[]), Err(SetupError::Broken(_))));
}

#[test]
fn every_program_has_a_file_below_the_home_folder() {
    let homes = Homes::under(Path::new("/home/me"));
    for dialect in Dialect::ALL {
        assert!(user_files(dialect, &homes).iter().all(|path| path.starts_with("/home/me")), "{dialect}");
        assert_eq!(Dialect::parse(dialect.name()), Some(dialect));
        assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.name());
    }
}

#[test]
fn what_a_project_disables_or_restricts_is_exported_as_such() {
    let source = |path: &str, scope: Scope, folder: Option<&str>| Source {
        path: Path::new(path).into(),
        scope,
        folder: folder.map(|folder| Path::new(folder).into()),
    };
    let file = |servers: Value| Content::Text(json!({ "servers": servers }).to_string().into());
    let files = [
        (
            source("/home/you/shop/mcp.json", Scope::Project, Some("/home/you/shop")),
            file(json!({ "slack": { "enabled": false }, "mail": { "disabled_tools": ["send"] } })),
        ),
        (
            source("/home/me/mcp.json", Scope::User, None),
            file(json!({ "slack": { "command": "slack" }, "mail": { "command": "mail" } })),
        ),
    ];
    let config = layers::load(&files, &BTreeMap::new(), &Settings::default().limits).config;
    let exported = export(Dialect::Codex, config.servers.values().map(|definition| &**definition), &config);
    let text = exported.text().unwrap();
    assert!(text.contains("[mcp_servers.slack]\ncommand = \"slack\"\nenabled = false"), "{text}");
    assert!(text.contains("disabled_tools = [\"send\"]"), "{text}");
}
