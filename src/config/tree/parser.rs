//! From text to tree, over mistakes where that is possible.

use super::{Key, Kind, Member, Node, Tree};
use crate::config::problem::{Problem, Span, TextEdit};

/// Above this the recursion of a debug build would come near the end of a thread's stack.
const DEEPEST: usize = 256;
/// A text that is no JSON at all gives one complaint after the other.
const MOST_PROBLEMS: usize = 50;

pub fn parse(text: &str, depth: usize) -> Tree {
    let mut parser = Parser {
        text,
        at: 0,
        left: depth.min(DEEPEST),
        limit: depth.min(DEEPEST),
        problems: Vec::new(),
        comments: Vec::new(),
        stopped: false,
    };
    if text.starts_with('\u{feff}') {
        parser.at = '\u{feff}'.len_utf8();
    }
    parser.skip();
    let root = if parser.peek().is_none() {
        let here = parser.at..parser.at;
        let problem = Problem::error("syntax", here.clone(), "unexpected end of file: the file is empty")
            .help("an `mcp.json` holds an object with `servers`")
            .fix("insert an empty config", vec![TextEdit { span: here, text: "{\n  \"servers\": {}\n}\n".to_owned() }]);
        parser.stop(problem);
        None
    } else {
        Some(parser.value())
    };
    parser.skip();
    if !parser.stopped && parser.peek().is_some() {
        let span = parser.at..parser.here().end;
        parser.stop(Problem::error("syntax", span, "unexpected text after the end of the config"));
    }
    Tree { root, problems: parser.problems, comments: parser.comments, whole: !parser.stopped }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    left: usize,
    limit: usize,
    problems: Vec<Problem>,
    comments: Vec<Span>,
    /// A mistake that cannot be stepped over: everything after it would be guesswork.
    stopped: bool,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The character at the cursor.
    fn here(&self) -> Span {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    fn step(&mut self) {
        self.at = self.here().end;
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.step();
        }
        found
    }

    fn report(&mut self, problem: Problem) {
        if !self.stopped {
            self.problems.push(problem);
            self.stopped = self.problems.len() >= MOST_PROBLEMS;
        }
    }

    fn stop(&mut self, problem: Problem) {
        self.report(problem);
        self.stopped = true;
    }

    fn stop_at_end(&mut self) {
        // Where more was expected: behind the last thing that is there.
        let end = self.text.trim_end().len();
        self.stop(Problem::error("syntax", end..end, "unexpected end of file"));
    }

    fn unexpected(&mut self, wanted: &str) {
        match self.peek() {
            None => self.stop_at_end(),
            Some(c) => {
                let shown = crate::text::visible(&c.to_string(), 8);
                self.stop(Problem::error(
                    "syntax",
                    self.here(),
                    format!("unexpected `{shown}`: {wanted} was expected"),
                ));
            }
        }
    }

    /// Blanks and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.at += blank;
            let start = self.at;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
            } else if let Some(inner) = rest.strip_prefix("/*") {
                match inner.find("*/") {
                    Some(end) => self.at += end + 4,
                    None => {
                        self.at = self.text.len();
                        self.stop(Problem::error("syntax", start..start + 2, "this comment is never closed"));
                    }
                }
            } else {
                return;
            }
            self.comments.push(start..self.at);
        }
    }

    fn value(&mut self) -> Node {
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => self.nested(Self::object),
            Some('[') => self.nested(Self::list),
            Some('"') => Kind::Text(self.string()),
            Some('\'') => self.single_quoted(),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number(),
            Some(c) if c.is_alphabetic() || matches!(c, '_' | '$') => self.word(),
            _ => {
                self.unexpected("a value");
                Kind::Missing
            }
        };
        Node { span: start..self.at, kind }
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Kind) -> Kind {
        let Some(left) = self.left.checked_sub(1) else {
            let limit = self.limit;
            let message = format!("nested deeper than {limit} levels (setting limits.config_depth)");
            self.stop(Problem::error("too-deep", self.here(), message));
            return Kind::Missing;
        };
        self.left = left;
        self.step();
        let kind = inside(self);
        self.left += 1;
        kind
    }

    fn object(&mut self) -> Kind {
        let mut members: Vec<Member> = Vec::new();
        let mut comma = true;
        loop {
            self.skip();
            match self.peek() {
                _ if self.stopped => break,
                Some('}') => {
                    self.step();
                    break;
                }
                Some(',') => {
                    if comma {
                        let problem = Problem::error("syntax", self.here(), "unexpected `,`: a key was expected");
                        let edit = TextEdit { span: self.here(), text: String::new() };
                        self.report(problem.fix("remove the comma", vec![edit]));
                    }
                    comma = true;
                    self.step();
                }
                Some(c) if c == '"' || c == '\'' || c.is_alphanumeric() || matches!(c, '_' | '$') => {
                    if !comma {
                        self.missing_comma(members.last().map(|member| member.value.span.end));
                    }
                    members.push(self.member());
                    comma = false;
                }
                _ => {
                    self.unexpected(if comma { "a key or `}`" } else { "`,` or `}`" });
                    break;
                }
            }
        }
        Kind::Object(members)
    }

    fn member(&mut self) -> Member {
        let start = self.at;
        let text = match self.peek() {
            Some('"') => self.string(),
            Some('\'') => match self.single_quoted() {
                Kind::Text(text) => text,
                _ => String::new(),
            },
            _ => self.bare_key(),
        };
        let key = Key { span: start..self.at, text };
        self.skip();
        if !self.stopped && self.peek().is_none() {
            self.stop_at_end();
        }
        if self.stopped {
            return Member { key, value: Node { span: self.at..self.at, kind: Kind::Missing } };
        }
        if !self.eat(':') {
            let gap = key.span.end..self.at;
            if matches!(self.peek(), Some('}' | ',')) {
                self.report(Problem::error("syntax", key.span.clone(), format!("`{}` has no value", short(&key.text))));
                return Member { key, value: Node { span: gap.start..gap.start, kind: Kind::Missing } };
            }
            let edit = TextEdit { span: gap.start..gap.start, text: ":".to_owned() };
            let problem = Problem::error("syntax", key.span.clone(), "a `:` is missing behind this key");
            self.report(problem.fix("insert `:`", vec![edit]));
        }
        let after = self.at;
        self.skip();
        let value = match self.peek() {
            _ if self.stopped => Node { span: after..self.at, kind: Kind::Missing },
            Some('}' | ',' | ']') => {
                self.report(Problem::error("syntax", key.span.clone(), format!("`{}` has no value", short(&key.text))));
                Node { span: after..self.at, kind: Kind::Missing }
            }
            None => {
                self.stop_at_end();
                Node { span: after..self.at, kind: Kind::Missing }
            }
            _ => self.value(),
        };
        Member { key, value }
    }

    fn list(&mut self) -> Kind {
        let mut items: Vec<Node> = Vec::new();
        let mut comma = true;
        loop {
            self.skip();
            match self.peek() {
                _ if self.stopped => break,
                Some(']') => {
                    self.step();
                    break;
                }
                Some(',') => {
                    if comma {
                        let problem = Problem::error("syntax", self.here(), "unexpected `,`: a value was expected");
                        let edit = TextEdit { span: self.here(), text: String::new() };
                        self.report(problem.fix("remove the comma", vec![edit]));
                    }
                    comma = true;
                    self.step();
                }
                None => {
                    self.stop_at_end();
                    break;
                }
                Some('}' | ':') => {
                    self.unexpected("`,` or `]`");
                    break;
                }
                Some(_) => {
                    if !comma {
                        self.missing_comma(items.last().map(|item| item.span.end));
                    }
                    items.push(self.value());
                    comma = false;
                }
            }
        }
        Kind::List(items)
    }

    fn missing_comma(&mut self, end: Option<usize>) {
        let end = end.unwrap_or(self.at);
        let edit = TextEdit { span: end..end, text: ",".to_owned() };
        self.report(
            Problem::error("syntax", end.saturating_sub(1)..end, "a `,` is missing here").fix("insert `,`", vec![edit]),
        );
    }

    /// A string in double quotes. It ends at its line at the latest, so that a forgotten quote spoils one line only.
    fn string(&mut self) -> String {
        let start = self.at;
        self.step();
        let mut text = String::new();
        loop {
            let run = self.rest().find(|c: char| matches!(c, '"' | '\\') || c < ' ').unwrap_or(self.rest().len());
            text.push_str(self.text.get(self.at..self.at + run).unwrap_or_default());
            self.at += run;
            match self.peek() {
                Some('"') => {
                    self.step();
                    return text;
                }
                Some('\\') => text.extend(self.escape()),
                Some('\n' | '\r') => {
                    let problem =
                        Problem::error("syntax", start..self.at, "this string is never closed: `\"` is missing");
                    self.stop(problem);
                    return text;
                }
                Some(c) => {
                    let escape = format!("\\u{:04x}", c as u32);
                    let message = format!("a control character in a string; write `{escape}` for it");
                    let edit = TextEdit { span: self.here(), text: escape };
                    self.report(Problem::error("syntax", self.here(), message).fix("escape it", vec![edit]));
                    text.push(c);
                    self.step();
                }
                None => {
                    self.stop_at_end();
                    return text;
                }
            }
        }
    }

    fn escape(&mut self) -> Option<char> {
        let start = self.at;
        self.step();
        let escaped = self.peek()?;
        self.step();
        match escaped {
            '"' | '\\' | '/' => return Some(escaped),
            'b' => return Some('\u{8}'),
            'f' => return Some('\u{c}'),
            'n' => return Some('\n'),
            'r' => return Some('\r'),
            't' => return Some('\t'),
            'u' => {
                if let Some(c) = self.unicode_escape() {
                    return Some(c);
                }
            }
            '\n' | '\r' => self.at -= 1,
            _ => {}
        }
        self.report(Problem::error(
            "syntax",
            start..self.at,
            "unknown escape in a string; a backslash itself is `\\\\`",
        ));
        Some(char::REPLACEMENT_CHARACTER)
    }

    fn unicode_escape(&mut self) -> Option<char> {
        let high = self.four_digits()?;
        if !(0xd800..0xe000).contains(&high) {
            return char::from_u32(high);
        }
        let before = self.at;
        if high < 0xdc00 && self.eat('\\') && self.eat('u') {
            let low = self.four_digits().filter(|low| (0xdc00..0xe000).contains(low));
            if let Some(low) = low {
                return char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
        }
        self.at = before;
        None
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(number)
    }

    fn single_quoted(&mut self) -> Kind {
        let start = self.at;
        self.step();
        let rest = self.rest();
        let Some(end) = rest.find(['\'', '\n', '\r']).filter(|&end| rest.get(end..end + 1) == Some("'")) else {
            self.stop(Problem::error("syntax", start..start + 1, "strings need double quotes"));
            return Kind::Missing;
        };
        let inner = rest.get(..end).unwrap_or_default().to_owned();
        self.at += end + 1;
        let edit = TextEdit { span: start..self.at, text: serde_json::Value::from(inner.as_str()).to_string() };
        let problem = Problem::error("syntax", start..self.at, "strings need double quotes");
        self.report(problem.fix("use double quotes", vec![edit]));
        Kind::Text(inner)
    }

    fn bare_key(&mut self) -> String {
        let start = self.at;
        let word = self.take_word();
        let edit = TextEdit { span: start..self.at, text: format!("\"{word}\"") };
        let problem = Problem::error("syntax", start..self.at, "keys need double quotes");
        self.report(problem.fix("put it in quotes", vec![edit]));
        word
    }

    fn take_word(&mut self) -> String {
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.' | '+')));
        let word = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default().to_owned();
        self.at += word.len();
        word
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        let word = self.take_word();
        match word.as_str() {
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            "null" => Kind::Null,
            _ => {
                let lower = word.to_lowercase();
                let meant = ["true", "false", "null"].into_iter().find(|known| *known == lower);
                let span = start..self.at;
                let problem = Problem::error("syntax", span.clone(), format!("unexpected word `{}`", short(&word)));
                let text = meant.map_or_else(|| format!("\"{word}\""), str::to_owned);
                let title = if meant.is_some() { "write it in lower case" } else { "put it in quotes" };
                self.report(problem.help("strings need double quotes").fix(title, vec![TextEdit { span, text }]));
                Kind::Missing
            }
        }
    }

    fn number(&mut self) -> Kind {
        let start = self.at;
        let word = self.take_word_of_number();
        match serde_json::from_str(&word) {
            Ok(number) => Kind::Number(number),
            Err(_) => {
                self.report(Problem::error(
                    "syntax",
                    start..self.at,
                    format!("`{}` is no number in JSON", short(&word)),
                ));
                Kind::Missing
            }
        }
    }

    fn take_word_of_number(&mut self) -> String {
        let sign = if self.eat('-') { "-" } else { "" };
        format!("{sign}{}", self.take_word())
    }
}

fn short(text: &str) -> String {
    crate::text::one_line(text, 40)
}
