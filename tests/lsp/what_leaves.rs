//! The trust question says what a server of the project gets of the user's, and to whom it goes.

use mcp_sidecar::protocol::types::{Approval, ApprovalKind, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use crate::support::harness::{demo, scripted};
use crate::support::{Harness, Home};

/// The question about the only server of a project.
async fn question(server: Value) -> Approval {
    let mut harness = Harness::new(json!({}), json!({ "servers": { "new": server } })).await;
    harness.approvals(ApprovalKind::Trust, 1).await.remove(0)
}

/// The values of the lines with this word.
fn lines<'a>(detail: &'a str, word: &str) -> Vec<&'a str> {
    let value = |line: &'a str| line.strip_prefix(&format!("{word:9} "));
    detail.lines().filter_map(value).collect()
}

#[tokio::test]
async fn the_first_lines_say_which_values_of_the_user_go_where() {
    let headers = json!({ "X-Trace": "${GITHUB_TOKEN}", "X-Key": "${keyring:github}", "X-Mode": "debug",
        "X-Deep": "${NOT_SET:-${AWS_SECRET_ACCESS_KEY}}", "X-Home": "${userHome}" });
    let web = json!({ "url": "https://collector.test/mcp?k=${env:NPM_TOKEN}", "headers": headers });
    let detail = question(web).await.detail;
    let mut gets = lines(&detail, "gets");
    assert_eq!(
        detail.lines().next().unwrap().split_once("gets      ").unwrap().1,
        gets[0],
        "they come first: {detail}"
    );
    gets.sort_unstable();
    assert_eq!(
        gets,
        [
            "`github` from your keyring as header `X-Key`, sent to `collector.test`",
            "your `AWS_SECRET_ACCESS_KEY` as header `X-Deep`, sent to `collector.test`",
            "your `GITHUB_TOKEN` as header `X-Trace`, sent to `collector.test`",
            "your `NOT_SET` as header `X-Deep`, sent to `collector.test`",
            "your `NPM_TOKEN` in the URL, sent to `collector.test`",
        ]
    );
    assert!(lines(&detail, "headers").contains(&"X-Mode: debug"), "values are shown as written: {detail}");
    assert!(lines(&detail, "headers").contains(&"X-Trace: ${GITHUB_TOKEN}"), "{detail}");
}

#[tokio::test]
async fn values_for_a_program_are_named_too() {
    let mut server = demo(json!({}));
    server["env"] = json!({ "OUT": "${GITHUB_TOKEN}", "LANGUAGE": "${LANG}" });
    server["args"] = json!(["demo-server", "--key=${keyring:prod}", "${input:secret}"]);
    server["inheritEnv"] = json!(true);
    server["fallback"] = json!({ "url": "http://127.0.0.1:9/", "headers": { "A": "${SLACK_TOKEN}" } });
    let detail = question(server).await.detail;
    let gets = lines(&detail, "gets");
    for expected in [
        "your `GITHUB_TOKEN` as variable `OUT`",
        "`prod` from your keyring in an argument",
        "your answer to `secret` in an argument",
        "your whole environment, including any tokens in it (`inheritEnv`)",
        "your `SLACK_TOKEN` as header `A`, sent to `127.0.0.1:9` if the first launch fails",
    ] {
        assert!(gets.contains(&expected), "{expected} in {detail}");
    }
    assert!(!detail.contains("your `LANG`"), "every program gets this: {detail}");
}

#[tokio::test]
async fn values_of_the_file_are_shown_unless_they_look_secret() {
    let mut server = demo(json!({}));
    server["env"] =
        json!({ "MODE": "debug on", "API_TOKEN": "s3cr3t-value", "X": "ghp_0123456789abcdefghij", "GONE": null });
    let detail = question(server).await.detail;
    let env = lines(&detail, "env");
    assert_eq!(env, ["API_TOKEN=•••", "GONE (removed)", "MODE=debug on", "X=•••"], "{detail}");
    assert!(!detail.contains("s3cr3t") && !detail.contains("ghp_"), "{detail}");
}

#[tokio::test]
async fn everything_that_loads_code_is_flagged() {
    let names = [
        "NODE_OPTIONS",
        "npm_config_registry",
        "NPM_CONFIG_USERCONFIG",
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "PYTHONINSPECT",
        "GIT_CONFIG_COUNT",
        "HOME",
        "XDG_CONFIG_HOME",
        "PATH",
        "HTTPS_PROXY",
        "all_proxy",
        "BASH_ENV",
        "ENV",
        "PERL5LIB",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "UV_INDEX_URL",
        "PIP_INDEX_URL",
        "DOTNET_STARTUP_HOOKS",
        "CARGO_HOME",
        "DENO_DIR",
        "BUN_INSTALL",
        "SHELL",
        "EDITOR",
        "SSL_CERT_FILE",
        "NODE_EXTRA_CA_CERTS",
        "GOFLAGS",
        "PHPRC",
        "LUA_PATH",
        "R_PROFILE",
        "ZDOTDIR",
        "IFS",
        "DOCKER_HOST",
        "SSLKEYLOGFILE",
        "OPENSSL_CONF",
        "GCONV_PATH",
        "CLASSPATH",
    ];
    let mut server = demo(json!({}));
    server["env"] =
        names.iter().map(|name| ((*name).to_owned(), json!("./x"))).collect::<serde_json::Map<_, _>>().into();
    let detail = question(server).await.detail;
    let warnings = lines(&detail, "warning").join("\n");
    for name in names {
        assert!(warnings.contains(&format!("`{name}`")), "{name} in {warnings}");
    }
    let plain = question({
        let mut server = demo(json!({}));
        server["env"] = json!({ "MODE": "x", "PYTHON_VERSION_NOTE": "3" });
        server
    });
    assert!(!plain.await.detail.contains("`MODE`, which"));
}

#[tokio::test]
async fn the_names_in_an_env_file_are_shown_and_a_file_of_the_user_is_named() {
    let home = Home::new();
    std::fs::write(home.path("private.env"), "AWS_KEY=abc-def-ghi\nNODE_OPTIONS=--require ./x\n").unwrap();
    let mut server = demo(json!({}));
    server["envFile"] = json!(home.path("private.env"));
    let detail = question(server).await.detail;
    let file = home.path("private.env").display().to_string();
    assert_eq!(lines(&detail, "env file"), [format!("{file} (sets AWS_KEY, NODE_OPTIONS)")], "{detail}");
    assert!(
        lines(&detail, "gets").contains(&&*format!("the variables in `{file}`, a file outside this project")),
        "{detail}"
    );
    assert!(lines(&detail, "warning").iter().any(|line| line.contains("`NODE_OPTIONS`")), "{detail}");
    assert!(!detail.contains("abc-def"), "{detail}");
}

#[tokio::test]
async fn a_keyring_entry_goes_to_a_new_server_only_after_its_own_question() {
    let (settings, problems) = Settings::from_toml("secrets = 'file'");
    assert_eq!(problems, []);
    let home = Home::new();
    let tool = json!({ "name": "value", "inputSchema": { "type": "object" } });
    let mut server = scripted(&home.path("state"), "leak", json!({ "tools": [tool] }));
    server["env"] = json!({ "LEAK": "${keyring:github}" });
    server["tools"] = json!({ "*": "allow-always" });
    let project = json!({ "servers": { "leak": server } });
    let mut harness = Harness::with(json!({}), project, settings).await;
    let saved = json!({ "keyring:github": "keyring-value-1" });
    std::fs::write(harness.home.path("state/secrets.json"), saved.to_string()).unwrap();
    let trust = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    harness.resolve(&trust, "allow-project").await;
    let question = harness.approvals(ApprovalKind::Elicitation, 1).await.remove(0);
    assert_eq!(question.title, "Give `github` from your keyring to the server `leak`?");
    harness.resolve(&question, "decline").await;
    let failed = harness.until("leak", Status::Failed).await;
    assert!(failed.error.unwrap().contains("you did not give it `github` from your keyring"));

    harness.run(crate::support::commands::restart("leak")).await;
    let question = harness.approvals(ApprovalKind::Elicitation, 1).await.remove(0);
    harness.resolve(&question, "accept").await;
    harness.until("leak", Status::Connected).await;
    let result = harness.call("mcp__leak__value", json!({ "variable": "LEAK" })).await.unwrap();
    assert!(crate::support::commands::text(&result).contains("keyring-value-1"));
    // Once is enough, until the definition changes.
    harness.run(crate::support::commands::restart("leak")).await;
    harness.until("leak", Status::Connected).await;
}

#[tokio::test]
async fn a_stored_sign_in_that_would_be_used_is_named_first() {
    let web =
        |headers: Value| json!({ "servers": { "web": { "url": "https://signed-in.test/mcp", "headers": headers } } });
    for (headers, is_used) in [(json!({}), true), (json!({ "Authorization": "Bearer x" }), false)] {
        let mut harness = Harness::new(json!({}), json!({})).await;
        let names = json!(["oauth https://signed-in.test/mcp"]);
        std::fs::write(harness.home.path("state/secrets.names"), names.to_string()).unwrap();
        harness.home.write("mcp.json", &web(headers).to_string());
        let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
        let first = question.detail.lines().next().unwrap();
        assert_eq!(first == "gets      your stored sign-in, sent to `signed-in.test`", is_used, "{}", question.detail);
    }
}
