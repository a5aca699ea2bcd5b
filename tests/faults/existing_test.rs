//! Cases whose fault a test of another target provokes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Command;

use crate::run::Measured;
use crate::watcher::{Figures, nothing_left};

/// Fails a test that hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// The test binaries, by the name of their target; that of the library is `lib`.
pub struct TestBinaries(BTreeMap<String, PathBuf>);

impl TestBinaries {
    pub fn build() -> Self {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = std::process::Command::new(cargo);
        command.args(["test", "--no-run", "--message-format=json"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = command.stderr(std::process::Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "the tests do not build");
        let mut found = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            let (target, executable) = (&message["target"], message["executable"].as_str());
            let of_test = message["profile"]["test"] == true;
            if let Some(executable) = executable.filter(|_| of_test) {
                let is_library = target["kind"] == serde_json::json!(["lib"]);
                let name = if is_library { "lib" } else { target["name"].as_str().unwrap() };
                if target["kind"] != serde_json::json!(["bin"]) {
                    found.insert(name.to_owned(), executable.into());
                }
            }
        }
        Self(found)
    }

    /// Runs `TARGET TEST` several times. All its files are below one folder, by which its processes are known.
    pub async fn run(&self, test: &str, runs: u32) -> Result<Measured, String> {
        let (target, name) = test.split_once(' ').ok_or("a test is written as `TARGET NAME`")?;
        let binary = self.0.get(target).ok_or_else(|| format!("no test target `{target}`"))?;
        let folder = tempfile::tempdir().unwrap();
        let mut peak = Figures::default();
        for run in 1..=runs {
            let mut command = Command::new(binary);
            command.args(["--exact", name]).env("TMPDIR", folder.path()).kill_on_drop(true);
            command.current_dir(env!("CARGO_MANIFEST_DIR")).stdout(std::process::Stdio::piped());
            let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
            let pid = child.id().unwrap();
            let watching = async {
                loop {
                    peak = peak.max(Figures::of(pid).unwrap_or_default());
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            let output = tokio::select! {
                output = tokio::time::timeout(PATIENCE, child.wait_with_output()) => output,
                () = watching => unreachable!("it never ends"),
            };
            let output = output.map_err(|_| format!("run {run} hangs"))?.unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() || !text.contains("1 passed") {
                return Err(format!("run {run}: {text}{}", String::from_utf8_lossy(&output.stderr)));
            }
            nothing_left(folder.path()).await.map_err(|reason| format!("run {run}: {reason}"))?;
        }
        Ok(Measured::Passed { idle: Figures::default(), peak })
    }
}
