//! A temporary copy of the example workspace, with its own config and state.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::paths::Paths;

/// The example workspace is part of the binary, so that the demo works without a checkout.
const FILES: [(&str, &str); 3] = [
    ("mcp.json", include_str!("../../../examples/workspace/mcp.json")),
    (".cursor/mcp.json", include_str!("../../../examples/workspace/.cursor/mcp.json")),
    ("notes.md", include_str!("../../../examples/workspace/notes.md")),
];

pub struct DemoWorkspace {
    folder: TempDir,
}

impl DemoWorkspace {
    /// Copies the example. The copy starts this binary instead of `mcp-sidecar`, which may not be on the PATH.
    pub fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("mcp-sidecar-demo.").tempdir()?;
        let workspace = Self { folder };
        let program = Value::from(std::env::current_exe()?.to_string_lossy()).to_string();
        for (name, text) in FILES {
            let path = workspace.file(name);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text.replace(r#""command": "mcp-sidecar""#, &format!(r#""command": {program}"#)))?;
        }
        Ok(workspace)
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Separate config and state, so that the demo neither reads nor changes the user's files.
    pub fn paths(&self) -> Paths {
        Paths::under(self.folder.path())
    }

    /// Replaces text in a file and saves it.
    pub fn edit(&self, name: &str, old: &str, new: &str) -> io::Result<()> {
        let path = self.file(name);
        let text = fs::read_to_string(&path)?;
        fs::write(path, text.replacen(old, new, 1))
    }
}

/// The `file://` URI of a path.
pub fn uri(path: &Path) -> io::Result<url::Url> {
    url::Url::from_file_path(path).map_err(|()| io::Error::other(format!("{} is not an absolute path", path.display())))
}
