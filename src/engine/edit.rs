//! Edits config files for the user: adds, changes, moves, enables and disables servers, and sets the levels of tools.
//!
//! A file that is open in an editor is changed there, so that the user can undo it; any other file is changed on disk.
//! Comments and layout are preserved. An edit returns when it has been applied.

mod buffers;
mod entry;
mod limits;
mod moving;
mod pattern;
mod unsaved;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use self::buffers::{NoBuffers, OpenBuffers};
use self::entry::{entry, unmasked};
use self::pattern::pattern;
use self::unsaved::unsaved_view;
use super::Engine;
use super::hub::HubCommand;
use super::server_actions::level_scopes;
use super::snapshot::{OfferedTool, ServerView, Trust};
use crate::config::edit::{self, EditError, UpdateError};
use crate::config::{Definition, EntrySpec, File, Loaded, Source, layers};
use crate::model::{Error, Level, Result, Scope, ServerName};
use crate::paths::{real_target, target_inside};
use crate::policy::NameGlob;

/// A trust check takes milliseconds. This limits the wait if the check was dropped.
const TRUST_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of an edit.
pub struct Edited<T> {
    pub answer: T,
    /// Files that were changed in the editor. The change applies when they are saved.
    pub unsaved: Vec<PathBuf>,
}

/// Files that were changed in the editor, with their new text.
type Unsaved = BTreeMap<PathBuf, Arc<str>>;
pub type ToolOfServer = (Arc<ServerView>, Arc<OfferedTool>);
type Change = Arc<dyn Fn(&str) -> Result<String, EditError> + Send + Sync>;

/// The file and key of a server in one scope.
struct ServerLocation {
    path: PathBuf,
    key: String,
}

impl Engine {
    /// Adds a definition and the inputs that it refers to. Session servers have no file for inputs.
    pub async fn add_server(
        &self,
        buffers: &dyn OpenBuffers,
        server: ServerName,
        config: Value,
        inputs: Vec<Value>,
        scope: Scope,
    ) -> Result<Edited<Arc<ServerView>>> {
        let entry = validate(&server, &config)?;
        if matches!(entry, EntrySpec::Restriction(_)) && self.find_definition(buffers, &server).is_err() {
            let message = format!("no file defines a server `{server}`; add `command`, `url` or `port` to define it");
            return Err(Error::InvalidParams(message));
        }
        let exists = || Error::Conflict(format!("the server `{server}` already exists in scope `{scope}`"));
        let mut session = self.0.watcher.session();
        if self.locate(buffers, &server, scope).is_ok()
            || (scope == Scope::Session && session.contains_key(server.as_str()))
        {
            return Err(exists());
        }
        if scope == Scope::Session {
            session.insert(server.to_string(), config);
            self.apply_session(session).await?;
            return self.edited(buffers, &server, Unsaved::new()).await;
        }
        let path = self.file_for(scope)?;
        if buffers.open(&path).is_some_and(|text| edit::remove_server(&text, server.as_str()).is_ok()) {
            return Err(exists());
        }
        let (file, name) = (path.clone(), server.clone());
        let change: Change = Arc::new(move |text| {
            edit::add_inputs(&edit::set_server(text, &file, name.as_str(), config.clone())?, &inputs)
        });
        let unsaved = self.rewrite(buffers, &path, change).await?;
        self.edited(buffers, &server, unsaved).await
    }

    /// Replaces a definition. Values that `mcp.servers` showed as `•••` are kept.
    pub async fn update_server(
        &self,
        buffers: &dyn OpenBuffers,
        server: ServerName,
        config: Value,
        scope: Scope,
    ) -> Result<Edited<Arc<ServerView>>> {
        if scope == Scope::Session {
            let mut session = self.0.watcher.session();
            let entry = session.get_mut(server.as_str()).ok_or_else(|| self.not_defined_in(&server, scope))?;
            let config = unmasked(&config, entry, &layers::redacted(entry));
            validate(&server, &config)?;
            *entry = config;
            self.apply_session(session).await?;
            return self.edited(buffers, &server, Unsaved::new()).await;
        }
        validate(&server, &config)?;
        let ServerLocation { path, key } = self.locate(buffers, &server, scope)?;
        let file = path.clone();
        let change: Change = Arc::new(move |text| {
            let old = entry(text, &key).unwrap_or_default();
            edit::set_server(text, &file, &key, unmasked(&config, &old, &layers::redacted(&old)))
        });
        let unsaved = self.rewrite(buffers, &path, change).await?;
        self.edited(buffers, &server, unsaved).await
    }

    pub async fn remove_server(
        &self,
        buffers: &dyn OpenBuffers,
        server: &ServerName,
        scope: Scope,
    ) -> Result<Edited<()>> {
        let unsaved = self.remove_from(buffers, server, scope, edit::remove_server_and_inputs).await?;
        Ok(Edited { answer: (), unsaved: unsaved.into_keys().collect() })
    }

    /// Sets the level of a tool or glob, or removes it with `None`. Without a scope, in the file that defines the server.
    /// Returns the scope and the tools that match.
    pub async fn set_level(
        &self,
        buffers: &dyn OpenBuffers,
        server: ServerName,
        tool: &str,
        level: Option<Level>,
        scope: Option<Scope>,
    ) -> Result<Edited<(Scope, Vec<ToolOfServer>)>> {
        let definition = self.find_definition(buffers, &server)?;
        let default = level_scopes(definition.scope).first().copied().unwrap_or(Scope::Session);
        let scope = scope.unwrap_or(default);
        let offered = self.now().server(&server).is_ok_and(|view| view.tools.contains_key(tool));
        let tool = if offered { tool } else { pattern(&server, tool, level)? };
        let unsaved = if scope == Scope::Session {
            self.set_session_level(server.clone(), tool, level).await?;
            Unsaved::new()
        } else if let Some(place) = self.restriction_place(buffers, &definition, scope)? {
            self.restrict_tool(buffers, place, &definition, tool, level).await?
        } else {
            let ServerLocation { path, key } = self.locate(buffers, &server, scope)?;
            let tool = tool.to_owned();
            let change: Change = Arc::new(move |text| edit::set_tool_level(text, &key, &tool, level));
            self.rewrite_trusted(buffers, &path, &server, change).await?
        };
        self.wait_for_trust_check(&server).await;
        let glob = NameGlob::new(tool);
        // A server that is not saved yet has no tools.
        let view = self.now().servers.get(&server).cloned();
        let tools_of = |view: &Arc<ServerView>| -> Vec<_> {
            let matching = view.tools.values().filter(|offered| glob.is_match(&offered.tool.name));
            matching.map(|offered| (view.clone(), offered.clone())).collect()
        };
        let answer = (scope, view.iter().flat_map(tools_of).collect());
        Ok(Edited { answer, unsaved: unsaved.into_keys().collect() })
    }

    /// `remove` removes a server from a text.
    async fn remove_from(
        &self,
        buffers: &dyn OpenBuffers,
        server: &ServerName,
        scope: Scope,
        remove: fn(&str, &str) -> Result<String, EditError>,
    ) -> Result<Unsaved> {
        if scope == Scope::Session {
            let mut session = self.0.watcher.session();
            session.remove(server.as_str()).ok_or_else(|| self.not_defined_in(server, scope))?;
            self.apply_session(session).await?;
            return Ok(Unsaved::new());
        }
        let ServerLocation { path, key } = self.locate(buffers, server, scope)?;
        let change: Change = Arc::new(move |text| remove(text, &key));
        self.rewrite(buffers, &path, change).await
    }

    /// Changes a trusted server for the user, who is not asked to trust their own change afterwards.
    async fn rewrite_trusted(
        &self,
        buffers: &dyn OpenBuffers,
        path: &Path,
        server: &ServerName,
        change: Change,
    ) -> Result<Unsaved> {
        // An invalid definition has no view, but it can still be changed.
        let view = self.now().server(server).ok().cloned();
        let own = |view: &ServerView| view.trust == Trust::Given && view.definition.file.as_deref() == Some(path);
        if let Some(trusted) = view.filter(|view| own(view)).and_then(|view| view.fingerprint.clone()) {
            let text: Arc<str> = change(&self.text(buffers, path)?).map_err(|error| edit_error(path, &error))?.into();
            let preview = Arc::new(self.preview(&[(path.to_path_buf(), text)].into()));
            if let Some(definition) = preview.config.servers.get(server).cloned() {
                self.0.trust_checker.expect_change(definition, preview, &trusted).await;
            }
        }
        self.rewrite(buffers, path, change).await
    }

    /// Changes a file in the editor that has it open, or on disk, where the change is applied at once.
    async fn rewrite(&self, buffers: &dyn OpenBuffers, path: &Path, change: Change) -> Result<Unsaved> {
        let loaded = self.loaded().borrow().clone();
        let source = loaded.file(path).map(|file| file.source.clone());
        source.as_ref().map_or(Ok(()), |source| writable(source, &loaded))?;
        let repository = source.and_then(|source| source.repository());
        if let Some(open) = buffers.open(path) {
            let after = change(&open).map_err(|error| edit_error(path, &error))?;
            if after == *open {
                return Ok(Unsaved::new());
            }
            if buffers.put(path, &after).await {
                return Ok([(path.to_path_buf(), after.into())].into());
            }
            if self.loaded().borrow().file(path).is_none_or(|file| file.text != open) {
                return Err(Error::Conflict(format!("{} has unsaved changes; save the file first", path.display())));
            }
        }
        let (target, engine) = (path.to_path_buf(), self.clone());
        let update = move || {
            edit::update(&target, repository.as_deref(), |text| {
                let after = change(text)?;
                engine.expect_change(&target, text, &after);
                Ok(after)
            })
        };
        let written = tokio::task::spawn_blocking(update).await;
        written.map_err(|error| Error::Io(error.to_string()))?.map_err(|error| match error {
            UpdateError::Edit(error) => edit_error(path, &error),
            error => Error::Io(error.to_string()),
        })?;
        self.0.watcher.reload().await;
        self.send_command(|done| HubCommand::ApplyConfig { done }).await?;
        Ok(Unsaved::new())
    }

    async fn apply_session(&self, session: BTreeMap<String, Value>) -> Result<()> {
        self.0.watcher.set_session(session).await;
        self.send_command(|done| HubCommand::ApplyConfig { done }).await.map(drop)
    }

    /// Waits until the trust check of a definition is done.
    async fn wait_for_trust_check(&self, server: &ServerName) {
        let mut snapshot = self.snapshot();
        let checked = snapshot.wait_for(|snapshot| snapshot.servers.get(server).is_none_or(|view| view.trust_checked));
        tokio::time::timeout(TRUST_CHECK_TIMEOUT, checked).await.ok();
    }

    /// The server after an edit, once its trust check is done.
    async fn edited(
        &self,
        buffers: &dyn OpenBuffers,
        server: &ServerName,
        unsaved: Unsaved,
    ) -> Result<Edited<Arc<ServerView>>> {
        self.wait_for_trust_check(server).await;
        let view = self.now().servers.get(server).cloned();
        // It is not saved yet, so there is only a definition.
        let answer = match view {
            Some(view) => view,
            None if unsaved.is_empty() => Arc::new(unsaved_view(&self.find_definition(buffers, server)?)),
            // The editor may not have sent its new text yet.
            None => {
                let preview = self.preview(&unsaved);
                let definition = preview.config.servers.get(server);
                Arc::new(unsaved_view(definition.ok_or_else(|| Error::NoServer(server.to_string()))?))
            }
        };
        Ok(Edited { answer, unsaved: unsaved.into_keys().collect() })
    }

    /// All config files, with the text of open buffers.
    fn config_with(&self, buffers: &dyn OpenBuffers) -> Arc<Loaded> {
        let loaded = self.loaded().borrow().clone();
        let open = |file: &File| Some((file.source.path.to_path_buf(), buffers.open(&file.source.path)?));
        let open: Unsaved = loaded.files.iter().filter_map(open).collect();
        let unsaved = |(path, text): (&PathBuf, &Arc<str>)| loaded.file(path).is_none_or(|file| file.text != *text);
        if open.iter().any(unsaved) { Arc::new(self.preview(&open)) } else { loaded }
    }

    /// The definition in effect, or the one that would be if all buffers were saved.
    fn find_definition(&self, buffers: &dyn OpenBuffers, server: &ServerName) -> Result<Arc<Definition>> {
        match self.now().server(server) {
            Ok(view) => Ok(view.definition.clone()),
            Err(error) => self.config_with(buffers).config.servers.get(server).cloned().ok_or(error),
        }
    }

    /// Where a server of this scope is defined, even if another scope overrides it or it is not saved yet.
    fn locate(&self, buffers: &dyn OpenBuffers, server: &ServerName, scope: Scope) -> Result<ServerLocation> {
        let loaded = self.config_with(buffers);
        let counting = loaded.config.servers.get(server).filter(|definition| definition.scope == scope);
        if let Some(definition) = counting
            && let Some(file) = &definition.file
        {
            return Ok(ServerLocation { path: file.to_path_buf(), key: definition.key.to_string() });
        }
        let mut files = loaded.files.iter().filter(|file| file.source.scope == scope);
        let holding = files.find(|file| file.servers.iter().any(|name| name == server.as_str()));
        holding
            .map(|file| ServerLocation { path: file.source.path.to_path_buf(), key: server.to_string() })
            .ok_or_else(|| self.not_defined_in(server, scope))
    }

    /// The file for a new server of this scope: the first that exists, or the first possible one.
    fn file_for(&self, scope: Scope) -> Result<PathBuf> {
        if matches!(scope, Scope::Managed | Scope::Session) {
            return Err(Error::InvalidParams(format!("servers in scope `{scope}` have no editable config file")));
        }
        let loaded = self.loaded().borrow().clone();
        let files = || loaded.files.iter().filter(|file| file.source.scope == scope);
        let chosen = files().find(|file| file.exists).or_else(|| files().next());
        chosen
            .map(|file| file.source.path.to_path_buf())
            .ok_or_else(|| Error::InvalidParams(format!("scope `{scope}` requires an open workspace folder")))
    }

    /// The text to edit: from the editor, or as it was last read.
    fn text(&self, buffers: &dyn OpenBuffers, path: &Path) -> Result<Arc<str>> {
        let read = || self.loaded().borrow().file(path).map(|file| file.text.clone());
        buffers
            .open(path)
            .or_else(read)
            .ok_or_else(|| Error::NotFound(format!("{} is not a config file", path.display())))
    }

    fn not_defined_in(&self, server: &ServerName, scope: Scope) -> Error {
        if scope == Scope::Managed {
            return Error::InvalidParams("the managed config cannot be changed here".to_owned());
        }
        match self.now().server(server) {
            Ok(view) => {
                let scope_of = view.definition.scope;
                let message = format!("the server `{server}` is defined in scope `{scope_of}`, not in scope `{scope}`");
                Error::Missing { server: server.clone(), message }
            }
            Err(error) => error,
        }
    }
}

/// A file of a project is only written inside of its repository. A file that another scope reads is only written in the
/// scope where it is: what a link adds, the other scope may start without trust, or remove.
fn writable(source: &Source, loaded: &Loaded) -> Result<()> {
    let refused = |reason: String| Error::Io(format!("cannot write {}: {reason}", source.path.display()));
    let target = match source.repository() {
        Some(repository) => target_inside(&source.path, &repository),
        None => real_target(&source.path),
    };
    let target = target.map_err(|error| refused(error.to_string()))?;
    let same = |file: &&File| {
        let other = &file.source;
        other.scope != source.scope
            && (!other.is_link() || source.scope.needs_trust() && !other.scope.needs_trust())
            && real_target(&other.path).is_ok_and(|other| other == target)
    };
    match loaded.files.iter().find(same) {
        Some(other) => Err(refused(format!("it is the same file as {}", other.source.path.display()))),
        None => Ok(()),
    }
}

fn edit_error(path: &Path, error: &EditError) -> Error {
    match error {
        EditError::Missing(_) => Error::NotFound(format!("{}: {error}", path.display())),
        _ => Error::Conflict(format!("{}: {error}", path.display())),
    }
}

/// An invalid definition is never written.
fn validate(server: &ServerName, config: &Value) -> Result<EntrySpec> {
    if !config.is_object() {
        return Err(Error::InvalidParams("`config` must be an object, as in a config file".to_owned()));
    }
    layers::session_entry(server.as_str(), config).map(|(_, entry)| entry).map_err(|problems| {
        let messages: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        Error::InvalidParams(format!("the definition of `{server}` is invalid: {}", messages.join("; ")))
    })
}
