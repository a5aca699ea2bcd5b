//! Detects file system changes that may change what a path resolves to.
//!
//! Only folders are watched, because a watch on a file is lost when another file is renamed over it. To find the
//! relevant folders, each path is resolved step by step, including symlinks. So a new folder, a changed symlink and a
//! moved parent are detected as well as a save.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use super::{Source, anchor};

/// The number of symlinks that the operating system follows.
const MAX_LINKS: usize = 40;
/// The walk is repeated while folders change during it. A change after the last round is reported as an event anyway.
const MAX_ROUNDS: usize = 8;

/// Signals relevant changes. Several changes before the next `changed` count as one.
#[derive(Default)]
pub(super) struct ChangeSignal {
    notify: Notify,
    /// Which events matter. Written by the walk, read on the watcher's thread, and only held briefly.
    filter: Mutex<Filter>,
}

#[derive(Default)]
struct Filter {
    watch_set: WatchSet,
    /// Folders that were moved, deleted or created again. Their watches may be gone or refer to another folder.
    stale: BTreeSet<PathBuf>,
}

/// The part of the file system that determines what some paths resolve to, with symlinks resolved.
#[derive(Default, Clone, PartialEq, Eq)]
struct WatchSet {
    folders: BTreeSet<PathBuf>,
    /// The relevant entries of those folders.
    entries: BTreeSet<PathBuf>,
}

pub(super) struct PathWatcher {
    signal: Arc<ChangeSignal>,
    watcher: Option<RecommendedWatcher>,
    /// Folder → its identity when the watch was created.
    watched: BTreeMap<PathBuf, Identity>,
    polling: bool,
}

/// Distinguishes a folder from another one that replaced it under the same name.
type Identity = (u64, u64);

impl ChangeSignal {
    pub async fn changed(&self) {
        self.notify.notified().await;
    }

    fn filter(&self) -> MutexGuard<'_, Filter> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn on_event(&self, event: notify::Result<Event>) {
        let matters = match &event {
            // After an error or a queue overflow, anything may have changed.
            Err(_) => true,
            Ok(event) if event.need_rescan() => true,
            Ok(event) => is_change(&event.kind) && self.matches(event),
        };
        if matters {
            self.notify.notify_one();
        }
    }

    fn matches(&self, event: &Event) -> bool {
        let mut filter = self.filter();
        let Filter { watch_set, stale } = &mut *filter;
        let mut matches = false;
        for path in &event.paths {
            let folder = watch_set.folders.contains(path);
            if folder && !matches!(event.kind, EventKind::Modify(ModifyKind::Metadata(_) | ModifyKind::Data(_))) {
                stale.insert(path.clone());
            }
            matches |= folder || watch_set.entries.contains(path);
        }
        matches
    }
}

/// Reads are events too, and our own reads must not trigger a scan.
fn is_change(kind: &EventKind) -> bool {
    !matches!(kind, EventKind::Access(kind) if *kind != AccessKind::Close(AccessMode::Write))
}

impl PathWatcher {
    pub fn new(signal: Arc<ChangeSignal>) -> Self {
        let callback = signal.clone();
        let mut this = Self { signal, watcher: None, watched: BTreeMap::new(), polling: false };
        match notify::recommended_watcher(move |event| callback.on_event(event)) {
            Ok(watcher) => this.watcher = Some(watcher),
            Err(error) => this.start_polling(&error),
        }
        this
    }

    /// Whether the system refused to watch, so that the files have to be polled.
    pub fn polling(&self) -> bool {
        self.polling
    }

    /// Watches everything that these files depend on, and nothing else.
    pub fn watch(&mut self, sources: &[Source]) {
        for _ in 0..MAX_ROUNDS {
            let mut watch_set = WatchSet::default();
            for source in sources {
                walk(&source.path, &anchor(source), &mut watch_set);
            }
            let stale = {
                let mut filter = self.signal.filter();
                filter.watch_set = watch_set.clone();
                std::mem::take(&mut filter.stale)
            };
            if !self.update_watches(&watch_set.folders, &stale) {
                return;
            }
        }
    }

    /// Updates the watches. Returns whether any is new, in which case the paths have to be walked again.
    fn update_watches(&mut self, folders: &BTreeSet<PathBuf>, stale: &BTreeSet<PathBuf>) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let gone: Vec<PathBuf> = self
            .watched
            .iter()
            .filter(|(path, was)| {
                !folders.contains(*path) || stale.contains(*path) || identity(path).ok() != Some(**was)
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            // The system removes the watch of a deleted folder itself, so an error is fine.
            watcher.unwatch(&path).ok();
            self.watched.remove(&path);
        }
        let mut fresh = false;
        let mut refused = None;
        for path in folders {
            if self.watched.contains_key(path) {
                continue;
            }
            let Ok(identity) = identity(path) else {
                fresh = true; // The folder disappeared during the walk.
                continue;
            };
            match watcher.watch(path, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    self.watched.insert(path.clone(), identity);
                    fresh = true;
                }
                Err(error) if matches!(error.kind, ErrorKind::MaxFilesWatch) => refused = Some(error),
                // We cannot read any file in a folder that we may not open.
                Err(error) => tracing::debug!(%error, folder = %path.display(), "not watched"),
            }
        }
        match refused {
            Some(error) => self.start_polling(&error),
            None => self.polling = false,
        }
        fresh
    }

    fn start_polling(&mut self, error: &notify::Error) {
        if !self.polling {
            self.polling = true;
            tracing::warn!(%error, "cannot watch config files, so they are read every 2 seconds; raise fs.inotify.max_user_watches and fs.inotify.max_user_instances");
        }
    }
}

/// Resolves `path` entry by entry, following symlinks. Skips folders above `anchor`, and all but the last step of a
/// symlink's target that is not itself a symlink. If an entry does not exist, its parent folder is always watched.
fn walk(path: &Path, anchor: &Path, watch_set: &mut WatchSet) {
    let mut here = root_of(path);
    let mut above = here.clone();
    let mut remaining: VecDeque<(OsString, bool)> = VecDeque::new();
    for component in path.components() {
        if let Component::Normal(name) = component {
            remaining.push_back((name.to_owned(), above.starts_with(anchor)));
            above.push(name);
        }
    }
    let mut links = 0;
    while let Some((name, watched)) = remaining.pop_front() {
        if name == ".." {
            here.pop();
            continue;
        }
        let entry = here.join(&name);
        let metadata = std::fs::symlink_metadata(&entry);
        let is_link_behind_link = || links > 0 && metadata.as_ref().is_ok_and(std::fs::Metadata::is_symlink);
        if watched || metadata.is_err() || is_link_behind_link() {
            watch_set.folders.insert(here.clone());
            watch_set.entries.insert(entry.clone());
        }
        let Ok(metadata) = metadata else { return };
        if metadata.is_symlink() {
            let Ok(target) = std::fs::read_link(&entry) else { return };
            links += 1;
            if links > MAX_LINKS {
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
            for (from_end, step) in steps.rev().enumerate() {
                remaining.push_front((step, from_end == 0));
            }
        } else if metadata.is_dir() {
            here = entry;
        } else {
            return; // A file, or something else that has no entries.
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
    // On other systems, the events about the folder itself have to suffice.
    std::fs::metadata(path).map(|_| (0, 0))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The watched folders and the relevant entries, with the temporary folder as `~`.
    fn walked(root: &Path, path: &str) -> String {
        let mut watch_set = WatchSet::default();
        walk(&root.join(path), &root.join("work"), &mut watch_set);
        let short = |path: &PathBuf| format!("{}\n", path.display()).replace(&root.display().to_string(), "~");
        let folders: String = watch_set.folders.iter().map(short).collect();
        let entries: String = watch_set.entries.iter().map(short).collect();
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
    fn the_closest_existing_parent_of_a_missing_folder_is_watched() {
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
    fn symlinks_and_their_targets_are_watched() {
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
    fn a_link_in_the_middle_of_the_target_of_a_link_is_watched() {
        let (_folder, root) = root();
        std::fs::create_dir(root.join("work/..1")).unwrap();
        std::fs::write(root.join("work/..1/mcp.json"), "{}").unwrap();
        symlink("..1", root.join("work/..data")).unwrap();
        symlink("..data/mcp.json", root.join("work/mcp.json")).unwrap();
        insta::assert_snapshot!(walked(&root, "work/mcp.json"), @r"
        ~/work
        ~/work/..1
        --
        ~/work/..1
        ~/work/..1/mcp.json
        ~/work/..data
        ~/work/mcp.json
        ");
    }

    #[test]
    fn a_symlink_to_itself_ends_the_walk() {
        let (_folder, root) = root();
        symlink("mcp.json", root.join("work/mcp.json")).unwrap();
        insta::assert_snapshot!(walked(&root, "work/mcp.json"), @r"
        ~/work
        --
        ~/work/mcp.json
        ");
    }

    #[test]
    fn reading_is_not_a_change() {
        assert!(!is_change(&EventKind::Access(AccessKind::Open(AccessMode::Any))));
        assert!(!is_change(&EventKind::Access(AccessKind::Close(AccessMode::Read))));
        assert!(is_change(&EventKind::Access(AccessKind::Close(AccessMode::Write))));
        assert!(is_change(&EventKind::Modify(ModifyKind::Any)));
    }
}
