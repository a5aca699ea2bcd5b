//! The front for a person in a shell: arguments, then one file a subcommand.
//!
//! A new subcommand is a file with `Arguments` and `run`, and a variant of [`Command`]. Exit codes: 0 it worked, 1 it
//! did not, 2 it was asked for wrongly.

mod auth;
mod call;
mod calls;
mod check;
mod completions;
mod config;
mod conformance;
mod connect;
mod content;
mod context;
mod demo;
mod doctor;
mod engine;
mod export;
mod form;
mod grants;
mod import;
mod inspect;
mod level;
mod list;
mod live;
mod log;
mod look;
mod lsp;
mod manage;
mod metrics;
mod question;
mod report;
mod schema;
mod secret;
mod server;
mod setup;
mod table;
mod templates;
mod terminal;
mod test;
mod trust;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use self::context::Context;
use crate::logging;
use crate::server::guardian;
use crate::text::mask;

/// Turns mcp.json into a live workspace beside your editor.
///
/// Keeps every MCP server of a project connected, reloads when a file is saved, and lets no tool run that you have not
/// allowed. Editors start it by themselves; without a subcommand it serves the editor on its stdin.
#[derive(Debug, Parser)]
#[command(name = "mcp-sidecar", version, max_term_width = 100)]
struct Arguments {
    /// Workspace folder, in place of the nearest one that holds config files
    #[arg(long, global = true, value_name = "FOLDER")]
    workspace: Option<PathBuf>,

    #[command(flatten)]
    editor: lsp::Arguments,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an editor on stdin and stdout
    Lsp(lsp::Arguments),
    /// Show every server and how it is doing
    List(list::Arguments),
    /// Show everything about a server: status, tools, resources, prompts
    Inspect(inspect::Arguments),
    /// Start a server, list what it has, and end it again
    Test(test::Arguments),
    /// Run a tool
    ///
    /// For example: mcp-sidecar call demo/echo '{"text": "hello"}'
    Call(call::Arguments),
    /// Add a server to a config file
    ///
    /// For example: mcp-sidecar add files -- npx -y @modelcontextprotocol/server-filesystem .
    Add(manage::Add),
    /// Take a server out of its config file
    Remove(manage::Which),
    /// Move a server from one config file to another, as it is written
    ///
    /// For example: mcp-sidecar move files --to user
    Move(manage::Move),
    /// Enable a server in its config file
    Enable(manage::Which),
    /// Disable a server in its config file
    Disable(manage::Which),
    /// Show how freely a tool may run and why, or set another level for it
    ///
    /// For example: mcp-sidecar level files/write_file require-approval
    Level(level::Arguments),
    /// Sign in at a server that wants to know who you are
    Auth(auth::Arguments),
    /// Show the call log, newest first
    Calls(calls::Arguments),
    /// Show how long tools took and how often they failed
    Metrics(metrics::Arguments),
    /// Show what you have allowed for longer than once, or take it back
    Grants(grants::Arguments),
    /// Trust the servers that a project defines, after a look at what they run
    Trust(trust::Arguments),
    /// Keep values that mcp.json refers to as ${keyring:NAME}
    Secret(secret::Arguments),
    /// Check programs, files, variables, keyring and database
    ///
    /// Exits with 1 when something needs attention.
    Doctor(doctor::Arguments),
    /// Serve an agent on stdin and stdout: all tools of the workspace as one MCP server
    ///
    /// It joins the engine that an editor of this workspace uses, or starts one. What a tool may do stays your decision:
    /// approvals appear in the editor.
    Connect(connect::Arguments),
    /// Check config files and show what is wrong with them
    ///
    /// Exits with 1 when there are errors, so that it can stand in a CI job; warnings alone are no failure.
    Check(check::Arguments),
    /// Show definitions of well-known servers to begin with
    Templates(templates::Arguments),
    /// Print the JSON Schema of mcp.json
    Schema(schema::Arguments),
    /// Show the settings in force and where every file is
    ///
    /// With --default, prints a config.toml that holds every default and explains it.
    Config(config::Arguments),
    /// Show the end of the newest log file
    Log(log::Arguments),
    /// Take servers over from another program
    ///
    /// For example: mcp-sidecar import cursor --dry-run
    Import(import::Arguments),
    /// Write servers the way another program wants them
    Export(export::Arguments),
    /// Point an agent at this workspace's servers
    ///
    /// Writes the few lines that start `mcp-sidecar connect` into the program's own config file.
    Setup(setup::Arguments),
    /// Print the completions of a shell
    ///
    /// For example: mcp-sidecar completions fish > ~/.config/fish/completions/mcp-sidecar.fish
    Completions(completions::Arguments),
    /// Run the engine of a workspace for all its windows and agents; they start it by themselves
    #[command(hide = true)]
    Engine,
    /// Play a scenario of the official conformance suite, which starts this itself
    #[command(hide = true)]
    Conformance(conformance::Arguments),
    /// Show it at work on a copy of the example workspace
    Demo,
    /// Serve the built-in demo MCP server on stdin and stdout
    DemoServer,
}

/// How it ended, for whoever reads exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Failed,
}

impl Status {
    fn from_code(code: u8) -> Self {
        if code == 0 { Self::Ok } else { Self::Failed }
    }
}

/// It was asked for wrongly, in a way that the arguments alone did not show.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

fn usage(message: String) -> anyhow::Error {
    Usage(message).into()
}

/// The whole program.
pub fn main() -> ExitCode {
    logging::log_panics();
    // No word of the command line, because no person ever says it; and what watches over servers should be light.
    if let Some(mark) = guardian_mark(&mut std::env::args_os().skip(1)) {
        return guardian::run_guardian(&mark);
    }
    match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        Err(error) => {
            // Help and version arrive here as well. A reader that has gone is no reason to complain.
            error.print().ok();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

fn guardian_mark(arguments: &mut dyn Iterator<Item = OsString>) -> Option<String> {
    let first = arguments.next()?;
    (first == guardian::SUBCOMMAND).then(|| arguments.next()?.into_string().ok()).flatten()
}

fn run(arguments: Arguments) -> ExitCode {
    let Arguments { workspace, editor, command } = arguments;
    let context = Context { workspace };
    let result = match command {
        Some(command) => command.alone(editor.standalone).run(&context),
        None if io::stdin().is_terminal() => help(),
        None => lsp::run(editor, &context),
    };
    match result {
        Ok(Status::Ok) => ExitCode::SUCCESS,
        Ok(Status::Failed) => ExitCode::FAILURE,
        Err(error) if has_lost_its_reader(&error) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "error: {}", mask(&format!("{error:#}"))).ok();
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

impl Command {
    /// `--standalone` means the same before the subcommand and behind it.
    fn alone(mut self, said: bool) -> Self {
        match &mut self {
            Self::Lsp(arguments) => arguments.standalone |= said,
            Self::Connect(arguments) => arguments.alone |= said,
            _ => {}
        }
        self
    }

    fn run(self, context: &Context) -> anyhow::Result<Status> {
        match self {
            Self::Lsp(arguments) => lsp::run(arguments, context),
            Self::List(arguments) => list::run(arguments, context),
            Self::Inspect(arguments) => inspect::run(arguments, context),
            Self::Test(arguments) => test::run(arguments, context),
            Self::Call(arguments) => call::run(arguments, context),
            Self::Add(arguments) => manage::add(arguments, context),
            Self::Remove(arguments) => manage::remove(arguments, context),
            Self::Move(arguments) => manage::relocate(arguments, context),
            Self::Level(arguments) => level::run(arguments, context),
            Self::Auth(arguments) => auth::run(arguments, context),
            Self::Enable(arguments) => manage::switch(arguments, manage::Switch::On, context),
            Self::Disable(arguments) => manage::switch(arguments, manage::Switch::Off, context),
            Self::Calls(arguments) => calls::run(arguments, context),
            Self::Metrics(arguments) => metrics::run(arguments, context),
            Self::Grants(arguments) => grants::run(arguments, context),
            Self::Trust(arguments) => trust::run(arguments, context),
            Self::Secret(arguments) => secret::run(arguments, context),
            Self::Doctor(arguments) => doctor::run(arguments, context),
            Self::Connect(arguments) => connect::run(arguments, context),
            Self::Check(arguments) => check::run(arguments, context),
            Self::Templates(arguments) => templates::run(arguments),
            Self::Schema(arguments) => schema::run(arguments),
            Self::Config(arguments) => config::run(arguments, context),
            Self::Log(arguments) => log::run(arguments, context),
            Self::Import(arguments) => import::run(arguments, context),
            Self::Export(arguments) => export::run(arguments, context),
            Self::Setup(arguments) => setup::run(arguments, context),
            Self::Completions(arguments) => completions::run(arguments),
            Self::Engine => engine::run(context),
            Self::Conformance(arguments) => conformance::run(arguments, context),
            Self::Demo => {
                context.runtime()?.block_on(demo::run())?;
                Ok(Status::Ok)
            }
            Self::DemoServer => {
                context.runtime()?.block_on(crate::demo::run())?;
                Ok(Status::Ok)
            }
        }
    }
}

fn help() -> anyhow::Result<Status> {
    print(&Arguments::command().render_help().to_string())?;
    Ok(Status::Ok)
}

/// Writes to stdout; unlike `print!`, a reader that has gone is an error that can be handled, not a panic.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// A point in time of the protocol, as a table shows it.
fn moment(time: &str) -> String {
    let (date, rest) = time.split_once('T').unwrap_or((time, ""));
    let seconds = rest.split(['.', 'Z']).next().unwrap_or_default();
    format!("{date} {seconds}Z")
}

/// `mcp-sidecar … | head` has seen enough; that is not our failure.
fn has_lost_its_reader(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standalone_means_the_same_before_a_subcommand_and_behind_it() {
        for words in
            [["--standalone", "lsp"], ["lsp", "--standalone"], ["--standalone", "connect"], ["connect", "--standalone"]]
        {
            let parsed = Arguments::try_parse_from(["mcp-sidecar"].iter().chain(&words)).unwrap();
            let alone = match parsed.command.map(|command| command.alone(parsed.editor.standalone)) {
                Some(Command::Lsp(arguments)) => arguments.standalone,
                Some(Command::Connect(arguments)) => arguments.alone,
                other => panic!("{other:?}"),
            };
            assert!(alone, "{words:?}");
        }
    }
}
