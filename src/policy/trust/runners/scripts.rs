//! The scripts of a `package.json`, and the packages of a workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::policy::trust::argument_words::words;

const MOST_FOLDERS: usize = 4_096;
/// Programs that run several scripts by pattern.
const SCRIPT_GROUPS: &[&str] =
    &["*", "npm-run-all", "run-s", "run-p", "concurrently", "turbo", "nx", "lerna", "wireit"];

/// Which scripts of a package run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scripts {
    None,
    /// Those that the arguments name, and those that these run.
    Named,
    All,
}

/// The scripts of a package: name → text.
pub struct Package<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Package<'a> {
    pub fn of(settings: &'a BTreeMap<String, String>) -> Self {
        let script = |(key, value): (&'a String, &'a String)| Some((key.strip_prefix("scripts.")?, value.as_str()));
        Self(settings.iter().filter_map(script).collect())
    }

    /// The texts of the scripts that run if these words are given.
    pub fn reached(&self, scripts: Scripts, given: &[String]) -> Vec<&'a str> {
        if scripts == Scripts::None {
            return Vec::new();
        }
        let mut given: BTreeSet<String> = given.iter().cloned().collect();
        let mut reached: BTreeMap<&str, &'a str> = BTreeMap::new();
        loop {
            let before = reached.len();
            for (name, text) in &self.0 {
                let hook = |prefix: &str| name.strip_prefix(prefix).is_some_and(|name| given.contains(name));
                let runs = scripts == Scripts::All || given.contains(*name) || hook("pre") || hook("post");
                if runs && reached.insert(name, text).is_none() {
                    let more = words(text);
                    if SCRIPT_GROUPS.iter().any(|group| text.contains(group)) {
                        return self.0.values().copied().collect();
                    }
                    given.extend(more);
                }
            }
            if reached.len() == before {
                return reached.into_values().collect();
            }
        }
    }

    /// Without a script, `npm start` runs `server.js`.
    pub fn starts_without_script(&self, scripts: Scripts, given: &[String]) -> bool {
        let starts = scripts == Scripts::All || scripts == Scripts::Named && given.iter().any(|word| word == "start");
        starts && !self.0.contains_key("start")
    }
}

/// All folders with a `package.json` below these, if one is the root of a workspace, and whether all were found.
pub fn workspaces(folders: &BTreeSet<PathBuf>) -> (Vec<PathBuf>, bool) {
    let is_root = |folder: &&PathBuf| {
        let has = |name: &str| folder.join(name).is_file();
        has("pnpm-workspace.yaml") || has("pnpm-workspace.yml") || has("package.json")
    };
    let mut open: Vec<PathBuf> = folders.iter().filter(is_root).cloned().collect();
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut links = Vec::new();
    while let Some(folder) = open.pop() {
        if seen.len() >= MOST_FOLDERS {
            return (packages(seen), false);
        }
        if !seen.insert(folder.clone()) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let skipped = entry.file_name().to_str().is_some_and(|name| matches!(name, "node_modules" | ".git"));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !skipped => open.push(entry.path()),
                // A link could lead anywhere, so nothing below it is read.
                Ok(kind) if kind.is_symlink() => links.push(entry.path()),
                _ => {}
            }
        }
    }
    seen.extend(links);
    (packages(seen), true)
}

fn packages(folders: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    folders.into_iter().filter(|folder| folder.join("package.json").is_file()).collect()
}
