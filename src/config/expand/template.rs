//! A text cut into plain parts and `${…}` references. Only braces count: `$NAME`, `$(…)` and backquotes are text.

use std::ops::Range;

/// What a `${…}` refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `${NAME}`, `${env:NAME}`, each perhaps with `:-default`, which counts when the variable is unset or empty.
    Variable {
        name: String,
        default: Option<String>,
    },
    WorkspaceFolder,
    WorkspaceFolderBasename,
    UserHome,
    PathSeparator,
    /// Where the server would run if its entry did not say: the workspace folder.
    Cwd,
    Input(String),
    Keyring(String),
    /// Looks like a reference but is none of ours, as written.
    Unknown(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    Reference {
        reference: Reference,
        /// Where it stands in the text, `${` and `}` included.
        span: Range<usize>,
    },
}

/// Cuts a text at its references. A `${` that is never closed is text.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find("${")) {
        let start = from + found;
        let Some(end) = closing(text, start) else { break };
        if let Some(plain) = text.get(done..start).filter(|plain| !plain.is_empty()) {
            pieces.push(Piece::Text(plain));
        }
        let inner = text.get(start + 2..end - 1).unwrap_or_default();
        pieces.push(Piece::Reference { reference: read(inner), span: start..end });
        done = end;
        from = end;
    }
    if let Some(rest) = text.get(done..).filter(|rest| !rest.is_empty()) {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// The offset behind the `}` that closes the `${` at `start`, with the references inside a default skipped.
fn closing(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut open = 0usize;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'$' && bytes.get(at + 1) == Some(&b'{') {
            open += 1;
            at += 1;
        } else if byte == b'}' {
            open -= 1;
            if open == 0 {
                return Some(at + 1);
            }
        }
        at += 1;
    }
    None
}

fn read(inner: &str) -> Reference {
    match inner {
        "workspaceFolder" => return Reference::WorkspaceFolder,
        "workspaceFolderBasename" => return Reference::WorkspaceFolderBasename,
        "userHome" => return Reference::UserHome,
        "pathSeparator" | "/" => return Reference::PathSeparator,
        "cwd" => return Reference::Cwd,
        _ => {}
    }
    if let Some(id) = inner.strip_prefix("input:").map(str::trim).filter(|id| !id.is_empty()) {
        return Reference::Input(id.to_owned());
    }
    if let Some(name) = inner.strip_prefix("keyring:").map(str::trim).filter(|name| !name.is_empty()) {
        return Reference::Keyring(name.to_owned());
    }
    let body = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match body.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (body, None),
    };
    if is_variable_name(name) {
        Reference::Variable { name: name.to_owned(), default }
    } else {
        Reference::Unknown(format!("${{{inner}}}"))
    }
}

/// What a shell takes for a variable's name, and `ProgramFiles(x86)`, which Windows has.
fn is_variable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')'))
}
