//! Problems in a config file: the position, the severity and possible fixes.

mod code;

use std::ops::Range;

pub use code::Code;

/// Byte range in the text of a file.
pub type Span = Range<usize>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

/// A problem in a config file. Invalid input is not an error: loading returns everything usable, and the problems.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The exact key or value that causes the problem.
    pub span: Span,
    pub severity: Severity,
    pub code: Code,
    /// Lower case, no full stop.
    pub message: String,
    /// What to do, in one line.
    pub help: Option<String>,
    pub fix: Option<Fix>,
    /// Related positions, perhaps in other files.
    pub related: Vec<Related>,
    /// The text has no effect; editors grey it out.
    pub unnecessary: bool,
    /// The text is deprecated; editors strike it out.
    pub deprecated: bool,
}

/// An edit of the same file that fixes the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    pub title: String,
    pub edits: Vec<TextEdit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextEdit {
    pub span: Span,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// Empty until the file of the problem is known.
    pub file: std::path::PathBuf,
    pub span: Span,
    pub message: String,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Information => "information",
            Self::Hint => "hint",
        }
    }
}

impl TextEdit {
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }
}

impl Problem {
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            severity: code.severity(),
            code,
            message: message.into(),
            help: None,
            fix: None,
            related: Vec::new(),
            unnecessary: false,
            deprecated: false,
        }
    }

    /// Deviates from the usual severity of the code.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Marks the text as having no effect.
    pub fn unnecessary(mut self) -> Self {
        self.unnecessary = true;
        self
    }

    /// Marks the text as deprecated.
    pub fn deprecated(mut self) -> Self {
        self.deprecated = true;
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a related position in the same file.
    pub fn related(mut self, span: &Span, message: impl Into<String>) -> Self {
        let (file, span) = (std::path::PathBuf::new(), span.clone());
        self.related.push(Related { file, span, message: message.into() });
        self
    }

    pub fn fix(mut self, title: impl Into<String>, edits: Vec<TextEdit>) -> Self {
        self.fix = Some(Fix { title: title.into(), edits });
        self
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_reference_contains_every_own_key() {
        use crate::config::shape::keys::{ACTION, INPUT, POLICY, ROOT, SERVER};
        let reference =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md")).unwrap();
        for key in [&ROOT, &SERVER, &INPUT, &POLICY, &ACTION].into_iter().flat_map(|table| table.own()) {
            let internal = ["$schema", "request_timeout_ms"].contains(&key.name);
            assert!(internal || reference.contains(&format!("`{}`", key.name)), "{}", key.name);
        }
    }
}
