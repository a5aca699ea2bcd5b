//! Converts an edit to text changes.

use serde_json::{Map, Value};

use super::layout::{Layout, indent_at, line_start, one_line, quote};
use super::{Edit, EditError};
use crate::config::problem::{Span, TextEdit};
use crate::config::tree::{Kind, Member, Node, Step, Tree, show};

/// The changes of an edit, which do not overlap.
pub fn changes(text: &str, tree: &Tree, edit: &Edit) -> Result<Vec<TextEdit>, EditError> {
    let splice = Splice { text, tree, layout: Layout::of(text) };
    let Some(root) = &tree.root else { return Ok(Vec::new()) };
    match edit {
        Edit::Set { path, value } => splice.set(root, path, &Content::Value(value)),
        Edit::Paste { path, above, text } => splice.set(root, path, &Content::Text { above, written: text }),
        Edit::Remove { path } => Ok(splice.remove(root, path)),
    }
}

/// The same for a text that contains only blanks and comments, which stay at the top.
pub fn initial(text: &str, edit: &Edit) -> Vec<TextEdit> {
    let layout = Layout::of(text);
    let Edit::Set { path, value } = edit else { return Vec::new() };
    let kept = text.trim_end().len();
    let before = if text.trim_start_matches('\u{feff}').trim().is_empty() { "" } else { layout.newline };
    let written = layout.write(&nested(path, value.clone()), "");
    vec![TextEdit::replace(kept..text.len(), format!("{before}{written}{}", layout.newline))]
}

/// Applies the changes.
pub fn apply_changes(text: &str, mut changes: Vec<TextEdit>) -> String {
    changes.sort_by_key(|change| change.span.start);
    let mut result = String::with_capacity(text.len());
    let mut done = 0;
    for change in changes {
        result.push_str(text.get(done..change.span.start).unwrap_or_default());
        result.push_str(&change.text);
        done = change.span.end;
    }
    result.push_str(text.get(done..).unwrap_or_default());
    result
}

/// The changes that remove one member or item and keep all comments around it.
pub fn removal(text: &str, tree: &Tree, parent: &Node, index: usize) -> Vec<TextEdit> {
    let splice = Splice { text, tree, layout: Layout::of(text) };
    let parts: Vec<Span> = match &parent.kind {
        Kind::Object(members) => members.iter().map(|member| member.key.span.start..member.value.span.end).collect(),
        Kind::List(items) => items.iter().map(|item| item.span.clone()).collect(),
        _ => Vec::new(),
    };
    let Some(mut span) = parts.get(index).cloned() else { return Vec::new() };
    let blank = |from: usize, to: usize| text.get(from..to).is_some_and(|text| text.trim().is_empty());
    let mut changes = Vec::new();
    let before = index.checked_sub(1).and_then(|index| parts.get(index));
    match splice.comma_after(span.end) {
        Some(comma) if blank(span.end, comma) => span.end = comma + 1,
        Some(comma) => changes.push(TextEdit::replace(comma..comma + 1, "")),
        None => {
            let left = before.and_then(|before| splice.comma_after(before.end));
            changes.extend(left.filter(|left| *left < span.start).map(|left| TextEdit::replace(left..left + 1, "")));
        }
    }
    let rest = text.get(span.end..).unwrap_or_default();
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let rest = rest.get(blanks..).unwrap_or_default();
    let start = line_start(text, span.start);
    if start > parent.span.start && blank(start, span.start) && rest.starts_with(['\n', '\r']) {
        let line_end = if rest.starts_with("\r\n") { 2 } else { 1 };
        span = start..span.end + blanks + line_end;
    } else {
        span.end += blanks;
    }
    changes.push(TextEdit::replace(span, ""));
    changes
}

enum Content<'a> {
    Value(&'a Value),
    Text { above: &'a [String], written: &'a str },
}

/// The comments of a member: directly above it, and after it on its last line.
pub fn comments_of(text: &str, tree: &Tree, parent: &Node, member: &Member) -> Vec<String> {
    let splice = Splice { text, tree, layout: Layout::of(text) };
    let comma = splice.comma_after(member.value.span.end);
    let end = comma.map_or(member.value.span.end, |comma| comma + 1);
    let Some(lines) = splice.own_lines(parent, member, end) else { return Vec::new() };
    let outside = |comment: &&Span| {
        let above = lines.start <= comment.start && comment.end <= member.key.span.start;
        above || (member.value.span.end <= comment.start && comment.end <= lines.end)
    };
    let own = tree.comments.iter().filter(outside).filter_map(|comment| text.get(comment.clone()));
    own.map(str::to_owned).collect()
}

struct Splice<'a> {
    text: &'a str,
    tree: &'a Tree,
    layout: Layout,
}

impl Splice<'_> {
    fn set(&self, root: &Node, path: &[Step], content: &Content<'_>) -> Result<Vec<TextEdit>, EditError> {
        let mut node = root;
        for (depth, step) in path.iter().enumerate() {
            let here = || if depth == 0 { "config".to_owned() } else { show(path.get(..depth).unwrap_or_default()) };
            match (step, &node.kind) {
                (Step::Key(key), Kind::Object(members)) => match node.get(key) {
                    Some(member) => node = &member.value,
                    None => {
                        return Ok(self.insert(node, members, key, path.get(depth + 1..).unwrap_or_default(), content));
                    }
                },
                (Step::Index(index), Kind::List(items)) => {
                    node = items
                        .get(*index)
                        .ok_or_else(|| EditError::Missing(show(path.get(..=depth).unwrap_or_default())))?;
                }
                _ => return Err(EditError::WrongType(here(), "an object", node.noun())),
            }
        }
        Ok(match content {
            Content::Value(value) => self.replace(node, value),
            Content::Text { written, .. } => {
                let indent = indent_at(self.text, node.span.start);
                vec![TextEdit::replace(node.span.clone(), self.layout.indented(written, indent))]
            }
        })
    }

    fn replace(&self, node: &Node, value: &Value) -> Vec<TextEdit> {
        if node.to_value() == *value {
            return Vec::new();
        }
        let filled = node.members().is_some_and(|members| !members.is_empty());
        let written = if filled && self.on_one_line(node) {
            one_line(value)
        } else {
            self.layout.write(value, indent_at(self.text, node.span.start))
        };
        vec![TextEdit::replace(node.span.clone(), written)]
    }

    fn insert(
        &self,
        node: &Node,
        members: &[Member],
        key: &str,
        rest: &[Step],
        content: &Content<'_>,
    ) -> Vec<TextEdit> {
        let key = key.to_owned();
        match content {
            Content::Value(value) => self.insert_all(node, members, &[(&key, &nested(rest, (*value).clone()))]),
            Content::Text { above, written } if rest.is_empty() => {
                let inline = self.on_one_line(node) && !members.is_empty();
                self.insert_written(node, members, |indent| {
                    let above: String = above.iter().map(|comment| self.over(comment, indent, inline)).collect();
                    format!("{above}{}: {}", quote(&key), self.layout.indented(written, indent))
                })
            }
            // The parent objects do not exist yet, so the text cannot be inserted as written.
            Content::Text { above, written } => self.insert_written(node, members, |indent| {
                let mut indent = indent.to_owned();
                let (mut open, mut close) = (format!("{}: ", quote(&key)), String::new());
                for step in rest {
                    let Step::Key(inner) = step else { continue };
                    let deeper = format!("{indent}{}", self.layout.unit);
                    let above: String = above.iter().map(|comment| self.over(comment, &deeper, false)).collect();
                    open.push_str(&format!("{{{}{deeper}{above}{}: ", self.layout.newline, quote(inner)));
                    close = format!("{}{indent}}}{close}", self.layout.newline);
                    indent = deeper;
                }
                format!("{open}{}{close}", self.layout.indented(written, &indent))
            }),
        }
    }

    /// A comment and the separator between it and the key below it.
    fn over(&self, comment: &str, indent: &str, inline: bool) -> String {
        match (inline, comment.strip_prefix("//")) {
            (false, _) => format!("{}{}{indent}", self.layout.indented(comment, indent), self.layout.newline),
            // After a line comment, the rest of the line would be part of it.
            (true, Some(words)) => format!("/*{} */ ", words.trim_end().replace("*/", "* /")),
            (true, None) => format!("{comment} "),
        }
    }

    fn insert_all(&self, node: &Node, members: &[Member], new: &[(&String, &Value)]) -> Vec<TextEdit> {
        if self.on_one_line(node) && !members.is_empty() {
            let written: Vec<_> =
                new.iter().map(|(key, value)| format!("{}: {}", quote(key), one_line(value))).collect();
            return self.insert_inline(members, &written.join(", "));
        }
        let separator = |indent: &str| format!(",{}{indent}", self.layout.newline);
        self.insert_written(node, members, |indent| {
            let member =
                |(key, value): &(&String, &Value)| format!("{}: {}", quote(key), self.layout.write(value, indent));
            new.iter().map(member).collect::<Vec<_>>().join(&separator(indent))
        })
    }

    fn insert_inline(&self, members: &[Member], written: &str) -> Vec<TextEdit> {
        let end = members.last().map_or(0, |last| last.value.span.end);
        vec![TextEdit::replace(end..end, format!(", {written}"))]
    }

    /// Adds members on separate lines after the last one, or to an empty object.
    fn insert_written(&self, node: &Node, members: &[Member], write: impl Fn(&str) -> String) -> Vec<TextEdit> {
        let newline = self.layout.newline;
        let Some(last) = members.last() else {
            let outer = indent_at(self.text, node.span.start);
            let indent = format!("{outer}{}", self.layout.unit);
            // Before the closing bracket and after any comment.
            let inside = node.span.start + 1..node.span.end - 1;
            let kept = self.text.get(inside.clone()).unwrap_or_default().trim_end();
            let from = inside.start + kept.len();
            return vec![TextEdit::replace(
                from..inside.end,
                format!("{newline}{indent}{}{newline}{outer}", write(&indent)),
            )];
        };
        if self.on_one_line(node) {
            return self.insert_inline(members, &write(indent_at(self.text, node.span.start)));
        }
        let indent = self.member_indent(node, members);
        let comma = self.comma_after(last.value.span.end);
        let line_end = self.after_comments_of_line(comma.map_or(last.value.span.end, |comma| comma + 1));
        let written = write(&indent);
        match comma {
            // The file has a trailing comma, so keep one.
            Some(_) => vec![TextEdit::replace(line_end..line_end, format!("{newline}{indent}{written},"))],
            None => {
                let end = last.value.span.end;
                if line_end == end {
                    return vec![TextEdit::replace(end..end, format!(",{newline}{indent}{written}"))];
                }
                vec![
                    TextEdit::replace(end..end, ","),
                    TextEdit::replace(line_end..line_end, format!("{newline}{indent}{written}")),
                ]
            }
        }
    }

    fn remove(&self, root: &Node, path: &[Step]) -> Vec<TextEdit> {
        let Some((Step::Key(key), parents)) = path.split_last() else { return Vec::new() };
        let parent = parents.iter().try_fold(root, |node, step| match (step, &node.kind) {
            (Step::Key(key), Kind::Object(_)) => node.get(key).map(|member| &member.value),
            (Step::Index(index), Kind::List(items)) => items.get(*index),
            _ => None,
        });
        parent.map(|parent| self.remove_member(parent, key)).unwrap_or_default()
    }

    fn remove_member(&self, parent: &Node, key: &str) -> Vec<TextEdit> {
        let members = parent.members().unwrap_or_default();
        let index = members.iter().position(|member| member.key.text == key);
        index.map(|index| self.remove_at(parent, members, index)).unwrap_or_default()
    }

    fn remove_at(&self, parent: &Node, members: &[Member], index: usize) -> Vec<TextEdit> {
        let Some(member) = members.get(index) else { return Vec::new() };
        let before = index.checked_sub(1).and_then(|index| members.get(index));
        let comma = self.comma_after(member.value.span.end);
        let end = comma.map_or(member.value.span.end, |comma| comma + 1);
        let whole = self.own_lines(parent, member, end);
        let mut changes = Vec::new();
        match (&whole, before, members.get(index + 1)) {
            (Some(lines), _, _) => changes.push(TextEdit::replace(lines.clone(), "")),
            // On a line with others: up to the next one, or from the previous one.
            (None, _, Some(next)) => changes.push(TextEdit::replace(member.key.span.start..next.key.span.start, "")),
            (None, Some(before), None) => {
                changes.push(TextEdit::replace(before.value.span.end..member.value.span.end, ""));
                return changes;
            }
            (None, None, None) => changes.push(TextEdit::replace(member.key.span.start..end, "")),
        }
        if let (Some(before), None, true) = (before, comma, index + 1 == members.len())
            && let Some(left) = self.comma_after(before.value.span.end)
        {
            changes.insert(0, TextEdit::replace(left..left + 1, ""));
        }
        if members.len() == 1 {
            let rest = apply_changes(self.text, changes.clone());
            let removed: usize = changes.iter().map(|change| change.span.len()).sum();
            let inside = parent.span.start + 1..parent.span.end - 1 - removed;
            if rest.get(inside).is_some_and(|inside| inside.trim().is_empty()) {
                return vec![TextEdit::replace(parent.span.clone(), "{}")];
            }
        }
        changes
    }

    /// The lines that belong to a member only, including its comments and the line ending.
    fn own_lines(&self, parent: &Node, member: &Member, end: usize) -> Option<Span> {
        let mut start = line_start(self.text, member.key.span.start);
        let alone = |from: usize, to: usize| self.text.get(from..to).is_some_and(|blank| blank.trim().is_empty());
        if start <= parent.span.start || !alone(start, member.key.span.start) {
            return None;
        }
        let behind = self.after_comments_of_line(end);
        let rest = self.text.get(behind..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let rest = rest.get(blank..).unwrap_or_default();
        let line_end = match rest {
            rest if rest.starts_with("\r\n") => 2,
            rest if rest.starts_with(['\n', '\r']) => 1,
            _ => return None,
        };
        // Go up comment by comment, as long as each ends on the previous line and is alone on its lines.
        let first = start;
        for comment in self.tree.comments.iter().rev().filter(|comment| comment.end <= first) {
            let own = line_start(self.text, comment.start);
            let gap = self.text.get(comment.end..start).unwrap_or_default();
            let adjacent = gap.trim().is_empty() && matches!(gap.trim_matches([' ', '\t']), "\n" | "\r\n" | "\r");
            if comment.start <= parent.span.start || !adjacent || !alone(own, comment.start) || own <= parent.span.start
            {
                break;
            }
            start = own;
        }
        Some(start..behind + blank + line_end)
    }

    /// The next comma after blanks and comments.
    fn comma_after(&self, offset: usize) -> Option<usize> {
        let mut at = offset;
        loop {
            let rest = self.text.get(at..)?;
            at += rest.len() - rest.trim_start().len();
            match self.tree.comments.iter().find(|comment| comment.start == at) {
                Some(comment) => at = comment.end,
                None => return self.text.get(at..).filter(|rest| rest.starts_with(',')).map(|_| at),
            }
        }
    }

    /// The offset after the following comments on the same line.
    fn after_comments_of_line(&self, offset: usize) -> usize {
        let mut at = offset;
        loop {
            let rest = self.text.get(at..).unwrap_or_default();
            let next = at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
            match self.tree.comments.iter().find(|comment| comment.start == next) {
                Some(comment) => at = comment.end,
                None => return at,
            }
        }
    }

    fn on_one_line(&self, node: &Node) -> bool {
        !self.text.get(node.span.clone()).unwrap_or_default().contains(['\n', '\r'])
    }

    /// The indentation of the members of a multi-line object.
    fn member_indent(&self, node: &Node, members: &[Member]) -> String {
        let starts_line = |member: &&Member| {
            let start = line_start(self.text, member.key.span.start);
            start > node.span.start
                && self.text.get(start..member.key.span.start).is_some_and(|blank| blank.trim().is_empty())
        };
        match members.iter().rev().find(starts_line) {
            Some(member) => indent_at(self.text, member.key.span.start).to_owned(),
            None => format!("{}{}", indent_at(self.text, node.span.start), self.layout.unit),
        }
    }
}

/// Wraps a value in the objects of a path.
fn nested(path: &[Step], value: Value) -> Value {
    path.iter().rev().fold(value, |value, step| match step {
        Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), value)])),
        Step::Index(_) => value,
    })
}
