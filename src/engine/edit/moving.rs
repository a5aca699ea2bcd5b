//! Moves definitions between config files, exactly as they are written.

use std::sync::Arc;

use super::buffers::OpenBuffers;
use super::entry::entry;
use super::{Change, Edited, ServerLocation, Unsaved};
use crate::config::{File, Source, edit};
use crate::engine::Engine;
use crate::engine::snapshot::ServerView;
use crate::model::{Error, Result, Scope, ServerName};

impl Engine {
    /// Moves a definition to another scope as it is written, including comments.
    pub async fn move_server(
        &self,
        buffers: &dyn OpenBuffers,
        server: ServerName,
        from: Scope,
        to: Scope,
    ) -> Result<Edited<Arc<ServerView>>> {
        if from == to {
            return self.edited(buffers, &server, Unsaved::new()).await;
        }
        let mut session = self.0.watcher.session();
        let taken = match to {
            Scope::Session => session.contains_key(server.as_str()),
            _ => self.locate(buffers, &server, to).is_ok(),
        };
        if taken {
            return Err(Error::Conflict(format!("the server `{server}` already exists in scope `{to}`")));
        }
        let mut unsaved = Unsaved::new();
        match (from, to) {
            (Scope::Session, _) => {
                let config = session.get(server.as_str()).cloned().ok_or_else(|| self.not_defined_in(&server, from))?;
                let (path, name) = (self.file_for(to)?, server.clone());
                let file = path.clone();
                let change: Change = Arc::new(move |text| edit::set_server(text, &file, name.as_str(), config.clone()));
                unsaved.extend(self.rewrite(buffers, &path, change).await?);
            }
            (_, Scope::Session) => {
                let location = self.locate(buffers, &server, from)?;
                let written = entry(&self.text(buffers, &location.path)?, &location.key);
                session.insert(server.to_string(), written.ok_or_else(|| self.not_defined_in(&server, from))?);
                self.apply_session(session).await?;
            }
            _ => {
                let location = self.locate(buffers, &server, from)?;
                let (path, source) = (self.file_for(to)?, self.text(buffers, &location.path)?);
                let file = path.clone();
                let change: Change =
                    Arc::new(move |text| edit::move_server(&source, text, &file, &location.key).map(|(_, to)| to));
                unsaved.extend(self.rewrite(buffers, &path, change).await?);
            }
        }
        // Added to the new file before it is removed from the old one, so that it is never lost.
        unsaved.extend(self.remove_from(buffers, &server, from, edit::remove_server).await?);
        self.edited(buffers, &server, unsaved).await
    }

    /// Moves a definition to another file of the same scope and workspace folder, as it is written.
    pub async fn move_to_file(
        &self,
        buffers: &dyn OpenBuffers,
        server: ServerName,
        scope: Scope,
        file: &str,
    ) -> Result<Edited<Arc<ServerView>>> {
        let ServerLocation { path: old, key } = self.locate(buffers, &server, scope)?;
        let loaded = self.loaded().borrow().clone();
        let folder = loaded.file(&old).and_then(|file| file.source.folder.clone());
        let is_wanted = |each: &&File| {
            let Source { path, scope: of, folder: within } = &each.source;
            *of == scope && *within == folder && folder.as_ref().is_some_and(|folder| **path == folder.join(file))
        };
        let unknown = || Error::InvalidParams(format!("`{file}` is not a config file of scope `{scope}`"));
        let new = loaded.files.iter().find(is_wanted).ok_or_else(unknown)?.source.path.to_path_buf();
        if new == old {
            return self.edited(buffers, &server, Unsaved::new()).await;
        }
        if entry(&self.text(buffers, &new)?, &key).is_some() {
            return Err(Error::Conflict(format!("the server `{key}` already exists in `{file}`")));
        }
        let (source, target, name) = (self.text(buffers, &old)?, new.clone(), key.clone());
        let add: Change = Arc::new(move |text| edit::move_server(&source, text, &target, &name).map(|(_, to)| to));
        let remove: Change = Arc::new(move |text| edit::remove_server(text, &key));
        // Added to the new file before it is removed from the old one, so that it is never lost.
        let mut unsaved = self.rewrite(buffers, &new, add).await?;
        unsaved.extend(self.rewrite(buffers, &old, remove).await?);
        self.edited(buffers, &server, unsaved).await
    }
}
