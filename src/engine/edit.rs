//! Changes of config files on the user's behalf: servers added, changed, moved, switched; levels of tools set.
//!
//! A file that an editor has open is changed there, where it can be undone; any other is changed on disk. Either way
//! comments and layout stay. Answered when what was written has been applied.

mod entry;
mod pages;
mod pattern;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use self::entry::{entry, unmasked};
pub use self::pages::{OnDisk, Pages};
use self::pattern::pattern;
use super::Engine;
use super::hub::Wish;
use super::snapshot::{Offered, ServerView, Trust};
use crate::config::edit::{self, EditError, UpdateError};
use crate::config::{Definition, File, Loaded, layers};
use crate::model::{Error, Level, Result, Scope, ServerName, ServerState, Status};
use crate::policy::NameGlob;

/// A definition is judged within milliseconds; this only ends a wait for one that nobody judges any more.
const JUDGED: Duration = Duration::from_secs(5);

/// What came of a change.
pub struct Edited<T> {
    pub answer: T,
    /// Files that were changed in the editor and count when they are saved there.
    pub unsaved: Vec<PathBuf>,
}

/// Files that were changed in the editor, with the text they have there.
type Unsaved = BTreeMap<PathBuf, Arc<str>>;
type Change = Arc<dyn Fn(&str) -> Result<String, EditError> + Send + Sync>;

/// Where a server of one scope is written, and under which key.
struct Spot {
    path: PathBuf,
    key: String,
}

impl Engine {
    /// Writes a definition, and beside it the inputs that it refers to. Those of a session have no file to stand in.
    pub async fn add_server(
        &self,
        pages: &dyn Pages,
        server: ServerName,
        config: Value,
        inputs: Vec<Value>,
        scope: Scope,
    ) -> Result<Edited<Arc<ServerView>>> {
        check(&server, &config)?;
        let exists = || Error::Conflict(format!("scope `{scope}` has a server `{server}` already"));
        let mut session = self.0.watcher.session();
        if self.spot(pages, &server, scope).is_some()
            || (scope == Scope::Session && session.contains_key(server.as_str()))
        {
            return Err(exists());
        }
        if scope == Scope::Session {
            session.insert(server.to_string(), config);
            self.put_session(session).await?;
            return self.edited(pages, &server, Unsaved::new()).await;
        }
        let path = self.file_for(scope)?;
        if pages.open(&path).is_some_and(|text| edit::remove_server(&text, server.as_str()).is_ok()) {
            return Err(exists());
        }
        let (file, name) = (path.clone(), server.clone());
        let change: Change = Arc::new(move |text| {
            edit::add_inputs(&edit::set_server(text, &file, name.as_str(), config.clone())?, &inputs)
        });
        let unsaved = self.rewrite(pages, &path, change).await?;
        self.edited(pages, &server, unsaved).await
    }

    /// Another definition in place of the one there. What `mcp.servers` showed as `•••` stays what it is.
    pub async fn update_server(
        &self,
        pages: &dyn Pages,
        server: ServerName,
        config: Value,
        scope: Scope,
    ) -> Result<Edited<Arc<ServerView>>> {
        if scope == Scope::Session {
            let mut session = self.0.watcher.session();
            let entry = session.get_mut(server.as_str()).ok_or_else(|| self.not_in(&server, scope))?;
            let config = unmasked(&config, entry, &layers::redacted(entry));
            check(&server, &config)?;
            *entry = config;
            self.put_session(session).await?;
            return self.edited(pages, &server, Unsaved::new()).await;
        }
        check(&server, &config)?;
        let Spot { path, key } = self.spot(pages, &server, scope).ok_or_else(|| self.not_in(&server, scope))?;
        let file = path.clone();
        let change: Change = Arc::new(move |text| {
            let old = entry(text, &key).unwrap_or_default();
            edit::set_server(text, &file, &key, unmasked(&config, &old, &layers::redacted(&old)))
        });
        let unsaved = self.rewrite(pages, &path, change).await?;
        self.edited(pages, &server, unsaved).await
    }

    pub async fn remove_server(&self, pages: &dyn Pages, server: &ServerName, scope: Scope) -> Result<Edited<()>> {
        let unsaved = self.take_out(pages, server, scope).await?;
        Ok(Edited { answer: (), unsaved: unsaved.into_keys().collect() })
    }

    /// Moves a definition to another scope as it is written, comments included.
    pub async fn move_server(
        &self,
        pages: &dyn Pages,
        server: ServerName,
        from: Scope,
        to: Scope,
    ) -> Result<Edited<Arc<ServerView>>> {
        if from == to {
            return self.edited(pages, &server, Unsaved::new()).await;
        }
        let mut session = self.0.watcher.session();
        let taken = match to {
            Scope::Session => session.contains_key(server.as_str()),
            _ => self.spot(pages, &server, to).is_some(),
        };
        if taken {
            return Err(Error::Conflict(format!("scope `{to}` has a server `{server}` already")));
        }
        let mut unsaved = Unsaved::new();
        match (from, to) {
            (Scope::Session, _) => {
                let config = session.get(server.as_str()).cloned().ok_or_else(|| self.not_in(&server, from))?;
                let (path, name) = (self.file_for(to)?, server.clone());
                let file = path.clone();
                let change: Change = Arc::new(move |text| edit::set_server(text, &file, name.as_str(), config.clone()));
                unsaved.extend(self.rewrite(pages, &path, change).await?);
            }
            (_, Scope::Session) => {
                let spot = self.spot(pages, &server, from).ok_or_else(|| self.not_in(&server, from))?;
                let written = entry(&self.text(pages, &spot.path)?, &spot.key);
                session.insert(server.to_string(), written.ok_or_else(|| self.not_in(&server, from))?);
                self.put_session(session).await?;
            }
            _ => {
                let spot = self.spot(pages, &server, from).ok_or_else(|| self.not_in(&server, from))?;
                let (path, source) = (self.file_for(to)?, self.text(pages, &spot.path)?);
                let file = path.clone();
                let change: Change =
                    Arc::new(move |text| edit::move_server(&source, text, &file, &spot.key).map(|(_, to)| to));
                unsaved.extend(self.rewrite(pages, &path, change).await?);
            }
        }
        // First written there, then removed here: whatever happens in between, it is never nowhere.
        unsaved.extend(self.take_out(pages, &server, from).await?);
        self.edited(pages, &server, unsaved).await
    }

    /// Switches a server on or off in its file; without a scope, where it is defined.
    pub async fn enable_server(
        &self,
        pages: &dyn Pages,
        server: ServerName,
        enabled: bool,
        scope: Option<Scope>,
    ) -> Result<Edited<Arc<ServerView>>> {
        let scope = match scope {
            Some(scope) => scope,
            None => self.known(pages, &server)?.scope,
        };
        if scope == Scope::Session {
            let mut session = self.0.watcher.session();
            let entry = session.get_mut(server.as_str()).and_then(Value::as_object_mut);
            let entry = entry.ok_or_else(|| self.not_in(&server, scope))?;
            entry.shift_remove("disabled");
            entry.insert("enabled".to_owned(), Value::Bool(enabled));
            self.put_session(session).await?;
            return self.edited(pages, &server, Unsaved::new()).await;
        }
        let Spot { path, key } = self.spot(pages, &server, scope).ok_or_else(|| self.not_in(&server, scope))?;
        let change: Change = Arc::new(move |text| edit::set_enabled(text, &key, enabled));
        let unsaved = self.rewrite_own(pages, &path, &server, change).await?;
        self.edited(pages, &server, unsaved).await
    }

    /// Sets the level of a tool or glob, or with `None` takes it away. The tools that it speaks of, as they are then.
    pub async fn set_level(
        &self,
        pages: &dyn Pages,
        server: ServerName,
        tool: &str,
        level: Option<Level>,
        scope: Scope,
    ) -> Result<Edited<Vec<(Arc<ServerView>, Arc<Offered>)>>> {
        self.known(pages, &server)?;
        let offered = self.now().server(&server).is_ok_and(|view| view.tools.contains_key(tool));
        let tool = if offered { tool } else { pattern(&server, tool, level)? };
        let unsaved = if scope == Scope::Session {
            self.set_session_level(server.clone(), tool, level).await?;
            Unsaved::new()
        } else {
            let Spot { path, key } = self.spot(pages, &server, scope).ok_or_else(|| self.not_in(&server, scope))?;
            let tool = tool.to_owned();
            let change: Change = Arc::new(move |text| edit::set_tool_level(text, &key, &tool, level));
            self.rewrite_own(pages, &path, &server, change).await?
        };
        self.judged(&server).await;
        let glob = NameGlob::new(tool);
        // One that is not saved yet has no tools.
        let view = self.now().servers.get(&server).cloned();
        let spoken = |view: &Arc<ServerView>| -> Vec<_> {
            let matching = view.tools.values().filter(|offered| glob.is_match(&offered.tool.name));
            matching.map(|offered| (view.clone(), offered.clone())).collect()
        };
        Ok(Edited { answer: view.iter().flat_map(spoken).collect(), unsaved: unsaved.into_keys().collect() })
    }

    async fn take_out(&self, pages: &dyn Pages, server: &ServerName, scope: Scope) -> Result<Unsaved> {
        if scope == Scope::Session {
            let mut session = self.0.watcher.session();
            session.remove(server.as_str()).ok_or_else(|| self.not_in(server, scope))?;
            self.put_session(session).await?;
            return Ok(Unsaved::new());
        }
        let Spot { path, key } = self.spot(pages, server, scope).ok_or_else(|| self.not_in(server, scope))?;
        let change: Change = Arc::new(move |text| edit::remove_server(text, &key));
        self.rewrite(pages, &path, change).await
    }

    /// A change that the user makes to a server he trusts: he is not asked about his own words afterwards.
    async fn rewrite_own(
        &self,
        pages: &dyn Pages,
        path: &Path,
        server: &ServerName,
        change: Change,
    ) -> Result<Unsaved> {
        // A definition that cannot be used has no view, but it can be changed all the same.
        let view = self.now().server(server).ok().cloned();
        let own = |view: &ServerView| view.trust == Trust::Given && view.definition.file.as_deref() == Some(path);
        if let Some(trusted) = view.filter(|view| own(view)).and_then(|view| view.fingerprint.clone()) {
            let text: Arc<str> = change(&self.text(pages, path)?).map_err(|error| unedited(path, &error))?.into();
            let preview = Arc::new(self.preview(&[(path.to_path_buf(), text)].into()));
            if let Some(definition) = preview.config.servers.get(server).cloned() {
                self.0.judge.expect(definition, preview, &trusted).await;
            }
        }
        self.rewrite(pages, path, change).await
    }

    /// Changes a file where it is: in the editor that has it open, else on disk, and then applies it.
    async fn rewrite(&self, pages: &dyn Pages, path: &Path, change: Change) -> Result<Unsaved> {
        if let Some(open) = pages.open(path) {
            let after = change(&open).map_err(|error| unedited(path, &error))?;
            if after == *open {
                return Ok(Unsaved::new());
            }
            if pages.put(path, &after).await {
                return Ok([(path.to_path_buf(), after.into())].into());
            }
            if self.loaded().borrow().file(path).is_none_or(|file| file.text != open) {
                return Err(Error::Conflict(format!(
                    "{} has changes that are not saved; save them first",
                    path.display()
                )));
            }
        }
        let target = path.to_path_buf();
        let written = tokio::task::spawn_blocking(move || edit::update(&target, |text| change(text))).await;
        written.map_err(|error| Error::Io(error.to_string()))?.map_err(|error| match error {
            UpdateError::Edit(error) => unedited(path, &error),
            error => Error::Io(error.to_string()),
        })?;
        let loaded = self.0.watcher.reload().await;
        self.wish(|done| Wish::Reloaded { loaded, done }).await?;
        Ok(Unsaved::new())
    }

    async fn put_session(&self, session: BTreeMap<String, Value>) -> Result<()> {
        let loaded = self.0.watcher.set_session(session).await;
        self.wish(|done| Wish::Reloaded { loaded, done }).await.map(drop)
    }

    /// Waits until it is clear what a definition may do.
    async fn judged(&self, server: &ServerName) {
        let mut snapshot = self.snapshot();
        let judged = snapshot.wait_for(|picture| picture.servers.get(server).is_none_or(|view| view.judged));
        tokio::time::timeout(JUDGED, judged).await.ok();
    }

    /// The server as it is after a change, once it is clear whether it may start.
    async fn edited(
        &self,
        pages: &dyn Pages,
        server: &ServerName,
        unsaved: Unsaved,
    ) -> Result<Edited<Arc<ServerView>>> {
        self.judged(server).await;
        let view = self.now().servers.get(server).cloned();
        // Not saved yet, so nothing but its definition is there.
        let answer = match view {
            Some(view) => view,
            None if unsaved.is_empty() => Arc::new(not_saved(&self.known(pages, server)?)),
            // The editor may not have told us yet what its text is now.
            None => {
                let preview = self.preview(&unsaved);
                let definition = preview.config.servers.get(server);
                Arc::new(not_saved(definition.ok_or_else(|| Error::NoServer(server.to_string()))?))
            }
        };
        Ok(Edited { answer, unsaved: unsaved.into_keys().collect() })
    }

    /// All config files, those that are open as they stand in the editor.
    fn seen(&self, pages: &dyn Pages) -> Arc<Loaded> {
        let loaded = self.loaded().borrow().clone();
        let open = |file: &File| Some((file.source.path.to_path_buf(), pages.open(&file.source.path)?));
        let open: Unsaved = loaded.files.iter().filter_map(open).collect();
        let unsaved = |(path, text): (&PathBuf, &Arc<str>)| loaded.file(path).is_none_or(|file| file.text != *text);
        if open.iter().any(unsaved) { Arc::new(self.preview(&open)) } else { loaded }
    }

    /// The definition that counts, or would if what is open were saved.
    fn known(&self, pages: &dyn Pages, server: &ServerName) -> Result<Arc<Definition>> {
        match self.now().server(server) {
            Ok(view) => Ok(view.definition.clone()),
            Err(error) => self.seen(pages).config.servers.get(server).cloned().ok_or(error),
        }
    }

    /// Where a server of this scope is written, also when another scope hides it, or when it is not saved yet.
    fn spot(&self, pages: &dyn Pages, server: &ServerName, scope: Scope) -> Option<Spot> {
        let loaded = self.seen(pages);
        let counting = loaded.config.servers.get(server).filter(|definition| definition.scope == scope);
        if let Some(definition) = counting
            && let Some(file) = &definition.file
        {
            return Some(Spot { path: file.to_path_buf(), key: definition.key.to_string() });
        }
        let mut files = loaded.files.iter().filter(|file| file.source.scope == scope);
        let holding = files.find(|file| file.servers.iter().any(|name| name == server.as_str()));
        holding.map(|file| Spot { path: file.source.path.to_path_buf(), key: server.to_string() })
    }

    /// The file that a new server of this scope goes into: the first that exists, else the first that may.
    fn file_for(&self, scope: Scope) -> Result<PathBuf> {
        if matches!(scope, Scope::Managed | Scope::Session) {
            return Err(Error::InvalidParams(format!("servers of scope `{scope}` are not kept in a file of yours")));
        }
        let loaded = self.loaded().borrow().clone();
        let files = || loaded.files.iter().filter(|file| file.source.scope == scope);
        let chosen = files().find(|file| file.exists).or_else(|| files().next());
        chosen
            .map(|file| file.source.path.to_path_buf())
            .ok_or_else(|| Error::InvalidParams(format!("scope `{scope}` needs a workspace folder, and none is open")))
    }

    /// The text of a file as it will be changed: from the editor, else as it was last read.
    fn text(&self, pages: &dyn Pages, path: &Path) -> Result<Arc<str>> {
        let read = || self.loaded().borrow().file(path).map(|file| file.text.clone());
        pages.open(path).or_else(read).ok_or_else(|| Error::NotFound(format!("{} is no config file", path.display())))
    }

    fn not_in(&self, server: &ServerName, scope: Scope) -> Error {
        if scope == Scope::Managed {
            return Error::InvalidParams("the managed config is not changed from here".to_owned());
        }
        match self.now().server(server) {
            Ok(view) => {
                let scope_of = view.definition.scope;
                let message = format!("scope `{scope}` defines no server `{server}`; it comes from scope `{scope_of}`");
                Error::Missing { server: server.clone(), message }
            }
            Err(error) => error,
        }
    }
}

/// A server that exists only in a text that is not saved yet.
fn not_saved(definition: &Arc<Definition>) -> ServerView {
    let needed = Trust::Needed { difference: None, refused: false };
    ServerView {
        definition: definition.clone(),
        state: Arc::new(ServerState::new(Status::Stopped)),
        trust: if definition.scope.needs_trust() { needed } else { Trust::Given },
        judged: true,
        fingerprint: None,
        switched_on: true,
        tools: Arc::default(),
        server: None,
        actions: 0,
        remarks: vec!["its file is open in the editor and not saved yet".to_owned()],
    }
}

fn unedited(path: &Path, error: &EditError) -> Error {
    match error {
        EditError::Missing(_) => Error::NotFound(format!("{}: {error}", path.display())),
        _ => Error::Conflict(format!("{}: {error}", path.display())),
    }
}

/// A definition that could not be used is not written.
fn check(server: &ServerName, config: &Value) -> Result<()> {
    if !config.is_object() {
        return Err(Error::InvalidParams("`config` is an object, as it stands in a config file".to_owned()));
    }
    layers::session_entry(server.as_str(), config).map(drop).map_err(|problems| {
        let told: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        Error::InvalidParams(format!("`{server}` cannot be used like this: {}", told.join("; ")))
    })
}
