//! `mcp-sidecar conformance`: one scenario of the official suite, played by the same engine that editors use.
//!
//! The suite names its server by address and the scenario by a variable. The server is entered for this session, all
//! its tools allowed; a person who is not there signs in and answers every form. Only servers on this machine are
//! taken, and nothing of the user's is read or written.

mod person;
mod sample;

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
use crate::engine::turns::Turn;
use crate::model::Result;
use crate::paths::Paths;
use crate::protocol::{self, commands::AnyCommand};
use crate::secrets::{Keyring, keyring_name};
use crate::server::transport::net::is_loopback;
use crate::server::{guardian, process};
use crate::settings::Settings;
use crate::text::Secret;
use person::Person;

/// Below the half minute after which the suite gives up, so that it is us who say what went wrong.
const PATIENCE: Duration = Duration::from_secs(25);
/// What the suite's server is called here.
const SERVER: &str = "suite";
/// What the secret of a client is kept under, while the scenario runs.
const CLIENT_SECRET: &str = "client-secret";
/// A tool of the suite that is told the schema of another.
const ECHO: &str = "json_schema_echo";
/// Where the suite expects the document that describes its clients.
const CLIENT_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The suite's server
    #[arg(value_parser = local)]
    url: Url,
}

/// What the suite says in the environment: which scenario it is, and what is known beforehand.
struct Script {
    url: Url,
    scenario: String,
    known: Known,
}

/// What the suite tells beforehand.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Known {
    client_id: Option<String>,
    client_secret: Option<String>,
    /// The calls to make, where the suite wants others than the plainest ones.
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
    let known = variable("MCP_CONFORMANCE_CONTEXT").map(|text| serde_json::from_str(&text)).transpose();
    let script = Script {
        url: arguments.url,
        scenario: variable("MCP_CONFORMANCE_SCENARIO").unwrap_or_default(),
        known: known.context("MCP_CONFORMANCE_CONTEXT cannot be read")?.unwrap_or_default(),
    };
    let outcome = runtime.block_on(play(&script));
    runtime.shutdown_background();
    outcome.map(|()| Status::Ok)
}

async fn play(script: &Script) -> anyhow::Result<()> {
    let place = tempfile::Builder::new().prefix("mcp-sidecar-conformance.").tempdir()?;
    let paths = paths(&place);
    let mut settings = Settings::default();
    settings.servers.attempts = 1;
    // Beside the state that ends with the scenario: the user's keyring is none of the suite's business.
    settings.secrets.file = true;
    if let Some(secret) = &script.known.client_secret {
        let keyring = Keyring::without_system(&paths);
        keyring.allow_file(true);
        keyring.set(&keyring_name(CLIENT_SECRET), &Secret::new(secret)).await?;
    }
    let scene = Scene { engine: Engine::start_isolated(paths, settings) };
    let _person = Person::attend(&scene.engine);
    let played = tokio::time::timeout(PATIENCE, scene.play(script)).await;
    scene.engine.shutdown().await;
    played.map_err(|_| anyhow!("`{}` was not over after {} s", script.scenario, PATIENCE.as_secs()))?
}

struct Scene {
    engine: Engine,
}

impl Scene {
    async fn play(&self, script: &Script) -> anyhow::Result<()> {
        let known = &script.known;
        let mut oauth = json!({ "clientId": known.client_id.as_deref().unwrap_or(CLIENT_DOCUMENT) });
        if known.client_secret.is_some()
            && let Some(fields) = oauth.as_object_mut()
        {
            fields.insert("clientSecret".to_owned(), json!(format!("${{keyring:{CLIENT_SECRET}}}")));
        }
        let definition = json!({
            "type": "http", "url": script.url, "oauth": oauth, "tools": { "*": "allow-session" },
            "startupTimeout": PATIENCE.as_secs(), "timeout": PATIENCE.as_secs(),
        });
        let set = self.run("mcp.servers.set", json!({ "servers": { SERVER: definition } })).await?;
        ensure!(set.get("errors") == Some(&json!({})), "the server could not be entered: {set}");
        self.enter().await?;
        // These are about the beginning and about the list; their servers know no calls.
        if ["initialize", "json-schema-ref-no-deref"].contains(&script.scenario.as_str()) {
            return Ok(());
        }
        for ToolCall { name, arguments } in &known.tool_calls {
            // A null stands for an argument that is not given, which the schema of a tool need not allow otherwise.
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
        for tool in tools.iter().filter(|tool| known.tool_calls.iter().all(|call| call.name != named(tool))) {
            self.call(&named(tool), sample::of(&schema(tool))).await?;
        }
        Ok(())
    }

    /// Starts the server, and signs in where it asks for that.
    async fn enter(&self) -> anyhow::Result<()> {
        let mut answer = self.run("mcp.server.start", json!({ "server": SERVER })).await?;
        let mut server = answer.pointer_mut("/servers/0").map(Value::take).unwrap_or_default();
        loop {
            match server.get("status").and_then(Value::as_str) {
                Some("connected") => return Ok(()),
                Some("needs-auth") => server = self.sign_in().await?,
                _ => {
                    let why = server.get("error").and_then(Value::as_str).unwrap_or("it did not say why");
                    bail!("the server did not connect: {why}");
                }
            }
        }
    }

    /// As often as it wants more rights, and the engine thinks that it may.
    async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<()> {
        let params = json!({ "tool": format!("mcp__{SERVER}__{tool}"), "arguments": arguments });
        loop {
            match self.run("mcp.tool.call", params.clone()).await {
                Ok(answer) if answer.get("isError") == Some(&json!(true)) => {
                    bail!("{tool} says that it failed: {answer}")
                }
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == "needs-auth" => {
                    self.sign_in().await?;
                    self.enter().await?;
                }
                Err(error) => return Err(anyhow!(error).context(format!("{tool} could not be called"))),
            }
        }
    }

    async fn sign_in(&self) -> Result<Value> {
        let mut answer = self.run("mcp.server.auth", json!({ "server": SERVER })).await?;
        Ok(answer.get_mut("server").map(Value::take).unwrap_or_default())
    }

    /// A command of the protocol, as every front says it.
    async fn run(&self, name: &str, params: Value) -> Result<Value> {
        let command = AnyCommand::parse(name, vec![params])?;
        let answer = protocol::run::run(&self.engine, &NoBuffers, command, None, Turn::default()).await?;
        serde_json::from_str(answer.get()).map_err(|error| crate::model::Error::Io(error.to_string()))
    }
}

fn paths(place: &TempDir) -> Paths {
    let at = |name: &str| place.path().join(name);
    Paths {
        config_dir: at("config"),
        state_dir: at("state"),
        runtime_dir: at("run"),
        managed_config: at("managed.json"),
    }
}

/// Everything is allowed here, so only this machine's own servers may come.
fn local(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.host_str().is_some_and(is_loopback) {
        true => Ok(url),
        false => Err("only a server on this machine can be tested".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_servers_on_this_machine_are_taken() {
        assert!(local("http://localhost:7000/mcp").is_ok());
        assert!(local("http://127.0.0.1:7000/mcp").is_ok());
        for other in ["https://example.test/mcp", "http://localhost.example.test/mcp", "http://10.0.0.1/", "x"] {
            assert!(local(other).is_err(), "{other}");
        }
    }
}
