//! Markdown for hovers. Words of strangers must not become markup: an image in a description would be fetched by the
//! mere sight of it.

use crate::text::{mask, one_line, visible};

/// Text of a stranger as a block in which nothing is markup.
pub fn block(text: &str, limit: usize) -> String {
    let shown = visible(&mask(text), limit);
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", shown.trim_end())
}

/// Text of a stranger on one line, with everything escaped that could be markup. Also for cells of tables.
pub fn line(text: &str, limit: usize) -> String {
    let mut escaped = String::new();
    for c in one_line(&mask(text), limit).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '.' | ',' | ':' | ';' | '\'' | '"' | '?' | '/' | '%' | '=' | '@') {
            // A plain hyphen or bracket inside a line means nothing.
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

/// The same in a cell of a table, which a bar would end.
pub fn code_cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strangers_stay_words() {
        assert_eq!(line("see ![x](http://a) | <b>\n# y", 99), "see \\!\\[x\\](http://a) \\| \\<b\\> \\# y");
        assert_eq!(block("a ``` b\u{1b}[31m", 99), "````text\na ``` b\n````");
        assert_eq!(code("a`b|c"), "`` a`b|c ``");
        assert_eq!(code_cell("b|c"), "`b\\|c`");
    }
}
