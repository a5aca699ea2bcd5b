//! `mcp-sidecar config`: the current settings, and the paths of all files.

use std::path::Path;

use serde_json::json;

use super::context::{Context, contents};
use super::{Status, print, print_json};
use crate::config::Content;
use crate::paths::Paths;
use crate::settings::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print a config.toml with the default and a description of every setting
    #[arg(long, conflicts_with = "json")]
    default: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, context: &Context) -> anyhow::Result<Status> {
    if arguments.default {
        print(&Settings::default().to_toml())?;
        return Ok(Status::Ok);
    }
    let paths = context.paths()?;
    let settings = context.settings(&paths);
    let files: Vec<Location> = contents(context.folder(&settings)?, &settings, &paths)
        .into_iter()
        .map(|(source, content)| Location {
            what: format!("{} config", source.scope),
            path: source.path.display().to_string(),
            state: state(&content),
        })
        .collect();
    let locations = locations(&paths);
    if arguments.json {
        let all: Vec<_> = files
            .iter()
            .chain(&locations)
            .map(
                |location| json!({ "what": location.what, "path": location.path, "exists": location.state.is_empty() }),
            )
            .collect();
        return print_json(&json!({ "files": all, "settings": settings.to_json() }));
    }
    let all: Vec<&Location> = files.iter().chain(&locations).collect();
    let width = all.iter().map(|location| location.what.len()).max().unwrap_or(0);
    let mut text = "# Paths of all files. Config files are listed by priority, highest first.\n".to_owned();
    for Location { what, path, state } in all {
        text.push_str(&format!("#   {what:width$}  {path}{state}\n"));
    }
    text.push_str("\n# Current settings.\n\n");
    text.push_str(&settings.to_toml());
    print(&text)?;
    Ok(Status::Ok)
}

struct Location {
    what: String,
    path: String,
    /// Empty if it exists.
    state: String,
}

fn locations(paths: &Paths) -> Vec<Location> {
    let location = |what: &str, path: &Path| Location {
        what: what.to_owned(),
        path: path.display().to_string(),
        state: if path.exists() { String::new() } else { " (not found)".to_owned() },
    };
    vec![
        location("settings", &paths.settings_file()),
        location("state", &paths.database()),
        location("logs", &paths.logs_dir()),
        location("sockets", &paths.runtime_dir),
    ]
}

fn state(content: &Content) -> String {
    match content {
        Content::Text(_) => String::new(),
        Content::Absent | Content::Gone => " (not found)".to_owned(),
        Content::Unreadable(why) => format!(" ({why})"),
    }
}
