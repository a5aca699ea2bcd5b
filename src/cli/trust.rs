//! `mcp-sidecar trust`: lets the user trust the servers that a project defines.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::context::Context;
use super::engine_client::{self, Autostart, EngineClient, Questions};
use super::server::{location, relative};
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::terminal;
use super::{Status, complete, print, print_json, question, usage};
use crate::model::ServerName;
use crate::protocol::commands::{ApprovalResolve, ServerTrust};
use crate::protocol::types::{Approval, ApprovalKind, ServerStatus, ShownScope};
use crate::text::{mask, visible};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["server", "all", "list"]))]
pub(super) struct Arguments {
    /// Server to trust
    #[arg(add = complete::servers())]
    server: Option<ServerName>,
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

impl Arguments {
    /// All servers that are not trusted yet.
    pub fn all(yes: bool) -> Self {
        Self { server: None, all: true, list: false, revoke: false, yes, json: false }
    }
}

/// How long the engine may take to ask a question or to act on the answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| match arguments.list {
        true => list(engine, arguments.json).await,
        false => decide(engine, arguments).await,
    })
}

/// Trusts servers, or stops trusting them, after asking if it has to.
pub(super) async fn decide(engine: &EngineClient, arguments: Arguments) -> anyhow::Result<Status> {
    // The engine asks only if the user can be asked.
    let _attached = engine.attach_terminal();
    let mut servers = engine.servers(arguments.server.as_ref()).await?;
    if arguments.all {
        servers.retain(|server| is_of_project(server) && (arguments.revoke || server.needs_trust));
    }
    if servers.is_empty() {
        terminal::eprint("no server needs to be trusted\n")?;
    }
    let mut status = Status::Ok;
    if !arguments.revoke && !arguments.yes && terminal::is_interactive() {
        while let Some(file) = servers.iter().find_map(|server| file_of_several(server, &servers)) {
            let together: Vec<_> = servers.extract_if(.., |server| is_untrusted_in(server, &file)).collect();
            if !ask_several(engine, &together).await? {
                status = Status::Failed;
            }
        }
    }
    for server in &servers {
        let done = match (arguments.revoke, arguments.yes) {
            (true, _) => set(engine, server, false).await?,
            (false, _) if !server.needs_trust => already(server)?,
            (false, true) => {
                terminal::eprint(&definition(engine, server).await.text)?;
                set(engine, server, true).await?
            }
            (false, false) if terminal::is_interactive() => {
                let is_trusted = ask(engine, &server.name).await?;
                if !is_trusted {
                    not_trusted(&server.name)?;
                }
                is_trusted
            }
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
}

/// Shows a definition and asks. Returns whether the server is trusted now.
pub(super) async fn ask(engine: &EngineClient, name: &ServerName) -> anyhow::Result<bool> {
    let _attached = engine.attach_terminal();
    let servers = engine.servers(Some(name)).await?;
    let Some(server) = servers.first() else { return Ok(false) };
    let shown = definition(engine, server).await;
    // Only an answer to a question of the engine can be limited to this session.
    let keys = if shown.question.is_some() { "[y] yes  [s] for this session  [n] no" } else { "[y] yes  [n] no" };
    let prompt = format!("{} ", Style::of_stderr().paint(Color::Heading, &format!("Trust it? {keys}:")));
    terminal::eprint(&shown.text)?;
    let typed = terminal::ask_decision(&prompt).await?.unwrap_or_default();
    let decision = match typed.trim().to_lowercase().as_str() {
        "y" | "yes" => "allow-project",
        "s" if shown.question.is_some() => "allow-session",
        _ => return Ok(false),
    };
    match shown.question {
        // The answer applies to the definition that was shown, even if the file has changed since.
        Some(question) => {
            question::resolve(engine, ApprovalResolve::one(&question.id, decision)).await?;
        }
        None => {
            engine.call(ServerTrust::trust(name.clone(), server.trust_digest.clone())).await?;
        }
    }
    until_trusted(engine, name).await
}

/// The same, if the server needs it and there is a user to ask.
pub(super) async fn ask_if_needed(engine: &EngineClient, name: &ServerName) -> anyhow::Result<()> {
    let needs_trust = engine.servers(Some(name)).await?.iter().any(|server| server.needs_trust);
    if needs_trust && terminal::is_interactive() {
        ask(engine, name).await?;
    }
    Ok(())
}

/// The file of this server, if other servers of it are not trusted either.
fn file_of_several(server: &ServerStatus, servers: &[ServerStatus]) -> Option<String> {
    let file = server.file.clone()?;
    let untrusted = servers.iter().filter(|other| is_untrusted_in(other, &file)).count();
    (untrusted > 1 && is_untrusted_in(server, &file)).then_some(file)
}

/// A definition in this file that the user has not refused: about that, the engine does not ask.
fn is_untrusted_in(server: &ServerStatus, file: &str) -> bool {
    server.needs_trust && server.error.is_none() && server.file.as_deref() == Some(file)
}

/// Shows the definitions of one file in its order and asks which to trust. Returns whether all are trusted now.
async fn ask_several(engine: &EngineClient, servers: &[ServerStatus]) -> anyhow::Result<bool> {
    let mut servers: Vec<&ServerStatus> = servers.iter().collect();
    servers.sort_by_key(|server| server.line);
    let mut asked = Vec::new();
    for server in servers {
        let Definition { text, question } = definition(engine, server).await;
        // It may have been answered elsewhere.
        let Some(question) = question else { continue };
        asked.push(question);
        terminal::eprint(&format!("\n[{}]{text}", asked.len()))?;
    }
    let keys = format!("[a] all {}  [s] all for this session  [n] none, or numbers such as 1 3", asked.len());
    let prompt = format!("{} ", Style::of_stderr().paint(Color::Heading, &format!("\nTrust which servers? {keys}:")));
    let typed = terminal::ask_decision(&prompt).await?.unwrap_or_default().trim().to_lowercase();
    let (chosen, decision) = match typed.as_str() {
        "a" | "all" => (asked.iter().collect(), "allow-project"),
        "s" => (asked.iter().collect(), "allow-session"),
        _ => (numbered(&typed, &asked), "allow-project"),
    };
    if !chosen.is_empty() {
        let ids = chosen.iter().map(|question| question.id.clone()).collect();
        question::resolve(engine, ApprovalResolve::several(ids, decision)).await?;
    }
    for question in &chosen {
        until_trusted(engine, &question.server).await?;
    }
    for question in asked.iter().filter(|asked| !chosen.iter().any(|chosen| chosen.id == asked.id)) {
        not_trusted(&question.server)?;
    }
    Ok(chosen.len() == asked.len())
}

/// The questions with these numbers. None if something else was typed, too.
fn numbered<'a>(typed: &str, asked: &'a [Approval]) -> Vec<&'a Approval> {
    let words = typed.split([' ', ',']).filter(|word| !word.is_empty());
    let number = |word: &str| word.parse::<usize>().ok().filter(|number| (1..=asked.len()).contains(number));
    let numbers = words.map(number).collect::<Option<BTreeSet<usize>>>().unwrap_or_default();
    (1..).zip(asked).filter(|(number, _)| numbers.contains(number)).map(|(_, question)| question).collect()
}

fn not_trusted(name: &ServerName) -> anyhow::Result<()> {
    Ok(terminal::eprint(&format!("`{name}` is not trusted, so it does not start\n"))?)
}

async fn until_trusted(engine: &EngineClient, name: &ServerName) -> anyhow::Result<bool> {
    let mut changes = engine.changes();
    let trusted = async {
        while engine.servers(Some(name)).await?.iter().any(|server| server.needs_trust) {
            changes.next().await;
        }
        Ok(true)
    };
    tokio::time::timeout(PATIENCE, trusted).await.unwrap_or(Ok(false))
}

async fn set(engine: &EngineClient, server: &ServerStatus, trusted: bool) -> anyhow::Result<bool> {
    if !is_of_project(server) {
        return already(server);
    }
    let request = match trusted {
        true => ServerTrust::trust(server.name.clone(), server.trust_digest.clone()),
        false => ServerTrust::distrust(server.name.clone()),
    };
    engine.call(request).await?;
    let state = if trusted { "is trusted" } else { "is no longer trusted" };
    terminal::eprint(&format!("`{}` {state}\n", server.name))?;
    Ok(true)
}

fn already(server: &ServerStatus) -> anyhow::Result<bool> {
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
    question: Option<Approval>,
}

async fn definition(engine: &EngineClient, server: &ServerStatus) -> Definition {
    let style = Style::of_stderr();
    let mut questions = engine.questions();
    let is_about = |each: &&Approval| each.kind == ApprovalKind::Trust && each.server == server.name;
    let about = |list: &Questions| list.approvals.iter().find(is_about).cloned();
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
            let from = location(server, &engine.folder).unwrap_or_default();
            let title = format!("You refused to trust `{}` before. Trust it now?", server.name);
            (title, format!("from      {from}\n{:<9} {}\n{:#}", server.transport, server.launch, server.config), None)
        }
    };
    let mut text = format!("\n{}\n", style.paint(Color::Heading, &visible(&title, 400)));
    for line in visible(&mask(&detail), usize::MAX).lines() {
        text.push_str(&format!("  {line}\n"));
    }
    for line in diff.iter().flat_map(|diff| diff.lines()) {
        text.push_str(&format!("  {}\n", style.paint(Color::Attention, &visible(&mask(line), usize::MAX))));
    }
    Definition { text, question }
}

/// Whether the server needs trust at all. Servers in the user's own config do not.
fn is_of_project(server: &ServerStatus) -> bool {
    server.needs_trust || matches!(server.scope, ShownScope::Project | ShownScope::Local)
}

async fn list(engine: &EngineClient, as_json: bool) -> anyhow::Result<Status> {
    let servers: Vec<ServerStatus> = engine.servers(None).await?.into_iter().filter(is_of_project).collect();
    let state = |server: &ServerStatus| match (server.needs_trust, &server.trust_diff, &server.error) {
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
        return print_json(&json!({ "servers": rows }));
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
            _ => Color::Attention,
        };
        table.row(vec![
            Cell::plain(server.name.as_str()),
            Cell::new(color, state(server)),
            Cell::plain(server.file.as_deref().map(|file| relative(file, &engine.folder)).unwrap_or_default()),
            Cell::new(Color::Dim, server.launch.clone()),
        ]);
    }
    print(&table.text(Style::of_stdout(), size().map(|size| size.columns)))?;
    Ok(Status::Ok)
}
