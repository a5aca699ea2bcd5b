//! A text that many edits change one after another, such as the changes in one message of an editor.

use super::lines::{Encoding, LineIndex, Position, offset_in_line};

/// Its lines, with their endings; the last one has none. So an edit costs only as much as the lines that it touches.
pub struct EditedText {
    lines: Vec<String>,
    bytes: usize,
    /// How many bytes and lines the edits have moved.
    work: usize,
}

impl EditedText {
    pub fn new(text: &str) -> Self {
        Self { lines: split(text), bytes: text.len(), work: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn work(&self) -> usize {
        self.work
    }

    /// Replaces what is between two positions. Positions after the end of a line or of the text count as its end.
    pub fn replace(&mut self, from: Position, to: Position, encoding: Encoding, with: &str) {
        let (first, start) = self.locate(from, encoding);
        let (last, end) = self.locate(to.max(from), encoding);
        let before = self.lines.get(first).and_then(|line| line.get(..start)).unwrap_or_default();
        let after = self.lines.get(last).and_then(|line| line.get(end..)).unwrap_or_default();
        let mut changed = [before, with, after].concat();
        let mut replaced = first..last + 1;
        // A `\r` and a `\n` that become neighbours are one line ending.
        if changed.starts_with('\n')
            && let Some(previous) = first.checked_sub(1).and_then(|previous| self.lines.get(previous))
            && previous.ends_with('\r')
        {
            changed.insert_str(0, previous);
            replaced.start -= 1;
        }
        let mut lines = split(&changed);
        // After the last ending, there is one more line only at the end of the text.
        if replaced.end < self.lines.len() {
            lines.pop();
        }
        if lines.len() != replaced.len() {
            self.work += self.lines.len().saturating_sub(replaced.end);
        }
        self.work += changed.len();
        self.bytes += changed.len();
        for removed in self.lines.splice(replaced, lines) {
            self.bytes -= removed.len();
        }
    }

    /// The line of a position, and the offset in it.
    fn locate(&self, position: Position, encoding: Encoding) -> (usize, usize) {
        let line = position.line as usize;
        match self.lines.get(line) {
            Some(text) => (line, offset_in_line(text.trim_end_matches(['\n', '\r']), position.column, encoding)),
            None => (self.lines.len().saturating_sub(1), self.lines.last().map_or(0, String::len)),
        }
    }
}

impl From<EditedText> for std::sync::Arc<str> {
    fn from(text: EditedText) -> Self {
        text.lines.concat().into()
    }
}

fn split(text: &str) -> Vec<String> {
    LineIndex::new(text).whole_lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    fn at(line: u32, column: u32) -> Position {
        Position { line, column }
    }

    proptest! {
        #[test]
        fn edits_give_the_same_text_as_replacing_in_the_whole_text(
            text in "[a\u{e9}\u{1F980}\r\n]{0,12}",
            edits in proptest::collection::vec(((0u32..6, 0u32..4), (0u32..6, 0u32..4), "[b\r\n]{0,3}"), 1..6),
        ) {
            let mut edited = EditedText::new(&text);
            let mut whole = text;
            for ((line, column), (to_line, to_column), with) in edits {
                let (from, to) = (at(line, column), at(to_line, to_column));
                edited.replace(from, to, Encoding::Utf16, &with);
                let index = LineIndex::new(whole.as_str());
                let start = index.offset(from, Encoding::Utf16);
                whole.replace_range(start..index.offset(to, Encoding::Utf16).max(start), &with);
                prop_assert_eq!(edited.bytes(), whole.len());
            }
            prop_assert_eq!(&*Arc::<str>::from(edited), whole.as_str());
        }
    }

    #[test]
    fn an_edit_costs_as_much_as_the_lines_that_it_touches() {
        let mut text = EditedText::new(&"a line of text\n".repeat(70_000));
        for line in 0..20_000 {
            text.replace(at(line, 0), at(line, 1), Encoding::Utf16, "z");
        }
        assert!(text.work() < 1 << 20, "{}", text.work());
    }
}
