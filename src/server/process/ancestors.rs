//! Which programs a process was started by, as the kernel knows it. Empty outside of Linux.

use std::path::PathBuf;

use super::proc_table;

/// The programs of agents that run commands for a model.
const AGENTS: [&str; 18] = [
    "aider",
    "amp",
    "auggie",
    "claude",
    "cline",
    "cn",
    "codex",
    "copilot",
    "crush",
    "cursor-agent",
    "droid",
    "gemini",
    "goose",
    "kiro-cli",
    "openhands",
    "opencode",
    "qwen",
    "q-cli",
];

/// The npm packages of agents, whose programs are called like something else.
const PACKAGES: [&str; 9] = [
    "@anthropic-ai/claude-code",
    "@augmentcode/auggie",
    "@continuedev/cli",
    "@github/copilot",
    "@google/gemini-cli",
    "@openai/codex",
    "@qwen-code/qwen-code",
    "@sourcegraph/amp",
    "opencode-ai",
];

/// Programs that run the script in their arguments.
const INTERPRETERS: [&str; 12] =
    ["bash", "bun", "deno", "dash", "env", "node", "pypy", "python", "ruby", "sh", "tsx", "zsh"];

/// The ancestors of a process, nearest first. All of them: a limit could be exceeded on purpose.
pub fn ancestors(pid: u32) -> impl Iterator<Item = u32> {
    let parent = |pid: &u32| proc_table::process(*pid).map(|entry| entry.parent).filter(|parent| *parent > 1);
    std::iter::successors(Some(pid), parent).skip(1)
}

/// Whether this process is running, as far as the system tells. What is known about one that has ended means nothing.
pub fn is_alive(pid: u32) -> bool {
    !cfg!(target_os = "linux") || proc_table::process(pid).is_some()
}

/// The program that this process is or was started by, and that must not decide for the user: an agent, or a server of
/// mcp-sidecar. The answer is a tripwire: a program that hides its ancestors is not found.
pub fn started_by(pid: u32) -> Option<String> {
    if !is_alive(pid) {
        return Some("a program that has ended".to_owned());
    }
    let root = test_root();
    let own = Some(pid).filter(|pid| !is_own_program(*pid));
    own.into_iter().chain(ancestors(pid)).take_while(|ancestor| Some(*ancestor) != root).find_map(|ancestor| {
        let command_line = proc_table::command_line(ancestor);
        let name = command_line.first().map(|word| file_name(word));
        if name == Some("mcp-sidecar") && command_line.get(1).is_some_and(|word| word == "engine") {
            return Some("a server of mcp-sidecar".to_owned());
        }
        Some(format!("the agent `{}`", agent_of(&command_line)?))
    })
}

/// The agent that a command line runs: the program itself, or the script of an interpreter.
fn agent_of(command_line: &[String]) -> Option<&'static str> {
    let (program, words) = command_line.split_first()?;
    let is_interpreter = INTERPRETERS.iter().any(|name| without_version(file_name(program)) == *name);
    // Some programs run a script without being known as an interpreter.
    let most = if is_interpreter { words.len() } else { 1 };
    let is_script = |word: &&String| word.contains('/') || SCRIPTS.iter().any(|ending| word.ends_with(ending));
    let script = words.iter().take(most).position(|word| is_script(&word)).map_or(most, |position| position + 1);
    std::iter::once(program).chain(words.iter().take(script)).find_map(|word| {
        let package = word.rsplit_once("node_modules/").map(|(_, package)| package);
        let is_package = |name: &&str| package.is_some_and(|package| package.starts_with(&format!("{name}/")));
        let name = AGENTS.iter().find(|agent| **agent == file_name(word)).copied();
        name.or_else(|| PACKAGES.iter().find(|name| is_package(name)).copied())
    })
}

/// Where to stop looking, so that the tests also pass in the terminal of an agent. Only in debug builds.
fn test_root() -> Option<u32> {
    if cfg!(debug_assertions) { std::env::var("MCP_SIDECAR_TEST_ROOT").ok()?.parse().ok() } else { None }
}

/// The file name of a process's program.
pub fn program(pid: u32) -> Option<String> {
    proc_table::command_line(pid).first().map(|word| file_name(word).to_owned()).filter(|name| !name.is_empty())
}

/// Whether a process runs a program with our name: an editor's extension and the shell may have different copies of it.
/// True if the system does not tell.
pub fn is_own_program(pid: u32) -> bool {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = |path: PathBuf| path.file_name().map(|name| file_name(&name.to_string_lossy()).to_owned());
    program("self").is_none_or(|own| program(&pid.to_string()).and_then(name) == name(own))
}

/// `python3.12` is `python`.
fn without_version(name: &str) -> &str {
    name.trim_end_matches(|c: char| c == '.' || c.is_ascii_digit())
}

/// The endings of scripts.
const SCRIPTS: [&str; 4] = [".js", ".mjs", ".cjs", ".py"];

fn file_name(word: &str) -> &str {
    let name = word.rsplit('/').next().unwrap_or(word);
    // Scripts keep their ending, and some programs write more than their name.
    let name = name.split(' ').next().unwrap_or(name);
    SCRIPTS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_however_it_is_started() {
        let agent = |line: &str| agent_of(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for (line, found) in [
            ("/home/you/.local/bin/claude -p hello", Some("claude")),
            ("python3 /home/you/bin/claude", Some("claude")),
            ("python3 -X dev /home/you/bin/claude", Some("claude")),
            ("python3.12 -m aider", Some("aider")),
            (
                "node --no-warnings /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js",
                Some("@anthropic-ai/claude-code"),
            ),
            ("sh /home/you/claude mcp-sidecar trust", Some("claude")),
            ("sh -c claude", Some("claude")),
            ("node run.js --agent claude", None),
            ("python3 /home/you/compare.py claude codex", None),
            ("nvim notes.md claude", None),
            ("tmux new-session -s claude", None),
            ("mcp-sidecar setup claude", None),
            ("", None),
        ] {
            assert_eq!(agent(line), found, "{line}");
        }
    }

    #[test]
    fn a_process_that_has_ended_cannot_decide() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(started_by(pid).is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn the_name_of_a_program_has_no_folder_and_no_ending() {
        for (word, name) in [
            ("/usr/bin/node", "node"),
            ("/home/you/.npm/bin/claude", "claude"),
            ("codex.js", "codex"),
            ("gemini --yolo", "gemini"),
            ("", ""),
        ] {
            assert_eq!(file_name(word), name, "{word}");
        }
    }
}
