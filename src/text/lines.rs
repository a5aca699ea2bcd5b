//! Converts between byte offsets and lines and columns. Lines end with `\n`, `\r\n` or a lone `\r`, as in LSP.

use std::sync::Arc;

/// The unit of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf16,
}

/// Zero-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// The start of each line of a text.
#[derive(Debug, Clone)]
pub struct LineIndex {
    text: Arc<str>,
    starts: Vec<usize>,
}

impl LineIndex {
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let bytes = text.as_bytes();
        let ends = bytes.iter().enumerate().filter(|&(at, &byte)| match byte {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The zero-based line of an offset. Offsets after the end count as the end.
    pub fn line(&self, offset: usize) -> u32 {
        let line = self.starts.partition_point(|&start| start <= offset).saturating_sub(1);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    pub fn position(&self, offset: usize, encoding: Encoding) -> Position {
        let line = self.line(offset);
        let start = self.start(line);
        let before = self.text.get(start..self.boundary(offset)).unwrap_or_default();
        Position { line, column: u32::try_from(width(before, encoding)).unwrap_or(u32::MAX) }
    }

    /// The offset of a position. Columns after the end of the line count as the end of the line.
    pub fn offset(&self, position: Position, encoding: Encoding) -> usize {
        self.start(position.line) + offset_in_line(self.line_text(position.line), position.column, encoding)
    }

    /// All lines with their endings.
    pub fn whole_lines(&self) -> impl Iterator<Item = &str> {
        let ends = self.starts.iter().skip(1).copied().chain([self.text.len()]);
        self.starts.iter().zip(ends).filter_map(|(start, end)| self.text.get(*start..end))
    }

    /// A line without its line ending.
    pub fn line_text(&self, line: u32) -> &str {
        let start = self.start(line);
        let end = self.starts.get(line as usize + 1).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default().trim_end_matches(['\n', '\r'])
    }

    fn start(&self, line: u32) -> usize {
        self.starts.get(line as usize).copied().unwrap_or(self.text.len())
    }

    /// The start of the character at an offset.
    fn boundary(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// The offset of a column in a line. A column after its end counts as its end.
pub fn offset_in_line(line: &str, column: u32, encoding: Encoding) -> usize {
    let (mut left, mut offset) = (column as usize, 0);
    for c in line.chars() {
        let units = units(c, encoding);
        if units > left {
            break;
        }
        left -= units;
        offset += c.len_utf8();
    }
    offset
}

fn width(text: &str, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 => text.len(),
        _ => text.chars().map(|c| units(c, encoding)).sum(),
    }
}

fn units(c: char, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 => c.len_utf8(),
        Encoding::Utf16 => c.len_utf16(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_line_endings_and_column_units_are_supported() {
        let index = LineIndex::new("a\r\nb\rc\n🦀é!");
        assert_eq!((0..8).map(|at| index.line(at)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 2, 2, 3]);
        let bang = index.text.find('!').unwrap();
        let column = |encoding| index.position(bang, encoding).column;
        assert_eq!((column(Encoding::Utf8), column(Encoding::Utf16)), (6, 3));
        assert_eq!(index.line_text(0), "a");
        assert_eq!(index.line_text(9), "");
    }

    #[test]
    fn positions_convert_back_to_their_offsets() {
        let index = LineIndex::new("x\n🦀é\r\ny");
        for (offset, _) in index.text.char_indices() {
            let position = index.position(offset, Encoding::Utf16);
            if !index.text.get(offset..).unwrap().starts_with(['\r', '\n']) {
                assert_eq!(index.offset(position, Encoding::Utf16), offset);
            }
        }
        assert_eq!(index.offset(Position { line: 0, column: 99 }, Encoding::Utf16), 1);
        assert_eq!(index.offset(Position { line: 99, column: 0 }, Encoding::Utf16), index.text.len());
        assert_eq!(index.position(999, Encoding::Utf8), Position { line: 2, column: 1 });
    }
}
