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

pub fn add(found: &mut ShellCommand, words: &[String], depth: usize) {
    let Some(others) = add_one(found, words, depth) else { return };
    if depth >= super::MAX_DEPTH {
        found.not_plain.insert(super::TOO_MUCH);
        return;
    }
    // Each word may begin the command that it runs. If that one runs another, its words are among them, too.
    for (start, first) in others.iter().enumerate() {
        let inner = others.get(start..).unwrap_or_default();
        if found.may_read(inner.len()) && !first.starts_with('-') {
            add_one(found, inner, depth + 1);
        }
    }
}

/// Adds one command, and what it makes a shell run. Returns the words that may be other commands.
fn add_one<'w>(found: &mut ShellCommand, words: &'w [String], depth: usize) -> Option<&'w [String]> {
    let mut rest = words;
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
    let (first, others) = rest.split_first()?;
    // Some shells replace `=name` by the path of the program.
    if first.is_empty() || rest.iter().any(|word| word.starts_with('=')) {
        found.not_plain.insert("a character that shells expand");
    }
    found.commands.insert(rest.join(" "));
    let name = program_name(first);
    let name = name.as_str();
    if name != first {
        found.commands.insert(with_first(name, others).join(" "));
    }
    if SHELLS.contains(&name) {
        for text in others {
            found.scan(text, depth + 1);
        }
        if name == "eval" {
            found.scan(&others.join(" "), depth + 1);
        }
    }
    // A variable can be such a program, or nothing: `$SUDO rm x`. The index of an assignment can have blanks.
    let is_index = first.split_once('[').is_some_and(|(name, _)| is_name(name));
    (WRAPPERS.contains(&name) || is_named || is_index || first.starts_with('$')).then_some(others)
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
    is_name(name)
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
