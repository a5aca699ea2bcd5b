//! Problems are shown as `line:column-column severity code message`, with columns in UTF-16 units from 1.

use super::*;
use crate::config::Code;
use crate::config::spec::{Condition, InputKind, Launch};
use crate::config::tree;
use crate::text::lines::Encoding;

/// A machine with few variables and programs.
struct Small;

impl Machine for Small {
    fn is_set(&self, variable: &str, _folder: Option<&Path>) -> bool {
        matches!(variable, "SET" | "HOME" | "GITHUB_TOKEN")
    }

    fn finds(&self, program: &str, _cwd: Option<&Path>, _folder: Option<&Path>) -> bool {
        matches!(program, "npx" | "uvx" | "docker" | "node" | "sh" | "bash" | "python")
    }
}

fn shape_of(text: &str, path: &str, scope: Scope) -> ParsedFile {
    let limits = crate::settings::Settings::default().limits;
    let source = Source { path: Path::new(path).into(), scope, folder: Some(Path::new("/home/me/app").into()) };
    let tree = tree::parse(text, limits.config_depth);
    assert_eq!(tree.problems, [], "{text}");
    shape(&tree, &source, &LineIndex::new(text), &limits, &Small)
}

fn shown(text: &str, problems: &[Problem]) -> String {
    let index = LineIndex::new(text);
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| problem.span.start);
    let line = |problem: &&Problem| {
        let from = index.position(problem.span.start, Encoding::Utf16);
        let to = index.position(problem.span.end, Encoding::Utf16);
        let (severity, code) = (problem.severity.as_str(), problem.code);
        format!("{}:{}-{} {severity} {code}: {}", from.line + 1, from.column + 1, to.column + 1, problem.message)
    };
    sorted.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn problems(text: &str) -> String {
    shown(text, &shape_of(text, "/home/me/app/mcp.json", Scope::User).problems)
}

/// The problems of one server of the user.
fn server(entry: &str) -> String {
    problems(&format!("{{\"servers\":{{\"s\":\n{entry}\n}}}}"))
}

/// The spec of one server of the user.
fn spec(entry: &str) -> ServerSpec {
    let text = format!("{{\"servers\":{{\"s\":\n{entry}\n}}}}");
    let parsed = shape_of(&text, "/home/me/app/mcp.json", Scope::User);
    match parsed.servers.into_iter().next() {
        Some(entry) => entry.spec,
        None => panic!("no server: {}", shown(&text, &parsed.problems)),
    }
}

#[test]
fn a_client_that_signs_in_by_itself_needs_a_secret_that_is_not_in_the_file() {
    let read = |oauth: &str| {
        let text = format!(r#"{{ "servers": {{ "a": {{ "url": "https://a.example/mcp", "oauth": {oauth} }} }} }}"#);
        let parsed = shape_of(&text, "/home/me/app/mcp.json", Scope::Project);
        let codes: Vec<_> = parsed.problems.iter().map(|problem| problem.code.as_str()).collect();
        (parsed.servers.len(), codes.join(" "))
    };
    let client = r#""grantType": "client_credentials", "clientId": "c""#;
    for secret in ["${keyring:c}", "${env:C}", "${C}"] {
        let (servers, _) = read(&format!(r#"{{ {client}, "clientSecret": "{secret}" }}"#));
        assert_eq!(servers, 1, "{secret}");
    }
    for secret in ["literal-value-of-it", "${env:C:-literal-value-of-it}", "x${env:C}", "${workspaceFolder}", ""] {
        let (servers, codes) = read(&format!(r#"{{ {client}, "clientSecret": "{secret}" }}"#));
        assert_eq!(servers, 0, "{secret}");
        assert!(codes.contains("secret-not-referenced"), "{secret}: {codes}");
    }
    for (key, expected) in
        [("${keyring:c}", ""), ("${C}", ""), ("-----BEGIN PRIVATE KEY-----", "secret-not-referenced")]
    {
        let (servers, codes) = read(&format!(r#"{{ {client}, "privateKey": "{key}" }}"#));
        assert_eq!((servers == 1, codes.contains(expected)), (expected.is_empty(), true), "{key}: {codes}");
    }
    let (both, alone) =
        (r#""clientSecret": "${keyring:c}", "privateKey": "${keyring:k}""#, r#"{ "privateKey": "${keyring:k}" }"#);
    assert_eq!(read(&format!("{{ {client}, {both} }}")).0, 0);
    assert_eq!(read(alone), (0, "missing-key".to_owned()));
    assert_eq!(read(&format!("{{ {client} }}")), (0, "missing-key".to_owned()));
    assert_eq!(read(r#"{ "grantType": "implicit" }"#), (0, "unknown-type".to_owned()));
}

#[test]
fn the_example_in_the_reference_has_no_problems() {
    let text = r#"{
      "servers": {
        "filesystem": {
          "type": "stdio", "command": "npx",
          "args": ["-y", "@modelcontextprotocol/server-filesystem", "${workspaceFolder}"],
          "env": { "TOKEN": "${env:GITHUB_TOKEN}" },
          "envFile": ".env", "cwd": "${workspaceFolder}",
          "enabled": true, "autoStart": true, "description": "files of this project",
          "startupTimeout": 30, "timeout": 60,
          "fallback": { "type": "tcp", "port": 3001 },
          "tools": { "read_file": "allow-session", "delete_file": "deny",
                     "write_*": [ { "when": { "path": { "inside": "${workspaceFolder}/src" } }, "level": "allow-session" },
                                  "require-approval" ] },
          "dev": { "watch": "server/**/*.ts" }
        },
        "browser":  { "type": "tcp", "host": "127.0.0.1", "port": 3001 },
        "search":   { "type": "http", "url": "https://example.test/mcp", "headers": { "Authorization": "Bearer ${SET}" } },
        "editor":   { "type": "sdk",  "name": "nvim" },
        "drive":    { "type": "claudeai-proxy", "url": "https://proxy.test/v1/mcp/{id}", "id": "mcpsrv_01" },
      },
      "inputs": [ { "id": "key", "type": "promptString", "description": "API key", "password": true } ],
      "policy": {
        "default": "confirm",
        "allowlist": [ { "server": "filesystem", "tool": "read_*" } ],
        "denylist":  [ { "server": "*", "tool": "drop_*" } ],
        "readOnly": "allow-session", "destructive": "require-approval",
        "commands": ["npx", "uvx", "docker"]
      },
      "actions": [ { "title": "Look up in docs", "tool": "mcp__docs__search", "arguments": { "query": "${selection}" },
                     "filetypes": ["rust"], "result": "show" } ]
    }"#;
    let parsed = shape_of(text, "/home/me/app/mcp.json", Scope::User);
    assert_eq!(shown(text, &parsed.problems), "");
    let transports: Vec<_> = parsed.servers.iter().map(|entry| entry.spec.launch.transport()).collect();
    assert_eq!(transports, ["stdio", "tcp", "http", "sdk", "claudeai-proxy"]);
    let filesystem = &parsed.servers[0].spec;
    assert_eq!(filesystem.fallback, Some(Launch::Tcp { host: "127.0.0.1".into(), port: 3001 }));
    assert_eq!(filesystem.tools[2].level.cases[0].when[0].1, Condition::Inside("${workspaceFolder}/src".into()));
    assert_eq!((parsed.inputs.len(), parsed.actions.len()), (1, 1));
    assert_eq!(parsed.inputs[0].kind, InputKind::Prompt);
    assert_eq!(parsed.policy.unwrap().commands.unwrap().len(), 3);
}

#[test]
fn each_of_many_mistakes_is_reported_at_its_position() {
    let text = r#"{
  "servers": {
    "🦀 crab": { "command": "npx" },
    "good":    { "command": "npx", "description": "🦀🦀" },
    "b":  { "description": "🦀", "comand": "npx" },
    "c":  { "description": "🦀", "command": "npx", "args": ["🦀", 7] },
    "d":  { "description": "🦀", "type": "stdoi", "command": "npx" },
    "e":  { "description": "🦀", "type": "tcp" },
    "f":  { "description": "🦀", "port": 99999 },
    "g":  { "description": "🦀", "url": "ftp://example.test" },
    "h":  { "description": "🦀", "command": "npx", "timeout": -1 },
    "i":  { "description": "🦀", "command": "npx", "tools": { "x": "alow-session" } },
    "j":  { "description": "🦀", "command": "npx", "tools": { "x": [ { "when": { "a": { "matches": "(" } }, "level": "deny" }, "deny" ] } },
    "k":  { "description": "🦀", "command": "npx", "env": { "A": "${NOPE}" } },
    "l":  { "description": "🦀", "command": "npx", "env": { "A": "${cmd: touch pwned}" } },
    "m":  { "description": "🦀", "command": "npx", "env": { "GITHUB_TOKEN": "ghp_0123456789abcdefghij" } },
    "n":  { "description": "🦀", "command": "nowhere-to-be-found" },
    "o":  { "description": "🦀", "url": "http://example.test/mcp" },
    "p":  { "description": "🦀", "command": "npx", "url": "https://example.test" },
    "q":  { "description": "🦀", "command": "npx", "enabled": "yes" },
    "r__s": { "description": "🦀", "command": "npx" },
    "t":  { "description": "🦀", "command": "npx", "command": "npx" }
  },
  "policy": { "default": "🦀" },
  "actions": [ { "title": "🦀", "tool": "search" } ],
  "mcpServers": { "good": { "command": "npx" } }
}"#;
    insta::assert_snapshot!(problems(text), @"
    3:5-14 error bad-name: server names can only contain letters, digits, `-` and `_`; found '🦀'
    5:34-42 error unknown-key: unknown key `comand` in `servers.b`; did you mean `command`?
    6:67-68 error wrong-type: `servers.c.args[1]` must be a string, not a number
    7:42-49 error unknown-type: unknown type `stdoi`; did you mean `stdio`?
    8:5-8 error missing-key: `servers.e` is of type `tcp` and needs `port`
    9:42-47 error bad-port: `servers.f.port` must be a whole number from 1 to 65535
    10:41-61 error bad-url: `servers.g.url` must start with `https://` or `http://`, not `ftp:`
    11:63-65 error bad-duration: `servers.h.timeout` must be greater than 0 and at most one day
    12:68-82 error bad-level: unknown level `alow-session`; did you mean `allow-session`?
    13:100-103 error bad-regex: `servers.j.tools.x[0].when.a.matches` is not a valid regular expression: a `(` is not closed
    14:66-75 warning unset-variable: the variable `NOPE` is not set
    15:66-87 error unknown-expansion: unknown expansion `${cmd: touch pwned}`
    16:77-103 warning raw-secret: `servers.m.env.GITHUB_TOKEN` contains a secret in plain text
    17:45-66 warning command-not-found: `nowhere-to-be-found` was not found on the PATH
    18:41-66 warning plain-http: plain `http` to `example.test` is not encrypted: others can read the traffic
    19:52-57 error conflicting-keys: `servers.p` has both `command` and `url`, so its type is unclear
    20:63-68 error wrong-type: `servers.q.enabled` must be true or false, not a string
    21:5-11 error bad-name: server names must not contain `__`, which separates server and tool
    22:52-61 warning duplicate-key: `command` is defined twice in `servers.t`; only the last one is used
    24:26-30 error bad-level: `🦀` is not one of allow, confirm, deny
    25:41-49 error bad-tool: `actions[0].tool` must have the form `mcp__server__tool`
    26:19-25 error name-clash: `servers` and `mcpServers` both define `good`; the one in `servers` is used
    ");
}

#[test]
fn a_wrong_type_is_reported_with_its_path_and_valid_servers_are_kept() {
    let text = r#"{ "servers": {
  "a": "npx", "b": { "command": 1 }, "c": { "command": "npx", "args": "x" }, "d": { "command": "npx", "env": [] },
  "e": { "command": "npx", "env": { "A": {} } }, "f": { "url": 1 }, "g": { "port": "3001" }, "h": [],
  "good": { "command": "npx" } }, "inputs": {}, "policy": [], "actions": [1] }"#;
    insta::assert_snapshot!(problems(text), @"
    2:8-13 error wrong-type: `servers.a` must be an object, not a string
    2:33-34 error wrong-type: `servers.b.command` must be a string, or a list of the program and its arguments, not a number
    2:71-74 error wrong-type: `servers.c.args` must be a list of strings, not a string
    2:110-112 error wrong-type: `servers.d.env` must be an object, not a list
    3:42-44 error wrong-type: `servers.e.env.A` must be a string, a number, a boolean or null, not an object
    3:64-65 error wrong-type: `servers.f.url` must be a string, not a number
    3:84-90 error bad-port: `servers.g.port` must be a whole number from 1 to 65535
    3:99-101 error wrong-type: `servers.h` must be an object, not a list
    4:45-47 error wrong-type: `inputs` must be a list, not an object
    4:59-61 error wrong-type: `policy` must be an object, not a list
    4:75-76 error wrong-type: `actions[0]` must be an object, not a number
    ");
    let parsed = shape_of(text, "/home/you/shop/mcp.json", Scope::User);
    assert_eq!(parsed.servers.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(parsed.names.len(), 9);
}

#[test]
fn names_are_checked_and_unusual_ones_are_accepted() {
    let text = format!(
        r#"{{ "servers": {{ "": {{ "port": 1 }}, " ": {{ "port": 1 }}, "{}": {{ "port": 1 }}, "a__b": {{ "port": 1 }}, "__proto__": {{ "port": 1 }}, "constructor": {{ "port": 1 }} }} }}"#,
        "x".repeat(10_000)
    );
    let parsed = shape_of(&text, "/home/you/shop/mcp.json", Scope::User);
    let messages: Vec<_> = parsed.problems.iter().map(|problem| problem.message.as_str()).collect();
    insta::assert_snapshot!(messages.join("\n"), @"
    server names must not be empty
    server names can only contain letters, digits, `-` and `_`; found ' '
    server names can have at most 64 characters; this one has 10000
    server names must not contain `__`, which separates server and tool
    server names must not contain `__`, which separates server and tool
    ");
    assert_eq!(parsed.servers.len(), 1);
}

#[test]
fn the_spellings_of_all_programs_are_accepted() {
    let transport = |entry: &str| spec(entry).launch.transport();
    assert_eq!(transport(r#"{ "command": "npx" }"#), "stdio");
    assert_eq!(transport(r#"{ "type": "local", "command": "npx" }"#), "stdio");
    assert_eq!(transport(r#"{ "transport": "stdio", "command": ["npx", "-y"] }"#), "stdio");
    for kind in ["http", "streamable-http", "streamableHttp", "streamable_http"] {
        assert_eq!(transport(&format!(r#"{{ "type": "{kind}", "url": "https://x.test" }}"#)), "http");
    }
    assert_eq!(transport(r#"{ "url": "https://x.test" }"#), "http");
    assert_eq!(transport(r#"{ "serverUrl": "https://x.test" }"#), "http");
    assert_eq!(transport(r#"{ "httpUrl": "https://x.test" }"#), "http");
    assert_eq!(transport(r#"{ "port": 1 }"#), "tcp");
    assert_eq!(transport(r#"{ "transport": { "type": "stdio", "command": "npx" } }"#), "stdio");
    assert_eq!(transport(r#"{ "transportType": "sse", "url": "https://x.test" }"#), "sse");

    let Launch::Stdio(stdio) =
        spec(r#"{ "command": ["npx", "-y"], "args": ["x"], "env": { "A": 1, "B": true, "C": null, "D": "d" } }"#)
            .launch
    else {
        panic!()
    };
    assert_eq!(stdio.args, ["-y", "x"]);
    let env: Vec<_> = stdio.env.values().map(|value| value.as_deref().unwrap_or("-")).collect();
    assert_eq!(env, ["1", "true", "-", "d"]);
    let Launch::Stdio(zed) = spec(r#"{ "command": { "path": "npx", "args": ["a"] } }"#).launch else { panic!() };
    assert_eq!((zed.command.as_str(), zed.args.len()), ("npx", 1));

    assert!(!spec(r#"{ "command": "npx", "disabled": true }"#).enabled);
    assert!(!spec(r#"{ "command": "npx", "enabled": false }"#).enabled);
    assert_eq!(spec(r#"{ "command": "npx", "timeout": 90000 }"#).timeout.unwrap().as_secs(), 90);
    assert_eq!(spec(r#"{ "command": "npx", "timeout": 3600000 }"#).timeout.unwrap().as_secs(), 3600);
    assert_eq!(spec(r#"{ "command": "npx", "timeout": 0.5 }"#).timeout.unwrap().as_millis(), 500);
    assert_eq!(spec(r#"{ "command": "npx", "request_timeout_ms": 500 }"#).timeout.unwrap().as_millis(), 500);
    let oauth = |entry: &str| match spec(entry).launch {
        Launch::Http(remote) => remote.oauth.unwrap(),
        _ => panic!(),
    };
    let read =
        oauth(r#"{ "url": "https://x.test", "oauth": { "clientId": "c", "scopes": "a b", "callbackPort": 7 } }"#);
    assert_eq!((read.client_id.as_deref(), read.scopes.len(), read.callback_port), (Some("c"), 2, Some(7)));
    assert_eq!(
        oauth(r#"{ "url": "https://x.test", "oauth": { "client_id": "c", "scopes": ["a"] } }"#).client_id.as_deref(),
        Some("c")
    );
    let secret = |text: &str| format!(r#"{{ "url": "https://x.test", "oauth": {{ "clientSecret": "{text}" }} }}"#);
    assert_eq!(oauth(&secret("${keyring:x}")).client_secret.as_deref(), Some("${keyring:x}"));
    assert_eq!(server(&secret("${keyring:x}")), "");
    insta::assert_snapshot!(server(&secret("s3cr3t-value-of-x")), @"2:55-74 warning raw-secret: `servers.s.oauth.clientSecret` contains a secret in plain text");
}

#[test]
fn tool_lists_of_other_programs_restrict_and_never_grant() {
    let rules = |entry: &str| {
        let tools = spec(entry).tools;
        tools.iter().map(|rule| format!("{}={}", rule.pattern, rule.level.rest)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(rules(r#"{ "command": "npx", "disabled_tools": ["a"], "autoApprove": true }"#), "a=disable");
    assert_eq!(rules(r#"{ "command": "npx", "excludeTools": ["a"] }"#), "a=disable");
    assert_eq!(rules(r#"{ "command": "npx", "tools": ["*"] }"#), "");
    assert_eq!(rules(r#"{ "command": "npx", "tools": ["a"] }"#), "a=require-approval *=disable");
    assert_eq!(
        rules(r#"{ "command": "npx", "tools": { "a": "allow-always" }, "includeTools": ["a", "b"] }"#),
        "a=allow-always b=require-approval *=disable"
    );
}

#[test]
fn keys_of_other_programs_are_accepted_but_grants_are_reported() {
    assert_eq!(
        server(
            r#"{ "command": "npx", "gallery": "x", "version": "1", "sandboxEnabled": true, "alwaysLoad": true, "name": "x", "$comment": "", "_note": 1 }"#
        ),
        ""
    );
    assert_eq!(problems(r#"{ "sandbox": {}, "$schema": "x", "nativeMCPServers": {} }"#), "");
    insta::assert_snapshot!(server(r#"{ "command": "npx", "autoApprove": ["a"], "alwaysAllow": ["a"], "trust": true }"#), @"
    2:21-34 information ignored-key: `autoApprove` has no effect here: a file cannot approve its own tools; set levels in `tools`
    2:43-56 information ignored-key: `alwaysAllow` has no effect here: a file cannot approve its own tools; set levels in `tools`
    2:65-72 information ignored-key: `trust` has no effect here: a file cannot trust itself; set levels in `tools`
    ");
    insta::assert_snapshot!(server(r#"{ "url": "https://x.test", "headersHelper": "touch pwned" }"#), @"2:28-43 warning ignored-key: `headersHelper` has no effect here: commands for headers are never run; use `${env:NAME}`, `${input:id}` or `oauth`");
    insta::assert_snapshot!(server(r#"{ "command": "npx", "frobnicate": 1, "env_file": ".env" }"#), @"
    2:21-33 warning unknown-key: unknown key `frobnicate` in `servers.s`
    2:38-48 warning unknown-key: unknown key `env_file` in `servers.s`; did you mean `envFile`?
    ");
}

#[test]
fn one_mistake_causes_one_problem() {
    insta::assert_snapshot!(server(r#"{ "tpye": "stdio", "comand": "npx", "agrs": [] }"#), @"
    2:3-9 warning unknown-key: unknown key `tpye` in `servers.s`; did you mean `type`?
    2:20-28 error unknown-key: unknown key `comand` in `servers.s`; did you mean `command`?
    2:37-43 warning unknown-key: unknown key `agrs` in `servers.s`; did you mean `args`?
    ");
    insta::assert_snapshot!(server(r#"{ "type": "http", "command": "npx" }"#), @"2:11-17 error type-mismatch: `servers.s` is of type `http`, but has `command` and no `url`");
    insta::assert_snapshot!(server(r#"{ "type": 1, "command": "npx" }"#), @"2:11-12 error wrong-type: `servers.s.type` must be a string, not a number");
    insta::assert_snapshot!(server(r#"{ "type": "ws", "url": "wss://x.test" }"#), @"2:11-15 error unknown-type: WebSocket servers are not supported");
    insta::assert_snapshot!(server(r#"{}"#), @"1:13-16 error missing-key: `servers.s` has no `command`, `url` or `port`");
    insta::assert_snapshot!(server(r#"{ "type": "claudeai-proxy", "url": "https://x.test" }"#), @"1:13-16 error missing-key: `servers.s` is of type `claudeai-proxy` and needs `id`");
    insta::assert_snapshot!(server(r#"{ "command": "npx", "fallback": { "type": "tcp" } }"#), @"2:21-31 error missing-key: `servers.s.fallback` is of type `tcp` and needs `port`");
    insta::assert_snapshot!(server(r#"{ "url": "https://x.test", "args": [] }"#), @"2:28-34 warning unused-key: `args` has no effect for a server of type `http`");
    insta::assert_snapshot!(server(r#"{ "command": "npx", "type": "stdio", "transport": "stdio" }"#), @"2:38-49 warning same-key: `transport` and `type` are the same key; remove one of them");
}

#[test]
fn suspicious_launches_are_reported() {
    insta::assert_snapshot!(server(r#"{ "command": "sh", "args": ["-c", "touch pwned; rm -rf /"] }"#), @"2:14-18 warning shell: `sh` is a shell and runs its argument as a script, which can execute any command");
    insta::assert_snapshot!(server(r#"{ "command": "/bin/bash", "args": ["-lc", "x"], "env": { "PATH": "/x" } }"#), @"2:14-25 warning shell: `bash` is a shell and runs its argument as a script, which can execute any command");
    insta::assert_snapshot!(server(r#"{ "command": "npx; touch pwned" }"#), @"2:14-32 warning command-not-found: `npx; touch pwned` was not found on the PATH");
    insta::assert_snapshot!(server(r#"{ "command": "a\u0000b" }"#), @"2:14-24 error nul: `servers.s.command` contains a NUL character, which cannot be passed to a program");
    insta::assert_snapshot!(server(r#"{ "type": "sse", "url": "http://localhost:1/sse" }"#), @"2:11-16 warning deprecated-sse: the `sse` transport has been deprecated since 2025");
    insta::assert_snapshot!(server(r#"{ "host": "db.test", "port": 1 }"#), @"2:11-20 information tcp-host: `db.test` is not this machine; to allow the connection, add it to `servers.tcp-hosts` in config.toml");
    insta::assert_snapshot!(server(r#"{ "command": "npx", "env": { "LD_PRELOAD": "x" } }"#), @"");
    assert_eq!(server(r#"{ "command": "not-there", "disabled": true }"#), "");
    assert_eq!(server(r#"{ "command": "${SET}/x", "args": ["$(x)", "`x`", "$HOME", "${NOPE:-d}"] }"#), "");
}

#[test]
fn an_argument_list_that_is_too_long_is_rejected() {
    let args = vec!["\"0123456789\""; 20_000].join(",");
    insta::assert_snapshot!(server(&format!(r#"{{ "command": "npx", "args": [{args}] }}"#)), @"2:29-260030 error arguments-too-long: the argument list is larger than 128 KiB");
}

#[test]
fn a_raw_secret_is_reported_without_its_value_and_has_a_fix() {
    let text = r#"{"servers":{"git-hub":{"command":"npx","args":["--token","s3cr3t-value","--port=1"],"env":{"API_TOKEN":"s3cr3t-value"}},
"web":{"url":"https://u:s3cr3t-value@x.test/?key=s3cr3t-value","headers":{"Authorization":"Bearer s3cr3t-value","X-Plain":"fine"}}}}"#;
    let parsed = shape_of(text, "/home/you/shop/mcp.json", Scope::User);
    assert!(!shown(text, &parsed.problems).contains("s3cr3t"));
    let mut fixed = text.to_owned();
    let mut sorted: Vec<_> = parsed.problems.iter().collect();
    sorted.sort_by_key(|problem| problem.span.start);
    for problem in sorted.into_iter().rev() {
        let edit = &problem.fix.as_ref().unwrap().edits[0];
        fixed.replace_range(edit.span.clone(), &edit.text);
    }
    insta::assert_snapshot!(fixed, @r#"
    {"servers":{"git-hub":{"command":"npx","args":["--token","${env:GIT_HUB_TOKEN}","--port=1"],"env":{"API_TOKEN":"${env:API_TOKEN}"}},
    "web":{"url":"https://u:${env:WEB_PASSWORD}@x.test/?key=s3cr3t-value","headers":{"Authorization":"Bearer ${env:WEB_TOKEN}","X-Plain":"fine"}}}}
    "#);
    insta::assert_snapshot!(shown(text, &parsed.problems), @"
    1:58-72 warning raw-secret: `servers.git-hub.args[1]` contains a secret in plain text
    1:104-118 warning raw-secret: `servers.git-hub.env.API_TOKEN` contains a secret in plain text
    2:14-63 warning raw-secret: `servers.web.url` contains a secret in plain text
    2:91-112 warning raw-secret: `servers.web.headers.Authorization` contains a secret in plain text
    ");
}

#[test]
fn permissions_in_a_project_file_are_reported() {
    let text = r#"{ "servers": { "s": { "command": "npx", "env": { "LD_PRELOAD": "x.so" }, "tools": { "a": "allow-always", "b": "deny" } } },
  "policy": { "default": "allow", "allowlist": [ { "server": "s", "tool": "*" } ], "readOnly": "allow-session", "destructive": "deny" } }"#;
    insta::assert_snapshot!(shown(text, &shape_of(text, "/home/me/app/mcp.json", Scope::Project).problems), @"
    1:50-62 warning risky-variable: `LD_PRELOAD` can make programs load other code; check it before you trust this server
    1:90-104 information needs-trust: `allow-always` takes effect only after you trust this project's servers
    2:26-33 information needs-trust: `allow` takes effect only after you trust this project's servers
    2:35-46 information needs-trust: an allowlist takes effect only after you trust this project's servers
    2:96-111 information needs-trust: `allow-session` takes effect only after you trust this project's servers
    ");
    assert_eq!(problems(text), "");
}

#[test]
fn a_spelling_that_the_files_own_program_ignores_is_reported() {
    let shown_in = |text: &str, path: &str| shown(text, &shape_of(text, path, Scope::User).problems);
    insta::assert_snapshot!(shown_in(r#"{ "mcpServers": {} }"#, "/home/you/shop/.vscode/mcp.json"), @"1:3-15 hint other-spelling: VS Code does not read `mcpServers` in this file, only `servers`");
    insta::assert_snapshot!(shown_in(r#"{ "servers": {} }"#, "/home/you/shop/.cursor/mcp.json"), @"1:3-12 hint other-spelling: Cursor does not read `servers` in this file, only `mcpServers`");
    insta::assert_snapshot!(shown_in(r#"{ "servers": {} }"#, "/home/you/shop/.mcp.json"), @"1:3-12 hint other-spelling: Claude Code does not read `servers` in this file, only `mcpServers`");
    assert_eq!(shown_in(r#"{ "servers": {}, "mcpServers": {} }"#, "/home/you/shop/.mcp.json"), "");
    assert_eq!(shown_in(r#"{ "mcpServers": {} }"#, "/home/you/shop/mcp.json"), "");
}

#[test]
fn an_invalid_rule_denies() {
    let text = r#"{ "command": "npx", "tools": { "a": "dney", "b": [ { "when": { "p": { "insde": "/" } }, "level": "deny" }, "allow-always" ], "c": [], "d": ["deny", "deny"], "e": [ { "when": {}, "level": "deny" } ], "f": 1, "g[": "deny" } }"#;
    let rules: Vec<_> = spec(text).tools.iter().map(|rule| rule.level.rest.as_str()).collect();
    assert_eq!(rules, ["deny"; 7]);
    insta::assert_snapshot!(server(text), @"
    2:37-43 error bad-level: unknown level `dney`; did you mean `deny`?
    2:71-78 error bad-condition: unknown condition `insde`; use one of in, matches, inside, max; did you mean `inside`?
    2:131-133 error bad-level: `servers.s.tools.c` is empty: it must end with a plain level
    2:141-147 error bad-level: `servers.s.tools.d[0]` must be a rule: only the last item of a list is a plain level
    2:165-196 error bad-level: `servers.s.tools.e[0]` must be a plain level, which applies when no rule matches
    2:205-206 error wrong-type: `servers.s.tools.f` must be a level, or a list of `{ when, level }` rules that ends with a plain level, not a number
    2:208-212 error bad-glob: `g[` is not a valid glob: a `[` is not closed
    ");
}

#[test]
fn other_sections_are_checked() {
    let text = r#"{ "inputs": [ { "id": "a" }, { "id": "a" }, { "type": "pickString", "id": "b" }, { "type": "command", "id": "c", "command": "x" },
    { "type": "pickString", "id": "d", "options": ["x", { "label": "l", "value": "v" }, 3] }, { "description": "no id" } ],
  "policy": { "defualt": "deny", "commands": "npx", "denylist": [ { "tool": "x" }, {}, { "sever": "x" } ], "allowlist": [ { "server": "x" } ] },
  "actions": [ { "title": "t", "tool": "mcp__a__b", "result": "insrt", "arguments": { "q": "${selection} ${nope}" } }, { "tool": "mcp__a__b" } ], "srevers": {} }"#;
    insta::assert_snapshot!(problems(text), @"
    1:38-41 error duplicate-key: the input `a` is declared twice
    1:45-80 error missing-key: `inputs[2]` is of type `pickString` and needs `options`
    1:92-101 warning ignored-key: inputs of type `command` are not supported; use `promptString` to ask for the value
    2:89-90 error wrong-type: `inputs[4].options[2]` must be a string, or an object with `label` and `value`, not a number
    2:95-121 error missing-key: `inputs[5]`: an input needs `id`
    3:15-24 warning unknown-key: unknown key `defualt` in `policy`; did you mean `default`?
    3:46-51 error wrong-type: `policy.commands` must be a list of strings, not a string
    3:84-86 error missing-key: `policy.denylist[1]` needs `server` and `tool`
    3:90-97 error unknown-key: unknown key `sever` in `policy.denylist[2]`; did you mean `server`?
    3:123-140 error missing-key: `policy.allowlist[0]` needs `server` and `tool`
    4:63-70 error unknown-result: `insrt` is not one of show, insert, replace, append; did you mean `insert`?
    4:92-114 warning unknown-expansion: `${nope}` is not a placeholder for actions and is left unchanged
    4:120-143 error missing-key: `actions[1]`: an action needs `title`
    4:147-156 warning unknown-key: unknown key `srevers` in `config`; did you mean `servers`?
    ");
}

#[test]
fn servers_beyond_the_limit_are_ignored_and_reported_once() {
    let entries: Vec<_> = (0..300).map(|number| format!(r#""s{number}": {{ "port": 1 }}"#)).collect();
    let text = format!("{{ \"servers\": {{\n{}\n}} }}", entries.join(",\n"));
    let parsed = shape_of(&text, "/home/you/shop/mcp.json", Scope::User);
    assert_eq!(parsed.servers.len(), 256);
    insta::assert_snapshot!(shown(&text, &parsed.problems), @"258:1-7 error too-many-servers: more than 256 servers (setting `limits.servers`): this server and the following ones are ignored");
}

#[test]
fn an_entry_that_starts_mcp_sidecar_is_not_a_server() {
    let text = r#"{ "servers": { "mcp-sidecar": { "command": "/opt/bin/mcp-sidecar", "args": ["connect"] }, "b": { "command": "npx" } } }"#;
    let parsed = shape_of(text, "/home/me/app/mcp.json", Scope::Project);
    assert_eq!(parsed.servers.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["b"]);
    insta::assert_snapshot!(shown(text, &parsed.problems), @"1:44-66 information ourselves: this entry starts mcp-sidecar itself; it is meant for other programs and is ignored here");
}

#[test]
fn two_secrets_never_share_a_variable() {
    let text = r#"{ "servers": {
  "web": { "url": "https://x.test/mcp?api_key=abcdef0123456789", "headers": { "Authorization": "Bearer ghp_0123456789abcdefghij" } },
  "b": { "command": "npx", "env": { "API_TOKEN": "first-value", "OTHER": "${USED_TOKEN}" } },
  "c": { "command": "npx", "env": { "API_TOKEN": "second-value", "USED_TOKEN": "third-value" } },
  "d": { "command": "npx", "env": { "API_TOKEN": "first-value" } } } }"#;
    let parsed = shape_of(text, "/home/me/app/mcp.json", Scope::User);
    let fixes = parsed
        .problems
        .iter()
        .filter(|problem| problem.code == Code::RawSecret)
        .filter_map(|problem| problem.fix.as_ref());
    insta::assert_snapshot!(fixes.map(|fix| fix.title.as_str()).collect::<Vec<_>>().join("\n"), @r"
    replace with ${env:WEB_TOKEN}
    replace with ${env:WEB_TOKEN_2}
    replace with ${env:API_TOKEN}
    replace with ${env:C_API_TOKEN}
    replace with ${env:C_USED_TOKEN}
    replace with ${env:API_TOKEN}
    ");
}

#[test]
fn a_variable_in_the_url_of_a_project_is_reported_like_one_in_a_header() {
    let reported = |url: &str| {
        let text = serde_json::json!({ "servers": { "a": { "type": "http", "url": url } } }).to_string();
        let parsed = shape_of(&text, "/home/me/app/mcp.json", Scope::Project);
        parsed.problems.iter().filter(|problem| problem.code == Code::SecretToHost).count()
    };
    assert_eq!(reported("https://evil.test/mcp?api_key=${HOME}"), 1);
    assert_eq!(reported("https://${HOME}.evil.test/mcp"), 1);
    assert_eq!(reported("http://127.0.0.1/${HOME}"), 0);
    assert_eq!(reported("https://evil.test/mcp"), 0);
}

#[test]
fn a_relative_path_of_the_users_own_server_gets_the_workspace_folder_as_a_quick_fix() {
    let entry =
        r#"{"servers":{"s":{"command":"./run","args":[".","./data","--root=../x","-y","a.b","/abs",".hidden"]}}}"#;
    let fixes = |text: &str, scope| {
        let parsed = shape_of(text, "/home/me/app/mcp.json", scope);
        let relative = parsed.problems.into_iter().filter(|problem| problem.code == Code::RelativePath);
        relative.map(|problem| problem.fix.unwrap().edits[0].text.clone()).collect::<Vec<_>>()
    };
    let expected = [
        r#""${workspaceFolder}/run""#,
        r#""${workspaceFolder}""#,
        r#""${workspaceFolder}/data""#,
        r#""--root=${workspaceFolder}/../x""#,
    ];
    assert_eq!(fixes(entry, Scope::User), expected);
    assert_eq!(fixes(entry, Scope::Managed), expected);
    assert_eq!(fixes(entry, Scope::Project), [""; 0], "a server of a project runs in its folder");
    let cwd = |cwd: &str| format!(r#"{{"servers":{{"s":{{"command":"npx","args":["."],"cwd":"{cwd}"}}}}}}"#);
    for absolute in ["${workspaceFolder}", "/srv", "~/data"] {
        assert_eq!(fixes(&cwd(absolute), Scope::User), [""; 0], "{absolute}");
    }
    assert_eq!(fixes(&cwd("data"), Scope::User), [r#""${workspaceFolder}/data""#]);
}

/// A project must not end the engine of all windows.
#[test]
fn references_that_are_nested_without_end_are_a_problem() {
    let deep = "${A:-".repeat(80_000) + &"}".repeat(80_000);
    for entry in [
        format!(r#"{{"command":"npx","env":{{"X":"{deep}"}}}}"#),
        format!(r#"{{"command":"{deep}"}}"#),
        format!(r#"{{"command":"npx","cwd":"{deep}"}}"#),
        format!(r#"{{"url":"https://{deep}"}}"#),
        format!(r#"{{"url":"https://a.b","headers":{{"X":"{deep}"}}}}"#),
    ] {
        let found = server(&entry);
        assert!(found.contains("nested deeper than 10 levels"), "{entry:.30}: {found:.300}");
    }
}
