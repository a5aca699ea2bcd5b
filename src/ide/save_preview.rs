//! A preview of what saving a config file will do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::config_view::ConfigView;
use crate::config::{Definition, Loaded};
use crate::engine::plan::{self, Step};
use crate::engine::snapshot::Snapshot;
use crate::model::ServerName;

/// The steps that a save would take.
pub fn steps(loaded: &Loaded, snapshot: &Snapshot) -> Vec<Step> {
    let running: BTreeMap<ServerName, Arc<Definition>> =
        snapshot.servers.iter().map(|(name, view)| (name.clone(), view.definition.clone())).collect();
    plan::plan(&running, &loaded.config.servers)
}

/// The definitions that a save would change, and which may need trust again.
pub fn changed_definitions(loaded: &Loaded, snapshot: &Snapshot) -> Vec<Arc<Definition>> {
    let name = |step: &Step| match step {
        Step::Start(name) | Step::Restart(name) | Step::Update(name) => Some(name.clone()),
        Step::Stop(_) => None,
    };
    let names = steps(loaded, snapshot).into_iter().filter_map(|step| name(&step));
    names.filter_map(|name| loaded.config.servers.get(&name).cloned()).collect()
}

/// ``On save: 1 new, 1 restarts, 8 unchanged; `github` needs trust``.
pub fn summary(config: &ConfigView<'_>, needs_trust: &BTreeSet<ServerName>) -> String {
    if !config.file.valid {
        return "On save: no change until the syntax errors are fixed".to_owned();
    }
    let steps = steps(config.loaded, config.snapshot);
    let change = plan::reload(&steps, config.loaded);
    // Disabling a server is a restart for the engine, but the user sees that it stops.
    let enabled = |name: &ServerName| config.loaded.config.servers.get(name).is_some_and(|wanted| wanted.spec.enabled);
    let ran = |name: &ServerName| config.snapshot.servers.get(name).is_some_and(|view| view.definition.spec.enabled);
    let toggled = |to: bool| change.changed.iter().filter(|name| enabled(name) == to && ran(name) != to).count();
    let (on, off) = (toggled(true), toggled(false));
    let counts = [
        (change.added.len(), "new", "new"),
        (on, "starts", "start"),
        (change.changed.len() - on - off, "restarts", "restart"),
        (change.removed.len() + off, "stops", "stop"),
        (change.policy_only.len(), "with new rules", "with new rules"),
        (change.unchanged, "unchanged", "unchanged"),
    ];
    let parts: Vec<String> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }))
        .collect();
    let effect = if parts.is_empty() { "no servers".to_owned() } else { parts.join(", ") };
    let mut names: Vec<String> = needs_trust.iter().take(3).map(|name| format!("`{name}`")).collect();
    if needs_trust.len() > names.len() {
        names.push(format!("{} more", needs_trust.len() - names.len()));
    }
    match names.len() {
        0 => format!("On save: {effect}"),
        1 => format!("On save: {effect}; {} needs trust", names.concat()),
        _ => format!("On save: {effect}; {} need trust", names.join(", ")),
    }
}
