//! The arguments of a package runner: which packages, folders and scripts they name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::scripts::Scripts;
use super::table::{COMMANDS, PACKAGE_COMMANDS, PLAIN_FLAGS, RUNNERS, Runner, SCRIPT_COMMANDS, SCRIPT_RUNNERS};
use crate::policy::trust::argument_words::{split, words};
use crate::policy::trust::contents::read_small;
use crate::policy::trust::files::{KnownLaunch, program_name};

pub struct Arguments {
    /// The command and its arguments, as a shell would split them.
    flat: Vec<String>,
}

impl Arguments {
    pub fn of(launch: &KnownLaunch) -> Self {
        let words = launch.args.iter().flat_map(|argument| split(argument)).filter(|(_, part)| !part);
        Self { flat: std::iter::once(launch.command.clone()).chain(words.map(|(word, _)| word)).collect() }
    }

    /// The words after each word that names a runner.
    fn after_runners(&self) -> impl Iterator<Item = (String, &[String])> {
        let runs = |name: &str| RUNNERS.iter().any(|runner| runner.programs.contains(&name));
        let names = self.flat.iter().map(|word| program_name(word)).enumerate().filter(move |(_, name)| runs(name));
        names.map(|(at, name)| (name, self.flat.get(at + 1..).unwrap_or_default()))
    }

    /// The folders that a runner may take for a package: `npx ./folder`, `uvx --from . name`, `docker build folder`.
    /// The arguments of what it runs do not count.
    pub fn local_packages(&self, bases: &[PathBuf]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for (_, after) in self.after_runners() {
            let mut is_value = false;
            for word in after {
                let forms = words(word).into_iter().flat_map(|word| local_forms(&word));
                let folders = forms.flat_map(|form| bases.iter().map(move |base| base.join(&form)));
                found.extend(folders.filter(|folder| folder.is_dir()));
                if word.starts_with('-') {
                    is_value = !PLAIN_FLAGS.contains(&word.as_str()) && !word.contains('=');
                } else if !COMMANDS.contains(&word.as_str()) && !std::mem::take(&mut is_value) {
                    break;
                }
            }
        }
        found
    }

    /// Docker reads the files next to the one that `--file` names.
    pub fn folders_of_files(&self, bases: &[PathBuf]) -> Vec<PathBuf> {
        let docker =
            self.flat.iter().any(|word| program_name(word).contains("docker") || program_name(word).contains("podman"));
        let words = self.flat.iter().filter(|_| docker).flat_map(|word| words(word)).filter(|word| word.contains('/'));
        let files = words.flat_map(|word| bases.iter().map(move |base| base.join(&word)));
        files.filter(|path| path.is_file()).filter_map(|path| path.parent().map(Path::to_path_buf)).collect()
    }

    /// Which scripts of a package run. All of them if this is unknown.
    pub fn scripts(&self, runners: &[&Runner]) -> Scripts {
        let node = runners.iter().any(|runner| runner.programs.contains(&"node"));
        let mut scripts = Scripts::None;
        for (name, after) in self.after_runners() {
            if !SCRIPT_RUNNERS.contains(&name.as_str()) || name == "node" && !node {
                continue;
            }
            let command = after.iter().find(|word| !PLAIN_FLAGS.contains(&word.as_str())).map(String::as_str);
            let found = match command {
                Some(command) if PACKAGE_COMMANDS.contains(&command) => Scripts::None,
                Some(command) if SCRIPT_COMMANDS.contains(&command) => Scripts::Named,
                Some(command) if command.starts_with("--run") && name == "node" => Scripts::Named,
                _ => Scripts::All,
            };
            scripts = scripts.max(found);
        }
        scripts
    }

    /// Whether scripts of other packages in the repository may run.
    pub fn names_workspaces(&self, folders: &BTreeSet<PathBuf>) -> bool {
        let flag = |word: &String| {
            ["-w", "--w", "-r", "--recursive", "--filter", "-F", "-A", "--all"]
                .iter()
                .any(|flag| word.starts_with(flag))
                || matches!(word.as_str(), "workspace" | "workspaces" | "foreach")
        };
        let setting =
            |folder: &PathBuf| read_small(&folder.join(".npmrc")).is_some_and(|text| text.contains("workspace"));
        self.flat.iter().any(flag) || folders.iter().any(setting)
    }
}

/// A word as a path: also without `file:` and `name@`.
fn local_forms(word: &str) -> Vec<String> {
    let mut forms = vec![word.to_owned()];
    let file = word.rsplit_once("file:").map(|(_, path)| path.strip_prefix("//").unwrap_or(path));
    let named = word.rsplit_once('@').map(|(_, path)| path.trim());
    forms.extend(file.into_iter().chain(named).filter(|path| !path.is_empty()).map(str::to_owned));
    forms.retain(|form| !form.starts_with('-'));
    forms
}

/// The names that a word may have in a repository: `@scope/name@1.2` is also `@scope/name` and `name`.
pub fn names(word: &str) -> Vec<String> {
    let odd =
        |name: &str| name.is_empty() || name.starts_with(['-', '/']) || name.starts_with("./") || name.contains("..");
    let mut found = vec![word.to_owned()];
    let word = word.strip_prefix("npm:").or_else(|| word.strip_prefix("jsr:")).unwrap_or(word);
    let word = word.split(['=', '[', '<', '>', '~', '!']).next().unwrap_or(word);
    let name = match word.char_indices().rfind(|(at, c)| *c == '@' && *at > 0) {
        Some((at, _)) => word.get(..at).unwrap_or(word),
        None => word,
    };
    found.extend([name.to_owned(), name.rsplit('/').next().unwrap_or(name).to_owned()]);
    found.retain(|name| !odd(name) && name != "." && name.len() < 256);
    found
}
