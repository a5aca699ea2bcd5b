//! Splits a text into commands and their words.

use super::{ShellCommand, commands};

/// Characters that mean themselves in every shell, outside of quotes.
const LITERAL: &str = "_@%+=:,./-";
/// The same inside of double quotes.
const LITERAL_IN_QUOTES: &str = "_@%+=:,./- '|&;<>()[]{}*?#~^";

const SUBSTITUTION: &str = "a substitution";
const UNFINISHED: &str = "an unfinished quote or bracket";

pub struct Scanner<'a> {
    found: &'a mut ShellCommand,
    chars: Vec<char>,
    at: usize,
    depth: usize,
    words: Vec<String>,
    word: Option<String>,
    /// The next word is the file of a redirection.
    skips_word: bool,
}

impl<'a> Scanner<'a> {
    pub fn new(found: &'a mut ShellCommand, text: &str, depth: usize) -> Self {
        Self { found, chars: text.chars().collect(), at: 0, depth, words: Vec::new(), word: None, skips_word: false }
    }

    pub fn run(mut self) {
        while let Some(c) = self.next() {
            self.take(c);
        }
        self.end_command();
    }

    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied();
        self.at += usize::from(c.is_some());
        c
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    fn note(&mut self, what: &'static str) {
        self.found.not_plain.insert(what);
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn take(&mut self, c: char) {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' | '\r' | ';' => {
                self.note("several commands");
                self.end_command();
            }
            '|' => {
                self.note("a pipe");
                self.end_command();
            }
            '&' if self.peek() == Some('>') => self.end_word(),
            '&' => {
                self.note("several commands");
                self.end_command();
            }
            '(' | ')' => {
                self.note("a subshell");
                self.end_command();
            }
            '<' | '>' => self.redirect(c),
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '\\' => {
                self.note("an escape");
                if let Some(next) = self.next().filter(|next| *next != '\n') {
                    self.push(next);
                }
            }
            '$' => self.dollar(),
            '`' => self.backquoted(),
            '#' if self.word.is_none() => {
                self.note("a comment");
                while self.peek().is_some_and(|next| next != '\n') {
                    self.at += 1;
                }
            }
            '*' | '?' | '[' | ']' => {
                self.note("a wildcard");
                self.push(c);
            }
            c if c.is_ascii_alphanumeric() || LITERAL.contains(c) => self.push(c),
            '~' | '{' | '}' | '!' | '^' | '#' => {
                self.note("a character that shells expand");
                self.push(c);
            }
            c => {
                self.note("an unusual character");
                self.push(c);
            }
        }
    }

    /// `>file`, `2>&1`, `<<EOF`, or `<(command)`.
    fn redirect(&mut self, c: char) {
        if self.skip('(') {
            return self.bracketed('(', ')');
        }
        self.note("a redirection");
        // The number of a file descriptor is not a word of the command.
        if self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        while self.skip(c) || self.skip('&') || self.skip('-') || self.skip('|') {}
        self.skips_word = true;
    }

    fn single_quoted(&mut self) {
        self.word.get_or_insert_default();
        loop {
            match self.next() {
                Some('\'') => return,
                Some(c) => {
                    if c.is_control() || !c.is_ascii() {
                        self.note("an unusual character");
                    }
                    self.push(c);
                }
                None => return self.note(UNFINISHED),
            }
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        loop {
            match self.next() {
                Some('"') => return,
                Some('$') => self.dollar(),
                Some('`') => self.backquoted(),
                Some('\\') => {
                    self.note("an escape");
                    if let Some(next) = self.next() {
                        self.push(next);
                    }
                }
                Some(c) => {
                    if !c.is_ascii_alphanumeric() && !LITERAL_IN_QUOTES.contains(c) {
                        self.note("an unusual character");
                    }
                    self.push(c);
                }
                None => return self.note(UNFINISHED),
            }
        }
    }

    /// After `$`.
    fn dollar(&mut self) {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.bracketed('(', ')');
            }
            Some('{') => {
                self.at += 1;
                self.note("a variable");
                self.bracketed('{', '}');
            }
            Some('\'') => self.note("an escape"),
            _ => {
                self.note("a variable");
                self.push('$');
            }
        }
    }

    /// Reads up to the bracket that closes, and what is in it as commands.
    fn bracketed(&mut self, open: char, close: char) {
        self.note(SUBSTITUTION);
        let (start, mut level, mut quote) = (self.at, 1_usize, None);
        while let Some(c) = self.next() {
            match (c, quote) {
                ('\\', Some('"') | None) => {
                    self.next();
                }
                (c, Some(quoted)) if c == quoted => quote = None,
                (_, Some('\'')) => {}
                ('\'' | '"', None) => quote = Some(c),
                (c, _) if c == open => level += 1,
                (c, _) if c == close => level -= 1,
                _ => {}
            }
            if level == 0 {
                break;
            }
        }
        if level > 0 {
            self.note(UNFINISHED);
        }
        let end = if level == 0 { self.at - 1 } else { self.at };
        self.substituted(start, end);
    }

    /// After a backquote.
    fn backquoted(&mut self) {
        self.note(SUBSTITUTION);
        let start = self.at;
        loop {
            match self.next() {
                Some('`') => return self.substituted(start, self.at - 1),
                Some('\\') => {
                    self.next();
                }
                Some(_) => {}
                None => {
                    self.note(UNFINISHED);
                    return self.substituted(start, self.at);
                }
            }
        }
    }

    fn substituted(&mut self, start: usize, end: usize) {
        let inner: String = self.chars.get(start..end).unwrap_or_default().iter().collect();
        self.found.scan(&inner, self.depth + 1);
        // What it prints is unknown.
        self.push('$');
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            match std::mem::take(&mut self.skips_word) {
                true => {}
                false => self.words.push(word),
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.skips_word = false;
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        self.found.count += usize::from(self.depth == 0);
        commands::add(self.found, words, self.depth);
    }
}
