//! Finds installed editor plugins and checks that their version matches.

use std::path::{Path, PathBuf};

use super::Check;
use crate::config::Environment;

const OURS: &str = env!("CARGO_PKG_VERSION");
/// Where VS Code and its forks store extensions.
const EXTENSIONS: [&str; 5] = [
    ".vscode/extensions",
    ".vscode-server/extensions",
    ".vscode-oss/extensions",
    ".cursor/extensions",
    ".windsurf/extensions",
];
/// Where Neovim's plugin managers store plugins, below its data folder: folders of plugins, and folders of such folders.
const NVIM: [&str; 2] = ["lazy", "plugged"];
const NVIM_PACKS: &str = "site/pack";
/// Packages of a user's own config, below its config folder.
const NVIM_OWN_PACKS: &str = "pack";
/// The file of the Neovim plugin that contains its version.
const NVIM_FILE: &str = "lua/mcp_sidecar/binary.lua";

/// One check per plugin, or a single one if there are none.
pub fn check(environment: &Environment) -> Vec<Check> {
    let Some(home) = environment.get("HOME").map(Path::new) else { return Vec::new() };
    let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let app = set("NVIM_APPNAME").unwrap_or("nvim");
    let folder = |name: &str, usual: &str| set(name).map_or_else(|| home.join(usual), PathBuf::from).join(app);
    let (data, config) = (folder("XDG_DATA_HOME", ".local/share"), folder("XDG_CONFIG_HOME", ".config"));
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
    let packs = [data.join(NVIM_PACKS), config.join(NVIM_OWN_PACKS)].into_iter().flat_map(|packs| inside(&packs));
    let packs = packs.flat_map(|pack| [pack.join("start"), pack.join("opt")]);
    for plugin in NVIM.iter().map(|folder| data.join(folder)).chain(packs).flat_map(|folder| inside(&folder)) {
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
    use std::collections::BTreeMap;

    use super::*;

    fn write(home: &Path, name: &str, text: &str) {
        let path = home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The plugin itself: the doctor must find the version where it really is.
    const PLUGIN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/editors/nvim/lua/mcp_sidecar/binary.lua"));

    fn found(home: &Path, variables: &[(&str, &str)]) -> Vec<(String, bool)> {
        let home = home.to_str().unwrap();
        let mut environment = BTreeMap::from([("HOME".to_owned(), home.to_owned())]);
        environment.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), value.replace('~', home))));
        check(&environment.into()).into_iter().map(|check| (check.name, check.ok)).collect()
    }

    #[test]
    fn plugins_are_found_and_outdated_ones_fail() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(found(home.path(), &[]), [("editor plugins".to_owned(), true)]);
        write(home.path(), ".vscode/extensions/x.mcp-sidecar-9.1.0/package.json", r#"{ "version": "9.1.0" }"#);
        write(home.path(), ".vscode/extensions/x.other-1.0.0/package.json", r#"{ "version": "1.0.0" }"#);
        let repository = format!("editors/nvim/{NVIM_FILE}");
        write(home.path(), &format!(".local/share/nvim/lazy/mcp-sidecar/{repository}"), PLUGIN);
        write(home.path(), &format!(".local/share/nvim/site/pack/p/start/mcp-sidecar/{repository}"), PLUGIN);
        write(home.path(), &format!(".config/nvim/pack/p/opt/mcp-sidecar.nvim/{NVIM_FILE}"), PLUGIN);
        let neovim = ("plugin for Neovim".to_owned(), true);
        let expected = [("plugin for VS Code".to_owned(), false), neovim.clone(), neovim.clone(), neovim.clone()];
        assert_eq!(found(home.path(), &[]), expected);

        write(home.path(), &format!("data/other/lazy/mcp-sidecar/{repository}"), PLUGIN);
        let elsewhere = [("XDG_DATA_HOME", "~/data"), ("XDG_CONFIG_HOME", ""), ("NVIM_APPNAME", "other")];
        assert_eq!(found(home.path(), &elsewhere).last(), Some(&neovim));
    }

    #[test]
    fn before_1_0_the_minor_version_must_match() {
        assert_eq!(series("0.1.0"), series("0.1.9"));
        assert_ne!(series("0.1.0"), series("0.2.0"));
        assert_eq!(series("1.1.0"), series("1.2.0"));
    }
}
