use std::io::Write;
use std::process::{Child, Command, Stdio};

use crate::{Run, Sandbox};

fn frame(message: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{message}", message.len())
}

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}"#;
const SHUTDOWN: &str = r#"{"jsonrpc":"2.0","id":2,"method":"shutdown"}"#;
const EXIT: &str = r#"{"jsonrpc":"2.0","method":"exit"}"#;

/// Sends these messages, then closes the input.
fn converse(sandbox: &Sandbox, arguments: &[&str], messages: &[&str]) -> Run {
    converse_with(sandbox, sandbox.command(arguments), messages)
}

fn converse_with(sandbox: &Sandbox, mut command: Command, messages: &[&str]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child: Child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in messages {
        stdin.write_all(frame(message).as_bytes()).unwrap();
    }
    drop(stdin);
    sandbox.result(child.wait_with_output().unwrap())
}

#[test]
fn without_a_subcommand_an_editor_on_stdin_is_served() {
    let sandbox = Sandbox::with_workspace();
    for arguments in
        [&[][..], &["--stdio"], &["--clientProcessId=1", "--stdio"], &["lsp"], &["lsp", "--stdio", "--standalone"]]
    {
        let run = converse(&sandbox, arguments, &[INITIALIZE, SHUTDOWN, EXIT]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{arguments:?}");
        assert!(run.out.starts_with("Content-Length: ") && run.out.contains("\"serverInfo\""), "{}", run.out);
    }
}

#[test]
fn an_editor_that_leaves_without_shutdown_is_a_failure() {
    let sandbox = Sandbox::with_workspace();
    let run = converse(&sandbox, &[], &[INITIALIZE]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
}

#[test]
fn the_log_is_readable_only_for_its_user() {
    let sandbox = Sandbox::with_workspace();
    converse(&sandbox, &["lsp", "--standalone"], &[INITIALIZE, SHUTDOWN, EXIT]);
    let log = sandbox.run(&["log"]);
    assert_eq!(log.code, 0);
    assert!(log.out.contains("session over"), "{}", log.out);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let file = sandbox.run(&["log", "--path"]).out.trim_end().replace('~', sandbox.path("").to_str().unwrap());
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_session_without_a_log_file_continues_with_a_warning() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("state", "a file in the way");
    let run = converse(&sandbox, &["--standalone"], &[INITIALIZE, SHUTDOWN, EXIT]);
    assert_eq!(run.code, 0);
    assert!(run.err.starts_with("mcp-sidecar: cannot create a log file in ~/state/logs: "), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1);
    assert!(run.out.contains("\"serverInfo\""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_size_of_files_does_not_end_the_front() {
    let sandbox = Sandbox::with_workspace();
    for arguments in [&["lsp", "--standalone"][..], &["lsp"]] {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -f 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_mcp-sidecar")]);
        let run = converse_with(&sandbox, sandbox.start(limited, arguments), &[INITIALIZE, SHUTDOWN, EXIT]);
        assert!(run.code == 0 && run.out.contains("\"serverInfo\""), "{arguments:?}: {} {}", run.code, run.err);
    }
}
