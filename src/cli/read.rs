//! `mcp-sidecar read` and `mcp-sidecar prompt`: the resources and prompts of a server.

use serde_json::{Map, Value, json};

use super::context::{Context, parse_pair};
use super::engine_client::{self, Autostart};
use super::style::{Color, Style};
use super::{Status, complete, content, print, print_json, trust};
use crate::model::ServerName;
use crate::protocol::commands::{PromptGet, ResourceRead};

#[derive(Debug, clap::Args)]
pub(super) struct Read {
    /// Name of the server
    #[arg(add = complete::servers())]
    server: ServerName,
    /// URI of the resource, as listed by `mcp-sidecar inspect SERVER`
    uri: String,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Prompt {
    /// Name of the server
    #[arg(add = complete::servers())]
    server: ServerName,
    /// Name of the prompt, as listed by `mcp-sidecar inspect SERVER`
    name: String,
    /// Arguments of the prompt
    #[arg(value_name = "NAME=VALUE", value_parser = parse_pair)]
    arguments: Vec<(String, String)>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn read(arguments: Read, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Read { server, uri, json } = arguments;
        trust::ask_if_needed(engine, &server).await?;
        let answer = engine.call(ResourceRead { server, uri, subscribe: None, requester: None }).await?;
        if json {
            return print_json(&answer);
        }
        let contents = answer.contents.iter().map(|one| content::resource_to_text(&json!(one)));
        print(&contents.collect::<String>())?;
        Ok(Status::Ok)
    })
}

pub(super) fn prompt(arguments: Prompt, context: &Context) -> anyhow::Result<Status> {
    engine_client::run(context, Autostart::OnDemand, async |engine| {
        let Prompt { server, name, arguments, json } = arguments;
        trust::ask_if_needed(engine, &server).await?;
        let arguments: Map<String, Value> = arguments.into_iter().map(|(name, value)| (name, json!(value))).collect();
        let answer = engine.call(PromptGet { server, name, arguments: Some(arguments), requester: None }).await?;
        if json {
            return print_json(&answer);
        }
        let style = Style::of_stdout();
        let messages = answer.messages.iter().map(|message| {
            let head = style.paint(Color::Dim, &format!("{}:", message.role));
            format!("{head}\n{}", content::message_to_text(&json!(message.content)))
        });
        print(&messages.collect::<String>())?;
        Ok(Status::Ok)
    })
}
