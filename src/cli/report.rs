//! Shows problems like a compiler does: the line, carets under the exact range, and help.
//!
//! A crate such as `annotate-snippets` would only replace the frame: before a line is shown, its secrets are masked, its
//! invisible characters are made visible, and a line of a megabyte is truncated, which is most of the code here.

use std::path::Path;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::style::Style;
use crate::config::{Code, Problem, Severity, Span};
use crate::text::{looks_secret, mask, one_line, visible};

/// How many characters are shown before, inside and after the range: a file may be a single line of a megabyte.
const CONTEXT: usize = 100;
/// How many bytes around the range are searched for secrets. Far more than is shown, so that no secret is shown in part.
const SEARCHED: usize = 16 << 10;
const LONGEST_MESSAGE: usize = 1_000;
const TAB: &str = "    ";

/// All problems of one file.
pub(super) struct Report<'a> {
    name: String,
    text: &'a str,
    /// Plain-text secrets. They are never shown, not even in the line of another problem.
    secrets: Vec<Span>,
    style: Style,
}

/// A problem as shown. Lines and columns are counted from one and in characters.
pub(super) struct Located {
    pub message: String,
    pub help: Option<String>,
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
}

/// A position, counted from one and in characters.
#[derive(Debug, PartialEq, Eq)]
struct Position {
    line: usize,
    column: usize,
    start_of_line: usize,
    end_of_line: usize,
}

impl<'a> Report<'a> {
    pub fn new(path: &Path, text: &'a str, problems: &[Problem], style: Style) -> Self {
        let here = std::env::current_dir().ok();
        let near = here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
        let secrets = problems.iter().filter(|problem| matches!(problem.code, Code::RawSecret | Code::SecretToHost));
        Self {
            name: one_line(&near.display().to_string(), LONGEST_MESSAGE),
            text,
            secrets: secrets.map(|problem| problem.span.clone()).collect(),
            style,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn render(&self, problem: &Problem) -> String {
        let (word, color) = match problem.severity {
            Severity::Error => ("error", "1;31"),
            Severity::Warning => ("warning", "1;33"),
            Severity::Information => ("note", "1;36"),
            Severity::Hint => ("hint", "1;36"),
        };
        let blue = |text: &str| self.style.ansi("1;34", text);
        let head = self.style.ansi(color, &format!("{word}[{}]", problem.code));
        let mut shown = format!("{head}: {}\n", self.message(&problem.message));
        let position = position(self.text, problem.span.start);
        let number = position.line.to_string();
        let margin = " ".repeat(number.len());
        if self.text.is_empty() {
            shown.push_str(&format!("{margin}{} {}\n", blue("-->"), self.name));
        } else {
            let (line, before, width) = self.line(&position, &problem.span);
            let carets = self.style.ansi(color, &"^".repeat(width));
            shown.push_str(&format!("{margin}{} {}:{}:{}\n", blue("-->"), self.name, position.line, position.column));
            shown.push_str(&format!("{margin} {}\n", blue("|")));
            shown.push_str(&format!("{} {line}\n", blue(&format!("{number} |"))));
            shown.push_str(&format!("{margin} {} {}{carets}\n", blue("|"), " ".repeat(before)));
        }
        for related in &problem.related {
            let file = one_line(&related.file.display().to_string(), LONGEST_MESSAGE);
            shown.push_str(&format!("{margin} {} note: {} ({file})\n", blue("="), self.message(&related.message)));
        }
        if let Some(help) = &problem.help {
            shown.push_str(&format!("{margin} {} help: {}\n", blue("="), self.message(help)));
        }
        shown
    }

    pub fn json(&self, problem: &Problem) -> Value {
        let Located { message, help, line, column, end_line, end_column } = self.located(problem);
        let mut value = json!({
            "severity": problem.severity.as_str(),
            "code": problem.code,
            "message": message,
            "line": line,
            "column": column,
            "endLine": end_line,
            "endColumn": end_column,
        });
        if let (Some(help), Some(object)) = (help, value.as_object_mut()) {
            object.insert("help".to_owned(), help.into());
        }
        value
    }

    /// The position of a problem, and its texts without secrets and invisible characters.
    pub fn located(&self, problem: &Problem) -> Located {
        let (start, end) = (position(self.text, problem.span.start), position(self.text, problem.span.end));
        Located {
            message: self.message(&problem.message),
            help: problem.help.as_deref().map(|help| self.message(help)),
            line: start.line,
            column: start.column,
            end_line: end.line,
            end_column: end.column,
        }
    }

    fn message(&self, text: &str) -> String {
        visible(&mask(text), LONGEST_MESSAGE)
    }

    /// The line as shown, the width of the text before the range, and the width of the range.
    fn line(&self, position: &Position, span: &Span) -> (String, usize, usize) {
        let start = clamp(self.text, span.start).clamp(position.start_of_line, position.end_of_line);
        // Only the first line of a longer range is shown.
        let end = clamp(self.text, span.end).clamp(start, position.end_of_line);
        let far = |from: usize| clamp(self.text, from + SEARCHED);
        let begin = clamp(self.text, start.saturating_sub(SEARCHED)).max(position.start_of_line);
        let before = keep_end(self.shown(begin..start), CONTEXT);
        let within = keep_start(self.shown(start..end.min(far(start))), CONTEXT);
        let after = keep_start(self.shown(end..position.end_of_line.min(far(end))), CONTEXT);
        let (width_before, width) = (before.width(), within.width().max(1));
        (format!("{before}{within}{after}"), width_before, width)
    }

    /// A part of the text, safe for a terminal and without secrets.
    fn shown(&self, piece: Span) -> String {
        let mut shown = String::new();
        let mut from = piece.start;
        for secret in &self.secrets {
            let (start, end) = (clamp(self.text, secret.start).max(from), clamp(self.text, secret.end).min(piece.end));
            if start < end {
                shown.push_str(self.text.get(from..start).unwrap_or_default());
                shown.push_str("•••");
                from = end;
            }
        }
        shown.push_str(self.text.get(from..piece.end).unwrap_or_default());
        visible(&mask(&without_tokens(&shown)), usize::MAX).replace('\t', TAB)
    }
}

/// Hides secrets in well-known formats: a file that cannot be parsed has no problems that locate its secrets.
fn without_tokens(text: &str) -> String {
    let part_of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let piece = |piece: &str| {
        let (token, rest) = piece.split_at(piece.find(|c| !part_of_token(c)).unwrap_or(piece.len()));
        if looks_secret(token) { format!("•••{rest}") } else { piece.to_owned() }
    };
    text.split_inclusive(|c| !part_of_token(c)).map(piece).collect()
}

fn position(text: &str, offset: usize) -> Position {
    let offset = clamp(text, offset);
    let (before, after) = text.split_at(offset);
    // A line ends with LF, CR LF or CR. A position between CR and LF is the end of that line.
    let breaks = |text: &str| text.matches(['\n', '\r']).count() - text.matches("\r\n").count();
    let split = before.ends_with('\r') && after.starts_with('\n');
    let complete = if split { before.trim_end_matches('\r') } else { before };
    let start_of_line = complete.rfind(['\n', '\r']).map_or(0, |found| found + 1);
    let end_of_line = text
        .get(complete.len()..)
        .and_then(|rest| rest.find(['\n', '\r']))
        .map_or(text.len(), |found| complete.len() + found);
    let column = text.get(start_of_line..complete.len()).unwrap_or_default().chars().count() + 1;
    Position { line: breaks(complete) + 1, column, start_of_line, end_of_line }
}

/// The nearest character boundary.
fn clamp(text: &str, offset: usize) -> usize {
    text.floor_char_boundary(offset)
}

fn keep_end(text: String, most: usize) -> String {
    match text.chars().count().checked_sub(most) {
        None | Some(0) => text,
        Some(cut) => "…".chars().chain(text.chars().skip(cut)).collect(),
    }
}

fn keep_start(text: String, most: usize) -> String {
    if text.chars().count() <= most { text } else { text.chars().take(most).chain("…".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows a problem at the range between two `$0`.
    fn shown(marked: &str) -> String {
        let start = marked.find("$0").unwrap();
        let end = marked.rfind("$0").unwrap();
        let text = marked.replace("$0", "");
        let span = start..end.saturating_sub(2).max(start);
        let problem = Problem::new(Code::BadPort, span, "this is odd").help("make it even");
        let secret = text.find("sk-").map(|at| Problem::new(Code::RawSecret, at..at + 9, "raw"));
        let problems: Vec<_> = secret.into_iter().collect();
        Report::new(Path::new("/mcp.json"), &text, &problems, Style::plain()).render(&problem)
    }

    #[test]
    fn carets_are_under_the_exact_range() {
        insta::assert_snapshot!(shown("{\n  $0\"comand\"$0: 1\n}"), @r#"
        error[bad-port]: this is odd
         --> /mcp.json:2:3
          |
        2 |   "comand": 1
          |   ^^^^^^^^
          = help: make it even
        "#);
    }

    #[test]
    fn wide_characters_and_tabs_do_not_move_the_caret() {
        insta::assert_snapshot!(shown("{\n\t\"名前🦀é\": $0\"値\"$0\n}"), @r#"
        error[bad-port]: this is odd
         --> /mcp.json:2:10
          |
        2 |     "名前🦀é": "値"
          |                ^^^^
          = help: make it even
        "#);
    }

    #[test]
    fn the_end_of_a_file_can_be_pointed_at() {
        insta::assert_snapshot!(shown("{ \"a\": 1$0$0"), @r#"
        error[bad-port]: this is odd
         --> /mcp.json:1:9
          |
        1 | { "a": 1
          |         ^
          = help: make it even
        "#);
    }

    #[test]
    fn a_range_of_several_lines_is_shown_in_its_first_line() {
        insta::assert_snapshot!(shown("{ \"a\": $0{\r\n \"b\": 1\r\n}$0 }"), @r#"
        error[bad-port]: this is odd
         --> /mcp.json:1:8
          |
        1 | { "a": {
          |        ^
          = help: make it even
        "#);
    }

    #[test]
    fn a_line_of_a_megabyte_is_truncated_around_the_range() {
        let long = "x".repeat(1 << 20);
        insta::assert_snapshot!(shown(&format!("{long} $0here$0 {long}")), @r"
        error[bad-port]: this is odd
         --> /mcp.json:1:1048578
          |
        1 | …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx here xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
          |                                                                                                      ^^^^
          = help: make it even
        ");
    }

    #[test]
    fn secrets_and_escapes_in_the_line_are_not_shown() {
        insta::assert_snapshot!(shown("\"KEY\": \"sk-123456\", \u{1b}[31m\u{202e} $0x$0"), @r#"
        error[bad-port]: this is odd
         --> /mcp.json:1:28
          |
        1 | "KEY": "•••", ⟨U+001B⟩[31m⟨U+202E⟩ x
          |                                    ^
          = help: make it even
        "#);
    }

    #[test]
    fn a_token_in_a_file_that_cannot_be_parsed_is_not_shown() {
        let line = format!("\"KEY\": \"ghp_{}\" $0}}$0", "0123456789".repeat(4));
        assert!(shown(&line).contains("\"KEY\": \"•••\" }"));
    }

    #[test]
    fn lines_are_counted_with_all_line_endings() {
        let at = |text: &str, offset| {
            let position = position(text, offset);
            (position.line, position.column)
        };
        assert_eq!(at("a\rb\r\nc\nd", 0), (1, 1));
        assert_eq!(at("a\rb\r\nc\nd", 2), (2, 1));
        assert_eq!(at("a\rb\r\nc\nd", 4), (2, 2));
        assert_eq!(at("a\rb\r\nc\nd", 5), (3, 1));
        assert_eq!(at("a\rb\r\nc\nd", 7), (4, 1));
        assert_eq!(at("é", 1), (1, 1));
        assert_eq!(at("", 9), (1, 1));
    }

    #[test]
    fn colors_do_not_change_the_text() {
        let problem = Problem::new(Code::BadPort, 0..1, "this is odd");
        let of = |style| Report::new(Path::new("/mcp.json"), "{}", &[], style).render(&problem);
        let colored = of(Style::colored());
        assert!(colored.contains("\u{1b}[1;31m"));
        assert_eq!(crate::text::without_colors(&colored), of(Style::plain()));
    }
}
