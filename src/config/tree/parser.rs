//! The parser. It recovers from mistakes if possible.

use super::{Key, Kind, Member, Node, Tree};
use crate::config::problem::{Code, Problem, Span, TextEdit};

/// Deeper recursion could overflow the stack in a debug build.
const MAX_DEPTH: usize = 256;
/// A text that is not JSON at all could cause countless problems.
const MAX_PROBLEMS: usize = 50;

pub fn parse(text: &str, depth: usize) -> Tree {
    let mut parser = Parser {
        text,
        at: 0,
        left: depth.min(MAX_DEPTH),
        limit: depth.min(MAX_DEPTH),
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
        let problem = Problem::new(Code::Syntax, here.clone(), "the file is empty")
            .help("an `mcp.json` file contains an object with `servers`")
            .fix("insert an empty config", vec![TextEdit { span: here, text: "{\n  \"servers\": {}\n}\n".to_owned() }]);
        parser.stop(problem);
        None
    } else {
        Some(parser.value())
    };
    parser.skip();
    if !parser.stopped && parser.peek().is_some() {
        let span = parser.at..parser.here().end;
        parser.stop(Problem::new(Code::Syntax, span, "unexpected text after the end of the config"));
    }
    Tree { root, problems: parser.problems, comments: parser.comments, whole: !parser.stopped }
}

pub(super) struct Parser<'a> {
    pub text: &'a str,
    pub at: usize,
    left: usize,
    limit: usize,
    problems: Vec<Problem>,
    comments: Vec<Span>,
    /// Set after a mistake that the parser cannot recover from.
    stopped: bool,
}

impl Parser<'_> {
    pub fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The character at the cursor.
    pub fn here(&self) -> Span {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    pub fn step(&mut self) {
        self.at = self.here().end;
    }

    pub fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.step();
        }
        found
    }

    pub fn report(&mut self, problem: Problem) {
        if !self.stopped {
            self.problems.push(problem);
            self.stopped = self.problems.len() >= MAX_PROBLEMS;
        }
    }

    pub fn stop(&mut self, problem: Problem) {
        self.report(problem);
        self.stopped = true;
    }

    pub fn stop_at_end(&mut self) {
        // Report it after the last character that is not blank.
        let end = self.text.trim_end().len();
        self.stop(Problem::new(Code::Syntax, end..end, "unexpected end of file"));
    }

    fn unexpected(&mut self, expected: &str) {
        match self.peek() {
            None => self.stop_at_end(),
            Some(c) => {
                let shown = crate::text::visible(&c.to_string(), 8);
                self.stop(Problem::new(Code::Syntax, self.here(), format!("expected {expected}, found `{shown}`")));
            }
        }
    }

    /// Skips blanks and comments.
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
                        self.stop(Problem::new(
                            Code::Syntax,
                            start..start + 2,
                            "unterminated comment: `*/` is missing",
                        ));
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
            let message = format!("nested deeper than {limit} levels (setting `limits.config-depth`)");
            self.stop(Problem::new(Code::TooDeep, self.here(), message));
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
                        self.extra_comma("expected a key, found `,`");
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
                self.no_value(&key);
                return Member { key, value: Node { span: gap.start..gap.start, kind: Kind::Missing } };
            }
            let edit = TextEdit { span: gap.start..gap.start, text: ":".to_owned() };
            let problem = Problem::new(Code::Syntax, key.span.clone(), "missing `:` after this key");
            self.report(problem.fix("insert `:`", vec![edit]));
        }
        let after = self.at;
        self.skip();
        let value = match self.peek() {
            _ if self.stopped => Node { span: after..self.at, kind: Kind::Missing },
            Some('}' | ',' | ']') => {
                self.no_value(&key);
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
                        self.extra_comma("expected a value, found `,`");
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

    fn extra_comma(&mut self, message: &str) {
        let edit = TextEdit { span: self.here(), text: String::new() };
        self.report(Problem::new(Code::Syntax, self.here(), message).fix("remove the comma", vec![edit]));
    }

    fn no_value(&mut self, key: &Key) {
        let message = format!("`{}` has no value", short(&key.text));
        self.report(Problem::new(Code::Syntax, key.span.clone(), message));
    }

    fn missing_comma(&mut self, end: Option<usize>) {
        let end = end.unwrap_or(self.at);
        let edit = TextEdit { span: end..end, text: ",".to_owned() };
        // The character before it, which may have several bytes.
        let last = self.text.floor_char_boundary(end.saturating_sub(1));
        self.report(Problem::new(Code::Syntax, last..end, "missing `,`").fix("insert `,`", vec![edit]));
    }
}

pub(super) fn short(text: &str) -> String {
    crate::text::one_line(text, 40)
}
