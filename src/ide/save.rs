//! What saving an open config file will do, told before it is done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::page::Page;
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

/// The servers whose definition a save would change: those that may have to be trusted anew.
pub fn touched(loaded: &Loaded, snapshot: &Snapshot) -> Vec<Arc<Definition>> {
    let name = |step: &Step| match step {
        Step::Start(name) | Step::Restart(name) | Step::Update(name) => Some(name.clone()),
        Step::Stop(_) => None,
    };
    let names = steps(loaded, snapshot).into_iter().filter_map(|step| name(&step));
    names.filter_map(|name| loaded.config.servers.get(&name).cloned()).collect()
}

/// `saving: 1 new, 1 restarts, 8 stay; github needs trust`.
pub fn sentence(page: &Page<'_>, needing_trust: &BTreeSet<ServerName>) -> String {
    if page.loaded.file(page.path).is_some_and(|file| !file.valid) {
        return "saving: nothing changes until the file parses".to_owned();
    }
    let steps = steps(page.loaded, page.snapshot);
    let change = plan::reload(&steps, page.loaded);
    // To those who only read the text, a server that is switched off stops, and one that is switched on starts.
    let enabled = |name: &ServerName| page.loaded.config.servers.get(name).is_some_and(|wanted| wanted.spec.enabled);
    let ran = |name: &ServerName| page.snapshot.servers.get(name).is_some_and(|view| view.definition.spec.enabled);
    let switched = |to: bool| change.changed.iter().filter(|name| enabled(name) == to && ran(name) != to).count();
    let (on, off) = (switched(true), switched(false));
    let counts = [
        (change.added.len(), "new"),
        (on, "starts"),
        (change.changed.len() - on - off, "restarts"),
        (change.removed.len() + off, "stops"),
        (change.policy_only.len(), "changes its rules"),
        (change.unchanged, "stay"),
    ];
    let told: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let told = if told.is_empty() { "no servers".to_owned() } else { told.join(", ") };
    let mut names: Vec<String> = needing_trust.iter().take(3).map(ToString::to_string).collect();
    if needing_trust.len() > names.len() {
        names.push(format!("{} more", needing_trust.len() - names.len()));
    }
    match names.len() {
        0 => format!("saving: {told}"),
        1 => format!("saving: {told}; {} needs trust", names.concat()),
        _ => format!("saving: {told}; {} need trust", names.join(", ")),
    }
}
