//! `policy`, `inputs` and `actions`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keys::{ACTION, DEFAULTS, INPUT, MATCHER, POLICY, RESULTS, Table};
use super::reader::{Fields, Reader};
use super::tools;
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::problem::{Code, Problem, Severity, Span};
use crate::config::spec::{Action, ActionResult, DefaultPolicy, FilePolicy, Input, InputKind, Matcher};
use crate::config::tree::{Kind, Member, Node, Step};
use crate::model::{Level, ToolId};
use crate::text::lines::LineIndex;

/// What an invalid value was meant to deny is not known, so it makes the policy invalid.
pub fn policy(reader: &mut Reader<'_>, node: &Node, lines: &LineIndex) -> FilePolicy {
    let Some(fields) = reader.object(node, &POLICY) else {
        return FilePolicy::unreadable(reader.scope, lines.line(node.span.start));
    };
    let mut policy = FilePolicy::new(reader.scope);
    if let Some(member) = fields.get("default") {
        let word = reader.in_key(member, |reader| reader.choice(&member.value, Code::BadLevel, DEFAULTS));
        // An invalid value means `confirm`.
        policy.default = Some(match word {
            Some("allow") => DefaultPolicy::Allow,
            Some("deny") => DefaultPolicy::Deny,
            _ => DefaultPolicy::Confirm,
        });
        if policy.default == Some(DefaultPolicy::Allow) {
            tools::after_trust(reader, &member.value.span, "`allow`");
        }
    }
    if let Some(member) = fields.get("allowlist") {
        policy.allowlist = matchers(reader, member, lines, Missing::IsAnError).into_iter().flatten().collect();
        if !policy.allowlist.is_empty() {
            tools::after_trust(reader, &member.key.span, "an allowlist");
        }
    }
    if let Some(member) = fields.get("denylist") {
        for entry in matchers(reader, member, lines, Missing::MeansAll) {
            match entry {
                Ok(matcher) => policy.denylist.push(matcher),
                Err(line) => policy.invalidate(line),
            }
        }
    } else if reader.misspelled(&fields, &["denylist"]) {
        policy.invalidate(lines.line(node.span.start));
    }
    let mut level = |key: &str| {
        let member = fields.get(key)?;
        Some(reader.in_key(member, |reader| tools::level(reader, &member.value)).unwrap_or(Level::RequireApproval))
    };
    policy.read_only = level("readOnly");
    policy.destructive = level("destructive");
    if let Some(member) = fields.get("commands") {
        // An invalid list permits nothing.
        policy.commands = Some(reader.in_key(member, |reader| reader.texts(&member.value)).unwrap_or_default());
    }
    policy
}

/// What a missing `server` or `tool` means: all of them in a denylist, an error in an allowlist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    MeansAll,
    IsAnError,
}

/// The entries of a list. `Err` is the line of an invalid one, or of a value that is not a list.
fn matchers(
    reader: &mut Reader<'_>,
    member: &Member,
    lines: &LineIndex,
    missing: Missing,
) -> Vec<Result<Matcher, u32>> {
    reader.in_key(member, |reader| {
        if member.value.items().is_none() {
            reader.wrong_type(&member.value, "a list");
            return vec![Err(lines.line(member.value.span.start))];
        }
        each(reader, &member.value, |reader, node| {
            let line = lines.line(node.span.start);
            Some(matcher(reader, node, line, missing).ok_or(line))
        })
    })
}

fn matcher(reader: &mut Reader<'_>, node: &Node, line: u32, missing: Missing) -> Option<Matcher> {
    let fields = reader.object(node, &MATCHER)?;
    let mut glob = |key: &'static str| match fields.get(key) {
        Some(member) => reader.in_key(member, |reader| {
            let text = reader.text(&member.value)?;
            tools::glob(reader, text, &member.value.span)?;
            Some(text.to_owned())
        }),
        None if reader.misspelled(&fields, &[key]) => None,
        None if missing == Missing::MeansAll && fields.iter().next().is_some() => Some("*".to_owned()),
        None => {
            let message = format!("`{}` needs `server` and `tool`", reader.here());
            reader.problem(Code::MissingKey, &node.span, message);
            None
        }
    };
    let server = glob("server")?;
    let tool = glob("tool")?;
    Some(Matcher { server, tool, line })
}

fn each<T>(reader: &mut Reader<'_>, node: &Node, mut read: impl FnMut(&mut Reader<'_>, &Node) -> Option<T>) -> Vec<T> {
    let Some(items) = node.items() else {
        reader.wrong_type(node, "a list");
        return Vec::new();
    };
    let read = |(index, item): (usize, &Node)| reader.within(Step::Index(index), |reader| read(reader, item));
    items.iter().enumerate().filter_map(read).collect()
}

/// A required string.
fn needed(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
    span: &Span,
    table: &Table,
) -> Option<String> {
    match fields.get(key) {
        Some(member) => reader.in_key(member, |reader| {
            let text = reader.text(&member.value)?;
            if text.trim().is_empty() {
                let message = format!("`{}` is empty", reader.here());
                reader.problem(Code::MissingKey, &member.value.span, message);
                return None;
            }
            Some(text.to_owned())
        }),
        None => {
            if !reader.misspelled(fields, &[key]) {
                let message = format!("`{}`: an {} needs `{key}`", reader.here(), table.noun);
                reader.problem(Code::MissingKey, span, message);
            }
            None
        }
    }
}

fn optional(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &str) -> Option<String> {
    let member = fields.get(key)?;
    reader.in_key(member, |reader| reader.text(&member.value).map(str::to_owned))
}

pub fn inputs(reader: &mut Reader<'_>, node: &Node) -> Vec<Input> {
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    each(reader, node, |reader, node| {
        let before = reader.errors();
        let fields = reader.object(node, &INPUT)?;
        let kind = match fields.get("type") {
            Some(member) if member.value.text() == Some("command") => {
                let message = "inputs of type `command` are not supported; use `promptString` to ask for the value";
                let problem = Problem::new(Code::IgnoredKey, member.value.span.clone(), message);
                reader.report(problem.severity(Severity::Warning));
                return None;
            }
            Some(member) => reader
                .in_key(member, |reader| reader.choice(&member.value, Code::UnknownType, super::keys::INPUT_TYPES))?,
            None => "promptString",
        };
        let id = needed(reader, &fields, "id", &node.span, &INPUT)?;
        if let Some(member) = fields.get("id") {
            let span = &member.value.span;
            if let Some(first) = seen.get(&id) {
                let message = format!("the input `{}` is declared twice", crate::text::one_line(&id, 40));
                let problem = Problem::new(Code::DuplicateKey, span.clone(), message).severity(Severity::Error);
                reader.report(problem.related(first, "the first one, which is used"));
            } else {
                seen.insert(id.clone(), span.clone());
            }
        }
        let password =
            fields.get("password").and_then(|member| reader.in_key(member, |reader| reader.flag(&member.value)));
        let kind = if kind == "pickString" { pick(reader, &fields, node)? } else { InputKind::Prompt };
        let input = Input {
            description: optional(reader, &fields, "description").unwrap_or_else(|| id.clone()),
            default: optional(reader, &fields, "default"),
            id,
            kind,
            password: password.unwrap_or_default(),
            scope: reader.scope,
            file: None,
        };
        (reader.errors() == before).then_some(input)
    })
}

fn pick(reader: &mut Reader<'_>, fields: &Fields<'_>, node: &Node) -> Option<InputKind> {
    let Some(member) = fields.get("options") else {
        if !reader.misspelled(fields, &["options"]) {
            let message = format!("`{}` is of type `pickString` and needs `options`", reader.here());
            reader.problem(Code::MissingKey, &node.span, message);
        }
        return None;
    };
    let options = reader.in_key(member, |reader| {
        each(reader, &member.value, |reader, option| {
            let text = |key: &str| option.get(key).and_then(|member| member.value.text()).map(str::to_owned);
            match &option.kind {
                Kind::Text(text) => Some((text.clone(), text.clone())),
                Kind::Object(_) if text("value").is_some() => {
                    Some((text("label").or_else(|| text("value"))?, text("value")?))
                }
                _ => {
                    reader.wrong_type(option, "a string, or an object with `label` and `value`");
                    None
                }
            }
        })
    });
    Some(InputKind::Pick(options))
}

pub fn actions(reader: &mut Reader<'_>, node: &Node, lines: &LineIndex) -> Vec<Action> {
    each(reader, node, |reader, node| {
        let before = reader.errors();
        let fields = reader.object(node, &ACTION)?;
        let title = needed(reader, &fields, "title", &node.span, &ACTION);
        let tool = needed(reader, &fields, "tool", &node.span, &ACTION);
        if let (Some(tool), Some(member)) = (&tool, fields.get("tool"))
            && (!tool.starts_with("mcp__") || ToolId::parse(tool).is_none())
        {
            let message = format!("`{}.tool` must have the form `mcp__server__tool`", reader.here());
            reader.problem(Code::BadTool, &member.value.span, message);
        }
        let arguments = match fields.get("arguments") {
            Some(member) if member.value.members().is_some() => {
                placeholders(reader, &member.value);
                member.value.to_value()
            }
            Some(member) => {
                reader.in_key(member, |reader| reader.wrong_type(&member.value, "an object"));
                Value::Null
            }
            None => Value::Object(serde_json::Map::new()),
        };
        let filetypes =
            fields.get("filetypes").and_then(|member| reader.in_key(member, |reader| reader.texts(&member.value)));
        let result = fields.get("result").and_then(|member| {
            reader.in_key(member, |reader| reader.choice(&member.value, Code::UnknownResult, RESULTS))
        });
        let result = match result {
            Some("insert") => ActionResult::Insert,
            Some("replace") => ActionResult::Replace,
            Some("append") => ActionResult::Append,
            _ => ActionResult::Show,
        };
        let line = lines.line(node.span.start);
        let action = Action {
            title: title?,
            tool: tool?,
            arguments,
            filetypes: filetypes.unwrap_or_default(),
            result,
            scope: reader.scope,
            file: None,
            line,
        };
        (reader.errors() == before).then_some(action)
    })
}

/// Checks the placeholders in the arguments of an action, which come from the editor and not from the environment.
fn placeholders(reader: &mut Reader<'_>, node: &Node) {
    const KNOWN: &[&str] = &["selection", "word", "line", "file", "relativeFile", "filetype"];
    match &node.kind {
        Kind::Text(text) => {
            for piece in pieces(text) {
                let Piece::Reference { reference, .. } = piece else { continue };
                let unknown = match &reference {
                    Reference::WorkspaceFolder => None,
                    Reference::Variable { name, default: None } if KNOWN.contains(&name.as_str()) => None,
                    Reference::Variable { name, .. } => Some(format!("${{{name}}}")),
                    Reference::Unknown(written) => Some(written.clone()),
                    _ => Some("${…}".to_owned()),
                };
                if let Some(unknown) = unknown {
                    let message = format!(
                        "`{}` is not a placeholder for actions and is left unchanged",
                        crate::text::one_line(&unknown, 40)
                    );
                    let help = format!("the placeholders are ${{{}}} and ${{workspaceFolder}}", KNOWN.join("}, ${"));
                    let problem = Problem::new(Code::UnknownExpansion, node.span.clone(), message).help(help);
                    reader.report(problem.severity(Severity::Warning));
                }
            }
        }
        Kind::List(items) => items.iter().for_each(|item| placeholders(reader, item)),
        Kind::Object(members) => members.iter().for_each(|member| placeholders(reader, &member.value)),
        _ => {}
    }
}
