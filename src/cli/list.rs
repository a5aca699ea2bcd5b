//! `mcp-sidecar list`: every server and how it is doing.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::context::Context;
use super::live::{self, Live, Wake};
use super::look::{Look, Size, Tone, size};
use super::server::{self, Server, near};
use super::table::{Cell, Table};
use super::{Status, print, terminal};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// How long to wait for servers that are starting
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    wait: u64,
    /// For programs: what `mcp.servers` answers
    #[arg(long)]
    json: bool,
}

/// How often a line that waits shows that time goes by.
const TICK: Duration = Duration::from_millis(120);
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::All, async |live| {
        let mut screen = Screen::new(if arguments.json { None } else { size() });
        let answer = watch(live, &mut screen, Duration::from_secs(arguments.wait)).await?;
        if arguments.json {
            print(&format!("{answer:#}\n"))?;
            return Ok(Status::Ok);
        }
        let servers = server::read(&answer)?;
        let files = live.run("mcp.config", json!({})).await?;
        if servers.is_empty() {
            print(&none(&files, &live.folder))?;
        } else {
            let width = size().map(|size| size.columns);
            let look = Look::of_stdout();
            print(&(table(&servers, "●").text(look, width) + &hints(&servers, look)))?;
        }
        terminal::say(&complaints(&files, &live.folder))?;
        Ok(Status::Ok)
    })
}

/// Waits until all servers have settled, with the table on the screen meanwhile.
async fn watch(live: &Live, screen: &mut Screen, wait: Duration) -> anyhow::Result<Value> {
    let mut changes = live.changes();
    let begun = Instant::now();
    loop {
        let answer = live.run("mcp.servers", json!({})).await?;
        let servers = server::read(&answer)?;
        if begun.elapsed() >= wait || !servers.iter().any(Server::is_starting) {
            screen.clear()?;
            return Ok(answer);
        }
        let frame = (begun.elapsed().as_millis() / TICK.as_millis()) as usize % SPINNER.len();
        screen.draw(|look, width| table(&servers, SPINNER.get(frame).unwrap_or(&"●")).lines(look, Some(width)))?;
        let pause = if screen.is_on() { TICK } else { wait.saturating_sub(begun.elapsed()) };
        tokio::time::timeout(pause, changes.next()).await.ok();
    }
}

/// The table; servers that are starting have the busy sign in place of the dot.
fn table(servers: &[Server], busy: &str) -> Table {
    let mut table = Table::new(&["  SERVER", "TRANSPORT", "SCOPE", "TOOLS", "STATUS"]);
    for server in servers {
        let dot = if server.is_starting() { busy } else { "●" };
        let tools = match server.tool_count {
            0 if server.status != "connected" => String::new(),
            count => count.to_string(),
        };
        let mut status = Cell::new(server.tone(), &server.status);
        if let Some(reason) = &server.reason {
            status = status.and(server.tone(), format!(" {reason}"));
        }
        if let Some(note) = server.note() {
            status = status.and(Tone::Dim, format!("  {note}"));
        }
        table.row(vec![
            Cell::new(server.tone(), format!("{dot} ")).and(Tone::Plain, &server.name),
            Cell::plain(&server.transport),
            Cell::plain(&server.scope),
            Cell::plain(tools).right(),
            status,
        ]);
    }
    table
}

/// What to do next about servers that need somebody.
fn hints(servers: &[Server], look: Look) -> String {
    let named = |wanted: &dyn Fn(&Server) -> bool| -> Vec<&str> {
        servers.iter().filter(|server| wanted(server)).map(|server| server.name.as_str()).collect()
    };
    let mut hints = Vec::new();
    // One that was refused waits for nothing; its own line says so.
    match named(&|server| server.needs_trust && server.status == "pending" && server.error.is_none()).as_slice() {
        [] => {}
        [only] => hints.push(format!("`mcp-sidecar trust {only}` shows what {only} would run, and asks you")),
        several => hints.push(format!(
            "{} servers wait for your trust; `mcp-sidecar trust --all` shows each and asks you",
            several.len()
        )),
    }
    if let Some(failed) = named(&|server| server.status == "failed").first() {
        hints.push(format!("`mcp-sidecar inspect {failed}` tells more about the failure"));
    }
    if let Some(locked) = named(&|server| server.status == "needs-auth").first() {
        hints.push(format!("{locked} wants you to sign in; its lens in the editor does that"));
    }
    let lines: String = hints.iter().map(|hint| look.tone(Tone::Dim, hint) + "\n").collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn none(files: &Value, folder: &Path) -> String {
    let files = files.get("files").and_then(Value::as_array).into_iter().flatten();
    let paths = files.filter_map(|file| file.get("path").and_then(Value::as_str));
    let places: String = paths.map(|path| format!("  {}\n", near(path, folder))).collect();
    format!("no servers yet; they are defined in any of these files:\n{places}")
}

/// Files that could not be read: without a word about them, their servers would just be missing.
fn complaints(files: &Value, folder: &Path) -> String {
    let files = files.get("files").and_then(Value::as_array).into_iter().flatten();
    let broken =
        files.filter(|file| file.get("exists") == Some(&json!(true)) && file.get("valid") != Some(&json!(true)));
    let paths = broken.filter_map(|file| file.get("path").and_then(Value::as_str));
    paths
        .map(|path| format!("warning: {} cannot be read; `mcp-sidecar check` shows why\n", near(path, folder)))
        .collect()
}

/// Lines that are drawn again and again in the same place; nothing without a terminal.
struct Screen {
    size: Option<Size>,
    drawn: usize,
}

impl Screen {
    fn new(size: Option<Size>) -> Self {
        Self { size, drawn: 0 }
    }

    fn is_on(&self) -> bool {
        self.size.is_some()
    }

    fn draw(&mut self, lines: impl FnOnce(Look, usize) -> Vec<String>) -> std::io::Result<()> {
        let Some(size) = self.size else { return Ok(()) };
        let mut lines = lines(Look::of_stdout(), size.columns);
        // What scrolls out of sight cannot be drawn over.
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
