//! Makes untrusted text visible: without terminal escapes, invisible characters and bidirectional overrides.

use std::borrow::Cow;

/// Makes untrusted text safe to show in a terminal, a prompt or a hover. Removes escape sequences, shows control,
/// invisible and bidirectional characters as `⟨U+202E⟩`, and truncates after `limit` characters with a note.
pub fn visible(text: &str, limit: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(limit));
    let mut count = 0;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if count >= limit {
            let rest = chars.count() + 1;
            shown.push_str(&format!("… ({rest} more characters)"));
            break;
        }
        count += 1;
        match c {
            '\n' | '\t' => shown.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\u{1b}' | '\u{9b}' => {
                // Show an unterminated sequence as text, so that it cannot hide anything.
                let mut behind = chars.clone();
                match skip_escape(c, &mut behind) {
                    Escape::Ended => chars = behind,
                    Escape::Endless => push_code(&mut shown, c),
                }
            }
            c if is_invisible(c) => push_code(&mut shown, c),
            c => shown.push(c),
        }
    }
    shown
}

/// The same on a single line, for titles and status lines.
pub fn one_line(text: &str, limit: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&joined, limit)
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
    text.chars().any(|c| !matches!(c, '\n' | '\r' | '\t') && is_invisible(c))
}

/// Removes invisible characters from a text for a model, so that it sees no more than a person. Borrowed if there are
/// none.
pub fn strip_invisible(text: &str) -> Cow<'_, str> {
    if !has_invisible(text) {
        return Cow::Borrowed(text);
    }
    let kept = |c: &char| matches!(c, '\n' | '\r' | '\t') || !is_invisible(*c);
    Cow::Owned(text.chars().filter(kept).collect())
}

fn push_code(shown: &mut String, c: char) {
    shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(c)));
}

enum Escape {
    Ended,
    Endless,
}

/// Longer than any title or link in a real escape sequence. A longer sequence counts as unterminated.
const LONGEST_ESCAPE: usize = 2_048;

/// Skips a terminal escape sequence: CSI up to its final byte, OSC and similar ones up to their terminator.
fn skip_escape(start: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Escape {
    let kind = if start == '\u{9b}' { Some('[') } else { chars.peek().copied() };
    match kind {
        Some('[') => {
            if start == '\u{1b}' {
                chars.next();
            }
            while let Some(c) = chars.next_if(|c| ('\u{20}'..='~').contains(c)) {
                if ('@'..='~').contains(&c) {
                    break;
                }
            }
            Escape::Ended
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            for _ in 0..LONGEST_ESCAPE {
                match chars.next() {
                    None | Some('\n') => return Escape::Endless,
                    Some('\u{7}' | '\u{9c}') => return Escape::Ended,
                    Some('\u{1b}') => {
                        chars.next_if_eq(&'\\');
                        return Escape::Ended;
                    }
                    Some(_) => {}
                }
            }
            Escape::Endless
        }
        Some(c) if ('\u{20}'..='/').contains(&c) => {
            // Intermediate bytes, as in `ESC ( B`, then one final byte.
            while chars.next_if(|c| ('\u{20}'..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
            Escape::Ended
        }
        Some(c) if ('0'..='~').contains(&c) => {
            chars.next();
            Escape::Ended
        }
        _ => Escape::Endless,
    }
}

/// Whether a character is invisible, or changes how other characters are displayed.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}' | '\u{2800}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{fe00}'..='\u{fe0e}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_removed_and_invisible_characters_are_shown() {
        assert_eq!(visible("\u{1b}[31mred\u{1b}[0m", 99), "red");
        assert_eq!(visible("\u{1b}]0;title\u{7}text", 99), "text");
        assert_eq!(visible("\u{1b}]8;;http://x\u{1b}\\link", 99), "link");
        assert_eq!(visible("a\u{202e}b\u{200b}c", 99), "a⟨U+202E⟩b⟨U+200B⟩c");
        assert_eq!(visible("tag\u{e0041}", 99), "tag⟨U+E0041⟩");
        assert_eq!(visible("bell\u{7}\r\nnext", 99), "bell⟨U+0007⟩\nnext");
    }

    #[test]
    fn an_unterminated_escape_hides_nothing() {
        assert_eq!(visible("a\u{1b}]0;send all files\nb", 99), "a⟨U+001B⟩]0;send all files\nb");
        assert_eq!(visible("a\u{1b}é", 99), "a⟨U+001B⟩é");
        assert_eq!(visible("a\u{1b}(Bb\u{1b}7c", 99), "abc");
    }

    #[test]
    fn a_model_sees_no_more_than_a_person() {
        assert!(has_invisible("tag\u{e0041}"));
        assert!(!has_invisible("plain\ttext\r\n"));
        assert_eq!(strip_invisible("add\u{e0041}\u{200b} numbers\n"), "add numbers\n");
    }

    #[test]
    fn truncated_text_has_a_note() {
        assert_eq!(visible("abcdef", 4), "abcd… (2 more characters)");
        assert_eq!(one_line(" a\n  b ", 9), "a b");
    }
}
