//! Two servers behind HTTP: everyone may use `open`, and `shop` requires a sign-in.

use std::io::Write;
use std::path::PathBuf;

use axum::body::Body;
use axum::http::Response;
use serde_json::{Value, json};

use crate::issuer::{self, Manners};
use crate::mock::{Mock, Seen, answer, handshake};
use crate::support::Home;

pub struct Remotes {
    open: Mock,
    shop: Mock,
}

impl Remotes {
    pub async fn start(home: &Home) -> Self {
        let calls = home.path("calls");
        let open = Mock::start({
            let calls = calls.clone();
            move |request| respond(&request, &calls)
        })
        .await;
        // A token is renewed a minute before it expires.
        let manners = Manners { expires_in: 75, ..Manners::default() };
        let shop = issuer::server(manners, move |request| respond(request, &calls)).await;
        Self { open, shop }
    }

    pub fn url(&self, server: &str) -> &str {
        if server == "open" { &self.open.url } else { &self.shop.url }
    }
}

fn respond(request: &Seen, calls: &PathBuf) -> Response<Body> {
    let json = |result: Value| answer(200, "application/json", request.result(result));
    match request.rpc() {
        "initialize" => json(json!({
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "remote", "version": "1" },
        })),
        "tools/list" => json(json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] })),
        "tools/call" => {
            let arguments = &request.body["params"]["arguments"];
            let mut file = std::fs::File::options().append(true).create(true).open(calls).unwrap();
            file.write_all(format!("{}\n", arguments["text"].as_str().unwrap_or_default()).as_bytes()).unwrap();
            json(json!({ "content": [{ "type": "text", "text": arguments.to_string() }] }))
        }
        "ping" => json(json!({})),
        _ => handshake(request).unwrap_or_else(|| answer(404, "", "")),
    }
}
