//! Globs, within limits: a project could write one that exhausts the stack or the memory when it is compiled.

use globset::{Error, ErrorKind, Glob, GlobBuilder};

/// A longer glob is not valid.
const MAX_BYTES: usize = 4 << 10;
/// How deep `{…}` may be nested.
const MAX_DEPTH: usize = 10;

/// A glob with these options. The error says why it is not valid.
pub fn glob<'p>(
    pattern: &'p str,
    options: impl for<'b> FnOnce(&'b mut GlobBuilder<'p>) -> &'b mut GlobBuilder<'p>,
) -> Result<Glob, String> {
    if pattern.len() > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    if depth(pattern) > MAX_DEPTH {
        return Err(format!("`{{…}}` is nested deeper than {MAX_DEPTH} levels"));
    }
    options(&mut GlobBuilder::new(pattern)).build().map_err(|error| glob_reason(&error))
}

fn depth(pattern: &str) -> usize {
    let (mut open, mut depth) = (0_usize, 0);
    for byte in pattern.bytes() {
        match byte {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        depth = depth.max(open);
    }
    depth
}

/// Why a glob is not valid.
pub fn glob_reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::UnclosedClass => "a `[` is not closed".to_owned(),
        ErrorKind::InvalidRange(from, to) => format!("the range `{from}-{to}` is in the wrong order"),
        ErrorKind::UnopenedAlternates => "a `}` has no `{`".to_owned(),
        ErrorKind::UnclosedAlternates => "a `{` is not closed".to_owned(),
        ErrorKind::NestedAlternates => "a `{…}` is inside another one".to_owned(),
        ErrorKind::DanglingEscape => "there is nothing after the last `\\`".to_owned(),
        ErrorKind::InvalidRecursive => "`**` must be a whole part of the path".to_owned(),
        _ => "it is too large".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(pattern: &str) -> String {
        glob(pattern, |glob| glob).map(drop).unwrap_err()
    }

    #[test]
    fn a_glob_error_says_what_is_wrong() {
        assert_eq!(error("a[b"), "a `[` is not closed");
        assert_eq!(error("[z-a]"), "the range `z-a` is in the wrong order");
        assert_eq!(error("a}"), "a `}` has no `{`");
        assert_eq!(error("{a"), "a `{` is not closed");
    }

    #[test]
    fn a_glob_that_would_exhaust_the_stack_is_not_valid() {
        let nested = |levels: usize| "{a,".repeat(levels) + "b" + &"}".repeat(levels);
        assert!(glob(&nested(MAX_DEPTH), |glob| glob).unwrap().compile_matcher().is_match("b"));
        assert_eq!(error(&nested(MAX_DEPTH + 1)), "`{…}` is nested deeper than 10 levels");
        assert_eq!(error(&"?".repeat(MAX_BYTES + 1)), "it is longer than 4096 bytes");
    }

    #[test]
    fn every_glob_within_the_limits_can_be_compiled() {
        for part in ["?", "*", "**/", "[!a]", "{a,b*}", "\u{1f980}", "[\u{80}-\u{ffff}]"] {
            let pattern = part.repeat(MAX_BYTES / part.len());
            let built = glob(&pattern, |glob| glob.case_insensitive(true)).unwrap();
            assert_eq!(built.compile_matcher().glob().glob(), pattern);
        }
    }
}
