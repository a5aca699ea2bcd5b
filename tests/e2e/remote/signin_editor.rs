//! Signing in as a user does it: from an editor, with variables in the definition.

use mcp_sidecar::engine::Engine;
use mcp_sidecar::protocol::commands::{ApprovalResolve, ServerAuth};
use mcp_sidecar::protocol::events::SignInPage;
use mcp_sidecar::protocol::types::{ApprovalKind, Status};
use mcp_sidecar::settings::Settings;
use serde_json::{Value, json};

use super::issuer::{Manners, get, query};
use super::mock::Mock;
use super::signin::server;
use crate::support::commands::{name, resolve};
use crate::support::harness::{Harness, open_editor};
use crate::support::{Home, TestEditor};

/// The browser of the user: follows the sign-in page back to the sidecar.
fn open_pages(editor: &mut TestEditor) {
    editor.handle("window/showDocument", |params| {
        let page = params["uri"].as_str().unwrap().to_owned();
        tokio::spawn(async move { reqwest::get(page).await.unwrap() });
        Ok(json!({ "success": true }))
    });
}

/// A workspace whose user has one server, `shop`, and an input `tenant`.
pub async fn open(home: Home, shop: Value) -> Harness {
    std::fs::create_dir_all(home.paths().config_dir).unwrap();
    let inputs = json!([{ "id": "tenant", "type": "promptString", "description": "Tenant" }]);
    let config = json!({ "inputs": inputs, "servers": { "shop": shop } });
    std::fs::write(home.paths().user_config(), config.to_string()).unwrap();
    let mut settings = Settings::default();
    settings.secrets.file = true;
    let engine = Engine::start(home.paths(), settings);
    let mut editor = open_editor(&home, &engine).await;
    open_pages(&mut editor);
    Harness { home, engine, editor }
}

/// Answers the question for the tenant.
async fn enter_tenant(workspace: &mut Harness) {
    let asked = workspace.approvals(ApprovalKind::Input, 1).await.remove(0);
    let content = Some(json!({ "value": "acme" }));
    workspace.run(ApprovalResolve { content, ..resolve(&asked, "accept") }).await;
}

/// The names of saved secrets.
fn saved(home: &Home) -> String {
    std::fs::read_to_string(home.path("state/secrets.json")).unwrap_or_default()
}

fn mcp_requests(server: &Mock, path: &str) -> Vec<super::mock::Seen> {
    server.seen().into_iter().filter(|request| request.uri.path() == path && !request.rpc().is_empty()).collect()
}

#[tokio::test]
async fn a_url_with_variables_can_be_signed_in_to_and_out_of() {
    let home = Home::new();
    let (folder, user) = (home.project().display().to_string(), std::env::var("HOME").unwrap());
    let path = format!("{user}{folder}/acme/mcp");
    let server = server(Manners { path: Some(path.clone()), expires_in: 5, ..Manners::default() }).await;
    let base = server.url.trim_end_matches("/mcp").to_owned();
    let shop = json!({
        "url": format!("{base}${{env:HOME}}${{workspaceFolder}}/${{input:tenant}}/mcp"),
        "headers": { "X-Tenant": "${input:tenant}", "X-Home": "${env:HOME}", "X-Folder": "${workspaceFolder}" },
    });
    let mut workspace = open(home, shop).await;
    enter_tenant(&mut workspace).await;
    workspace.until("shop", Status::NeedsAuth).await;

    let signed_in = workspace.run(ServerAuth { server: name("shop"), sign_out: false }).await;
    assert_eq!(signed_in.server.status, Status::Connected, "{signed_in:#?}");
    let shown: SignInPage = workspace.editor.event().await;
    assert_eq!(shown.server, name("shop"));
    assert!(shown.page.starts_with(&format!("{base}/authorize?")), "{shown:?}");
    for request in mcp_requests(&server, &path) {
        let headers = ["x-tenant", "x-home", "x-folder"].map(|name| request.header(name).unwrap().to_owned());
        assert_eq!(headers, ["acme".to_owned(), user.clone(), folder.clone()]);
    }
    let saved_as = format!("oauth {base}{path}");
    assert!(saved(&workspace.home).contains(&saved_as), "the token is saved under the resolved URL");
    // The token expires within seconds, so the connection had to renew it first.
    let renewed =
        server.seen().into_iter().filter(|request| get(&query(&request.text), "grant_type") == "refresh_token");
    assert_eq!(
        renewed.map(|request| get(&query(&request.text), "resource").to_owned()).next(),
        Some(format!("{base}{path}"))
    );

    let signed_out = workspace.run(ServerAuth { server: name("shop"), sign_out: true }).await;
    assert_eq!(signed_out.server.status, Status::NeedsAuth, "{signed_out:#?}");
    assert!(!saved(&workspace.home).contains(&saved_as), "the token is deleted");
    for noise in ["mcp/serverChanged", "mcp/approvalsChanged"] {
        workspace.editor.ignore(noise);
    }
    workspace.editor.quit().await;
}
