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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The texts of the scripts that run.
    fn reached(scripts: Scripts, package: &[(&str, &str)], given: &[&str]) -> Vec<String> {
        let settings = package.iter().map(|(name, text)| (format!("scripts.{name}"), (*text).to_owned())).collect();
        let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
        Package::of(&settings).reached(scripts, &given).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_script_runs_with_those_before_and_after_it() {
        let package = [("start", "a"), ("prestart", "b"), ("poststart", "c"), ("other", "d"), ("preother", "e")];
        assert_eq!(reached(Scripts::Named, &package, &["run", "start"]), ["c", "b", "a"]);
        assert_eq!(reached(Scripts::Named, &package, &["run"]), [""; 0]);
        assert_eq!(reached(Scripts::None, &package, &["start"]), [""; 0]);
        assert_eq!(reached(Scripts::All, &package, &[]).len(), 5);
    }

    #[test]
    fn a_script_runs_the_scripts_that_it_names_and_a_program_for_groups_runs_all() {
        let package = [("a", "x"), ("b", "npm run a"), ("c", "npm run b && npm run d"), ("d", "y"), ("e", "z")];
        assert_eq!(reached(Scripts::Named, &package, &["c"]), ["x", "npm run a", "npm run b && npm run d", "y"]);
        assert_eq!(reached(Scripts::Named, &[("a", "run-s 'b:*'"), ("b:1", "x"), ("c", "y")], &["a"]).len(), 3);
        assert_eq!(reached(Scripts::Named, &[("a", "concurrently b c"), ("d", "x")], &["a"]).len(), 2);
    }

    #[test]
    fn a_package_without_a_start_script_starts_its_server() {
        let starts = |name: &str, scripts: Scripts, word: &str| {
            let settings = BTreeMap::from([(format!("scripts.{name}"), String::new())]);
            Package::of(&settings).starts_without_script(scripts, &[word.to_owned()])
        };
        assert!(starts("test", Scripts::All, "run") && starts("test", Scripts::Named, "start"));
        assert!(!starts("test", Scripts::Named, "run") && !starts("test", Scripts::None, "start"));
        assert!(!starts("start", Scripts::All, "run") && !starts("start", Scripts::Named, "start"));
    }

    fn write(top: &Path, files: &[&str]) {
        for file in files {
            let path = top.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
    }

    /// The packages of a workspace below a folder, and whether all were found.
    fn found(top: &Path) -> (Vec<String>, bool) {
        let (packages, complete) = workspaces(&BTreeSet::from([top.to_path_buf()]));
        let name = |path: &PathBuf| path.strip_prefix(top).unwrap().to_string_lossy().replace('\\', "/");
        (packages.iter().map(name).collect(), complete)
    }

    #[test]
    fn the_root_of_a_workspace_has_one_of_three_files() {
        for (file, packages) in [
            ("package.json", &["", "in"][..]),
            ("pnpm-workspace.yaml", &["in"]),
            ("pnpm-workspace.yml", &["in"]),
            ("other.yaml", &[]),
        ] {
            let top = tempfile::tempdir().unwrap();
            write(top.path(), &[file, "in/package.json"]);
            assert_eq!(found(top.path()), (packages.iter().map(|name| (*name).to_owned()).collect(), true), "{file}");
        }
    }

    #[test]
    fn the_packages_of_a_workspace_are_in_all_folders_but_those_of_dependencies_and_git() {
        let top = tempfile::tempdir().unwrap();
        let dependencies = ["node_modules/package.json", "node_modules/a/package.json", "in/.git/a/package.json"];
        write(top.path(), &["package.json", "in/deep/package.json", "plain/x.js"]);
        write(top.path(), &dependencies);
        assert_eq!(found(top.path()).0, ["", "in/deep"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_can_be_a_package_but_nothing_below_it_is_read() {
        let (top, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(top.path(), &["package.json"]);
        write(outside.path(), &["package.json", "in/package.json"]);
        std::os::unix::fs::symlink(outside.path(), top.path().join("link")).unwrap();
        assert_eq!(found(top.path()).0, ["", "link"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_whose_name_is_not_unicode_can_be_a_package() {
        use std::os::unix::ffi::OsStrExt;

        let top = tempfile::tempdir().unwrap();
        write(top.path(), &["package.json"]);
        let folder = top.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
        write(&folder, &["in/package.json"]);
        assert_eq!(
            workspaces(&BTreeSet::from([top.path().to_path_buf()])).0,
            [top.path().to_path_buf(), folder.join("in")]
        );
    }

    #[test]
    fn in_a_huge_tree_not_all_packages_are_found() {
        let top = tempfile::tempdir().unwrap();
        write(top.path(), &["package.json"]);
        // The root is a folder, too.
        (1..MOST_FOLDERS).for_each(|number| fs::create_dir(top.path().join(number.to_string())).unwrap());
        assert!(found(top.path()).1);
        fs::create_dir(top.path().join("more")).unwrap();
        assert!(!found(top.path()).1);
    }
}
