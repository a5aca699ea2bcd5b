//! `mcp-sidecar add`, `remove`, `move`, `enable`, `disable`: changes to config files, with comments and order kept.

use serde_json::{Map, Value, json};

use super::context::Context;
use super::live::{self, Wake};
use super::{Status, print, usage};
use crate::config::templates::templates;
use crate::model::Scope;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["url", "template", "config", "command"]))]
pub(super) struct Add {
    /// The name of the new server
    server: String,
    /// Whose file: project, local or user
    #[arg(long, default_value = "project", value_parser = scope)]
    scope: Scope,
    /// The address of a server behind HTTP
    #[arg(long)]
    url: Option<String>,
    /// One of `mcp-sidecar templates`
    #[arg(long, value_name = "ID")]
    template: Option<String>,
    /// The whole entry as JSON
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// A variable for its process; ${NAME} refers to one of yours
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// A header for its address
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    header: Vec<(String, String)>,
    /// For programs: what `mcp.server.add` answers
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Which {
    server: String,
    /// Whose file, where several define it: project, local or user
    #[arg(long, value_parser = scope)]
    scope: Option<Scope>,
    /// For programs: what the command of the protocol answers
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Move {
    server: String,
    /// Whose file it goes to: project, local or user
    #[arg(long, value_parser = scope)]
    to: Scope,
    /// Whose file it comes from, where several define it
    #[arg(long, value_parser = scope)]
    from: Option<Scope>,
    /// For programs: what `mcp.server.move` answers
    #[arg(long)]
    json: bool,
}

pub(super) fn add(arguments: Add, context: &Context) -> anyhow::Result<Status> {
    let (config, inputs) = entry(&arguments)?;
    live::run(context, Wake::OnDemand, async |live| {
        let server = &arguments.server;
        let params = json!({ "server": server, "config": config, "inputs": inputs, "scope": arguments.scope });
        let answer = live.run("mcp.server.add", params).await?;
        if arguments.json {
            return program(&answer);
        }
        let mut told = format!("added {} to the {} config\n", arguments.server, arguments.scope);
        if !inputs.is_empty() {
            let ids: Vec<_> = inputs.iter().filter_map(|input| input.get("id").and_then(Value::as_str)).collect();
            told.push_str(&format!("it asks for {} when it first starts\n", ids.join(", ")));
        }
        if live.servers(Some(&arguments.server)).await.is_ok_and(|list| list.iter().any(|server| server.needs_trust)) {
            told.push_str(&format!("`mcp-sidecar trust {}` lets it start\n", arguments.server));
        }
        print(&told)?;
        Ok(Status::Ok)
    })
}

pub(super) fn remove(arguments: Which, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let servers = live.servers(Some(&arguments.server)).await?;
        let defined = servers.first().and_then(|server| Scope::parse(&server.scope));
        let Some(scope) = arguments.scope.or(defined) else {
            return Err(usage("say by --scope from whose file it should go".to_owned()));
        };
        let answer = live.run("mcp.server.remove", json!({ "server": arguments.server, "scope": scope })).await?;
        if arguments.json {
            return program(&answer);
        }
        print(&format!("removed {} from the {scope} config\n", arguments.server))?;
        Ok(Status::Ok)
    })
}

pub(super) fn relocate(arguments: Move, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let Move { server, to, from, json } = arguments;
        let servers = live.servers(Some(&server)).await?;
        let defined = servers.first().and_then(|server| Scope::parse(&server.scope));
        let Some(from) = from.or(defined) else {
            return Err(usage("say by --from out of whose file it should go".to_owned()));
        };
        let answer = live.run("mcp.server.move", json!({ "server": server, "from": from, "to": to })).await?;
        if json {
            return program(&answer);
        }
        let mut told = format!("moved {server} from the {from} config to the {to} config\n");
        if live.servers(Some(&server)).await.is_ok_and(|list| list.iter().any(|server| server.needs_trust)) {
            told.push_str(&format!("`mcp-sidecar trust {server}` lets it start\n"));
        }
        print(&told)?;
        Ok(Status::Ok)
    })
}

/// The whole answer, for programs.
fn program(answer: &Value) -> anyhow::Result<Status> {
    print(&format!("{answer:#}\n"))?;
    Ok(Status::Ok)
}

/// What `enable` and `disable` have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

pub(super) fn switch(arguments: Which, switch: Switch, context: &Context) -> anyhow::Result<Status> {
    live::run(context, Wake::OnDemand, async |live| {
        let on = switch == Switch::On;
        let params = json!({ "server": arguments.server, "enabled": on, "scope": arguments.scope });
        let answer = live.run("mcp.server.enable", params).await?;
        if arguments.json {
            return program(&answer);
        }
        let file = answer.pointer("/server/file").and_then(Value::as_str).unwrap_or("its file");
        let word = if on { "enabled" } else { "disabled" };
        print(&format!("{} is {word} in {}\n", arguments.server, super::server::near(file, &live.folder)))?;
        Ok(Status::Ok)
    })
}

/// The entry that the words ask for, and the inputs that a template needs beside it.
fn entry(arguments: &Add) -> anyhow::Result<(Value, Vec<Value>)> {
    let table = |pairs: &[(String, String)]| -> Map<String, Value> {
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
    };
    let mut inputs = Vec::new();
    let mut config = match (&arguments.url, &arguments.template, &arguments.config, arguments.command.split_first()) {
        (Some(url), ..) => json!({ "type": "http", "url": url }),
        (_, Some(id), ..) => {
            let Some(template) = templates().iter().find(|template| template.id == *id) else {
                let id = one_line(id, 100);
                return Err(usage(format!("no template `{id}`; `mcp-sidecar templates` shows those there are")));
            };
            inputs.clone_from(&template.inputs);
            template.config.clone()
        }
        (_, _, Some(text), _) => {
            serde_json::from_str(text).map_err(|error| usage(format!("the entry is no JSON: {error}")))?
        }
        (.., Some((command, []))) => json!({ "command": command }),
        (.., Some((command, rest))) => json!({ "command": command, "args": rest }),
        (.., None) => return Err(usage("say what to add: -- COMMAND, --url, --template or --config".to_owned())),
    };
    let Some(fields) = config.as_object_mut() else {
        return Err(usage("the entry has to be a JSON object".to_owned()));
    };
    for (key, pairs) in [("env", &arguments.env), ("headers", &arguments.header)] {
        if !pairs.is_empty() {
            fields.insert(key.to_owned(), Value::Object(table(pairs)));
        }
    }
    Ok((config, inputs))
}

pub(super) fn scope(text: &str) -> Result<Scope, String> {
    Scope::parse(text)
        .filter(|scope| matches!(scope, Scope::Project | Scope::Local | Scope::User))
        .ok_or_else(|| "a scope is project, local or user".to_owned())
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it is written NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
