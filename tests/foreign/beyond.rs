//! More than one machine: a gateway as a server, and an agent behind an SSH forward. All of them are programs of others.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader, Lines};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::servers;
use crate::stdio_agent::{PATIENCE, PROGRAM, StdioAgent, text};
use crate::support::Home;

pub async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Waits for a line that contains these words.
pub async fn line_with<R: AsyncRead + Unpin>(lines: &mut Lines<BufReader<R>>, words: &str) -> String {
    let found = async {
        loop {
            let line = lines.next_line().await.unwrap().unwrap_or_else(|| panic!("it ended before `{words}`"));
            if line.contains(words) {
                return line;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("no line with `{words}`"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_is_a_server_with_all_its_tools() {
    let Some(hub) = servers::backend("MCP_BACKEND_HUB") else { return };
    let [everything, time] = ["MCP_SERVER_EVERYTHING", "MCP_SERVER_TIME"].map(|key| servers::program(key).unwrap());
    let (home, port) = (Home::new(), free_port().await);
    let behind = json!({ "mcpServers": { "everything": { "command": everything, "args": ["stdio"] }, "time": { "command": time } } });
    std::fs::write(home.path("hub.json"), behind.to_string()).unwrap();
    let mut command = Command::new(hub);
    command.args(["--port", &port.to_string(), "--config"]).arg(home.path("hub.json")).env("HOME", home.path("hub"));
    let mut gateway = command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    line_with(&mut BufReader::new(gateway.stdout.take().unwrap()).lines(), "2/2 servers started").await;

    let url = format!("http://127.0.0.1:{port}/mcp");
    let server = json!({ "type": "sse", "url": url, "tools": { "*": "allow-session" } });
    std::fs::write(home.path("config/mcp.json"), json!({ "servers": { "hub": server } }).to_string()).unwrap();
    let mut agent = StdioAgent::start(&home, &home.project()).await;
    agent.until_listed("hub__time__get_current_time").await;
    let listed = agent.ask("tools/list", json!({})).await;
    let names: Vec<&str> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let of = |server: &str| names.iter().filter(|name| name.starts_with(&format!("hub__{server}__"))).count();
    assert!(of("everything") > 5 && of("time") == 2, "{names:?}");
    let result = agent.call("hub__everything__echo", json!({ "message": "through a gateway" })).await;
    assert_eq!(text(&result), "Echo: through a gateway");
    let result = agent.call("hub__time__get_current_time", json!({ "timezone": "Europe/Berlin" })).await;
    assert!(text(&result).contains("Europe/Berlin"), "{result:#}");
}

/// Runs a program that must succeed.
async fn run(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reaches_the_endpoint_through_an_ssh_forward() {
    let Some(sshd) = servers::printed_by("get-sshd") else { return };
    let home = Home::new();
    let at = |name: &str| home.path(name).to_str().unwrap().to_owned();
    for key in ["host", "user"] {
        run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).await;
    }
    std::fs::copy(at("user.pub"), at("authorized")).unwrap();
    private(Path::new(&at("authorized")));
    let port = free_port().await;
    let config = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\n",
        at("host"),
        at("authorized")
    );
    std::fs::write(at("sshd_config"), config).unwrap();
    // It requires this folder if it runs as root.
    std::fs::create_dir_all("/run/sshd").ok();
    let mut server = Command::new(sshd);
    server.args(["-D", "-e", "-f", &at("sshd_config")]).stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut server = server.spawn().unwrap();
    line_with(&mut BufReader::new(server.stderr.take().unwrap()).lines(), "Server listening").await;

    let demo = json!({ "command": PROGRAM, "args": ["demo-server"], "tools": { "*": "allow-session" } });
    std::fs::write(at("config/mcp.json"), json!({ "servers": { "demo": demo } }).to_string()).unwrap();
    let mut endpoint = Command::new(PROGRAM);
    endpoint.args(["connect", "--http", "--json"]).envs(home.variables()).current_dir(home.project());
    let mut endpoint = endpoint.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(endpoint.stdout.take().unwrap()).lines();
    let said: Value = loop {
        said.push_str(&tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap());
        if let Ok(said) = serde_json::from_str(&said) {
            break said;
        }
    };
    let url = url::Url::parse(said["url"].as_str().unwrap()).unwrap();
    let token = std::fs::read_to_string(said["tokenFile"].as_str().unwrap()).unwrap();

    // The other machine: its port leads through SSH to the endpoint. There it has the same number, so agents call it so.
    let near = free_port().await;
    let host = format!("127.0.0.1:{}", url.port().unwrap());
    let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    let mut forward = Command::new("ssh");
    forward.args(["-N", "-F", "none", "-i", &at("user"), "-p", &port.to_string(), "-v"]);
    forward.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"]);
    forward.args(["-o", "ExitOnForwardFailure=yes", "-L", &format!("{near}:127.0.0.1:{}", url.port().unwrap())]);
    forward.arg(format!("{user}@127.0.0.1")).stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut forward: Child = forward.spawn().unwrap();
    let mut log = BufReader::new(forward.stderr.take().unwrap()).lines();
    line_with(&mut log, "Entering interactive session").await;
    // Keep reading, so that it never waits for us.
    tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });

    rustls::crypto::ring::default_provider().install_default().ok();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let through = format!("http://127.0.0.1:{near}{}", url.path());
    let post = |token: &str, session: Option<String>, message: Value| {
        let mut request = client.post(&through).bearer_auth(token).json(&message);
        request = request.header("accept", "application/json, text/event-stream").header("host", &host);
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.send()
    };
    let about = json!({ "name": "far", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    assert_eq!(post("wrong", None, initialize.clone()).await.unwrap().status(), 401, "the token still counts");
    let answer = post(token.trim(), None, initialize).await.unwrap();
    assert!(answer.status().is_success(), "{answer:?}");
    let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(token.trim(), Some(session.clone()), initialized).await.unwrap();
    let params = json!({ "name": "demo__echo", "arguments": { "text": "through SSH" } });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    let answer = post(token.trim(), Some(session), call).await.unwrap().text().await.unwrap();
    assert!(answer.contains("through SSH"), "{answer}");
}
