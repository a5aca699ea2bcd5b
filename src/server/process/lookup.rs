//! Finds the program of a command in the child's PATH and folder, and says what to do if it is missing.

use std::path::{Path, PathBuf};

use crate::paths::{FoundProgram, find_program};
use crate::text::{mask, one_line};

/// What to install for common programs.
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
        return Err("`command` is empty; set it to the program to run".to_owned());
    }
    if !cwd.is_dir() {
        let folder = one_line(&mask(&cwd.display().to_string()), 400);
        return Err(match cwd.exists() {
            true => format!("the working directory `{folder}` is not a folder; change `cwd`"),
            false => format!("the working directory `{folder}` does not exist; create it or change `cwd`"),
        });
    }
    if let Some(found) = find_program(command, path, cwd).map(FoundProgram::into_path) {
        return Ok(found);
    }
    let file = cwd.join(command);
    if command.contains('/') {
        return Err(match file.metadata() {
            Ok(about) if about.is_dir() => format!("`{shown}` is a folder, not a program"),
            Ok(_) => format!("`{shown}` is not executable; run `chmod +x` on it"),
            Err(_) => format!("`{shown}` does not exist"),
        });
    }
    if command.split_whitespace().nth(1).is_some() {
        return Err(format!(
            "`{shown}` was not found on the PATH; put only the program in `command` and its arguments in `args`"
        ));
    }
    let advice = INSTALL.iter().find(|(programs, _)| programs.contains(&command)).map(|(_, advice)| *advice);
    Err(match advice {
        Some(advice) => format!("`{shown}` was not found on the PATH; {advice} or use its full path"),
        None if file.is_file() => {
            format!("`{shown}` was not found on the PATH; use `./{shown}` to run the file in the working directory")
        }
        None => format!("`{shown}` was not found on the PATH; install it or use its full path"),
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
        insta::assert_snapshot!(complaint("npx"), @"`npx` was not found on the PATH; install Node.js or use its full path");
        insta::assert_snapshot!(complaint("my-server"), @"`my-server` was not found on the PATH; install it or use its full path");
        insta::assert_snapshot!(complaint("npx -y server"), @"`npx -y server` was not found on the PATH; put only the program in `command` and its arguments in `args`");
        insta::assert_snapshot!(complaint("./plain.txt"), @"`./plain.txt` is not executable; run `chmod +x` on it");
        insta::assert_snapshot!(complaint("plain.txt"), @"`plain.txt` was not found on the PATH; use `./plain.txt` to run the file in the working directory");
        insta::assert_snapshot!(complaint("./none"), @"`./none` does not exist");
        insta::assert_snapshot!(complaint(""), @"`command` is empty; set it to the program to run");
    }

    #[test]
    fn a_missing_folder_is_not_blamed_on_the_program() {
        let error = find("sh", Some("/bin"), Path::new("/no/such/folder")).unwrap_err();
        assert_eq!(error, "the working directory `/no/such/folder` does not exist; create it or change `cwd`");
        let error = find("sh", Some("/bin"), Path::new("/dev/null")).unwrap_err();
        assert_eq!(error, "the working directory `/dev/null` is not a folder; change `cwd`");
    }
}
