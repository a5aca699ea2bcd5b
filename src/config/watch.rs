//! Owner of the last good config: looks at the files when something happens to them, and publishes what they ask for.
//!
//! `eyes` hears that something happened, `picture` decides what it means; this file is the task between them.
//! What the config then changes is left to whoever listens.

mod eyes;
mod picture;
mod programs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use self::eyes::{Bell, Eyes};
use self::picture::{Patience, Picture};
use self::programs::Programs;
use super::{Content, Loaded, Source};
use crate::model::Scope;
use crate::paths::{Paths, Unreadable, read_file};
use crate::settings::{Files, Limits, Settings};

/// Events of one save come in a burst: it is over when nothing came for this long …
const QUIET: Duration = Duration::from_millis(10);
/// … and looked at after this long even if it goes on.
const LONGEST_BURST: Duration = Duration::from_millis(50);
/// Files are looked at this often even when nothing was heard: network mounts tell nobody what others write.
const SAFETY_CHECK: Duration = Duration::from_secs(30);
/// The same when the system cannot watch any more folders.
const BLIND_CHECK: Duration = Duration::from_secs(2);
/// Requests waiting for the task; each is answered before the next is taken.
const REQUESTS: usize = 16;

/// The handle on the watching task, which ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Watcher {
    requests: mpsc::Sender<Request>,
    loaded: watch::Receiver<Arc<Loaded>>,
    read: watch::Receiver<Arc<Inputs>>,
    settings_file: watch::Receiver<Option<Content>>,
}

/// What the published picture was made from.
#[derive(Debug, Clone)]
struct Inputs {
    contents: Vec<(Source, Content)>,
    session: BTreeMap<String, Value>,
    limits: Limits,
}

/// Which files count, and what is set beside them.
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
    /// Starts watching, without workspace folders at first. The first picture is published as soon as the files are
    /// read; [`Watcher::reload`] waits for it. Other settings count when they come.
    pub fn spawn(paths: Paths, settings: watch::Receiver<Arc<Settings>>) -> Self {
        let (requests, inbox) = mpsc::channel(REQUESTS);
        let (publish, loaded) = watch::channel(Arc::default());
        let Settings { files, limits, .. } = settings.borrow().as_ref().clone();
        let nothing = Inputs { contents: Vec::new(), session: BTreeMap::new(), limits: limits.clone() };
        let (inputs, read) = watch::channel(Arc::new(nothing));
        let (settings_seen, settings_file) = watch::channel(None);
        let wanted = Wanted { paths, folders: Vec::new(), files, limits, session: BTreeMap::new() };
        tokio::spawn(Task { wanted, settings, settings_seen, publish, inputs, inbox, bell: Arc::default() }.run());
        Self { requests, loaded, read, settings_file }
    }

    /// What the files ask for, now and after each change.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Loaded>> {
        self.loaded.clone()
    }

    /// What `config.toml` holds, which lies beside the user's config; `None` before the first look.
    pub fn settings_file(&self) -> watch::Receiver<Option<Content>> {
        self.settings_file.clone()
    }

    /// Other workspace folders. Answered, as all of these, when what follows from it has been published.
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

    /// Looks at all files now, and takes them as they are: somebody says that they are complete.
    pub async fn reload(&self) -> Arc<Loaded> {
        self.request(Change::Reload).await
    }

    /// What the files would ask for if these texts were saved. Nothing is published, nothing is read.
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
        super::load(&contents, &inputs.session, &inputs.limits)
    }

    async fn request(&self, change: Change) -> Arc<Loaded> {
        let (reply, answer) = oneshot::channel();
        if self.requests.send(Request { change, reply }).await.is_ok()
            && let Ok(loaded) = answer.await
        {
            return loaded;
        }
        // The task ends with the runtime only; then the last picture is as good as any.
        self.loaded.borrow().clone()
    }
}

struct Task {
    wanted: Wanted,
    settings: watch::Receiver<Arc<Settings>>,
    settings_seen: watch::Sender<Option<Content>>,
    publish: watch::Sender<Arc<Loaded>>,
    inputs: watch::Sender<Arc<Inputs>>,
    inbox: mpsc::Receiver<Request>,
    bell: Arc<Bell>,
}

/// What takes time, and is therefore lent to a thread that may block.
struct Desk {
    eyes: Eyes,
    picture: Picture,
    programs: Programs,
}

/// What a look at the files came to.
struct Looked {
    news: Option<News>,
    /// When to look again although nothing may be heard until then.
    again: Option<Instant>,
    blind: bool,
    settings_file: Option<Content>,
}

struct News {
    loaded: Loaded,
    inputs: Inputs,
}

impl Task {
    async fn run(mut self) {
        let mut desk = None;
        let mut look = self.look(&mut desk, Patience::Grace, true).await;
        let mut burst: Option<Instant> = None;
        let mut due: Option<Instant> = None;
        let mut checked = Instant::now();
        loop {
            let safety = checked + if look.blind { BLIND_CHECK } else { SAFETY_CHECK };
            let wake = [due, look.again].into_iter().flatten().fold(safety, Instant::min);
            tokio::select! {
                request = self.inbox.recv() => {
                    let Some(Request { change, reply }) = request else { break };
                    look = match change {
                        Change::Reload => self.look(&mut desk, Patience::None, false).await,
                        change => {
                            self.take(change);
                            self.look(&mut desk, Patience::Grace, true).await
                        }
                    };
                    reply.send(self.publish.borrow().clone()).ok();
                }
                // Whoever owned the settings may go first; then they stay as they were.
                Ok(()) = self.settings.changed() => {
                    if !self.take_settings() {
                        continue;
                    }
                    look = self.look(&mut desk, Patience::Grace, true).await;
                }
                () = self.bell.rung() => {
                    let now = Instant::now();
                    due = Some((now + QUIET).min(*burst.get_or_insert(now) + LONGEST_BURST));
                    continue;
                }
                () = tokio::time::sleep_until(wake) => look = self.look(&mut desk, Patience::Grace, false).await,
            }
            (burst, due, checked) = (None, None, Instant::now());
        }
    }

    fn take(&mut self, change: Change) {
        match change {
            Change::Folders(folders) => self.wanted.folders = folders,
            Change::Session(session) => self.wanted.session = session,
            Change::Reload => {}
        }
    }

    /// Takes the newest settings over; tells whether any of them matters here.
    fn take_settings(&mut self) -> bool {
        let settings = self.settings.borrow_and_update().clone();
        let same = settings.files == self.wanted.files && settings.limits == self.wanted.limits;
        (self.wanted.files, self.wanted.limits) = (settings.files.clone(), settings.limits.clone());
        !same
    }

    async fn look(&self, desk: &mut Option<Desk>, patience: Patience, forced: bool) -> Looked {
        let lent = desk.take();
        let wanted = self.wanted.clone();
        let bell = self.bell.clone();
        let work = tokio::task::spawn_blocking(move || {
            let mut desk = lent.unwrap_or_else(|| Desk {
                eyes: Eyes::open(bell),
                picture: Picture::default(),
                programs: Programs::default(),
            });
            let looked = desk.look(&wanted, patience, forced);
            (desk, looked)
        });
        match work.await {
            Ok((returned, mut looked)) => {
                *desk = Some(returned);
                self.settings_seen.send_if_modified(|seen| {
                    let new = *seen != looked.settings_file;
                    seen.clone_from(&looked.settings_file);
                    new
                });
                if let Some(news) = looked.news.take() {
                    self.inputs.send_replace(Arc::new(news.inputs));
                    self.publish.send_replace(Arc::new(news.loaded));
                }
                looked
            }
            // The desk is lost, the published picture is not: it stays until the next look, with a new desk.
            Err(error) => {
                tracing::error!(%error, "looking at the config files failed");
                Looked { news: None, again: None, blind: false, settings_file: None }
            }
        }
    }
}

impl Desk {
    fn look(&mut self, wanted: &Wanted, patience: Patience, forced: bool) -> Looked {
        let sources = super::sources(&wanted.folders, &wanted.files, &wanted.paths);
        let settings = Source { path: wanted.paths.settings_file().into(), scope: Scope::User, folder: None };
        // First listen, then read: what changes after the reading will be heard.
        let own = [sources.as_slice(), std::slice::from_ref(&settings)].concat();
        self.eyes.follow(&[own.clone(), self.programs.places()].concat());
        let forced = self.programs.look() || forced;
        let settings_file = Some(read(&settings.path, wanted.limits.config_bytes));
        let contents: Vec<(Source, Content)> = sources
            .into_iter()
            .map(|source| {
                let content = match read(&source.path, wanted.limits.config_bytes) {
                    Content::Absent if source.folder.as_deref().is_some_and(|folder| !folder.is_dir()) => Content::Gone,
                    content => content,
                };
                (source, content)
            })
            .collect();
        let load = |contents: &[(Source, Content)]| super::load(contents, &wanted.session, &wanted.limits);
        let (loaded, again) = self.picture.take(&contents, Instant::now(), patience, forced, &load);
        let news = loaded.map(|mut loaded| {
            if self.programs.learn(&loaded.config) {
                self.eyes.follow(&[own, self.programs.places()].concat());
            }
            loaded.config.missing = self.programs.missing();
            let present = loaded.files.iter().filter(|file| file.exists).count();
            tracing::info!(files = present, servers = loaded.config.servers.len(), "config read");
            let inputs = Inputs {
                contents: self.picture.current(&contents),
                session: wanted.session.clone(),
                limits: wanted.limits.clone(),
            };
            News { loaded, inputs }
        });
        Looked { news, again, blind: self.eyes.blind(), settings_file }
    }
}

/// What a config file holds now.
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

/// The folder above which nothing is watched for the sake of this file.
fn anchor(source: &Source) -> PathBuf {
    match &source.folder {
        Some(folder) => folder.to_path_buf(),
        // One above its own folder, which may be moved away as a whole.
        None => source.path.ancestors().nth(2).unwrap_or(Path::new("/")).to_path_buf(),
    }
}

#[cfg(test)]
mod tests;
