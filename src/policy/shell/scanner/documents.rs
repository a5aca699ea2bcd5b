//! Redirections, and the documents after a command: `<<EOF`.

use super::{Scanner, UNFINISHED};

/// A text that a command reads: the lines up to one that is its end.
pub struct Document {
    end: String,
    is_indented: bool,
    /// Its end is quoted: nothing in it is special.
    is_quoted: bool,
}

impl Document {
    /// `last` is the character behind the word. Without `\n`, `\r` is part of the word.
    pub fn with_end(mut self, word: String, last: Option<&char>) -> Self {
        self.end = word;
        self.end.extend(last.filter(|last| **last == '\r'));
        self
    }
}

impl Scanner<'_> {
    /// `>file`, `2>&1`, `<<EOF`, or `<(command)`.
    pub(super) fn redirect(&mut self, c: char) {
        if self.skip('(') {
            return self.substituted();
        }
        self.note("a redirection");
        if self.word.as_deref().is_some_and(is_descriptor) {
            self.word = None;
        }
        self.end_word();
        if c == '<' && self.skip('<') {
            if self.skip('<') {
                self.reads_word = true;
            } else {
                let is_indented = self.skip('-');
                self.document = Some(Document { end: String::new(), is_indented, is_quoted: false });
            }
            return;
        }
        loop {
            match self.peek() {
                // The descriptor is closed: there is no file.
                Some('&') if self.chars.get(self.at + 1) == Some(&'-') => {
                    self.at += 2;
                    return;
                }
                Some(next) if next == c || matches!(next, '&' | '|') => self.at += 1,
                _ => break,
            }
        }
        self.skips_word = true;
    }

    /// The word that ends the next document contains a quote.
    pub(super) fn quote_document(&mut self) {
        if let Some(document) = &mut self.document {
            document.is_quoted = true;
        }
    }

    /// At the start of a line: reads the documents of the line before.
    pub(super) fn read_documents(&mut self) {
        for document in std::mem::take(&mut self.documents) {
            if self.found.dialect.has_no_documents {
                continue;
            }
            // What looks like a document may be a number that is shifted.
            self.read_otherwise(|dialect| &mut dialect.has_no_documents, "");
            let start = self.at;
            let end = self.find_end(&document);
            let text: String = self.chars.get(start..end).unwrap_or_default().iter().collect();
            // It may be the text of a shell …
            self.found.scan(&text, self.depth + 1);
            // … and quotes in it quote nothing.
            if !document.is_quoted {
                self.read_quoted(&text);
            }
        }
    }

    /// Moves behind the line that ends a document, and returns where it starts.
    fn find_end(&mut self, document: &Document) -> usize {
        while self.at < self.chars.len() {
            let start = self.at;
            let rest = self.chars.get(start..).unwrap_or_default();
            let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
            let tabs = rest.iter().take_while(|c| document.is_indented && **c == '\t').count();
            let line = rest.get(tabs..length).unwrap_or_default();
            let is_end = line.iter().copied().eq(document.end.chars());
            self.at = (start + length + 1).min(self.chars.len());
            if is_end {
                return start;
            }
        }
        self.note(UNFINISHED);
        self.at
    }
}

/// What names the descriptor of a redirection is not a word of the command: `2>file`, `{name}>file`.
fn is_descriptor(word: &str) -> bool {
    let name = word.strip_prefix('{').and_then(|word| word.strip_suffix('}'));
    match name {
        Some(name) => !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        None => word.chars().all(|c| c.is_ascii_digit()),
    }
}
