//! `mcp-sidecar input`: manages the answers to `inputs` of config files. Values of passwords are never printed.

use serde_json::json;

use super::context::{Context, contents, parse_scope};
use super::engine_client;
use super::secret::{self, read_value};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, print, print_json, terminal, usage};
use crate::config;
use crate::config::spec::{Input, InputKind};
use crate::model::{Error, Scope};
use crate::protocol::commands::ServerRestart;
use crate::secrets::{Keyring, input_name};
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Answer an input, so that servers that are waiting for it can start
    ///
    /// Asks for the value without showing it. If stdin is not a terminal, reads the value from stdin.
    Set(Target),
    /// List the inputs of this workspace, and whether they are answered
    List {
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Forget the answer to an input
    Remove(Target),
}

#[derive(Debug, clap::Args)]
struct Target {
    /// ID of the input
    id: String,
    /// Config file that declares it, if several do: project, local or user
    #[arg(long, value_parser = parse_scope)]
    scope: Option<Scope>,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let Arguments { command } = arguments;
    if !matches!(command, Command::List { .. }) {
        secret::refuse_agents()?;
    }
    let inputs = declared(context)?;
    let is_set = matches!(command, Command::Set(_));
    let status = secret::with_keyring(context, async |keyring| execute(keyring, command, &inputs).await)?;
    if is_set && status == Status::Ok {
        restart_waiting(context)?;
    }
    Ok(status)
}

async fn execute(keyring: &Keyring, command: Command, inputs: &[Input]) -> anyhow::Result<Status> {
    match command {
        Command::Set(target) => {
            let input = find(inputs, &target)?;
            let value = read_value(&input.id).await?;
            if let InputKind::Pick(options) = &input.kind
                && !options.iter().any(|(_, option)| option == value.reveal())
            {
                let options: Vec<_> = options.iter().map(|(_, option)| one_line(option, 100)).collect();
                return Err(usage(format!("this input must be one of: {}", options.join(", "))));
            }
            keyring.set(&input_name(input), &value).await?;
            terminal::eprint(&format!("stored in {}\n", keyring.location().await?))?;
        }
        Command::List { json } => {
            let names = keyring.names().await.unwrap_or_default();
            list(inputs, &names, json)?;
        }
        Command::Remove(target) => keyring.remove(&input_name(find(inputs, &target)?)).await?,
    }
    Ok(Status::Ok)
}

/// The inputs that the config files of the workspace declare.
fn declared(context: &Context) -> anyhow::Result<Vec<Input>> {
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let contents = contents(context.folder(&settings)?, &settings, &paths);
    Ok(config::load(&contents, &Default::default(), &settings.limits).config.inputs.clone())
}

fn find<'a>(inputs: &'a [Input], target: &Target) -> anyhow::Result<&'a Input> {
    let is_meant = |input: &&Input| input.id == target.id && target.scope.is_none_or(|scope| scope == input.scope);
    let found: Vec<&Input> = inputs.iter().filter(is_meant).collect();
    match found.as_slice() {
        [] => Err(Error::NotFound(format!(
            "no input named `{}`; run `mcp-sidecar input list` to list the inputs of this workspace",
            one_line(&target.id, 100)
        ))
        .into()),
        [only] => Ok(only),
        _ => Err(usage("several files declare this input; use --scope to choose one".to_owned())),
    }
}

fn list(inputs: &[Input], answered: &[String], as_json: bool) -> anyhow::Result<()> {
    let is_answered = |input: &Input| answered.contains(&input_name(input));
    if as_json {
        let entry = |input: &Input| {
            json!({ "id": input.id, "description": input.description, "scope": input.scope.to_string(),
                "file": input.file, "password": input.password, "answered": is_answered(input) })
        };
        print_json(&json!({ "inputs": inputs.iter().map(entry).collect::<Vec<_>>() }))?;
        return Ok(());
    }
    if inputs.is_empty() {
        print("no config file of this workspace declares an input\n")?;
        return Ok(());
    }
    let mut table = Table::new(&["INPUT", "SCOPE", "ANSWERED", "DESCRIPTION"]);
    for input in inputs {
        let (color, word) = if is_answered(input) { (Color::Good, "yes") } else { (Color::Dim, "no") };
        table.row(vec![
            Cell::plain(one_line(&input.id, 100)),
            Cell::plain(input.scope.to_string()),
            Cell::new(color, word),
            Cell::plain(one_line(&input.description, 400)),
        ]);
    }
    print(&table.text(Style::of_stdout(), size().map(|size| size.columns)))?;
    Ok(())
}

/// Servers that wait for an input read it when they start again.
fn restart_waiting(context: &Context) -> anyhow::Result<()> {
    engine_client::run_shared(context, async |engine| {
        for server in engine.servers(None).await? {
            if server.reason.as_deref() == Some("awaiting-input") {
                engine.call(ServerRestart { server: Some(server.name), all: false }).await?;
            }
        }
        Ok(Status::Ok)
    })?;
    Ok(())
}
