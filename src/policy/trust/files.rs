//! The files of the repository that a launch runs, as far as the definition names them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::argument_words::{glued, split, words};
use super::contents::{content_of, is_data};
use super::modules::{loaded, module, tests_in};
use crate::config::Environment;
use crate::config::expand::Values;
use crate::paths::canonical;
use crate::paths::{in_main_checkout, repository};

/// Programs that run the first file among their arguments, whatever its ending.
#[rustfmt::skip]
const INTERPRETERS: &[&str] = &[
    "ash", "awk", "bash", "bun", "csh", "dash", "deno", "electron", "elixir", "emacs", "escript", "fish", "gawk",
    "gdb", "gjs", "groovy", "guile", "java", "jshell", "julia", "ksh", "kotlin", "lua", "luajit", "make", "mawk",
    "mksh", "mono", "node", "nodejs", "nu", "nvim", "ocaml", "osascript", "perl", "php", "pwsh", "pypy", "python",
    "qjs", "racket", "rscript", "ruby", "runghc", "scala", "sh", "source", "swift", "tclsh", "tcsh", "ts-node", "tsx",
    "vim", "zsh",
    // A flag that makes other programs one.
    "--script",
];
const SHELLS: &[&str] = &["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "zsh"];
/// Words before the script.
const SUBCOMMANDS: &[&str] = &["run", "exec", "x", "serve", "test"];
/// The word after one of these is a folder that relative paths may start at.
const FOLDER_FLAGS: &[&str] =
    &["-C", "--chdir", "--cwd", "--dir", "--directory", "--prefix", "--project", "--workdir", "cd", "pushd"];
/// Flags without a value: the word after them is the script. After any other flag, it may be a value or the script.
#[rustfmt::skip]
const PLAIN_FLAGS: &[(&[&str], &[&str])] = &[
    (&["python", "pypy"], &["-B", "-E", "-I", "-O", "-OO", "-P", "-S", "-b", "-d", "-i", "-q", "-s", "-u", "-v"]),
    (&["node"], &["--enable-source-maps", "--experimental-strip-types", "--experimental-vm-modules", "--inspect",
        "--no-deprecation", "--no-warnings", "--trace-warnings"]),
    (&["deno"], &["-A", "--allow-all", "--allow-env", "--allow-net", "--allow-read", "--allow-run", "--allow-write"]),
    (&["java"], &["-jar"]),
    (SHELLS, &["-e", "-u", "-x"]),
];
/// The file after one of these is code or decides about code, whatever its ending.
#[rustfmt::skip]
const CODE_FLAGS: &[&str] = &[
    "--config", "--config-file", "--env-file", "--globalconfig", "--import", "--import-map", "--init-file", "--loader",
    "--preload", "--rcfile", "--require", "--script-shell", "--userconfig", "-r",
];
/// … and of these programs only.
#[rustfmt::skip]
const OWN_CODE_FLAGS: &[(&[&str], &[&str])] = &[
    (&["docker", "docker-compose", "podman", "podman-compose"], &["-f", "--file"]),
    (&["uv", "uvx", "pip", "pipx"], &["-c", "--constraint", "--constraints", "--override", "--overrides",
        "--requirement", "--requirements", "--with-requirements", "--build-constraints"]),
];
/// The word after one of these is a module.
const MODULE_FLAGS: &[&str] = &["--experimental-loader", "--import", "--loader", "--preload", "--require", "-r"];
/// The word after one of these is code.
#[rustfmt::skip]
const INLINE_FLAGS: &[&str] = &[
    "--cmd", "--command", "--eval", "--execute", "--print", "-Command", "-E", "-c", "-e", "-ex", "-ne", "-p", "-pe", "eval",
];
/// Programs that run what a file says, in ways of their own: all files that are named with them count …
const EXECUTORS: &[&str] =
    &["at", "crontab", "ed", "ex", "expect", "git", "gsed", "lldb", "m4", "rsync", "sed", "ssh", "tar"];
/// … and for these also in the script of a shell.
const SHELL_EXECUTORS: &[&str] = &["fd", "find", "parallel", "xargs"];
/// Programs that run their arguments.
#[rustfmt::skip]
const WRAPPERS: &[&str] = &[
    "busybox", "chroot", "doas", "env", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "toybox",
];
const MOST_BASES: usize = 64;
/// Of code in an argument, only this many words are looked up.
const MOST_INLINE: usize = 4_096;

/// A launch with everything expanded that is known before it starts.
pub struct KnownLaunch {
    pub command: String,
    pub args: Vec<String>,
    /// Values of variables that make programs load code.
    pub code: Vec<String>,
    pub program: Option<PathBuf>,
    pub cwd: PathBuf,
}

/// Where the files of a project are.
pub struct Project {
    /// The canonical path of the workspace folder.
    pub folder: PathBuf,
    /// The folder as the editor names it.
    pub written: PathBuf,
    pub repository: PathBuf,
    /// The same in the main checkout, if this is a worktree.
    main: PathBuf,
    home: Option<PathBuf>,
}

impl Project {
    pub fn new(folder: &Path, environment: &Environment) -> Self {
        let repository = repository(folder);
        let main = in_main_checkout(&repository);
        let home = Values::in_folder(None, environment).user_home.map(|home| canonical(&home));
        Self { folder: canonical(folder), written: folder.to_path_buf(), repository, main, home }
    }

    /// The same path in the main checkout, so that all worktrees of a repository have the same fingerprint. The rest of it
    /// stays as it is written.
    pub fn in_main(&self, path: &Path) -> String {
        let written = path.display().to_string();
        let inside = written.strip_prefix(&self.repository.display().to_string()).filter(|inside| {
            (inside.is_empty() || inside.starts_with('/'))
                && !path.components().any(|part| part == Component::ParentDir)
        });
        inside.map(|inside| format!("{}{inside}", self.main.display())).unwrap_or(written)
    }

    /// Whether a file is in the repository, by its real path.
    pub fn contains(&self, path: &Path) -> bool {
        canonical(path).starts_with(&self.repository)
    }

    /// A folder and those above it that package runners read: they stop at the home folder and the root at the latest. An
    /// archive or a submodule is a part of something larger.
    pub fn folders_up(&self, folder: &Path) -> Vec<PathBuf> {
        let own =
            |above: &Path| self.home.as_deref().is_some_and(|home| home.starts_with(above)) || above.parent().is_none();
        let read = |above: &&Path| *above == folder || above.starts_with(&self.repository) || !own(above);
        folder.ancestors().take_while(read).map(Path::to_path_buf).collect()
    }

    /// The path as it is shown: relative to the workspace folder.
    pub fn name(&self, path: &Path) -> String {
        let common = self.folder.components().zip(path.components()).take_while(|(a, b)| a == b).count();
        let up = self.folder.components().skip(common).map(|_| Component::ParentDir);
        let name: PathBuf = up.chain(path.components().skip(common)).collect();
        name.display().to_string()
    }

    /// The name and digest of a file in the repository. For a link out of it, its target instead. A file outside that a
    /// relative path leads to counts as well: it came along with the repository.
    pub fn content(&self, path: &Path, relative: bool) -> Option<(String, String)> {
        let target = canonical(path);
        if target.starts_with(&self.repository) {
            return Some((self.name(&target), content_of(&target)));
        }
        match self.inner(path) {
            Some(name) => Some((name.display().to_string(), format!("leads to {}", target.display()))),
            None => relative.then(|| (self.name(&target), content_of(&target))),
        }
    }

    /// Whether a path in the workspace folder is a link to an existing file outside of the repository.
    pub fn is_link_out(&self, path: &Path) -> bool {
        path.exists() && self.inner(path).is_some() && !self.contains(path)
    }

    /// The path relative to the workspace folder, if it is written as one inside of it.
    fn inner<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let name = path.strip_prefix(&self.folder).ok().or_else(|| path.strip_prefix(&self.written).ok())?;
        (!name.components().any(|part| part == Component::ParentDir)).then_some(name)
    }
}

/// The program and all files that the arguments name: name → digest.
pub fn programs(launch: &KnownLaunch, project: &Project) -> BTreeMap<String, String> {
    let inside = project.contains(&launch.cwd);
    let bases = bases(launch);
    let mut found: BTreeSet<(PathBuf, bool)> = BTreeSet::new();
    if let Some(program) = &launch.program {
        found.insert((
            program.clone(),
            inside && launch.command.contains('/') && Path::new(&launch.command).is_relative(),
        ));
    }
    let mut add = |word: &str, path: PathBuf| {
        found.insert((path, inside && Path::new(word).is_relative()));
    };
    let mut expected = Expected::default();
    expected.start(&launch.command);
    let mut reader = Reader::of(&launch.command);
    let mut before = String::new();
    for argument in &launch.args {
        let inline = expected.is_inline(argument);
        let words = split(argument);
        let script = words.iter().filter(|(_, part)| !part).count() > 1;
        let piped = script && runs_what_it_reads(argument);
        for (at, (word, part)) in words.into_iter().enumerate() {
            let module_name = inline && at < MOST_INLINE
                || MODULE_FLAGS.contains(&before.as_str())
                || glued(&before) == Some(word.as_str()) && !expected.interpreter.is_empty();
            let code = expected.script
                || inline
                || piped
                || reader.runs_files
                || CODE_FLAGS.contains(&before.as_str())
                || reader.is_own_flag(&before);
            for base in &bases {
                let path = base.join(&word);
                if path.is_file() && (code || !is_data(&path)) {
                    add(&word, path);
                } else if expected.script && !expected.text && !word.starts_with('-') {
                    module(&path).into_iter().for_each(|path| add(&word, path));
                }
                if module_name && !word.starts_with('-') {
                    loaded(base, &word, project).into_iter().for_each(|path| add(&word, path));
                }
            }
            if !part {
                expected.next(&word, script);
                reader.next(&word);
            }
            before = word;
        }
    }
    if launch.args.iter().any(|argument| argument == "--test") {
        for (word, folder) in launch.args.iter().flat_map(|word| bases.iter().map(move |base| (word, base.join(word))))
        {
            tests_in(&folder).into_iter().for_each(|path| add(word, path));
        }
    }
    for value in &launch.code {
        let mut before = String::new();
        for word in words(value) {
            for base in &bases {
                let path = base.join(&word);
                if path.is_file() {
                    add(&word, path);
                } else if MODULE_FLAGS.contains(&before.as_str()) || glued(&before) == Some(word.as_str()) {
                    loaded(base, &word, project).into_iter().for_each(|path| add(&word, path));
                }
            }
            before = word;
        }
    }
    found.iter().filter_map(|(path, relative)| project.content(path, *relative)).collect()
}

/// Whether a script for a shell runs the text of a file: `cat file | sh`.
fn runs_what_it_reads(script: &str) -> bool {
    let first = |rest: &str| words(rest).into_iter().skip(1).find(|word| !WRAPPERS.contains(&word.as_str()));
    let alone = |rest: &str| is_interpreter(rest.trim());
    script.split('|').skip(1).any(|rest| alone(rest) || first(rest).is_some_and(|word| is_interpreter(&word)))
        || words(script).iter().any(|word| word == "eval")
        || ["$(cat", "$(<", "`cat"].iter().any(|way| script.contains(way))
}

/// What the programs among the words do with files.
struct Reader {
    names: BTreeSet<String>,
    shell: bool,
    wrapped: bool,
    runs_files: bool,
}

impl Reader {
    fn of(command: &str) -> Self {
        let name = program_name(command);
        let shell = SHELLS.contains(&name.as_str());
        let mut reader = Self { names: BTreeSet::new(), shell, wrapped: true, runs_files: false };
        reader.next(command);
        reader.wrapped = WRAPPERS.contains(&name.as_str());
        reader
    }

    fn next(&mut self, word: &str) {
        let name = program_name(word);
        let is = |names: &[&str]| names.contains(&name.as_str());
        let loader = ["ld-linux", "ld-musl", "ld.so"].iter().any(|loader| name.starts_with(loader));
        self.runs_files |=
            (self.wrapped || self.shell) && (loader || is(SHELL_EXECUTORS)) || self.wrapped && is(EXECUTORS);
        self.names.insert(name);
    }

    fn is_own_flag(&self, flag: &str) -> bool {
        let own = OWN_CODE_FLAGS.iter().filter(|(programs, _)| programs.iter().any(|name| self.names.contains(*name)));
        own.flat_map(|(_, flags)| *flags)
            .any(|known| *known == flag || known.len() == 2 && !flag.starts_with("--") && flag.starts_with(known))
    }
}

/// The folders that relative paths of a launch may start at: its working directory, and those that it changes to.
pub fn bases(launch: &KnownLaunch) -> Vec<PathBuf> {
    let mut bases = vec![launch.cwd.clone()];
    let all: Vec<String> = launch.args.iter().flat_map(|argument| words(argument)).collect();
    for pair in all.windows(2) {
        let [flag, folder] = pair else { continue };
        let is_glued = glued(flag) == Some(folder) && (flag.starts_with("-C") || flag.starts_with("-I"));
        if is_glued || FOLDER_FLAGS.contains(&flag.as_str()) {
            let more = bases.iter().map(|base| base.join(folder)).filter(|path| path.is_dir());
            for path in more.collect::<Vec<_>>() {
                let path =
                    if path.components().any(|part| part == Component::ParentDir) { canonical(&path) } else { path };
                if bases.len() < MOST_BASES && !bases.iter().any(|known| canonical(known) == canonical(&path)) {
                    bases.push(path);
                }
            }
        }
    }
    bases
}

/// Whether the next file among the words is the script of an interpreter.
#[derive(Default)]
struct Expected {
    interpreter: String,
    script: bool,
    /// The next word is a script itself or the name of a module.
    text: bool,
    /// The word before is a flag that may have a value.
    flag: bool,
    /// The argument before says that the next one is code.
    inline: bool,
}

impl Expected {
    /// `python3.12`, `/usr/bin/node` and `node.exe` are interpreters. Returns whether the word is one.
    fn start(&mut self, word: &str) -> bool {
        let name = interpreter_name(word);
        let found = INTERPRETERS.contains(&name.as_str());
        if found {
            *self = Self { interpreter: name, script: true, ..Self::default() };
        }
        found
    }

    /// Whether the next argument is code of an interpreter that is not a shell.
    fn is_inline(&mut self, argument: &str) -> bool {
        if self.interpreter.is_empty() || SHELLS.contains(&&*self.interpreter) {
            return false;
        }
        let flag = argument.split_once('=').map_or(argument, |(flag, _)| flag);
        let own = is_inline_flag(&self.interpreter, argument);
        let with_value = flag != argument && flag.starts_with("--") && is_inline_flag(&self.interpreter, flag)
            || glued(argument).is_some() && ["-c", "-e", "-E"].iter().any(|flag| argument.starts_with(flag));
        std::mem::replace(&mut self.inline, own) || with_value
    }

    fn next(&mut self, word: &str, in_script: bool) {
        if self.start(word) {
            return;
        }
        // A placeholder can be any of the files.
        if word == "{}" || word.trim_matches(['$', '{', '}']).len() <= 1 && word.starts_with('$') {
            return;
        }
        if in_script && word == "." {
            self.script = true;
        } else if word.starts_with('-') {
            self.text |= self.takes_text(word);
            let own = PLAIN_FLAGS.iter().filter(|(interpreters, _)| interpreters.contains(&&*self.interpreter));
            let plain = word == "--" || own.flat_map(|(_, flags)| *flags).any(|flag| *flag == word);
            self.flag = !plain && !word.contains('=');
        } else {
            let value = std::mem::take(&mut self.flag);
            if self.text || !value && !SUBCOMMANDS.contains(&word) {
                (self.script, self.text) = (false, false);
            }
        }
    }

    /// `sh -c` and `python -m`.
    fn takes_text(&self, flag: &str) -> bool {
        let short = !flag.starts_with("--") && flag.len() <= 5;
        match &*self.interpreter {
            "python" | "pypy" => matches!(flag, "-c" | "-m"),
            shell => SHELLS.contains(&shell) && short && flag.contains('c'),
        }
    }
}

/// The name of a program without its folder and `.exe`.
pub fn program_name(word: &str) -> String {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    [".exe", ".cmd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name).to_owned()
}

/// `python3.12` is `python`.
fn interpreter_name(word: &str) -> String {
    program_name(word).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned()
}

fn is_interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&interpreter_name(word).as_str())
}

fn is_inline_flag(interpreter: &str, flag: &str) -> bool {
    INLINE_FLAGS.contains(&flag) || interpreter == "php" && flag == "-r"
}

/// Whether a program is an interpreter that gets code in its arguments. Shells have their own warning.
pub fn runs_inline_code(command: &str, args: &[String]) -> bool {
    let mut expected = Expected::default();
    expected.start(command);
    args.iter().any(|argument| {
        let inline = expected.is_inline(argument);
        words(argument).iter().for_each(|word| {
            expected.start(word);
        });
        inline
    })
}
