//! Runs a program to its end for what it prints, with a limit for its time and its output.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::{Descendants, Exit, MARK, Signal, explain, mark_of_this_engine, next_number, proc_table, reaper};
use crate::config::Environment;

pub struct RunOnce<'a> {
    pub program: &'a Path,
    pub args: &'a [String],
    pub environment: &'a Environment,
    pub folder: &'a Path,
    pub timeout: Duration,
    /// One byte more is read, so that the caller can notice a longer output.
    pub max_output: u64,
}

pub struct CommandOutput {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub exit: Exit,
}

impl RunOnce<'_> {
    /// The error is for the user.
    pub async fn run(&self) -> Result<CommandOutput, String> {
        let mark = format!("{}{}.", mark_of_this_engine(), next_number());
        let mut command = Command::new(self.program);
        command
            .args(self.args)
            .env_clear()
            .envs(self.environment.iter())
            .env(MARK, &mark)
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = reaper::spawn(&mut command).map_err(|cause| explain(self.program, &cause).message)?;
        let pid = child.id().unwrap_or_default();
        let mut descendants = Descendants::new(mark);
        descendants.add(pid, proc_table::start_time(pid));
        let (stdout, stderr) = (self.read(child.stdout.take()), self.read(child.stderr.take()));
        let outcome = async { tokio::join!(stdout, stderr, child.wait()) };
        let outcome = tokio::time::timeout(self.timeout, outcome).await;
        descendants.signal(Signal::Kill);
        reaper::forget(pid);
        match outcome {
            Ok((stdout, stderr, Ok(status))) => Ok(CommandOutput { stdout, stderr, exit: Exit::from(status) }),
            Ok((_, _, Err(error))) => Err(error.to_string()),
            Err(_) => Err(format!("it did not exit within {} seconds", self.timeout.as_secs())),
        }
    }

    /// Closes the pipe at the limit, so that a program that prints without end does not wait for a reader.
    async fn read(&self, output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(output) = output {
            output.take(self.max_output + 1).read_to_end(&mut bytes).await.ok();
        }
        bytes
    }
}
