//! Finds the program that a command names, in the child's own PATH and folder, and says what to do when it is not there.

use std::path::{Path, PathBuf};

use crate::text::{mask, one_line};

/// What to install for a program that many servers need.
const INSTALL: [(&[&str], &str); 9] = [
    (&["npx", "npm", "node", "pnpm", "yarn"], "install Node.js"),
    (&["uvx", "uv"], "install uv (docs.astral.sh/uv)"),
    (&["docker"], "install Docker"),
    (&["podman"], "install Podman"),
    (&["python", "python3", "pip", "pipx"], "install Python"),
    (&["bun", "bunx"], "install Bun"),
    (&["deno"], "install Deno"),
    (&["dotnet", "dnx"], "install the .NET SDK"),
    (&["java"], "install a Java runtime"),
];

/// The file to run for `command`. A command with a `/` is a file, relative to `cwd`; any other is looked up in `path`.
pub fn find(command: &str, path: Option<&str>, cwd: &Path) -> Result<PathBuf, String> {
    let shown = one_line(&mask(command), 200);
    if command.is_empty() {
        return Err("its `command` is empty".to_owned());
    }
    if !cwd.is_dir() {
        let folder = one_line(&mask(&cwd.display().to_string()), 400);
        return Err(format!("its working directory `{folder}` does not exist"));
    }
    if let Ok(found) = which::which_in(command, path, cwd) {
        // Of a relative entry in the PATH: seen from where the child runs.
        return Ok(cwd.join(found));
    }
    let file = cwd.join(command);
    if command.contains('/') {
        return Err(match file.metadata() {
            Ok(about) if about.is_dir() => format!("`{shown}` is a folder, not a program"),
            Ok(_) => format!("`{shown}` is not executable; `chmod +x` makes it so"),
            Err(_) => format!("`{shown}` was not found"),
        });
    }
    if command.split_whitespace().nth(1).is_some() {
        return Err(format!(
            "`{shown}` was not found on the PATH; the program alone belongs into `command`, its arguments into `args`"
        ));
    }
    let advice = INSTALL.iter().find(|(programs, _)| programs.contains(&command)).map(|(_, advice)| *advice);
    Err(match advice {
        Some(advice) => format!("`{shown}` was not found on the PATH; {advice}, or give the full path"),
        None if file.is_file() => format!("`{shown}` was not found on the PATH; write `./{shown}` for the file here"),
        None => format!("`{shown}` was not found on the PATH; install it, or give the full path"),
    })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn complaint(command: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plain.txt"), "").unwrap();
        find(command, Some("/nowhere"), folder.path()).unwrap_err()
    }

    #[test]
    fn a_missing_program_says_what_to_do() {
        insta::assert_snapshot!(complaint("npx"), @"`npx` was not found on the PATH; install Node.js, or give the full path");
        insta::assert_snapshot!(complaint("my-server"), @"`my-server` was not found on the PATH; install it, or give the full path");
        insta::assert_snapshot!(complaint("npx -y server"), @"`npx -y server` was not found on the PATH; the program alone belongs into `command`, its arguments into `args`");
        insta::assert_snapshot!(complaint("./plain.txt"), @"`./plain.txt` is not executable; `chmod +x` makes it so");
        insta::assert_snapshot!(complaint("plain.txt"), @"`plain.txt` was not found on the PATH; write `./plain.txt` for the file here");
        insta::assert_snapshot!(complaint("./none"), @"`./none` was not found");
        insta::assert_snapshot!(complaint(""), @"its `command` is empty");
    }

    #[test]
    fn a_missing_folder_is_not_blamed_on_the_program() {
        let error = find("sh", Some("/bin"), Path::new("/no/such/folder")).unwrap_err();
        assert_eq!(error, "its working directory `/no/such/folder` does not exist");
    }
}
