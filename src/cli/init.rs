//! `mcp-sidecar init`: sets up a project. It imports the servers of other programs, lets the agents on this machine use them,
//! and ends with a call of a tool.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::context::{Context, agents, contents, programs};
use super::engine_client::{self, Autostart, EngineClient};
use super::terminal::{self, Preselected};
use super::{Status, call, content, import, print, setup, trust};
use crate::config;
use crate::config::interop::{Dialect, Homes, ImportRequest, import_files, user_files};
use crate::model::{Decision, Scope, ServerName};
use crate::protocol::commands::{ServerAdd, ServerTrust, ToolCall, Tools};
use crate::protocol::form;
use crate::protocol::types::{ServerStatus, Status as ServerState, ToolInfo};
use crate::text::counted;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Import the servers of this program without asking (repeatable)
    #[arg(long, value_name = "PROGRAM", value_parser = programs())]
    import: Vec<Dialect>,
    /// Let this agent use the servers, without asking (repeatable)
    #[arg(long, value_name = "AGENT", value_parser = agents())]
    agent: Vec<Dialect>,
    /// Do everything without asking: import all servers, set up all agents, trust the servers of this project
    #[arg(long, short)]
    yes: bool,
}

/// The server for a project without any.
const DEMO: &str = "demo";
/// How long the servers may take to start.
const START: Duration = Duration::from_secs(20);

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let init = Init { interactive: terminal::is_interactive(), yes: arguments.yes, context };
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let folder = context.folder(&settings)?;
    print(&format!("Setting up mcp-sidecar in {}\n", folder.display()))?;
    let homes = Homes::discover();
    for program in Dialect::ALL {
        let wanted = arguments.import.contains(&program);
        let exists = |homes: &Homes| import_files(program, homes).iter().any(|file| file.exists());
        if wanted || homes.as_ref().is_some_and(exists) {
            init.import(program, wanted)?;
        }
    }
    let loaded = config::load(&contents(folder, &settings, &paths), &Default::default(), &settings.limits);
    let is_empty = loaded.config.servers.is_empty();
    let add_demo = is_empty && init.ask("No servers yet. Add a demo server to mcp.json and call its tool `add`?")?;
    // After the servers: an agent may already load them itself.
    let status = engine_client::run(context, Autostart::All, async |engine| {
        if add_demo {
            init.add_demo(engine).await?;
        }
        init.try_out(engine, add_demo).await
    })?;
    for agent in Dialect::ALL {
        let wanted = arguments.agent.contains(&agent);
        if wanted || homes.as_ref().is_some_and(|homes| is_here(agent, homes)) {
            init.set_up(agent, wanted)?;
        }
    }
    print(&next_steps())?;
    Ok(status)
}

/// An agent that was installed or used on this machine. VS Code has its extension.
fn is_here(agent: Dialect, homes: &Homes) -> bool {
    let is_used = || user_files(agent, homes).iter().any(|file| file.exists());
    agent.is_agent() && agent != Dialect::VsCode && (which::which(agent.name()).is_ok() || is_used())
}

fn next_steps() -> String {
    let mut text = "\nNext:\n".to_owned();
    let mut add = |line: &str| text.push_str(&format!("  {line}\n"));
    if which::which("nvim").is_ok() {
        add("in Neovim, install the plugin, open this folder, and run :Mcp");
    }
    if which::which("code").is_ok() {
        add("in VS Code, install the extension “MCP Sidecar” and open this folder");
    }
    add("mcp-sidecar list       shows all servers");
    add("mcp-sidecar templates  lists popular servers; `mcp-sidecar add NAME --template ID` adds one");
    add(&format!("read more at {}", env!("CARGO_PKG_REPOSITORY")));
    text
}

struct Init<'a> {
    context: &'a Context,
    interactive: bool,
    yes: bool,
}

impl Init<'_> {
    /// Whether the user wants this. Without a user to ask, only `--yes` says so.
    async fn agrees(&self, question: &str) -> anyhow::Result<bool> {
        if self.yes || !self.interactive {
            return Ok(self.yes);
        }
        Ok(terminal::confirm(question, Preselected::Yes).await?)
    }

    fn ask(&self, question: &str) -> anyhow::Result<bool> {
        self.context.runtime()?.block_on(self.agrees(question))
    }

    /// Imports the servers that the user has in another program: those for all projects, and those for this one.
    fn import(&self, from: Dialect, wanted: bool) -> anyhow::Result<()> {
        for (scope, whose) in [(Scope::User, "all your projects"), (Scope::Local, "this project")] {
            let plan = ImportRequest { from, path: None, scope, project_only: scope == Scope::Local, dry_run: true };
            let found = import::import(&plan, self.context)?;
            if found.imported.is_empty() {
                continue;
            }
            let servers = counted(found.imported.len(), "server");
            let names = found.imported.join(", ");
            let question = format!("{} has {servers} for {whose}: {names}. Import?", from.title());
            if wanted || self.ask(&question)? {
                let imported = import::import(&ImportRequest { dry_run: false, ..plan }, self.context)?;
                print(&import::to_text(&imported, false))?;
            } else if !self.interactive {
                print(&format!("{question} (run `mcp-sidecar import {from}`)\n"))?;
            }
        }
        Ok(())
    }

    /// Adds a server that is part of this program, and trusts it: the user has just agreed to run it.
    async fn add_demo(&self, engine: &EngineClient) -> anyhow::Result<()> {
        let config = Some(json!({ "command": "mcp-sidecar", "args": ["demo-server"] }));
        let server = ServerName::new(DEMO)?;
        let answer = engine
            .call(ServerAdd { server, config, command_line: None, scope: Scope::Project, inputs: None, bundle: None })
            .await?;
        print(&format!("added `{DEMO}` to {}\n", answer.server.file.as_deref().unwrap_or("mcp.json")))?;
        engine.call(ServerTrust::trust(answer.server.name, answer.server.trust_digest)).await?;
        Ok(())
    }

    /// Asks which servers of the project to trust, waits for all of them, and calls a tool, which the user may have agreed to.
    async fn try_out(&self, engine: &EngineClient, agreed: bool) -> anyhow::Result<Status> {
        let untrusted = engine.servers(None).await?.iter().any(|server| server.needs_trust);
        if untrusted && (self.interactive || self.yes) {
            trust::decide(engine, trust::Arguments::all(self.yes)).await?;
        }
        engine.settle(START).await;
        let servers = engine.servers(None).await?;
        for server in &servers {
            print(&format!("{}: {}\n", server.name, server.summary.text))?;
        }
        let tools = engine.call(Tools::default()).await?.tools;
        let Some((tool, arguments)) = tools.iter().find_map(harmless) else {
            return Ok(if servers.iter().any(is_failed) { Status::Failed } else { Status::Ok });
        };
        let shown = format!("{}/{} {}", tool.server, tool.tool, Value::Object(arguments.clone()));
        if !agreed && !self.agrees(&format!("Call {shown}?")).await? {
            return Ok(Status::Ok);
        }
        // They have just seen the call.
        let decision = Some(Decision::AllowOnce);
        let call = ToolCall { tool: tool.name.clone(), arguments: Some(arguments), decision, ..Default::default() };
        let result = call::perform(engine, call, self.interactive, |question| question.server == tool.server).await?;
        print(&format!("→ {shown}\n{}", content::to_text(&result)))?;
        Ok(if result.is_error { Status::Failed } else { Status::Ok })
    }

    fn set_up(&self, agent: Dialect, wanted: bool) -> anyhow::Result<()> {
        if setup::is_done(agent, self.context)? {
            return Ok(print(&format!("{} already uses mcp-sidecar\n", agent.title()))?);
        }
        let question = format!("Let {} use these servers, with your rules?", agent.title());
        if wanted || self.ask(&question)? {
            setup::run(setup::Arguments::of(agent), self.context)?;
        } else if !self.interactive {
            print(&format!("{question} (run `mcp-sidecar setup {agent}`)\n"))?;
        }
        Ok(())
    }
}

fn is_failed(server: &ServerStatus) -> bool {
    server.status == ServerState::Failed
}

/// A tool that can be called to see that everything works, with its arguments: one that only reads and needs none.
fn harmless(tool: &ToolInfo) -> Option<(&ToolInfo, Map<String, Value>)> {
    if tool.server.as_str() == DEMO && tool.tool == "add" {
        return Some((tool, Map::from_iter([("a".to_owned(), 19.into()), ("b".to_owned(), 23.into())])));
    }
    let needs_nothing = || form::check(&tool.input_schema, &Map::new()).1.is_empty();
    (tool.annotations.read_only == Some(true) && needs_nothing()).then(|| (tool, Map::new()))
}
