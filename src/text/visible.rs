//! Makes untrusted text visible: terminal escapes, invisible characters and bidirectional overrides become readable.
//! Nothing is ever removed, because a program or a model would still read it.

use std::borrow::Cow;

/// Makes untrusted text safe to show in a terminal, a prompt or a hover. Shows control, invisible and bidirectional
/// characters as `⟨U+202E⟩`, and truncates after `limit` characters with a note.
pub fn visible(text: &str, limit: usize) -> String {
    // To a reader, the line ending of Windows is just a line ending.
    show(&text.replace("\r\n", "\n"), limit, LONG_GAP, |c| matches!(c, '\n' | '\t'))
}

/// The same without a limit. Borrowed if there is nothing to make visible.
pub fn visible_text(text: &str) -> Cow<'_, str> {
    if has_invisible(text) { Cow::Owned(visible(text, usize::MAX)) } else { Cow::Borrowed(text) }
}

/// The same on a single line, for titles and status lines.
pub fn one_line(text: &str, limit: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    show(&joined, limit, GAP, |_| false)
}

/// A value exactly as it is, on a single line: line breaks and tabs are shown as well, so that it cannot look like
/// several lines. Many blanks, which would move the rest out of sight, are counted.
pub fn exact(text: &str) -> String {
    show(text, usize::MAX, GAP, |_| false)
}

/// A name between backquotes, on a single line. The name cannot end the quotation.
pub fn quoted(name: &str, limit: usize) -> String {
    format!("`{}`", one_line(name, limit).replace('`', "⟨U+0060⟩"))
}

/// A line of a log without the colors of a terminal: `ESC [ 31 m` contains no words, and many programs write it.
pub fn without_colors(text: &str) -> Cow<'_, str> {
    if !text.contains("\u{1b}[") {
        return Cow::Borrowed(text);
    }
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let codes = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match codes.strip_prefix('m') {
            Some(after) => plain.push_str(after),
            None => plain.extend(["\u{1b}[", part]),
        }
    }
    Cow::Owned(plain)
}

/// JSON with hidden characters as `\u202e`: the same value, safe to show in a terminal.
pub fn escape_json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        match is_hidden(c, before) && c != '\n' {
            true => shown.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}"))),
            false => shown.push(c),
        }
        before = Some(c);
    }
    shown
}

/// Quotes a word for a shell if necessary, so that the boundaries between words are visible.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,${}".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Whether a text contains invisible characters, which is suspicious in untrusted text.
pub fn has_invisible(text: &str) -> bool {
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_line_end = c == '\r' && chars.peek() == Some(&'\n');
        if !matches!(c, '\n' | '\t') && !is_line_end && is_hidden(c, before) {
            return true;
        }
        before = Some(c);
    }
    false
}

/// The first character that a terminal obeys, that changes the order of text, or that only machines read. Other
/// invisible characters, such as joiners, also occur in honest text.
pub fn find_deceptive(mut text: impl Iterator<Item = char>) -> Option<char> {
    text.find(|c| {
        c.is_control()
            || matches!(c,
                '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
                | '\u{e0000}'..='\u{e0fff}')
    })
}

/// `⟨U+202E⟩`
pub fn code_point(c: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(c))
}

/// The longest gap that is shown as it is, and that in a text of several lines.
const GAP: usize = 8;
const LONG_GAP: usize = 64;
/// A gap of more parts than this is only counted.
const MAX_PARTS: usize = 12;

fn show(text: &str, limit: usize, longest_gap: usize, keep: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len().min(limit));
    let mut before = None;
    let mut chars = text.chars();
    let mut count = 0;
    while let Some(c) = chars.next() {
        if count >= limit {
            let rest = chars.count() + 1;
            shown.push_str(&format!("… ({rest} more characters)"));
            break;
        }
        count += 1;
        if is_blank(c) {
            let rest = chars.as_str();
            let gap = rest.find(|c| !is_blank(c)).and_then(|end| rest.get(..end)).unwrap_or(rest);
            let length = gap.chars().count() + 1;
            if length > longest_gap {
                shown.push_str(&counted_gap(std::iter::once(c).chain(gap.chars()), length));
                chars = rest.get(gap.len()..).unwrap_or_default().chars();
                before = Some(c);
                continue;
            }
        }
        match is_hidden(c, before) && !keep(c) {
            true => shown.push_str(&code_point(c)),
            false => shown.push(c),
        }
        before = Some(c);
    }
    shown
}

/// `⟨U+0020 × 120⟩⟨U+000A × 3⟩`
fn counted_gap(gap: impl Iterator<Item = char>, length: usize) -> String {
    let mut parts: Vec<(char, usize)> = Vec::new();
    for c in gap {
        match parts.last_mut() {
            Some((last, count)) if *last == c => *count += 1,
            _ => parts.push((c, 1)),
        }
        if parts.len() > MAX_PARTS {
            return format!("⟨{length} invisible characters⟩");
        }
    }
    let part = |(c, count): (char, usize)| format!("⟨U+{:04X} × {count}⟩", u32::from(c));
    parts.into_iter().map(part).collect()
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || is_invisible(c)
}

/// Whether a character is invisible where it is. U+FE0F makes the character before it colourful; a second one, or one
/// after nothing, only carries data.
fn is_hidden(c: char, before: Option<char>) -> bool {
    match c {
        '\u{fe0f}' => before.is_none_or(|before| before == c || before.is_whitespace() || is_invisible(before)),
        c => is_invisible(c),
    }
}

/// Whether a character is invisible, or changes how other characters are displayed.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}' | '\u{2800}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{fe00}'..='\u{fe0e}'
            | '\u{13430}'..='\u{1345f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d159}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// `1 tool`, `2 tools`.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_invisible_characters_are_shown_and_never_removed() {
        assert_eq!(visible("\u{1b}[31mred\u{1b}[0m", 99), "⟨U+001B⟩[31mred⟨U+001B⟩[0m");
        assert_eq!(visible("\u{1b}]0;rm -rf ~\u{7}text", 99), "⟨U+001B⟩]0;rm -rf ~⟨U+0007⟩text");
        assert_eq!(visible("\u{9b}8mx\u{90}y\u{9c}", 99), "⟨U+009B⟩8mx⟨U+0090⟩y⟨U+009C⟩");
        assert_eq!(visible("a\u{202e}b\u{200b}c", 99), "a⟨U+202E⟩b⟨U+200B⟩c");
        assert_eq!(visible("tag\u{e0041}", 99), "tag⟨U+E0041⟩");
        assert_eq!(visible("bell\u{7}\r\nnext\rback", 99), "bell⟨U+0007⟩\nnext⟨U+000D⟩back");
        assert_eq!(visible("❤\u{fe0f} 1\u{fe0f}\u{20e3}", 99), "❤\u{fe0f} 1\u{fe0f}\u{20e3}");
        assert_eq!(visible("❤\u{fe0f}\u{fe0f}\u{fe01}", 99), "❤\u{fe0f}⟨U+FE0F⟩⟨U+FE01⟩");
    }

    #[test]
    fn a_value_cannot_look_like_several_lines() {
        assert_eq!(exact("a\r\nfrom\tb"), "a⟨U+000D⟩⟨U+000A⟩from⟨U+0009⟩b");
        assert_eq!(one_line(" a\n  b\u{85}c\u{202e} ", 9), "a b c⟨U+202E⟩");
    }

    #[test]
    fn many_blanks_are_counted_and_do_not_move_the_rest_out_of_sight() {
        assert_eq!(exact(&format!("ls{};rm", " ".repeat(120))), "ls⟨U+0020 × 120⟩;rm");
        assert_eq!(exact(&format!("a{}{}b", "\n".repeat(500), "\u{a0}".repeat(9))), "a⟨U+000A × 500⟩⟨U+00A0 × 9⟩b");
        assert_eq!(exact(&format!("a{}b", "\n ".repeat(500))), "a⟨1000 invisible characters⟩b");
        assert_eq!(exact("a        b"), "a        b");
        assert_eq!(visible(&format!("{{\n{}x", " ".repeat(40)), 99), format!("{{\n{}x", " ".repeat(40)));
        assert_eq!(visible(&format!("ls{};rm", "\n".repeat(99)), 99), "ls⟨U+000A × 99⟩;rm");
    }

    #[test]
    fn only_colors_are_left_out_of_a_log() {
        assert_eq!(without_colors("\u{1b}[1;31mred\u{1b}[0m \u{1b}[8mx\u{1b}[m"), "red x");
        assert_eq!(without_colors("\u{1b}[2Jcls \u{1b}]0;t\u{7} \u{1b}[31"), "\u{1b}[2Jcls \u{1b}]0;t\u{7} \u{1b}[31");
    }

    #[test]
    fn text_without_hidden_characters_is_borrowed() {
        assert!(has_invisible("tag\u{e0041}") && has_invisible("over\rwritten"));
        assert!(matches!(visible_text("plain\ttext\r\n❤\u{fe0f}"), Cow::Borrowed(_)));
        assert_eq!(visible_text("add\u{e0041} numbers\n"), "add⟨U+E0041⟩ numbers\n");
    }

    #[test]
    fn joiners_are_honest_and_overrides_are_not() {
        assert_eq!(find_deceptive("👩\u{200d}💻 é ❤\u{fe0f}".chars()), None);
        assert_eq!(find_deceptive("a\u{202e}b".chars()), Some('\u{202e}'));
        assert_eq!(find_deceptive("\u{e0041}".chars()), Some('\u{e0041}'));
        assert_eq!(find_deceptive("\u{9b}".chars()), Some('\u{9b}'));
    }

    #[test]
    fn truncated_text_has_a_note() {
        assert_eq!(visible("abcdef", 4), "abcd… (2 more characters)");
    }

    proptest::proptest! {
        /// Escaped JSON has the same value, and nothing hidden is left.
        #[test]
        fn escaped_json_is_the_same_value(text: String, code: char) {
            let value = serde_json::json!({ &text: [format!("{code}\u{9b}\u{202e}\u{e0041}{text}")] });
            let shown = escape_json(&format!("{value:#}"));
            proptest::prop_assert!(!has_invisible(&shown), "{shown}");
            proptest::prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }

        /// A reader of the shown text can restore the original: nothing is lost, and nothing hidden is left.
        #[test]
        fn nothing_is_lost(text: String) {
            let shown = exact(&text);
            proptest::prop_assert!(!has_invisible(&shown) && !shown.contains('\n'));
            let mut rest = shown.as_str();
            let mut before = Vec::new();
            for c in text.chars() {
                // The first of many blanks is shown with their number.
                if let Some((count, behind)) = rest.strip_prefix(&format!("⟨U+{:04X} × ", u32::from(c))).and_then(|rest| rest.split_once('⟩')) {
                    before = vec![c; count.parse::<usize>().unwrap()];
                    rest = behind;
                }
                if before.pop().is_some() {
                    continue;
                }
                let code = code_point(c);
                rest = rest.strip_prefix(c).or_else(|| rest.strip_prefix(code.as_str())).unwrap();
            }
            proptest::prop_assert_eq!(rest, "");
        }
    }
}
