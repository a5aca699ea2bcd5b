//! “Did you mean”: finds the known word that a misspelled one is closest to.

/// Returns the closest word of `known`, if it is close enough to be a plausible typo.
pub fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = normalized(word);
    if word.is_empty() || word.len() > 40 {
        return None;
    }
    known
        .iter()
        .map(|candidate| (strsim::osa_distance(&word, &normalized(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().min(word.len()) / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Treats `env_file`, `env-file` and `EnvFile` as the same word.
fn normalized(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-')).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_are_matched_and_other_words_are_not() {
        let known = ["command", "args", "env", "envFile", "url", "type"];
        assert_eq!(closest("comand", &known), Some("command"));
        assert_eq!(closest("commnad", &known), Some("command"));
        assert_eq!(closest("env_file", &known), Some("envFile"));
        assert_eq!(closest("URL", &known), Some("url"));
        assert_eq!(closest("arg", &known), Some("args"));
        assert_eq!(closest("frobnicate", &known), None);
        assert_eq!(closest("", &known), None);
    }
}
