//! `mcp-sidecar level`: shows the permission level of a tool and where it comes from, or sets it in a config file.

use super::context::{Context, parse_scope};
use super::engine_client::{self, Autostart, EngineClient};
use super::style::{Style, size};
use super::table::{Cell, Table};
use super::{Status, complete, print, print_json, usage};
use crate::model::{Level, Scope, ServerName, ToolId};
use crate::protocol::commands::{Policies, ServerStart, ToolPolicy};
use crate::protocol::types::Policy;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// SERVER/TOOL or mcp__SERVER__TOOL, with `*` as a wildcard; SERVER for all its tools
    #[arg(add = complete::tools())]
    tool: String,
    /// New level: disable, deny, require-approval, allow-once, allow-session, allow-project or allow-always. Without it,
    /// show the current level and where it comes from
    #[arg(value_parser = parse_level)]
    level: Option<Level>,
    /// Remove the level of this tool from the config file
    #[arg(long, conflicts_with = "level")]
    unset: bool,
    /// Config file to write to: project, local or user. Without it, the file that defines the server
    #[arg(long, value_parser = parse_scope)]
    scope: Option<Scope>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

fn parse_level(text: &str) -> Result<Level, String> {
    Level::parse(text).ok_or_else(|| format!("expected one of {}", Level::ALL.map(Level::as_str).join(", ")))
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let Some((server, tool)) = parse_tool(&arguments.tool) else {
        return Err(usage(format!("`{}` is not a tool; expected SERVER/TOOL", one_line(&arguments.tool, 200))));
    };
    engine_client::run(context, Autostart::OnDemand, async |engine| match (arguments.level, arguments.unset) {
        (None, false) => show(engine, server, tool, arguments.json).await,
        (level, _) => {
            let tool = tool.unwrap_or_else(|| "*".to_owned());
            let scope = arguments.scope.map(Into::into);
            let answer = engine.call(ToolPolicy { server: server.clone(), tool: tool.clone(), level, scope }).await?;
            let scope = answer.scope;
            if arguments.json {
                return print_json(&answer);
            }
            print(&match level {
                Some(level) => format!("set `{server}/{tool}` to {level} in the {scope} config\n"),
                None => format!("removed the level of `{server}/{tool}` from the {scope} config\n"),
            })?;
            Ok(Status::Ok)
        }
    })
}

async fn show(engine: &EngineClient, server: ServerName, tool: Option<String>, json: bool) -> anyhow::Result<Status> {
    // The tools are known only while the server runs.
    engine.call(ServerStart { server: Some(server.clone()), all: false }).await?;
    let one_tool = tool.is_some();
    let answer = engine.call(Policies { server: Some(server), tool, arguments: None }).await?;
    if json {
        return print_json(&answer);
    }
    let text = table(&answer.policies, one_tool).text(Style::of_stdout(), size().map(|size| size.columns));
    print(&text)?;
    Ok(Status::Ok)
}

/// One row for each tool, with the agents that have another level. For a single tool, also the levels that are overridden.
fn table(policies: &[Policy], with_overridden: bool) -> Table {
    let mut table = Table::new(&["TOOL", "LEVEL", "FROM"]);
    let mut row = |tool: &str, level: Level, source: &str| {
        table.row(vec![Cell::plain(tool), Cell::plain(level.as_str()), Cell::plain(one_line(source, 200))]);
    };
    for policy in policies {
        row(&one_line(&policy.tool, 200), policy.level, &policy.source);
        for hidden in policy.hides.iter().filter(|_| with_overridden) {
            let reason = hidden.reason.as_deref().unwrap_or("has lower priority");
            row("  overridden", hidden.level, &format!("{} ({reason})", hidden.source));
        }
        for agent in &policy.agents {
            row(&format!("  agent {}", one_line(&agent.agent, 80)), agent.level, &agent.source);
        }
    }
    table
}

/// Parses a server and a tool, or only a server.
fn parse_tool(text: &str) -> Option<(ServerName, Option<String>)> {
    if let Some(id) = ToolId::parse(text) {
        return Some((id.server, Some(id.tool.to_string())));
    }
    Some((ServerName::new(text).ok()?, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_or_a_server_is_parsed() {
        let both = |server: &str, tool: &str| Some((server.parse().unwrap(), Some(tool.to_owned())));
        assert_eq!(parse_tool("fs/read_file"), both("fs", "read_file"));
        assert_eq!(parse_tool("mcp__fs__read_*"), both("fs", "read_*"));
        assert_eq!(parse_tool("fs"), Some(("fs".parse().unwrap(), None)));
        assert_eq!(parse_tool("fs/"), None);
    }
}
