//! `mcp-sidecar templates`: ready-made definitions of popular servers.

use serde_json::{Map, Value, json};

use super::style::{Color, Style, size};
use super::table::{Cell, Table};
use super::{Status, print, print_json};
use crate::config::templates::{Template, templates};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print the definition with this ID, in the format of mcp.json
    id: Option<String>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> anyhow::Result<Status> {
    let chosen: Vec<&Template> = match &arguments.id {
        Some(id) => templates().iter().filter(|template| template.id == *id).collect(),
        None => templates().iter().collect(),
    };
    match (arguments.id, chosen.as_slice()) {
        (Some(id), []) => anyhow::bail!("no template named `{id}`; run `mcp-sidecar templates` to list the templates"),
        _ if arguments.json => return print_json(&json!({ "templates": chosen })),
        (Some(_), [template, ..]) => return print_json(&entry(template)),
        _ => print(&table(&chosen).text(Style::of_stdout(), size().map(|size| size.columns)))?,
    }
    Ok(Status::Ok)
}

/// The content of an `mcp.json` with only this server.
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
            Cell::plain(&template.title).and(Color::Dim, format!("  {}", template.description)),
        ]);
    }
    table
}
