//! The command line as a person or a script meets it: the built binary, its output and its exit code.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

mod calls;
mod check;
mod exchange;
mod lsp;
mod manage;
mod servers;
mod trust;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The entry of a server that is the built-in demo.
pub const DEMO: &str =
    concat!(r#"{ "command": ""#, env!("CARGO_BIN_EXE_mcp-sidecar"), r#"", "args": ["demo-server"] }"#);

/// A machine of its own: a workspace, and our folders beside it.
pub struct Place {
    folder: tempfile::TempDir,
}

/// What a run came to. Paths of the temporary folder are written as `~`.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Place {
    /// With an empty workspace, which commands run in.
    pub fn with_workspace() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path("work")).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("MCP_SIDECAR_CONFIG_DIR", self.path("config"))
            .env("MCP_SIDECAR_STATE_DIR", self.path("state"))
            .env("MCP_SIDECAR_RUNTIME_DIR", self.path("run"))
            .env("MCP_SIDECAR_MANAGED_CONFIG", self.path("managed.json"))
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Run {
        self.tell(self.command(arguments).output().unwrap())
    }

    /// Runs it in a terminal, with these answers after these prompts. All that the screen showed is in `out`.
    #[cfg(unix)]
    pub fn at_terminal(&self, answers: &[(&str, &str)], arguments: &[&str]) -> Run {
        let ours = self.command(arguments);
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/terminal.py"));
        command.args(answers.iter().flat_map(|(prompt, answer)| [prompt, answer])).arg("--");
        command.arg(ours.get_program()).args(ours.get_args()).current_dir(self.path("work"));
        let variables = ours.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(variables).env("NO_COLOR", "1").stdin(Stdio::null());
        self.tell(command.output().unwrap())
    }

    fn tell(&self, output: Output) -> Run {
        let root = self.path("").display().to_string();
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(&root, "~/").replace(root.trim_end_matches('/'), "~")
        };
        Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let place = Place::with_workspace();
    let wrong = place.run(&["chekc"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("unrecognized subcommand 'chekc'"), "{}", wrong.err);
    assert_eq!(place.run(&["check", "--nonsense"]).code, 2);
    for good in [&["--help"][..], &["check", "--help"], &["--version"]] {
        let run = place.run(good);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{good:?}");
    }
    assert_eq!(place.run(&["--version"]).out, format!("mcp-sidecar {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn short_commands_leave_nothing_behind() {
    let place = Place::with_workspace();
    for command in [&["config"][..], &["check"], &["completions", "bash"], &["--help"]] {
        assert_eq!(place.run(command).code, 0, "{command:?}");
    }
    let left: Vec<_> = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["work"]);
}

#[test]
fn the_default_settings_can_be_saved_and_are_in_force_then() {
    let place = Place::with_workspace();
    let default = place.run(&["config", "--default"]);
    assert_eq!(default.code, 0);
    place.write("config/config.toml", &default.out);
    let check = place.run(&["check"]);
    assert_eq!((check.code, check.out.as_str()), (0, "~/config/config.toml: ok\n"));
    let shown = place.run(&["config"]);
    assert!(shown.out.ends_with(&default.out), "{}", shown.out);
}

#[test]
fn the_settings_in_force_are_shown_with_the_places_of_all_files() {
    let place = Place::with_workspace();
    place.write("config/config.toml", "audit = \"strict\"\n[servers]\ntimeout = 5\nspeed = 9\n");
    place.write("work/mcp.json", "{}");
    let shown = place.run(&["config"]);
    assert_eq!(shown.code, 0);
    assert_eq!(shown.err, "warning: ~/config/config.toml: unknown setting `servers.speed`\n");
    assert!(shown.out.contains("audit = \"strict\"\n") && shown.out.contains("timeout = \"5s\"\n"));
    let places = shown.out.split("\n\n").next().unwrap();
    insta::assert_snapshot!(places, @r"
    # Where everything is, strongest config first.
    #   managed config  ~/managed.json (not there)
    #   local config    ~/work/mcp.local.json (not there)
    #   project config  ~/work/mcp.json
    #   project config  ~/work/.mcp.json (not there)
    #   project config  ~/work/.vscode/mcp.json (not there)
    #   project config  ~/work/.cursor/mcp.json (not there)
    #   user config     ~/config/mcp.json (not there)
    #   settings        ~/config/config.toml
    #   state           ~/state/state.db (not there)
    #   logs            ~/state/logs (not there)
    #   sockets         ~/run (not there)
    ");

    let shown: serde_json::Value = serde_json::from_str(&place.run(&["config", "--json"]).out).unwrap();
    assert_eq!(shown["settings"]["servers"]["timeout"], "5s");
    assert_eq!(shown["settings"]["audit"], "strict");
}

#[test]
fn the_log_is_shown_from_its_end_and_made_safe() {
    let place = Place::with_workspace();
    let none = place.run(&["log"]);
    assert_eq!(none.code, 1);
    assert!(none.err.starts_with("error: no log yet in ~/state/logs"), "{}", none.err);

    place.write("state/logs/mcp-sidecar.2026-01-01.log", "old\n");
    place.write("state/logs/mcp-sidecar.2026-01-02.log", "one\ntwo\n\u{1b}[31mthree\n");
    place.write("state/logs/notes.txt", "not ours\n");
    assert_eq!(place.run(&["log", "--path"]).out, "~/state/logs/mcp-sidecar.2026-01-02.log\n");
    assert_eq!(place.run(&["log", "-n", "2"]).out, "==> ~/state/logs/mcp-sidecar.2026-01-02.log <==\ntwo\nthree\n");
}

#[test]
fn the_schema_is_a_schema() {
    let run = Place::with_workspace().run(&["schema"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let schema: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert!(schema["properties"]["servers"].is_object() && schema["properties"]["policy"].is_object());
}

#[test]
fn a_template_can_be_written_into_a_file_as_it_is() {
    let place = Place::with_workspace();
    let list = place.run(&["templates", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    let ids: Vec<&str> =
        answer["templates"].as_array().unwrap().iter().map(|each| each["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"filesystem"), "{ids:?}");
    let table = place.run(&["templates"]).out;
    assert_eq!(table.lines().count(), ids.len() + 1);
    place.write("work/mcp.json", &place.run(&["templates", "filesystem"]).out);
    let check = place.run(&["check", "work/mcp.json"]);
    assert!(!check.out.contains("unknown-key"), "{}", check.out);
    assert_eq!(place.run(&["templates", "none"]).code, 1);
}

#[test]
fn every_shell_gets_its_completions() {
    let place = Place::with_workspace();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = place.run(&["completions", shell]);
        assert_eq!(run.code, 0, "{shell}");
        assert!(run.out.contains("mcp-sidecar") && !run.out.contains("guardian"), "{shell}");
    }
    assert_eq!(place.run(&["completions", "cmd"]).code, 2);
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let place = Place::with_workspace();
    let mut child =
        place.command(&["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let run = place.tell(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn a_place_that_makes_no_sense_is_told_by_its_variable() {
    let place = Place::with_workspace();
    let output = place.command(&["config"]).env("MCP_SIDECAR_STATE_DIR", Path::new("here")).output().unwrap();
    let run = place.tell(output);
    assert_eq!(run.code, 1);
    assert_eq!(run.err, "error: MCP_SIDECAR_STATE_DIR must be an absolute path, not `here`\n");
}
