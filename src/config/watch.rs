//! Owns the last valid config: reads the files when they change, and publishes the result.
//!
//! `fs_watch` detects changes and `file_states` decides when they take effect. This file contains the task that
//! connects the two. Subscribers decide what a new config changes.

mod file_states;
mod fs_watch;
mod programs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use self::file_states::{FileStates, PartialSaves};
use self::fs_watch::{ChangeSignal, PathWatcher};
use self::programs::Programs;
use super::{Content, Environment, Environments, Loaded, Source};
use crate::model::Scope;
use crate::paths::{Paths, Unreadable, read_file, target_inside};
use crate::settings::{Files, Limits, Settings};

/// A save causes a burst of events. The burst ends after this long without an event …
const QUIET: Duration = Duration::from_millis(10);
/// … or after this long in any case.
const LONGEST_BURST: Duration = Duration::from_millis(50);
/// Files are read this often even without events, because network mounts do not report the writes of other machines.
const SAFETY_INTERVAL: Duration = Duration::from_secs(30);
/// The same if the system cannot watch any more folders.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The capacity of the request queue.
const REQUESTS: usize = 16;

/// A handle to the watcher task, which ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub struct Watcher {
    requests: mpsc::Sender<Request>,
    loaded: watch::Receiver<Arc<Loaded>>,
    read: watch::Receiver<Arc<Inputs>>,
    settings_file: watch::Receiver<Option<Content>>,
    environments: watch::Receiver<Arc<Environments>>,
}

/// What the published config was loaded from.
#[derive(Debug, Clone)]
struct Inputs {
    contents: Vec<(Source, Content)>,
    session: BTreeMap<String, Value>,
    limits: Limits,
}

/// Which files to read, and what else is part of the config.
#[derive(Debug, Clone)]
struct Wanted {
    paths: Paths,
    folders: Vec<Arc<Path>>,
    files: Files,
    limits: Limits,
    session: BTreeMap<String, Value>,
}

#[derive(Debug)]
struct Request {
    change: Change,
    reply: oneshot::Sender<Arc<Loaded>>,
}

#[derive(Debug)]
enum Change {
    Folders(Vec<Arc<Path>>),
    Session(BTreeMap<String, Value>),
    Reload,
}

impl Watcher {
    /// Starts watching, at first without workspace folders. The first config is published as soon as the files are
    /// read; [`Watcher::reload`] waits for it. New settings take effect when they arrive.
    pub fn spawn(
        paths: Paths,
        settings: watch::Receiver<Arc<Settings>>,
        environments: watch::Receiver<Arc<Environments>>,
    ) -> Self {
        let (requests, inbox) = mpsc::channel(REQUESTS);
        let (publish, loaded) = watch::channel(Arc::default());
        let Settings { files, limits, .. } = settings.borrow().as_ref().clone();
        let nothing = Inputs { contents: Vec::new(), session: BTreeMap::new(), limits: limits.clone() };
        let (inputs, read) = watch::channel(Arc::new(nothing));
        let (settings_seen, settings_file) = watch::channel(None);
        let wanted = Wanted { paths, folders: Vec::new(), files, limits, session: BTreeMap::new() };
        let task = Task {
            wanted,
            settings,
            environments: environments.clone(),
            seen_environments: Vec::new(),
            settings_seen,
            publish,
            inputs,
            inbox,
            signal: Arc::default(),
        };
        tokio::spawn(task.run());
        Self { requests, loaded, read, settings_file, environments }
    }

    /// The loaded config, now and after each change.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Loaded>> {
        self.loaded.clone()
    }

    /// The content of `config.toml`, which is next to the user's config; `None` before the first scan.
    pub fn settings_file(&self) -> watch::Receiver<Option<Content>> {
        self.settings_file.clone()
    }

    /// Replaces the workspace folders. Like the methods below, it returns when the result has been published.
    pub async fn set_folders(&self, folders: Vec<Arc<Path>>) -> Arc<Loaded> {
        self.request(Change::Folders(folders)).await
    }

    /// Replaces the definitions that were set at run time.
    pub async fn set_session(&self, session: BTreeMap<String, Value>) -> Arc<Loaded> {
        self.request(Change::Session(session)).await
    }

    /// The names of the definitions that were set at run time.
    pub fn session_names(&self) -> Vec<String> {
        self.read.borrow().session.keys().cloned().collect()
    }

    /// The definitions that were set at run time.
    pub fn session(&self) -> BTreeMap<String, Value> {
        self.read.borrow().session.clone()
    }

    /// Reads all files now and accepts them as they are: the caller knows that they are complete.
    pub async fn reload(&self) -> Arc<Loaded> {
        self.request(Change::Reload).await
    }

    /// The config that would be loaded if these texts were saved. Publishes nothing and reads nothing.
    pub fn preview(&self, buffers: &BTreeMap<PathBuf, Arc<str>>) -> Loaded {
        let inputs = self.read.borrow().clone();
        let contents: Vec<(Source, Content)> = inputs
            .contents
            .iter()
            .map(|(source, content)| {
                let text = buffers.get(&*source.path).map(|text| Content::Text(text.clone()));
                (source.clone(), text.unwrap_or_else(|| content.clone()))
            })
            .collect();
        let environments = self.environments.borrow().clone();
        super::layers::load_with(&contents, &inputs.session, &inputs.limits, &environments)
    }

    async fn request(&self, change: Change) -> Arc<Loaded> {
        let (reply, answer) = oneshot::channel();
        if self.requests.send(Request { change, reply }).await.is_ok()
            && let Ok(loaded) = answer.await
        {
            return loaded;
        }
        // The task only ends with the runtime, so the last config will do.
        self.loaded.borrow().clone()
    }
}

/// Signals changes of one file, until it is dropped.
pub struct FileWatch {
    signal: Arc<ChangeSignal>,
    _watcher: PathWatcher,
}

impl FileWatch {
    pub fn new(file: &Path) -> Self {
        let signal = Arc::<ChangeSignal>::default();
        let mut watcher = PathWatcher::new(signal.clone());
        let folder = file.parent().map(Into::into);
        watcher.watch(&[Source { path: file.into(), scope: Scope::User, folder }]);
        Self { signal, _watcher: watcher }
    }

    pub async fn changed(&self) {
        self.signal.changed().await;
    }
}

struct Task {
    wanted: Wanted,
    settings: watch::Receiver<Arc<Settings>>,
    environments: watch::Receiver<Arc<Environments>>,
    /// What the last scan depended on.
    seen_environments: Vec<(Environment, BTreeSet<String>)>,
    settings_seen: watch::Sender<Option<Content>>,
    publish: watch::Sender<Arc<Loaded>>,
    inputs: watch::Sender<Arc<Inputs>>,
    inbox: mpsc::Receiver<Request>,
    signal: Arc<ChangeSignal>,
}

/// The blocking part, which runs on a thread that may block.
struct Scanner {
    watcher: PathWatcher,
    files: FileStates,
    programs: Programs,
}

/// The result of reading all files.
struct Scan {
    new_config: Option<NewConfig>,
    /// When to scan again, even if there is no event until then.
    rescan_at: Option<Instant>,
    polling: bool,
    settings_file: Option<Content>,
}

struct NewConfig {
    loaded: Loaded,
    inputs: Inputs,
}

impl Task {
    async fn run(mut self) {
        let mut scanner = None;
        let mut scan = self.scan(&mut scanner, PartialSaves::Wait, true).await;
        let mut burst: Option<Instant> = None;
        let mut due: Option<Instant> = None;
        let mut checked = Instant::now();
        loop {
            let safety = checked + if scan.polling { POLL_INTERVAL } else { SAFETY_INTERVAL };
            let wake = [due, scan.rescan_at].into_iter().flatten().fold(safety, Instant::min);
            tokio::select! {
                request = self.inbox.recv() => {
                    let Some(Request { change, reply }) = request else { break };
                    scan = match change {
                        Change::Reload => self.scan(&mut scanner, PartialSaves::Accept, false).await,
                        change => {
                            self.apply(change);
                            self.scan(&mut scanner, PartialSaves::Wait, true).await
                        }
                    };
                    reply.send(self.publish.borrow().clone()).ok();
                }
                // If the sender of the settings is dropped, the current settings stay.
                Ok(()) = self.settings.changed() => {
                    if !self.update_settings() {
                        continue;
                    }
                    scan = self.scan(&mut scanner, PartialSaves::Wait, true).await;
                }
                // Other variables are set, and other programs are found.
                Ok(()) = self.environments.changed() => {
                    if self.visible_environments() == self.seen_environments {
                        continue;
                    }
                    scan = self.scan(&mut scanner, PartialSaves::Wait, true).await;
                }
                () = self.signal.changed() => {
                    let now = Instant::now();
                    due = Some((now + QUIET).min(*burst.get_or_insert(now) + LONGEST_BURST));
                    continue;
                }
                () = tokio::time::sleep_until(wake) => scan = self.scan(&mut scanner, PartialSaves::Wait, false).await,
            }
            (burst, due, checked) = (None, None, Instant::now());
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Folders(folders) => self.wanted.folders = folders,
            Change::Session(session) => self.wanted.session = session,
            Change::Reload => {}
        }
    }

    /// What each folder sees of the environments.
    fn visible_environments(&self) -> Vec<(Environment, BTreeSet<String>)> {
        let environments = self.environments.borrow().clone();
        let folders = self.wanted.folders.iter().map(|folder| Some(&**folder)).chain([None]);
        folders.map(|folder| (environments.in_folder(folder).clone(), environments.names(folder))).collect()
    }

    /// Applies the latest settings. Returns whether a relevant one changed.
    fn update_settings(&mut self) -> bool {
        let settings = self.settings.borrow_and_update().clone();
        let same = settings.files == self.wanted.files && settings.limits == self.wanted.limits;
        (self.wanted.files, self.wanted.limits) = (settings.files.clone(), settings.limits.clone());
        !same
    }

    async fn scan(&mut self, scanner: &mut Option<Scanner>, partial_saves: PartialSaves, forced: bool) -> Scan {
        let lent = scanner.take();
        let wanted = self.wanted.clone();
        let signal = self.signal.clone();
        let environments = self.environments.borrow_and_update().clone();
        self.seen_environments = self.visible_environments();
        let work = tokio::task::spawn_blocking(move || {
            let mut scanner = lent.unwrap_or_else(|| Scanner {
                watcher: PathWatcher::new(signal),
                files: FileStates::default(),
                programs: Programs::default(),
            });
            let scan = scanner.scan(&wanted, &environments, partial_saves, forced);
            (scanner, scan)
        });
        match work.await {
            Ok((returned, mut scan)) => {
                *scanner = Some(returned);
                self.settings_seen.send_if_modified(|seen| {
                    let new = *seen != scan.settings_file;
                    seen.clone_from(&scan.settings_file);
                    new
                });
                if let Some(new_config) = scan.new_config.take() {
                    self.inputs.send_replace(Arc::new(new_config.inputs));
                    self.publish.send_replace(Arc::new(new_config.loaded));
                }
                scan
            }
            // The scanner is lost. The published config stays until the next scan, which creates a new scanner.
            Err(error) => {
                tracing::error!(%error, "cannot read the config files");
                Scan { new_config: None, rescan_at: None, polling: false, settings_file: None }
            }
        }
    }
}

impl Scanner {
    fn scan(
        &mut self,
        wanted: &Wanted,
        environments: &Arc<Environments>,
        partial_saves: PartialSaves,
        forced: bool,
    ) -> Scan {
        let sources = super::sources(&wanted.folders, &wanted.files, &wanted.paths);
        let settings = Source { path: wanted.paths.settings_file().into(), scope: Scope::User, folder: None };
        // Watch before reading, so that no later change is missed.
        let own = [sources.as_slice(), std::slice::from_ref(&settings)].concat();
        self.watcher.watch(&[own.clone(), self.programs.candidates(environments)].concat());
        let forced = self.programs.refresh(environments) || forced;
        let settings_file = Some(read(&settings.path, wanted.limits.config_bytes));
        let contents: Vec<(Source, Content)> = sources
            .into_iter()
            .map(|source| {
                let content = match read_source(&source, wanted.limits.config_bytes) {
                    Content::Absent if source.folder.as_deref().is_some_and(|folder| !folder.is_dir()) => Content::Gone,
                    content => content,
                };
                (source, content)
            })
            .collect();
        let contents = one_per_file(contents);
        let load = |contents: &[(Source, Content)]| {
            super::layers::load_with(contents, &wanted.session, &wanted.limits, environments)
        };
        let (loaded, rescan_at) = self.files.update(&contents, Instant::now(), partial_saves, forced, &load);
        let new_config = loaded.map(|mut loaded| {
            if self.programs.set_config(&loaded.config, environments) {
                self.watcher.watch(&[own, self.programs.candidates(environments)].concat());
            }
            loaded.config.missing = self.programs.missing();
            let present = loaded.files.iter().filter(|file| file.exists).count();
            tracing::info!(files = present, servers = loaded.config.servers.len(), "config read");
            let inputs = Inputs {
                contents: self.files.current(&contents),
                session: wanted.session.clone(),
                limits: wanted.limits.clone(),
            };
            NewConfig { loaded, inputs }
        });
        Scan { new_config, rescan_at, polling: self.watcher.polling(), settings_file }
    }
}

/// Reads a config file. A file of a project must be in its repository, even if a link leads out of it.
fn read_source(source: &Source, limit: usize) -> Content {
    let content = match source.repository().filter(|_| source.path.symlink_metadata().is_ok()) {
        None => read(&source.path, limit),
        Some(repository) => match target_inside(&source.path, &repository) {
            Ok(real) => read(&real, limit),
            Err(error) => Content::Unreadable(error.to_string()),
        },
    };
    match content {
        Content::Absent => dangling_link(&source.path).map_or(Content::Absent, Content::Unreadable),
        content => content,
    }
}

/// If the file is missing because it, or a folder that it is in, is a link that leads nowhere: what to tell the user. Its
/// file system may be unmounted, so this does not mean that there are no servers.
fn dangling_link(path: &Path) -> Option<String> {
    let link = path.ancestors().find(|part| part.is_symlink() && !part.exists())?;
    let target = std::fs::read_link(link).ok()?;
    let (link, target) = (link.display(), target.display());
    Some(format!("the link {link} leads to {target}, which does not exist; create the target or remove the link"))
}

/// If links make two sources the same file, it counts once: where it is, not where a link to it is. Of two links, the
/// scope with fewer rights counts.
fn one_per_file(mut contents: Vec<(Source, Content)>) -> Vec<(Source, Content)> {
    let rank = |source: &Source| (source.is_link(), !source.scope.needs_trust(), source.scope);
    let mut seen: BTreeMap<PathBuf, Source> = BTreeMap::new();
    let mut order: Vec<usize> = (0..contents.len()).collect();
    order.sort_by_key(|index| contents.get(*index).map(|(source, _)| rank(source)));
    for index in order {
        let Some((source, content)) =
            contents.get_mut(index).filter(|(_, content)| matches!(content, Content::Text(_)))
        else {
            continue;
        };
        let Ok(real) = source.path.canonicalize() else { continue };
        match seen.get(&real) {
            Some(other) => {
                let other = other.path.display();
                *content = Content::Unreadable(format!("this is the same file as {other}, which is used instead"));
            }
            None => {
                seen.insert(real, source.clone());
            }
        }
    }
    contents
}

/// Reads the current content of a config file.
pub fn read(path: &Path, limit: usize) -> Content {
    match read_file(path, limit) {
        Ok(None) => Content::Absent,
        Ok(Some(bytes)) => super::tree::decode(&bytes).map_or_else(Content::Unreadable, Content::Text),
        Err(unreadable @ Unreadable::Large(_)) => {
            Content::Unreadable(format!("{unreadable} (`limits.config-bytes` sets this limit)"))
        }
        Err(unreadable) => Content::Unreadable(unreadable.to_string()),
    }
}

/// The topmost folder that is watched for this file.
fn anchor(source: &Source) -> PathBuf {
    match &source.folder {
        Some(folder) => folder.to_path_buf(),
        // The parent of its own folder, because that folder may be moved as a whole.
        None => source.path.ancestors().nth(2).unwrap_or(Path::new("/")).to_path_buf(),
    }
}

#[cfg(test)]
mod tests;
