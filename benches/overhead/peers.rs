//! Other programs that put several servers behind one connection, as far as `scripts/get-peers` has installed them.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::route::{Servers, server_command};

/// Names the folder that `scripts/get-peers` prints.
const FOLDER: &str = "BENCH_PEERS";

pub struct Peer {
    pub name: &'static str,
    /// In the folder of the peers.
    program: &'static str,
    setup: Setup,
}

/// How a peer is configured and reached.
#[derive(Clone, Copy)]
enum Setup {
    HubOfRust,
    Aggregator,
    ProxyOfRust,
    Fastmcp,
    ProxyOfPython,
}

/// A peer that is ready to start.
pub struct Prepared {
    pub command: Command,
    /// Where it listens. `None` if it talks on stdin and stdout.
    pub listens: Option<(SocketAddr, &'static str)>,
}

pub const ALL: [Peer; 5] = [
    Peer { name: "mcp-hub (crate)", program: "bin/mcp-hub", setup: Setup::HubOfRust },
    Peer { name: "mcp-aggregator", program: "bin/mcp-aggregator", setup: Setup::Aggregator },
    Peer { name: "mcp-proxy (crate)", program: "bin/mcp-proxy", setup: Setup::ProxyOfRust },
    Peer { name: "fastmcp", program: "venv/bin/fastmcp", setup: Setup::Fastmcp },
    Peer { name: "mcp-proxy (PyPI)", program: "venv/bin/mcp-proxy", setup: Setup::ProxyOfPython },
];

impl Peer {
    fn path(&self) -> Option<PathBuf> {
        Some(PathBuf::from(std::env::var_os(FOLDER)?).join(self.program)).filter(|path| path.exists())
    }

    pub fn is_installed(&self) -> bool {
        self.path().is_some()
    }

    /// Writes the config of a peer into an empty folder.
    pub fn prepare(&self, servers: Servers, place: &Path) -> io::Result<Prepared> {
        std::fs::create_dir_all(place)?;
        let server = server_command(servers.tools)?;
        let program = server.get_program().to_string_lossy().into_owned();
        let args: Vec<String> = server.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        let names = || (0..servers.count).map(|number| format!("s{number}"));
        let json_servers = |extra: fn(&str) -> Value| -> Value {
            let definition = |name: String| {
                let mut definition = json!({ "command": program, "args": args });
                if let (Some(own), Value::Object(extra)) = (definition.as_object_mut(), extra(&name)) {
                    own.extend(extra);
                }
                (name, definition)
            };
            names().map(definition).collect()
        };
        let toml_text = |text: &str| Value::from(text).to_string();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = Command::new(self.path().ok_or(io::ErrorKind::NotFound)?);
        command.current_dir(place).env("HOME", place).env("RUST_LOG", "error");
        let config = place.join("config");
        let (text, listens) = match self.setup {
            Setup::HubOfRust => {
                let mut text = String::new();
                for name in names() {
                    writeln!(
                        text,
                        "[servers.{name}]\nprefix = \"{name}\"\ncommand = {}\nargs = {}",
                        toml_text(&program),
                        json!(args)
                    )
                    .ok();
                }
                command.arg(&config);
                (text, None)
            }
            Setup::Aggregator => {
                command.arg("--config").arg(&config).arg("--addr").arg(port.to_string());
                let servers = json_servers(|name| json!({ "type": "stdio", "prefix": name, "enabled": true }));
                (json!({ "servers": servers }).to_string(), Some("/mcp"))
            }
            Setup::ProxyOfRust => {
                let mut text = format!(
                    "[proxy]\nname = \"bench\"\nseparator = \"/\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {}\n",
                    port.port()
                );
                for name in names() {
                    writeln!(
                        text,
                        "[[backends]]\nname = \"{name}\"\ntransport = \"stdio\"\ncommand = {}\nargs = {}",
                        toml_text(&program),
                        json!(args)
                    )
                    .ok();
                }
                command.arg("--config").arg(&config);
                (text, Some("/"))
            }
            Setup::Fastmcp => {
                let config = config.with_extension("json");
                command.args(["run", "--no-banner"]).arg(&config);
                let text = json!({ "mcpServers": json_servers(|_| json!({})) }).to_string();
                std::fs::write(config, &text)?;
                (text, None)
            }
            Setup::ProxyOfPython => {
                if servers.count > 1 {
                    return Err(io::Error::other("it has one address for each server"));
                }
                command.arg("--port").arg(port.port().to_string()).arg("--").arg(&program).args(&args);
                (String::new(), Some("/mcp"))
            }
        };
        std::fs::write(&config, text)?;
        Ok(Prepared { command, listens: listens.map(|path| (port, path)) })
    }
}
