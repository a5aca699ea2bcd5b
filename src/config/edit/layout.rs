//! The layout of a file, so that new text matches the existing text.

use serde_json::Value;

use crate::config::tree::Node;

/// Lists of scalars stay on one line up to this length.
const LONGEST_LINE: usize = 80;

pub struct Layout {
    /// One step of indentation.
    pub unit: String,
    pub newline: &'static str,
}

impl Layout {
    pub fn of(text: &str) -> Self {
        let newline = match text.find(['\n', '\r']).and_then(|at| text.get(at..)) {
            Some(rest) if rest.starts_with("\r\n") => "\r\n",
            Some(rest) if rest.starts_with('\r') => "\r",
            _ => "\n",
        };
        let indented = text.split(['\n', '\r']).map(blanks).find(|blanks| !blanks.is_empty());
        let unit = match indented {
            Some(blanks) if blanks.starts_with('\t') => "\t".to_owned(),
            Some(blanks) if blanks.len() <= 8 => blanks.to_owned(),
            _ => "  ".to_owned(),
        };
        Self { unit, newline }
    }

    /// Writes a value on several lines. All but the first are indented by `indent`.
    pub fn write(&self, value: &Value, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let block = |open: &str, lines: Vec<String>, close: &str| {
            let newline = self.newline;
            let lines = lines.join(&format!(",{newline}{inner}"));
            format!("{open}{newline}{inner}{lines}{newline}{indent}{close}")
        };
        match value {
            Value::Object(map) if !map.is_empty() => {
                let line = |(key, value): (&String, &Value)| format!("{}: {}", quote(key), self.write(value, &inner));
                block("{", map.iter().map(line).collect(), "}")
            }
            Value::Array(items) if !items.is_empty() => {
                let line = one_line(value);
                let scalars = items.iter().all(|item| !item.is_object() && !item.is_array());
                if scalars && line.len() + indent.len() <= LONGEST_LINE {
                    return line;
                }
                block("[", items.iter().map(|item| self.write(item, &inner)).collect(), "]")
            }
            _ => one_line(value),
        }
    }

    /// The text of a node without its indentation.
    pub fn unindented(&self, text: &str, node: &Node) -> String {
        let written = text.get(node.span.clone()).unwrap_or_default();
        let indent = indent_at(text, node.span.start);
        lines(written).map(|line| line.strip_prefix(indent).unwrap_or(line)).collect::<Vec<_>>().join("\n")
    }

    /// Indents a text from [`Layout::unindented`], perhaps of another file, in the style of this file.
    pub fn indented(&self, written: &str, indent: &str) -> String {
        let theirs = Self::of(written).unit;
        let mut shown = String::new();
        for (number, line) in written.split('\n').enumerate() {
            if number > 0 {
                shown.push_str(self.newline);
                let depth = if theirs.is_empty() { 0 } else { blanks(line).matches(theirs.as_str()).count() };
                let rest = line.get(depth * theirs.len()..).unwrap_or(line);
                if !rest.trim().is_empty() {
                    shown.push_str(indent);
                    shown.push_str(&self.unit.repeat(depth));
                }
                shown.push_str(rest);
            } else {
                shown.push_str(line);
            }
        }
        shown
    }
}

/// A value on one line.
pub fn one_line(value: &Value) -> String {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let member = |(key, value): (&String, &Value)| format!("{}: {}", quote(key), one_line(value));
            format!("{{ {} }}", map.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

pub fn quote(key: &str) -> String {
    Value::from(key).to_string()
}

/// The indentation of the line at an offset.
pub fn indent_at(text: &str, offset: usize) -> &str {
    blanks(text.get(line_start(text, offset)..).unwrap_or_default())
}

pub fn line_start(text: &str, offset: usize) -> usize {
    text.get(..offset).and_then(|before| before.rfind(['\n', '\r'])).map_or(0, |at| at + 1)
}

fn blanks(line: &str) -> &str {
    let end = line.find(|c| !matches!(c, ' ' | '\t')).unwrap_or(line.len());
    line.get(..end).unwrap_or_default()
}

/// Splits a text at any line ending.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}
