//! Completion in the shell of what only this workspace knows: its servers, and the tools of a running engine.
//!
//! The shell runs this program with the variable `COMPLETE`, so everything here is quick and silent.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::context::{Context, contents};
use super::{Status, engine_client};
use crate::config;
use crate::config::templates::templates;
use crate::protocol::commands::Tools;
use crate::text::one_line;

/// The servers of the config files.
pub(super) fn servers() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching(typed, names().unwrap_or_default()))
}

/// The tools of the engine that editors and agents share, as SERVER/TOOL. Without an engine, the servers.
pub(super) fn tools() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let known = known_tools().ok().flatten().unwrap_or_else(|| {
            names().unwrap_or_default().into_iter().map(|(name, _)| (format!("{name}/"), String::new())).collect()
        });
        matching(typed, known)
    })
}

pub(super) fn template_ids() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        matching(typed, templates().iter().map(|template| (template.id.clone(), template.title.clone())).collect())
    })
}

fn matching(typed: &OsStr, known: Vec<(String, String)>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let known = known.into_iter().filter(|(name, _)| name.starts_with(&*typed));
    known
        .map(|(name, help)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| one_line(&help, 80).into())))
        .collect()
}

fn names() -> anyhow::Result<Vec<(String, String)>> {
    let context = Context { workspace: None };
    let paths = context.paths()?;
    let settings = crate::settings::Settings::from_file(&paths).settings;
    let contents = contents(context.folder(&settings)?, &settings, &paths);
    let loaded = config::load(&contents, &Default::default(), &settings.limits);
    let servers = loaded.config.servers.values();
    Ok(servers.map(|each| (each.name.to_string(), each.spec.description.clone().unwrap_or_default())).collect())
}

fn known_tools() -> anyhow::Result<Option<Vec<(String, String)>>> {
    let mut known = Vec::new();
    let found = engine_client::run_shared(&Context { workspace: None }, async |engine| {
        let tools = engine.call(Tools::default()).await?.tools;
        known = tools.into_iter().map(|tool| (format!("{}/{}", tool.server, tool.tool), tool.description)).collect();
        Ok(Status::Ok)
    })?;
    Ok(found.map(|_| known))
}
