//! A temporary folder for a test: the sidecar's own files, and a project.

use std::path::PathBuf;

use mcp_sidecar::paths::Paths;
use tempfile::TempDir;

pub struct Home {
    folder: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["config", "state", "runtime", "project"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder }
    }

    pub fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn paths(&self) -> Paths {
        Paths {
            config_dir: self.path("config"),
            state_dir: self.path("state"),
            runtime_dir: self.path("runtime"),
            managed_config: self.path("managed.json"),
        }
    }

    /// The same paths as environment variables.
    pub fn variables(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("MCP_SIDECAR_CONFIG_DIR", self.path("config")),
            ("MCP_SIDECAR_STATE_DIR", self.path("state")),
            ("MCP_SIDECAR_RUNTIME_DIR", self.path("runtime")),
            ("MCP_SIDECAR_MANAGED_CONFIG", self.path("managed.json")),
        ]
    }

    /// Writes a file of the project and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}
