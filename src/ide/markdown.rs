//! Markdown for hovers, and its conversion to plain text for editors without Markdown support. Texts from servers must not
//! become markup: an editor would fetch an image in a description without asking.

use crate::text::{mask, one_line, visible};

/// Untrusted text as a block in which nothing is markup.
pub fn block(text: &str, limit: usize) -> String {
    let shown = visible(&mask(text), limit);
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", shown.trim_end())
}

/// Untrusted text on one line, with all markup escaped. Also for table cells.
pub fn line(text: &str, limit: usize) -> String {
    let mut escaped = String::new();
    for c in one_line(&mask(text), limit).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | ':' | ';' | '\'' | '"' | '?' | '/' | '%' | '=' | '@') {
            // These characters have no meaning inside a line.
            if !matches!(c, '-' | '(' | ')' | '+' | '$') {
                escaped.push('\\');
            }
        }
        escaped.push(c);
    }
    escaped
}

/// A name or word as inline code.
pub fn code(text: &str) -> String {
    let shown = one_line(text, 120);
    if shown.contains('`') { format!("`` {shown} ``") } else { format!("`{shown}`") }
}

/// Inline code in a table cell, which a bar would end.
pub fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// Converts the Markdown of this module to plain text.
pub fn plain(markdown: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in markdown.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => lines.push(line.to_owned()),
            None if ticks >= 3 => fence = line.get(..ticks),
            None if line.starts_with("|--") => {}
            None if line.starts_with('|') => {
                let cells: Vec<String> = cells(line).iter().map(|cell| strip_markup(cell.trim())).collect();
                lines.push(cells.into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join("  "));
            }
            None => lines.push(strip_markup(line)),
        }
    }
    lines.join("\n")
}

/// The cells of a table row. An escaped bar is part of its cell.
fn cells(row: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut letters = row.chars().peekable();
    while let Some(c) = letters.next() {
        let next = if c == '\\' { letters.next() } else { None };
        match (c, next, cells.last_mut()) {
            ('|', ..) => cells.push(String::new()),
            (_, Some('|'), Some(cell)) => cell.push('|'),
            (c, next, Some(cell)) => cell.extend([Some(c), next].into_iter().flatten()),
            _ => {}
        }
    }
    cells
}

/// A line without markup.
fn strip_markup(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let ticks = rest.len() - rest.trim_start_matches('`').len();
        let code = rest.split_at_checked(ticks).filter(|_| ticks > 0);
        let code = code.and_then(|(mark, inner)| inner.split_once(mark).map(|(inner, behind)| (mark, inner, behind)));
        if let Some((mark, inner, behind)) = code {
            // Code with double backquotes is padded with spaces.
            text.push_str(if mark.len() > 1 { inner.trim_matches(' ') } else { inner });
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("**") {
            rest = behind;
        } else if let Some(next) = after.chars().next().filter(|next| c == '\\' && next.is_ascii_punctuation()) {
            text.push(next);
            rest = after.get(next.len_utf8()..).unwrap_or_default();
        } else {
            text.push(c);
            rest = after;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_escaped() {
        assert_eq!(line("see ![x](http://a) | <b>\n# y", 99), "see \\!\\[x\\](http://a) \\| \\<b\\> \\# y");
        assert_eq!(block("a ``` b\u{1b}[31m", 99), "````text\na ``` b⟨U+001B⟩[31m\n````");
        assert_eq!(code("a`b|c"), "`` a`b|c ``");
        assert_eq!(code_cell("b|c"), "`b\\|c`");
    }

    #[test]
    fn plain_text_has_no_markup() {
        let untrusted = "see ![x](http://a) | <b> # y \\ **z**";
        assert_eq!(plain(&line(untrusted, 99)), untrusted);
        assert_eq!(plain(&block("a **b** `c`\n- d", 99)), "a **b** `c`\n- d");
        assert_eq!(plain(&code("a`b|c")), "a`b|c");
        assert_eq!(plain("**`name`** · *\n\n- one\n- `two`"), "name · *\n\n- one\n- two");
        let table =
            format!("| parameter | type | |\n|---|---|---|\n| {} | {} | |", code_cell("a|b"), line("x | null", 9));
        assert_eq!(plain(&table), "parameter  type\na|b  x | null");
    }
}
