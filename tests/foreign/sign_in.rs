//! Signing in to a real authorization server with strict rotation (`oidc-provider`): two engines share one sign-in, and a
//! machine signs in by itself.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::servers;
use crate::stdio_agent::{PATIENCE, PROGRAM, StdioAgent, text};
use crate::support::Home;

/// A browser that follows redirects and keeps cookies. It ends at the page of mcp-sidecar.
const BROWSER: &str = r#"|python3 -c '
import http.cookiejar, re, sys, urllib.request
page = re.search(r"open this page in your browser: (\S+)", sys.stdin.read()).group(1)
cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
opener.open(page).read()'"#;
const SECRET: &str = "a-secret-of-the-machine-1";

struct Issuer {
    base: String,
    client: reqwest::Client,
    _process: Child,
}

impl Issuer {
    /// `None` if the programs of `scripts/get-backends` are not wanted.
    async fn start() -> Option<Self> {
        let (folder, node) = (servers::backend("MCP_BACKENDS")?, servers::backend("MCP_BACKEND_NODE")?);
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/issuer.mjs");
        let mut command = Command::new(node);
        command.arg(script).arg(folder).env("MACHINE_SECRET", SECRET).kill_on_drop(true);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let base = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Some(Self { base, client, _process: process })
    }

    async fn post(&self, path: &str) {
        self.client.post(format!("{}{path}", self.base)).send().await.unwrap().error_for_status().unwrap();
    }

    /// What the authorization server did.
    async fn log(&self) -> Vec<Value> {
        self.client.get(format!("{}/log", self.base)).send().await.unwrap().json().await.unwrap()
    }

    async fn count(&self, grant: &str) -> usize {
        self.log().await.iter().filter(|entry| entry["grant"] == grant).count()
    }

    /// Nothing was refused and no sign-in ended.
    async fn assert_content(&self) {
        let log = self.log().await;
        assert!(log.iter().all(|entry| entry.get("grant").is_some()), "{log:#?}");
    }
}

/// A home whose user has the server `far`, and a second folder.
fn home(server: Value) -> Home {
    let home = Home::new();
    let config = json!({ "servers": { "far": server } });
    std::fs::write(home.path("config/mcp.json"), config.to_string()).unwrap();
    std::fs::write(home.path("config/config.toml"), "secrets = \"file\"\n").unwrap();
    std::fs::create_dir(home.path("other")).unwrap();
    home
}

async fn sign_in(home: &Home) {
    let output = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/terminal.py"))
        .args(["open this page", BROWSER, "--", PROGRAM, "auth", "far"])
        .current_dir(home.project())
        .envs(home.variables())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("signed in to `far`; its status is connected"), "{shown}");
}

/// Two agents in two folders: two engine processes.
async fn two_agents(home: &Home) -> (StdioAgent, StdioAgent) {
    let mut agents =
        (StdioAgent::start(home, &home.project()).await, StdioAgent::start(home, &home.path("other")).await);
    agents.0.until_listed("far__whoami").await;
    agents.1.until_listed("far__whoami").await;
    agents
}

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_renew_a_rejected_token_once_at_a_strict_issuer() {
    let Some(issuer) = Issuer::start().await else { return };
    let home = home(json!({ "url": format!("{}/mcp", issuer.base), "tools": { "*": "allow-session" } }));
    sign_in(&home).await;
    let (mut one, mut two) = two_agents(&home).await;
    assert_eq!(issuer.count("refresh_token").await, 0);

    for round in 1..=3 {
        issuer.post("/reject").await;
        let (first, second) = tokio::join!(one.call("far__whoami", json!({})), two.call("far__whoami", json!({})));
        assert_eq!((text(&first), text(&second)), ("alice", "alice"));
        assert_eq!(issuer.count("refresh_token").await, round);
    }
    issuer.assert_content().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_always_expires_soon_is_never_renewed_twice_with_the_same_refresh_token() {
    let Some(issuer) = Issuer::start().await else { return };
    issuer.post("/lifetime?seconds=20").await;
    let home = home(json!({ "url": format!("{}/mcp", issuer.base), "tools": { "*": "allow-session" } }));
    sign_in(&home).await;
    let (mut one, mut two) = two_agents(&home).await;

    // Each request renews the token, so the engines always compete for it.
    for _ in 0..4 {
        let (first, second) = tokio::join!(one.call("far__whoami", json!({})), two.call("far__whoami", json!({})));
        assert_eq!((text(&first), text(&second)), ("alice", "alice"));
    }
    assert!(issuer.count("refresh_token").await >= 4);
    issuer.assert_content().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_signs_in_with_its_own_secret() {
    let Some(issuer) = Issuer::start().await else { return };
    let oauth = json!({
        "grantType": "client_credentials", "clientId": "machine", "clientSecret": "${keyring:machine}", "scopes": "notes",
    });
    let url = format!("{}/mcp", issuer.base);
    let home = home(json!({ "url": url, "oauth": oauth, "tools": { "*": "allow-session" } }));
    let mut saved = Command::new(PROGRAM);
    saved.args(["secret", "set", "machine"]).envs(home.variables()).current_dir(home.project());
    let mut saved = saved.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut saved.stdin.take().unwrap(), SECRET.as_bytes()).await.unwrap();
    assert!(saved.wait().await.unwrap().success());

    let mut agent = StdioAgent::start(&home, &home.project()).await;
    agent.until_listed("far__whoami").await;
    assert_eq!(text(&agent.call("far__whoami", json!({})).await), "client machine");
    issuer.post("/reject").await;
    assert_eq!(text(&agent.call("far__whoami", json!({})).await), "client machine");
    assert_eq!(issuer.count("client_credentials").await, 2);
    issuer.assert_content().await;
    // Its tokens are not stored.
    let stored = std::fs::read_to_string(home.path("state/secrets.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(stored.as_object().unwrap().keys().collect::<Vec<_>>(), ["keyring:machine"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_signs_in_with_its_own_key() {
    let Some(issuer) = Issuer::start().await else { return };
    // From a password manager, from the keyring, and from a variable without line breaks.
    for (algorithm, reference) in
        [("ES256", "${keyring:by-command}"), ("RS256", "${keyring:machine}"), ("EdDSA", "${MACHINE_KEY}")]
    {
        let key =
            issuer.client.get(format!("{}/key/{algorithm}", issuer.base)).send().await.unwrap().text().await.unwrap();
        let id = format!("signer-{algorithm}");
        let oauth =
            json!({ "grantType": "client_credentials", "clientId": id, "privateKey": reference, "scopes": "notes" });
        let home =
            home(json!({ "url": format!("{}/mcp", issuer.base), "oauth": oauth, "tools": { "*": "allow-session" } }));
        std::fs::write(home.path("key.pem"), &key).unwrap();
        let settings = format!(
            "secrets = \"file\"\n[log]\nlevel = \"trace\"\n[secret-commands]\nby-command = [\"cat\", {:?}]\n",
            home.path("key.pem")
        );
        std::fs::write(home.path("config/config.toml"), settings).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = Command::new(PROGRAM);
            command.args(arguments).envs(home.variables()).env("MACHINE_KEY", key.replace('\n', "\\n"));
            command.current_dir(home.project()).stdin(std::fs::File::open(home.path("key.pem")).unwrap());
            command
        };
        assert!(run(&["secret", "set", "machine"]).output().await.unwrap().status.success());
        let called = run(&["call", "far/whoami", "--yes"]).output().await.unwrap();
        let shown = String::from_utf8_lossy(&called.stdout) + String::from_utf8_lossy(&called.stderr);
        assert!(shown.contains(&format!("client {id}")), "{algorithm}: {shown}");
        let second_line = key.lines().nth(1).unwrap();
        let logs =
            Command::new("grep").args(["-rlF", second_line]).arg(home.path("state/logs")).output().await.unwrap();
        assert_eq!(String::from_utf8_lossy(&logs.stdout), "", "{algorithm}: the key is in no log");
        assert!(!shown.contains(second_line), "{algorithm}: {shown}");

        // The key of another client is refused.
        let entry = std::fs::read_to_string(home.path("config/mcp.json")).unwrap();
        std::fs::write(home.path("config/mcp.json"), entry.replace(&id, "machine")).unwrap();
        let tested = run(&["test", "far"]).output().await.unwrap();
        let shown = String::from_utf8_lossy(&tested.stdout) + String::from_utf8_lossy(&tested.stderr);
        assert!(shown.contains("the issuer refused the client `machine`"), "{algorithm}: {shown}");
    }
    assert_eq!(issuer.count("client_credentials").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_with_a_wrong_secret_is_refused_for_good_and_the_user_cannot_sign_in_instead() {
    let Some(issuer) = Issuer::start().await else { return };
    let oauth = json!({ "grantType": "client_credentials", "clientId": "machine", "clientSecret": "${MACHINE}" });
    let home = home(json!({ "url": format!("{}/mcp", issuer.base), "oauth": oauth }));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).envs(home.variables()).current_dir(home.project());
        command.env("MACHINE", "not-the-secret-of-it").env("NO_COLOR", "1").stdin(Stdio::null());
        command
    };
    let tested = run(&["test", "far"]).output().await.unwrap();
    let shown = String::from_utf8_lossy(&tested.stdout) + String::from_utf8_lossy(&tested.stderr);
    assert!(shown.contains("the issuer refused the client `machine`"), "{shown}");
    assert!(!shown.contains("not-the-secret-of-it"), "{shown}");
    let refused = run(&["auth", "far"]).output().await.unwrap();
    let shown = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && shown.contains("signs in by itself"), "{shown}");
}
