//! `mcp-sidecar config`: the settings in force, and where every file is.

use std::path::Path;

use serde_json::json;

use super::context::{Context, contents};
use super::{Status, print};
use crate::config::Content;
use crate::paths::Paths;
use crate::settings::Settings;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Print a config.toml that holds every default, with what it is for
    #[arg(long, conflicts_with = "json")]
    default: bool,
    /// For programs
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
    let files: Vec<Place> = contents(context.folder(&settings)?, &settings, &paths)
        .into_iter()
        .map(|(source, content)| Place {
            what: format!("{} config", source.scope),
            path: source.path.display().to_string(),
            state: state(&content),
        })
        .collect();
    let places = places(&paths);
    if arguments.json {
        let all: Vec<_> = files
            .iter()
            .chain(&places)
            .map(|place| json!({ "what": place.what, "path": place.path, "exists": place.state.is_empty() }))
            .collect();
        let answer = json!({ "files": all, "settings": settings.to_json() });
        print(&format!("{answer:#}\n"))?;
        return Ok(Status::Ok);
    }
    let all: Vec<&Place> = files.iter().chain(&places).collect();
    let width = all.iter().map(|place| place.what.len()).max().unwrap_or(0);
    let mut text = "# Where everything is, strongest config first.\n".to_owned();
    for Place { what, path, state } in all {
        text.push_str(&format!("#   {what:width$}  {path}{state}\n"));
    }
    text.push_str("\n# The settings in force.\n\n");
    text.push_str(&settings.to_toml());
    print(&text)?;
    Ok(Status::Ok)
}

struct Place {
    what: String,
    path: String,
    /// Empty when it is simply there.
    state: String,
}

fn places(paths: &Paths) -> Vec<Place> {
    let place = |what: &str, path: &Path| Place {
        what: what.to_owned(),
        path: path.display().to_string(),
        state: if path.exists() { String::new() } else { " (not there)".to_owned() },
    };
    vec![
        place("settings", &paths.settings_file()),
        place("state", &paths.database()),
        place("logs", &paths.logs_dir()),
        place("sockets", &paths.runtime_dir),
    ]
}

fn state(content: &Content) -> String {
    match content {
        Content::Text(_) => String::new(),
        Content::Absent | Content::Gone => " (not there)".to_owned(),
        Content::Unreadable(why) => format!(" ({why})"),
    }
}
