//! Parses values without children: strings, numbers and keywords.

use super::Kind;
use super::parser::{Parser, short};
use crate::config::problem::{Code, Problem, TextEdit};

impl Parser<'_> {
    /// A string in double quotes. It ends at the end of the line, so that a missing quote only affects one line.
    pub fn string(&mut self) -> String {
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
                    let problem = Problem::new(Code::Syntax, start..self.at, "unterminated string: `\"` is missing");
                    self.stop(problem);
                    return text;
                }
                Some(c) => {
                    let escape = format!("\\u{:04x}", c as u32);
                    let message = format!("strings must not contain control characters; write `{escape}` instead");
                    let edit = TextEdit { span: self.here(), text: escape };
                    self.report(Problem::new(Code::Syntax, self.here(), message).fix("escape it", vec![edit]));
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
        self.report(Problem::new(
            Code::Syntax,
            start..self.at,
            "unknown escape sequence in a string; write a backslash as `\\\\`",
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

    pub fn single_quoted(&mut self) -> Kind {
        let start = self.at;
        self.step();
        let rest = self.rest();
        let Some(end) = rest.find(['\'', '\n', '\r']).filter(|&end| rest.get(end..end + 1) == Some("'")) else {
            self.stop(Problem::new(Code::Syntax, start..start + 1, "strings need double quotes"));
            return Kind::Missing;
        };
        let inner = rest.get(..end).unwrap_or_default().to_owned();
        self.at += end + 1;
        let edit = TextEdit { span: start..self.at, text: serde_json::Value::from(inner.as_str()).to_string() };
        let problem = Problem::new(Code::Syntax, start..self.at, "strings need double quotes");
        self.report(problem.fix("use double quotes", vec![edit]));
        Kind::Text(inner)
    }

    pub fn bare_key(&mut self) -> String {
        let start = self.at;
        let word = self.take_word();
        let edit = TextEdit { span: start..self.at, text: format!("\"{word}\"") };
        let problem = Problem::new(Code::Syntax, start..self.at, "keys need double quotes");
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

    pub fn word(&mut self) -> Kind {
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
                let problem = Problem::new(Code::Syntax, span.clone(), format!("unexpected word `{}`", short(&word)));
                let text = meant.map_or_else(|| format!("\"{word}\""), str::to_owned);
                let title = if meant.is_some() { "write it in lower case" } else { "put it in quotes" };
                self.report(problem.help("strings need double quotes").fix(title, vec![TextEdit { span, text }]));
                Kind::Missing
            }
        }
    }

    pub fn number(&mut self) -> Kind {
        let start = self.at;
        let word = self.take_word_of_number();
        match serde_json::from_str(&word) {
            Ok(number) => Kind::Number(number),
            Err(_) => {
                self.report(Problem::new(
                    Code::Syntax,
                    start..self.at,
                    format!("`{}` is not a valid JSON number", short(&word)),
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
