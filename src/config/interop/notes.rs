//! What a person should know about a server that was carried over. Foreign words in them are made safe here.

use crate::text::one_line;

/// Longer than any note of ours; what a foreign file adds is cut.
const LONGEST: usize = 400;

/// Notes about one server, each told once.
#[derive(Debug, Default)]
pub struct Notes(Vec<String>);

impl Notes {
    pub fn add(&mut self, note: impl AsRef<str>) {
        let note = one_line(note.as_ref(), LONGEST);
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// One note about several words of the same kind, unless there are none.
    pub fn add_list(&mut self, before: &str, words: &[String]) {
        if !words.is_empty() {
            self.add(format!("{before}: {}", words.join(", ")));
        }
    }

    pub fn into_list(self) -> Vec<String> {
        self.0
    }
}
