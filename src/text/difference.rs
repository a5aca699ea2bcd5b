//! Compares texts line by line.

use std::time::Duration;

use similar::TextDiff;

/// Up to this many lines of both texts, the difference is exact, so that equal texts always have the same one.
const EXACT: usize = 4_000;
/// After this time, the difference of longer texts is approximate. Comparing texts that share no lines would otherwise take
/// minutes.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The difference between two texts.
pub fn line_difference<'t>(old: &'t str, new: &'t str) -> TextDiff<'t, 't, 't, str> {
    let mut comparison = TextDiff::configure();
    if old.lines().chain(new.lines()).nth(EXACT).is_some() {
        comparison.timeout(TIMEOUT);
    }
    comparison.diff_lines(old, new)
}

/// The removed (`-`) and added (`+`) lines, in order.
pub fn changed_lines<'t>(old: &'t str, new: &'t str) -> Vec<(char, &'t str)> {
    let difference = line_difference(old, new);
    let changed = difference.iter_all_changes().filter_map(|change| {
        let sign = match change.tag() {
            similar::ChangeTag::Delete => '-',
            similar::ChangeTag::Insert => '+',
            similar::ChangeTag::Equal => return None,
        };
        Some((sign, change.value().trim_end_matches('\n')))
    });
    changed.collect()
}
