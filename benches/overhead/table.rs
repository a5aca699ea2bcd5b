//! The table of the results, and the copy of it in the documentation.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Where the documentation contains the last table.
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end of table -->";
/// A row that is this much worse than in the last table is marked.
const WORSE: f64 = 1.2;

/// A figure of one row for each route. `None` where it does not apply.
pub struct Row {
    pub what: &'static str,
    pub unit: Unit,
    pub figures: Vec<Option<f64>>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    Micros,
    Millis,
    PerSecond,
    Megabytes,
    Count,
}

impl Unit {
    fn show(self, figure: f64) -> String {
        match self {
            Self::Micros => format!("{figure:.0} µs"),
            Self::Millis if figure < 10.0 => format!("{figure:.2} ms"),
            Self::Millis => format!("{figure:.0} ms"),
            Self::PerSecond => format!("{:.1} k/s", figure / 1e3),
            Self::Megabytes => format!("{figure:.1} MB"),
            Self::Count => format!("{figure:.0}"),
        }
    }

    /// The figure of a cell that `show` wrote.
    fn read(self, cell: &str) -> Option<f64> {
        let number: f64 = cell.split_whitespace().next()?.parse().ok()?;
        Some(if self == Self::PerSecond { number * 1e3 } else { number })
    }

    fn is_worse(self, now: f64, before: f64) -> bool {
        match self {
            Self::PerSecond => now * WORSE < before,
            _ => now > before * WORSE,
        }
    }
}

/// The rows as a Markdown table. Cells that are worse than in the last table with this name are marked.
pub fn render(name: &str, routes: &[&str], rows: &[Row]) -> String {
    let last = last_table(name);
    let mut text = format!("| | {} |\n|---|{}\n", routes.join(" | "), "---|".repeat(routes.len()));
    for row in rows {
        write!(text, "| {} |", row.what).ok();
        for (route, figure) in routes.iter().zip(&row.figures) {
            let Some(figure) = figure else {
                text.push_str(" – |");
                continue;
            };
            let before =
                last.as_deref().and_then(|last| cell(last, row.what, route)).and_then(|cell| row.unit.read(cell));
            let mark = if before.is_some_and(|before| row.unit.is_worse(*figure, before)) { " (slower)" } else { "" };
            write!(text, " {}{mark} |", row.unit.show(*figure)).ok();
        }
        text.push('\n');
    }
    text
}

/// Replaces the table with this name in the documentation.
pub fn write(name: &str, heading: &str, table: &str) -> io::Result<()> {
    let page = std::fs::read_to_string(page())?;
    let begin = format!("{BEGIN}{name} -->");
    let missing = || io::Error::other(format!("{PAGE} has no table named {name}"));
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    std::fs::write(self::page(), format!("{before}{begin}\n{heading}\n\n{table}{END}{after}"))
}

fn page() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)
}

fn last_table(name: &str) -> Option<String> {
    let page = std::fs::read_to_string(page()).ok()?;
    let (_, rest) = page.split_once(&format!("{BEGIN}{name} -->"))?;
    rest.split_once(END).map(|(table, _)| table.to_owned())
}

fn cell<'table>(table: &'table str, what: &str, route: &str) -> Option<&'table str> {
    let mut rows = table.lines().filter(|line| line.starts_with('|')).map(|line| line.trim_matches('|').split('|'));
    let column = rows.next()?.position(|name| name.trim() == route)?;
    let mut row = rows.find(|row| row.clone().next().is_some_and(|name| name.trim() == what))?;
    row.nth(column).map(str::trim)
}
