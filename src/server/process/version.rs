//! Runs a program with `--version`, to find out whether it works.

use std::path::Path;
use std::time::Duration;

use super::Exit;
use super::once::{CommandOutput, RunOnce};
use crate::config::Environment;
use crate::text::{mask, one_line};

/// `npx` starts a whole interpreter, which takes seconds on a slow disk.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_OUTPUT: u64 = 4 << 10;

/// The first line that the program prints; the error says why it does not work. `folder` must not contain anything that
/// the program could read, such as settings of a project.
pub async fn version(program: &Path, environment: &Environment, folder: &Path) -> Result<String, String> {
    let args = ["--version".to_owned()];
    let once = RunOnce { program, args: &args, environment, folder, timeout: TIMEOUT, max_output: MAX_OUTPUT };
    let CommandOutput { stdout, stderr, exit } = once.run().await?;
    let first = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.lines().map(str::trim).find(|line| !line.is_empty()).map(|line| one_line(&mask(line), 200))
    };
    match exit {
        Exit::Code(0) => Ok(first(&stdout).unwrap_or_default()),
        exit => Err(match first(&stderr).or_else(|| first(&stdout)) {
            Some(line) => format!("it {exit}: {line}"),
            None => format!("it {exit}"),
        }),
    }
}
