//! `mcp-sidecar add`, `remove`, `move`, `enable`, `disable`, `timeout`: edit config files, and keep comments and order.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::adding::{self, NewServer};
use super::context::{Context, parse_object, parse_pair, parse_scope, parse_seconds};
use super::engine_client::{self, Autostart, EngineClient};

use super::{Status, complete, print, print_json, usage};
use crate::config::templates::templates;
use crate::model::{Scope, ServerName};
use crate::protocol::commands::{
    RegistryServer, ServerEnable, ServerForm, ServerMove, ServerRemove, ServerTimeout, Servers,
};
use crate::text::{one_line, shell_quote};

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("how").required(true).args(["url", "template", "config", "from_registry", "from_bundle", "command"]))]
pub(super) struct Add {
    /// Name of the new server; optional with --from-registry and --from-bundle
    #[arg(required_unless_present_any = ["from_registry", "from_bundle"])]
    server: Option<ServerName>,
    /// Config file to write to: project, local or user (default: project, or user for a bundle)
    #[arg(long, value_parser = parse_scope)]
    scope: Option<Scope>,
    /// URL of an HTTP server
    #[arg(long)]
    url: Option<String>,
    /// Use a template; `mcp-sidecar templates` lists their IDs
    #[arg(long, value_name = "ID", add = complete::template_ids())]
    template: Option<String>,
    /// Use a server from the MCP registry; `mcp-sidecar search` finds names
    ///
    /// Shows the exact command or URL, and asks before anything is written.
    #[arg(long, value_name = "NAME")]
    from_registry: Option<String>,
    /// Version of the server in the registry (default: the newest)
    #[arg(long, value_name = "VERSION", requires = "from_registry")]
    version: Option<String>,
    /// Package to use, if the server has several: npm, pypi, oci, nuget, http or sse
    #[arg(long, value_name = "TYPE", requires = "from_registry")]
    package: Option<String>,
    /// Use a bundle: a .mcpb file with a server
    ///
    /// Shows the exact command, and asks before anything is unpacked or written.
    #[arg(long, value_name = "FILE")]
    from_bundle: Option<PathBuf>,
    /// Add the server without asking
    #[arg(long, short)]
    yes: bool,
    /// Complete entry as a JSON object
    #[arg(long, value_name = "JSON")]
    config: Option<String>,
    /// Set an environment variable of the server (repeatable); the value may contain ${NAME}
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_pair)]
    env: Vec<(String, String)>,
    /// Fill in a field of the template (repeatable); without it, you are asked in a terminal
    #[arg(long, value_name = "FIELD=VALUE", value_parser = parse_pair, requires = "template")]
    set: Vec<(String, String)>,
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

/// Explains the error about `add NAME npx …`: the command has to come after `--`.
pub(super) fn add_hint(error: &clap::Error, arguments: &[String]) -> Option<String> {
    let [_, add, name, command @ ..] = arguments else { return None };
    let is_command =
        command.first().is_some_and(|word| !word.starts_with('-')) && !command.iter().any(|word| word == "--");
    if add != "add" || !is_command || error.kind() != clap::error::ErrorKind::UnknownArgument {
        return None;
    }
    let command: Vec<String> = command.iter().map(|word| shell_quote(word)).collect();
    Some(format!("put `--` before the command: mcp-sidecar add {} -- {}", shell_quote(name), command.join(" ")))
}

#[derive(Debug, clap::Args)]
pub(super) struct Target {
    /// Name of the server
    #[arg(add = complete::servers())]
    server: ServerName,
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
    #[arg(add = complete::servers())]
    server: ServerName,
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
    let form = form_of(&arguments)?;
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Add { server, scope, template, env, set, from_registry, from_bundle, yes, .. } = &arguments;
        let usual = if from_bundle.is_some() { Scope::User } else { Scope::Project };
        let scope = scope.unwrap_or(usual);
        let new = NewServer { name: server.as_ref(), scope, env, set };
        let (add, preview) = adding::checked(engine, context, form, &new, template.as_deref()).await?;
        let server = add.server.clone();
        if from_registry.is_some() || from_bundle.is_some() {
            adding::confirm(&server, &preview, *yes).await?;
        }
        let inputs = add.inputs.clone().unwrap_or_default();
        let answer = engine.call(add).await?;
        if arguments.json {
            return print_json(&answer);
        }
        let mut text = format!("added `{server}` to the {} config\n", scope);
        if !inputs.is_empty() {
            let ids: Vec<_> = inputs.iter().filter_map(|input| input.get("id").and_then(Value::as_str)).collect();
            text.push_str(&format!("it asks for {} when it first starts\n", ids.join(", ")));
        }
        text.push_str(&trust_hint(engine, &server).await);
        print(&text)?;
        Ok(Status::Ok)
    })
}

pub(super) fn remove(arguments: Target, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Target { server, scope, json } = arguments;
        let Some(scope) = scope.or(defined_in(engine, &server).await?) else {
            return Err(usage("use --scope to choose the file to remove the server from".to_owned()));
        };
        let answer = engine.call(ServerRemove { server: server.clone(), scope: scope.into() }).await?;
        if json {
            return print_json(&answer);
        }
        print(&format!("removed `{server}` from the {scope} config\n"))?;
        Ok(Status::Ok)
    })
}

pub(super) fn relocate(arguments: Move, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Move { server, to, from, json } = arguments;
        let Some(from) = from.or(defined_in(engine, &server).await?) else {
            return Err(usage("use --from to choose the file to move the server from".to_owned()));
        };
        let answer = engine.call(ServerMove { server: server.clone(), from: from.into(), to, file: None }).await?;
        if json {
            return print_json(&answer);
        }
        if from == to {
            let file = answer.server.file.as_deref().unwrap_or_default();
            print(&format!("`{server}` is already in the {to} config: {file}\n"))?;
            return Ok(Status::Ok);
        }
        let hint = trust_hint(engine, &server).await;
        print(&format!("moved `{server}` from the {from} config to the {to} config\n{hint}"))?;
        Ok(Status::Ok)
    })
}

/// The scope of the definition that is in effect.
async fn defined_in(engine: &EngineClient, server: &ServerName) -> anyhow::Result<Option<Scope>> {
    let servers = engine.servers(Some(server)).await?;
    Ok(servers.first().and_then(|server| Scope::parse(&server.scope.to_string())))
}

/// Tells the user to trust a server that does not start before that.
async fn trust_hint(engine: &EngineClient, server: &ServerName) -> String {
    let servers = engine.servers(Some(server)).await.unwrap_or_default();
    match servers.iter().any(|server| server.needs_trust) {
        true => format!("run `mcp-sidecar trust {server}` to let it start\n"),
        false => String::new(),
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Timeout {
    /// Name of the server
    #[arg(add = complete::servers())]
    server: ServerName,
    /// How long a call may take without progress or a log message
    #[arg(value_parser = parse_seconds)]
    seconds: f64,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn timeout(arguments: Timeout, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Timeout { server, seconds, json } = arguments;
        let answer = engine.call(ServerTimeout { server: server.clone(), timeout: seconds }).await?;
        if json {
            return print_json(&answer);
        }
        let file = answer.server.file.as_deref().unwrap_or("its definition");
        let file = super::server::relative(file, &engine.folder);
        print(&format!("set the timeout of `{server}` to {seconds} s in {file}\n"))?;
        Ok(Status::Ok)
    })
}

/// Enable or disable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

pub(super) fn switch(arguments: Target, switch: Switch, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Target { server, scope, json } = arguments;
        let enabled = switch == Switch::On;
        let before = engine.call(Servers { server: Some(server.clone()) }).await.ok();
        let answer =
            engine.call(ServerEnable { server: server.clone(), enabled, scope: scope.map(Into::into) }).await?;
        if json {
            return print_json(&answer);
        }
        // The entry that disables it, or disabled it until now, may be in another file than the definition.
        let before = before.as_ref().and_then(|list| list.servers.first());
        let changed = before.filter(|_| enabled).unwrap_or(&answer.server);
        let by = changed.restrictions.iter().find(|restriction| restriction.disables);
        let file = by.map_or(changed.file.as_deref(), |restriction| restriction.file.as_deref());
        let place = file.map(|file| format!(" in {}", super::server::relative(file, &engine.folder)));
        let verb = if enabled { "enabled" } else { "disabled" };
        print(&format!("{verb} `{server}`{}\n", place.unwrap_or_default()))?;
        Ok(Status::Ok)
    })
}

/// The form that the new server begins with.
fn form_of(arguments: &Add) -> anyhow::Result<ServerForm> {
    let table = |pairs: &[(String, String)]| -> Map<String, Value> {
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
    };
    if let Some(name) = &arguments.from_registry {
        let (version, package) = (arguments.version.clone(), arguments.package.clone());
        let registry = Some(RegistryServer { name: name.clone(), version, package });
        return Ok(ServerForm { registry, ..ServerForm::default() });
    }
    if let Some(file) = &arguments.from_bundle {
        let path = std::path::absolute(file)?;
        return Ok(ServerForm { bundle: Some(path), ..ServerForm::default() });
    }
    let config = match (&arguments.url, &arguments.template, &arguments.config, arguments.command.split_first()) {
        (Some(url), ..) => json!({ "type": "http", "url": url }),
        (_, Some(id), ..) => {
            if !templates().iter().any(|template| template.id == *id) {
                let id = one_line(id, 100);
                let message = format!("no template named `{id}`; run `mcp-sidecar templates` to list the templates");
                return Err(usage(message));
            }
            return Ok(ServerForm { template: Some(id.clone()), ..ServerForm::default() });
        }
        (_, _, Some(text), _) => {
            let entry = parse_object(text).map_err(|error| usage(format!("cannot parse --config: {error}")))?;
            Value::Object(entry)
        }
        (.., Some((command, []))) => json!({ "command": command }),
        (.., Some((command, rest))) => json!({ "command": command, "args": rest }),
        (.., None) => return Err(usage("nothing to add: pass -- COMMAND, --url, --template or --config".to_owned())),
    };
    let Value::Object(mut config) = config else {
        return Err(usage("the entry must be a JSON object".to_owned()));
    };
    if !arguments.header.is_empty() {
        config.insert("headers".to_owned(), Value::Object(table(&arguments.header)));
    }
    Ok(ServerForm { config: Some(config), ..ServerForm::default() })
}
