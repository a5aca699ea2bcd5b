//! Hears when something happens that may change what a path leads to.
//!
//! Folders are watched, never files: a file is lost from sight when another is renamed over it. Which folders matter
//! is found by walking each path as the system does, links included, so that a new folder, a re-pointed link or a
//! parent moved away is heard as well as a save.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::{Source, anchor};

/// As many links as the system itself follows.
const MOST_LINKS: usize = 40;
/// While folders come and go under the walk, it is repeated; whatever is missed then rings the bell anyway.
const MOST_ROUNDS: usize = 8;

/// Rings when something relevant happened. However often it rings, it is answered once.
#[derive(Default)]
pub(super) struct Bell {
    rung: Notify,
    /// What to listen for. Written by the walk, read on the watcher's own thread; held for a moment only.
    relevant: Mutex<Relevant>,
}

#[derive(Default)]
struct Relevant {
    places: Places,
    /// Folders that were moved, deleted or made again: their watches may be gone or look at another place.
    stale: BTreeSet<PathBuf>,
}

/// The part of the file system that decides what some paths lead to, free of links.
#[derive(Default, Clone, PartialEq, Eq)]
struct Places {
    folders: BTreeSet<PathBuf>,
    /// Entries of those folders; what happens to their other entries does not matter.
    entries: BTreeSet<PathBuf>,
}

pub(super) struct Eyes {
    bell: Arc<Bell>,
    watcher: Option<RecommendedWatcher>,
    /// Folder → which folder it was when its watch began.
    armed: BTreeMap<PathBuf, Identity>,
    blind: bool,
}

/// Tells a folder from another that took its name.
type Identity = (u64, u64);

impl Bell {
    pub async fn rung(&self) {
        self.rung.notified().await;
    }

    fn relevant(&self) -> MutexGuard<'_, Relevant> {
        self.relevant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, event: notify::Result<Event>) {
        let matters = match &event {
            // After an error or a queue that overflowed, anything may have happened.
            Err(_) => true,
            Ok(event) if event.need_rescan() => true,
            Ok(event) => is_change(&event.kind) && self.concerns(event),
        };
        if matters {
            self.rung.notify_one();
        }
    }

    fn concerns(&self, event: &Event) -> bool {
        let mut relevant = self.relevant();
        let Relevant { places, stale } = &mut *relevant;
        let mut concerns = false;
        for path in &event.paths {
            let folder = places.folders.contains(path);
            if folder && !matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_) | ModifyKind::Data(_))) {
                stale.insert(path.clone());
            }
            concerns |= folder || places.entries.contains(path);
        }
        concerns
    }
}

/// Reading is an event as well, and our own reading must not wake us.
fn is_change(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(kind) if *kind != AccessKind::Close(AccessMode::Write))
}

impl Eyes {
    pub fn open(bell: Arc<Bell>) -> Self {
        let hears = bell.clone();
        let watcher = notify::recommended_watcher(move |event| hears.hear(event));
        let mut eyes = Self { bell, watcher: None, armed: BTreeMap::new(), blind: false };
        match watcher {
            Ok(watcher) => eyes.watcher = Some(watcher),
            Err(error) => eyes.go_blind(&error),
        }
        eyes
    }

    /// Whether the system refused to watch. Then the files have to be looked at from time to time.
    pub fn blind(&self) -> bool {
        self.blind
    }

    /// Watches what these files depend on, and nothing else any more.
    pub fn follow(&mut self, sources: &[Source]) {
        for _ in 0..MOST_ROUNDS {
            let mut places = Places::default();
            for source in sources {
                walk(&source.path, &anchor(source), &mut places);
            }
            let stale = {
                let mut relevant = self.bell.relevant();
                relevant.places = places.clone();
                std::mem::take(&mut relevant.stale)
            };
            if !self.arm(&places.folders, &stale) {
                return;
            }
        }
    }

    /// Brings the watches in line; tells whether any was new, so that the way there has to be walked again.
    fn arm(&mut self, folders: &BTreeSet<PathBuf>, stale: &BTreeSet<PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let gone: Vec<PathBuf> = self
            .armed
            .iter()
            .filter(|(path, was)| {
                !folders.contains(*path) || stale.contains(*path) || identity(path).ok() != Some(**was)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            // The system drops the watch of a deleted folder by itself: not to find it any more is fine.
            watcher.unwatch(&path).ok();
            self.armed.remove(&path);
        }
        let mut fresh = false;
        let mut refused = None;
        for path in folders {
            if self.armed.contains_key(path) {
                continue;
            }
            let Ok(identity) = identity(path) else {
                fresh = true; // It went away under the walk.
                continue;
            };
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.armed.insert(path.clone(), identity);
                    fresh = true;
                }
                Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => refused = Some(error),
                // A folder that we may not look into holds nothing that we could read either.
                Err(error) => tracing::debug!(%error, folder = %path.display(), "not watched"),
            }
        }
        match refused {
            Some(error) => self.go_blind(&error),
            None => self.blind = false,
        }
        fresh
    }

    fn go_blind(&mut self, error: &notify::Error) {
        if !self.blind {
            self.blind = true;
            tracing::warn!(%error, "cannot watch config files, so they are looked at every two seconds; raise fs.inotify.max_user_watches and max_user_instances");
        }
    }
}

/// Follows `path` entry by entry, through links. Folders above `anchor` are left out, and so is the way to a link's
/// target but for its last step; yet where the way ends early, its last folder is watched in any case.
fn walk(path: &Path, anchor: &Path, places: &mut Places) {
    let mut here = root_of(path);
    let mut above = here.clone();
    let mut ahead: VecDeque<(OsString, bool)> = VecDeque::new();
    for component in path.components() {
        if let Component::Normal(name) = component {
            ahead.push_back((name.to_owned(), above.starts_with(anchor)));
            above.push(name);
        }
    }
    let mut links = 0;
    while let Some((name, watched)) = ahead.pop_front() {
        if name == ".." {
            here.pop();
            continue;
        }
        let entry = here.join(&name);
        let metadata = std::fs::symlink_metadata(&entry);
        if watched || metadata.is_err() {
            places.folders.insert(here.clone());
            places.entries.insert(entry.clone());
        }
        let Ok(metadata) = metadata else { return };
        if metadata.is_symlink() {
            let Ok(target) = std::fs::read_link(&entry) else { return };
            links += 1;
            if links > MOST_LINKS {
                return;
            }
            if target.is_absolute() {
                here = root_of(&target);
            }
            let steps = target.components().filter_map(|component| match component {
                Component::Normal(name) => Some(name.to_owned()),
                Component::ParentDir => Some(OsString::from("..")),
                _ => None,
            });
            for (from_the_end, step) in steps.rev().enumerate() {
                ahead.push_front((step, from_the_end == 0));
            }
        } else if metadata.is_dir() {
            here = entry;
        } else {
            return; // A file, or something that no path leads through.
        }
    }
}

fn root_of(path: &Path) -> PathBuf {
    path.components().take_while(|part| matches!(part, Component::Prefix(_) | Component::RootDir)).collect()
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() { Ok((metadata.dev(), metadata.ino())) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    // There the events about the folder itself have to be enough.
    std::fs::metadata(path).map(|_| (0, 0))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The watched folders and the entries that matter, with the temporary folder as `~`.
    fn walked(root: &Path, path: &str) -> String {
        let mut places = Places::default();
        walk(&root.join(path), &root.join("work"), &mut places);
        let short = |path: &PathBuf| format!("{}\n", path.display()).replace(&root.display().to_string(), "~");
        let folders: String = places.folders.iter().map(short).collect();
        let entries: String = places.entries.iter().map(short).collect();
        format!("{folders}--\n{entries}")
    }

    fn root() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("work")).unwrap();
        (folder, root)
    }

    #[test]
    fn a_file_is_watched_from_its_folder_up_to_the_workspace() {
        let (_folder, root) = root();
        std::fs::create_dir(root.join("work/.vscode")).unwrap();
        insta::assert_snapshot!(walked(&root, "work/.vscode/mcp.json"), @r"
        ~/work
        ~/work/.vscode
        --
        ~/work/.vscode
        ~/work/.vscode/mcp.json
        ");
    }

    #[test]
    fn of_a_folder_that_is_missing_the_nearest_above_is_watched() {
        let (_folder, root) = root();
        insta::assert_snapshot!(walked(&root, "work/a/b/mcp.json"), @r"
        ~/work
        --
        ~/work/a
        ");
        std::fs::remove_dir(root.join("work")).unwrap();
        insta::assert_snapshot!(walked(&root, "work/a/b/mcp.json"), @r"
        ~
        --
        ~/work
        ");
    }

    #[test]
    fn links_are_watched_where_they_stand_and_where_they_lead() {
        let (_folder, root) = root();
        std::fs::create_dir_all(root.join("shared/settings")).unwrap();
        std::fs::write(root.join("shared/real.json"), "{}").unwrap();
        symlink("../shared/settings", root.join("work/.vscode")).unwrap();
        symlink(root.join("shared/real.json"), root.join("shared/settings/mcp.json")).unwrap();
        insta::assert_snapshot!(walked(&root, "work/.vscode/mcp.json"), @r"
        ~/shared
        ~/shared/settings
        ~/work
        --
        ~/shared/real.json
        ~/shared/settings
        ~/shared/settings/mcp.json
        ~/work/.vscode
        ");
    }

    #[test]
    fn a_link_to_itself_ends_the_walk() {
        let (_folder, root) = root();
        symlink("mcp.json", root.join("work/mcp.json")).unwrap();
        insta::assert_snapshot!(walked(&root, "work/mcp.json"), @r"
        ~/work
        --
        ~/work/mcp.json
        ");
    }

    #[test]
    fn reading_rings_no_bell() {
        assert!(!is_change(&EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!is_change(&EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(is_change(&EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(is_change(&EventKind::Modify(ModifyKind::Any)));
    }
}
