//! The secret values that are masked, in every form. An engine runs for weeks, and tokens are replaced every hour, so it must
//! not keep all of them.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;

use super::forms::forms;

/// How many values of each origin are kept. After that, the one that was used longest ago is forgotten.
const MAX_VALUES: usize = 2_048;
/// How many values of one name are kept: accounts at the same server have different tokens.
const MAX_VALUES_OF_NAME: usize = 8;
/// How much of a form is searched for. The rest is compared where this part is found: a search for whole tokens would need
/// hundreds of kilobytes for each.
const SEARCHED: usize = 24;

/// The values, and what finds them.
pub struct KnownSecrets {
    /// In the order of their last use.
    values: VecDeque<Known>,
    /// Each with the number of values that have it.
    forms: BTreeMap<Arc<str>, usize>,
    /// Absent if the values have changed.
    finder: Option<Arc<Finder>>,
}

struct Known {
    origin: Origin<String>,
    value: String,
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin<T> {
    /// A server gets it, or the user entered it.
    Used,
    /// It is in a config file, which may be from a stranger. However many values it contains, it must not displace those
    /// that are used.
    Written,
    /// It replaces older values of this name, such as a token.
    Named(T),
}

impl<T> Origin<T> {
    fn is_like<U>(&self, other: &Origin<U>) -> bool {
        matches!(
            (self, other),
            (Self::Used, Origin::Used) | (Self::Written, Origin::Written) | (Self::Named(_), Origin::Named(_))
        )
    }
}

impl Known {
    fn is_from(&self, origin: Origin<&str>) -> bool {
        match (&self.origin, origin) {
            (Origin::Named(known), Origin::Named(name)) => known == name,
            (known, origin) => known.is_like(&origin),
        }
    }
}

impl KnownSecrets {
    pub const fn new() -> Self {
        Self { values: VecDeque::new(), forms: BTreeMap::new(), finder: None }
    }

    pub fn add(&mut self, origin: Origin<&str>, value: &str) {
        let is_same = |known: &Known| known.value == value && known.is_from(origin);
        // Most values are added again and again.
        if self.values.back().is_some_and(is_same) {
            return;
        }
        if let Some(place) = self.values.iter().position(is_same) {
            let again = self.values.remove(place);
            self.values.extend(again);
            return;
        }
        let forms = forms(value);
        if forms.is_empty() {
            return;
        }
        for form in forms {
            *self.forms.entry(form.into()).or_default() += 1;
        }
        let owned = match origin {
            Origin::Used => Origin::Used,
            Origin::Written => Origin::Written,
            Origin::Named(name) => Origin::Named(name.to_owned()),
        };
        self.values.push_back(Known { origin: owned, value: value.to_owned() });
        if matches!(origin, Origin::Named(_)) {
            self.forget_oldest(MAX_VALUES_OF_NAME, |known| known.is_from(origin));
        }
        self.forget_oldest(MAX_VALUES, |known| known.origin.is_like(&origin));
        self.finder = None;
    }

    /// What finds the values that are known now. `None` if it has to be built.
    pub fn finder(&self) -> Option<Arc<Finder>> {
        self.finder.clone()
    }

    pub fn build_finder(&mut self) -> Arc<Finder> {
        let forms = &self.forms;
        self.finder.get_or_insert_with(|| Arc::new(Finder::new(forms.keys().cloned().collect()))).clone()
    }

    /// Keeps at most `limit` of these values.
    fn forget_oldest(&mut self, limit: usize, is_meant: impl Fn(&Known) -> bool) {
        if self.values.iter().filter(|known| is_meant(known)).count() <= limit {
            return;
        }
        let Some(oldest) = self.values.iter().position(is_meant).and_then(|place| self.values.remove(place)) else {
            return;
        };
        for form in forms(&oldest.value) {
            if let Some(count) = self.forms.get_mut(&*form) {
                *count -= 1;
                if *count == 0 {
                    self.forms.remove(&*form);
                }
            }
        }
    }
}

/// Finds all forms at once.
pub struct Finder {
    forms: Vec<Arc<str>>,
    /// The beginnings of the forms. `None` if there are none.
    beginnings: Option<AhoCorasick>,
    /// It could not be built, so nothing may be shown.
    pub is_broken: bool,
}

impl Finder {
    fn new(forms: Vec<Arc<str>>) -> Self {
        let beginning = |form: &Arc<str>| form.bytes().take(SEARCHED).collect::<Vec<u8>>();
        let built = (!forms.is_empty()).then(|| AhoCorasick::new(forms.iter().map(beginning)));
        let is_broken = matches!(built, Some(Err(_)));
        Self { forms, beginnings: built.and_then(Result::ok), is_broken }
    }

    /// Whether there is nothing to find.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The ranges of all forms in `text`. They may overlap.
    pub fn find<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
        let found = self.beginnings.iter().flat_map(move |beginnings| beginnings.find_overlapping_iter(text));
        found.filter_map(move |hit| {
            let form = self.forms.get(hit.pattern().as_usize())?.as_bytes();
            text.get(hit.start()..)?.starts_with(form).then(|| hit.start()..hit.start() + form.len())
        })
    }

    pub fn is_match(&self, text: &[u8]) -> bool {
        // The first search is quicker, and nearly always enough.
        self.beginnings.as_ref().is_some_and(|beginnings| beginnings.is_match(text)) && self.find(text).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn finds(known: &mut KnownSecrets, text: &str) -> bool {
        known.build_finder().is_match(text.as_bytes())
    }

    /// A token that differs from the others of its issuer only at its end.
    fn token(number: usize) -> String {
        format!("{}-{number:05}", "the-same-beginning-of-every-token".repeat(30))
    }

    #[test]
    fn tokens_that_are_renewed_forever_do_not_add_up() {
        let mut known = KnownSecrets::new();
        for number in 0..500 {
            known.add(Origin::Named("access token of shop"), &token(number));
        }
        assert_eq!(known.values.len(), MAX_VALUES_OF_NAME);
        let newest: BTreeSet<String> = (492..500).flat_map(|number| forms(&token(number))).collect();
        assert!(known.forms.keys().map(|form| &**form).eq(newest.iter().map(String::as_str)));
        assert!(finds(&mut known, &token(499)) && finds(&mut known, &token(492)) && !finds(&mut known, &token(491)));
    }

    #[test]
    fn the_finder_stays_small_whatever_the_length_of_the_values() {
        let mut known = KnownSecrets::new();
        for number in 0..MAX_VALUES_OF_NAME {
            known.add(Origin::Named("access token of shop"), &token(number));
        }
        let finder = known.build_finder();
        let size = finder.beginnings.as_ref().unwrap().memory_usage();
        assert!(size < 64 << 10, "{size}");
    }

    #[test]
    fn the_value_that_was_used_longest_ago_is_forgotten_first() {
        let mut known = KnownSecrets::new();
        known.add(Origin::Used, "used-all-the-time");
        for number in 0..MAX_VALUES * 2 {
            known.add(Origin::Used, &format!("value-number-{number}"));
            known.add(Origin::Used, "used-all-the-time");
        }
        assert_eq!(known.values.len(), MAX_VALUES);
        assert!(finds(&mut known, "used-all-the-time") && !finds(&mut known, "value-number-0 "));
    }

    #[test]
    fn a_config_file_full_of_values_displaces_none_that_is_used() {
        let mut known = KnownSecrets::new();
        known.add(Origin::Used, "value-of-a-server");
        known.add(Origin::Named("token"), "token-of-a-server");
        for number in 0..MAX_VALUES * 2 {
            known.add(Origin::Written, &format!("value-number-{number}"));
        }
        assert_eq!(known.values.len(), MAX_VALUES + 2);
        assert!(finds(&mut known, "value-of-a-server") && finds(&mut known, "token-of-a-server"));
    }

    #[test]
    fn a_form_is_known_as_long_as_one_of_its_values_is() {
        let mut known = KnownSecrets::new();
        known.add(Origin::Named("a"), "shared-by-two-names");
        known.add(Origin::Named("b"), "shared-by-two-names");
        for number in 0..MAX_VALUES_OF_NAME {
            known.add(Origin::Named("a"), &format!("another-value-{number}"));
        }
        assert!(finds(&mut known, "shared-by-two-names"));
        for number in 0..MAX_VALUES_OF_NAME {
            known.add(Origin::Named("b"), &format!("another-value-{number}"));
        }
        assert!(!finds(&mut known, "shared-by-two-names"));
    }

    #[test]
    fn a_text_that_only_begins_like_a_secret_is_none() {
        let mut known = KnownSecrets::new();
        known.add(Origin::Used, &token(1));
        let finder = known.build_finder();
        assert!(!finder.is_match(token(2).as_bytes()));
        assert_eq!(finder.find(token(2).as_bytes()).next(), None);
        let text = format!("<{}>", token(1));
        assert!(finder.find(text.as_bytes()).any(|range| range == (1..text.len() - 1)));
    }
}
