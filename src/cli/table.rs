//! Tables: aligned columns, truncated to the width of the terminal.

use unicode_width::UnicodeWidthStr;

use super::style::{Color, Style};

/// The space between two columns.
const GAP: &str = "  ";
/// The last column has the longest texts and shrinks first. These are the minimum widths of the last column and the others.
const LAST_MINIMUM: usize = 24;
const OTHER_MINIMUM: usize = 6;

pub(super) struct Table {
    headers: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
}

/// Pieces of text, each with its color.
#[derive(Debug, Clone, Default)]
pub(super) struct Cell {
    pieces: Vec<(Color, String)>,
    align: Align,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Align {
    #[default]
    Left,
    Right,
}

impl Table {
    pub fn new(headers: &'static [&'static str]) -> Self {
        Self { headers, rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// One line for the headers and one for each row, none of them wider than `width`.
    pub fn lines(&self, style: Style, width: Option<usize>) -> Vec<String> {
        let widths = self.widths(width);
        let right =
            |column: usize| self.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.align == Align::Right));
        let headers: Vec<Cell> = self
            .headers
            .iter()
            .enumerate()
            .map(|(column, header)| match right(column) {
                true => Cell::new(Color::Dim, *header).right(),
                false => Cell::new(Color::Dim, *header),
            })
            .collect();
        std::iter::once(&headers).chain(&self.rows).map(|row| line(row, &widths, style)).collect()
    }

    pub fn text(&self, style: Style, width: Option<usize>) -> String {
        self.lines(style, width).into_iter().map(|line| line + "\n").collect()
    }

    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let cell = |column: usize| self.rows.iter().filter_map(move |row| row.get(column)).map(Cell::width).max();
        let mut widths: Vec<usize> = self
            .headers
            .iter()
            .enumerate()
            .map(|(column, header)| header.width().max(cell(column).unwrap_or(0)))
            .collect();
        let Some(most) = most else { return widths };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(most);
        if let Some(last) = widths.last_mut() {
            excess -= shrink(last, LAST_MINIMUM, excess);
        }
        // Then shrink the widest of the others, one character at a time. This is rare, and there are few columns.
        while excess > 0 {
            let others = widths.len().saturating_sub(1);
            let widest = widths.iter_mut().take(others).max().filter(|width| **width > OTHER_MINIMUM);
            let Some(widest) = widest else { break };
            excess -= shrink(widest, OTHER_MINIMUM, 1);
        }
        if let Some(last) = widths.last_mut() {
            shrink(last, 1, excess);
        }
        widths
    }
}

/// Shrinks a width by `excess`, but not below `minimum`. Returns by how much it shrank.
fn shrink(width: &mut usize, minimum: usize, excess: usize) -> usize {
    let removed = width.saturating_sub(minimum).min(excess);
    *width -= removed;
    removed
}

fn line(cells: &[Cell], widths: &[usize], style: Style) -> String {
    let mut line = String::new();
    let last = cells.len().saturating_sub(1);
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = cell.truncate(*width);
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        let text: String = cell.pieces.iter().map(|(color, text)| style.paint(*color, text)).collect();
        match cell.align {
            Align::Right => line.extend([padding, text]),
            // No trailing spaces after the last column.
            Align::Left if column == last => line.push_str(&text),
            Align::Left => line.extend([text, padding]),
        }
        if column != last {
            line.push_str(GAP);
        }
    }
    line.trim_end().to_owned()
}

impl Cell {
    pub fn new(color: Color, text: impl Into<String>) -> Self {
        Self::default().and(color, text)
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Color::Plain, text)
    }

    pub fn and(mut self, color: Color, text: impl Into<String>) -> Self {
        self.pieces.push((color, text.into()));
        self
    }

    /// Aligns the text to the right, for numbers.
    pub fn right(mut self) -> Self {
        self.align = Align::Right;
        self
    }

    fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    fn truncate(&self, width: usize) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let mut room = width;
        let mut pieces = Vec::new();
        for (color, text) in &self.pieces {
            let wide = text.width();
            // A piece that leaves no room for the `…` of the next piece is truncated, too.
            if wide < room {
                room -= wide;
                pieces.push((*color, text.clone()));
            } else {
                pieces.push((*color, truncate(text, room)));
                break;
            }
        }
        Self { pieces, align: self.align }
    }
}

/// Truncates a text to `width` columns, with `…` at the end.
pub(super) fn truncate(text: &str, width: usize) -> String {
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
            table.row(vec![Cell::plain(*name), Cell::plain(*tools).right(), Cell::new(Color::Bad, *status)]);
        }
        table.text(Style::plain(), width)
    }

    #[test]
    fn columns_are_aligned_with_wide_characters() {
        insta::assert_snapshot!(shown(None, &[["demo", "9", "connected"], ["名前🦀", "120", "failed"]]), @r"
        NAME    TOOLS  STATUS
        demo        9  connected
        名前🦀    120  failed
        ");
    }

    #[test]
    fn the_last_column_is_truncated_first() {
        let rows = [["demo", "9", "failed: the program exited before initialize"]];
        insta::assert_snapshot!(shown(Some(40), &rows), @r"
        NAME  TOOLS  STATUS
        demo      9  failed: the program exited…
        ");
        let rows = [["a-name-that-is-far-too-long-for-this", "9", "failed: the program exited before initialize"]];
        insta::assert_snapshot!(shown(Some(50), &rows), @r"
        NAME               TOOLS  STATUS
        a-name-that-is-f…      9  failed: the program exi…
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
    fn a_cell_of_two_colors_is_truncated_once() {
        let cell = Cell::new(Color::Bad, "failed").and(Color::Dim, ": because");
        let texts = |width| cell.truncate(width).pieces.iter().map(|(_, text)| text.as_str()).collect::<String>();
        assert_eq!((texts(99), texts(15)), ("failed: because".to_owned(), "failed: because".to_owned()));
        assert_eq!((texts(9), texts(6), texts(4)), ("failed:…".to_owned(), "faile…".to_owned(), "fai…".to_owned()));
    }
}
