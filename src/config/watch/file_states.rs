//! The contents of all files: what was last read, what is in effect, and when a change takes effect.
//!
//! A save is often observed half done: the file is empty or deleted, and not yet written again. Such a state is held
//! back for a moment. If it persists, it is published with its problems, while the last valid text stays in effect.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::{Content, Loaded, Source};

/// How long a possibly partial save is held back, counted from its last change …
const GRACE: Duration = Duration::from_millis(250);
/// … and from its first.
const LONGEST_GRACE: Duration = Duration::from_secs(1);

/// How to treat content that may be a partial save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartialSaves {
    /// Wait a moment for the rest.
    Wait,
    /// Accept it as it is.
    Accept,
}

/// All files as last read.
#[derive(Default)]
pub(super) struct FileStates {
    files: BTreeMap<Arc<Path>, FileState>,
}

struct FileState {
    /// The content that problems are reported for.
    current: Content,
    /// The last valid content, or the current one if none was valid: its rules are not known, so they deny everything.
    in_force: Content,
    /// Whether the content in force is valid.
    is_valid: bool,
    partial: Option<PartialSave>,
}

/// A content that may be a partial save.
struct PartialSave {
    content: Content,
    first: Instant,
    changed: Instant,
}

impl PartialSave {
    fn until(&self) -> Instant {
        (self.changed + GRACE).min(self.first + LONGEST_GRACE)
    }
}

type Load<'a> = &'a dyn Fn(&[(Source, Content)]) -> Loaded;

impl FileStates {
    /// Updates the contents. Returns the new config if anything relevant changed or if `forced`, and the time of the
    /// next scan if something is held back.
    pub fn update(
        &mut self,
        contents: &[(Source, Content)],
        now: Instant,
        partial_saves: PartialSaves,
        forced: bool,
        load: Load<'_>,
    ) -> (Option<Loaded>, Option<Instant>) {
        let known = self.files.len();
        self.files.retain(|path, _| contents.iter().any(|(source, _)| source.path == *path));
        let mut changed = forced || self.files.len() != known;
        let mut rescan_at: Option<Instant> = None;
        let differs = |(source, content): &(Source, Content)| {
            self.files.get(&source.path).map(|state| &state.current) != Some(content)
        };
        // Loading shows which texts are valid. This is only needed if one of them is new.
        let fresh = contents.iter().any(differs).then(|| load(contents));
        for (source, content) in contents {
            let complete = fresh.as_ref().is_none_or(|fresh| is_complete(fresh, source, content));
            match self.files.get_mut(&source.path) {
                None => {
                    let (current, in_force) = (content.clone(), content.clone());
                    let state = FileState { current, in_force, is_valid: complete, partial: None };
                    self.files.insert(source.path.clone(), state);
                    changed = true;
                }
                Some(state) => match state.update(content, complete, now, partial_saves) {
                    Update::Unchanged => {}
                    Update::Applied => changed = true,
                    Update::Held(until) => rescan_at = Some(rescan_at.map_or(until, |other| other.min(until))),
                },
            }
        }
        (changed.then(|| self.loaded(contents, load)), rescan_at)
    }

    /// The current contents of these files, without those that are held back.
    pub fn current(&self, files: &[(Source, Content)]) -> Vec<(Source, Content)> {
        self.pick(files, |state| &state.current)
    }

    fn pick(&self, files: &[(Source, Content)], pick: fn(&FileState) -> &Content) -> Vec<(Source, Content)> {
        let content =
            |source: &Source| self.files.get(&source.path).map_or(Content::Absent, |state| pick(state).clone());
        files.iter().map(|(source, _)| (source.clone(), content(source))).collect()
    }

    /// The config that is in effect, with the problems of the current texts.
    fn loaded(&self, contents: &[(Source, Content)], load: Load<'_>) -> Loaded {
        let mut loaded = load(&self.pick(contents, |state| &state.in_force));
        let gone = |source: &Source| self.files.get(&source.path).is_some_and(|state| state.current == Content::Gone);
        loaded.config.gone = contents
            .iter()
            .filter(|(source, _)| gone(source))
            .filter_map(|(source, _)| source.folder.clone())
            .collect();
        if self.files.values().all(|state| state.current == state.in_force) {
            return loaded;
        }
        let current = load(&self.current(contents));
        for file in &mut loaded.files {
            let path = &file.source.path;
            let broken = self.files.get(path).is_some_and(|state| state.current != state.in_force);
            if broken && let Some(now) = current.file(path) {
                // The servers of its last valid text are the ones that run.
                let servers = std::mem::take(&mut file.servers);
                *file = now.clone();
                file.servers = servers;
            }
        }
        loaded
    }
}

enum Update {
    Unchanged,
    Applied,
    Held(Instant),
}

impl FileState {
    fn update(&mut self, content: &Content, complete: bool, now: Instant, partial_saves: PartialSaves) -> Update {
        if self.current == *content {
            self.partial = None;
            return Update::Unchanged;
        }
        // If the folder came back without the file, this is not a partial save.
        let back = self.current == Content::Gone && *content == Content::Absent;
        if !complete && !back && partial_saves == PartialSaves::Wait {
            let partial = match self.partial.take() {
                Some(partial) if partial.content == *content => partial,
                Some(partial) => PartialSave { content: content.clone(), first: partial.first, changed: now },
                None => PartialSave { content: content.clone(), first: now, changed: now },
            };
            let until = partial.until();
            if now < until {
                self.partial = Some(partial);
                return Update::Held(until);
            }
        }
        self.partial = None;
        self.current = content.clone();
        // A deleted file has no effect any more. For a broken file, or one that is gone with its whole folder, the last
        // valid content stays in effect.
        if complete || *content == Content::Absent || !self.is_valid {
            self.in_force = content.clone();
            self.is_valid = complete;
        }
        Update::Applied
    }
}

/// Whether this content can be applied at once. A missing or blank file may be about to be written.
fn is_complete(loaded: &Loaded, source: &Source, content: &Content) -> bool {
    match content {
        Content::Absent | Content::Gone | Content::Unreadable(_) => false,
        Content::Text(text) => !text.trim().is_empty() && loaded.file(&source.path).is_some_and(|file| file.valid),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::File;
    use super::*;
    use crate::model::Scope;

    /// Treats files as valid if they start with `{`. The config does not matter here.
    fn load(contents: &[(Source, Content)]) -> Loaded {
        let file = |(source, content): &(Source, Content)| {
            let text: Arc<str> = if let Content::Text(text) = content { text.clone() } else { "".into() };
            File {
                source: source.clone(),
                exists: *content != Content::Absent,
                valid: text.starts_with('{'),
                servers: vec![text.to_string()],
                problems: Vec::new(),
                tree: Arc::default(),
                text,
            }
        };
        Loaded { files: contents.iter().map(file).collect(), ..Loaded::default() }
    }

    /// What happens to each content, read after so many milliseconds: until when it is held, or what is in effect.
    fn timeline(steps: &[(u64, &str)]) -> String {
        let source = Source { path: Path::new("/mcp.json").into(), scope: Scope::User, folder: None };
        let begin = Instant::now();
        let mut states = FileStates::default();
        let mut lines = Vec::new();
        for (millis, text) in steps {
            let content = match *text {
                "-" => Content::Absent,
                text => Content::Text(text.into()),
            };
            let now = begin + Duration::from_millis(*millis);
            let (new_config, rescan_at) =
                states.update(&[(source.clone(), content)], now, PartialSaves::Wait, false, &load);
            let applied =
                new_config.map(|loaded| format!("{:?}, in force {}", loaded.files[0].text, loaded.files[0].servers[0]));
            let held = rescan_at.map(|until| format!("held until {}", until.duration_since(begin).as_millis()));
            lines.push(format!("{millis:4} {text:6} {}", applied.or(held).unwrap_or_else(|| "nothing new".to_owned())));
        }
        lines.join("\n")
    }

    #[test]
    fn a_partial_save_is_held_back_until_it_is_complete() {
        insta::assert_snapshot!(timeline(&[(0, "{1"), (100, ""), (150, "{2"), (400, "{2")]), @r#"
          0 {1     "{1", in force {1
        100        held until 350
        150 {2     "{2", in force {2
        400 {2     nothing new
        "#);
    }

    #[test]
    fn a_broken_file_is_reported_and_its_last_valid_text_stays_in_force() {
        insta::assert_snapshot!(timeline(&[(0, "{1"), (100, "x"), (350, "x"), (360, "x"), (400, "{2")]), @r#"
          0 {1     "{1", in force {1
        100 x      held until 350
        350 x      "x", in force {1
        360 x      nothing new
        400 {2     "{2", in force {2
        "#);
    }

    #[test]
    fn a_text_that_was_never_valid_is_in_force_so_that_its_unknown_rules_can_deny() {
        insta::assert_snapshot!(timeline(&[(0, "x"), (100, "{1")]), @r#"
          0 x      "x", in force x
        100 {1     "{1", in force {1
        "#);
        let after_a_deletion = timeline(&[(0, "{1"), (100, "-"), (350, "-"), (400, "y"), (650, "y")]);
        assert!(after_a_deletion.ends_with("\"y\", in force y"), "{after_a_deletion}");
    }

    #[test]
    fn a_slow_save_is_held_back_for_a_limited_time() {
        let steps = [(0, "{1"), (100, "a"), (300, "b"), (500, "c"), (700, "d"), (900, "e"), (1100, "f")];
        insta::assert_snapshot!(timeline(&steps), @r#"
           0 {1     "{1", in force {1
         100 a      held until 350
         300 b      held until 550
         500 c      held until 750
         700 d      held until 950
         900 e      held until 1100
        1100 f      "f", in force {1
        "#);
    }

    #[test]
    fn a_file_that_is_recreated_unchanged_changes_nothing() {
        insta::assert_snapshot!(timeline(&[(0, "{1"), (100, "-"), (150, "{1"), (500, "-"), (800, "-")]), @r#"
          0 {1     "{1", in force {1
        100 -      held until 350
        150 {1     nothing new
        500 -      held until 750
        800 -      "", in force
        "#);
    }
}
