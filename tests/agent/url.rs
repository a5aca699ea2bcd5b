//! The endpoint at a URL: streamable HTTP, and which requests are rejected.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use mcp_sidecar::agent::AgentOptions;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::protocol_versions::{Agent, modes};
use crate::raw_agent::Host;
use crate::reads::question;
use crate::support::Home;
use crate::support::commands::resolve;
use crate::support::harness::{demo, scripted};
use crate::unknown_fields;

/// An endpoint that listens while it is kept.
struct Site {
    host: Host,
    url: String,
    file: PathBuf,
    token: String,
    serving: AbortOnDropHandle<std::io::Result<()>>,
}

impl Site {
    async fn new(levels: Value) -> Self {
        Self::with(json!({ "demo": demo(levels) })).await
    }

    async fn with(servers: Value) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let host = Host::new(servers);
        let options = AgentOptions { folder: host.home.project(), ..AgentOptions::default() };
        let http = host.endpoint.listen(options, 0, None, &host.home.path("runtime"), "project").await.unwrap();
        let (url, file) = (http.url(), http.token_file().to_owned());
        let token = std::fs::read_to_string(&file).unwrap();
        let serving = AbortOnDropHandle::new(tokio::spawn(http.serve()));
        Self { host, url, file, token, serving }
    }

    fn transport(&self) -> StreamableHttpClientTransport<reqwest::Client> {
        let config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str()).auth_header(&self.token);
        StreamableHttpClientTransport::with_client(client(), config)
    }

    /// The response to a message of an agent that has negotiated this version.
    async fn post(&self, version: &str, session: Option<&str>, message: Value) -> reqwest::Response {
        let mut request = client().post(&self.url).body(message.to_string()).bearer_auth(&self.token);
        request =
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", version);
        }
        let response = request.send().await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        response
    }

    /// The status of a greeting with these headers on top.
    async fn greet(&self, token: Option<&str>, more: HeaderMap) -> StatusCode {
        let agent = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": agent });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let mut request = client().post(&self.url).body(message.to_string());
        request =
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "application/json, text/event-stream");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.headers(more).send().await.unwrap().status()
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap()
}

fn header(name: reqwest::header::HeaderName, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(name, value.parse().unwrap())])
}

#[tokio::test]
async fn an_agent_with_the_token_is_served() {
    let site = Site::new(json!({ "*": "allow-session", "echo": "require-approval", "forget_notes": "deny" })).await;
    for mode in modes() {
        let answer = json!({ "decision": "allow-once", "name": "Ada" });
        let mut agent = Agent::over(site.transport(), mode, Some(answer)).await;
        let tools = agent.peer.list_all_tools().await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "demo__add"), "{tools:?}");
        assert_eq!(agent.text_of("demo__add", json!({ "a": 1, "b": 2 })).await, (false, "3".to_owned()));
        assert_eq!(agent.text_of("demo__echo", json!({ "text": "hej" })).await, (false, "hej".to_owned()));
        assert!(agent.hears().await.starts_with("asked: The agent `listener` wants to run `echo` on `demo`"));
        let (is_error, text) = agent.text_of("demo__forget_notes", json!({})).await;
        assert!(is_error && text.contains("denied"), "{text}");
        let (is_error, text) = agent.text_of("demo__ask_name", json!({})).await;
        assert!(!is_error && text.contains("Ada"), "{text}");
        agent.peer.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn results_are_passed_on_as_raw_json_in_streams_that_the_agent_can_parse() {
    let place = Home::new();
    let result =
        json!({ "content": [{ "type": "text", "text": "a", "own": [1] }, { "type": "new" }], "own": { "b": 1.5 } });
    let schema = json!({ "type": "object" });
    let script = json!({ "tools": [{ "name": "odd", "inputSchema": schema, "own": true }], "result": result });
    let mut server = scripted(&place.path("state"), "odd", script);
    server["tools"] = json!({ "*": "allow-always" });
    let site = Site::with(json!({ "odd": server })).await;
    for (version, has_priming) in [("2025-03-26", false), ("2025-06-18", false), ("2025-11-25", true)] {
        let agent = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": agent });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let response = site.post(version, None, initialize).await;
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        // The version is not known before the response.
        assert!(data(&response.text().await.unwrap()).iter().all(|data| !data.is_empty()), "{version}");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        site.post(version, Some(&session), initialized).await;
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        let text = site.post(version, Some(&session), list).await.text().await.unwrap();
        let listed: Value = serde_json::from_str(data(&text).last().unwrap()).unwrap();
        assert_eq!(listed["result"]["tools"][0]["own"], true, "{listed:#}");
        let call = json!({ "name": "odd__odd", "arguments": {} });
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call });
        let text = site.post(version, Some(&session), call).await.text().await.unwrap();
        assert_eq!(data(&text).iter().any(|data| data.is_empty()), has_priming, "{version}: {text}");
        let called: Value = serde_json::from_str(data(&text).last().unwrap()).unwrap();
        assert_eq!(called, json!({ "jsonrpc": "2.0", "id": 3, "result": result }), "{version}");
    }
}

#[tokio::test]
async fn an_agent_starts_and_follows_a_task() {
    let place = Home::new();
    let result = json!({ "content": [{ "type": "text", "text": "done" }] });
    let tool =
        json!({ "name": "long", "inputSchema": { "type": "object" }, "execution": { "taskSupport": "optional" } });
    let mut server = scripted(&place.path("state"), "odd", json!({ "tools": [tool], "result": result }));
    server["tools"] = json!({ "*": "allow-always" });
    let site = Site::with(json!({ "odd": server })).await;
    let version = "2025-11-25";
    let agent = json!({ "name": "raw", "version": "1" });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": agent });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let response = site.post(version, None, initialize).await;
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let greeting: Value = serde_json::from_str(data(&response.text().await.unwrap()).last().unwrap()).unwrap();
    assert!(greeting["result"]["capabilities"]["tasks"]["requests"]["tools"]["call"].is_object(), "{greeting:#}");
    site.post(version, Some(&session), json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    let ask = async |id: i64, method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let text = site.post(version, Some(&session), request).await.text().await.unwrap();
        serde_json::from_str::<Value>(data(&text).last().unwrap()).unwrap()
    };
    ask(2, "tools/list", json!({})).await;
    let created =
        ask(3, "tools/call", json!({ "name": "odd__long", "arguments": {}, "task": { "ttl": 60_000 } })).await;
    let task = &created["result"]["task"]["taskId"];
    assert!(task.is_string(), "{created:#}");
    assert_eq!(ask(4, "tasks/list", json!({})).await["result"]["tasks"][0]["taskId"], *task);
    let ended = ask(5, "tasks/result", json!({ "taskId": task })).await;
    assert_eq!(ended["result"]["content"], result["content"], "{ended:#}");
    assert_eq!(ask(6, "tasks/get", json!({ "taskId": task })).await["result"]["status"], "completed");
    assert!(ask(7, "tasks/cancel", json!({ "taskId": task })).await["error"].is_object());
}

/// The data of each event of a stream.
fn data(stream: &str) -> Vec<&str> {
    stream.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).collect()
}

#[tokio::test]
async fn requests_without_the_token_or_from_another_origin_are_rejected() {
    let site = Site::new(json!({})).await;
    let none = HeaderMap::new;
    assert_eq!(site.greet(Some(&site.token), none()).await, StatusCode::OK);
    assert_eq!(site.greet(None, none()).await, StatusCode::UNAUTHORIZED);
    assert_eq!(site.greet(Some("guessed"), none()).await, StatusCode::UNAUTHORIZED);
    for host in ["evil.test", "127.0.0.1:1", "evil.test:80"] {
        let status = site.greet(Some(&site.token), header(HOST, host)).await;
        assert!(status.is_client_error(), "{host}: {status}");
    }
    for origin in ["https://evil.test", "null", "http://localhost:1"] {
        let status = site.greet(Some(&site.token), header(ORIGIN, origin)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{origin}");
    }
    assert!(site.url.starts_with("http://127.0.0.1:"), "{}", site.url);
}

#[tokio::test]
async fn the_token_is_private_and_new_each_time() {
    let first = Site::new(json!({})).await;
    assert_eq!(std::fs::metadata(&first.file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(first.token.len() >= 64);
    assert_ne!(Site::new(json!({})).await.token, first.token);
}

#[tokio::test]
async fn closing_the_endpoint_disconnects_agents_and_deletes_the_token() {
    let site = Site::new(json!({ "*": "allow-session" })).await;
    let [older, _] = modes();
    let agent = Agent::over(site.transport(), older, None).await;
    assert_eq!(agent.text_of("demo__add", json!({ "a": 1, "b": 2 })).await, (false, "3".to_owned()));
    site.serving.abort();
    let Site { host, url, file, serving, .. } = site;
    assert!(serving.await.unwrap_err().is_cancelled());
    assert!(!file.exists());
    assert!(client().post(&url).send().await.is_err(), "the endpoint is closed");
    drop(host);
}

#[tokio::test]
async fn unknown_fields_of_a_call_pass_through_the_endpoint_after_a_question() {
    let site = Site::with(unknown_fields::servers()).await;
    let mut editor = unknown_fields::editor(&site.host).await;
    for version in ["2025-06-18", "2025-11-25"] {
        let agent = json!({ "name": "raw", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": agent });
        let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let response = site.post(version, None, initialize).await;
        let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        site.post(version, Some(&session), json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        site.post(version, Some(&session), list).await.text().await.unwrap();
        let call = json!({ "name": "new__echo", "arguments": { "text": "a" }, "priority": version });
        let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call });
        let (text, ()) =
            tokio::join!(async { site.post(version, Some(&session), call).await.text().await.unwrap() }, async {
                let asked = question(&mut editor).await;
                assert!(asked.detail.contains(&format!("{{\"priority\":\"{version}\"}}")), "{asked:?}");
                editor.call(resolve(&asked, "allow-once")).await.unwrap();
            });
        let called: Value = serde_json::from_str(data(&text).last().unwrap()).unwrap();
        assert_eq!(unknown_fields::seen(&called)["priority"], version, "{called:#}");
    }
}

#[tokio::test]
async fn a_message_of_many_small_values_is_refused_before_it_is_parsed() {
    let site = Site::new(json!({ "*": "allow-session" })).await;
    let arguments = json!({ "text": vec![0; 1_000_000] });
    let params = json!({ "name": "demo__echo", "arguments": arguments });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = client().post(&site.url).body(call.to_string()).bearer_auth(&site.token);
    let refused = request.header(CONTENT_TYPE, "application/json").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(refused.text().await.unwrap().contains("limits.pending-bytes"));
}
