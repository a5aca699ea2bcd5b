//! The two sandboxes of `docs/security.md`, run as the page says.

use std::path::Path;
use std::process::Stdio;

use mcp_sidecar::protocol::events::ApprovalsChanged;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::processes::stage::PROGRAM;
use crate::public::printed_by;
use crate::sharing::Stage;
use crate::socket_access::can;
use crate::support::commands::resolve;

/// A small agent. It prints one JSON object: what it got through MCP, and what it could reach besides.
const AGENT: &str = r#"
import errno, json, os, socket, subprocess, sys

given = json.loads(sys.argv[1])
connect = subprocess.Popen(["/mcp/mcp-sidecar", "connect", "--socket", "/mcp/socket/mcp"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

def send(message):
    connect.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    connect.stdin.flush()

def ask(number, method, params):
    send({"id": number, "method": method, "params": params})
    for line in connect.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]

ask(1, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
                      "clientInfo": {"name": "sandboxed", "version": "1"}})
send({"method": "notifications/initialized"})
tools = [tool["name"] for tool in ask(2, "tools/list", {})["tools"]]
called = ask(3, "tools/call", {"name": "fixture__echo", "arguments": {"n": 1}})

def reached(attempt):
    try:
        return attempt() or "reached"
    except OSError as error:
        return errno.errorcode[error.errno]

def greet(path, front):
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(path)
        stream.sendall((json.dumps({"front": front, "version": given["version"], "pid": 1}) + "\n").encode())
        return "refused" if "refused" in stream.makefile().readline() else "accepted"

with open("made-inside", "w") as file:
    file.write("the project can be changed")
print(json.dumps({
    "tools": tools,
    "called": called["content"][0]["text"],
    "outside": {path: reached(lambda: not os.stat(path)) for path in given["outside"]},
    "editor": reached(lambda: greet(given["socket"], "editor")),
    "editor at the socket for agents": greet("/mcp/socket/mcp", "editor"),
    "new file beside the socket": reached(lambda: open("/mcp/socket/new", "w")),
    "remove the socket": reached(lambda: os.remove("/mcp/socket/mcp")),
    "processes": [open(f"/proc/{pid}/cmdline").read() for pid in os.listdir("/proc") if pid.isdigit()],
    "variables": sorted(os.environ),
}))
connect.stdin.close()
connect.wait()
"#;

/// The first shell example of a section of the page.
fn example(section: &str) -> &'static str {
    let page = include_str!("../../docs/security.md");
    let (_, text) = page.split_once(&format!("\n### {section}\n")).unwrap();
    let (_, example) = text.split_once("```sh\n").unwrap();
    example.split("```").next().unwrap()
}

/// Runs the example of a section with the small agent, and approves its call in the editor.
async fn agent_reaches_its_tools_and_nothing_else(section: &str, program: &str, sandbox: &Path) {
    let stage = Stage::new();
    let mut window = stage.window().await;
    let programs = stage.home.path("programs");
    std::fs::create_dir(&programs).unwrap();
    for (name, target) in [(program, sandbox), ("mcp-sidecar", Path::new(PROGRAM))] {
        std::os::unix::fs::symlink(target, programs.join(name)).unwrap();
    }
    let (home, socket) = (stage.home.path(""), stage.address().socket);
    let outside: Vec<_> = ["config/mcp.json", "state", "runtime", "programs"].map(|name| stage.home.path(name)).into();
    assert!(outside.iter().all(|path| path.exists()), "{outside:?}");
    let given = json!({ "outside": outside, "socket": socket, "version": env!("CARGO_PKG_VERSION") });

    let mut script = Command::new("sh");
    script.args(["-c", example(section), "in-sandbox", "python3", "-c", AGENT, &given.to_string()]);
    script.envs(stage.home.variables()).env("HOME", home).env("IMAGE", "host").env("SECRET_OF_THE_SHELL", "1");
    script.env("PATH", format!("{}:/usr/bin:/bin", programs.display())).current_dir(stage.home.project());
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut output = tokio::spawn(script.spawn().unwrap().wait_with_output());
    let asked = tokio::select! {
        asked = window.editor.event_where(|changed: &ApprovalsChanged| !changed.approvals.is_empty()) => asked,
        ended = &mut output => panic!("the agent made no call: {ended:?}"),
    };
    assert_eq!(asked.approvals[0].requester.name, "sandboxed");
    window.editor.call(resolve(&asked.approvals[0], "allow-once")).await.unwrap();
    let output = output.await.unwrap().unwrap();
    let Ok(found) = serde_json::from_slice::<Value>(&output.stdout) else { panic!("{output:?}") };

    assert_eq!(found["tools"], json!(["fixture__echo"]));
    assert_eq!(found["called"], r#"{"n": 1}"#);
    assert!(stage.home.project().join("made-inside").exists(), "the agent works in the project");
    for path in &outside {
        assert_eq!(found["outside"][path.to_str().unwrap()], "ENOENT", "{}", path.display());
    }
    assert_eq!(found["editor"], "ENOENT");
    assert_eq!(found["editor at the socket for agents"], "refused");
    for change in ["new file beside the socket", "remove the socket"] {
        assert_eq!(found[change], "EROFS", "{change}");
    }
    let processes: Vec<&str> = found["processes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(processes.iter().any(|each| each.starts_with("/mcp/mcp-sidecar\0connect")), "{processes:?}");
    assert!(!processes.iter().any(|each| each.contains("\0engine\0") || each.contains("server.py")), "{processes:?}");
    let variables = found["variables"].to_string();
    assert!(!variables.contains("SECRET_OF_THE_SHELL") && !variables.contains("MCP_SIDECAR"), "{variables}");
    window.editor.event_where(|changed: &ApprovalsChanged| changed.approvals.is_empty()).await;
    assert!(window.quit().await.success());
    stage.until_nothing_is_left().await;
}

#[tokio::test]
async fn an_agent_in_the_sandbox_of_the_page_calls_tools_and_reaches_nothing_else() {
    let Some(bwrap) = printed_by("get-bubblewrap") else { return };
    if can(bwrap.to_str().unwrap(), &["--unshare-all", "--ro-bind", "/", "/", "true"]) {
        agent_reaches_its_tools_and_nothing_else("With bubblewrap", "bwrap", &bwrap).await;
    }
}

#[tokio::test]
async fn an_agent_in_the_container_of_the_page_calls_tools_and_reaches_nothing_else() {
    let Some(podman) = printed_by("get-podman") else { return };
    if can(podman.to_str().unwrap(), &["run", "--rm", "host", "true"]) {
        agent_reaches_its_tools_and_nothing_else("In a container", "docker", &podman).await;
    }
}
