//! What can change what runs without being pinned, because it is not known before the start. The trust question says so.

use std::path::Path;

use crate::config::spec::Stdio;
use crate::paths::{canonical, repository};
use crate::policy::trust::argument_words::words;
use crate::policy::trust::files::{program_name, runs_inline_code};
use crate::text::exact;

/// The programs that install what a lock file says. The file changes with every update of a dependency, so it is not pinned.
const LOCK_FILES: [(&[&str], &[&str]); 8] = [
    (&["npm"], &["package-lock.json", "npm-shrinkwrap.json"]),
    (&["pnpm"], &["pnpm-lock.yaml"]),
    (&["yarn"], &["yarn.lock"]),
    (&["bun"], &["bun.lock", "bun.lockb"]),
    (&["uv"], &["uv.lock"]),
    (&["poetry", "pipenv"], &["poetry.lock", "Pipfile.lock"]),
    (&["deno"], &["deno.lock"]),
    (&["cargo", "go", "bundle"], &["Cargo.lock", "go.sum", "Gemfile.lock"]),
];

pub fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "fish" | "ash" | "cmd" | "powershell" | "pwsh")
}

/// `name` is that of the program. `folder` is the workspace folder of the file.
pub fn warnings(stdio: &Stdio, name: &str, folder: Option<&Path>) -> Vec<String> {
    let mut warnings = Vec::new();
    // Also behind `env`, `timeout` and the like, and in a script.
    let all: Vec<String> = stdio.args.iter().flat_map(|arg| words(arg)).collect();
    let programs: Vec<String> =
        std::iter::once(name.to_owned()).chain(all.iter().map(|word| program_name(word))).collect();
    let runs = |names: &[&str]| programs.iter().any(|program| names.contains(&program.as_str()));
    let shell = is_shell(name);
    // Words such as `fish` are not worth a warning.
    if shell || runs(&["sh", "bash", "dash", "zsh", "ksh", "ash"]) {
        warnings.push("files that a shell script does not name can change without asking you again".to_owned());
    }
    let may_eval = |arg: &String| matches!(arg.as_str(), "-e" | "--eval" | "--exec" | "-exec" | "-execdir");
    if runs_inline_code(&stdio.command, &stdio.args) {
        let text = "runs code from its arguments; files that this code loads can change without asking you again";
        warnings.push(text.to_owned());
    } else if !shell && !matches!(name, "docker" | "podman" | "mcp-remote") && stdio.args.iter().any(may_eval) {
        let text = "may run code from its arguments; files that this code loads can change without asking you again";
        warnings.push(text.to_owned());
    }
    let runner = matches!(name, "npx" | "npm" | "bunx" | "pnpm" | "pnpx" | "yarn" | "uvx" | "uv" | "pipx");
    let local = |arg: &&String| arg.starts_with("./") || arg.starts_with("../") || arg.contains("file:");
    if let Some(package) = stdio.args.iter().find(local).filter(|_| runner) {
        let package = exact(package);
        warnings.push(format!("if `{package}` is a package, most of its files can change without asking you again"));
    }
    let module = stdio.args.iter().skip_while(|arg| *arg != "-m").nth(1);
    if let Some(module) = module.filter(|_| name.starts_with("python") || name.starts_with("pypy")) {
        let module = exact(module);
        warnings.push(format!("runs the module `{module}`, whose files can change without asking you again"));
    }
    let late = |text: &&String| !text.starts_with('-') && (text.contains("${input:") || text.contains("${keyring:"));
    if let Some(text) = stdio.args.iter().chain(&stdio.cwd).chain(&stdio.env_file).find(late) {
        warnings.push(format!("files that `{}` names can change without asking you again", exact(text)));
    }
    if runs(&["docker", "podman", "nerdctl"]) && stdio.args.iter().any(|arg| mounts(arg)) {
        warnings
            .push("runs a container with files of this machine, which can change without asking you again".to_owned());
    }
    let after_git = programs.iter().position(|program| program == "git").map(|at| all.iter().skip(at));
    if after_git.is_some_and(|mut after| after.any(|word| word == "-c" || word.starts_with("--config-env"))) {
        let text =
            "changes settings of git, which can run commands; files that they name can change without asking you again";
        warnings.push(text.to_owned());
    }
    let locks = LOCK_FILES.iter().filter(|(programs, _)| runs(programs)).flat_map(|(_, files)| *files);
    for file in locks.filter(|file| folder.is_some_and(|folder| exists_up(folder, stdio.cwd.as_deref(), file))) {
        warnings.push(format!(
            "`{file}` in this project decides which packages are installed, and can change without asking you again"
        ));
    }
    warnings
}

/// `-v ./data:/data`, `--volume=…`, `--mount type=bind,…`.
fn mounts(argument: &str) -> bool {
    let flags = ["--volume", "--mount", "--volumes-from"];
    let is_flag = |word: &String| {
        let short = word.strip_prefix('-').map(|flags| flags.trim_start_matches(['i', 't', 'd', 'P', 'q']));
        let is_short = short.is_some_and(|rest| rest.starts_with('v'));
        is_short
            || flags
                .iter()
                .any(|flag| word == flag || word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
    };
    words(argument).iter().any(is_flag)
}

/// Whether a file is in the working directory or above it, in the repository.
fn exists_up(folder: &Path, cwd: Option<&str>, file: &str) -> bool {
    let root = repository(folder);
    let start = cwd.map_or_else(|| folder.to_path_buf(), |cwd| folder.join(cwd));
    let start = canonical(&start);
    start.ancestors().take_while(|above| above.starts_with(&root)).any(|above| above.join(file).is_file())
}
