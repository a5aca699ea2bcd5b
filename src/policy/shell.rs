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
/// How many commands are found in one text. Each line of a document (`<<EOF`) counts as one.
const MAX_COMMANDS: usize = 4_096;
/// How deep substitutions are nested.
const MAX_DEPTH: usize = 8;
/// How many braces are nested in one text.
const MAX_BRACES: usize = 32;
/// How many bytes and words are read in all. Nested commands are read repeatedly, so a short text could take an unbounded
/// amount of work.
const MAX_WORK: usize = 1 << 20;
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
    /// How many bytes and words were read.
    work: usize,
    dialect: Dialect,
    /// The text has arithmetic, in which single quotes quote nothing.
    has_arithmetic: bool,
}

/// How a text is read where shells differ. The default is how bash reads it.
#[derive(Debug, Clone, Copy, Default)]
struct Dialect {
    /// `$'` does not begin a quote with escapes, and `'` is a usual character in `"${name:-'}"`.
    has_simple_quotes: bool,
    /// `<<` shifts a number.
    has_no_documents: bool,
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

    /// A command that is a list of words. Whether a shell reads them is not known, so it is not plain.
    pub fn of_words(words: &[String]) -> Self {
        let mut found = Self { not_plain: ["a list of words"].into(), ..Self::default() };
        commands::add(&mut found, words, 0);
        found
    }

    /// A command that is not read, because it comes with more than is compared.
    pub fn unread() -> Self {
        Self { not_plain: [TOO_MUCH].into(), ..Self::default() }
    }

    pub fn is_plain(&self) -> bool {
        self.not_plain.is_empty()
    }

    /// Whether `commands` has every command, as far as a text shows them.
    pub fn is_read_whole(&self) -> bool {
        !self.not_plain.contains(TOO_MUCH)
    }

    fn scan(&mut self, text: &str, depth: usize) {
        if text.len() <= MAX_BYTES && depth <= MAX_DEPTH && self.may_read(text.len()) {
            scanner::Scanner::new(self, text, depth).run();
        } else {
            self.not_plain.insert(TOO_MUCH);
        }
    }

    /// Counts what is read next. Returns false if it is too much.
    fn may_read(&mut self, amount: usize) -> bool {
        self.work = self.work.saturating_add(amount).saturating_add(1);
        let may_read = self.work <= MAX_WORK && self.commands.len() < MAX_COMMANDS;
        if !may_read {
            self.not_plain.insert(TOO_MUCH);
        }
        may_read
    }
}

#[cfg(test)]
mod tests;
