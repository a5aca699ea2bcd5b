//! Reads the text of a shell command, as far as a rule needs it: whether it is one plain command, and which commands are
//! in it.
//!
//! A command is plain if every shell runs exactly one program with exactly these words. Everything else, such as a pipe, a
//! variable or a character that a shell might treat specially, makes it not plain, so no rule can allow it. The commands
//! that are found in other texts are for rules that deny: they may be more than the shell would run, and a program can
//! always start others that no text shows.

mod commands;
mod scanner;

use std::collections::BTreeSet;

/// Longer texts are not read.
const MAX_BYTES: usize = 64 << 10;
/// How many commands are found in one text.
const MAX_COMMANDS: usize = 256;
/// How deep substitutions are nested.
const MAX_DEPTH: usize = 8;
const TOO_MUCH: &str = "more than is read";

/// What a command was found to be.
#[derive(Debug, Clone, Default)]
pub struct ShellCommand {
    /// Why it is not plain, in words. Empty if it is.
    pub not_plain: BTreeSet<&'static str>,
    /// Every command in it, as its words with blanks between them, without quotes; also as the programs that run other
    /// programs would run them.
    pub commands: BTreeSet<String>,
    /// The number of commands that were found directly in the text.
    count: usize,
    /// The text is read as other shells than bash do, where that makes a difference.
    reads_otherwise: bool,
    /// … and has been read so.
    is_read_otherwise: bool,
}

impl ShellCommand {
    pub fn read(text: &str) -> Self {
        let mut found = Self::default();
        found.scan(text, 0);
        if found.count != 1 {
            found.not_plain.insert(if found.count == 0 { "no command" } else { "several commands" });
        }
        found
    }

    /// A command that is not read, because it comes with more than is compared.
    pub fn unread() -> Self {
        Self { not_plain: [TOO_MUCH].into(), ..Self::default() }
    }

    pub fn is_plain(&self) -> bool {
        self.not_plain.is_empty()
    }

    fn scan(&mut self, text: &str, depth: usize) {
        if text.len() > MAX_BYTES || depth > MAX_DEPTH {
            self.not_plain.insert(TOO_MUCH);
            return;
        }
        scanner::Scanner::new(self, text, depth).run();
    }

    fn add(&mut self, words: &[String]) {
        if self.commands.len() >= MAX_COMMANDS {
            self.not_plain.insert(TOO_MUCH);
            return;
        }
        self.commands.insert(words.join(" "));
    }
}

#[cfg(test)]
mod tests;
