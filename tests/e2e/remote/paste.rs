//! Signing in on a machine without a browser: the user pastes the address of the last page into the terminal or an editor.

use std::process::Stdio;

use mcp_sidecar::protocol::commands::{ServerAuth, ServerAuthPaste};
use mcp_sidecar::protocol::types::Status;
use serde_json::json;
use tokio::process::Command;

use super::issuer::Manners;
use super::signin::server;
use super::signin_editor::open;
use crate::support::commands::name;
use crate::support::harness::open_editor;
use crate::support::{Home, TestEditor};

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
        .args([
            "open this page",
            "http://127.0.0.1:1/callback?code=1&state=wrong",
            "last page, which begins",
            BROWSER,
            "--",
        ])
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

/// The user of an editor opens its sign-in page on another machine, and pastes the address of the last page into the editor.
/// Before that, they paste what `mistakes` makes of it.
fn paste_pages(editor: &mut TestEditor, mistakes: fn(&str) -> Vec<(String, &'static str)>, change: fn(&str) -> String) {
    let client = editor.client.clone();
    editor.handle("window/showDocument", move |params| {
        let (page, client) = (params["uri"].as_str().unwrap().to_owned(), client.clone());
        tokio::spawn(async move {
            let address = last_page(&page).await;
            for (wrong, why) in mistakes(&address) {
                let refused = client.call(paste(wrong)).await.unwrap_err();
                assert!(refused.message.contains(why) && !refused.message.contains("code-1"), "{refused:?}");
            }
            client.call(paste(change(&address))).await.unwrap();
        });
        Ok(json!({ "success": true }))
    });
}

/// Where the issuer sends the browser, which cannot load it.
async fn last_page(page: &str) -> String {
    let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
    let redirect = browser.get(page).send().await.unwrap();
    redirect.headers()["location"].to_str().unwrap().to_owned()
}

fn paste(address: String) -> ServerAuthPaste {
    ServerAuthPaste { server: name("shop"), address }
}

#[tokio::test]
async fn the_address_of_the_last_page_is_pasted_into_the_editor_that_asked_to_sign_in() {
    let server = server(Manners { expires_in: 3600, ..Manners::default() }).await;
    let mut workspace = open(Home::new(), json!({ "url": server.url })).await;
    workspace.until("shop", Status::NeedsAuth).await;
    // This editor was there first, and could open the page.
    workspace.editor.handle("window/showDocument", |_| panic!("the page opens where the user asked for it"));
    let mut editor = open_editor(&workspace.home, &workspace.engine).await;
    let early = editor.call(paste("http://127.0.0.1:1/callback?code=code-1&state=x".to_owned())).await.unwrap_err();
    assert!(early.message.contains("no sign-in is waiting"), "{early:?}");

    let mistakes = |address: &str| {
        vec![
            (address.replace("code=", "kode="), "not complete"),
            (address.replace("state=", "state=x"), "does not belong to the current sign-in"),
            (address.replace("/callback", "/other"), "not the address of the last page"),
        ]
    };
    paste_pages(&mut editor, mistakes, str::to_owned);
    let signed_in = editor.call(ServerAuth { server: name("shop"), sign_out: false }).await.unwrap();
    assert_eq!(signed_in.server.status, Status::Connected, "{signed_in:#?}");
}

#[tokio::test]
async fn a_refusal_of_the_issuer_can_be_pasted_too() {
    let server = server(Manners { expires_in: 3600, ..Manners::default() }).await;
    let mut workspace = open(Home::new(), json!({ "url": server.url })).await;
    workspace.until("shop", Status::NeedsAuth).await;
    let denied = |address: &str| address.replace("code=code-1", "error=access_denied");
    paste_pages(&mut workspace.editor, |_| Vec::new(), denied);
    let refused = workspace.fails(ServerAuth { server: name("shop"), sign_out: false }).await;
    assert!(refused.message.contains("refused the sign-in: access_denied"), "{refused:?}");
}
