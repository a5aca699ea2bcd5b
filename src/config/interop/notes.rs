//! Notes for the user about an imported or exported server. Foreign text in them is made safe to show.

use crate::text::one_line;

/// Longer than any of our notes, so that only foreign text is truncated.
const MAX_CHARS: usize = 400;

/// Notes about one server, without repetitions.
#[derive(Debug, Default)]
pub struct Notes(Vec<String>);

impl Notes {
    pub fn add(&mut self, note: impl AsRef<str>) {
        let note = one_line(note.as_ref(), MAX_CHARS);
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// Adds one note about several items, unless there are none.
    pub fn add_list(&mut self, title: &str, items: &[String]) {
        if !items.is_empty() {
            self.add(format!("{title}: {}", items.join(", ")));
        }
    }

    pub fn into_list(self) -> Vec<String> {
        self.0
    }
}
