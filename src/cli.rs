//! The front for the command line: parses arguments and runs one subcommand. Each subcommand has its own file.
//!
//! To add a subcommand, write a file with `Arguments` and `run` and add a variant to [`Command`]. Exit codes: 0 for
//! success, 1 for failure, 2 for wrong usage.

mod adding;
mod agents;
mod answer;
mod approvals;
mod auth;
mod call;
mod calls;
mod check;
mod complete;
mod completions;
mod config;
mod conformance;
mod connect;
mod content;
mod context;
mod demo;
mod doctor;
mod engine;
mod engine_client;
mod export;
mod failure;
mod form;
mod grants;
mod hook;
mod import;
mod init;
mod input;
mod inspect;
mod level;
mod lifecycle;
mod list;
mod log;
mod logs;
mod lsp;
mod man;
mod manage;
mod metrics;
mod question;
mod read;
mod report;
mod schema;
mod search;
mod secret;
mod server;
mod setup;
mod style;
mod table;
mod templates;
mod terminal;
mod test;
mod trust;

#[cfg(any(test, fuzzing))]
pub use hook::read_any as read_any_hook;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::CompleteEnv;

use self::context::Context;
use self::lifecycle::Verb;
use crate::logging;
use crate::model::Timestamp;
use crate::os;
use crate::server::guardian;
use crate::server::process::{self, sandbox};
use crate::text::{escape_json, mask};

/// Runs the MCP servers of your project next to your editor
///
/// mcp-sidecar reads mcp.json, starts the servers it defines, and applies changes when you save the file. No tool runs
/// without your permission. Editors start mcp-sidecar themselves: without a subcommand, it serves an editor on stdin and
/// stdout.
#[derive(Debug, Parser)]
#[command(
    name = "mcp-sidecar",
    version,
    max_term_width = 100,
    after_help = "Get started:
  mcp-sidecar demo  Watch it work; this needs no editor and leaves no files
  mcp-sidecar init  Set up the project in this folder"
)]
struct Arguments {
    /// Use this workspace folder instead of the nearest one with config files
    #[arg(long, global = true, value_name = "FOLDER", help_heading = "Global options")]
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
    /// List all servers and their status
    List(list::Arguments),
    /// Show the status, tools, resources and prompts of a server
    Inspect(inspect::Arguments),
    /// Start a server, count its tools, resources and prompts, and stop it again
    Test(test::Arguments),
    /// Start a server, and wait until it is ready
    Start(lifecycle::Arguments),
    /// Stop a server until it is started again, or until all editors and agents have closed the workspace
    Stop(lifecycle::Arguments),
    /// Restart a server, and wait until it is ready
    Restart(lifecycle::Arguments),
    /// Ask running servers for their tools, resources and prompts again
    Refresh(lifecycle::Refresh),
    /// Show the log of a server: its stderr, its log messages, and what happened to it
    Logs(logs::Arguments),
    /// Print a resource of a server
    #[command(after_help = "Example:\n  mcp-sidecar read demo demo://notes")]
    Read(read::Read),
    /// Print the messages of a prompt
    #[command(after_help = "Example:\n  mcp-sidecar prompt demo greet language=French")]
    Prompt(read::Prompt),
    /// Call a tool and print its result
    #[command(after_help = "Example:\n  mcp-sidecar call demo/echo '{\"text\": \"hello\"}'")]
    Call(call::Arguments),
    /// Set up this project: import servers, let your agents use them, and call a tool
    ///
    /// Asks before each step. Files of other programs get a backup.
    #[command(after_help = "Examples:
  mcp-sidecar init
  mcp-sidecar init --import claude --agent claude --yes")]
    Init(init::Arguments),
    /// Add a server to a config file
    #[command(after_help = "Examples:
  mcp-sidecar add files -- npx -y @modelcontextprotocol/server-filesystem .
  mcp-sidecar add docs --url https://example.com/mcp
  mcp-sidecar add --from-registry io.github.user/weather")]
    Add(manage::Add),
    /// Search the MCP registry for servers
    #[command(after_help = "Example:\n  mcp-sidecar search weather")]
    Search(search::Arguments),
    /// Remove a server from a config file
    Remove(manage::Target),
    /// Move a server to another config file, without changing its entry
    #[command(after_help = "Example:\n  mcp-sidecar move files --to user")]
    Move(manage::Move),
    /// Enable a server
    Enable(manage::Target),
    /// Disable a server
    Disable(manage::Target),
    /// Set how long a call to a server may take without progress
    #[command(after_help = "Example:\n  mcp-sidecar timeout files 60")]
    Timeout(manage::Timeout),
    /// Show or set the permission level of a tool
    #[command(after_help = "Examples:
  mcp-sidecar level files/write_file
  mcp-sidecar level files/write_file require-approval")]
    Level(level::Arguments),
    /// Sign in to a server that requires authentication
    Auth(auth::Arguments),
    /// List past tool calls, newest first
    Calls(calls::Arguments),
    /// Show how long tool calls took, how many failed, and what tools cost in tokens
    Metrics(metrics::Arguments),
    /// Show which agents are connected and what they are doing, and pause or disconnect them
    #[command(after_help = "Examples:
  mcp-sidecar agents --watch
  mcp-sidecar agents pause claude-code")]
    Agents(agents::Arguments),
    /// Limit running agents to a set of tools from config.toml
    #[command(after_help = "Examples:
  mcp-sidecar set review
  mcp-sidecar set --none --agent claude-code")]
    Set(agents::Set),
    /// List the questions that are waiting for your answer
    ///
    /// Editors and agents of the same workspace ask them. You can answer each one anywhere; the first answer counts.
    Approvals(approvals::Arguments),
    /// Allow a call, trust a server or fill in a form that is waiting for your answer
    #[command(after_help = "Examples:
  mcp-sidecar approve 3f2a
  mcp-sidecar approve 3f2a --for session")]
    Approve(answer::Approve),
    /// Deny a call, or refuse another question that is waiting for your answer
    #[command(after_help = "Example:\n  mcp-sidecar deny 3f2a --note 'use the test database'")]
    Deny(answer::Deny),
    /// List or revoke the permissions that you gave to tools
    Grants(grants::Arguments),
    /// Trust the servers of a project, after showing what they run
    Trust(trust::Arguments),
    /// Manage the values that mcp.json refers to as ${input:ID}
    Input(input::Arguments),
    /// Manage the secrets that mcp.json refers to as ${keyring:NAME}
    Secret(secret::Arguments),
    /// Check programs, config files, variables, the keyring and the database
    ///
    /// Exits with code 1 if a check fails.
    Doctor(doctor::Arguments),
    /// Serve all tools of the workspace to an agent, as one MCP server on stdin and stdout
    ///
    /// Agents share the servers with the editors of the same workspace. You still decide what a tool may do: approval
    /// requests appear in your editor.
    Connect(connect::Arguments),
    /// Answer the hook of an agent about one of its built-in tools, such as its shell
    ///
    /// Agents run this: `setup AGENT --hooks` configures it. Reads the question as JSON on stdin, applies the rules under
    /// `agentTools` in mcp.json or asks you in your editor, and prints the answer in the format of the agent.
    Hook(hook::Arguments),
    /// Check config files for errors
    ///
    /// Exits with code 1 if there are errors, which makes it suitable for CI. Warnings do not affect the exit code.
    Check(check::Arguments),
    /// List ready-made definitions of popular servers
    Templates(templates::Arguments),
    /// Print the JSON Schema of mcp.json
    Schema(schema::Arguments),
    /// Show the current settings and the paths of all files
    Config(config::Arguments),
    /// Show the end of the newest log file
    Log(log::Arguments),
    /// Import servers from the config of another program
    #[command(after_help = "Example:\n  mcp-sidecar import cursor --dry-run")]
    Import(import::Arguments),
    /// Export servers in the config format of another program
    Export(export::Arguments),
    /// Configure an agent to use mcp-sidecar
    ///
    /// Adds an entry that starts `mcp-sidecar connect` to the agent's config file, and keeps a backup of that file.
    Setup(setup::Arguments),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  mcp-sidecar completions fish > ~/.config/fish/completions/mcp-sidecar.fish")]
    Completions(completions::Arguments),
    /// Write the man pages to a folder, for packages
    #[command(hide = true)]
    Man(man::Arguments),
    /// Run the engine that the editors and agents of a workspace share; they start it themselves
    #[command(hide = true)]
    Engine,
    /// Run one scenario of the official conformance suite, which starts this command
    #[command(hide = true)]
    Conformance(conformance::Arguments),
    /// Run a demo in this terminal, on a temporary copy of an example workspace
    Demo,
    /// Run the built-in demo MCP server on stdin and stdout
    DemoServer,
}

/// The result of a subcommand, for the exit code.
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

/// Wrong usage that clap cannot detect.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct UsageError(String);

fn usage(message: String) -> anyhow::Error {
    UsageError(message).into()
}

/// Runs the program.
pub fn main() -> ExitCode {
    os::limit_heaps();
    os::survive_full_files();
    logging::log_panics();
    // Not a clap subcommand: users never run it, and the guardian should use little memory.
    if let Some(code) = run_guardian(&mut std::env::args_os().skip(1)) {
        return code;
    }
    process::reserve_descriptors();
    // Ends the process if a shell asks for completions.
    CompleteEnv::with_factory(Arguments::command).var(completions::VARIABLE).complete();
    match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        Err(error) => {
            // Also reached by --help and --version. A closed stdout is not an error.
            error.print().ok();
            let arguments: Vec<String> =
                std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
            if let Some(hint) = manage::add_hint(&error, &arguments) {
                writeln!(io::stderr(), "\nhint: {hint}").ok();
            }
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
    }
}

fn run_guardian(arguments: &mut dyn Iterator<Item = OsString>) -> Option<ExitCode> {
    match arguments.next()?.to_str()? {
        guardian::SUBCOMMAND => Some(guardian::run_guardian(&arguments.next()?.into_string().ok()?)),
        sandbox::SUBCOMMAND => {
            writeln!(io::stderr(), "cannot start the sandbox: {}", sandbox::run(arguments.collect())).ok();
            Some(ExitCode::FAILURE)
        }
        _ => None,
    }
}

fn run(arguments: Arguments) -> ExitCode {
    let Arguments { workspace, editor, command } = arguments;
    let context = Context { workspace };
    let result = match command {
        Some(command) => command.with_standalone(editor.standalone).run(&context),
        None if io::stdin().is_terminal() => help(),
        None => lsp::run(editor, &context),
    };
    match result {
        Ok(Status::Ok) => ExitCode::SUCCESS,
        Ok(Status::Failed) => ExitCode::FAILURE,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            writeln!(io::stderr(), "error: {}", mask(&format!("{error:#}"))).ok();
            if wants_json() {
                print_json(&failure::report(&error)).ok();
            }
            if error.is::<UsageError>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Whether the output is for a program. Then an error is, too.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|argument| argument != "--").any(|argument| argument == "--json")
}

impl Command {
    /// `--standalone` means the same before and after the subcommand.
    fn with_standalone(mut self, standalone: bool) -> Self {
        match &mut self {
            Self::Lsp(arguments) => arguments.standalone |= standalone,
            Self::Connect(arguments) => arguments.standalone |= standalone,
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
            Self::Start(arguments) => lifecycle::run(Verb::Start, arguments, context),
            Self::Stop(arguments) => lifecycle::run(Verb::Stop, arguments, context),
            Self::Restart(arguments) => lifecycle::run(Verb::Restart, arguments, context),
            Self::Refresh(arguments) => lifecycle::run(Verb::Refresh, arguments, context),
            Self::Logs(arguments) => logs::run(arguments, context),
            Self::Read(arguments) => read::read(arguments, context),
            Self::Prompt(arguments) => read::prompt(arguments, context),
            Self::Call(arguments) => call::run(arguments, context),
            Self::Init(arguments) => init::run(arguments, context),
            Self::Add(arguments) => manage::add(arguments, context),
            Self::Search(arguments) => search::run(arguments, context),
            Self::Remove(arguments) => manage::remove(arguments, context),
            Self::Move(arguments) => manage::relocate(arguments, context),
            Self::Level(arguments) => level::run(arguments, context),
            Self::Auth(arguments) => auth::run(arguments, context),
            Self::Enable(arguments) => manage::switch(arguments, manage::Switch::On, context),
            Self::Disable(arguments) => manage::switch(arguments, manage::Switch::Off, context),
            Self::Timeout(arguments) => manage::timeout(arguments, context),
            Self::Calls(arguments) => calls::run(arguments, context),
            Self::Metrics(arguments) => metrics::run(arguments, context),
            Self::Agents(arguments) => agents::run(arguments, context),
            Self::Set(arguments) => agents::set(arguments, context),
            Self::Approvals(arguments) => approvals::run(arguments, context),
            Self::Approve(arguments) => answer::approve(arguments, context),
            Self::Deny(arguments) => answer::deny(arguments, context),
            Self::Grants(arguments) => grants::run(arguments, context),
            Self::Trust(arguments) => trust::run(arguments, context),
            Self::Input(arguments) => input::run(arguments, context),
            Self::Secret(arguments) => secret::run(arguments, context),
            Self::Doctor(arguments) => doctor::run(arguments, context),
            Self::Connect(arguments) => connect::run(arguments, context),
            Self::Hook(arguments) => hook::run(arguments, context),
            Self::Check(arguments) => check::run(arguments, context),
            Self::Templates(arguments) => templates::run(arguments),
            Self::Schema(arguments) => schema::run(arguments),
            Self::Config(arguments) => config::run(arguments, context),
            Self::Log(arguments) => log::run(arguments, context),
            Self::Import(arguments) => import::run(arguments, context),
            Self::Export(arguments) => export::run(arguments, context),
            Self::Setup(arguments) => setup::run(arguments, context),
            Self::Completions(arguments) => completions::run(arguments),
            Self::Man(arguments) => man::run(arguments),
            Self::Engine => engine::run(context),
            Self::Conformance(arguments) => conformance::run(arguments, context),
            Self::Demo => {
                let runtime = context.runtime()?;
                let result = runtime.block_on(demo::run());
                // A blocking read of the terminal may still be running in its thread.
                runtime.shutdown_background();
                result?;
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

/// Writes to stdout. Unlike `print!`, it returns an error instead of panicking if stdout is closed.
fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints the answer of a command as JSON. In a terminal, characters that it obeys or that are invisible are escaped, which
/// does not change the value.
fn print_json(answer: &impl serde::Serialize) -> anyhow::Result<Status> {
    let text = format!("{:#}\n", serde_json::to_value(answer)?);
    print(&if io::stdout().is_terminal() { escape_json(&text) } else { text })?;
    Ok(Status::Ok)
}

/// Formats a timestamp for a table.
fn format_time(time: Timestamp) -> String {
    let time = time.to_string();
    let (date, rest) = time.split_once('T').unwrap_or((&time, ""));
    let seconds = rest.split(['.', 'Z']).next().unwrap_or_default();
    format!("{date} {seconds}Z")
}

/// `mcp-sidecar … | head` closes stdout early, which is not a failure.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standalone_means_the_same_before_and_after_the_subcommand() {
        for arguments in
            [["--standalone", "lsp"], ["lsp", "--standalone"], ["--standalone", "connect"], ["connect", "--standalone"]]
        {
            let parsed = Arguments::try_parse_from(["mcp-sidecar"].iter().chain(&arguments)).unwrap();
            let standalone = match parsed.command.map(|command| command.with_standalone(parsed.editor.standalone)) {
                Some(Command::Lsp(arguments)) => arguments.standalone,
                Some(Command::Connect(arguments)) => arguments.standalone,
                other => panic!("{other:?}"),
            };
            assert!(standalone, "{arguments:?}");
        }
    }
}
