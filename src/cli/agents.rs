//! `mcp-sidecar agents` and `mcp-sidecar set`: the agents that are connected to the workspace.

use super::context::Context;
use super::engine_client::{EngineClient, run_shared};
use super::list::Screen;
use super::server::relative;
use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, format_time, print, print_json, usage};
use crate::model::CallId;
use crate::protocol::answers::AgentList;
use crate::protocol::commands::{AgentDisconnect, AgentPause, AgentSet, Agents, Away, AwayAllow};
use crate::protocol::types::AgentStatus;
use crate::text::{counted, one_line};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Keep showing the agents until Ctrl-C
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Pause an agent: its calls wait until you resume it
    Pause(Agent),
    /// Resume a paused agent
    Resume(Agent),
    /// Disconnect an agent and cancel its calls
    Disconnect(Agent),
    /// Show what agents did while no editor was open, and what was refused because there was no one to ask
    Away,
    /// Allow a refused call: the same agent may make the same call once more
    Allow {
        /// ID of the call, as listed by `mcp-sidecar agents away`
        id: String,
    },
}

#[derive(Debug, clap::Args)]
struct Agent {
    /// ID or name of the agent, as listed by `mcp-sidecar agents`
    agent: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Set {
    /// Name of the set, as in [sets.NAME] in config.toml [default: list the sets]
    name: Option<String>,
    /// Remove the limit: agents see all tools of their section again
    #[arg(long, conflicts_with = "name")]
    none: bool,
    /// Switch only the agents with this ID or name [default: all agents of this workspace]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
}

/// What to say without an engine.
const NOBODY: &str = "no agent is connected to this workspace";

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let json = arguments.json;
    let done = run_shared(context, async |engine| {
        let answer = match arguments.command {
            Some(Command::Pause(Agent { agent })) => engine.call(AgentPause { agent, paused: true }).await?,
            Some(Command::Resume(Agent { agent })) => engine.call(AgentPause { agent, paused: false }).await?,
            Some(Command::Disconnect(Agent { agent })) => engine.call(AgentDisconnect { agent }).await?,
            Some(Command::Away) => return away(engine, json).await,
            Some(Command::Allow { id }) => {
                engine.call(AwayAllow { call_id: CallId(id.into()) }).await?;
                print("allowed next time\n")?;
                return Ok(Status::Ok);
            }
            None if arguments.watch => return watch(engine).await,
            None => engine.call(Agents {}).await?,
        };
        show(engine, &answer, json)
    })?;
    match done {
        Some(status) => Ok(status),
        None if json => print_json(&AgentList { agents: Vec::new(), sets: Vec::new() }),
        None => {
            print(&format!("{NOBODY}\n"))?;
            Ok(Status::Ok)
        }
    }
}

pub(super) fn set(arguments: Set, context: &Context) -> anyhow::Result<Status> {
    let Set { name, none, agent } = arguments;
    if name.is_none() && !none && agent.is_some() {
        return Err(usage("name a set, or use --none".to_owned()));
    }
    let done = run_shared(context, async |engine| {
        if name.is_none() && !none {
            let sets = engine.call(Agents {}).await?.sets;
            print(&match sets.is_empty() {
                true => "no sets: add [sets.NAME] with tools = [\"server__tool\"] to config.toml\n".to_owned(),
                false => sets.iter().map(|set| format!("{}\n", one_line(set, 80))).collect(),
            })?;
            return Ok(Status::Ok);
        }
        let answer = engine.call(AgentSet { set: name, agent }).await?;
        show(engine, &answer, false)
    })?;
    match done {
        Some(status) => Ok(status),
        None => Err(anyhow::anyhow!("{NOBODY}")),
    }
}

fn show(engine: &EngineClient, answer: &AgentList, json: bool) -> anyhow::Result<Status> {
    if json {
        return print_json(answer);
    }
    print(&match answer.agents.is_empty() {
        true => format!("{NOBODY}\n"),
        false => table(engine, &answer.agents).text(Style::of_stdout(), size().map(|size| size.columns)),
    })?;
    Ok(Status::Ok)
}

/// What agents did while no editor was open.
async fn away(engine: &EngineClient, json: bool) -> anyhow::Result<Status> {
    let report = engine.call(Away {}).await?;
    if json {
        return print_json(&report);
    }
    let nothing = "agents did nothing while no editor was open";
    print(&format!("{}\n", one_line(report.summary.as_deref().unwrap_or(nothing), 2_000)))?;
    if !report.refused.is_empty() {
        let mut table = Table::new(&["TIME", "AGENT", "TOOL", "ID", "ARGUMENTS"]);
        for call in &report.refused {
            let arguments = call.arguments.as_ref().map(ToString::to_string).unwrap_or_default();
            table.row(vec![
                Cell::new(Color::Dim, format_time(call.time)),
                Cell::plain(one_line(&call.requester.name, 80)),
                Cell::plain(format!("{}/{}", call.server, one_line(&call.tool, 200))),
                Cell::plain(one_line(&call.call_id.0, 80)),
                Cell::new(Color::Dim, one_line(&arguments, 400)),
            ]);
        }
        print(&table.text(Style::of_stdout(), size().map(|size| size.columns)))?;
        print("run `mcp-sidecar agents allow ID` to allow a call next time\n")?;
    }
    Ok(Status::Ok)
}

/// Draws the table again whenever something changes.
async fn watch(engine: &EngineClient) -> anyhow::Result<Status> {
    let mut screen = Screen::new(size());
    let (mut changes, mut questions) = (engine.changes(), engine.questions());
    loop {
        let answer = engine.call(Agents {}).await?;
        if screen.is_active() {
            let heading = counted(answer.agents.len(), "agent");
            screen.draw(|style, width| {
                let mut lines = vec![format!("{heading} (press Ctrl-C to stop)")];
                lines.extend(table(engine, &answer.agents).lines(style, Some(width)));
                lines
            })?;
        } else {
            show(engine, &answer, false)?;
        }
        tokio::select! {
            () = changes.next() => {}
            changed = questions.changed() => if changed.is_err() { return Ok(Status::Ok) },
        }
    }
}

fn table(engine: &EngineClient, agents: &[AgentStatus]) -> Table {
    let has_sets = agents.iter().any(|agent| agent.set.is_some());
    let mut head = vec!["AGENT", "ID", "FOLDER", "SINCE", "SET", "CALLS", "DENIED", "TOKENS", "NOW"];
    head.retain(|title| has_sets || *title != "SET");
    let mut table = Table::new(&head);
    for agent in agents {
        let name = if agent.name.is_empty() { "(no name yet)" } else { &agent.name };
        let folder = match relative(&agent.folder.display().to_string(), &engine.folder).as_str() {
            "" => ".".to_owned(),
            _ if agent.folder.parent() == engine.folder.parent() => {
                let name = agent.folder.file_name().unwrap_or_default().to_string_lossy();
                one_line(&format!("../{name}"), 200)
            }
            shown => one_line(shown, 200),
        };
        let color = match () {
            () if agent.paused || agent.problem.is_some() => Color::Attention,
            () if agent.calls.iter().any(|call| call.question.is_some()) => Color::Attention,
            () if agent.calls.is_empty() => Color::Dim,
            () => Color::Good,
        };
        let now = agent.problem.as_deref().unwrap_or(&agent.doing);
        let set = has_sets.then(|| Cell::plain(one_line(agent.set.as_deref().unwrap_or_default(), 80)));
        let first = [
            Cell::plain(one_line(name, 80)),
            Cell::new(Color::Dim, one_line(&agent.id, 40)),
            Cell::plain(folder),
            Cell::new(Color::Dim, format_time(agent.since)),
        ];
        let rest = [
            Cell::plain(agent.today.calls.to_string()).right(),
            Cell::plain(agent.today.denied.to_string()).right(),
            Cell::plain(agent.today.tokens.to_string()).right(),
            Cell::new(color, one_line(now, 200)),
        ];
        table.row(first.into_iter().chain(set).chain(rest).collect());
    }
    table
}
