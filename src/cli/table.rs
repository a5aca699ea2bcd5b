//! Tables for people: columns that line up whatever the characters, cut to the width of the terminal.

use unicode_width::UnicodeWidthStr;

use super::look::{Look, Tone};

/// Between two columns.
const GAP: &str = "  ";
/// What the last column, which holds the longest words, keeps before others give way; and what those keep.
const LAST_KEEPS: usize = 24;
const OTHERS_KEEP: usize = 6;

pub(super) struct Table {
    heads: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

/// Pieces of text, each in its tone.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pieces: Vec<(Tone, String)>,
    side: Side,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Side {
    #[default]
    Left,
    Right,
}

impl Table {
    pub fn new(heads: &'static [&'static str]) -> Self {
        Self { heads, rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// One line for the heads and one for each row, none of them wider than `width`.
    pub fn lines(&self, look: Look, width: Option<usize>) -> Vec<String> {
        let widths = self.widths(width);
        let right =
            |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.side == Side::Right));
        let heads: Vec<Cell> = self
            .heads
            .iter()
            .enumerate()
            .map(|(column, head)| match right(column) {
                true => Cell::new(Tone::Dim, *head).right(),
                false => Cell::new(Tone::Dim, *head),
            })
            .collect();
        std::iter::once(&heads).chain(&self.rows).map(|row| line(row, &widths, look)).collect()
    }

    pub fn text(&self, look: Look, width: Option<usize>) -> String {
        self.lines(look, width).into_iter().map(|line| line + "\n").collect()
    }

    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let cell = |column: usize| self.rows.iter().filter_map(move |row| row.get(column)).map(Cell::width).max();
        let mut widths: Vec<usize> =
            self.heads.iter().enumerate().map(|(column, head)| head.width().max(cell(column).unwrap_or(0))).collect();
        let Some(most) = most else { return widths };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(most);
        if let Some(last) = widths.last_mut() {
            excess -= give_way(last, LAST_KEEPS, excess);
        }
        // Then the widest of the others, one character at a time: rare, and there are few columns.
        while excess > 0 {
            let others = widths.len().saturating_sub(1);
            let widest = widths.iter_mut().take(others).max().filter(|width| **width > OTHERS_KEEP);
            let Some(widest) = widest else { break };
            excess -= give_way(widest, OTHERS_KEEP, 1);
        }
        if let Some(last) = widths.last_mut() {
            give_way(last, 1, excess);
        }
        widths
    }
}

/// Takes what is too much from a width that keeps this much; how much that was.
fn give_way(width: &mut usize, keep: usize, excess: usize) -> usize {
    let given = width.saturating_sub(keep).min(excess);
    *width -= given;
    given
}

fn line(cells: &[Cell], widths: &[usize], look: Look) -> String {
    let mut line = String::new();
    let last = cells.len().saturating_sub(1);
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = cell.cut(*width);
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        let text: String = cell.pieces.iter().map(|(tone, text)| look.tone(*tone, text)).collect();
        match cell.side {
            Side::Right => line.extend([padding, text]),
            // Nothing stands behind the last one: blanks at the end of lines only make copies of them ugly.
            Side::Left if column == last => line.push_str(&text),
            Side::Left => line.extend([text, padding]),
        }
        if column != last {
            line.push_str(GAP);
        }
    }
    line.trim_end().to_owned()
}

impl Cell {
    pub fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self::default().and(tone, text)
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Tone::Plain, text)
    }

    pub fn and(mut self, tone: Tone, text: impl Into<String>) -> Self {
        self.pieces.push((tone, text.into()));
        self
    }

    /// For numbers.
    pub fn right(mut self) -> Self {
        self.side = Side::Right;
        self
    }

    fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    fn cut(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let mut room = width;
        let mut pieces = Vec::new();
        for (tone, text) in &self.pieces {
            let wide = text.width();
            // The piece that does not fit ends in a mark, and so does one that leaves no room for the mark of the next.
            if wide < room {
                room -= wide;
                pieces.push((*tone, text.clone()));
            } else {
                pieces.push((*tone, cut(text, room)));
                break;
            }
        }
        Self { pieces, side: self.side }
    }
}

/// The beginning of a text, with `…` for what is left out, in at most `width` columns.
pub(super) fn cut(text: &str, width: usize) -> String {
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mut kept = String::new();
    for c in text.chars() {
        let before = kept.len();
        kept.push(c);
        if kept.width() > room {
            kept.truncate(before);
            break;
        }
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: Option<usize>, rows: &[[&str; 3]]) -> String {
        let mut table = Table::new(&["NAME", "TOOLS", "STATUS"]);
        for [name, tools, status] in rows {
            table.row(vec![Cell::plain(*name), Cell::plain(*tools).right(), Cell::new(Tone::Bad, *status)]);
        }
        table.text(Look::plain(), width)
    }

    #[test]
    fn columns_line_up_whatever_the_characters() {
        insta::assert_snapshot!(shown(None, &[["demo", "9", "connected"], ["名前🦀", "120", "failed"]]), @r"
        NAME    TOOLS  STATUS
        demo        9  connected
        名前🦀    120  failed
        ");
    }

    #[test]
    fn what_is_too_wide_is_cut_at_its_end_and_the_last_column_first() {
        let rows = [["demo", "9", "failed: the program ended before it said a word"]];
        insta::assert_snapshot!(shown(Some(40), &rows), @r"
        NAME  TOOLS  STATUS
        demo      9  failed: the program ended…
        ");
        let rows = [["a-name-that-is-far-too-long-for-this", "9", "failed: the program ended before it said a word"]];
        insta::assert_snapshot!(shown(Some(50), &rows), @r"
        NAME               TOOLS  STATUS
        a-name-that-is-f…      9  failed: the program end…
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let rows = [["名前名前名前名前名前", "9", "失敗失敗失敗失敗失敗失敗失敗"]];
        for width in 20..60 {
            let text = shown(Some(width), &rows);
            assert!(text.lines().all(|line| line.width() <= width), "{width}\n{text}");
        }
    }

    #[test]
    fn a_cut_in_the_middle_of_two_tones_says_so_once() {
        let cell = Cell::new(Tone::Bad, "failed").and(Tone::Dim, ": because");
        let texts = |width| cell.cut(width).pieces.iter().map(|(_, text)| text.as_str()).collect::<String>();
        assert_eq!((texts(99), texts(15)), ("failed: because".to_owned(), "failed: because".to_owned()));
        assert_eq!((texts(9), texts(6), texts(4)), ("failed:…".to_owned(), "faile…".to_owned(), "fai…".to_owned()));
    }
}
