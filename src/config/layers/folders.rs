//! Several workspace folders: if two use the same name, both names get the folder's name as a prefix.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::super::File;
use super::super::shape::{ParsedFile, valid_name};
use super::super::spec::Matcher;
use crate::model::ServerName;
use crate::text::glob;

/// Folder and name as written → the unique name.
pub type Names = BTreeMap<(Arc<Path>, ServerName), ServerName>;

/// Finds conflicting names and their replacements.
pub fn names(files: &[(File, ParsedFile)]) -> Names {
    let mut users: BTreeMap<ServerName, Vec<Arc<Path>>> = BTreeMap::new();
    let mut taken: BTreeSet<ServerName> = BTreeSet::new();
    for (file, parsed) in files {
        for entry in &parsed.servers {
            taken.insert(entry.name.clone());
            let Some(folder) = &file.source.folder else { continue };
            let folders = users.entry(entry.name.clone()).or_default();
            if !folders.contains(folder) {
                folders.push(folder.clone());
            }
        }
    }
    let mut names = Names::new();
    for (name, mut folders) in users {
        if folders.len() < 2 {
            continue;
        }
        folders.sort();
        for folder in folders {
            let new = unique(&folder, &name, &taken);
            taken.insert(new.clone());
            names.insert((folder, name.clone()), new);
        }
    }
    names
}

fn unique(folder: &Path, name: &ServerName, taken: &BTreeSet<ServerName>) -> ServerName {
    let folder = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let candidate = |number: usize| {
        let suffix = if number == 0 { String::new() } else { format!("-{}", number + 1) };
        // Shorten the folder rather than the name.
        let room = 64usize.saturating_sub(name.as_str().len() + 1 + suffix.len());
        let folder: String = valid_name(&folder).map(String::from).unwrap_or_default().chars().take(room).collect();
        valid_name(&format!("{folder}-{name}{suffix}"))
    };
    (0..taken.len() + 2).filter_map(candidate).find(|name| !taken.contains(name)).unwrap_or_else(|| name.clone())
}

/// Renames the servers of a file and all references to them.
pub fn rename(names: &Names, file: &File, parsed: &mut ParsedFile) {
    let Some(folder) = &file.source.folder else { return };
    let renamed: Vec<(&ServerName, &ServerName)> =
        names.iter().filter(|((of, _), _)| of == folder).map(|((_, old), new)| (old, new)).collect();
    if renamed.is_empty() {
        return;
    }
    for entry in &mut parsed.servers {
        if let Some((_, new)) = renamed.iter().find(|(old, _)| **old == entry.name) {
            entry.name = (*new).clone();
        }
    }
    for entry in &mut parsed.restrictions {
        if let Some((_, new)) = renamed.iter().find(|(old, _)| **old == entry.name) {
            entry.name = (*new).clone();
        }
    }
    for action in &mut parsed.actions {
        for (old, new) in &renamed {
            if let Some(tool) = action.tool.strip_prefix(&format!("mcp__{old}__")) {
                action.tool = format!("mcp__{new}__{tool}");
                break;
            }
        }
    }
    if let Some(policy) = &mut parsed.policy {
        rename_in_matchers(&renamed, &mut policy.allowlist);
        rename_in_matchers(&renamed, &mut policy.denylist);
    }
}

/// Makes matchers for the old name match the new one.
fn rename_in_matchers(renamed: &[(&ServerName, &ServerName)], matchers: &mut Vec<Matcher>) {
    let mut more = Vec::new();
    for matcher in matchers.iter() {
        let Ok(glob) = glob(&matcher.server, |glob| glob) else { continue };
        let glob = glob.compile_matcher();
        for (old, new) in renamed {
            if glob.is_match(old.as_str()) && !glob.is_match(new.as_str()) {
                more.push(Matcher { server: new.to_string(), ..matcher.clone() });
            }
        }
    }
    matchers.extend(more);
}
