//! The command line: output and exit codes of the built binary. What `--json` prints is read as plain JSON here, without
//! the types of the protocol: scripts depend on its exact keys.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

#[cfg(unix)]
mod agents;
#[cfg(unix)]
mod approvals;
mod calls;
mod check;
mod exchange;
#[cfg(unix)]
mod guide;
#[cfg(unix)]
mod hook;
mod init;
#[cfg(unix)]
mod lifecycle;
mod lsp;
mod manage;
#[cfg(target_os = "linux")]
#[path = "../support/servers.rs"]
mod public;
mod registry;
#[cfg(target_os = "linux")]
mod server_sandbox;
mod servers;
mod trust;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The entry of a server that is the built-in demo.
pub const DEMO: &str =
    concat!(r#"{ "command": ""#, env!("CARGO_BIN_EXE_mcp-sidecar"), r#"", "args": ["demo-server"] }"#);

/// A temporary folder with a workspace and our own folders.
pub struct Sandbox {
    folder: tempfile::TempDir,
}

/// The result of a run. Paths of the temporary folder are written as `~`.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Sandbox {
    /// With an empty workspace, in which commands run.
    pub fn with_workspace() -> Self {
        let sandbox = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(sandbox.path("work")).unwrap();
        sandbox
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
        self.start(Command::new(env!("CARGO_BIN_EXE_mcp-sidecar")), arguments)
    }

    /// Like [`Self::command`], started by an agent.
    #[cfg(unix)]
    pub fn by_agent(&self, arguments: &[&str]) -> Run {
        let agent = self.path("claude");
        if !agent.exists() {
            self.write("claude", "\"$@\"\nexit $?\n");
        }
        let mut command = Command::new("sh");
        command.arg(agent).arg(env!("CARGO_BIN_EXE_mcp-sidecar"));
        self.result(self.start(command, arguments).output().unwrap())
    }

    fn start(&self, mut command: Command, arguments: &[&str]) -> Command {
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
        self.result(self.command(arguments).output().unwrap())
    }

    /// Runs a command in a terminal, with these answers to these prompts. `out` contains everything the screen showed.
    #[cfg(unix)]
    pub fn at_terminal(&self, answers: &[(&str, &str)], arguments: &[&str]) -> Run {
        self.in_terminal(answers, &self.command(arguments))
    }

    #[cfg(unix)]
    pub fn in_terminal(&self, answers: &[(&str, &str)], ours: &Command) -> Run {
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/terminal.py"));
        command.args(answers.iter().flat_map(|(prompt, answer)| [prompt, answer])).arg("--");
        command.arg(ours.get_program()).args(ours.get_args()).current_dir(self.path("work"));
        let variables = ours.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(variables).env("NO_COLOR", "1").stdin(Stdio::null());
        self.result(command.output().unwrap())
    }

    pub fn result(&self, output: Output) -> Run {
        let root = self.path("").display().to_string();
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(&root, "~/").replace(root.trim_end_matches('/'), "~")
        };
        Run { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }
}

#[test]
fn man_pages_cover_every_visible_subcommand() {
    let sandbox = Sandbox::with_workspace();
    assert_eq!(sandbox.run(&["man", "pages/man1"]).code, 0);
    let page = |name: &str| std::fs::read_to_string(sandbox.path(&format!("work/pages/man1/{name}.1")));
    assert!(page("mcp-sidecar").unwrap().contains("mcp\\-sidecar\\-check(1)"));
    assert!(page("mcp-sidecar-check").unwrap().contains("sarif"));
    assert!(page("mcp-sidecar-engine").is_err(), "a hidden subcommand has a page");
}

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let sandbox = Sandbox::with_workspace();
    let wrong = sandbox.run(&["chekc"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("unrecognized subcommand 'chekc'"), "{}", wrong.err);
    assert_eq!(sandbox.run(&["check", "--nonsense"]).code, 2);
    for good in [&["--help"][..], &["check", "--help"], &["--version"]] {
        let run = sandbox.run(good);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{good:?}");
    }
    assert_eq!(sandbox.run(&["--version"]).out, format!("mcp-sidecar {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn short_commands_leave_no_files_behind() {
    let sandbox = Sandbox::with_workspace();
    for command in [&["config"][..], &["check"], &["completions", "bash"], &["--help"]] {
        assert_eq!(sandbox.run(command).code, 0, "{command:?}");
    }
    let left: Vec<_> = std::fs::read_dir(sandbox.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["work"]);
}

#[test]
fn the_printed_default_settings_are_valid() {
    let sandbox = Sandbox::with_workspace();
    let default = sandbox.run(&["config", "--default"]);
    assert_eq!(default.code, 0);
    sandbox.write("config/config.toml", &default.out);
    let check = sandbox.run(&["check"]);
    assert_eq!((check.code, check.out.as_str()), (0, "~/config/config.toml: ok\n"));
    let shown = sandbox.run(&["config"]);
    assert!(shown.out.ends_with(&default.out), "{}", shown.out);
}

#[test]
fn the_current_settings_are_shown_with_the_paths_of_all_files() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/config.toml", "audit = \"strict\"\n[servers]\ntimeout = 5\nspeed = 9\n");
    sandbox.write("work/mcp.json", "{}");
    let shown = sandbox.run(&["config"]);
    assert_eq!(shown.code, 0);
    assert_eq!(shown.err, "warning: ~/config/config.toml: unknown setting `servers.speed`\n");
    assert!(shown.out.contains("audit = \"strict\"\n") && shown.out.contains("timeout = \"5s\"\n"));
    let paths = shown.out.split("\n\n").next().unwrap();
    insta::assert_snapshot!(paths, @r"
    # Paths of all files. Config files are listed by priority, highest first.
    #   managed config  ~/managed.json (not found)
    #   local config    ~/work/mcp.local.json (not found)
    #   project config  ~/work/mcp.json
    #   project config  ~/work/.mcp.json (not found)
    #   project config  ~/work/.vscode/mcp.json (not found)
    #   project config  ~/work/.cursor/mcp.json (not found)
    #   user config     ~/config/mcp.json (not found)
    #   settings        ~/config/config.toml
    #   state           ~/state/state.db (not found)
    #   logs            ~/state/logs (not found)
    #   sockets         ~/run (not found)
    ");

    let shown: serde_json::Value = serde_json::from_str(&sandbox.run(&["config", "--json"]).out).unwrap();
    assert_eq!(shown["settings"]["servers"]["timeout"], "5s");
    assert_eq!(shown["settings"]["audit"], "strict");
}

#[test]
fn the_end_of_the_log_is_shown_without_control_characters() {
    let sandbox = Sandbox::with_workspace();
    let none = sandbox.run(&["log"]);
    assert_eq!(none.code, 1);
    assert!(none.err.starts_with("error: no log file in ~/state/logs"), "{}", none.err);

    sandbox.write("state/logs/mcp-sidecar.2026-01-01.log", "old\n");
    sandbox.write("state/logs/mcp-sidecar.2026-01-02.log", "one\ntwo\n\u{1b}[31mthree\n");
    sandbox.write("state/logs/notes.txt", "not ours\n");
    assert_eq!(sandbox.run(&["log", "--path"]).out, "~/state/logs/mcp-sidecar.2026-01-02.log\n");
    assert_eq!(
        sandbox.run(&["log", "-n", "2"]).out,
        "==> ~/state/logs/mcp-sidecar.2026-01-02.log <==\ntwo\n⟨U+001B⟩[31mthree\n"
    );
}

#[test]
fn the_schema_is_a_schema() {
    let run = Sandbox::with_workspace().run(&["schema"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let schema: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert!(schema["properties"]["servers"].is_object() && schema["properties"]["policy"].is_object());
}

#[test]
fn a_template_is_a_valid_config_file() {
    let sandbox = Sandbox::with_workspace();
    let list = sandbox.run(&["templates", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    let ids: Vec<&str> =
        answer["templates"].as_array().unwrap().iter().map(|each| each["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"filesystem"), "{ids:?}");
    let table = sandbox.run(&["templates"]).out;
    assert_eq!(table.lines().count(), ids.len() + 1);
    sandbox.write("work/mcp.json", &sandbox.run(&["templates", "filesystem"]).out);
    let check = sandbox.run(&["check", "work/mcp.json"]);
    assert!(!check.out.contains("unknown-key"), "{}", check.out);
    assert_eq!(sandbox.run(&["templates", "none"]).code, 1);
}

#[test]
fn completions_are_printed_for_every_shell() {
    let sandbox = Sandbox::with_workspace();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = sandbox.run(&["completions", shell]);
        assert_eq!(run.code, 0, "{shell}");
        assert!(run.out.contains("mcp-sidecar") && !run.out.contains("guardian"), "{shell}");
    }
    assert_eq!(sandbox.run(&["completions", "cmd"]).code, 2);
}

#[cfg(unix)]
#[test]
fn a_closed_stdout_is_not_a_failure() {
    let sandbox = Sandbox::with_workspace();
    let mut child =
        sandbox.command(&["completions", "zsh"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let run = sandbox.result(child.wait_with_output().unwrap());
    assert_eq!((run.code, run.err.as_str()), (0, ""));
}

#[test]
fn an_invalid_path_is_reported_with_its_variable() {
    let sandbox = Sandbox::with_workspace();
    let output = sandbox.command(&["config"]).env("MCP_SIDECAR_STATE_DIR", Path::new("here")).output().unwrap();
    let run = sandbox.result(output);
    assert_eq!(run.code, 1);
    assert_eq!(run.err, "error: MCP_SIDECAR_STATE_DIR must be an absolute path, not `here`\n");
}
