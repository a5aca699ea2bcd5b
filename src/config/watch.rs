//! Owner of the last good config: looks at the files when something happens to them, and publishes what they ask for.
//!
//! `eyes` hears that something happened, `picture` decides what it means; this file is the task between them.
//! What the config then changes is left to whoever listens.

mod eyes;
mod picture;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use self::eyes::{Bell, Eyes};
use self::picture::{Patience, Picture};
use super::{Content, Loaded, Source};
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
    Settings(Files, Limits),
    Session(BTreeMap<String, Value>),
    Reload,
}

impl Watcher {
    /// Starts watching. The first picture is published as soon as the files are read; [`Watcher::reload`] waits for it.
    pub fn start(paths: &Paths, settings: &Settings, folders: Vec<Arc<Path>>) -> Self {
        let (requests, inbox) = mpsc::channel(REQUESTS);
        let (publish, loaded) = watch::channel(Arc::default());
        let wanted = Wanted {
            paths: paths.clone(),
            folders,
            files: settings.files.clone(),
            limits: settings.limits.clone(),
            session: BTreeMap::new(),
        };
        tokio::spawn(Task { wanted, publish, inbox, bell: Arc::default() }.run());
        Self { requests, loaded }
    }

    /// What the files ask for, now and after each change.
    pub fn loaded(&self) -> watch::Receiver<Arc<Loaded>> {
        self.loaded.clone()
    }

    /// Other workspace folders. Answered, as all of these, when what follows from it has been published.
    pub async fn set_folders(&self, folders: Vec<Arc<Path>>) -> Arc<Loaded> {
        self.request(Change::Folders(folders)).await
    }

    pub async fn set_settings(&self, settings: &Settings) -> Arc<Loaded> {
        self.request(Change::Settings(settings.files.clone(), settings.limits.clone())).await
    }

    /// Replaces the definitions that were set at run time.
    pub async fn set_session(&self, session: BTreeMap<String, Value>) -> Arc<Loaded> {
        self.request(Change::Session(session)).await
    }

    /// Looks at all files now, and takes them as they are: somebody says that they are complete.
    pub async fn reload(&self) -> Arc<Loaded> {
        self.request(Change::Reload).await
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
    publish: watch::Sender<Arc<Loaded>>,
    inbox: mpsc::Receiver<Request>,
    bell: Arc<Bell>,
}

/// What takes time, and is therefore lent to a thread that may block.
struct Desk {
    eyes: Eyes,
    picture: Picture,
}

/// What a look at the files came to.
struct Looked {
    news: Option<Loaded>,
    /// When to look again although nothing may be heard until then.
    again: Option<Instant>,
    blind: bool,
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
                    let patience = if matches!(change, Change::Reload) { Patience::None } else { Patience::Grace };
                    let forced = self.take(change);
                    look = self.look(&mut desk, patience, forced).await;
                    reply.send(self.publish.borrow().clone()).ok();
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

    /// Takes a change over; tells whether it asks for a new picture even when no file changed.
    fn take(&mut self, change: Change) -> bool {
        match change {
            Change::Folders(folders) => self.wanted.folders = folders,
            Change::Settings(files, limits) => (self.wanted.files, self.wanted.limits) = (files, limits),
            Change::Session(session) => self.wanted.session = session,
            Change::Reload => return false,
        }
        true
    }

    async fn look(&self, desk: &mut Option<Desk>, patience: Patience, forced: bool) -> Looked {
        let lent = desk.take();
        let wanted = self.wanted.clone();
        let bell = self.bell.clone();
        let work = tokio::task::spawn_blocking(move || {
            let mut desk = lent.unwrap_or_else(|| Desk { eyes: Eyes::open(bell), picture: Picture::default() });
            let looked = desk.look(&wanted, patience, forced);
            (desk, looked)
        });
        match work.await {
            Ok((returned, mut looked)) => {
                *desk = Some(returned);
                if let Some(news) = looked.news.take() {
                    self.publish.send_replace(Arc::new(news));
                }
                looked
            }
            // The desk is lost, the published picture is not: it stays until the next look, with a new desk.
            Err(error) => {
                tracing::error!(%error, "looking at the config files failed");
                Looked { news: None, again: None, blind: false }
            }
        }
    }
}

impl Desk {
    fn look(&mut self, wanted: &Wanted, patience: Patience, forced: bool) -> Looked {
        let sources = super::sources(&wanted.folders, &wanted.files, &wanted.paths);
        // First listen, then read: what changes after the reading will be heard.
        self.eyes.follow(&sources);
        let contents: Vec<(Source, Content)> = sources
            .into_iter()
            .map(|source| {
                let content = read(&source.path, wanted.limits.config_bytes);
                (source, content)
            })
            .collect();
        let load = |contents: &[(Source, Content)]| super::load(contents, &wanted.session, &wanted.limits);
        let (news, again) = self.picture.take(contents, Instant::now(), patience, forced, &load);
        if let Some(loaded) = &news {
            let present = loaded.files.iter().filter(|file| file.exists).count();
            tracing::info!(files = present, servers = loaded.config.servers.len(), "config read");
        }
        Looked { news, again, blind: self.eyes.blind() }
    }
}

/// What a config file holds now.
pub fn read(path: &Path, limit: usize) -> Content {
    match read_file(path, limit) {
        Ok(None) => Content::Absent,
        Ok(Some(bytes)) => decode(bytes),
        Err(unreadable @ Unreadable::Large(_)) => {
            Content::Unreadable(format!("{unreadable} (`limits.config-bytes` sets this limit)"))
        }
        Err(unreadable) => Content::Unreadable(unreadable.to_string()),
    }
}

fn decode(bytes: Vec<u8>) -> Content {
    match String::from_utf8(bytes) {
        Ok(text) => Content::Text(text.into()),
        Err(error) => {
            let bytes = error.as_bytes();
            let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) || bytes.contains(&0);
            Content::Unreadable(if wide { "not UTF-8 (looks like UTF-16)" } else { "not UTF-8" }.to_owned())
        }
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
