//! `mcp-sidecar conformance`: runs one scenario of the official suite with the same engine that editors use.
//!
//! The suite passes the URL of its server as an argument and the scenario in an environment variable. The server is
//! added for this session, with all its tools allowed. A simulated user signs in and answers every form. Only servers on
//! this machine are accepted, and the user's files are neither read nor written.

mod sample;
mod simulated_user;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::Status;
use super::context::Context;
use crate::engine::Engine;
use crate::engine::editors::Identity;
use crate::model::{Result, ServerName};
use crate::paths::Paths;
use crate::protocol;
use crate::protocol::answers::{SessionChange, ToolList};
use crate::protocol::commands::{self, Command, ServerAuth, ServerStart, ServersSet, Tools};
use crate::protocol::types::{Object, ServerStatus, Status as ServerState};
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
    arguments: Object,
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
    let paths = Paths::under(folder.path());
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
    let runner = Runner { engine: Engine::start_isolated(paths, settings), server: ServerName::new(SERVER)? };
    let _user = SimulatedUser::attach(&runner.engine);
    let outcome = tokio::time::timeout(PATIENCE, runner.run_scenario(scenario)).await;
    runner.engine.shutdown().await;
    outcome.map_err(|_| anyhow!("`{}` timed out after {} s", scenario.name, PATIENCE.as_secs()))?
}

struct Runner {
    engine: Engine,
    server: ServerName,
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
        let servers = BTreeMap::from([(SERVER.to_owned(), definition)]);
        let SessionChange { errors, .. } = self.run(ServersSet { servers }).await?;
        ensure!(errors.is_empty(), "cannot add the server: {errors:?}");
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
        let ToolList { tools } = self.run(Tools { server: Some(self.server.clone()), all: false }).await?;
        if tools.iter().any(|tool| tool.tool == ECHO) {
            // It wants to see what became of the other tool's schema on its way through.
            let other = tools.iter().find(|tool| tool.tool != ECHO).map(|tool| &tool.input_schema);
            return self.call(ECHO, Object::from_iter([("schema".to_owned(), json!(other))])).await;
        }
        for tool in tools.iter().filter(|tool| parameters.tool_calls.iter().all(|call| call.name != tool.tool)) {
            self.call(&tool.tool, sample::of(&tool.input_schema)).await?;
        }
        Ok(())
    }

    /// Starts the server, and signs in if it requires that.
    async fn connect(&self) -> anyhow::Result<()> {
        let started = self.run(ServerStart { server: Some(self.server.clone()), all: false }).await?;
        let mut server = started.servers.into_iter().next().context("the server is missing")?;
        loop {
            match server.status {
                ServerState::Connected => return Ok(()),
                ServerState::NeedsAuth => server = self.sign_in().await?,
                _ => bail!("the server did not connect: {}", server.error.as_deref().unwrap_or("no reason was given")),
            }
        }
    }

    /// Calls a tool, and signs in again if the server asks for more permissions.
    async fn call(&self, tool: &str, arguments: Object) -> anyhow::Result<()> {
        let name = format!("mcp__{SERVER}__{tool}");
        let call = commands::ToolCall { tool: name, arguments: Some(arguments), ..Default::default() };
        loop {
            match self.run(call.clone()).await {
                Ok(result) if result.is_error => bail!("`{tool}` reported an error: {}", result.content),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == "needs-auth" => {
                    self.sign_in().await?;
                    self.connect().await?;
                }
                Err(error) => return Err(anyhow!(error).context(format!("cannot call `{tool}`"))),
            }
        }
    }

    async fn sign_in(&self) -> Result<ServerStatus> {
        Ok(self.run(ServerAuth { server: self.server.clone(), sign_out: false }).await?.server)
    }

    async fn run<C: Command>(&self, command: C) -> Result<C::Answer> {
        protocol::run::call(&self.engine, &Identity::default(), command, None).await
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
