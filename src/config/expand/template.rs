//! Splits a text into plain parts and `${…}` references. `$NAME`, `$(…)` and backquotes are plain text.

use std::ops::Range;

/// What a `${…}` refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// `${NAME}` or `${env:NAME}`, optionally with `:-default` for a variable that is unset or empty.
    Variable {
        name: String,
        default: Option<String>,
    },
    WorkspaceFolder,
    WorkspaceFolderBasename,
    UserHome,
    PathSeparator,
    /// The default working folder of the server.
    Cwd,
    Input(String),
    Keyring(String),
    /// Defaults are nested deeper than [`MAX_DEPTH`]; as written.
    TooDeep(String),
    /// An unknown reference, as written.
    Unknown(String),
}

/// How deep defaults with references may be nested. A project could nest them so deep that reading them exhausts the stack.
pub const MAX_DEPTH: usize = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'a> {
    Text(&'a str),
    Reference {
        reference: Reference,
        /// The position in the text, including `${` and `}`.
        span: Range<usize>,
    },
}

/// Splits a text at its references. An unclosed `${` is plain text.
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut done = 0;
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find("${")) {
        let start = from + found;
        let Some((end, depth)) = closing(text, start) else { break };
        if let Some(plain) = text.get(done..start).filter(|plain| !plain.is_empty()) {
            pieces.push(Piece::Text(plain));
        }
        let inner = text.get(start + 2..end - 1).unwrap_or_default();
        let reference = if depth > MAX_DEPTH { Reference::TooDeep(format!("${{{inner}}}")) } else { read(inner) };
        pieces.push(Piece::Reference { reference, span: start..end });
        done = end;
        from = end;
    }
    if let Some(rest) = text.get(done..).filter(|rest| !rest.is_empty()) {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// The offset after the `}` that closes the `${` at `start`, and how deep references are nested in between.
fn closing(text: &str, start: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let (mut open, mut depth) = (0_usize, 0_usize);
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'$' && bytes.get(at + 1) == Some(&b'{') {
            open += 1;
            depth = depth.max(open);
            at += 1;
        } else if byte == b'}' {
            open -= 1;
            if open == 0 {
                return Some((at + 1, depth));
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

/// A variable name as in a shell, or `ProgramFiles(x86)` on Windows.
fn is_variable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')'))
}
