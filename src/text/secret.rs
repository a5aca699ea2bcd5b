//! Values that must never be seen: a type that cannot be printed, and masking by value for text that might hold one.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::RwLock;

/// Shown in place of every secret.
const MASK: &str = "•••";
/// Shorter values are too common to be replaced wherever they occur: `1`, `true`, `info`.
const SHORTEST: usize = 6;

/// Every value that expansion has produced in this process, longest first when applied. One registry for all, because
/// a secret of one server may surface in the words of another. Private to this file and never held over an await.
static KNOWN: RwLock<BTreeSet<String>> = RwLock::new(BTreeSet::new());

/// A value that cannot be printed: its `Debug` shows `•••`, it has no `Display`, and it is not `Serialize`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the value in and has it masked from now on wherever text is shown.
    pub fn new(value: impl Into<String>) -> Self {
        let value = value.into();
        if value.trim().len() >= SHORTEST
            && let Ok(mut known) = KNOWN.write()
        {
            known.insert(value.trim().to_owned());
        }
        Self(value)
    }

    /// Wraps a value that is no secret by itself (a path, a flag) but travels where secrets do.
    pub fn plain(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one place that hands it to a server.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Replaces every known secret in `text`. Whatever is logged, shown or stored goes through here.
pub fn mask(text: &str) -> Cow<'_, str> {
    let Ok(known) = KNOWN.read() else { return Cow::Borrowed(MASK) };
    let mut found: Vec<&String> = known.iter().filter(|value| text.contains(value.as_str())).collect();
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    // The longest first, so that a secret that holds another leaves no rest of itself behind.
    found.sort_by_key(|value| std::cmp::Reverse(value.len()));
    let mut masked = text.to_owned();
    for value in found {
        masked = masked.replace(value.as_str(), MASK);
    }
    Cow::Owned(masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_shows_nowhere() {
        let secret = Secret::new("hunter2-hunter2");
        assert_eq!(format!("{secret:?}"), "•••");
        assert_eq!(mask("token=hunter2-hunter2;"), "token=•••;");
        assert_eq!(mask("nothing here"), "nothing here");
    }

    #[test]
    fn a_secret_inside_a_longer_one_leaves_no_rest() {
        Secret::new("abcdef-short");
        Secret::new("abcdef-short-and-longer");
        assert_eq!(mask("x abcdef-short-and-longer y"), "x ••• y");
    }
}
