//! Who may connect to the engine's socket, and unusual environments.

use std::io::{BufRead, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use mcp_sidecar::protocol::commands::ServerTest;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::processes::stage::PROGRAM;
use crate::sharing::{Agent, Stage};
use crate::support::Home;

/// The engine's answer to a handwritten hello.
async fn greet(stage: &Stage, hello: Value) -> String {
    greet_at(&stage.address().socket, hello).await
}

async fn greet_at(socket: &Path, hello: Value) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.unwrap();
    line
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program works here; otherwise prints why the test is skipped.
pub fn can(program: &str, arguments: &[&str]) -> bool {
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
    let socket = stage.address().socket;
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
async fn every_version_is_served_and_only_a_newer_one_ends_the_engine() {
    let stage = Stage::new();
    let agent = Agent::start(&stage, &stage.home.project()).await;
    let engine = stage.engine();
    let answer = greet(&stage, json!({ "front": "agent", "version": "0.0.1", "pid": 1 })).await;
    assert!(answer.starts_with("{\"session\":"), "{answer}");
    for version in ["0.0.1", env!("CARGO_PKG_VERSION"), "", "x"] {
        let answer = greet(&stage, json!({ "front": "upgrade", "version": version, "pid": 1 })).await;
        assert_eq!(answer, "\"busy\"\n", "{version}");
    }
    assert_eq!(stage.engine(), engine);
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
        let tested = window.editor.call(ServerTest { server: name.parse().ok(), config: None }).await.unwrap();
        assert!(!tested.success, "{tested:?}");
        let message = tested.message.as_str();
        assert!(message.contains("would offer the engine to itself"), "{message}");
    }
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

/// A sandbox can be given this socket alone.
#[tokio::test]
async fn the_socket_for_agents_serves_agents_and_nothing_else() {
    let stage = Stage::new();
    let window = stage.window().await;
    let socket = stage.address().agents;
    let alone = std::fs::read_dir(socket.parent().unwrap()).unwrap().count();
    assert_eq!(alone, 1, "nothing else is in its folder");
    for (front, accepted) in [("agent", "session"), ("hook", "session"), ("editor", "refused"), ("url", "refused")] {
        let answer = greet_at(&socket, json!({ "front": front, "version": env!("CARGO_PKG_VERSION"), "pid": 1 })).await;
        assert!(answer.starts_with(&format!("{{\"{accepted}\":")), "{front}: {answer}");
    }
    let mut printed = Command::new(PROGRAM);
    printed.args(["connect", "--print-socket"]).current_dir(stage.home.project()).envs(stage.home.variables());
    let printed = String::from_utf8(printed.output().unwrap().stdout).unwrap();
    assert_eq!(printed.trim_end(), socket.to_str().unwrap());
    // Without folders of ours, as in a sandbox, and never with an engine of its own.
    let list = |socket: &Path| {
        let mut connect = Command::new(PROGRAM);
        connect.args(["connect", "--socket"]).arg(socket).env_clear();
        connect.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut connect = connect.spawn().unwrap();
        let requests = [
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
                "capabilities": {}, "clientInfo": { "name": "sandboxed", "version": "1" } } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }),
        ];
        let mut stdin = connect.stdin.take().unwrap();
        for request in requests {
            writeln!(stdin, "{request}").ok();
        }
        let mut lines = std::io::BufReader::new(connect.stdout.take().unwrap()).lines().map_while(Result::ok);
        let found = lines.find(|line| line.contains("\"id\":2"));
        drop(stdin);
        let output = connect.wait_with_output().unwrap();
        (found, String::from_utf8(output.stderr).unwrap())
    };
    let (found, stderr) = list(&socket);
    assert!(found.is_some_and(|tools| tools.contains("fixture__echo")), "{stderr}");
    let (found, stderr) = list(&stage.home.path("nothing"));
    assert_eq!(found, None);
    assert!(stderr.contains("no engine listens on"), "{stderr}");
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

/// A server that calls itself an editor could approve its own calls.
#[tokio::test]
async fn a_server_cannot_be_an_editor_of_its_own_engine() {
    let stage = Stage::new();
    let heard = stage.home.path("heard");
    let script = r#"
import json, os, socket, sys
# Also from a grandchild in another session, with an empty environment.
if sys.argv[4:] == [] and os.fork() == 0:
    os.setsid()
    os.execve(sys.executable, [sys.executable, "-c", sys.orig_argv[2], *sys.argv[1:], "again"], {})
def connect():
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(sys.argv[1])
    return stream
def borrow():
    # The process that connected has ended when the first line arrives.
    near, far = socket.socketpair()
    child = os.fork()
    if child == 0:
        stream = connect()
        socket.send_fds(far, [b"x"], [stream.fileno()])
        os._exit(0)
    _, files, _, _ = socket.recv_fds(near, 1, 1)
    os.waitpid(child, 0)
    return socket.socket(fileno=files[0])
def greet(how):
    for front in ["editor", "agent", "url", "end"]:
        stream = how()
        stream.sendall((json.dumps({"front": front, "version": sys.argv[2], "pid": 1}) + "\n").encode())
        with open(sys.argv[3], "a") as file: file.write(front + " " + stream.makefile().readline())
def deep(levels):
    # With more ancestors than anyone would look at.
    child = os.fork()
    if child != 0: return os.waitpid(child, 0)
    if levels > 0: deep(levels - 1)
    else: greet(connect)
    os._exit(0)
greet(connect)
greet(borrow)
deep(80)
if sys.argv[4:] == []: os.wait()
"#;
    let own = json!(["-c", script, stage.address().socket, env!("CARGO_PKG_VERSION"), heard]);
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(stage.home.path("config/mcp.json")).unwrap()).unwrap();
    config["servers"]["sneaky"] = json!({ "command": "python3", "args": own });
    std::fs::write(stage.home.path("config/mcp.json"), config.to_string()).unwrap();
    let mut window = stage.window().await;
    window.editor.ignore("textDocument/publishDiagnostics");
    window.editor.call(ServerTest { server: "sneaky".parse().ok(), config: None }).await.unwrap();
    let heard = std::fs::read_to_string(heard).unwrap();
    assert!(heard.lines().count() >= 24, "{heard}");
    for answer in heard.lines() {
        assert!(answer.contains("refused"), "{answer}");
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

#[tokio::test]
async fn an_agent_too_many_is_refused_with_the_name_of_the_limit() {
    let stage = Stage::new();
    std::fs::write(stage.home.path("config/config.toml"), "[limits]\nagents = 1\n").unwrap();
    let _first = Agent::start(&stage, &stage.home.project()).await;
    let hello = json!({ "front": "agent", "version": env!("CARGO_PKG_VERSION"), "pid": 1 });
    let answer = greet(&stage, hello).await;
    assert!(answer.contains("too many agents") && answer.contains("limits.agents"), "{answer}");
}

#[tokio::test]
async fn a_front_gets_an_answer_when_the_engine_has_no_descriptors_left() {
    let stage = Stage::new();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64; exec \"$0\" connect", PROGRAM]).envs(stage.home.variables());
    let mut first =
        command.current_dir(stage.home.project()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while stage.engine().is_none() || UnixStream::connect(stage.address().socket).await.is_err() {
        assert!(std::time::Instant::now() < until, "the engine did not start");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let engine = stage.engine().unwrap();
    let open = || std::fs::read_dir(format!("/proc/{engine}/fd")).unwrap().count();
    // More than the engine can accept, even if it closes a few files after its start.
    let mut silent = Vec::new();
    for _ in 0..64 - open() + 10 {
        silent.push(UnixStream::connect(stage.address().socket).await.unwrap());
    }
    let hello = json!({ "front": "agent", "version": env!("CARGO_PKG_VERSION"), "pid": 1 });
    let answer = greet(&stage, hello).await;
    assert!(answer.contains("too many open files"), "{answer}");
    first.kill().unwrap();
    first.wait().unwrap();
}
