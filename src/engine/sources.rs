//! Servers from the registry and from bundles.

use std::path::{Path, PathBuf};

use super::Engine;
use crate::model::{Error, Result};
use crate::registry::bundle::{self, Bundle};
use crate::registry::{Answered, Offer, Registry, SearchResult, VARIABLE, age};
use crate::text::one_line;

impl Engine {
    pub async fn search_registry(&self, query: &str) -> Result<Answered<SearchResult>> {
        self.registry()?.search(query).await
    }

    /// The definition of a server of the registry. `package_type` chooses a package, if there are several.
    pub async fn registry_offer(&self, name: &str, version: Option<&str>, package_type: Option<&str>) -> Result<Offer> {
        let answered = self.registry()?.server(name, version).await?;
        let mut offer = answered.value.offer(package_type)?;
        offer.notes.extend(
            answered
                .stale_since
                .map(|since| format!("the registry cannot be reached; this is its last response, from {}", age(since))),
        );
        Ok(offer)
    }

    pub async fn bundle_offer(&self, path: &Path) -> Result<Bundle> {
        let (path, folder) = (self.bundle_path(path)?, self.bundles());
        let read = tokio::task::spawn_blocking(move || bundle::read(&path, &folder)).await;
        read.map_err(|error| Error::Io(error.to_string()))?
    }

    pub async fn unpack_bundle(&self, path: &Path, sha256: String) -> Result<PathBuf> {
        let (path, folder) = (self.bundle_path(path)?, self.bundles());
        let unpacked = tokio::task::spawn_blocking(move || bundle::unpack(&path, &folder, &sha256)).await;
        unpacked.map_err(|error| Error::Io(error.to_string()))?
    }

    fn bundles(&self) -> PathBuf {
        self.0.shared.paths.state_dir.join("bundles")
    }

    /// The engine runs in another folder than its fronts.
    fn bundle_path(&self, path: &Path) -> Result<PathBuf> {
        match path.is_absolute() {
            true => Ok(path.to_path_buf()),
            false => Err(Error::InvalidParams(format!(
                "`{}` is not an absolute path",
                one_line(&path.display().to_string(), 200)
            ))),
        }
    }

    fn registry(&self) -> Result<Registry> {
        let paths = &self.0.shared.paths;
        let environments = self.environments();
        // Without a folder: a project must not choose where servers come from.
        let set = environments.in_folder(None).get(VARIABLE).filter(|url| !url.is_empty()).map(str::to_owned);
        let url = set.unwrap_or_else(|| self.settings().borrow().registry.url.clone());
        Registry::new(&url, paths.state_dir.join("registry"))
    }
}
