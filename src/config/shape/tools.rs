//! Levels: `tools` of a server, and the rules that depend on arguments.
//!
//! An invalid level means `deny`: a mistyped `deny` must not become permission.

use std::collections::BTreeMap;

use super::keys::{CASE, CONDITION};
use super::reader::{Fields, Reader, suggest};
use crate::config::problem::{Code, Problem, Span};
use crate::config::spec::{Case, Condition, LevelRule, ToolRule};
use crate::config::tree::{Kind, Member, Node, Step};
use crate::model::Level;
use crate::text::lines::LineIndex;
use crate::text::{self, one_line, regex_reason};

/// All rules of an entry: `tools`, and the lists of other programs that restrict tools.
pub fn all(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Vec<ToolRule> {
    let mut rules = Vec::new();
    if let Some(member) = fields.get("tools") {
        rules.extend(reader.in_key(member, |reader| tools(reader, &member.value)));
    }
    if let Some(member) = fields.get("disabled_tools") {
        let names = reader.in_key(member, |reader| reader.texts(&member.value)).unwrap_or_default();
        rules.extend(names.into_iter().map(|pattern| ToolRule { pattern, level: Level::Disable.into() }));
    }
    if let Some(member) = fields.get("enabled_tools") {
        let names = reader.in_key(member, |reader| reader.texts(&member.value)).unwrap_or_default();
        rules.extend(only(reader, names, &rules));
    }
    rules
}

/// The positions of an entry's rules: pattern → zero-based line.
pub fn lines(entry: &Node, lines: &LineIndex) -> BTreeMap<String, u32> {
    let mut found = BTreeMap::new();
    for member in entry.members().unwrap_or_default() {
        if !matches!(
            member.key.text.as_str(),
            "tools" | "disabled_tools" | "disabledTools" | "excludeTools" | "enabled_tools" | "includeTools"
        ) {
            continue;
        }
        let keys =
            member.value.members().unwrap_or_default().iter().map(|rule| (rule.key.text.as_str(), &rule.key.span));
        let items = member.value.items().unwrap_or_default().iter();
        let names = items.filter_map(|item| Some((item.text()?, &item.span)));
        found.extend(keys.chain(names).map(|(pattern, span)| (pattern.to_owned(), lines.line(span.start))));
    }
    found
}

/// The rules of an object that maps tools to levels, and their lines.
pub fn object(reader: &mut Reader<'_>, node: &Node, lines: &LineIndex) -> (Vec<ToolRule>, BTreeMap<String, u32>) {
    if node.members().is_none() {
        reader.wrong_type(node, "an object that maps tools to levels");
        return Default::default();
    }
    let keys = node.members().unwrap_or_default().iter().map(|member| &member.key);
    let found = keys.map(|key| (key.text.clone(), lines.line(key.span.start))).collect();
    (tools(reader, node), found)
}

fn tools(reader: &mut Reader<'_>, node: &Node) -> Vec<ToolRule> {
    match &node.kind {
        // Copilot's format: the names of the tools to offer, or `*`.
        Kind::List(_) => {
            let names = reader.texts(node).unwrap_or_default();
            only(reader, names, &[])
        }
        Kind::Object(_) => {
            let members = reader.entries(node).unwrap_or_default();
            members.into_iter().map(|member| reader.in_key(member, |reader| rule(reader, member))).collect()
        }
        Kind::Text(text) if text == "*" => Vec::new(),
        _ => {
            reader.wrong_type(node, "an object that maps tools to levels");
            Vec::new()
        }
    }
}

/// The named tools keep their rules, all others are hidden.
fn only(reader: &Reader<'_>, names: Vec<String>, rules: &[ToolRule]) -> Vec<ToolRule> {
    if names.iter().any(|name| name == "*") {
        return Vec::new();
    }
    let has_rule = |name: &String| rules.iter().any(|rule| rule.pattern == *name);
    let kept = names.into_iter().filter(|name| !has_rule(name));
    // In an entry that only restricts, the widest level changes nothing.
    let level = if reader.restricts { Level::AllowAlways } else { Level::RequireApproval };
    let mut narrowed: Vec<_> = kept.map(|pattern| ToolRule { pattern, level: level.into() }).collect();
    narrowed.push(ToolRule { pattern: "*".to_owned(), level: Level::Disable.into() });
    narrowed
}

fn rule(reader: &mut Reader<'_>, member: &Member) -> ToolRule {
    let pattern = member.key.text.clone();
    if pattern.is_empty() {
        reader.problem(Code::BadGlob, &member.key.span, "tool names must not be empty");
    } else {
        glob(reader, &pattern, &member.key.span);
    }
    let level = level_rule(reader, &member.value).unwrap_or_else(|| Level::Deny.into());
    ToolRule { pattern, level }
}

fn level_rule(reader: &mut Reader<'_>, node: &Node) -> Option<LevelRule> {
    let Some(items) = node.items() else {
        return match &node.kind {
            Kind::Text(_) => level(reader, node).map(LevelRule::from),
            _ => {
                reader.wrong_type(node, "a level, or a list of `{ when, level }` rules that ends with a plain level");
                None
            }
        };
    };
    let Some((last, rest)) = items.split_last() else {
        let message = format!("`{}` is empty: it must end with a plain level", reader.here());
        reader.problem(Code::BadLevel, &node.span, message);
        return None;
    };
    let read = |(index, item): (usize, &Node)| reader.within(Step::Index(index), |reader| case(reader, item));
    let cases: Vec<Option<Case>> = rest.iter().enumerate().map(read).collect();
    let rest = reader.within(Step::Index(rest.len()), |reader| match &last.kind {
        Kind::Text(_) => level(reader, last),
        Kind::Missing => None,
        _ => {
            let message = format!("`{}` must be a plain level, which applies when no rule matches", reader.here());
            reader.problem(Code::BadLevel, &last.span, message);
            None
        }
    });
    Some(LevelRule { cases: cases.into_iter().collect::<Option<_>>()?, rest: rest? })
}

fn case(reader: &mut Reader<'_>, node: &Node) -> Option<Case> {
    if node.text().is_some() {
        let message = format!("`{}` must be a rule: only the last item of a list is a plain level", reader.here());
        reader.problem(Code::BadLevel, &node.span, message);
        return None;
    }
    let fields = reader.object(node, &CASE)?;
    let missing = |reader: &mut Reader<'_>, key: &str| {
        if !reader.misspelled(&fields, &[key]) {
            let message = format!("`{}` needs `{key}`", reader.here());
            reader.problem(Code::MissingKey, &node.span, message);
        }
    };
    let level = match fields.get("level") {
        Some(member) => reader.in_key(member, |reader| level(reader, &member.value)),
        None => {
            missing(reader, "level");
            None
        }
    };
    let when = match fields.get("when") {
        Some(member) => reader.in_key(member, |reader| conditions(reader, &member.value)),
        None => {
            missing(reader, "when");
            None
        }
    };
    Some(Case { when: when?, level: level? })
}

fn conditions(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<(String, Condition)>> {
    let mut conditions = Vec::new();
    let before = reader.errors();
    for member in reader.entries(node)? {
        let argument = &member.key.text;
        let found = reader.in_key(member, |reader| condition(reader, &member.value)).unwrap_or_default();
        conditions.extend(found.into_iter().map(|condition| (argument.clone(), condition)));
    }
    if reader.errors() > before {
        return None;
    }
    if conditions.is_empty() {
        let message = format!("`{}` has no conditions, so it would always match", reader.here());
        reader.problem(Code::BadCondition, &node.span, message);
        return None;
    }
    Some(conditions)
}

/// One or more conditions for an argument; all of them must hold.
fn condition(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Condition>> {
    if let Some(text) = node.text() {
        glob(reader, text, &node.span)?;
        return Some(vec![Condition::Glob(text.to_owned())]);
    }
    if node.members().is_none() {
        reader.wrong_type(node, "a glob, or an object with `in`, `matches`, `inside` or `max`");
        return None;
    }
    let before = reader.errors();
    let mut found = Vec::new();
    for member in reader.entries(node)? {
        let name = member.key.text.as_str();
        let condition = reader.in_key(member, |reader| match name {
            "in" => match member.value.items() {
                Some(items) => Some(Condition::In(items.iter().map(Node::to_value).collect())),
                None => {
                    reader.wrong_type(&member.value, "a list of values");
                    None
                }
            },
            "matches" => regex(reader, &member.value).map(Condition::Matches),
            "inside" => reader.text(&member.value).map(|text| Condition::Inside(text.to_owned())),
            "max" => match &member.value.kind {
                Kind::Number(number) => number.as_f64().map(Condition::Max),
                _ => {
                    reader.wrong_type(&member.value, "a number");
                    None
                }
            },
            _ => {
                let names: Vec<&'static str> = CONDITION.keys.iter().map(|key| key.name).collect();
                let message = format!("unknown condition `{}`; use one of {}", one_line(name, 40), names.join(", "));
                let problem = Problem::new(Code::BadCondition, member.key.span.clone(), message);
                reader.report(suggest(problem, name, &member.key.span, &names));
                None
            }
        });
        if let Some(Condition::Inside(folder)) = &condition {
            reader.references(folder, &member.value.span);
        }
        found.extend(condition);
    }
    if found.is_empty() && reader.errors() == before && node.kind != Kind::Missing {
        let message = format!("`{}` has no conditions", reader.here());
        reader.problem(Code::BadCondition, &node.span, message);
    }
    (reader.errors() == before).then_some(found)
}

fn regex(reader: &mut Reader<'_>, node: &Node) -> Option<String> {
    let text = reader.text(node)?;
    match regex::RegexBuilder::new(text).size_limit(1 << 20).build() {
        Ok(_) => Some(text.to_owned()),
        Err(error) => {
            let message = format!("`{}` is not a valid regular expression: {}", reader.here(), regex_reason(&error));
            reader.problem(Code::BadRegex, &node.span, message);
            None
        }
    }
}

/// Checks that a glob is valid.
pub fn glob(reader: &mut Reader<'_>, text: &str, span: &Span) -> Option<()> {
    match text::glob(text, |glob| glob) {
        Ok(_) => Some(()),
        Err(reason) => {
            let message = format!("`{}` is not a valid glob: {reason}", one_line(text, 40));
            reader.problem(Code::BadGlob, span, message);
            None
        }
    }
}

/// Reads a level. In files of the project, reports levels that grant permissions.
pub fn level(reader: &mut Reader<'_>, node: &Node) -> Option<Level> {
    let text = reader.text(node)?;
    let Some(level) = Level::parse(text) else {
        let names = Level::ALL.map(Level::as_str);
        let message = format!("unknown level `{}`", one_line(text, 40));
        let problem = Problem::new(Code::BadLevel, node.span.clone(), message)
            .help(format!("expected one of {}", names.join(", ")));
        let meant = match text {
            "allow" => "allow-session",
            "ask" | "confirm" | "prompt" => "require-approval",
            "disabled" | "hide" => "disable",
            other => other,
        };
        reader.report(suggest(problem, meant, &node.span, &names));
        return None;
    };
    if level.widens() {
        after_trust(reader, &node.span, &format!("`{level}`"));
    }
    Some(level)
}

/// A project file cannot grant itself permissions: they take effect after the user has trusted them.
pub fn after_trust(reader: &mut Reader<'_>, span: &Span, what: &str) {
    // An entry that only restricts never gets a permission; `layers` reports it.
    if reader.scope.needs_trust() && !reader.restricts {
        let message = format!("{what} takes effect only after you trust this project's servers");
        reader.report(Problem::new(Code::NeedsTrust, span.clone(), message));
    }
}
