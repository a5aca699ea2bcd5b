//! Finds the workspace of a folder.

use std::path::{Path, PathBuf};

use crate::settings::Files;

/// The workspace of a folder: the nearest parent with a config file or a repository, or the folder itself.
pub fn root_of(folder: &Path, files: &Files) -> PathBuf {
    folder.ancestors().find(|folder| is_project(folder, files)).unwrap_or(folder).to_owned()
}

/// Whether a folder has a config file or is a repository.
pub fn is_project(folder: &Path, files: &Files) -> bool {
    let mut names = files.local.iter().chain(&files.project).map(String::as_str).chain([".git"]);
    names.any(|name| folder.join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn the_nearest_config_file_or_repository_is_the_workspace() {
        let home = tempfile::tempdir().unwrap();
        let files = Settings::default().files;
        let deep = home.path().join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(home.path().join("a/.git")).unwrap();
        assert_eq!(root_of(&deep, &files), home.path().join("a"));
        std::fs::write(home.path().join("a/b/mcp.json"), "{}").unwrap();
        assert_eq!(root_of(&deep, &files), home.path().join("a/b"));
    }
}
