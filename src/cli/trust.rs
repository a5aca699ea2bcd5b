//! `mcp-sidecar trust`: lets the user trust the servers that a project defines.

use std::time::Duration;

use serde_json::json;

use super::context::Context;
use super::engine_client::{self, Autostart, EngineClient, Question, Questions};
use super::server::{Server, relative};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::terminal::{self, Echo};
use super::{Status, print, usage};
use crate::text::{mask, visible};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["server", "all", "list"]))]
pub(super) struct Arguments {
    /// Server to trust
    server: Option<String>,
    /// Trust all servers that are not trusted yet; with --revoke, all servers of this project
    #[arg(long)]
    all: bool,
    /// List which servers are trusted
    #[arg(long)]
    list: bool,
    /// Stop trusting the server: it does not start until you trust it again
    #[arg(long, conflicts_with = "list")]
    revoke: bool,
    /// Trust without asking
    #[arg(long, short, conflicts_with = "list")]
    yes: bool,
    /// With --list, print JSON instead of text
    #[arg(long, requires = "list")]
    json: bool,
}

/// How long the engine may take to ask a question or to act on the answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        if arguments.list {
            return list(engine, arguments.json).await;
        }
        let mut servers = engine.servers(arguments.server.as_deref()).await?;
        if arguments.all {
            servers.retain(|server| is_of_project(server) && (arguments.revoke || server.needs_trust));
        }
        if servers.is_empty() {
            terminal::eprint("no server needs to be trusted\n")?;
        }
        let mut status = Status::Ok;
        for server in &servers {
            let done = match (arguments.revoke, arguments.yes) {
                (true, _) => set(engine, server, false).await?,
                (false, _) if !server.needs_trust => already(server)?,
                (false, true) => {
                    terminal::eprint(&definition(engine, server).await.text)?;
                    set(engine, server, true).await?
                }
                (false, false) if terminal::is_interactive() => ask(engine, &server.name).await?,
                (false, false) => {
                    terminal::eprint(&definition(engine, server).await.text)?;
                    let message = "cannot ask without a terminal; pass --yes to trust the server";
                    return Err(usage(message.to_owned()));
                }
            };
            if !done {
                status = Status::Failed;
            }
        }
        Ok(status)
    })
}

/// Shows a definition and asks. Returns whether the server is trusted now.
pub(super) async fn ask(engine: &EngineClient, name: &str) -> anyhow::Result<bool> {
    let servers = engine.servers(Some(name)).await?;
    let Some(server) = servers.first() else { return Ok(false) };
    let shown = definition(engine, server).await;
    // Only an answer to a question of the engine can be limited to this session.
    let keys = if shown.question.is_some() { "[y] yes  [s] for this session  [n] no" } else { "[y] yes  [n] no" };
    let prompt = format!("{} ", Style::of_stderr().paint(Color::Heading, &format!("Trust it? {keys}:")));
    terminal::eprint(&shown.text)?;
    let typed = terminal::ask(&prompt, Echo::On).await?.unwrap_or_default();
    let decision = match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => "allow-project",
        "s" if shown.question.is_some() => "allow-session",
        _ => return Ok(false),
    };
    match shown.question {
        // The answer applies to the definition that was shown, even if the file has changed meanwhile.
        Some(question) => {
            engine.run("mcp.approval.resolve", json!({ "id": question.id, "decision": decision })).await?;
        }
        None => {
            engine.run("mcp.server.trust", json!({ "server": name, "trusted": true })).await?;
        }
    }
    until_trusted(engine, name).await
}

async fn until_trusted(engine: &EngineClient, name: &str) -> anyhow::Result<bool> {
    let mut changes = engine.changes();
    let trusted = async {
        while engine.servers(Some(name)).await?.iter().any(|server| server.needs_trust) {
            changes.next().await;
        }
        Ok(true)
    };
    tokio::time::timeout(PATIENCE, trusted).await.unwrap_or(Ok(false))
}

async fn set(engine: &EngineClient, server: &Server, trusted: bool) -> anyhow::Result<bool> {
    if !is_of_project(server) {
        return already(server);
    }
    engine.run("mcp.server.trust", json!({ "server": server.name, "trusted": trusted })).await?;
    let state = if trusted { "is trusted" } else { "is no longer trusted" };
    terminal::eprint(&format!("`{}` {state}\n", server.name))?;
    Ok(true)
}

fn already(server: &Server) -> anyhow::Result<bool> {
    let why = match is_of_project(server) {
        true => "is already trusted",
        false => "does not need to be trusted: it is in your own config",
    };
    terminal::eprint(&format!("`{}` {why}\n", server.name))?;
    Ok(true)
}

/// A definition that the user has to review.
struct Definition {
    text: String,
    /// The question of the engine. It does not ask again about a definition that the user refused.
    question: Option<Question>,
}

async fn definition(engine: &EngineClient, server: &Server) -> Definition {
    let style = Style::of_stderr();
    let mut questions = engine.questions();
    let about = |list: &Questions| list.iter().find(|each| each.kind == "trust" && each.server == server.name).cloned();
    let refused = server.error.is_some();
    let question = match refused {
        true => None,
        false => {
            let asked = questions.wait_for(|list| about(list).is_some());
            tokio::time::timeout(PATIENCE, asked).await.ok().and_then(Result::ok).and_then(|list| about(&list))
        }
    };
    let (title, detail, diff) = match &question {
        Some(question) => (question.title.clone(), question.detail.clone(), question.diff.clone()),
        None => {
            let from = server.location(&engine.folder).unwrap_or_default();
            let title = format!("You refused to trust `{}` before. Trust it now?", server.name);
            (title, format!("from      {from}\n{:<9} {}\n{:#}", server.transport, server.launch(), server.config), None)
        }
    };
    let mut text = format!("\n{}\n", style.paint(Color::Heading, &visible(&title, 400)));
    for line in visible(&mask(&detail), usize::MAX).lines() {
        text.push_str(&format!("  {line}\n"));
    }
    for line in diff.iter().flat_map(|diff| diff.lines()) {
        text.push_str(&format!("  {}\n", style.paint(Color::Waiting, &visible(&mask(line), usize::MAX))));
    }
    Definition { text, question }
}

/// Whether the server needs trust at all. Servers in the user's own config do not.
fn is_of_project(server: &Server) -> bool {
    server.needs_trust || matches!(server.scope.as_str(), "project" | "local")
}

async fn list(engine: &EngineClient, as_json: bool) -> anyhow::Result<Status> {
    let servers: Vec<Server> = engine.servers(None).await?.into_iter().filter(is_of_project).collect();
    let state = |server: &Server| match (server.needs_trust, &server.trust_diff, &server.error) {
        (false, ..) => "trusted",
        (true, Some(_), _) => "changed",
        (true, None, Some(_)) => "refused",
        (true, None, None) => "waiting",
    };
    if as_json {
        let rows: Vec<_> = servers
            .iter()
            .map(|server| json!({ "server": server.name, "trust": state(server), "file": server.file }))
            .collect();
        print(&format!("{:#}\n", json!({ "servers": rows })))?;
        return Ok(Status::Ok);
    }
    if servers.is_empty() {
        print("no server needs to be trusted: this project defines none\n")?;
        return Ok(Status::Ok);
    }
    let mut table = Table::new(&["SERVER", "TRUST", "FROM", "RUNS"]);
    for server in &servers {
        let color = match state(server) {
            "trusted" => Color::Good,
            "refused" => Color::Bad,
            _ => Color::Waiting,
        };
        table.row(vec![
            Cell::plain(&server.name),
            Cell::new(color, state(server)),
            Cell::plain(server.file.as_deref().map(|file| relative(file, &engine.folder)).unwrap_or_default()),
            Cell::new(Color::Dim, server.launch()),
        ]);
    }
    print(&table.text(Style::of_stdout(), size().map(|size| size.columns)))?;
    Ok(Status::Ok)
}
