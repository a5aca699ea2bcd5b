//! Relative paths of the user's own servers. These servers run in private folders, so such a path does not mean the
//! workspace.

use std::ops::Range;
use std::path::Path;

use super::launch::LaunchEntry;
use super::reader::{Reader, quoted};
use crate::config::problem::{Code, Problem, Span, TextEdit};
use crate::config::spec::Stdio;
use crate::config::tree::Node;
use crate::text::one_line;

/// Reports relative paths, unless `cwd` says where they start. `nodes` are those of the arguments.
pub fn report(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>, stdio: &Stdio, command: &Span, nodes: &[&Node]) {
    if let (Some(member), Some(cwd)) = (entry.fields.get("cwd"), &stdio.cwd) {
        if Path::new(cwd).is_relative() && !cwd.starts_with(['~', '$']) {
            report_one(reader, &member.value.span, cwd, 0..cwd.len());
        }
        return;
    }
    let texts = nodes.iter().zip(&stdio.args).map(|(node, text)| (&node.span, text));
    for (span, text) in std::iter::once((command, &stdio.command)).chain(texts) {
        if let Some(path) = relative_part(text) {
            report_one(reader, span, text, path);
        }
    }
}

fn report_one(reader: &mut Reader<'_>, span: &Span, written: &str, path: Range<usize>) {
    let (before, path) = written.split_at(path.start);
    let better = match path {
        "." | "./" => "${workspaceFolder}".to_owned(),
        _ => format!("${{workspaceFolder}}/{}", path.strip_prefix("./").unwrap_or(path)),
    };
    let message = format!(
        "`{}` is relative to a private folder: your own servers do not run in the workspace",
        one_line(path, 80)
    );
    let edit = TextEdit::replace(span.clone(), quoted(&format!("{before}{better}")));
    reader.report(
        Problem::new(Code::RelativePath, span.clone(), message)
            .help("write `${workspaceFolder}` for the workspace, or set `cwd`")
            .fix(format!("change to `{}`", one_line(&better, 80)), vec![edit]),
    );
}

/// The part of an argument that is a relative path: `./data` in `--root=./data`.
fn relative_part(argument: &str) -> Option<Range<usize>> {
    let start = if argument.starts_with('-') { argument.find('=')? + 1 } else { 0 };
    let path = argument.get(start..)?;
    let relative = matches!(path, "." | "..") || path.starts_with("./") || path.starts_with("../");
    relative.then_some(start..argument.len())
}
