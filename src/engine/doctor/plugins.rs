//! Finds installed editor plugins and checks that their version matches.

use std::path::{Path, PathBuf};

use super::Check;

const OURS: &str = env!("CARGO_PKG_VERSION");
/// Where VS Code and its forks store extensions.
const EXTENSIONS: [&str; 5] = [
    ".vscode/extensions",
    ".vscode-server/extensions",
    ".vscode-oss/extensions",
    ".cursor/extensions",
    ".windsurf/extensions",
];
/// Where Neovim's plugin managers store plugins: folders of plugins, and folders of such folders.
const NVIM: [&str; 2] = [".local/share/nvim/lazy", ".local/share/nvim/plugged"];
const NVIM_PACKS: &str = ".local/share/nvim/site/pack";
/// The file of the Neovim plugin that contains its version.
const NVIM_FILE: &str = "lua/mcp_sidecar/client.lua";

/// One check per plugin, or a single one if there are none.
pub fn check(home: Option<&Path>) -> Vec<Check> {
    let Some(home) = home else { return Vec::new() };
    let mut checks = Vec::new();
    for extension in EXTENSIONS.iter().flat_map(|folder| inside(&home.join(folder))) {
        let name = extension.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let package = extension.join("package.json");
        if name.contains("mcp-sidecar")
            && let Some(version) = std::fs::read_to_string(package).ok().and_then(|text| package_version(&text))
        {
            checks.push(check_version("plugin for VS Code", &version, &extension));
        }
    }
    let packs = inside(&home.join(NVIM_PACKS)).into_iter().flat_map(|pack| [pack.join("start"), pack.join("opt")]);
    for plugin in NVIM.iter().map(|folder| home.join(folder)).chain(packs).flat_map(|folder| inside(&folder)) {
        // If the whole repository is installed as a plugin, the plugin is in a subfolder.
        let files = [plugin.join(NVIM_FILE), plugin.join("editors/nvim").join(NVIM_FILE)];
        let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
        if let Some(version) = text.and_then(|text| lua_version(&text)) {
            checks.push(check_version("plugin for Neovim", &version, &plugin));
        }
    }
    if checks.is_empty() {
        checks.push(Check::good(
            "editor plugins",
            "none found in the usual places; editors with LSP support work without one",
        ));
    }
    checks
}

fn inside(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn check_version(name: &str, version: &str, place: &Path) -> Check {
    let message = format!("{version} in {}", place.display());
    if series(version) == series(OURS) {
        Check::good(name, message)
    } else {
        Check::bad(name, message, format!("mcp-sidecar is {OURS}; update the older one"))
    }
}

/// The part of a version that must match for both sides to be compatible.
fn series(version: &str) -> Vec<&str> {
    let significant = if version.starts_with("0.") { 2 } else { 1 };
    version.split('.').take(significant).collect()
}

fn package_version(text: &str) -> Option<String> {
    let package: serde_json::Value = serde_json::from_str(text).ok()?;
    package.get("version")?.as_str().filter(|version| is_version(version)).map(str::to_owned)
}

fn lua_version(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.trim_start().starts_with("M.version"))?;
    line.split('"').nth(1).filter(|version| is_version(version)).map(str::to_owned)
}

fn is_version(text: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    text.len() < 40 && text.split('.').all(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(home: &Path, name: &str, text: &str) {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn plugins_are_found_and_outdated_ones_fail() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(check(Some(home.path())).len(), 1);
        write(home.path(), ".vscode/extensions/x.mcp-sidecar-9.1.0/package.json", r#"{ "version": "9.1.0" }"#);
        write(home.path(), ".vscode/extensions/x.other-1.0.0/package.json", r#"{ "version": "1.0.0" }"#);
        let lua = format!("local M = {{}}\nM.version = \"{OURS}\"\n");
        write(home.path(), &format!(".local/share/nvim/lazy/mcp-sidecar.nvim/{NVIM_FILE}"), &lua);
        write(home.path(), &format!(".local/share/nvim/site/pack/p/start/mcp-sidecar/editors/nvim/{NVIM_FILE}"), &lua);
        let checks: Vec<_> = check(Some(home.path())).into_iter().map(|check| (check.name, check.ok)).collect();
        let expected = [("plugin for VS Code", false), ("plugin for Neovim", true), ("plugin for Neovim", true)];
        assert_eq!(checks, expected.map(|(name, ok)| (name.to_owned(), ok)));
    }

    #[test]
    fn before_1_0_the_minor_version_must_match() {
        assert_eq!(series("0.1.0"), series("0.1.9"));
        assert_ne!(series("0.1.0"), series("0.2.0"));
        assert_eq!(series("1.1.0"), series("1.2.0"));
    }
}
