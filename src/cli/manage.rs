//! `mcp-sidecar add`, `remove`, `move`, `enable`, `disable`: edit config files, and keep comments and order.

use serde_json::{Map, Value, json};

use super::context::{Context, parse_object, parse_scope};
use super::engine_client::{self, Autostart, EngineClient};
use super::{Status, print, usage};
use crate::config::templates::templates;
use crate::model::Scope;
use crate::text::one_line;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["url", "template", "config", "command"]))]
pub(super) struct Add {
    /// Name of the new server
    server: String,
    /// Config file to write to: project, local or user
    #[arg(long, default_value = "project", value_parser = parse_scope)]
    scope: Scope,
    /// URL of an HTTP server
    #[arg(long)]
    url: Option<String>,
    /// Use a template; `mcp-sidecar templates` lists their IDs
    #[arg(long, value_name = "ID")]
    template: Option<String>,
    /// Complete entry as a JSON object
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Set an environment variable of the server (repeatable); the value may contain ${NAME}
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// Send an HTTP header to the server (repeatable)
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair, requires = "url")]
    header: Vec<(String, String)>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Command that starts the server, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// Name of the server
    server: String,
    /// Config file to edit, if several define the server: project, local or user
    #[arg(long, value_parser = parse_scope)]
    scope: Option<Scope>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Move {
    /// Name of the server
    server: String,
    /// Config file to move it to: project, local or user
    #[arg(long, value_name = "SCOPE", value_parser = parse_scope)]
    to: Scope,
    /// Config file to move it from, if several define the server
    #[arg(long, value_name = "SCOPE", value_parser = parse_scope)]
    from: Option<Scope>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn add(arguments: Add, context: &Context) -> anyhow::Result<Status> {
    let (config, inputs) = entry(&arguments)?;
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let server = &arguments.server;
        let params = json!({ "server": server, "config": config, "inputs": inputs, "scope": arguments.scope });
        let answer = engine.run("mcp.server.add", params).await?;
        if arguments.json {
            return print_json(&answer);
        }
        let mut text = format!("added `{server}` to the {} config\n", arguments.scope);
        if !inputs.is_empty() {
            let ids: Vec<_> = inputs.iter().filter_map(|input| input.get("id").and_then(Value::as_str)).collect();
            text.push_str(&format!("it asks for {} when it first starts\n", ids.join(", ")));
        }
        text.push_str(&trust_hint(engine, server).await);
        print(&text)?;
        Ok(Status::Ok)
    })
}

pub(super) fn remove(arguments: Target, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let servers = engine.servers(Some(&arguments.server)).await?;
        let defined = servers.first().and_then(|server| Scope::parse(&server.scope));
        let Some(scope) = arguments.scope.or(defined) else {
            return Err(usage("use --scope to choose the file to remove the server from".to_owned()));
        };
        let answer = engine.run("mcp.server.remove", json!({ "server": arguments.server, "scope": scope })).await?;
        if arguments.json {
            return print_json(&answer);
        }
        print(&format!("removed `{}` from the {scope} config\n", arguments.server))?;
        Ok(Status::Ok)
    })
}

pub(super) fn relocate(arguments: Move, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Move { server, to, from, json } = arguments;
        let servers = engine.servers(Some(&server)).await?;
        let defined = servers.first().and_then(|server| Scope::parse(&server.scope));
        let Some(from) = from.or(defined) else {
            return Err(usage("use --from to choose the file to move the server from".to_owned()));
        };
        let answer = engine.run("mcp.server.move", json!({ "server": server, "from": from, "to": to })).await?;
        if json {
            return print_json(&answer);
        }
        let hint = trust_hint(engine, &server).await;
        print(&format!("moved `{server}` from the {from} config to the {to} config\n{hint}"))?;
        Ok(Status::Ok)
    })
}

/// Tells the user to trust a server that does not start before that.
async fn trust_hint(engine: &EngineClient, server: &str) -> String {
    let servers = engine.servers(Some(server)).await.unwrap_or_default();
    match servers.iter().any(|server| server.needs_trust) {
        true => format!("run `mcp-sidecar trust {server}` to let it start\n"),
        false => String::new(),
    }
}

fn print_json(answer: &Value) -> anyhow::Result<Status> {
    print(&format!("{answer:#}\n"))?;
    Ok(Status::Ok)
}

/// Enable or disable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

pub(super) fn switch(arguments: Target, switch: Switch, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let on = switch == Switch::On;
        let params = json!({ "server": arguments.server, "enabled": on, "scope": arguments.scope });
        let answer = engine.run("mcp.server.enable", params).await?;
        if arguments.json {
            return print_json(&answer);
        }
        let file = answer.pointer("/server/file").and_then(Value::as_str).unwrap_or("its config file");
        let verb = if on { "enabled" } else { "disabled" };
        print(&format!("{verb} `{}` in {}\n", arguments.server, super::server::relative(file, &engine.folder)))?;
        Ok(Status::Ok)
    })
}

/// The entry to add, and the inputs that its template needs.
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
                let message = format!("no template named `{id}`; run `mcp-sidecar templates` to list the templates");
                return Err(usage(message));
            };
            inputs.clone_from(&template.inputs);
            template.config.clone()
        }
        (_, _, Some(text), _) => {
            let entry = parse_object(text).map_err(|error| usage(format!("cannot parse --config: {error}")))?;
            Value::Object(entry)
        }
        (.., Some((command, []))) => json!({ "command": command }),
        (.., Some((command, rest))) => json!({ "command": command, "args": rest }),
        (.., None) => return Err(usage("nothing to add: pass -- COMMAND, --url, --template or --config".to_owned())),
    };
    let Some(fields) = config.as_object_mut() else {
        return Err(usage("the entry must be a JSON object".to_owned()));
    };
    for (key, pairs) in [("env", &arguments.env), ("headers", &arguments.header)] {
        if !pairs.is_empty() {
            fields.insert(key.to_owned(), Value::Object(table(pairs)));
        }
    }
    Ok((config, inputs))
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
