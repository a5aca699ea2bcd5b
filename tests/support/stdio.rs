//! The built binary as an editor starts it.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, Command};

use super::editor::TestEditor;
use super::home::Home;

/// An editor with the real program behind it.
pub struct StdioEditor {
    pub editor: TestEditor,
    pub process: Child,
}

impl StdioEditor {
    /// Starts `mcp-sidecar` with these arguments, its files in `home`.
    pub fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_with(home, arguments, &[])
    }

    /// The same with these variables in its environment.
    pub fn start_with(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-sidecar"));
        command
            .envs(home.variables())
            .envs(variables.iter().copied())
            .args(arguments)
            .current_dir(home.project())
            .kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().expect("the binary has been built");
        let (reader, writer) = (process.stdout.take().unwrap(), process.stdin.take().unwrap());
        Self { editor: TestEditor::on(reader, writer), process }
    }

    /// The two apart, for tests in which one of them comes to harm.
    pub fn into_parts(self) -> (TestEditor, Child) {
        (self.editor, self.process)
    }

    /// Quits as an editor should, and waits for the end of the process.
    pub async fn quit(self) -> ExitStatus {
        let Self { editor, mut process } = self;
        editor.quit().await;
        tokio::time::timeout(Duration::from_secs(60), process.wait()).await.expect("it should have ended").unwrap()
    }
}
