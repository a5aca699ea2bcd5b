//! Import, export and setup with real files.

use std::fs;

use serde_json::Value;

use super::{Place, Run};

/// Runs a command with a home folder inside the temporary folder.
fn run(place: &Place, arguments: &[&str]) -> Run {
    let mut command = place.command(arguments);
    command.env("HOME", place.path("home")).env_remove("XDG_CONFIG_HOME").env_remove("CODEX_HOME");
    place.result(command.output().unwrap())
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap()
}

#[test]
fn servers_of_the_user_are_imported_once() {
    let place = Place::with_workspace();
    place.write(
        "home/.cursor/mcp.json",
        r#"{ "mcpServers": { "git": { "command": "git-mcp", "env": { "TOKEN": "ghp_0123456789abcdefghij" } } } }"#,
    );
    place.write("config/mcp.json", "{\n  // mine\n  \"servers\": {}\n}\n");
    let dry = run(&place, &["import", "cursor", "--dry-run"]);
    assert_eq!((dry.code, dry.err.as_str()), (0, ""));
    insta::assert_snapshot!(dry.out, @r"
    would import into ~/config/mcp.json:
      git
          the secret in `env.TOKEN` is not copied: set the environment variable `TOKEN` instead
    ");
    assert!(!read(&place, "config/mcp.json").contains("git"));

    assert_eq!(run(&place, &["import", "cursor"]).code, 0);
    insta::assert_snapshot!(read(&place, "config/mcp.json"), @r#"
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
    let again: Value = serde_json::from_str(&run(&place, &["import", "cursor", "--json"]).out).unwrap();
    assert_eq!(again["imported"], Value::Array(Vec::new()));
    assert!(again["skipped"]["git"].as_str().unwrap().contains("already"));
}

#[test]
fn servers_of_a_project_are_imported_for_the_user_only_if_the_file_is_named() {
    let place = Place::with_workspace();
    place.write("work/.codex/config.toml", "[mcp_servers.a]\ncommand = \"a-mcp\"\n");
    let user = run(&place, &["import", "codex"]);
    assert_eq!(user.code, 0);
    assert!(user.out.starts_with("imported nothing\nskipped:\n  a: it is part of the project"), "{}", user.out);
    assert!(!place.path("config/mcp.json").exists());
    assert_eq!(run(&place, &["import", "codex", "--path", ".codex/config.toml"]).code, 0);
    assert!(read(&place, "config/mcp.json").contains("a-mcp"));
    assert_eq!(run(&place, &["import", "codex", "--scope", "project"]).code, 0);
    assert!(read(&place, "work/mcp.json").contains("a-mcp"));
}

#[test]
fn an_import_without_any_file_reports_the_paths_it_checked() {
    let place = Place::with_workspace();
    let run_ = run(&place, &["import", "zed"]);
    assert_eq!(run_.code, 1);
    assert!(run_.err.contains("no config file of Zed found at ~/work/.zed/settings.json, ~/home/"), "{}", run_.err);
    assert_eq!(run(&place, &["import", "emacs"]).code, 2);
    assert_eq!(run(&place, &["import", "zed", "--scope", "managed"]).code, 2);
    let named = run(&place, &["import", "zed", "--path", "nowhere.json"]);
    assert_eq!((named.code, named.err.as_str()), (1, "error: ~/work/nowhere.json does not exist\n"));
}

#[test]
fn an_export_is_printed_or_added_to_a_file_but_never_to_one_of_ours() {
    let place = Place::with_workspace();
    place.write(
        "work/mcp.json",
        r#"{ "servers": { "a": { "command": "a-mcp", "tools": { "rm": "deny" } }, "b": { "command": "b-mcp" } } }"#,
    );
    let printed = run(&place, &["export", "claude", "a"]);
    assert_eq!(printed.err, "note: a: not exported (not supported by Claude Code): `tools`\n");
    let text: Value = serde_json::from_str(&printed.out).unwrap();
    assert_eq!(text["mcpServers"].as_object().unwrap().len(), 1);
    place.write("work/other.toml", "model = \"o3\"\n");
    assert_eq!(run(&place, &["export", "codex", "--path", "other.toml"]).code, 0);
    let written = read(&place, "work/other.toml");
    assert!(written.starts_with("model = \"o3\"\n") && written.contains("[mcp_servers.b]"), "{written}");
    let own = run(&place, &["export", "vscode", "--path", "mcp.json"]);
    assert_eq!(own.code, 1);
    assert!(own.err.contains("mcp-sidecar reads this file"), "{}", own.err);
    assert_eq!(run(&place, &["export", "vscode", "nobody"]).code, 1);
}

#[test]
fn setup_adds_an_entry_with_a_backup_and_can_be_undone() {
    let place = Place::with_workspace();
    let before = "# mine\nmodel = \"o3\"\n";
    place.write("work/.codex/config.toml", before);
    let dry = run(&place, &["setup", "codex", "--dry-run"]);
    insta::assert_snapshot!(dry.out, @r#"
    --- ~/work/.codex/config.toml
    +++ ~/work/.codex/config.toml
    +
    +[mcp_servers.mcp-sidecar]
    +command = "mcp-sidecar"
    +args = ["connect"]
    "#);
    assert_eq!(read(&place, "work/.codex/config.toml"), before);

    let done = run(&place, &["setup", "codex"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(read(&place, "work/.codex/config.toml").contains("mcp-sidecar"));
    assert_eq!(read(&place, "work/.codex/config.toml.bak"), before);
    assert!(run(&place, &["setup", "codex"]).out.contains("already uses mcp-sidecar"));
    assert_eq!(run(&place, &["setup", "codex", "--undo"]).code, 0);
    assert_eq!(read(&place, "work/.codex/config.toml"), before);
    assert!(run(&place, &["setup", "codex", "--undo"]).out.contains("nothing to undo"));
}

#[test]
fn setup_never_makes_the_sidecar_start_itself() {
    let place = Place::with_workspace();
    for program in ["claude", "cursor", "vscode"] {
        let refused = run(&place, &["setup", program, "--project"]);
        assert_eq!(refused.code, 1, "{program}");
        assert!(refused.err.contains("would start itself as a server"), "{}", refused.err);
        let user = run(&place, &["setup", program]);
        assert_eq!(user.code, 0, "{program}: {}", user.err);
        assert!(user.err.contains("using your user config instead"), "{}", user.err);
    }
    assert_eq!(fs::read_dir(place.path("work")).unwrap().count(), 0, "nothing was written to the project");
    let claude: Value = serde_json::from_str(&read(&place, "home/.claude.json")).unwrap();
    assert_eq!(claude["mcpServers"]["mcp-sidecar"]["args"][0], "connect");
    let import = run(&place, &["import", "claude"]);
    assert!(import.out.contains("mcp-sidecar: it is mcp-sidecar itself"), "{}", import.out);
}

#[test]
fn every_program_can_be_set_up_for_the_user() {
    let place = Place::with_workspace();
    for program in ["claude", "claude-desktop", "codex", "cursor", "vscode", "windsurf", "zed", "cline"] {
        let done: Value = serde_json::from_str(&run(&place, &["setup", program, "--user", "--json"]).out).unwrap();
        assert_eq!(done["changed"], true, "{program}");
        assert!(done["path"].as_str().unwrap().starts_with("~/home/"), "{program}: {done}");
        let undone = run(&place, &["setup", program, "--user", "--undo"]);
        assert_eq!(undone.code, 0, "{program}: {}", undone.err);
    }
    assert_eq!(run(&place, &["setup", "mcphub"]).code, 2);
}

#[cfg(unix)]
#[test]
fn a_backup_is_never_written_through_a_link() {
    let place = Place::with_workspace();
    place.write("work/.zed/settings.json", "{ \"theme\": \"One\" }\n");
    place.write("precious", "precious\n");
    std::os::unix::fs::symlink(place.path("precious"), place.path("work/.zed/settings.json.bak")).unwrap();
    assert_eq!(run(&place, &["setup", "zed"]).code, 0);
    assert_eq!(read(&place, "precious"), "precious\n");
    assert!(read(&place, "work/.zed/settings.json.bak").contains("One"));
}
