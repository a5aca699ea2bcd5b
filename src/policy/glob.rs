//! Globs for the names of servers and tools.

use globset::GlobMatcher;

use crate::text::glob;

/// A pattern for names. `*` matches everything, including `/` and `__`.
#[derive(Debug, Clone)]
pub enum NameGlob {
    Any,
    Literal(String),
    Glob(Box<GlobMatcher>),
}

impl NameGlob {
    /// An invalid pattern matches only its own text. The config module reports it.
    pub fn new(pattern: &str) -> Self {
        if pattern == "*" {
            return Self::Any;
        }
        if !is_glob(pattern) {
            return Self::Literal(pattern.to_owned());
        }
        match glob(pattern, |glob| glob) {
            Ok(glob) => Self::Glob(Box::new(glob.compile_matcher())),
            Err(_) => Self::Literal(pattern.to_owned()),
        }
    }

    /// Why a pattern is invalid.
    pub fn check(pattern: &str) -> Result<(), String> {
        glob(pattern, |glob| glob).map(drop)
    }

    pub fn is_match(&self, name: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Literal(literal) => literal == name,
            Self::Glob(glob) => glob.is_match(name),
        }
    }
}

pub fn is_glob(pattern: &str) -> bool {
    pattern.contains(['*', '?', '[', '{', '\\'])
}
