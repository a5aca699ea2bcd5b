//! Other gateways that offer several servers as one over stdin and stdout. `scripts/get-peers` installs them in the user's
//! cache; one that is missing is left out, and the table says so. Gateways that only serve HTTP are not measured here.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::route::{Servers, definitions};

#[derive(PartialEq)]
pub struct Peer {
    pub name: &'static str,
    /// Its program in the folder of `scripts/get-peers`.
    program: &'static str,
    config: Config,
}

#[derive(PartialEq)]
enum Config {
    /// TOML with a prefix for each server.
    Toml,
    /// JSON as in `mcp.json`, after the argument `run`.
    Json,
}

pub static PEERS: [Peer; 2] = [
    Peer { name: "mcp-hub (Rust)", program: "bin/mcp-hub", config: Config::Toml },
    Peer { name: "fastmcp", program: "venv/bin/fastmcp", config: Config::Json },
];

impl Peer {
    fn program(&self) -> Option<PathBuf> {
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
        Some(cache.join("mcp-sidecar/peers").join(self.program))
    }

    pub fn is_installed(&self) -> bool {
        self.program().is_some_and(|program| program.exists())
    }

    /// Its name for a tool of the first server.
    pub fn tool_name(&self, tool: &str) -> String {
        match self.config {
            Config::Toml => format!("s0.{tool}"),
            Config::Json => format!("s0_{tool}"),
        }
    }

    pub fn command(&self, place: &Path, servers: Servers) -> io::Result<Command> {
        std::fs::create_dir_all(place)?;
        let mut command = Command::new(self.program().ok_or(io::ErrorKind::NotFound)?);
        command.current_dir(place).env("RUST_LOG", "error");
        match self.config {
            Config::Toml => {
                let mut all = definitions(servers, &json!({}))?;
                for (name, definition) in all.as_object_mut().into_iter().flatten() {
                    definition["prefix"] = json!(name);
                }
                let text = toml::to_string(&json!({ "servers": all })).map_err(io::Error::other)?;
                std::fs::write(place.join("config.toml"), text)?;
                command.arg(place.join("config.toml"));
            }
            Config::Json => {
                let all = json!({ "mcpServers": definitions(servers, &json!({}))? });
                std::fs::write(place.join("config.json"), all.to_string())?;
                command.arg("run").arg(place.join("config.json")).arg("--no-banner");
            }
        }
        // A single server gets no prefix there.
        Ok(command)
    }
}
