//! Applies the entries that define no server. They disable the server of their name, or restrict its tools.
//!
//! Such an entry applies to a definition in a file of lower precedence. An entry of the user also applies to a definition
//! of a project: what the user refuses counts by name. Nothing here ever allows more than the definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::super::problem::{Code, Problem, Related, Span};
use super::super::shape::did_you_mean::closest;
use super::super::shape::{self, EntrySpec, Machine, ParsedFile, RestrictionEntry, quoted};
use super::super::spec::{Definition, LevelRule, Restriction, ToolRule};
use super::super::{File, Source, tree::Tree};
use crate::config::problem::TextEdit;
use crate::model::{Level, Scope, ServerName};
use crate::text::glob;

type Servers = BTreeMap<ServerName, Definition>;

/// Adds the restrictions of all files and of the session to the servers, and reports those without effect.
pub fn restrict(
    servers: &mut Servers,
    files: &mut [(File, ParsedFile)],
    session: &BTreeMap<String, Value>,
    machine: &dyn Machine,
) {
    let order: Vec<Arc<std::path::Path>> = files.iter().map(|(file, _)| file.source.path.clone()).collect();
    let index = |path: Option<&std::path::Path>| order.iter().position(|known| Some(&**known) == path);
    let mut session = Some(session);
    for (file, parsed) in files {
        if file.source.scope < Scope::Session
            && let Some(session) = session.take()
        {
            restrict_by_session(servers, session, machine);
        }
        for entry in std::mem::take(&mut parsed.restrictions) {
            let problems = restrict_by_entry(servers, &entry, file, &|definition| {
                index(Some(&file.source.path)) < index(definition.file.as_deref())
            });
            file.problems.extend(problems);
        }
        file.problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    }
    if let Some(session) = session {
        restrict_by_session(servers, session, machine);
    }
}

fn restrict_by_session(servers: &mut Servers, session: &BTreeMap<String, Value>, machine: &dyn Machine) {
    for (name, value) in session {
        let Ok((name, EntrySpec::Restriction(limits))) = shape::entry(name, value, Scope::Session, machine) else {
            continue;
        };
        for definition in servers.values_mut().filter(|definition| definition.name == name || definition.key == name) {
            let is_stronger = Scope::Session > definition.scope;
            add(
                definition,
                is_stronger,
                Restriction {
                    scope: Scope::Session,
                    file: None,
                    folder: None,
                    key_span: 0..0,
                    line: 0,
                    rule_lines: BTreeMap::new(),
                    enabled: limits.enabled,
                    disables: false,
                    tools: limits.tools.clone(),
                },
            );
        }
    }
}

/// Applies one entry to the servers that it means.
fn restrict_by_entry(
    servers: &mut Servers,
    entry: &RestrictionEntry,
    file: &File,
    comes_first: &dyn Fn(&Definition) -> bool,
) -> Vec<Problem> {
    let Source { path, scope, folder } = &file.source;
    // The name may have a prefix because two folders use it. An entry of the user means the name as written.
    let is_meant = |definition: &&mut Definition| {
        let shares_folder = folder.is_none() || definition.folder.is_none() || definition.folder == *folder;
        shares_folder && (definition.name == entry.name || folder.is_none() && definition.key == entry.key)
    };
    let mut problems = Vec::new();
    let mut is_known = false;
    for definition in servers.values_mut().filter(is_meant) {
        is_known = true;
        let is_stronger = *scope > definition.scope || *scope == definition.scope && comes_first(definition);
        if !is_stronger && scope.needs_trust() {
            problems.push(without_effect(entry, definition));
            continue;
        }
        problems.extend(widening(entry, definition, &file.tree, is_stronger));
        add(
            definition,
            is_stronger,
            Restriction {
                scope: *scope,
                file: Some(path.clone()),
                folder: folder.clone(),
                key_span: entry.key_span.clone(),
                line: entry.line,
                rule_lines: entry.rule_lines.clone(),
                enabled: entry.limits.enabled,
                disables: false,
                tools: entry.limits.tools.clone(),
            },
        );
    }
    if !is_known {
        problems.push(unknown(entry, servers));
    }
    problems
}

/// Entries are added in order of precedence. Of those that come before the definition, the first that says whether the
/// server is enabled decides; any entry of the user can disable it.
fn add(definition: &mut Definition, is_stronger: bool, restriction: Restriction) {
    let is_decided = definition.restrictions.iter().any(|earlier| earlier.enabled.is_some());
    let disables = restriction.enabled == Some(false) && !(is_decided && is_stronger);
    definition.spec.enabled &= !disables;
    definition.restrictions.push(Restriction { disables, ..restriction });
}

fn without_effect(entry: &RestrictionEntry, definition: &Definition) -> Problem {
    let message = match definition.file {
        Some(_) => {
            format!("`{}` has no effect: its definition in scope `{}` takes precedence", entry.key, definition.scope)
        }
        None => format!("`{}` has no effect: its definition for this session takes precedence", entry.key),
    };
    let problem = Problem::new(Code::Hidden, entry.key_span.clone(), message).unnecessary();
    related(problem, definition)
}

fn related(mut problem: Problem, definition: &Definition) -> Problem {
    if let Some(file) = &definition.file {
        let message = "the server is defined here".to_owned();
        problem.related.push(Related { file: file.to_path_buf(), span: definition.key_span.clone(), message });
    }
    problem
}

fn unknown(entry: &RestrictionEntry, servers: &Servers) -> Problem {
    let message = format!(
        "no file defines a server `{}`, so there is nothing to disable or restrict; add `command`, `url` or `port` to define it",
        entry.key
    );
    let problem = Problem::new(Code::UnknownServer, entry.key_span.clone(), message);
    let names: Vec<&str> = servers.keys().map(ServerName::as_str).collect();
    match closest(entry.key.as_str(), &names) {
        Some(similar) => {
            let edit = TextEdit::replace(entry.key_span.clone(), quoted(similar));
            problem.help(format!("did you mean `{similar}`?")).fix(format!("change to `{similar}`"), vec![edit])
        }
        None => problem,
    }
}

/// Reports what would allow more than the definition.
fn widening(entry: &RestrictionEntry, definition: &Definition, tree: &Tree, is_stronger: bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    let member = tree.server(entry.key.as_str());
    let span_of = |keys: &[&str]| -> Option<Span> {
        keys.iter().find_map(|key| Some(member?.value.get(key)?.value.span.clone()))
    };
    let mut report = |span: Option<Span>, message: String| {
        let span = span.unwrap_or_else(|| entry.key_span.clone());
        problems.push(related(Problem::new(Code::OnlyRestricts, span, message), definition));
    };
    if entry.limits.enabled == Some(true) && (definition.disables_itself() || !is_stronger && !definition.spec.enabled)
    {
        let message = format!("`{}` stays disabled: only the file that defines it can enable it", entry.key);
        report(span_of(&["enabled", "disabled"]), message);
    }
    let rules = member.and_then(|member| member.value.get("tools")).and_then(|tools| tools.value.members());
    for rule in rules.unwrap_or_default() {
        let pattern = rule.key.text.as_str();
        let written = entry.limits.tools.iter().find(|known| known.pattern == pattern);
        let Some(wider) = written.and_then(|written| wider(written, &entry.limits.tools, &definition.spec.tools))
        else {
            continue;
        };
        let message = match wider {
            Wider::Than(level) => format!(
                "the definition of `{}` sets `{pattern}` to `{level}`; an entry without a definition cannot allow more",
                entry.key
            ),
            Wider::Permission => {
                format!("an entry without a definition cannot allow tools of `{}`, only restrict them", entry.key)
            }
        };
        report(Some(rule.value.span.clone()), message);
    }
    problems
}

enum Wider {
    /// Than a rule of the definition for the same tools.
    Than(Level),
    /// It allows, and is not an exception of a stricter rule in the same entry.
    Permission,
}

fn wider(rule: &ToolRule, siblings: &[ToolRule], definition: &[ToolRule]) -> Option<Wider> {
    let widest = widest(&rule.level);
    if let Some(own) = rule_for(&rule.pattern, definition) {
        let own = self::widest(&own.level);
        return (widest > own).then_some(Wider::Than(own));
    }
    let others: Vec<ToolRule> = siblings.iter().filter(|other| other.pattern != rule.pattern).cloned().collect();
    let is_exception = rule_for(&rule.pattern, &others).is_some_and(|other| self::widest(&other.level) < widest);
    (widest.widens() && !is_exception).then_some(Wider::Permission)
}

/// The widest level that a rule can give.
fn widest(rule: &LevelRule) -> Level {
    rule.cases.iter().map(|case| case.level).fold(rule.rest, Level::max)
}

/// The rule for exactly this name or glob, or the longest glob that matches the name.
fn rule_for<'a>(pattern: &str, rules: &'a [ToolRule]) -> Option<&'a ToolRule> {
    let matches =
        |rule: &&ToolRule| glob(&rule.pattern, |glob| glob).is_ok_and(|glob| glob.compile_matcher().is_match(pattern));
    let exact = rules.iter().find(|rule| rule.pattern == pattern);
    exact.or_else(|| rules.iter().filter(matches).max_by_key(|rule| rule.pattern.len()))
}

#[cfg(test)]
mod tests;
