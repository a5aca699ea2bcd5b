//! The commands that one list of words stands for: itself, and what it makes another program run.

use super::ShellCommand;

/// Programs that run the rest of their words as a command.
const WRAPPERS: &[&str] = &[
    "sudo",
    "doas",
    "env",
    "command",
    "builtin",
    "exec",
    "nohup",
    "time",
    "nice",
    "ionice",
    "timeout",
    "xargs",
    "stdbuf",
    "setsid",
    "busybox",
    "watch",
    "find",
    "fd",
    "parallel",
    "unshare",
    "chroot",
    "flock",
    "script",
    "ssh",
    "then",
    "npx",
    "noglob",
    "nocorrect",
    "repeat",
    "cmd",
    "pwsh",
    "powershell",
];
/// Programs that run a word as a text of the shell.
const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "ash",
    "su",
    "eval",
    "trap",
    "pwsh",
    "powershell",
    "cmd",
    "iex",
    "invoke-expression",
    "watch",
    "parallel",
    "flock",
    "script",
    "ssh",
    "npx",
];
/// Words of the shell before which no command ends.
pub const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
    "function", "coproc", "time", "!", "{", "}", "[[", "]]",
];

pub fn add(found: &mut ShellCommand, words: Vec<String>, depth: usize) {
    let mut rest = words.as_slice();
    let (mut is_timed, mut is_named) = (false, false);
    while let [first, others @ ..] = rest {
        match first.as_str() {
            keyword if KEYWORDS.contains(&keyword) => {
                found.not_plain.insert("a keyword of the shell");
                is_timed |= keyword == "time";
                is_named |= matches!(keyword, "function" | "coproc");
            }
            word if is_assignment(word) => drop(found.not_plain.insert("an assignment")),
            // `time -p command`.
            word if is_timed && word.starts_with('-') => {}
            _ => break,
        }
        rest = others;
    }
    let Some((first, others)) = rest.split_first() else { return };
    // Some shells replace `=name` by the path of the program.
    if first.is_empty() || rest.iter().any(|word| word.starts_with('=')) {
        found.not_plain.insert("a character that shells expand");
    }
    found.add(rest);
    let name = program_name(first);
    let name = name.as_str();
    if name != first {
        found.add(&with_first(name, others));
    }
    if WRAPPERS.contains(&name) || is_named {
        for start in 0..others.len() {
            let inner = others.get(start..).unwrap_or_default();
            // What follows a wrapper may be another one, or a shell.
            if let Some((first, _)) = inner.split_first()
                && !first.starts_with('-')
            {
                nested(found, inner, depth);
            }
        }
    }
    if SHELLS.contains(&name) {
        for text in others {
            found.scan(text, depth + 1);
        }
        if name == "eval" {
            found.scan(&others.join(" "), depth + 1);
        }
    }
}

fn nested(found: &mut ShellCommand, words: &[String], depth: usize) {
    if depth >= super::MAX_DEPTH || found.commands.len() >= super::MAX_COMMANDS {
        found.not_plain.insert(super::TOO_MUCH);
        return;
    }
    add(found, words.to_vec(), depth + 1);
}

fn with_first(first: &str, others: &[String]) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(others.iter().cloned()).collect()
}

/// The name of a program without its folder, as a system finds it that ignores case.
fn program_name(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// `NAME=value`, `NAME+=value` or `NAME[1]=value`.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.trim_end_matches('+');
    let name = name.strip_suffix(']').and_then(|name| name.split_once('[')).map_or(name, |(name, _)| name);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
