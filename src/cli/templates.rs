//! `mcp-sidecar templates`: ready-made definitions of servers that many people use.

use serde_json::{Map, Value, json};

use super::look::{Look, Tone, size};
use super::table::{Cell, Table};
use super::{Status, print};
use crate::config::templates::{Template, templates};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// One of them, as it would stand in mcp.json
    id: Option<String>,
    /// For programs: what `mcp.templates` answers
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Status> {
    let chosen: Vec<&Template> = match &arguments.id {
        Some(id) => templates().iter().filter(|template| template.id == *id).collect(),
        None => templates().iter().collect(),
    };
    match (arguments.id, chosen.as_slice()) {
        (Some(id), []) => anyhow::bail!("no template `{id}`; `mcp-sidecar templates` shows those there are"),
        _ if arguments.json => print(&format!("{:#}\n", json!({ "templates": chosen })))?,
        (Some(_), [template, ..]) => print(&format!("{:#}\n", entry(template)))?,
        _ => print(&table(&chosen).text(Look::of_stdout(), size().map(|size| size.columns)))?,
    }
    Ok(Status::Ok)
}

/// A whole file that holds nothing but this server.
fn entry(template: &Template) -> Value {
    let mut servers = Map::new();
    servers.insert(template.id.clone(), template.config.clone());
    let mut file = json!({ "servers": servers });
    if let (false, Some(fields)) = (template.inputs.is_empty(), file.as_object_mut()) {
        fields.insert("inputs".to_owned(), json!(template.inputs));
    }
    file
}

fn table(templates: &[&Template]) -> Table {
    let mut table = Table::new(&["ID", "DESCRIPTION"]);
    for template in templates {
        table.row(vec![
            Cell::plain(&template.id),
            Cell::plain(&template.title).and(Tone::Dim, format!("  {}", template.description)),
        ]);
    }
    table
}
