//! `mcp-sidecar level`: how freely a tool may run, and why; or another level for it, written into a config file.

use serde::Deserialize;
use serde_json::{Value, json};

use super::context::Context;
use super::live::{self, Live, Wake};
use super::look::{Look, size};
use super::manage::scope;
use super::table::{Cell, Table};
use super::{Status, print, usage};
use crate::model::{Level, Scope, ToolId};
use crate::text::one_line;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The tool: SERVER/TOOL or mcp__SERVER__TOOL; `*` in its name stands for several. SERVER alone for all it has
    tool: String,
    /// The new level: disable, deny, require-approval, allow-once, allow-session, allow-project or allow-always. Without
    /// one, the level that holds now is shown, and which words gave it
    #[arg(value_parser = level)]
    level: Option<Level>,
    /// Take the entry out of the file, so that whatever else is said holds
    #[arg(long, conflicts_with = "level")]
    unset: bool,
    /// Whose file it is written to: project, local or user
    #[arg(long, default_value = "local", value_parser = scope)]
    scope: Scope,
    /// For programs: what `mcp.policies` or `mcp.tool.policy` answers
    #[arg(long)]
    json: bool,
}

fn level(text: &str) -> Result<Level, String> {
    Level::parse(text).ok_or_else(|| format!("the levels are {}", Level::ALL.map(Level::as_str).join(", ")))
}

/// What is said about one tool; of `mcp.policies`.
#[derive(Deserialize)]
struct Policy {
    tool: String,
    level: String,
    source: String,
    #[serde(default)]
    hides: Vec<Hidden>,
    #[serde(default)]
    agents: Vec<ForAgent>,
}

#[derive(Deserialize)]
struct Hidden {
    level: String,
    source: String,
    reason: Option<String>,
}

#[derive(Deserialize)]
struct ForAgent {
    agent: String,
    level: String,
    source: String,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    let Some((server, tool)) = named(&arguments.tool) else {
        return Err(usage(format!("`{}` names no tool; say SERVER/TOOL", one_line(&arguments.tool, 200))));
    };
    live::run(context, Wake::OnDemand, async |live| match (arguments.level, arguments.unset) {
        (None, false) => show(live, &server, tool.as_deref(), arguments.json).await,
        (level, _) => {
            let tool = tool.unwrap_or_else(|| "*".to_owned());
            let params = json!({ "server": server, "tool": tool, "level": level, "scope": arguments.scope });
            let answer = live.run("mcp.tool.policy", params).await?;
            if arguments.json {
                print(&format!("{answer:#}\n"))?;
                return Ok(Status::Ok);
            }
            let what = level.map_or("is no longer set".to_owned(), |level| format!("is {level}"));
            print(&format!("{server}/{tool} {what} in the {} config\n", arguments.scope))?;
            Ok(Status::Ok)
        }
    })
}

async fn show(live: &Live, server: &str, tool: Option<&str>, json: bool) -> anyhow::Result<Status> {
    // Its tools are known once it runs; of one that does not, the files alone can be told.
    live.run("mcp.server.start", json!({ "server": server })).await?;
    let answer = live.run("mcp.policies", json!({ "server": server, "tool": tool })).await?;
    if json {
        print(&format!("{answer:#}\n"))?;
        return Ok(Status::Ok);
    }
    let policies = Vec::<Policy>::deserialize(answer.get("policies").unwrap_or(&Value::Null))?;
    let text = table(&policies, tool.is_some()).text(Look::of_stdout(), size().map(|size| size.columns));
    print(&text)?;
    Ok(Status::Ok)
}

/// One line for each tool; of a single one also what did not count, and agents for which it is another.
fn table(policies: &[Policy], whole: bool) -> Table {
    let mut table = Table::new(&["TOOL", "LEVEL", "FROM"]);
    let mut row = |tool: &str, level: &str, source: &str| {
        table.row(vec![Cell::plain(tool), Cell::plain(level), Cell::plain(one_line(source, 200))]);
    };
    for policy in policies {
        row(&one_line(&policy.tool, 200), &policy.level, &policy.source);
        for hidden in policy.hides.iter().filter(|_| whole) {
            let reason = hidden.reason.as_deref().unwrap_or("another came first");
            row("  does not count", &hidden.level, &format!("{} ({reason})", hidden.source));
        }
        for agent in &policy.agents {
            row(&format!("  for the agent {}", one_line(&agent.agent, 80)), &agent.level, &agent.source);
        }
    }
    table
}

/// The server and the tool, or the server alone.
fn named(text: &str) -> Option<(String, Option<String>)> {
    if let Some(id) = ToolId::parse(text) {
        return Some((id.server.to_string(), Some(id.tool.to_string())));
    }
    (!text.contains('/')).then(|| (text.to_owned(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_as_elsewhere_and_a_server_stands_for_all_of_its_tools() {
        let both = |server: &str, tool: &str| Some((server.to_owned(), Some(tool.to_owned())));
        assert_eq!(named("fs/read_file"), both("fs", "read_file"));
        assert_eq!(named("mcp__fs__read_*"), both("fs", "read_*"));
        assert_eq!(named("fs"), Some(("fs".to_owned(), None)));
        assert_eq!(named("fs/"), None);
    }
}
