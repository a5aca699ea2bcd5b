//! “Did you mean”: the known word that a misspelled one is nearest to.

/// The nearest of `known`, when it is near enough that a person would see the likeness.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let lower = flat(word);
    if lower.is_empty() || lower.len() > 40 {
        return None;
    }
    known
        .iter()
        .map(|candidate| (distance(&lower, &flat(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().min(lower.len()) / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `env_file`, `env-file` and `EnvFile` are one word to a reader.
fn flat(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_lowercase()
}

/// Insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut least = (at(&row, j) + usize::from(x != y)).min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                least = least.min(at(&before, j - 1) + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_seen_through_and_another_word_is_not() {
        let known = ["command", "args", "env", "envFile", "url", "type"];
        assert_eq!(nearest("comand", &known), Some("command"));
        assert_eq!(nearest("commnad", &known), Some("command"));
        assert_eq!(nearest("env_file", &known), Some("envFile"));
        assert_eq!(nearest("URL", &known), Some("url"));
        assert_eq!(nearest("arg", &known), Some("args"));
        assert_eq!(nearest("frobnicate", &known), None);
        assert_eq!(nearest("", &known), None);
    }
}
