//! Fixes for problems with how a server is started or reached.

use super::{member_at, member_where};
use crate::config::Span;
use crate::config::problem::{Fix, TextEdit};
use crate::config::shape::quoted;
use crate::config::shape::shell_split::shell_split;
use crate::config::tree::Member;
use crate::ide::config_view::ConfigView;

/// Moves arguments from `command` to `args`.
pub fn split_command(config: &ConfigView<'_>, span: &Span) -> Option<Fix> {
    let (entry, _) = member_where(config.tree.root.as_ref()?, span, &|member| member.value.span == *span)?;
    let command = entry.get("command").filter(|member| member.value.span == *span)?;
    let words = shell_split(command.value.text()?)?;
    let (program, rest) = words.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let written: Vec<String> = rest.iter().map(|word| quoted(word)).collect();
    let written = written.join(", ");
    let mut edits = vec![TextEdit::replace(span.clone(), quoted(program))];
    match entry.get("args") {
        None => {
            let gap = gap(config, command);
            edits = vec![TextEdit::replace(span.clone(), format!("{},{gap}\"args\": [{written}]", quoted(program)))];
        }
        Some(args) => {
            let start = args.value.span.start + 1;
            let blank = config.text.get(start..)?.starts_with(char::is_whitespace);
            let comma = match args.value.items()?.is_empty() {
                true => "",
                false if blank => ",",
                false => ", ",
            };
            edits.push(TextEdit::replace(start..start, format!("{written}{comma}")));
        }
    }
    Some(Fix { title: "split into `command` and `args`".to_owned(), edits })
}

/// Adds a port for the user to fill in.
pub fn add_port(config: &ConfigView<'_>, span: &Span) -> Option<Fix> {
    let (parent, index) = member_at(config.tree.root.as_ref()?, span)?;
    let entry = &parent.members()?.get(index)?.value;
    let kind = entry.get("type").filter(|member| member.value.text() == Some("tcp"))?;
    if entry.get("port").is_some() {
        return None;
    }
    let end = kind.value.span.end;
    let edit = TextEdit::replace(end..end, format!(",{}\"port\": 0", gap(config, kind)));
    Some(Fix { title: "add `\"port\"`".to_owned(), edits: vec![edit] })
}

/// The whitespace between two members at this position: a line break with the same indentation, or one space.
fn gap(config: &ConfigView<'_>, member: &Member) -> String {
    let before = config.text.get(..member.key.span.start).unwrap_or_default();
    match before.rfind('\n') {
        Some(end) if before.get(end..).is_some_and(|blank| blank.trim().is_empty()) => {
            let start = if before.get(..end).is_some_and(|line| line.ends_with('\r')) { end - 1 } else { end };
            before.get(start..).unwrap_or(" ").to_owned()
        }
        _ => " ".to_owned(),
    }
}
