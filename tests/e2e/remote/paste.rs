//! Signing in on a machine without a browser: the user pastes the address of the last page into the terminal.

use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use super::issuer::Manners;
use super::signin::server;
use crate::support::Home;

/// A browser on another machine: it loads the page that the terminal shows, and cannot load the one that it is sent to.
const BROWSER: &str = r#"|python3 -c '
import http.client, re, sys, urllib.parse
page = re.search(r"open this page in your browser: (\S+)", sys.stdin.read()).group(1)
url = urllib.parse.urlsplit(page)
connection = http.client.HTTPConnection(url.netloc)
connection.request("GET", url.path + "?" + url.query)
print(connection.getresponse().getheader("location"))'"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_the_last_page_is_pasted_into_the_terminal() {
    let server = server(Manners { expires_in: 3600, ..Manners::default() }).await;
    let home = Home::new();
    std::fs::create_dir_all(home.paths().config_dir).unwrap();
    let config = json!({ "servers": { "far": { "url": server.url } } });
    std::fs::write(home.paths().user_config(), config.to_string()).unwrap();
    std::fs::write(home.paths().settings_file(), "secrets = \"file\"\n").unwrap();
    let paths = home.paths();
    let output = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/terminal.py"))
        .args(["open this page", "http://127.0.0.1:1/callback?code=1&state=wrong", "nothing waits", BROWSER, "--"])
        .args([env!("CARGO_BIN_EXE_mcp-sidecar"), "auth", "far"])
        .current_dir(home.project())
        .env("MCP_SIDECAR_CONFIG_DIR", paths.config_dir)
        .env("MCP_SIDECAR_STATE_DIR", paths.state_dir)
        .env("MCP_SIDECAR_RUNTIME_DIR", paths.runtime_dir)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("paste the address of that page here"), "{shown}");
    assert!(shown.contains("signed in to `far`; its status is connected"), "{shown}");
}
