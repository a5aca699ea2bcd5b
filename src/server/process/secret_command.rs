//! Runs a program of the user that prints a secret. Its output goes into no log and no message.

use std::path::Path;
use std::time::Duration;

use super::once::{CommandOutput, RunOnce};
use super::{Exit, find};
use crate::config::Environment;
use crate::text::Secret;

/// Long enough to confirm with a fingerprint.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_BYTES: u64 = 64 << 10;

/// What the program prints, without the line break at its end. The error is for the user.
pub async fn run(command: &[String], environment: &Environment, folder: &Path) -> Result<Secret, String> {
    let (program, args) = command.split_first().ok_or("it does not name a program")?;
    let program = &find(program, environment.path(), folder)?;
    let once = RunOnce { program, args, environment, folder, timeout: TIMEOUT, max_output: MAX_BYTES };
    let CommandOutput { stdout, stderr: _, exit } = once.run().await?;
    match exit {
        _ if stdout.len() as u64 > MAX_BYTES => Err("it printed more than 64 KiB".to_owned()),
        Exit::Code(0) => value(stdout),
        exit => Err(format!("it {exit}; run it in a terminal to see why")),
    }
}

fn value(bytes: Vec<u8>) -> Result<Secret, String> {
    let text = String::from_utf8(bytes).map_err(|_| "its output is not text".to_owned())?;
    match text.trim_end_matches(['\n', '\r']) {
        "" => Err("it printed nothing".to_owned()),
        // A private key has several.
        text if text.starts_with("-----BEGIN ") && !text.contains('\0') => Ok(Secret::new(text)),
        text if text.contains(['\n', '\0']) => Err("it printed several lines; a secret is one line".to_owned()),
        text => Ok(Secret::new(text)),
    }
}
