//! `mcp-sidecar secret`: manages the secrets for `${keyring:NAME}`. Their values are never printed.

use std::io::{IsTerminal, Read};

use serde_json::json;

use super::context::Context;
use super::engine_client::Cancelled;
use super::terminal::{self, Echo};
use super::{Status, print, print_json};
use crate::model::Error;
use crate::secrets::{Keyring, keyring_name};
use crate::server::process;
use crate::text::{Secret, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Store a secret that mcp.json refers to as ${keyring:NAME}
    ///
    /// Asks for the value without showing it. If stdin is not a terminal, reads the value from stdin.
    Set {
        /// Name of the secret
        name: String,
    },
    /// List the names of the stored secrets
    List {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Delete a secret
    Remove {
        /// Name of the secret
        name: String,
    },
}

/// The longest secret that is read from stdin.
const LONGEST: u64 = 64 << 10;

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    if !matches!(arguments.command, Command::List { .. }) {
        refuse_agents()?;
    }
    with_keyring(context, async |keyring| execute(keyring, arguments.command).await)
}

/// Only the user stores and deletes secrets.
pub(super) fn refuse_agents() -> Result<(), Error> {
    process::started_by(std::process::id()).map_or(Ok(()), |by| Err(Error::StartedByAgent(by)))
}

/// Runs `work` with the user's keyring. Ctrl-C cancels it.
pub(super) fn with_keyring(
    context: &Context,
    work: impl AsyncFnOnce(&Keyring) -> anyhow::Result<Status>,
) -> anyhow::Result<Status> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let runtime = context.runtime()?;
    let result = runtime.block_on(async {
        let keyring = Keyring::open(&paths);
        keyring.allow_file(settings.secrets.file);
        tokio::select! {
            result = work(&keyring) => result,
            _ = tokio::signal::ctrl_c() => Err(Cancelled.into()),
        }
    });
    runtime.shutdown_background();
    result
}

async fn execute(keyring: &Keyring, command: Command) -> anyhow::Result<Status> {
    match command {
        Command::Set { name } => {
            let secret = read_value(&name).await?;
            keyring.set(&full_name(&name), &secret).await?;
            let place = keyring.location().await?;
            terminal::eprint(&format!("stored in {place}; use ${{keyring:{}}} in mcp.json\n", one_line(&name, 200)))?;
        }
        Command::List { json: as_json } => {
            let names: Vec<String> = keyring.names().await?;
            if as_json {
                print_json(&json!({ "names": names }))?;
            } else if names.is_empty() {
                print("no secrets; run `mcp-sidecar secret set NAME` to store one\n")?;
            } else {
                print(&names.iter().map(|name| format!("{}\n", one_line(short_name(name), 400))).collect::<String>())?;
            }
        }
        Command::Remove { name } => {
            let names = keyring.names().await?;
            let wanted = [full_name(&name), name.clone()].into_iter().find(|wanted| names.contains(wanted));
            let Some(wanted) = wanted else {
                anyhow::bail!(
                    "no secret named `{}`; run `mcp-sidecar secret list` to list the secrets",
                    one_line(&name, 200)
                );
            };
            keyring.remove(&wanted).await?;
        }
    }
    Ok(Status::Ok)
}

/// The name in the keyring. Inputs have their own prefix; any other name is one of `${keyring:…}`.
fn full_name(name: &str) -> String {
    if name.starts_with("input:") { name.to_owned() } else { keyring_name(name) }
}

fn short_name(name: &str) -> &str {
    name.strip_prefix("keyring:").unwrap_or(name)
}

pub(super) async fn read_value(name: &str) -> anyhow::Result<Secret> {
    let value = if std::io::stdin().is_terminal() {
        terminal::ask(&format!("value of {}: ", one_line(name, 200)), Echo::Off).await?.unwrap_or_default()
    } else {
        let mut value = String::new();
        std::io::stdin().lock().take(LONGEST).read_to_string(&mut value)?;
        value.trim_end_matches(['\n', '\r']).to_owned()
    };
    anyhow::ensure!(!value.is_empty(), "the value is empty; nothing was stored");
    Ok(Secret::new(value))
}
