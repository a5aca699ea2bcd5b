//! Where the demo plays: a copy of the example workspace, with state of its own, gone at the end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::paths::Paths;

/// The example workspace travels inside the binary, so that the demo needs no checkout.
const FILES: [(&str, &str); 3] = [
    ("mcp.json", include_str!("../../../examples/workspace/mcp.json")),
    (".cursor/mcp.json", include_str!("../../../examples/workspace/.cursor/mcp.json")),
    ("notes.md", include_str!("../../../examples/workspace/notes.md")),
];

pub struct Stage {
    place: TempDir,
}

impl Stage {
    /// Copies the example. It names the program `mcp-sidecar`, as a user would; the copy names this very binary, which
    /// need not be on the PATH.
    pub fn build() -> io::Result<Self> {
        let place = tempfile::Builder::new().prefix("mcp-sidecar-demo.").tempdir()?;
        let stage = Self { place };
        let program = Value::from(std::env::current_exe()?.to_string_lossy()).to_string();
        for (name, text) in FILES {
            let path = stage.file(name);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text.replace(r#""command": "mcp-sidecar""#, &format!(r#""command": {program}"#)))?;
        }
        Ok(stage)
    }

    pub fn workspace(&self) -> PathBuf {
        self.place.path().join("workspace")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// Config and state that are nobody's, so that the demo neither sees nor changes the user's own.
    pub fn paths(&self) -> Paths {
        let at = |name: &str| self.place.path().join(name);
        Paths {
            config_dir: at("config"),
            state_dir: at("state"),
            runtime_dir: at("run"),
            managed_config: at("managed.json"),
        }
    }

    /// Changes a file as an editor's save does.
    pub fn edit(&self, name: &str, old: &str, new: &str) -> io::Result<()> {
        let path = self.file(name);
        let text = fs::read_to_string(&path)?;
        fs::write(path, text.replacen(old, new, 1))
    }
}

/// `file://` and the path, as LSP names files.
pub fn uri(path: &Path) -> io::Result<String> {
    url::Url::from_file_path(path)
        .map(String::from)
        .map_err(|()| io::Error::other(format!("{} is not an absolute path", path.display())))
}
