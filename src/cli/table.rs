//! Tables: aligned columns. In a narrow terminal the last column is truncated, or it moves to the next line. The others,
//! which have names that can be typed again, are never truncated.

use unicode_width::UnicodeWidthStr;

use super::style::{Color, Style};

/// The space between two columns.
const GAP: &str = "  ";
/// The last column has the longest texts. If it would be narrower than this, it is on a separate line.
const LAST_MINIMUM: usize = 24;
/// How far a cell on a separate line is indented.
const INDENT: &str = "    ";

pub(super) struct Table {
    headers: Vec<&'static str>,
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
    pub fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The headers and the rows, with no line wider than `width`.
    pub fn lines(&self, style: Style, width: Option<usize>) -> Vec<String> {
        let layout = self.layout(width);
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
        std::iter::once(&headers).chain(&self.rows).flat_map(|row| layout.lines(row, style)).collect()
    }

    pub fn text(&self, style: Style, width: Option<usize>) -> String {
        self.lines(style, width).into_iter().map(|line| line + "\n").collect()
    }

    fn layout(&self, most: Option<usize>) -> Layout {
        let cell = |column: usize| self.rows.iter().filter_map(move |row| row.get(column)).map(Cell::width).max();
        let headers = self.headers.iter().enumerate();
        let mut widths: Vec<usize> =
            headers.map(|(column, header)| header.width().max(cell(column).unwrap_or(0))).collect();
        let Some(most) = most else { return Layout::Beside(widths) };
        let last = widths.pop().unwrap_or(0);
        let others = widths.iter().map(|width| width + GAP.len()).sum::<usize>();
        if others + last.min(LAST_MINIMUM) <= most {
            widths.push(last.min(most - others));
            Layout::Beside(widths)
        } else if others <= most + GAP.len() {
            Layout::Below(widths, most)
        } else {
            Layout::Stacked(most)
        }
    }
}

/// Where the cells of a row are.
enum Layout {
    /// In one line, in columns of these widths.
    Beside(Vec<usize>),
    /// The last cell is below the others, which are in columns of these widths.
    Below(Vec<usize>, usize),
    /// Each cell is on its own line, and continues on the next ones.
    Stacked(usize),
}

impl Layout {
    fn lines(&self, row: &[Cell], style: Style) -> Vec<String> {
        match self {
            Self::Beside(widths) => vec![line(row, widths, style)],
            Self::Below(widths, most) => {
                let mut lines = vec![line(row, widths, style)];
                let last = row.get(widths.len()).filter(|last| last.width() > 0);
                lines.extend(
                    last.map(|last| {
                        format!("{INDENT}{}", last.truncate(most.saturating_sub(INDENT.len())).paint(style))
                    }),
                );
                lines
            }
            Self::Stacked(most) => {
                let cells = row.iter().filter(|cell| cell.width() > 0).enumerate();
                let wrapped = cells.flat_map(|(number, cell)| {
                    let text: String = cell.pieces.iter().map(|(_, text)| text.as_str()).collect();
                    wrap(&if number == 0 { text } else { format!("{INDENT}{text}") }, *most)
                });
                wrapped.collect()
            }
        }
    }
}

/// Breaks a text into lines of at most `width` columns, and loses nothing.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for c in text.chars() {
        let is_full = lines.last().is_some_and(|line| !line.is_empty() && format!("{line}{c}").width() > width);
        if is_full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
    }
    lines
}

fn line(cells: &[Cell], widths: &[usize], style: Style) -> String {
    let mut line = String::new();
    let last = widths.len().saturating_sub(1);
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let cell = cell.truncate(*width);
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        let text = cell.paint(style);
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

    fn paint(&self, style: Style) -> String {
        self.pieces.iter().map(|(color, text)| style.paint(*color, text)).collect()
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
    fn the_last_column_is_truncated_or_moves_down_and_names_stay_whole() {
        let rows = [["demo", "9", "failed: the program exited before initialize"]];
        insta::assert_snapshot!(shown(Some(40), &rows), @r"
        NAME  TOOLS  STATUS
        demo      9  failed: the program exited…
        ");
        let rows = [["a-name-that-is-far-too-long-for-this", "9", "failed: the program exited before initialize"]];
        insta::assert_snapshot!(shown(Some(50), &rows), @r"
        NAME                                  TOOLS
            STATUS
        a-name-that-is-far-too-long-for-this      9
            failed: the program exited before initialize
        ");
        insta::assert_snapshot!(shown(Some(20), &rows), @r"
        NAME
            TOOLS
            STATUS
        a-name-that-is-far-t
        oo-long-for-this
            9
            failed: the prog
        ram exited before in
        itialize
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
