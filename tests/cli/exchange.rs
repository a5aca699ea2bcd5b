//! Import, export and setup with real files.

use std::fs;

use mcp_sidecar::config::interop::Dialect;
use serde_json::Value;

use super::{Run, Sandbox};

/// Runs a command with a home folder inside the temporary folder.
fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let mut command = sandbox.command(arguments);
    // Where no mcp-sidecar is installed.
    command.env("PATH", "/usr/bin:/bin");
    command.env("HOME", sandbox.path("home")).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME");
    command.env_remove("CLAUDE_CONFIG_DIR");
    sandbox.result(command.output().unwrap())
}

fn read(sandbox: &Sandbox, name: &str) -> String {
    fs::read_to_string(sandbox.path(name)).unwrap()
}

#[test]
fn servers_of_the_user_are_imported_once() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write(
        "home/.cursor/mcp.json",
        r#"{ "mcpServers": { "git": { "command": "git-mcp", "env": { "TOKEN": "ghp_0123456789abcdefghij" } } } }"#,
    );
    sandbox.write("config/mcp.json", "{\n  // mine\n  \"servers\": {}\n}\n");
    let dry = run(&sandbox, &["import", "cursor", "--dry-run"]);
    assert_eq!((dry.code, dry.err.as_str()), (0, ""));
    insta::assert_snapshot!(dry.out, @r"
    would import into ~/config/mcp.json:
      git
          the secret in `env.TOKEN` is not copied: set the environment variable `TOKEN` instead
    ");
    assert!(!read(&sandbox, "config/mcp.json").contains("git"));

    assert_eq!(run(&sandbox, &["import", "cursor"]).code, 0);
    insta::assert_snapshot!(read(&sandbox, "config/mcp.json"), @r#"
    {
      // mine
      "servers": {
        "git": {
          "command": "git-mcp",
          "env": {
            "TOKEN": "${env:TOKEN}"
          }
        }
      }
    }
    "#);
    let again: Value = serde_json::from_str(&run(&sandbox, &["import", "cursor", "--json"]).out).unwrap();
    assert_eq!(again["imported"], Value::Array(Vec::new()));
    assert!(again["skipped"]["git"].as_str().unwrap().contains("already"));
}

#[test]
fn servers_of_a_project_are_imported_for_the_user_only_if_the_file_is_named() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/.codex/config.toml", "[mcp_servers.a]\ncommand = \"a-mcp\"\n");
    let user = run(&sandbox, &["import", "codex"]);
    assert_eq!(user.code, 0);
    assert!(user.out.starts_with("imported nothing\nskipped:\n  a: it is part of the project"), "{}", user.out);
    assert!(!sandbox.path("config/mcp.json").exists());
    assert_eq!(run(&sandbox, &["import", "codex", "--path", ".codex/config.toml"]).code, 0);
    assert!(read(&sandbox, "config/mcp.json").contains("a-mcp"));
    assert_eq!(run(&sandbox, &["import", "codex", "--scope", "project"]).code, 0);
    assert!(read(&sandbox, "work/mcp.json").contains("a-mcp"));
}

#[test]
fn an_import_without_any_file_reports_the_paths_it_checked() {
    let sandbox = Sandbox::with_workspace();
    let run_ = run(&sandbox, &["import", "zed"]);
    assert_eq!(run_.code, 1);
    assert!(run_.err.contains("no config file of Zed found at ~/work/.zed/settings.json, ~/home/"), "{}", run_.err);
    assert_eq!(run(&sandbox, &["import", "emacs"]).code, 2);
    assert_eq!(run(&sandbox, &["import", "zed", "--scope", "managed"]).code, 2);
    let named = run(&sandbox, &["import", "zed", "--path", "nowhere.json"]);
    assert_eq!((named.code, named.err.as_str()), (1, "error: ~/work/nowhere.json does not exist\n"));
}

#[test]
fn an_export_is_printed_or_added_to_a_file_but_never_to_one_of_ours() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write(
        "work/mcp.json",
        r#"{ "servers": { "a": { "command": "a-mcp", "tools": { "rm": "deny" } }, "b": { "command": "b-mcp" } } }"#,
    );
    let printed = run(&sandbox, &["export", "claude", "a"]);
    assert_eq!(printed.err, "note: a: not exported (not supported by Claude Code): `tools`\n");
    let text: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(text["mcpServers"].as_object().unwrap().len(), 1);
    sandbox.write("work/other.toml", "model = \"o3\"\n");
    assert_eq!(run(&sandbox, &["export", "codex", "--path", "other.toml"]).code, 0);
    let written = read(&sandbox, "work/other.toml");
    assert!(written.starts_with("model = \"o3\"\n") && written.contains("[mcp_servers.b]"), "{written}");
    let own = run(&sandbox, &["export", "vscode", "--path", "mcp.json"]);
    assert_eq!(own.code, 1);
    assert!(own.err.contains("mcp-sidecar reads this file"), "{}", own.err);
    assert_eq!(run(&sandbox, &["export", "vscode", "nobody"]).code, 1);
}

#[test]
fn setup_adds_an_entry_with_a_backup_and_can_be_undone() {
    let sandbox = Sandbox::with_workspace();
    let before = "# mine\nmodel = \"o3\"\n";
    sandbox.write("work/.codex/config.toml", before);
    let dry = run(&sandbox, &["setup", "codex", "--dry-run"]);
    insta::assert_snapshot!(dry.out, @r#"
    --- ~/work/.codex/config.toml
    +++ ~/work/.codex/config.toml
    +
    +[mcp_servers.mcp-sidecar]
    +command = "mcp-sidecar"
    +args = ["connect"]
    +tool_timeout_sec = 3600
    +env_vars = ["MCP_SIDECAR_CONFIG_DIR", "MCP_SIDECAR_STATE_DIR", "MCP_SIDECAR_RUNTIME_DIR", "MCP_SIDECAR_MANAGED_CONFIG", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS"]
    +default_tools_approval_mode = "approve"
    "#);
    assert_eq!(read(&sandbox, "work/.codex/config.toml"), before);

    let done = run(&sandbox, &["setup", "codex"]);
    assert_eq!(done.code, 0);
    insta::assert_snapshot!(done.err, @"
    note: Codex will look for `mcp-sidecar` on the PATH, but it is not there yet; add it, or use --user
    note: Codex ignores the file of a project that it does not trust: start Codex in ~/work once and trust it, or use --user
    ");
    assert!(read(&sandbox, "work/.codex/config.toml").contains("mcp-sidecar"));
    assert_eq!(read(&sandbox, "work/.codex/config.toml.bak"), before);
    assert!(run(&sandbox, &["setup", "codex"]).out.contains("already uses mcp-sidecar"));
    assert_eq!(run(&sandbox, &["setup", "codex", "--undo"]).code, 0);
    assert_eq!(read(&sandbox, "work/.codex/config.toml"), before);
    assert!(run(&sandbox, &["setup", "codex", "--undo"]).out.contains("nothing to undo"));
}

#[test]
fn setup_does_not_ask_for_trust_that_codex_has_already() {
    let sandbox = Sandbox::with_workspace();
    let folder = sandbox.path("work").canonicalize().unwrap();
    sandbox.write("home/.codex/config.toml", &format!("[projects.{folder:?}]\ntrust_level = \"trusted\"\n"));
    let done = run(&sandbox, &["setup", "codex"]);
    assert_eq!(done.code, 0);
    insta::assert_snapshot!(done.err, @"note: Codex will look for `mcp-sidecar` on the PATH, but it is not there yet; add it, or use --user");
}

#[test]
fn no_backup_is_ever_replaced() {
    let sandbox = Sandbox::with_workspace();
    let before = "model = \"o3\"\n";
    sandbox.write("work/.codex/config.toml", before);
    for arguments in [&["setup", "codex"][..], &["setup", "codex", "--undo"], &["setup", "codex"]] {
        assert_eq!(run(&sandbox, arguments).code, 0);
    }
    assert_eq!(read(&sandbox, "work/.codex/config.toml.bak"), before);
    assert!(read(&sandbox, "work/.codex/config.toml.bak.1").contains("mcp-sidecar"));
    assert_eq!(read(&sandbox, "work/.codex/config.toml.bak.2"), before);
}

#[test]
fn servers_that_claude_code_loads_itself_are_disabled_there_only_with_consent() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write(
        "work/.mcp.json",
        r#"{ "mcpServers": { "git": { "command": "git-mcp" }, "db": { "command": "db-mcp" } } }"#,
    );
    sandbox.write("work/.claude/settings.local.json", "{\n  // mine\n  \"disabledMcpjsonServers\": [\"db\"]\n}\n");
    let settings = || read(&sandbox, "work/.claude/settings.local.json");
    let plain = run(&sandbox, &["setup", "claude"]);
    assert_eq!(plain.code, 0, "{}", plain.err);
    assert!(plain.err.contains("Claude Code also loads git from ~/work/.mcp.json itself"), "{}", plain.err);
    assert!(plain.err.contains("run this again with --yes"), "{}", plain.err);
    assert!(!settings().contains("git"), "nothing is disabled without consent");
    let dry = run(&sandbox, &["setup", "claude", "--dry-run"]);
    assert!(dry.out.contains("+++ ~/work/.claude/settings.local.json"), "{}", dry.out);
    assert!(dry.err.contains("Disable them in .claude/settings.local.json? (--yes answers yes)"), "{}", dry.err);
    assert!(!settings().contains("git"));
    assert_eq!(run(&sandbox, &["setup", "claude", "--yes"]).code, 0);
    assert!(settings().contains(r#"["db", "git"]"#) && settings().contains("// mine"), "{}", settings());
    assert_eq!(run(&sandbox, &["setup", "claude", "--undo", "--yes"]).code, 0);
    assert!(!settings().contains("git"), "{}", settings());
    // Another program has no such settings: only a note.
    let copilot = run(&sandbox, &["setup", "copilot", "--user"]);
    assert!(copilot.err.contains("Copilot CLI also loads git, db from"), "{}", copilot.err);
}

#[test]
fn what_the_user_has_in_one_project_is_imported_only_into_that_project() {
    let sandbox = Sandbox::with_workspace();
    let folder = sandbox.path("work").canonicalize().unwrap();
    let servers = |name: &str| serde_json::json!({ "mcpServers": { name: { "command": name } } });
    let mut file = servers("mine");
    file["projects"] = serde_json::json!({ folder.to_str().unwrap(): servers("here"), "/elsewhere": servers("there") });
    sandbox.write("home/.claude.json", &file.to_string());
    let user = run(&sandbox, &["import", "claude"]);
    assert!(user.out.contains("  here in ~/work: it is only for the project"), "{}", user.out);
    assert!(user.out.contains("  there in /elsewhere: it is only for the project /elsewhere"), "{}", user.out);
    let config = read(&sandbox, "config/mcp.json");
    assert!(config.contains("mine") && !config.contains("here"), "{config}");
    let local: Value =
        serde_json::from_str(&run(&sandbox, &["import", "claude", "--scope", "local", "--json"]).out).unwrap();
    assert_eq!(local["imported"], serde_json::json!(["here", "mine"]));
}

#[test]
fn the_files_of_a_folder_are_imported() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/.continue/mcpServers/a.yaml", "mcpServers:\n  - name: a\n    command: a-mcp\n");
    sandbox.write("work/.continue/mcpServers/b.json", r#"{ "mcpServers": { "b": { "command": "b-mcp" } } }"#);
    sandbox.write("home/.continue/config.yaml", "name: x\nmcpServers:\n  - name: c\n    command: c-mcp\n");
    let user: Value = serde_json::from_str(&run(&sandbox, &["import", "continue", "--json"]).out).unwrap();
    assert_eq!(user["imported"], serde_json::json!(["c"]));
    assert!(user["skipped"]["a"].as_str().unwrap().starts_with("it is part of the project"), "{user}");
    let project: Value =
        serde_json::from_str(&run(&sandbox, &["import", "continue", "--scope", "project", "--json"]).out).unwrap();
    assert_eq!(project["imported"], serde_json::json!(["a", "b", "c"]));
}

#[test]
fn setup_edits_the_file_of_each_cline_program_that_is_used() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("home/.cline/data/settings/other.json", "{}");
    let paths = |run: Run| -> usize {
        let done: Value = serde_json::from_str(&run.out).unwrap();
        done["files"].as_array().unwrap().len()
    };
    assert_eq!(paths(run(&sandbox, &["setup", "cline", "--json"])), 1);
    assert!(read(&sandbox, "home/.cline/data/settings/cline_mcp_settings.json").contains("mcp-sidecar"));
    let other = Sandbox::with_workspace();
    assert_eq!(paths(run(&other, &["setup", "cline", "--json"])), 2, "if none is used yet, both");
}

#[test]
fn a_yaml_file_that_cannot_be_edited_safely_is_left_to_the_user() {
    let sandbox = Sandbox::with_workspace();
    let before = "extensions: { developer: { enabled: true } } # all on one line\n";
    sandbox.write("home/.config/goose/config.yaml", before);
    let refused = run(&sandbox, &["setup", "goose"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("change this yourself") && refused.err.contains("  mcp-sidecar:\n"),
        "{}",
        refused.err
    );
    assert_eq!(read(&sandbox, "home/.config/goose/config.yaml"), before);
}

#[test]
fn setup_never_makes_the_sidecar_start_itself() {
    let sandbox = Sandbox::with_workspace();
    for program in ["claude", "cursor", "vscode"] {
        let refused = run(&sandbox, &["setup", program, "--project"]);
        assert_eq!(refused.code, 1, "{program}");
        assert!(
            refused.err.contains("cannot be used, because mcp-sidecar itself reads servers from it"),
            "{}",
            refused.err
        );
        let user = run(&sandbox, &["setup", program]);
        assert_eq!(user.code, 0, "{program}: {}", user.err);
        assert!(user.err.contains("using your user config, which applies to all projects"), "{}", user.err);
    }
    assert_eq!(fs::read_dir(sandbox.path("work")).unwrap().count(), 0, "nothing was written to the project");
    let claude: Value = serde_json::from_str(&read(&sandbox, "home/.claude.json")).unwrap();
    assert_eq!(claude["mcpServers"]["mcp-sidecar"]["args"][0], "connect");
    let import = run(&sandbox, &["import", "claude"]);
    assert!(import.out.contains("mcp-sidecar: it is mcp-sidecar itself"), "{}", import.out);
}

#[test]
fn every_program_can_be_set_up_for_the_user() {
    let sandbox = Sandbox::with_workspace();
    for program in Dialect::ALL.into_iter().filter(|program| program.is_agent()).map(Dialect::name) {
        let done: Value = serde_json::from_str(&run(&sandbox, &["setup", program, "--user", "--json"]).out).unwrap();
        assert_eq!(done["changed"], true, "{program}");
        assert!(done["files"][0]["path"].as_str().unwrap().starts_with("~/home/"), "{program}: {done}");
        let import = run(&sandbox, &["import", program]);
        assert!(import.out.contains("mcp-sidecar: it is mcp-sidecar itself"), "{program}: {}", import.out);
        let undone = run(&sandbox, &["setup", program, "--user", "--undo"]);
        assert_eq!(undone.code, 0, "{program}: {}", undone.err);
    }
    assert_eq!(run(&sandbox, &["setup", "mcphub"]).code, 2);
}

#[test]
fn undoing_a_setup_leaves_the_file_as_it_was() {
    for (program, file, before) in [
        ("claude", "home/.claude.json", "{\n  \"theme\": \"dark\"\n}\n"),
        ("gemini", "home/.gemini/settings.json", "{\n  // mine\n  \"ui\": {},\n}\n"),
        (
            "opencode",
            "home/.config/opencode/opencode.json",
            "{ \"mcp\": { \"own\": { \"type\": \"remote\", \"url\": \"https://a.test\" } } }",
        ),
        ("zed", "home/.config/zed/settings.json", "{\n  // mine\n  \"theme\": \"One\"\n}\n"),
        ("codex", "home/.codex/config.toml", "model = \"o3\"\n"),
        ("continue", "home/.continue/config.yaml", "name: mine\nversion: 1.0.0\n"),
    ] {
        let sandbox = Sandbox::with_workspace();
        sandbox.write(file, before);
        assert_eq!(run(&sandbox, &["setup", program, "--user"]).code, 0, "{program}");
        assert!(read(&sandbox, file).contains("mcp-sidecar"), "{program}");
        assert_eq!(run(&sandbox, &["setup", program, "--user", "--undo"]).code, 0, "{program}");
        assert_eq!(read(&sandbox, file), before, "{program}");
    }
}

#[cfg(unix)]
#[test]
fn a_backup_is_never_written_through_a_link() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/.zed/settings.json", "{ \"theme\": \"One\" }\n");
    sandbox.write("precious", "precious\n");
    std::os::unix::fs::symlink(sandbox.path("precious"), sandbox.path("work/.zed/settings.json.bak")).unwrap();
    assert_eq!(run(&sandbox, &["setup", "zed"]).code, 0);
    assert_eq!(read(&sandbox, "precious"), "precious\n");
    assert!(read(&sandbox, "work/.zed/settings.json.bak.1").contains("One"));
}

#[test]
fn a_dry_run_of_setup_shows_no_token_of_another_server() {
    let files = [
        // On one line, in arguments, in a URL, before the comma that is added.
        r#"{"mcpServers":{"a":{"command":"a","env":{"A_TOKEN":"s3cr3t-one"},"args":["--token","s3cr3t-two"]}}}"#,
        "{\n  \"mcpServers\": {\n    \"a\": { \"url\": \"https://me:s3cr3t-one@host/\", \"headers\": { \"X\": \"s3cr3t-two\" } }\n  }\n}\n",
        "{\n  \"mcpServers\": { \"a\": { \"command\": \"a\", \"args\": [\"postgres://u:s3cr3t-one@h/db\"] } }\n}\n",
    ];
    for (index, file) in files.iter().enumerate() {
        for undo in [false, true] {
            let sandbox = Sandbox::with_workspace();
            sandbox.write("home/.cursor/mcp.json", file);
            if undo {
                assert_eq!(run(&sandbox, &["setup", "cursor", "--user"]).code, 0);
            }
            let arguments = ["setup", "cursor", "--user", "--dry-run", "--undo"];
            let dry = run(&sandbox, &arguments[..if undo { 5 } else { 4 }]);
            assert_eq!(dry.code, 0, "{}", dry.err);
            assert!(dry.out.contains("mcp-sidecar"), "{index}: {}", dry.out);
            assert!(!dry.out.contains("s3cr3t"), "{index}: {}", dry.out);
        }
    }
}
