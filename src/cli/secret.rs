//! `mcp-sidecar secret`: values for `${keyring:NAME}`, in and out of the keyring. No value is ever printed.

use std::io::{IsTerminal, Read};

use serde_json::json;

use super::context::Context;
use super::terminal::{self, Echo};
use super::{Status, print};
use crate::secrets::{Keyring, keyring_name};
use crate::text::{Secret, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Keep a value that mcp.json refers to as ${keyring:NAME}
    ///
    /// The value is typed without being shown, or read from stdin when that is no terminal.
    Set { name: String },
    /// Show which values are kept, without the values
    List {
        /// For programs
        #[arg(long)]
        json: bool,
    },
    /// Forget a value
    Remove { name: String },
}

/// No credential is longer.
const LONGEST: u64 = 64 << 10;

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let runtime = context.runtime()?;
    let result = runtime.block_on(async {
        let keyring = Keyring::open(&paths);
        keyring.allow_file(settings.secrets.file);
        tokio::select! {
            result = carry_out(&keyring, arguments.command) => result,
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("cancelled")),
        }
    });
    runtime.shutdown_background();
    result
}

async fn carry_out(keyring: &Keyring, command: Command) -> anyhow::Result<Status> {
    match command {
        Command::Set { name } => {
            let secret = typed(&name).await?;
            keyring.set(&whole(&name), &secret).await?;
            let place = keyring.location().await?;
            terminal::say(&format!(
                "kept in {place}; mcp.json refers to it as ${{keyring:{}}}\n",
                one_line(&name, 200)
            ))?;
        }
        Command::List { json: as_json } => {
            let names: Vec<String> = keyring.names().await?;
            if as_json {
                print(&format!("{:#}\n", json!({ "names": names })))?;
            } else if names.is_empty() {
                print("nothing is kept; `mcp-sidecar secret set NAME` keeps a value\n")?;
            } else {
                print(&names.iter().map(|name| format!("{}\n", one_line(short(name), 400))).collect::<String>())?;
            }
        }
        Command::Remove { name } => {
            let names = keyring.names().await?;
            let wanted = [whole(&name), name.clone()].into_iter().find(|wanted| names.contains(wanted));
            let Some(wanted) = wanted else {
                anyhow::bail!("nothing is kept as `{}`; `mcp-sidecar secret list` shows what is", one_line(&name, 200));
            };
            keyring.remove(&wanted).await?;
        }
    }
    Ok(Status::Ok)
}

/// Inputs and sign-ins are kept under names of their own kind; a plain name is one of `${keyring:…}`.
fn whole(name: &str) -> String {
    if name.starts_with("input:") { name.to_owned() } else { keyring_name(name) }
}

fn short(name: &str) -> &str {
    name.strip_prefix("keyring:").unwrap_or(name)
}

async fn typed(name: &str) -> anyhow::Result<Secret> {
    let value = if std::io::stdin().is_terminal() {
        terminal::ask(&format!("value of {}: ", one_line(name, 200)), Echo::Off).await?.unwrap_or_default()
    } else {
        let mut value = String::new();
        std::io::stdin().lock().take(LONGEST).read_to_string(&mut value)?;
        value.trim_end_matches(['\n', '\r']).to_owned()
    };
    anyhow::ensure!(!value.is_empty(), "the value is empty; nothing was kept");
    Ok(Secret::new(value))
}
