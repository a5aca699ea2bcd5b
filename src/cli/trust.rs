//! `mcp-sidecar trust`: the user's word on definitions that came with a project.

use std::time::Duration;

use serde_json::json;

use super::context::Context;
use super::live::{self, Live, News, Question, Wake};
use super::look::{Look, Tone, size};
use super::server::{Server, near};
use super::table::{Cell, Table};
use super::terminal::{self, Echo};
use super::{Status, print, usage};
use crate::text::{mask, visible};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["server", "all", "list"]))]
pub(super) struct Arguments {
    /// The server to trust
    server: Option<String>,
    /// Every server that waits for it; with --revoke, every server of this project
    #[arg(long)]
    all: bool,
    /// Only show which servers are trusted
    #[arg(long)]
    list: bool,
    /// Take the trust back; the server is not started again before it is given anew
    #[arg(long, conflicts_with = "list")]
    revoke: bool,
    /// Do not ask: I have seen what it runs
    #[arg(long, short, conflicts_with = "list")]
    yes: bool,
    /// For programs
    #[arg(long, requires = "list")]
    json: bool,
}

/// How long the engine may take to put a question, or to act on its answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        if arguments.list {
            return list(live, arguments.json).await;
        }
        let mut servers = live.servers(arguments.server.as_deref()).await?;
        if arguments.all {
            servers.retain(|server| is_of_project(server) && (arguments.revoke || server.needs_trust));
        }
        if servers.is_empty() {
            terminal::say("nothing waits for trust here\n")?;
        }
        let mut status = Status::Ok;
        for server in &servers {
            let done = match (arguments.revoke, arguments.yes) {
                (true, _) => set(live, server, false).await?,
                (false, _) if !server.needs_trust => already(server)?,
                (false, true) => {
                    terminal::say(&definition(live, server).await.text)?;
                    set(live, server, true).await?
                }
                (false, false) if terminal::is_attended() => ask(live, &server.name).await?,
                (false, false) => {
                    terminal::say(&definition(live, server).await.text)?;
                    return Err(usage(
                        "nobody is there to be asked; pass --yes once you have seen what it runs".to_owned(),
                    ));
                }
            };
            if !done {
                status = Status::Failed;
            }
        }
        Ok(status)
    })
}

/// Shows a definition and asks; true when it is trusted now.
pub(super) async fn ask(live: &Live, name: &str) -> anyhow::Result<bool> {
    let servers = live.servers(Some(name)).await?;
    let Some(server) = servers.first() else { return Ok(false) };
    let shown = definition(live, server).await;
    // Only an answer to the engine's own question can be for this session alone.
    let keys = if shown.question.is_some() { "[y] yes  [s] for this session  [n] no" } else { "[y] yes  [n] no" };
    let prompt = format!("{} ", Look::of_stderr().tone(Tone::Heading, &format!("Trust it? {keys}:")));
    terminal::say(&shown.text)?;
    let typed = terminal::ask(&prompt, Echo::On).await?.unwrap_or_default();
    let decision = match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => "allow-project",
        "s" if shown.question.is_some() => "allow-session",
        _ => return Ok(false),
    };
    match shown.question {
        // The answer is for exactly what was shown, even if the file has changed meanwhile.
        Some(question) => {
            live.run("mcp.approval.resolve", json!({ "id": question.id, "decision": decision })).await?;
        }
        None => {
            live.run("mcp.server.trust", json!({ "server": name, "trusted": true })).await?;
        }
    }
    until_trusted(live, name).await
}

async fn until_trusted(live: &Live, name: &str) -> anyhow::Result<bool> {
    let mut changes = live.changes();
    let trusted = async {
        while live.servers(Some(name)).await?.iter().any(|server| server.needs_trust) {
            changes.next().await;
        }
        Ok(true)
    };
    tokio::time::timeout(PATIENCE, trusted).await.unwrap_or(Ok(false))
}

async fn set(live: &Live, server: &Server, trusted: bool) -> anyhow::Result<bool> {
    if !is_of_project(server) {
        return already(server);
    }
    live.run("mcp.server.trust", json!({ "server": server.name, "trusted": trusted })).await?;
    let word = if trusted { "is trusted" } else { "is no longer trusted" };
    terminal::say(&format!("{} {word}\n", server.name))?;
    Ok(true)
}

fn already(server: &Server) -> anyhow::Result<bool> {
    let why = if is_of_project(server) { "is trusted already" } else { "needs no trust: it is in your own config" };
    terminal::say(&format!("{} {why}\n", server.name))?;
    Ok(true)
}

/// A definition before it is trusted.
struct Shown {
    text: String,
    /// The engine's own question about it. A definition that was refused before is not asked about again.
    question: Option<Question>,
}

async fn definition(live: &Live, server: &Server) -> Shown {
    let look = Look::of_stderr();
    let mut questions = live.questions();
    let about = |list: &News| list.iter().find(|each| each.kind == "trust" && each.server == server.name).cloned();
    let refused = server.error.is_some();
    let question = match refused {
        true => None,
        false => {
            let put = questions.wait_for(|list| about(list).is_some());
            tokio::time::timeout(PATIENCE, put).await.ok().and_then(Result::ok).and_then(|list| about(&list))
        }
    };
    let (title, detail, diff) = match &question {
        Some(question) => (question.title.clone(), question.detail.clone(), question.diff.clone()),
        None => {
            let from = server.place(&live.folder).unwrap_or_default();
            let title = format!("You did not trust {} before. Trust it now?", server.name);
            (title, format!("from      {from}\n{:<9} {}\n{:#}", server.transport, server.launch(), server.config), None)
        }
    };
    let mut text = format!("\n{}\n", look.tone(Tone::Heading, &visible(&title, 400)));
    for line in visible(&mask(&detail), usize::MAX).lines() {
        text.push_str(&format!("  {line}\n"));
    }
    for line in diff.iter().flat_map(|diff| diff.lines()) {
        text.push_str(&format!("  {}\n", look.tone(Tone::Waiting, &visible(&mask(line), usize::MAX))));
    }
    Shown { text, question }
}

/// Whether trust means anything for it: what the user wrote himself needs none.
fn is_of_project(server: &Server) -> bool {
    server.needs_trust || matches!(server.scope.as_str(), "project" | "local")
}

async fn list(live: &Live, as_json: bool) -> anyhow::Result<Status> {
    let servers: Vec<Server> = live.servers(None).await?.into_iter().filter(is_of_project).collect();
    let word = |server: &Server| match (server.needs_trust, &server.trust_diff, &server.error) {
        (false, ..) => "trusted",
        (true, Some(_), _) => "changed",
        (true, None, Some(_)) => "refused",
        (true, None, None) => "waiting",
    };
    if as_json {
        let rows: Vec<_> = servers
            .iter()
            .map(|server| json!({ "server": server.name, "trust": word(server), "file": server.file }))
            .collect();
        print(&format!("{:#}\n", json!({ "servers": rows })))?;
        return Ok(Status::Ok);
    }
    if servers.is_empty() {
        print("no server here needs trust: none comes with a project\n")?;
        return Ok(Status::Ok);
    }
    let mut table = Table::new(&["SERVER", "TRUST", "FROM", "RUNS"]);
    for server in &servers {
        let tone = match word(server) {
            "trusted" => Tone::Good,
            "refused" => Tone::Bad,
            _ => Tone::Waiting,
        };
        table.row(vec![
            Cell::plain(&server.name),
            Cell::new(tone, word(server)),
            Cell::plain(server.file.as_deref().map(|file| near(file, &live.folder)).unwrap_or_default()),
            Cell::new(Tone::Dim, server.launch()),
        ]);
    }
    print(&table.text(Look::of_stdout(), size().map(|size| size.columns)))?;
    Ok(Status::Ok)
}
