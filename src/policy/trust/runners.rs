//! Package runners: the files of a repository that decide what `npx name` and the like run.
//!
//! A package of an official registry can be another one in a repository that names another registry, contains a program
//! of the same name, or makes every program load a script. What decides is shown and pinned; lists of dependencies do
//! not decide. A setting that is not known to be harmless decides.

mod arguments;
mod formats;
mod scripts;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::argument_words::words;
use super::contents::{content_of, read_small};
use super::files::{KnownLaunch, Project, bases, program_name, programs};
use crate::paths::canonical;
use arguments::{Arguments, names};
use formats::shown;
use scripts::{Package, Scripts};
use table::{ENTRY_POINTS, RUNNERS, Runner, SettingsFile, TOOLS};

const MOST_NAMES: usize = 4_096;
/// Scripts of packages can run each other.
const MOST_SCRIPTS: usize = 1_024;
const MOST_FILES: usize = 1_024;

/// What the repository decides about a launch.
#[derive(Default)]
pub struct Decided {
    /// `file key` → its value.
    pub settings: BTreeMap<String, String>,
    /// Name → digest.
    pub contents: BTreeMap<String, String>,
    /// The scripts that are run, each as a separate launch.
    scripts: Vec<KnownLaunch>,
    /// Scripts with their folders, and folders of programs without.
    seen: BTreeSet<(PathBuf, String)>,
}

/// What decides, in all folders from the working directory up to where runners stop to look.
pub fn decided(launch: &KnownLaunch, project: &Project) -> Decided {
    let mut decided = Decided::default();
    let runners = decided.add_launch(launch, &[], project);
    while let Some(script) = decided.scripts.pop() {
        decided.contents.extend(programs(&script, project));
        decided.add_launch(&script, &runners, project);
    }
    decided
}

/// What is the same for all folders of a launch.
struct Search<'a> {
    launch: &'a KnownLaunch,
    project: &'a Project,
    all: Vec<String>,
    names: BTreeSet<String>,
    /// Folders of packages that the launch names: everything in their settings counts.
    local: BTreeSet<PathBuf>,
    scripts: Scripts,
}

impl Decided {
    /// Returns the runners that the launch names. `outer` are those that run it as a script.
    fn add_launch<'r>(&mut self, launch: &KnownLaunch, outer: &[&'r Runner], project: &Project) -> Vec<&'r Runner> {
        let mut all: Vec<String> = vec![launch.command.clone()];
        all.extend(launch.args.iter().flat_map(|argument| words(argument)));
        let runs = |runner: &&Runner| {
            all.iter().any(|word| runner.programs.contains(&program_name(word).as_str()))
                && (runner.with.is_empty() || all.iter().any(|word| runner.with.contains(&word.as_str())))
        };
        let mut runners: Vec<&Runner> = RUNNERS.iter().filter(runs).collect();
        runners.extend(outer.iter().filter(|runner| runner.packages));
        if runners.is_empty() {
            return runners;
        }
        let arguments = Arguments::of(launch);
        let mut starts = bases(launch);
        starts.extend(arguments.folders_of_files(&starts));
        let local: BTreeSet<PathBuf> =
            arguments.local_packages(&starts).iter().map(|folder| canonical(folder)).collect();
        starts.extend(local.iter().cloned());
        let names: BTreeSet<String> = all.iter().flat_map(|word| names(word)).take(MOST_NAMES).collect();
        let mut folders: BTreeSet<PathBuf> =
            starts.iter().flat_map(|base| project.folders_up(&canonical(base))).collect();
        let scripts = arguments.scripts(&runners);
        let other_scripts = scripts != Scripts::None && arguments.names_workspaces(&folders);
        if other_scripts || arguments.runs_programs_of_workspaces(&folders) {
            let (more, complete) = scripts::workspaces(&folders);
            folders.extend(more);
            if !complete {
                let value = "too many folders: scripts in them can change without asking you again";
                self.settings.insert("package.json workspaces".to_owned(), value.to_owned());
            }
        }
        let search = Search { launch, project, all, names, local, scripts };
        for folder in &folders {
            for runner in &runners {
                self.add_folder(runner, folder, &search);
            }
        }
        runners
    }

    fn add_folder(&mut self, runner: &Runner, folder: &Path, search: &Search<'_>) {
        let Search { project, names, .. } = search;
        runner.files.iter().for_each(|file| self.read(file, folder, search));
        for (pattern, name) in runner.found_in.iter().flat_map(|pattern| names.iter().map(move |name| (pattern, name)))
        {
            self.add_program(&folder.join(pattern.replace("{}", name)), project);
        }
        if runner.packages {
            names.iter().for_each(|name| self.add_package(&folder.join("node_modules").join(name), project));
            self.add_shadows(&folder.join("node_modules/.bin"), project);
        }
        if search.local.contains(folder) {
            self.add_program(&folder.join("setup.py"), project);
        }
    }

    fn add_program(&mut self, path: &Path, project: &Project) {
        if path.is_file() {
            self.contents.extend(project.content(path, true));
        }
    }

    /// Runners put this folder first on the PATH of what they run: a `node` in it runs every official package.
    fn add_shadows(&mut self, folder: &Path, project: &Project) {
        if !self.seen.insert((folder.to_path_buf(), String::new())) {
            return;
        }
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let path = std::env::var_os("PATH").unwrap_or_default();
        for entry in entries.flatten() {
            let file = entry.file_name();
            let name = program_name(&file.to_string_lossy());
            if TOOLS.contains(&name.as_str()) || is_in_path(&name, &path) {
                let key = format!("{} {}", project.name(folder), file.to_string_lossy());
                self.settings.insert(key, "runs instead of the program with this name".to_owned());
                self.add_program(&entry.path(), project);
            }
        }
    }

    /// An installed package runs instead of the one in the registry.
    fn add_package(&mut self, folder: &Path, project: &Project) {
        let path = folder.join("package.json");
        if !path.is_file() {
            return;
        }
        let name = project.name(&path);
        let Some(package) = read_small(&path).and_then(|text| formats::json(&text)) else {
            self.contents.insert(name, content_of(&path));
            return;
        };
        for key in ["version", "bin"] {
            if let Some(value) = package.get(key) {
                self.settings.insert(format!("{name} {key}"), shown(value));
            }
        }
        let mut bins: Vec<PathBuf> = match package.get("bin") {
            Some(Value::Object(bins)) => bins.values().filter_map(Value::as_str).map(PathBuf::from).collect(),
            bin => bin.and_then(Value::as_str).map(PathBuf::from).into_iter().collect(),
        };
        if let Some(programs) = package.pointer("/directories/bin").and_then(Value::as_str) {
            self.settings.insert(format!("{name} directories.bin"), programs.to_owned());
            let entries = std::fs::read_dir(folder.join(programs)).into_iter().flatten().flatten();
            bins.extend(entries.take(MOST_FILES).map(|entry| entry.path()));
        }
        bins.iter().for_each(|bin| self.add_program(&folder.join(bin), project));
    }

    fn read(&mut self, file: &SettingsFile, folder: &Path, search: &Search<'_>) {
        for path in file.names.iter().map(|name| folder.join(name)).filter(|path| path.is_file()) {
            let name = search.project.name(&path);
            let settings = read_small(&path).and_then(|text| formats::settings(file.format, &text));
            // What cannot be read counts as a whole.
            let Some(settings) = settings else {
                self.contents.insert(name, content_of(&path));
                continue;
            };
            if file.names.contains(&"package.json") {
                self.add_scripts(&settings, folder, search);
            }
            let local = search.local.contains(folder);
            for (key, value) in settings {
                let script = key.starts_with("scripts.") && search.scripts != Scripts::None;
                if file.decides(&key, &search.names, local || script) {
                    if !script {
                        let is_entry_point = local || ENTRY_POINTS.iter().any(|parent| key.starts_with(parent));
                        self.add_named(&value, is_entry_point, folder, search);
                    }
                    self.settings.insert(format!("{name} {key}"), value);
                }
            }
        }
    }

    /// The scripts that a setting names, such as `yarnPath`, the value of `--require`, and `module:function` of an entry point.
    fn add_named(&mut self, value: &str, is_entry_point: bool, folder: &Path, search: &Search<'_>) {
        for word in words(value) {
            let word = word.trim_matches(['"', '\'', '[', ']', ',']);
            for base in [folder, &search.launch.cwd] {
                self.add_program(&base.join(word), search.project);
            }
            if is_entry_point && value.contains(':') {
                let module = word.replace('.', "/");
                for path in [format!("{module}.py"), format!("{module}/__init__.py")] {
                    self.add_program(&folder.join(&path), search.project);
                    self.add_program(&folder.join("src").join(path), search.project);
                }
            }
        }
    }

    /// Scripts are launches in the folder of their package.
    fn add_scripts(&mut self, settings: &BTreeMap<String, String>, folder: &Path, search: &Search<'_>) {
        let scripts = if search.local.contains(folder) { Scripts::All } else { search.scripts };
        let package = Package::of(settings);
        for value in package.reached(scripts, &search.all) {
            if self.seen.len() < MOST_SCRIPTS && self.seen.insert((folder.to_path_buf(), value.to_owned())) {
                self.scripts.push(KnownLaunch {
                    command: "sh".to_owned(),
                    args: vec!["-c".to_owned(), value.to_owned()],
                    code: search.launch.code.clone(),
                    program: None,
                    cwd: folder.to_path_buf(),
                });
            }
        }
        if package.starts_without_script(scripts, &search.all) {
            self.add_program(&folder.join("server.js"), search.project);
        }
    }
}

impl SettingsFile {
    /// `all`: also the entries that no argument names.
    fn decides(&self, key: &str, names: &BTreeSet<String>, all: bool) -> bool {
        let below = |parent: &str| key == parent || key.strip_prefix(parent).is_some_and(|rest| rest.starts_with('.'));
        let listed = |only: &&str| match only.strip_suffix(".*") {
            Some(parent) => {
                let name = key.strip_prefix(parent).and_then(|rest| rest.strip_prefix('.'));
                name.is_some_and(|name| all || named(name, names))
            }
            None => below(only),
        };
        (self.only.is_empty() || self.only.iter().any(listed)) && !self.harmless.iter().any(|key| below(key))
    }
}

/// Whether an argument names this entry, or the one that it runs before or after.
fn named(entry: &str, names: &BTreeSet<String>) -> bool {
    let hook = |prefix: &str| entry.strip_prefix(prefix).is_some_and(|entry| names.contains(entry));
    names.contains(entry) || hook("pre") || hook("post")
}

/// Whether a PATH has a program of this name, other than from a package.
fn is_in_path(name: &str, path: &OsStr) -> bool {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute() && !folder.ends_with("node_modules/.bin"))
        .any(|folder| folder.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_of_an_absolute_folder_that_is_not_of_packages_is_in_a_path() {
        let top = tempfile::tempdir().unwrap();
        let [bin, packages] = ["bin", "node_modules/.bin"].map(|name| top.path().join(name));
        for folder in [&bin, &packages] {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("tool"), "").unwrap();
        }
        let path = |folders: &[&Path]| std::env::join_paths(folders).unwrap();
        assert!(is_in_path("tool", &path(&[&packages, &bin])));
        assert!(!is_in_path("tool", &path(&[&packages])) && !is_in_path("other", &path(&[&bin])));
        assert!(Path::new("Cargo.toml").is_file() && !is_in_path("Cargo.toml", &path(&[Path::new(".")])));
    }
}
