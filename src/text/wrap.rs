//! Wraps text at spaces.

use unicode_width::UnicodeWidthStr;

use super::without_colors;

/// Breaks a text into lines of at most `width` columns, at spaces. Colors have no width. A longer word gets a separate line.
pub fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let columns = |text: &str| without_colors(text).width();
    let rest = text.trim_start_matches(' ');
    let mut lines = vec![" ".repeat(text.len() - rest.len())];
    for word in rest.split(' ') {
        match lines.last_mut() {
            Some(line) if line.trim().is_empty() => line.push_str(word),
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_and_colors_have_no_width() {
        assert_eq!(wrap_words("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_words("\u{1b}[31mone\u{1b}[0m two", 7), ["\u{1b}[31mone\u{1b}[0m two"]);
        assert_eq!(wrap_words("a longer-than-that b", 5), ["a", "longer-than-that", "b"]);
        assert_eq!(wrap_words("  one two", 6), ["  one", "two"]);
        assert_eq!(wrap_words("one  2", 6), ["one  2"]);
        assert_eq!(wrap_words("", 5), [""]);
    }
}
