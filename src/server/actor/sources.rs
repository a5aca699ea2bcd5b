//! `dev.watch`: detects changes of a server's source files, so that it can be restarted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::{GlobSet, GlobSetBuilder};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::config::spec::Dev;
use crate::text::{glob, glob_reason};

/// Builds and saves touch many files; the server restarts once there was no change for this long.
const QUIET_PERIOD: Duration = Duration::from_millis(200);

pub struct SourceWatcher {
    changes: mpsc::Receiver<()>,
    /// When the last change counts as complete.
    quiet_at: Option<Instant>,
    /// Watching ends when this is dropped.
    _watcher: RecommendedWatcher,
}

impl SourceWatcher {
    /// Watches the patterns, relative to `folder`. The error names the part that cannot be watched.
    pub fn watch(dev: &Dev, folder: &Path) -> Result<Self, String> {
        let mut globs = GlobSetBuilder::new();
        let mut roots: Vec<PathBuf> = Vec::new();
        for pattern in &dev.watch {
            let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
            let full = folder.join(pattern);
            let glob = glob(&full.to_string_lossy(), |glob| glob.literal_separator(true))
                .map_err(|reason| format!("`{pattern}` in `dev.watch` is not a valid glob: {reason}"))?;
            globs.add(glob);
            roots.push(literal_part(&full));
        }
        let globs =
            globs.build().map_err(|error| format!("cannot use the globs of `dev.watch`: {}", glob_reason(&error)))?;
        let (changed, changes) = mpsc::channel(1);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| is_source_change(&event, &globs)) {
                // A full channel already signals a change.
                changed.try_send(()).ok();
            }
        })
        .map_err(|error| format!("cannot watch source files: {error}"))?;
        roots.sort();
        roots.dedup();
        for root in roots {
            let mode = if root.is_dir() { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            watcher
                .watch(&root, mode)
                .map_err(|error| format!("cannot watch `{}` for `dev.watch`: {error}", root.display()))?;
        }
        Ok(Self { changes, quiet_at: None, _watcher: watcher })
    }

    /// Returns once something has changed and there was no further change for a while. Cancel-safe: no change is lost.
    pub async fn changed(&mut self) {
        loop {
            let quiet_at = self.quiet_at;
            let quiet = async {
                match quiet_at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                change = self.changes.recv() => match change {
                    Some(()) => self.quiet_at = Some(Instant::now() + QUIET_PERIOD),
                    None => std::future::pending().await,
                },
                () = quiet => {
                    self.quiet_at = None;
                    return;
                }
            }
        }
    }
}

/// Reading a file is not a change.
fn is_source_change(event: &notify::Event, globs: &GlobSet) -> bool {
    !matches!(event.kind, EventKind::Access(_) | EventKind::Other)
        && event.paths.iter().any(|path| globs.is_match(path))
}

/// The folder before the first wildcard, or its nearest existing parent.
fn literal_part(pattern: &Path) -> PathBuf {
    let mut literal: PathBuf = pattern
        .components()
        .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']))
        .collect();
    if literal == pattern {
        // A file is watched through its folder, because editors replace files.
        literal.pop();
    }
    while !literal.is_dir() && literal.pop() {}
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_matching_files_count_and_a_burst_is_one_change() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(folder.join("server/deep")).unwrap();
        let dev = Dev { watch: vec!["server/**/*.ts".to_owned()] };
        let mut sources = SourceWatcher::watch(&dev, &folder).unwrap();
        std::fs::write(folder.join("server/readme.md"), "no").unwrap();
        for number in 0..5 {
            std::fs::write(folder.join(format!("server/deep/{number}.ts")), "yes").unwrap();
        }
        tokio::time::timeout(Duration::from_secs(10), sources.changed()).await.unwrap();
        assert!(sources.changes.try_recv().is_err(), "one burst, one change");
    }

    #[test]
    fn the_watched_folder_is_the_part_before_the_first_wildcard() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        assert_eq!(literal_part(&folder.path().join("src/**/*.rs")), folder.path().join("src"));
        assert_eq!(literal_part(&folder.path().join("src/main.rs")), folder.path().join("src"));
        assert_eq!(literal_part(&folder.path().join("gone/*.rs")), folder.path());
    }
}
