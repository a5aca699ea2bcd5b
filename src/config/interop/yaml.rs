//! YAML files: reads them as JSON values, and edits them by lines, so that comments and order stay. Each edit is checked by
//! parsing the result. If more than the entry would change, the text to write is part of the error.

use serde_json::{Map, Value};

use crate::config::edit::EditError;

/// The whole file as a value.
pub fn value(text: &str) -> Result<Value, String> {
    match serde_yaml::from_str(text).map_err(|error| error.to_string())? {
        Value::Null => Ok(Value::Object(Map::new())),
        value => Ok(value),
    }
}

/// The key at the top of a file that contains the servers: an object, or a list of entries with a `name`.
#[derive(Clone, Copy)]
pub struct Section {
    pub key: &'static str,
    pub is_list: bool,
}

/// The lines of a section.
struct Block {
    header: usize,
    /// The line after the last one with content.
    end: usize,
    /// The indentation of its entries.
    indent: usize,
}

impl Section {
    /// Adds an entry at the end of the section, or replaces the one with the same name.
    pub fn put(
        self,
        text: &str,
        name: &str,
        entry: &Map<String, Value>,
        comments: &[String],
    ) -> Result<String, EditError> {
        let kept = self.remove(text, name)?;
        let mut lines: Vec<String> = kept.split_inclusive('\n').map(str::to_owned).collect();
        if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
            last.push('\n');
        }
        let block = self.block(&lines).unwrap_or_else(|| {
            lines.push(format!("{}:\n", self.key));
            Block { header: lines.len() - 1, end: lines.len(), indent: 2 }
        });
        if let Some(header) = lines.get_mut(block.header).filter(|header| is_empty_value(header, self.key)) {
            *header = format!("{}:\n", self.key);
        }
        lines.insert(block.end, self.entry(block.indent, name, entry, comments));
        let mut expected = parsed(&kept)?;
        self.add(&mut expected, name, entry);
        let by_hand = || format!("{}:\n{}", self.key, self.entry(2, name, entry, comments));
        checked(lines.concat(), &expected, by_hand)
    }

    /// Removes an entry, and the section if it is empty then.
    pub fn remove(self, text: &str, name: &str) -> Result<String, EditError> {
        let mut expected = parsed(text)?;
        let Some(index) = self.take(&mut expected, name) else { return Ok(text.to_owned()) };
        let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let by_hand = || format!("remove `{name}` from `{}`", self.key);
        let block = self.block(&lines).ok_or_else(|| EditError::ByHand(by_hand()))?;
        let is_content = |line: &String| !is_blank(line);
        let mut starts: Vec<usize> = Vec::new();
        for (number, line) in lines.iter().enumerate().take(block.end).skip(block.header + 1) {
            if is_content(line) && indent_of(line) <= block.indent {
                starts.push(number);
            }
        }
        let start = starts.get(index).copied().unwrap_or(block.end);
        let next = starts.get(index + 1).copied().unwrap_or(block.end);
        // Comments before the next entry belong to that one.
        let length = lines.iter().take(next).skip(start).rposition(is_content).map_or(0, |last| last + 1);
        lines.drain(start..start + length);
        if starts.len() == 1 {
            lines.remove(block.header);
        }
        checked(lines.concat(), &expected, by_hand)
    }

    fn block(self, lines: &[String]) -> Option<Block> {
        let header =
            lines.iter().position(|line| line.strip_prefix(self.key).is_some_and(|rest| rest.starts_with(':')))?;
        let mut block = Block { header, end: header + 1, indent: 0 };
        for (number, line) in lines.iter().enumerate().skip(header + 1).filter(|(_, line)| !is_blank(line)) {
            let is_item = self.is_list && line.trim_start().starts_with('-');
            if indent_of(line) == 0 && !is_item {
                break;
            }
            if block.end == header + 1 {
                block.indent = indent_of(line);
            }
            block.end = number + 1;
        }
        if block.end == header + 1 {
            block.indent = 2;
        }
        Some(block)
    }

    fn entry(self, indent: usize, name: &str, entry: &Map<String, Value>, comments: &[String]) -> String {
        let (outer, inner) = (" ".repeat(indent), " ".repeat(indent + 2));
        let first = if self.is_list {
            format!("{outer}- name: {}\n", flow(&name.into()))
        } else {
            format!("{outer}{}:\n", key(name))
        };
        let comments = comments.iter().map(|comment| format!("{inner}# {comment}\n"));
        let rest = entry.iter().filter(|(key, _)| !self.is_list || *key != "name");
        let rest = rest.map(|(name, value)| format!("{inner}{}: {}\n", key(name), flow(value)));
        [first].into_iter().chain(comments).chain(rest).collect()
    }

    fn add(self, root: &mut Value, name: &str, entry: &Map<String, Value>) {
        let mut entry = entry.clone();
        let Value::Object(root) = root else { return };
        let section = root.entry(self.key).or_insert(Value::Null);
        if self.is_list {
            entry.insert("name".to_owned(), name.into());
            match section {
                Value::Array(items) => items.push(entry.into()),
                other => *other = Value::Array(vec![entry.into()]),
            }
        } else {
            match section {
                Value::Object(members) => drop(members.insert(name.to_owned(), entry.into())),
                other => *other = Value::Object(Map::from_iter([(name.to_owned(), entry.into())])),
            }
        }
    }

    /// Removes the entry from the value. Returns its position.
    fn take(self, root: &mut Value, name: &str) -> Option<usize> {
        let section = root.get_mut(self.key)?;
        let (index, is_last) = match section {
            Value::Array(items) if self.is_list => {
                let index = items.iter().position(|item| item.get("name").and_then(Value::as_str) == Some(name))?;
                items.remove(index);
                (index, items.is_empty())
            }
            Value::Object(members) if !self.is_list => {
                let index = members.keys().position(|known| known == name)?;
                members.shift_remove(name);
                (index, members.is_empty())
            }
            _ => return None,
        };
        if is_last && let Value::Object(root) = root {
            root.shift_remove(self.key);
        }
        Some(index)
    }
}

fn parsed(text: &str) -> Result<Value, EditError> {
    value(text).map_err(EditError::Broken)
}

fn checked(text: String, expected: &Value, by_hand: impl Fn() -> String) -> Result<String, EditError> {
    if value(&text).as_ref() == Ok(expected) { Ok(text) } else { Err(EditError::ByHand(by_hand())) }
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Whether a line says that its section is empty.
fn is_empty_value(line: &str, key: &str) -> bool {
    let value = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(':')).map(str::trim);
    value.is_some_and(|value| ["{}", "[]", "null", "~"].contains(&value))
}

/// A key, in quotes if it could be read as something else.
fn key(name: &str) -> String {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && !words.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { flow(&name.into()) }
}

/// A value on one line. JSON is also YAML.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}: {}", flow(&name.as_str().into()), flow(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAP: Section = Section { key: "extensions", is_list: false };
    const LIST: Section = Section { key: "mcpServers", is_list: true };

    fn entry() -> Map<String, Value> {
        json!({ "cmd": "a: b", "args": ["#"] }).as_object().cloned().unwrap()
    }

    #[test]
    fn an_entry_is_added_and_removed_without_touching_other_lines() {
        let samples = [
            (
                MAP,
                "# mine\nmodel: x # yes\nextensions:\n    dev: # kept\n        enabled: true\n\n# about z\nz: [1,\n  2]\n",
            ),
            (MAP, "model: x\n"),
            (MAP, "extensions:\n  dev: {enabled: true}\n  # the last one\n  \"two\":\n    enabled: false\n"),
            (LIST, "name: a\nmcpServers:\n- name: one\n  command: x\n# end\nrules: []\n"),
            (
                LIST,
                "mcpServers:\n  - command: x\n    name: one # first\n\n  # second\n  - name: two\n    command: >-\n      y\n",
            ),
        ];
        for (section, before) in samples {
            let after = section.put(before, "new", &entry(), &["a note".to_owned()]).unwrap();
            assert!(after.contains("# a note\n"), "{after}");
            assert_eq!(section.put(&after, "new", &entry(), &["a note".to_owned()]).unwrap(), after);
            assert_eq!(section.remove(&after, "new").unwrap(), before);
            assert_eq!(section.remove(before, "nobody").unwrap(), before);
        }
        let after = LIST.remove(samples[4].1, "one").unwrap();
        assert_eq!(after, "mcpServers:\n\n  # second\n  - name: two\n    command: >-\n      y\n");
        let filled = MAP.put("extensions: {}\n", "new", &entry(), &[]).unwrap();
        assert_eq!(filled, "extensions:\n  new:\n    cmd: \"a: b\"\n    args: [\"#\"]\n");
    }

    #[test]
    fn a_file_that_cannot_be_edited_by_lines_is_not_changed() {
        let inline = MAP.put("extensions: { dev: { enabled: true } }\n", "new", &entry(), &[]);
        assert!(matches!(&inline, Err(EditError::ByHand(text)) if text.contains("  new:\n    cmd:")), "{inline:?}");
        assert!(matches!(MAP.remove("extensions: { dev: {} }\n", "dev"), Err(EditError::ByHand(_))));
        assert!(matches!(MAP.put("a: [\n", "new", &entry(), &[]), Err(EditError::Broken(_))));
        // The document ends before the end of the file.
        assert!(MAP.put("a: 1\n...\n", "new", &entry(), &[]).is_err());
    }
}
