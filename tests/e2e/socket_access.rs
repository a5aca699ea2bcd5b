//! Who may connect to the engine's socket, and unusual environments.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::processes::stage::PROGRAM;
use crate::sharing::{Agent, Stage};
use crate::support::Home;

/// The engine's answer to a handwritten hello.
async fn greet(stage: &Stage, hello: Value) -> String {
    let mut stream = UnixStream::connect(stage.place().socket).await.unwrap();
    stream.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.unwrap();
    line
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program works here; otherwise prints why the test is skipped.
fn can(program: &str, arguments: &[&str]) -> bool {
    let tried = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let works = tried.as_ref().is_ok_and(|output| output.status.success());
    if !works {
        let why = tried.map_or_else(|error| error.to_string(), |output| String::from_utf8_lossy(&output.stderr).into());
        println!("skipped: `{program} {}` does not work here: {}", arguments.join(" "), why.trim());
    }
    works
}

#[tokio::test]
async fn another_user_gets_no_answer_even_with_file_access() {
    let other = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    if !is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    if !can("setpriv", &[&other[..], &["perl", "-MIO::Socket::UNIX", "-e", "1"]].concat()) {
        return;
    }
    let stage = Stage::new();
    let agent = Agent::start(&stage, &stage.home.project()).await;
    let socket = stage.place().socket;
    // The most permissive file modes: everyone may connect.
    let folder = stage.home.path("runtime");
    for (path, mode) in [(folder.parent().unwrap(), 0o755), (&folder, 0o755), (&socket, 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    // Perl, because every Debian has it.
    let script = "$SIG{PIPE} = 'IGNORE'; my $socket = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die \"cannot: $!\"; \
        print $socket \"$ARGV[1]\\n\"; $socket->flush; print 'heard ' . (<$socket> // 'nothing');";
    let hello = json!({ "front": "agent", "version": env!("CARGO_PKG_VERSION"), "pid": 1 }).to_string();
    let socket = socket.to_str().unwrap();
    let as_other = |arguments: &[&str]| {
        let output = Command::new("setpriv")
            .args(arguments)
            .args(["perl", "-MIO::Socket::UNIX", "-e", script, socket, &hello])
            .output();
        let output = output.unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (received, stderr) = as_other(&other);
    assert_eq!(received, "heard nothing", "{stderr}");
    let (received, stderr) = as_other(&["--reuid=0"]);
    assert!(received.starts_with("heard {\"session\":"), "{received} {stderr}");
    agent.quit().await;
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn another_version_is_refused_with_a_reason() {
    let stage = Stage::new();
    let agent = Agent::start(&stage, &stage.home.project()).await;
    let answer = greet(&stage, json!({ "front": "agent", "version": "0.0.1", "pid": 1 })).await;
    assert!(answer.starts_with("{\"refused\":") && answer.contains("0.0.1"), "{answer}");
    assert_eq!(greet(&stage, json!({ "front": "somebody" })).await, "", "no hello, no answer");
    agent.quit().await;
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn a_server_that_connects_to_its_own_engine_is_refused_with_a_reason() {
    let stage = Stage::new();
    let own: Value = stage.home.variables().into_iter().map(|(name, path)| (name.to_owned(), json!(path))).collect();
    let project = stage.home.project();
    let connect = format!("exec '{PROGRAM}' --workspace '{}' connect", project.display());
    let forgetful = format!("unset MCP_SIDECAR_ENGINE; {connect}");
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(stage.home.path("config/mcp.json")).unwrap()).unwrap();
    config["servers"]["wrapped"] = json!({ "command": "sh", "args": ["-c", connect], "env": own });
    config["servers"]["forgetful"] = json!({ "command": "sh", "args": ["-c", forgetful], "env": own });
    std::fs::write(stage.home.path("config/mcp.json"), config.to_string()).unwrap();

    let mut window = stage.window().await;
    window.editor.ignore("textDocument/publishDiagnostics");
    for name in ["wrapped", "forgetful"] {
        let tested = window.editor.command("mcp.server.test", json!({ "server": name })).await.unwrap();
        assert_eq!(tested["success"], false, "{tested:#}");
        let message = tested["message"].as_str().unwrap();
        assert!(message.contains("would offer the engine to itself"), "{message}");
    }
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

#[test]
fn a_call_succeeds_if_the_session_leader_is_outside_the_pid_namespace() {
    let namespace = ["--pid", "--fork", "--mount-proc"];
    let as_user = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let namespace = if is_root() { &namespace[..] } else { &as_user[..] };
    if !can("unshare", &[namespace, &["true"]].concat()) {
        return;
    }
    let home = Home::new();
    let demo = json!({ "command": PROGRAM, "args": ["demo-server"], "tools": { "*": "allow-session" } });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "demo": demo } }).to_string()).unwrap();
    let mut command = Command::new("unshare");
    command.args(namespace).arg(PROGRAM).args(["call", "demo/add", r#"{"a": 20, "b": 22}"#]);
    command.envs(home.variables()).current_dir(home.project()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("42"), "{out}\n{err}");
}
