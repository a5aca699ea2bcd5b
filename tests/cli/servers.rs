//! `list`, `inspect` and `test`: servers in a shell.

use serde_json::Value;

use crate::{DEMO, Sandbox};

/// The demo server in the user's config and in the project, and some servers that fail.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_workspace();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/server.py");
    sandbox.write(
        "config/mcp.json",
        &format!(
            r#"{{ "servers": {{
                "mine": {DEMO},
                "broken": {{ "command": "python3", "args": ["{fixture}", "--exit", "3"] }},
                "missing": {{ "command": "no-such-program" }},
                "off": {{ "command": "no-such-program", "enabled": false }}
            }} }}"#
        ),
    );
    sandbox.write("work/mcp.json", &format!(r#"{{ "servers": {{ "demo": {DEMO} }} }}"#));
    sandbox
}

#[test]
fn the_list_shows_every_server_and_what_to_do_next() {
    let sandbox = sandbox();
    let run = sandbox.run(&["list"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    insta::assert_snapshot!(run.out, @"
      SERVER   TRANSPORT  SCOPE    TOOLS  STATUS
    ● broken   stdio      user            failed  the server exited with code 3 before it answered `initialize`
    ● demo     stdio      project         waiting for trust
    ● mine     stdio      user         9  connected
    ● missing  stdio      user            failed  `no-such-program` was not found on the PATH; install it or use its full path
    ● off      stdio      user            disabled

    run `mcp-sidecar trust demo` to review and trust `demo`
    run `mcp-sidecar inspect broken` for details about the failure
    ");

    let run = sandbox.run(&["list", "--json"]);
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    let names: Vec<_> = answer["servers"].as_array().unwrap().iter().map(|server| server["name"].clone()).collect();
    assert_eq!(names, ["broken", "demo", "mine", "missing", "off"]);
    assert_eq!(answer["servers"][1]["reason"], "awaiting-trust");
}

#[test]
fn a_list_says_that_the_state_folder_is_refused() {
    let sandbox = sandbox();
    std::fs::create_dir_all(sandbox.path("state")).unwrap();
    std::fs::set_permissions(sandbox.path("state"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let run = sandbox.run(&["list"]);
    assert_eq!(run.code, 0);
    assert!(
        run.err.contains("is writable by other users") && run.err.contains("your decisions are lost"),
        "{}",
        run.err
    );
    let answer: Value = serde_json::from_str(&sandbox.run(&["list", "--json"]).out).unwrap();
    assert!(answer["problems"][0].as_str().unwrap().contains("is writable by other users"), "{}", answer["problems"]);
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.code != 0 && doctor.out.contains("is writable by other users"), "{}", doctor.out);
}

#[test]
fn a_list_without_servers_shows_where_to_define_them() {
    let sandbox = Sandbox::with_workspace();
    let run = sandbox.run(&["list"]);
    assert_eq!(run.code, 0);
    assert!(run.out.starts_with("no servers; define one in any of these files:\n"), "{}", run.out);
    assert!(run.out.contains("\n  mcp.json\n"), "{}", run.out);

    sandbox.write("work/mcp.json", "{ not json");
    let run = sandbox.run(&["list"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (0, "warning: cannot load mcp.json; run `mcp-sidecar check` to see why\n")
    );
}

#[test]
fn the_list_waits_no_longer_than_requested() {
    let sandbox = Sandbox::with_workspace();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/server.py");
    let slow = format!(r#"{{ "command": "python3", "args": ["{fixture}", "--slow", "3600"] }}"#);
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "slow": {slow} }} }}"#));
    let run = sandbox.run(&["list", "--wait", "1"]);
    assert!(run.out.contains("  starting\n"), "{}", run.out);
}

#[test]
fn one_server_is_inspected_with_its_tools_and_their_parameters() {
    let sandbox = sandbox();
    let run = sandbox.run(&["inspect", "mine"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let varies = ["process", "started", "latency"];
    let fixed = |line: &&str| !varies.iter().any(|word| line.trim_start().starts_with(word));
    let shown: String = run.out.lines().filter(fixed).map(|line| format!("{line}\n")).collect();
    let shown =
        shown.replace(env!("CARGO_BIN_EXE_mcp-sidecar"), "mcp-sidecar").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    insta::assert_snapshot!(shown.split("  forget_notes").next().unwrap(), @"
    mine  ● connected
      from           ~/config/mcp.json:2 (user)
      stdio          mcp-sidecar demo-server
      server         mcp-sidecar-demo VERSION
      protocol       2025-11-25
      capabilities   logging, completions, prompts, resources, tools
      instructions   Harmless tools to try things out. Notes are kept in memory only.

    Tools (9), ~596 tokens
      add  require-approval (built-in default) read-only, idempotent ~64 tokens
        Adds two numbers
          a*  a number
          b*  a number
      ask_name  require-approval (built-in default) read-only ~42 tokens
        Asks you for your name, then greets you
      countdown  require-approval (built-in default) read-only ~113 tokens
        Counts down slowly, with progress; can be cancelled
          from      a whole number, at least 1, at most 100   Number to start from [10]
          interval  a whole number, at least 1, at most 5000  Milliseconds between two steps [1000]
      echo  require-approval (built-in default) read-only ~59 tokens
        Returns the given text
          text*  text  Text to return
    ");
    assert!(run.out.contains("\nResources (1)\n  demo://notes") && run.out.contains("\nPrompts (1)\n  greet"));
}

#[test]
fn all_servers_are_inspected_even_those_that_failed() {
    let sandbox = sandbox();
    let answer: Value = serde_json::from_str(&sandbox.run(&["inspect", "--json"]).out).unwrap();
    let servers = answer["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 5);
    assert_eq!(servers[2]["server"]["status"], "connected");
    assert_eq!(servers[2]["tools"][0]["name"], "mcp__mine__add");
    assert_eq!(servers[2]["prompts"][0]["name"], "greet");
    assert!(servers[0]["server"]["error"].as_str().unwrap().contains("cannot go on like this"));

    let unknown = sandbox.run(&["inspect", "nobody"]);
    assert_eq!(unknown.code, 1);
    assert_eq!(unknown.err, "error: no server named `nobody`; check the list of servers (run `mcp-sidecar list`)\n");
}

#[test]
fn a_test_shows_what_a_server_offers_or_why_it_fails() {
    let sandbox = sandbox();
    let good = sandbox.run(&["test", "mine"]);
    assert_eq!((good.code, good.err.as_str()), (0, ""));
    let (summary, _) = good.out.split_once("; ready after").unwrap();
    let summary = summary.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    assert_eq!(summary, "ok: `mine` is mcp-sidecar-demo VERSION, protocol 2025-11-25; 9 tools, 1 resource, 1 prompt");

    let broken = sandbox.run(&["test", "broken"]);
    assert_eq!((broken.code, broken.out.as_str()), (1, ""));
    insta::assert_snapshot!(broken.err, @"
    failed: `broken`: the server exited with code 3 before it answered `initialize`; last lines of its stderr:
      cannot go on like this
    ");

    let untrusted = sandbox.run(&["test", "demo"]);
    assert_eq!(untrusted.code, 1);
    insta::assert_snapshot!(untrusted.err, @"error: server `demo` is not trusted yet; review its definition and trust it first (run `mcp-sidecar trust demo`)");

    let answer: Value = serde_json::from_str(&sandbox.run(&["test", "broken", "--json"]).out).unwrap();
    assert_eq!(answer["success"], false);
}

#[cfg(unix)]
#[test]
fn next_to_an_editor_the_shell_sees_the_same_servers() {
    use std::io::{Read, Write};
    use std::process::Stdio;

    let sandbox = sandbox();
    let root = url::Url::from_file_path(sandbox.path("work")).unwrap();
    let initialize = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "processId": null, "capabilities": {}, "workspaceFolders": [{ "uri": root, "name": "work" }] } });
    let message = initialize.to_string();
    let mut editor = sandbox.command(&["lsp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = editor.stdin.take().unwrap();
    write!(stdin, "Content-Length: {}\r\n\r\n{message}", message.len()).unwrap();
    // Its first word comes once it has an engine.
    editor.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();

    // On a busy machine the server may still be starting when the list is made; then it is made again.
    let listed = || -> Option<u64> {
        let answer: Value = serde_json::from_str(&sandbox.run(&["list", "--json"]).out).unwrap();
        answer["servers"][2]["pid"].as_u64()
    };
    let pid = || (0..100).find_map(|_| listed()).expect("it never ran");
    assert_eq!(pid(), pid());
    let call = sandbox.run(&["call", "-y", "mine/countdown", r#"{"from": 2, "interval": 1}"#]);
    assert_eq!((call.code, call.out.as_str()), (0, "lift-off\n"), "{}", call.err);
    let refused = sandbox.run(&["call", "-y", "mine/add", "{}"]);
    assert!(refused.err.starts_with("error: the arguments of `add` do not match its schema:\n"), "{}", refused.err);
    let trusted = sandbox.run(&["trust", "demo", "--yes"]);
    assert!(trusted.err.contains("runs") && trusted.err.ends_with("`demo` is trusted\n"), "{}", trusted.err);
    assert_eq!(sandbox.run(&["call", "-y", "demo/add", r#"{"a": 1, "b": 2}"#]).out, "3\n");

    drop(stdin);
    editor.wait().unwrap();
}
