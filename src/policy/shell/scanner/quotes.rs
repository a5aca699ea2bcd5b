//! Quotes, variables and backquotes.

use super::super::MAX_BRACES;
use super::{SUBSTITUTION, Scanner, UNFINISHED};

/// Characters that mean themselves in every shell, inside of double quotes.
const LITERAL: &str = "_@%+=:,./- '|&;<>()[]{}*?#~^";

impl Scanner<'_> {
    pub(super) fn single_quoted(&mut self) {
        self.begin_quote();
        let start = self.at;
        loop {
            match self.next() {
                Some('\'') => {
                    if self.found.has_arithmetic {
                        let text: String = self.chars.get(start..self.at - 1).unwrap_or_default().iter().collect();
                        self.read_quoted(&text);
                    }
                    return;
                }
                Some(c) => {
                    if c.is_control() || !c.is_ascii() {
                        self.note("an unusual character");
                    }
                    // To fish, the quote goes on.
                    if c == '\\' && self.peek() == Some('\'') {
                        self.note("an escape");
                    }
                    self.push(c);
                }
                None => return self.note(UNFINISHED),
            }
        }
    }

    pub(super) fn double_quoted(&mut self) {
        self.begin_quote();
        while let Some(c) = self.next() {
            match c {
                '"' => return,
                c => self.take_quoted(c),
            }
        }
        self.note(UNFINISHED);
    }

    fn begin_quote(&mut self) {
        self.word.get_or_insert_default();
        self.quote_document();
    }

    /// A character inside of double quotes, or of a document.
    pub(super) fn take_quoted(&mut self, c: char) {
        match c {
            '$' => self.dollar(true),
            '`' => self.backquoted(true),
            '\\' => {
                self.note("an escape");
                if let Some(next) = self.next().filter(|next| *next != '\n') {
                    self.push(next);
                }
            }
            c => {
                if !c.is_ascii_alphanumeric() && !LITERAL.contains(c) {
                    self.note("an unusual character");
                }
                self.push(c);
            }
        }
    }

    /// After `$`.
    pub(super) fn dollar(&mut self, in_quotes: bool) {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                self.found.has_arithmetic |= self.peek() == Some('(');
                self.substituted();
            }
            Some('{') if self.braces < MAX_BRACES => {
                self.at += 1;
                self.note("a variable");
                self.braces += 1;
                self.braced(in_quotes);
                self.braces -= 1;
            }
            Some('\'') if !in_quotes => {
                self.note("an escape");
                self.quote_document();
                if !self.found.dialect.has_simple_quotes {
                    self.read_otherwise(|dialect| &mut dialect.has_simple_quotes, "");
                    self.at += 1;
                    self.escaped();
                }
            }
            // A text to translate.
            Some('"') if !in_quotes => self.note("an escape"),
            _ => {
                self.note("a variable");
                self.push('$');
            }
        }
    }

    /// `${name:-$(command)}`, and in some shells `${ command; }`.
    fn braced(&mut self, in_quotes: bool) {
        self.note(SUBSTITUTION);
        let (start, word) = (self.at, self.word.take());
        let is_whole = loop {
            match self.next() {
                Some('}') => break true,
                // In double quotes, it quotes nothing in some shells.
                Some('\'') if in_quotes && self.found.dialect.has_simple_quotes => {}
                Some('\'') => {
                    if in_quotes {
                        self.read_otherwise(|dialect| &mut dialect.has_simple_quotes, "\"${'");
                    }
                    self.single_quoted();
                }
                Some('"') => self.double_quoted(),
                Some(c) => self.take_quoted(c),
                None => break false,
            }
        };
        if !is_whole {
            self.note(UNFINISHED);
        }
        let end = self.at - usize::from(is_whole);
        self.read_inside(start, end);
        self.word = word;
        // Its value is unknown.
        self.push('$');
    }

    /// After a backquote.
    pub(super) fn backquoted(&mut self, in_quotes: bool) {
        self.note(SUBSTITUTION);
        let start = self.at;
        let inner = self.take_backquoted(false);
        self.found.scan(&inner, self.depth + 1);
        // Inside of double quotes and documents, some shells remove the backslash of `\"`.
        if in_quotes {
            self.at = start;
            let other = self.take_backquoted(true);
            if other != inner {
                self.found.scan(&other, self.depth + 1);
            }
        }
        // What it prints is unknown.
        self.push('$');
    }

    /// The text up to the next backquote, without the backslashes that a shell removes before it reads the text.
    fn take_backquoted(&mut self, removes_before_quotes: bool) -> String {
        let mut inner = String::new();
        loop {
            match self.next() {
                Some('`') => return inner,
                Some('\\') => match self.next() {
                    Some(c @ ('`' | '\\' | '$')) => inner.push(c),
                    Some('"') if removes_before_quotes => inner.push('"'),
                    c => inner.extend(std::iter::once('\\').chain(c)),
                },
                Some(c) => inner.push(c),
                None => {
                    self.note(UNFINISHED);
                    return inner;
                }
            }
        }
    }

    fn read_inside(&mut self, start: usize, end: usize) {
        let inner: String = self.chars.get(start..end).unwrap_or_default().iter().collect();
        self.found.scan(&inner, self.depth + 1);
    }

    /// After `$'`: a text with escapes.
    fn escaped(&mut self) {
        self.word.get_or_insert_default();
        // The zero character ends the text, not the quote.
        let mut is_ended = false;
        while let Some(c) = self.next() {
            let c = match c {
                '\'' => return,
                '\\' => self.escape(),
                c => Some(c),
            };
            is_ended |= c == Some('\0');
            if let Some(c) = c.filter(|_| !is_ended) {
                self.push(c);
            }
        }
        self.note(UNFINISHED);
    }

    /// The character that an escape stands for.
    fn escape(&mut self) -> Option<char> {
        let code = match self.next()? {
            'n' => return Some('\n'),
            't' => return Some('\t'),
            'r' => return Some('\r'),
            'a' | 'b' | 'e' | 'E' | 'f' | 'v' => return Some(char::REPLACEMENT_CHARACTER),
            'c' => {
                // It never takes the quote that ends the text.
                if self.skip('\\') || self.peek() != Some('\'') {
                    self.next();
                }
                return Some(char::REPLACEMENT_CHARACTER);
            }
            'x' if self.skip('{') => {
                let code = self.digits(16, usize::MAX) & 0xff;
                self.skip('}');
                code
            }
            'x' => self.digits(16, 2),
            'u' => self.digits(16, 4),
            'U' => self.digits(16, 8),
            '0'..='7' => {
                self.at -= 1;
                // It is a byte.
                self.digits(8, 3) & 0xff
            }
            other => return Some(other),
        };
        char::from_u32(code)
    }

    /// The number that the next digits mean.
    fn digits(&mut self, base: u32, most: usize) -> u32 {
        let mut number = 0_u32;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(base)) else { break };
            number = number.wrapping_mul(base).wrapping_add(digit);
            self.at += 1;
        }
        number
    }
}
