//! Enables, disables and restricts servers, also with an entry in a file that does not define the server, and sets their
//! timeouts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Change, Edited, OpenBuffers, ServerLocation, Unsaved};
use crate::config::interop::timeout_value;
use crate::config::spec::Restriction;
use crate::config::{Definition, edit};
use crate::engine::Engine;
use crate::engine::snapshot::ServerView;
use crate::model::{Error, Level, Result, Scope, ServerName};

/// The file for an entry that only restricts a server.
pub(super) struct RestrictionPlace {
    path: PathBuf,
    scope: Scope,
}

impl Engine {
    /// Enables or disables a server. Without a scope, disables it in the file that defines it, and enables it in every
    /// file that disables it. In another scope, an entry without a definition disables it.
    pub async fn enable_server(
        &self,
        buffers: &dyn OpenBuffers,
        server: ServerName,
        enabled: bool,
        scope: Option<Scope>,
    ) -> Result<Edited<Arc<ServerView>>> {
        let definition = self.find_definition(buffers, &server)?;
        let mut unsaved = Unsaved::new();
        match (scope, enabled) {
            (None, true) => {
                for restriction in definition.restrictions.iter().filter(|one| one.enabled == Some(false)) {
                    unsaved.extend(self.stop_disabling(buffers, &definition, restriction).await?);
                }
                if definition.restrictions.is_empty() || definition.disables_itself() {
                    unsaved.extend(self.set_enabled(buffers, &definition, definition.scope, true).await?);
                }
            }
            (scope, enabled) => {
                let scope = scope.unwrap_or(definition.scope);
                let restriction = definition.restrictions.iter().find(|one| one.scope == scope);
                unsaved = match (enabled, restriction, self.restriction_place(buffers, &definition, scope)?) {
                    (true, Some(restriction), _) => self.stop_disabling(buffers, &definition, restriction).await?,
                    (false, _, Some(place)) => self.disable(buffers, &definition, place).await?,
                    _ => self.set_enabled(buffers, &definition, scope, enabled).await?,
                };
            }
        }
        self.edited(buffers, &server, unsaved).await
    }

    /// Sets how long a call may take without a sign of life, where the server is defined.
    pub async fn set_timeout(
        &self,
        buffers: &dyn OpenBuffers,
        server: ServerName,
        timeout: Duration,
    ) -> Result<Edited<Arc<ServerView>>> {
        let scope = self.find_definition(buffers, &server)?.scope;
        if scope == Scope::Session {
            let mut session = self.0.watcher.session();
            let entry = session.get_mut(server.as_str()).and_then(Value::as_object_mut);
            let entry = entry.ok_or_else(|| self.not_defined_in(&server, scope))?;
            entry.shift_remove("request_timeout_ms");
            entry.insert("timeout".to_owned(), timeout_value(timeout));
            self.apply_session(session).await?;
            return self.edited(buffers, &server, Unsaved::new()).await;
        }
        if scope == Scope::Managed {
            return Err(self.not_defined_in(&server, scope));
        }
        let ServerLocation { path, key } = self.locate(buffers, &server, scope)?;
        let change: Change = Arc::new(move |text| edit::set_timeout(text, &key, timeout));
        let unsaved = self.rewrite_trusted(buffers, &path, &server, change).await?;
        self.edited(buffers, &server, unsaved).await
    }

    /// Changes the entry that defines the server in this scope.
    async fn set_enabled(
        &self,
        buffers: &dyn OpenBuffers,
        definition: &Definition,
        scope: Scope,
        enabled: bool,
    ) -> Result<Unsaved> {
        let server = &definition.name;
        if scope == Scope::Session {
            let mut session = self.0.watcher.session();
            let entry = session.get_mut(server.as_str()).and_then(Value::as_object_mut);
            let entry = entry.ok_or_else(|| self.not_defined_in(server, scope))?;
            entry.shift_remove("disabled");
            entry.insert("enabled".to_owned(), Value::Bool(enabled));
            self.apply_session(session).await?;
            return Ok(Unsaved::new());
        }
        let ServerLocation { path, key } = self.locate(buffers, server, scope)?;
        let change: Change = Arc::new(move |text| edit::set_enabled(text, &key, enabled));
        self.rewrite_trusted(buffers, &path, server, change).await
    }

    /// Where an entry of this scope that only restricts the server is, or can be added. `None` if the scope defines the
    /// server, or if such an entry would have no effect.
    pub(super) fn restriction_place(
        &self,
        buffers: &dyn OpenBuffers,
        definition: &Definition,
        scope: Scope,
    ) -> Result<Option<RestrictionPlace>> {
        let known = definition.restrictions.iter().find(|one| one.scope == scope);
        if let Some(path) = known.and_then(|one| one.file.as_deref()) {
            return Ok(Some(RestrictionPlace { path: path.to_path_buf(), scope }));
        }
        let applies = scope > definition.scope || !scope.needs_trust();
        let is_defined = self.locate(buffers, &definition.name, scope).is_ok()
            || scope == Scope::Session
                && known.is_none()
                && self.0.watcher.session().contains_key(definition.name.as_str());
        if scope == definition.scope || scope == Scope::Managed || !applies || is_defined {
            return Ok(None);
        }
        let path = if scope == Scope::Session { PathBuf::new() } else { self.file_for(scope)? };
        Ok(Some(RestrictionPlace { path, scope }))
    }

    async fn disable(
        &self,
        buffers: &dyn OpenBuffers,
        definition: &Definition,
        place: RestrictionPlace,
    ) -> Result<Unsaved> {
        if place.scope == Scope::Session {
            let mut session = self.0.watcher.session();
            session.insert(definition.name.to_string(), json!({ "enabled": false }));
            self.apply_session(session).await?;
            return Ok(Unsaved::new());
        }
        let (file, key) = (place.path.clone(), definition.key.clone());
        let change: Change = Arc::new(move |text| edit::disable(text, &file, key.as_str()));
        self.rewrite(buffers, &place.path, change).await
    }

    async fn stop_disabling(
        &self,
        buffers: &dyn OpenBuffers,
        definition: &Definition,
        restriction: &Restriction,
    ) -> Result<Unsaved> {
        if restriction.scope == Scope::Managed {
            return Err(self.not_defined_in(&definition.name, Scope::Managed));
        }
        let Some(path) = &restriction.file else {
            let mut session = self.0.watcher.session();
            session.remove(definition.name.as_str());
            self.apply_session(session).await?;
            return Ok(Unsaved::new());
        };
        let key = definition.key.clone();
        let change: Change = Arc::new(move |text| edit::stop_disabling(text, key.as_str()));
        self.rewrite(buffers, path, change).await
    }

    /// Sets the level of a tool in an entry that does not define the server, or removes it with `None`.
    pub(super) async fn restrict_tool(
        &self,
        buffers: &dyn OpenBuffers,
        place: RestrictionPlace,
        definition: &Definition,
        tool: &str,
        level: Option<Level>,
    ) -> Result<Unsaved> {
        let server = &definition.name;
        if let Some(level) = level.filter(|level| level.widens()) {
            return Err(Error::InvalidParams(format!(
                "the server `{server}` is defined in scope `{}`; scope `{}` can only restrict its tools, so set `{level}` there",
                definition.scope, place.scope
            )));
        }
        if level.is_none() && !definition.restrictions.iter().any(|one| one.scope == place.scope) {
            return Err(self.not_defined_in(server, place.scope));
        }
        let (file, key, tool) = (place.path.clone(), definition.key.clone(), tool.to_owned());
        let change: Change = Arc::new(move |text| match level {
            Some(level) => edit::restrict_tool(text, &file, key.as_str(), &tool, level),
            None => edit::set_tool_level(text, key.as_str(), &tool, None),
        });
        self.rewrite(buffers, &place.path, change).await
    }
}
