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
        for word in self.after_runners().flat_map(|(_, after)| up_to_package(after)) {
            let forms = words(word).into_iter().flat_map(|word| local_forms(&word));
            let folders = forms.flat_map(|form| bases.iter().map(move |base| base.join(&form)));
            found.extend(folders.filter(|folder| folder.is_dir()));
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

    /// Whether `npm exec` or `npx` may run a program of another package in the repository.
    pub fn runs_programs_of_workspaces(&self, folders: &BTreeSet<PathBuf>) -> bool {
        let setting = |folder: &PathBuf| {
            read_small(&folder.join(".npmrc"))
                .is_some_and(|text| text.split(['\n', '\r']).any(|line| line.trim_start().starts_with("workspace")))
        };
        self.after_runners().any(|(name, after)| {
            let own = match name.as_str() {
                "npm" => after.split(|word| word == "--").next().unwrap_or_default(),
                "npx" => up_to_package(after),
                _ => return false,
            };
            own.iter().any(|word| word.starts_with("-w") || word.starts_with("--w")) || folders.iter().any(setting)
        })
    }
}

/// The words of a runner up to the package that it runs.
fn up_to_package(after: &[String]) -> &[String] {
    let mut is_value = false;
    let package = after.iter().position(|word| {
        if word.starts_with('-') {
            is_value = !PLAIN_FLAGS.contains(&word.as_str()) && !word.contains('=');
            return false;
        }
        !COMMANDS.contains(&word.as_str()) && !std::mem::take(&mut is_value)
    });
    package.and_then(|at| after.get(..=at)).unwrap_or(after)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn arguments(command: &[&str]) -> Arguments {
        Arguments::of(&KnownLaunch {
            command: command[0].to_owned(),
            args: command[1..].iter().map(|word| (*word).to_owned()).collect(),
            code: Vec::new(),
            program: None,
            cwd: PathBuf::new(),
        })
    }

    /// A folder with these files. A name that ends with `/` is a folder.
    fn folder_with(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let keep = tempfile::tempdir().unwrap();
        let top = keep.path().to_path_buf();
        for (name, text) in files {
            let path = top.join(name);
            fs::create_dir_all(if name.ends_with('/') { path.as_path() } else { path.parent().unwrap() }).unwrap();
            if !name.ends_with('/') {
                fs::write(path, text).unwrap();
            }
        }
        (keep, top)
    }

    fn names_in(top: &Path, found: &[PathBuf]) -> Vec<String> {
        found.iter().map(|path| path.strip_prefix(top).unwrap().display().to_string()).collect()
    }

    #[test]
    fn a_script_for_a_shell_is_split_into_words_but_not_into_parts_of_them() {
        assert_eq!(arguments(&["sh", "-c", "npx --a=b"]).flat, ["sh", "-c", "npx --a=b", "npx", "--a=b"]);
    }

    #[test]
    fn only_folders_up_to_the_package_are_local_packages() {
        let (_keep, top) = folder_with(&[("p/", ""), ("q/", ""), ("r/", ""), ("file", "")]);
        let local = |command: &[&str]| names_in(&top, &arguments(command).local_packages(std::slice::from_ref(&top)));
        assert_eq!(local(&["npx", "p", "q"]), ["p"]);
        assert_eq!(local(&["npx", "-y", "p", "q"]), ["p"]);
        assert_eq!(local(&["npx", "--cache=x", "p", "q"]), ["p"]);
        assert_eq!(local(&["npx", "--cache", "p", "q", "r"]), ["p", "q"], "the value of a flag may be a package, too");
        assert_eq!(local(&["npm", "exec", "p", "q"]), ["p"]);
        assert_eq!(local(&["sh", "p"]), [""; 0]);
        assert_eq!(local(&["npx", "file", "p"]), [""; 0]);
        assert_eq!(local(&["npx", "none"]), [""; 0]);
    }

    #[test]
    fn docker_reads_the_folder_of_each_file_that_is_named_with_one() {
        let (_keep, top) = folder_with(&[("d/c.yaml", ""), ("c.yaml", "")]);
        let folders =
            |command: &[&str]| names_in(&top, &arguments(command).folders_of_files(std::slice::from_ref(&top)));
        for program in ["docker", "docker-compose", "podman"] {
            assert_eq!(folders(&[program, "compose", "-f", "d/c.yaml"]), ["d"], "{program}");
        }
        assert_eq!(folders(&["docker", "compose", "--file=d/c.yaml"]), ["d"]);
        assert_eq!(folders(&["npx", "x", "d/c.yaml"]), [""; 0]);
        assert_eq!(folders(&["docker", "compose", "-f", "c.yaml"]), [""; 0]);
        assert_eq!(folders(&["docker", "run", "registry/image"]), [""; 0]);
    }

    #[test]
    fn all_scripts_run_unless_the_command_of_the_runner_says_which() {
        let scripts = |programs: &[&str], command: &[&str]| {
            let runners = RUNNERS.iter().filter(|runner| runner.programs.iter().any(|name| programs.contains(name)));
            arguments(command).scripts(&runners.collect::<Vec<_>>())
        };
        for (command, expected) in [
            (&["npm", "exec", "x"][..], Scripts::None),
            (&["npm", "run", "x"], Scripts::Named),
            (&["npm", "-s", "run", "x"], Scripts::Named),
            (&["npm", "install"], Scripts::All),
            (&["npm", "--run", "x"], Scripts::All),
            (&["npm"], Scripts::All),
            (&["npx", "x"], Scripts::None),
            (&["sh", "-c", "npm exec x; npm run y"], Scripts::Named),
        ] {
            assert_eq!(scripts(&["npm"], command), expected, "{command:?}");
        }
        for command in [&["node", "--run", "x"][..], &["node", "--run=x"], &["sh", "-c", "npm exec x; node --run y"]] {
            assert_eq!(scripts(&["npm", "node"], command), Scripts::Named, "{command:?}");
        }
        assert_eq!(scripts(&["npm"], &["node", "--run", "x"]), Scripts::None, "`node` is not a runner here");
    }

    #[test]
    fn other_packages_count_if_a_flag_or_a_setting_names_workspaces() {
        let (_keep, top) = folder_with(&[
            ("with/.npmrc", "fund=false\n workspaces = true\n"),
            ("update/.npmrc", "link-workspace-packages=true\n"),
            ("without/.npmrc", "fund=false\n"),
            ("none/", ""),
        ]);
        let folders = |names: &[&str]| names.iter().map(|name| top.join(name)).collect();
        let names = |command: &[&str], in_folders: &[&str]| arguments(command).names_workspaces(&folders(in_folders));
        let runs = |command: &[&str], in_folders: &[&str]| {
            arguments(command).runs_programs_of_workspaces(&folders(in_folders))
        };
        for command in [&["npm", "run", "x", "-w", "p"][..], &["pnpm", "-r", "x"], &["yarn", "workspace", "p", "run"]] {
            assert!(names(command, &[]), "{command:?}");
        }
        assert!(!names(&["npm", "run", "x"], &[]));
        assert!(!names(&["npm", "run", "x"], &["without", "none"]));
        assert!(names(&["npm", "run", "x"], &["none", "with"]) && names(&["npm", "run", "x"], &["none", "update"]));

        for command in [
            &["npm", "exec", "x", "-w", "p"][..],
            &["npm", "exec", "--workspaces", "--", "x"],
            &["npx", "-w", "p", "x"],
            &["npx", "--workspace=p", "x"],
            &["sh", "-c", "npx -w p x; uvx y"],
        ] {
            assert!(runs(command, &[]), "{command:?}");
        }
        for command in [
            &["npm", "exec", "x", "--", "-w", "p"][..],
            &["npx", "-y", "server", "-w", "p"],
            &["uvx", "--with", "p", "x"],
            &["uvx", "x"],
        ] {
            assert!(!runs(command, &[]), "{command:?}");
        }
        assert!(runs(&["npx", "x"], &["none", "with"]));
        assert!(!runs(&["npx", "x"], &["none", "update", "without"]) && !runs(&["uvx", "x"], &["with"]));
    }

    #[test]
    fn a_word_is_a_path_also_without_the_name_of_the_package() {
        assert_eq!(local_forms("./p"), ["./p"]);
        assert_eq!(local_forms("x@file:./p"), ["x@file:./p", "./p", "file:./p"]);
        assert_eq!(local_forms("file:///p"), ["file:///p", "/p"]);
        assert_eq!(local_forms("x @ ./p"), ["x @ ./p", "./p"]);
        assert_eq!(local_forms("name@"), ["name@"]);
        assert_eq!(local_forms("--package"), [""; 0]);
    }

    #[test]
    fn a_package_has_a_name_without_its_version_and_without_its_scope() {
        assert_eq!(names("@scope/name@1.2"), ["@scope/name@1.2", "@scope/name", "name"]);
        assert_eq!(names("@scope/name"), ["@scope/name", "@scope/name", "name"]);
        assert_eq!(names("name@1.2"), ["name@1.2", "name", "name"]);
        assert_eq!(names("name[extra]>=1"), ["name[extra]>=1", "name", "name"]);
        assert_eq!(names("npm:name@1"), ["npm:name@1", "name", "name"]);
        assert_eq!(names("jsr:@scope/name"), ["jsr:@scope/name", "@scope/name", "name"]);
    }

    #[test]
    fn a_path_or_a_flag_is_not_the_name_of_a_package() {
        for word in ["", ".", "-f", "--flag", "..", &"a".repeat(256)] {
            assert_eq!(names(word), [""; 0], "{word}");
        }
        for (path, name) in [("/abs/x", "x"), ("./x", "x"), ("a/../b", "b")] {
            assert_eq!(names(path), [name], "{path}");
        }
        assert_eq!(names(&"a".repeat(255)).len(), 3);
    }
}
