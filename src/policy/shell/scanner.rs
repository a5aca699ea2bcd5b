//! Splits a text into commands and their words, as bash does.
//!
//! Shells disagree about a few texts: where a quote ends then depends on the shell. Such a text is read again as the other
//! shells read it.

mod documents;
mod quotes;

use super::commands::{self, KEYWORDS};
use super::{Dialect, MAX_DEPTH, ShellCommand, TOO_MUCH};
use documents::Document;

/// Characters that mean themselves in every shell, outside of quotes.
const LITERAL: &str = "_@%+=:,./-";

const SUBSTITUTION: &str = "a substitution";
const UNFINISHED: &str = "an unfinished quote or bracket";

pub struct Scanner<'a> {
    found: &'a mut ShellCommand,
    chars: Vec<char>,
    at: usize,
    depth: usize,
    words: Vec<String>,
    /// All of them are keywords.
    only_keywords: bool,
    word: Option<String>,
    /// The next word is the file of a redirection.
    skips_word: bool,
    /// The next word is a text that the command reads: `<<<`.
    reads_word: bool,
    /// The next word ends a document.
    document: Option<Document>,
    /// The documents that start on the next line.
    documents: Vec<Document>,
    /// The open brackets, if this reads a substitution: the text after its last bracket is not part of it.
    brackets: Option<usize>,
    /// How many `case` are open: a bracket ends one of their patterns.
    cases: usize,
    /// How many `${` are open.
    braces: usize,
    /// In which other ways the text was read.
    is_read: Dialect,
}

impl<'a> Scanner<'a> {
    pub fn new(found: &'a mut ShellCommand, text: &str, depth: usize) -> Self {
        Self::at(found, text.chars().collect(), 0, depth)
    }

    fn at(found: &'a mut ShellCommand, chars: Vec<char>, at: usize, depth: usize) -> Self {
        Self {
            found,
            chars,
            at,
            depth,
            words: Vec::new(),
            only_keywords: true,
            word: None,
            skips_word: false,
            reads_word: false,
            document: None,
            documents: Vec::new(),
            brackets: None,
            cases: 0,
            braces: 0,
            is_read: Dialect::default(),
        }
    }

    pub fn run(mut self) {
        self.read();
    }

    /// Reads up to the end of the text, or of the substitution. Returns whether there is one.
    fn read(&mut self) -> bool {
        while let Some(c) = self.next() {
            if c == ')' {
                // The word may be `esac`.
                self.end_word();
                if self.brackets == Some(0) && self.cases == 0 {
                    self.end_command();
                    return true;
                }
            }
            self.take(c);
        }
        self.end_command();
        false
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
                if c == '\n' {
                    self.read_documents();
                }
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
                self.found.has_arithmetic |= c == '(' && self.peek() == Some('(');
                self.end_command();
                if let Some(brackets) = &mut self.brackets {
                    *brackets = if c == '(' { *brackets + 1 } else { brackets.saturating_sub(1) };
                }
            }
            '<' | '>' => self.redirect(c),
            '\'' => self.single_quoted(),
            '"' => self.double_quoted(),
            '\\' => {
                self.note("an escape");
                self.quote_document();
                if let Some(next) = self.next().filter(|next| *next != '\n') {
                    self.push(next);
                }
            }
            '$' => self.dollar(false),
            '`' => self.backquoted(false),
            '#' if self.word.is_none() => {
                self.note("a comment");
                while self.peek().is_some_and(|next| next != '\n') {
                    self.at += 1;
                }
            }
            '*' | '?' | '[' | ']' => {
                self.note("a wildcard");
                // The index of an array.
                self.found.has_arithmetic |= c == '[' && self.word.is_some();
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

    /// Reads a substitution as commands, after its bracket.
    fn substituted(&mut self) {
        self.note(SUBSTITUTION);
        let word = self.word.take();
        if self.depth >= MAX_DEPTH {
            // Its commands count as commands of this text.
            self.note(TOO_MUCH);
        } else {
            let chars = std::mem::take(&mut self.chars);
            let mut inner = Scanner::at(&mut *self.found, chars, self.at, self.depth + 1);
            inner.brackets = Some(0);
            inner.is_read = self.is_read;
            let is_whole = inner.read();
            (self.chars, self.at, self.is_read) = (inner.chars, inner.at, inner.is_read);
            // They start after the line, even if the substitution ends before.
            self.documents.extend(inner.documents);
            if !is_whole {
                self.note(UNFINISHED);
            }
        }
        self.word = word;
        // What it prints is unknown.
        self.push('$');
    }

    /// Reads a text as if it were in double quotes.
    fn read_quoted(&mut self, text: &str) {
        if self.depth < MAX_DEPTH && self.found.may_read(text.len()) {
            let mut inner = Scanner::new(&mut *self.found, text, self.depth + 1);
            while let Some(c) = inner.next() {
                inner.take_quoted(c);
            }
        } else {
            self.note(TOO_MUCH);
        }
    }

    /// Reads the rest again with one difference. Once is enough: this reading then differs to the end of the text.
    fn read_otherwise(&mut self, difference: fn(&mut Dialect) -> &mut bool, before: &str) {
        if !std::mem::replace(difference(&mut self.is_read), true) {
            let rest = self.chars.get(self.at..).unwrap_or_default();
            let text: String = before.chars().chain(rest.iter().copied()).collect();
            *difference(&mut self.found.dialect) = true;
            self.found.scan(&text, self.depth + 1);
            *difference(&mut self.found.dialect) = false;
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if let Some(document) = self.document.take() {
            return self
                .documents
                .push(document.with_end(word, self.at.checked_sub(1).and_then(|at| self.chars.get(at))));
        }
        // It may be the text of a shell.
        if std::mem::take(&mut self.reads_word) {
            return self.found.scan(&word, self.depth + 1);
        }
        if std::mem::take(&mut self.skips_word) {
            return;
        }
        if self.only_keywords {
            self.only_keywords = KEYWORDS.contains(&word.as_str());
            match word.as_str() {
                "case" => self.cases += 1,
                "esac" => self.cases = self.cases.saturating_sub(1),
                _ => {}
            }
        }
        self.words.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.skips_word = false;
        self.reads_word = false;
        self.document = None;
        self.only_keywords = true;
        let words = std::mem::take(&mut self.words);
        if words.is_empty() {
            return;
        }
        self.found.count += usize::from(self.depth == 0);
        if self.found.may_read(words.len()) {
            commands::add(self.found, &words, self.depth);
        }
    }
}
