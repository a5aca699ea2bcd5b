//! Servers from and for other programs: the config's own work, with what follows for the engine.

use std::path::PathBuf;
use std::sync::Arc;

use super::Engine;
use crate::config::Loaded;
use crate::config::interop::{self, Dialect, Exported, Homes, ImportRequest, Imported};
use crate::model::{Error, Result, ServerName};

impl Engine {
    /// Imports servers; answered when what was written is in force.
    pub async fn import(&self, request: ImportRequest) -> Result<Imported> {
        let dry_run = request.dry_run;
        let imported =
            self.beside(move |loaded| interop::import_from(&request, &loaded, Homes::discover().as_ref())).await?;
        if !dry_run && !imported.imported.is_empty() {
            self.reload().await?;
        }
        Ok(imported)
    }

    /// Writes servers for another program: `None` = all of them.
    pub async fn export(
        &self,
        to: Dialect,
        servers: Option<Vec<ServerName>>,
        path: Option<PathBuf>,
    ) -> Result<Exported> {
        let export = move |loaded: Arc<Loaded>| {
            interop::export_to(to, servers.as_deref(), path.as_deref(), &loaded, Homes::discover().as_ref())
        };
        self.beside(export).await
    }

    /// Files are read and written on a thread that may wait for them.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Loaded>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let loaded = self.loaded().borrow().clone();
        let work = tokio::task::spawn_blocking(move || work(loaded));
        work.await.map_err(|_| Error::Io("the exchange broke off".to_owned()))?
    }
}
