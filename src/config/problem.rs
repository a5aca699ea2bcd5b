//! Problems in a config file: the position, the severity and possible fixes.

use std::ops::Range;

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
    /// A stable name such as `unknown-key`; docs/configuration.md describes each one.
    pub code: &'static str,
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
    pub fn new(severity: Severity, code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            severity,
            code,
            message: message.into(),
            help: None,
            fix: None,
            related: Vec::new(),
            unnecessary: false,
            deprecated: false,
        }
    }

    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, span, message)
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, span, message)
    }

    pub fn information(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Information, code, span, message)
    }

    pub fn hint(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self::new(Severity::Hint, code, span, message)
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
    use std::collections::BTreeSet;
    use std::path::Path;

    /// All problem codes in the sources of this module.
    fn codes(folder: &Path, found: &mut BTreeSet<String>) {
        let call = r#"(?:Problem::(?:error|warning|information|hint)|\b(?:reader|self)\.(?:error|warning)|\.choice|Problem::new|entries_once)\(\s*(?:severity,\s*|&[a-z.]+,\s*(?:Severity::Error,\s*)?)?"([a-z-]+)""#;
        let call = regex::Regex::new(call).unwrap();
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                codes(&entry, found);
            } else if !entry.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&entry).unwrap();
                found.extend(call.captures_iter(&text).map(|code| code[1].to_owned()));
            }
        }
    }

    #[test]
    fn the_reference_describes_every_code_and_no_others() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut used = BTreeSet::new();
        codes(&root.join("src/config"), &mut used);
        // The codes of problems with running servers.
        let live = std::fs::read_to_string(root.join("src/ide/live.rs")).unwrap();
        let code = regex::Regex::new(r#"(?:\((?:\s*)|=> )"([a-z]+-[a-z-]+)""#).unwrap();
        used.extend(code.captures_iter(&live).map(|code| code[1].to_owned()));
        let reference = std::fs::read_to_string(root.join("docs/configuration.md")).unwrap();
        let table = reference.split_once("## Diagnostics").unwrap().1;
        let row = regex::Regex::new(r"(?m)^\| `([a-z-]+)` \|").unwrap();
        let explained: BTreeSet<String> = row.captures_iter(table).map(|code| code[1].to_owned()).collect();
        assert_eq!(used.symmetric_difference(&explained).collect::<Vec<_>>(), Vec::<&String>::new());
    }

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
