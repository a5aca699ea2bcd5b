//! `mcp-sidecar conformance`: runs one scenario of the official suite with the same engine that editors use.
//!
//! The suite passes the URL of its server as an argument and the scenario in an environment variable. The server is
//! added for this session, with all its tools allowed. A simulated user signs in and answers every form. Only servers on
//! this machine are accepted, and the user's files are neither read nor written.

mod sample;
mod simulated_user;

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use url::Url;

use super::Status;
use super::context::Context;
use crate::engine::Engine;
use crate::engine::edit::NoBuffers;
use crate::engine::editors::Identity;
use crate::engine::turns::Turn;
use crate::model::Result;
use crate::paths::Paths;
use crate::protocol::{self, commands::AnyCommand};
use crate::secrets::{Keyring, keyring_name};
use crate::server::transport::net::is_loopback;
use crate::server::{guardian, process};
use crate::settings::Settings;
use crate::text::Secret;
use simulated_user::SimulatedUser;

/// Shorter than the 30 seconds of the suite, so that our error message is shown.
const PATIENCE: Duration = Duration::from_secs(25);
/// The name of the suite's server.
const SERVER: &str = "suite";
/// The name of the client secret in the keyring.
const CLIENT_SECRET: &str = "client-secret";
/// The name of the private key in the keyring.
const PRIVATE_KEY: &str = "private-key";
/// A tool of the suite that takes the schema of another tool.
const ECHO: &str = "json_schema_echo";
/// The scenarios in which a machine signs in, without a user.
const WITHOUT_USER: &str = "auth/client-credentials";
/// The client metadata document that the suite expects.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// URL of the suite's server
    #[arg(value_parser = parse_local_url)]
    url: Url,
}

/// What the suite passes in the environment.
struct Scenario {
    url: Url,
    name: String,
    parameters: Parameters,
}

/// The parameters of a scenario.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    client_id: Option<String>,
    client_secret: Option<String>,
    private_key_pem: Option<String>,
    /// The calls to make. Without any, each tool is called with sample arguments.
    #[serde(rename = "toolCalls")]
    tool_calls: Vec<ToolCall>,
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    name: String,
    arguments: Map<String, Value>,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    guardian::install();
    process::raise_limits();
    let runtime = context.runtime()?;
    let variable = |name: &str| std::env::var(name).ok();
    let parameters = variable("MCP_CONFORMANCE_CONTEXT").map(|text| serde_json::from_str(&text)).transpose();
    let scenario = Scenario {
        url: arguments.url,
        name: variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default(),
        parameters: parameters.context("cannot parse MCP_CONFORMANCE_CONTEXT")?.unwrap_or_default(),
    };
    let outcome = runtime.block_on(run_scenario(&scenario));
    runtime.shutdown_background();
    outcome.map(|()| Status::Ok)
}

async fn run_scenario(scenario: &Scenario) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("mcp-sidecar-conformance.").tempdir()?;
    let paths = paths(&folder);
    let mut settings = Settings::default();
    settings.servers.attempts = 1;
    // In a temporary file: the scenario must not use the user's keyring.
    settings.secrets.file = true;
    let Parameters { client_secret, private_key_pem, .. } = &scenario.parameters;
    for (name, value) in [(CLIENT_SECRET, client_secret), (PRIVATE_KEY, private_key_pem)] {
        let Some(value) = value else { continue };
        let keyring = Keyring::without_system(&paths);
        keyring.allow_file(true);
        keyring.set(&keyring_name(name), &Secret::new(value)).await?;
    }
    let runner = Runner { engine: Engine::start_isolated(paths, settings) };
    let _user = SimulatedUser::attach(&runner.engine);
    let outcome = tokio::time::timeout(PATIENCE, runner.run_scenario(scenario)).await;
    runner.engine.shutdown().await;
    outcome.map_err(|_| anyhow!("`{}` timed out after {} s", scenario.name, PATIENCE.as_secs()))?
}

struct Runner {
    engine: Engine,
}

impl Runner {
    async fn run_scenario(&self, scenario: &Scenario) -> anyhow::Result<()> {
        let parameters = &scenario.parameters;
        let mut oauth = json!({ "clientId": parameters.client_id.as_deref().unwrap_or(CLIENT_DOCUMENT) });
        if let Some(fields) = oauth.as_object_mut() {
            if parameters.client_secret.is_some() {
                fields.insert("clientSecret".to_owned(), json!(format!("${{keyring:{CLIENT_SECRET}}}")));
            }
            if parameters.private_key_pem.is_some() {
                fields.insert("privateKey".to_owned(), json!(format!("${{keyring:{PRIVATE_KEY}}}")));
            }
            if scenario.name.starts_with(WITHOUT_USER) {
                fields.insert("grantType".to_owned(), json!("client_credentials"));
            }
        }
        let definition = json!({
            "type": "http", "url": scenario.url, "oauth": oauth, "tools": { "*": "allow-session" },
            "startupTimeout": PATIENCE.as_secs(), "timeout": PATIENCE.as_secs(),
        });
        let set = self.run("mcp.servers.set", json!({ "servers": { SERVER: definition } })).await?;
        ensure!(set.get("errors") == Some(&json!({})), "cannot add the server: {set}");
        self.connect().await?;
        // The servers of these scenarios support no calls.
        if ["initialize", "json-schema-ref-no-deref"].contains(&scenario.name.as_str()) {
            return Ok(());
        }
        for ToolCall { name, arguments } in &parameters.tool_calls {
            // A null means that the argument is missing. The schema of the tool may not allow null.
            let given = arguments.iter().filter(|(_, value)| !value.is_null());
            self.call(name, given.map(|(name, value)| (name.clone(), value.clone())).collect()).await?;
        }
        let tools = self.run("mcp.tools", json!({ "server": SERVER })).await?;
        let tools = tools.get("tools").and_then(Value::as_array).cloned().unwrap_or_default();
        let schema = |tool: &Value| tool.get("inputSchema").cloned().unwrap_or_default();
        let named = |tool: &Value| tool.get("tool").and_then(Value::as_str).unwrap_or_default().to_owned();
        if tools.iter().any(|tool| named(tool) == ECHO) {
            // It wants to see what became of the other tool's schema on its way through.
            let other = tools.iter().find(|tool| named(tool) != ECHO).map(schema);
            return self.call(ECHO, json!({ "schema": other })).await;
        }
        for tool in tools.iter().filter(|tool| parameters.tool_calls.iter().all(|call| call.name != named(tool))) {
            self.call(&named(tool), sample::of(&schema(tool))).await?;
        }
        Ok(())
    }

    /// Starts the server, and signs in if it requires that.
    async fn connect(&self) -> anyhow::Result<()> {
        let mut answer = self.run("mcp.server.start", json!({ "server": SERVER })).await?;
        let mut server = answer.pointer_mut("/servers/0").map(Value::take).unwrap_or_default();
        loop {
            match server.get("status").and_then(Value::as_str) {
                Some("connected") => return Ok(()),
                Some("needs-auth") => server = self.sign_in().await?,
                _ => {
                    let why = server.get("error").and_then(Value::as_str).unwrap_or("no reason was given");
                    bail!("the server did not connect: {why}");
                }
            }
        }
    }

    /// Calls a tool, and signs in again if the server asks for more permissions.
    async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<()> {
        let params = json!({ "tool": format!("mcp__{SERVER}__{tool}"), "arguments": arguments });
        loop {
            match self.run("mcp.tool.call", params.clone()).await {
                Ok(answer) if answer.get("isError") == Some(&json!(true)) => {
                    bail!("`{tool}` reported an error: {answer}")
                }
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == "needs-auth" => {
                    self.sign_in().await?;
                    self.connect().await?;
                }
                Err(error) => return Err(anyhow!(error).context(format!("cannot call `{tool}`"))),
            }
        }
    }

    async fn sign_in(&self) -> Result<Value> {
        let mut answer = self.run("mcp.server.auth", json!({ "server": SERVER })).await?;
        Ok(answer.get_mut("server").map(Value::take).unwrap_or_default())
    }

    /// Runs a command of the protocol.
    async fn run(&self, name: &str, params: Value) -> Result<Value> {
        let command = AnyCommand::parse(name, vec![params])?;
        let answer =
            protocol::run::run(&self.engine, &NoBuffers, &Identity::default(), command, None, Turn::default()).await?;
        serde_json::from_str(answer.get()).map_err(|error| crate::model::Error::Io(error.to_string()))
    }
}

fn paths(folder: &TempDir) -> Paths {
    let at = |name: &str| folder.path().join(name);
    Paths {
        config_dir: at("config"),
        state_dir: at("state"),
        runtime_dir: at("run"),
        managed_config: at("managed.json"),
    }
}

/// All tools are allowed here, so only servers on this machine are accepted.
fn parse_local_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "expected a URL such as http://localhost:7000/mcp".to_owned())?;
    match url.host_str().is_some_and(is_loopback) {
        true => Ok(url),
        false => Err("only a server on this machine can be tested".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_on_this_machine_are_accepted() {
        assert!(parse_local_url("http://localhost:7000/mcp").is_ok());
        assert!(parse_local_url("http://127.0.0.1:7000/mcp").is_ok());
        for other in ["https://example.test/mcp", "http://localhost.example.test/mcp", "http://10.0.0.1/", "x"] {
            assert!(parse_local_url(other).is_err(), "{other}");
        }
    }
}
