//! What the files held, what of it is in force, and when a change counts.
//!
//! A save is often seen half done: emptied and not yet written, deleted and not yet made again. Such a state is held
//! back for a moment. If it stays, it is published with its problems, while the last good text stays in force.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::super::{Content, Loaded, Source};

/// How long a state that may be half a save is held back, counted from its last change …
const GRACE: Duration = Duration::from_millis(250);
/// … and from its first.
const LONGEST_GRACE: Duration = Duration::from_secs(1);

/// Whether what looks like half a save is given time to become a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    Grace,
    None,
}

/// All files as last seen.
#[derive(Default)]
pub(super) struct Picture {
    files: BTreeMap<Arc<Path>, Seen>,
}

struct Seen {
    /// What problems are reported about.
    current: Content,
    /// What is in force: the last text that could be taken over.
    good: Content,
    doubt: Option<Doubt>,
}

/// A content that may be half a save.
struct Doubt {
    content: Content,
    first: Instant,
    changed: Instant,
}

impl Doubt {
    fn until(&self) -> Instant {
        (self.changed + GRACE).min(self.first + LONGEST_GRACE)
    }
}

type Load<'a> = &'a dyn Fn(&[(Source, Content)]) -> Loaded;

impl Picture {
    /// Takes in what the files hold now. Gives a new picture if anything that counts has changed, or if one is
    /// `forced`; and when to look again if something is held back.
    pub fn take(
        &mut self,
        contents: &[(Source, Content)],
        now: Instant,
        patience: Patience,
        forced: bool,
        load: Load<'_>,
    ) -> (Option<Loaded>, Option<Instant>) {
        let known = self.files.len();
        self.files.retain(|path, _| contents.iter().any(|(source, _)| source.path == *path));
        let mut changed = forced || self.files.len() != known;
        let mut again: Option<Instant> = None;
        let differs = |(source, content): &(Source, Content)| {
            self.files.get(&source.path).map(|seen| &seen.current) != Some(content)
        };
        // Loading tells which texts parse; when none is new, nothing has to be loaded for that.
        let fresh = contents.iter().any(differs).then(|| load(contents));
        for (source, content) in contents {
            let sound = fresh.as_ref().is_none_or(|fresh| is_sound(fresh, source, content));
            match self.files.get_mut(&source.path) {
                None => {
                    let good = if sound { content.clone() } else { Content::Absent };
                    self.files.insert(source.path.clone(), Seen { current: content.clone(), good, doubt: None });
                    changed = true;
                }
                Some(seen) => match seen.settle(content, sound, now, patience) {
                    Settled::Same => {}
                    Settled::New => changed = true,
                    Settled::Held(until) => again = Some(again.map_or(until, |other| other.min(until))),
                },
            }
        }
        (changed.then(|| self.loaded(contents, load)), again)
    }

    /// What these files hold, as far as it has been taken over.
    pub fn current(&self, files: &[(Source, Content)]) -> Vec<(Source, Content)> {
        self.pick(files, |seen| &seen.current)
    }

    fn pick(&self, files: &[(Source, Content)], pick: fn(&Seen) -> &Content) -> Vec<(Source, Content)> {
        let content = |source: &Source| self.files.get(&source.path).map_or(Content::Absent, |seen| pick(seen).clone());
        files.iter().map(|(source, _)| (source.clone(), content(source))).collect()
    }

    /// The config that is in force, with the problems of the texts as they are.
    fn loaded(&self, contents: &[(Source, Content)], load: Load<'_>) -> Loaded {
        let mut loaded = load(&self.pick(contents, |seen| &seen.good));
        let gone = |source: &Source| self.files.get(&source.path).is_some_and(|seen| seen.current == Content::Gone);
        loaded.config.gone = contents
            .iter()
            .filter(|(source, _)| gone(source))
            .filter_map(|(source, _)| source.folder.clone())
            .collect();
        if self.files.values().all(|seen| seen.current == seen.good) {
            return loaded;
        }
        let current = load(&self.current(contents));
        for file in &mut loaded.files {
            let path = &file.source.path;
            let broken = self.files.get(path).is_some_and(|seen| seen.current != seen.good);
            if broken && let Some(now) = current.file(path) {
                // The servers of its last good text are those that run.
                let servers = std::mem::take(&mut file.servers);
                *file = now.clone();
                file.servers = servers;
            }
        }
        loaded
    }
}

enum Settled {
    Same,
    New,
    Held(Instant),
}

impl Seen {
    fn settle(&mut self, content: &Content, sound: bool, now: Instant, patience: Patience) -> Settled {
        if self.current == *content {
            self.doubt = None;
            return Settled::Same;
        }
        // A file that its folder came back without is no half of a save.
        let back = self.current == Content::Gone && *content == Content::Absent;
        if !sound && !back && patience == Patience::Grace {
            let doubt = match self.doubt.take() {
                Some(doubt) if doubt.content == *content => doubt,
                Some(doubt) => Doubt { content: content.clone(), first: doubt.first, changed: now },
                None => Doubt { content: content.clone(), first: now, changed: now },
            };
            let until = doubt.until();
            if now < until {
                self.doubt = Some(doubt);
                return Settled::Held(until);
            }
        }
        self.doubt = None;
        self.current = content.clone();
        // A file that was taken away asks for nothing any more; one that is broken, or gone with its whole folder, still
        // means what it last said.
        if sound || *content == Content::Absent {
            self.good = content.clone();
        }
        Settled::New
    }
}

/// Whether this can be taken over at once. A file that is gone or blank may be about to be written.
fn is_sound(loaded: &Loaded, source: &Source, content: &Content) -> bool {
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

    /// Files are valid when they start with `{`; the config is not looked at here.
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

    /// What became of a content seen after so many milliseconds: held until when, or the text and what is in force.
    fn story(steps: &[(u64, &str)]) -> String {
        let source = Source { path: Path::new("/mcp.json").into(), scope: Scope::User, folder: None };
        let begin = Instant::now();
        let mut picture = Picture::default();
        let mut lines = Vec::new();
        for (millis, text) in steps {
            let content = match *text {
                "-" => Content::Absent,
                text => Content::Text(text.into()),
            };
            let now = begin + Duration::from_millis(*millis);
            let (news, again) = picture.take(&[(source.clone(), content)], now, Patience::Grace, false, &load);
            let told =
                news.map(|loaded| format!("{:?}, in force {}", loaded.files[0].text, loaded.files[0].servers[0]));
            let held = again.map(|until| format!("held until {}", until.duration_since(begin).as_millis()));
            lines.push(format!("{millis:4} {text:6} {}", told.or(held).unwrap_or_else(|| "nothing new".to_owned())));
        }
        lines.join("\n")
    }

    #[test]
    fn half_a_save_is_held_back_until_the_whole_one_comes() {
        insta::assert_snapshot!(story(&[(0, "{1"), (100, ""), (150, "{2"), (400, "{2")]), @r#"
          0 {1     "{1", in force {1
        100        held until 350
        150 {2     "{2", in force {2
        400 {2     nothing new
        "#);
    }

    #[test]
    fn what_stays_broken_is_told_and_the_last_good_stays_in_force() {
        insta::assert_snapshot!(story(&[(0, "{1"), (100, "x"), (350, "x"), (360, "x"), (400, "{2")]), @r#"
          0 {1     "{1", in force {1
        100 x      held until 350
        350 x      "x", in force {1
        360 x      nothing new
        400 {2     "{2", in force {2
        "#);
    }

    #[test]
    fn a_slow_save_is_waited_for_but_not_for_ever() {
        let steps = [(0, "{1"), (100, "a"), (300, "b"), (500, "c"), (700, "d"), (900, "e"), (1100, "f")];
        insta::assert_snapshot!(story(&steps), @r#"
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
    fn a_file_that_goes_and_comes_back_as_it_was_changes_nothing() {
        insta::assert_snapshot!(story(&[(0, "{1"), (100, "-"), (150, "{1"), (500, "-"), (800, "-")]), @r#"
          0 {1     "{1", in force {1
        100 -      held until 350
        150 {1     nothing new
        500 -      held until 750
        800 -      "", in force
        "#);
    }
}
