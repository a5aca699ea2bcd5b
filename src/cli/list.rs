//! `mcp-sidecar list`: all servers and their status.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::context::{Context, parse_number};
use super::engine_client::{self, Autostart, EngineClient};
use super::server::{is_starting, note, relative, state};
use super::style::{Color, Size, Style, size};
use super::table::{Cell, Table};
use super::{Status, print, print_json, terminal};
use crate::protocol::answers::ServerList;
use crate::protocol::commands::{Config, Servers};
use crate::protocol::types::{self, ConfigFile, ServerStatus};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Wait this long for servers that are starting
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = parse_number::<u64>)]
    wait: u64,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::All, async |engine| {
        let mut screen = Screen::new(if arguments.json { None } else { size() });
        let answer = watch(engine, &mut screen, Duration::from_secs(arguments.wait)).await?;
        if arguments.json {
            return print_json(&answer);
        }
        let servers = &answer.servers;
        let files = engine.call(Config {}).await?.files;
        if servers.is_empty() {
            print(&no_servers(&files, &engine.folder))?;
        } else {
            let width = size().map(|size| size.columns);
            let style = Style::of_stdout();
            print(&(table(servers, "●").text(style, width) + &hints(servers, style)))?;
        }
        terminal::eprint(&invalid_files(&files, &engine.folder))?;
        for problem in &answer.problems {
            terminal::eprint(&format!("mcp-sidecar: {problem}\n"))?;
        }
        Ok(Status::Ok)
    })
}

/// Waits until no server is starting, and shows the table while it waits.
async fn watch(engine: &EngineClient, screen: &mut Screen, wait: Duration) -> anyhow::Result<ServerList> {
    let mut changes = engine.changes();
    let started = Instant::now();
    loop {
        let answer = engine.call(Servers::default()).await?;
        if started.elapsed() >= wait || !answer.servers.iter().any(is_starting) {
            screen.clear()?;
            return Ok(answer);
        }
        let frame = (started.elapsed().as_millis() / TICK.as_millis()) as usize % SPINNER.len();
        let servers = &answer.servers;
        screen.draw(|style, width| table(servers, SPINNER.get(frame).unwrap_or(&"●")).lines(style, Some(width)))?;
        let pause = if screen.is_active() { TICK } else { wait.saturating_sub(started.elapsed()) };
        tokio::time::timeout(pause, changes.next()).await.ok();
    }
}

/// The table of servers. Servers that are starting show `busy` instead of a dot.
fn table(servers: &[ServerStatus], busy: &str) -> Table {
    let mut table = Table::new(&["  SERVER", "TRANSPORT", "SCOPE", "TOOLS", "STATUS"]);
    for server in servers {
        let dot = if is_starting(server) { busy } else { "●" };
        let tools = match server.tool_count {
            0 if server.status != types::Status::Connected => String::new(),
            count => count.to_string(),
        };
        let color = Color::of_status(server.status);
        let mut status = Cell::new(color, state(server));
        if let Some(note) = note(server) {
            status = status.and(Color::Dim, format!("  {note}"));
        }
        table.row(vec![
            Cell::new(color, format!("{dot} ")).and(Color::Plain, server.name.as_str()),
            Cell::plain(server.transport.to_string()),
            Cell::plain(server.scope.to_string()),
            Cell::plain(tools).right(),
            status,
        ]);
    }
    table
}

/// What the user can do about servers that need attention.
fn hints(servers: &[ServerStatus], style: Style) -> String {
    let named = |wanted: &dyn Fn(&ServerStatus) -> bool| -> Vec<&str> {
        servers.iter().filter(|server| wanted(server)).map(|server| server.name.as_str()).collect()
    };
    let mut hints = Vec::new();
    // A server that the user refused to trust does not wait for an answer; its own line says so.
    match named(&|server| server.needs_trust && server.status == types::Status::Pending && server.error.is_none())
        .as_slice()
    {
        [] => {}
        [only] => hints.push(format!("run `mcp-sidecar trust {only}` to review and trust `{only}`")),
        several => hints.push(format!(
            "{} servers are not trusted yet; run `mcp-sidecar trust --all` to review and trust them",
            several.len()
        )),
    }
    if let Some(failed) = named(&|server| server.status == types::Status::Failed).first() {
        hints.push(format!("run `mcp-sidecar inspect {failed}` for details about the failure"));
    }
    if let Some(server) = named(&|server| server.status == types::Status::NeedsAuth).first() {
        hints.push(format!("run `mcp-sidecar auth {server}` to sign in to `{server}`"));
    }
    let lines: String = hints.iter().map(|hint| style.paint(Color::Dim, hint) + "\n").collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn no_servers(files: &[ConfigFile], folder: &Path) -> String {
    let paths: String = files.iter().map(|file| format!("  {}\n", relative(&file.path, folder))).collect();
    format!("no servers; define one in any of these files:\n{paths}")
}

/// Warnings about files that cannot be loaded: without them, servers would be missing for no visible reason.
fn invalid_files(files: &[ConfigFile], folder: &Path) -> String {
    let paths = files.iter().filter(|file| file.exists && !file.valid).map(|file| relative(&file.path, folder));
    paths.map(|path| format!("warning: cannot load {path}; run `mcp-sidecar check` to see why\n")).collect()
}

/// Lines that are redrawn in the same position; nothing if stdout is not a terminal.
pub(super) struct Screen {
    size: Option<Size>,
    drawn: usize,
}

impl Screen {
    pub fn new(size: Option<Size>) -> Self {
        Self { size, drawn: 0 }
    }

    pub fn is_active(&self) -> bool {
        self.size.is_some()
    }

    pub fn draw(&mut self, lines: impl FnOnce(Style, usize) -> Vec<String>) -> std::io::Result<()> {
        let Some(size) = self.size else { return Ok(()) };
        let mut lines = lines(Style::of_stdout(), size.columns);
        // Lines that have scrolled out of the window cannot be redrawn.
        lines.truncate(size.rows.saturating_sub(1));
        self.clear()?;
        print(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        self.drawn = lines.len();
        Ok(())
    }

    fn clear(&mut self) -> std::io::Result<()> {
        if self.drawn > 0 {
            write!(std::io::stdout(), "\u{1b}[{}A\r\u{1b}[J", self.drawn)?;
            self.drawn = 0;
        }
        Ok(())
    }
}
