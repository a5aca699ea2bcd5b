//! Imports servers from other programs and exports servers to them.

use std::path::PathBuf;
use std::sync::Arc;

use super::Engine;
use crate::config::Loaded;
use crate::config::interop::{self, Dialect, Exported, Homes, ImportRequest, Imported};
use crate::model::{Error, Result, ServerName};

impl Engine {
    /// Imports servers. Returns when they have been applied.
    pub async fn import(&self, command: ImportRequest) -> Result<Imported> {
        let dry_run = command.dry_run;
        let before = self.loaded().borrow().clone();
        let imported = self
            .run_blocking(move |loaded| interop::import_from(&command, &loaded, Homes::discover().as_ref()))
            .await?;
        if !dry_run && !imported.imported.is_empty() {
            let path = &imported.path;
            let text = |loaded: &Loaded| loaded.file(path).map(|file| file.text.clone()).unwrap_or_default();
            let after = tokio::fs::read_to_string(path).await.unwrap_or_default();
            self.expect_change(path, &text(&before), &after);
            self.reload().await?;
        }
        Ok(imported)
    }

    /// Exports servers to another program. `None` means all of them.
    pub async fn export(
        &self,
        to: Dialect,
        servers: Option<Vec<ServerName>>,
        path: Option<PathBuf>,
    ) -> Result<Exported> {
        let export = move |loaded: Arc<Loaded>| {
            interop::export_to(to, servers.as_deref(), path.as_deref(), &loaded, Homes::discover().as_ref())
        };
        self.run_blocking(export).await
    }

    /// Runs work that reads and writes files on a blocking thread.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Loaded>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let loaded = self.loaded().borrow().clone();
        let work = tokio::task::spawn_blocking(move || work(loaded));
        work.await.map_err(|_| Error::Io("internal error; see the log of mcp-sidecar".to_owned()))?
    }
}
