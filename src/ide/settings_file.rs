//! Language features for `config.toml`. They work line by line, because a file is usually invalid while the user types.

use super::completion::{Completions, Item, ItemKind, escape_snippet};
use super::hover::Hover;
use crate::config::problem::Code;
use crate::config::{Problem, Span};
use crate::settings::{AGENTS, SETS, SettingInfo, Settings};

/// The section of an agent, as it is completed.
const AGENT_SECTION: &str = "agents.\"NAME\"";

/// The section of a set, as it is completed.
const SET_SECTION: &str = "sets.NAME";

/// The mistakes in the text.
pub fn diagnostics(text: &str) -> Vec<Problem> {
    let (_, problems) = Settings::from_toml(text);
    let problem = |one: crate::settings::Problem| {
        let found = Problem::new(Code::Settings, one.span.unwrap_or(0..0), one.message);
        match one.help {
            Some(help) => found.help(help),
            None => found,
        }
    };
    problems.into_iter().map(problem).collect()
}

/// Completes sections, keys and values.
pub fn complete(text: &str, offset: usize) -> Completions {
    let Some(line) = SectionLine::at(text, offset) else { return Completions::default() };
    let (span, items) = match line.part(text, offset) {
        Part::Section(span) => (span, sections()),
        Part::Key(span) => (span, keys(text, &line.section)),
        Part::Value { key, span } => {
            let is_quoted = text.get(span.clone()).is_some_and(|typed| typed.starts_with('"'));
            let choices = find(&line.section, key).map(|setting| setting.choices).unwrap_or_default();
            (span, choices.into_iter().map(|choice| value(choice, is_quoted)).collect())
        }
        Part::Comment => return Completions::default(),
    };
    Completions { span, items, incomplete: false }
}

/// Describes the setting of the line.
pub fn hover(text: &str, offset: usize) -> Option<Hover> {
    let line = SectionLine::at(text, offset)?;
    let key = line.key(text)?;
    let setting = find(&line.section, text.get(key.clone())?)?;
    let mut markdown = format!("`{}`\n\n{}\n\nDefault: `{}`", setting.name(), setting.about, setting.default);
    if !setting.choices.is_empty() {
        let choices: Vec<String> = setting.choices.iter().map(|choice| format!("`\"{choice}\"`")).collect();
        markdown.push_str(&format!("\n\nOne of: {}", choices.join(", ")));
    }
    Some(Hover { span: key, markdown })
}

/// A line of the text.
struct SectionLine {
    /// The section that it belongs to; empty at the top of the file.
    section: String,
    span: Span,
}

/// What is at the cursor, and the text that a completion replaces.
enum Part<'a> {
    Section(Span),
    Key(Span),
    Value { key: &'a str, span: Span },
    Comment,
}

impl SectionLine {
    fn at(text: &str, offset: usize) -> Option<Self> {
        let before = text.get(..offset)?;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = text.get(offset..)?.find('\n').map_or(text.len(), |newline| offset + newline);
        let section = text.get(..start)?.lines().rev().find_map(section_of).unwrap_or_default();
        Some(Self { section, span: start..end })
    }

    /// The key of the line, without spaces around it.
    fn key(&self, text: &str) -> Option<Span> {
        let line = text.get(self.span.clone())?;
        let key = line.split_once('=')?.0;
        let start = self.span.start + (key.len() - key.trim_start().len());
        (!key.trim_start().starts_with('#')).then(|| start..start + key.trim().len())
    }

    fn part<'a>(&self, text: &'a str, offset: usize) -> Part<'a> {
        let before = text.get(self.span.start..offset).unwrap_or_default();
        let after = text.get(offset..self.span.end).unwrap_or_default();
        let typed = before.trim_start();
        if typed.starts_with('#') {
            return Part::Comment;
        }
        if typed.starts_with('[') {
            return Part::Section(offset - typed.len()..self.span.end);
        }
        let Some((key, typed)) = before.split_once('=') else {
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            let rest = after.len() - after.trim_start_matches(is_part).len();
            // The value is already there.
            return if after.contains('=') { Part::Comment } else { Part::Key(offset - typed.len()..offset + rest) };
        };
        let typed = typed.trim_start();
        let quote = usize::from(typed.starts_with('"') && after.starts_with('"'));
        Part::Value { key: key.trim(), span: offset - typed.len()..offset + quote }
    }
}

fn section_of(line: &str) -> Option<String> {
    let inner = line.trim_start().strip_prefix('[')?.split_once(']')?.0;
    Some(inner.trim().to_owned())
}

/// The settings of a section. All agents have the same, and so have all sets.
fn settings_in(section: &str) -> impl Iterator<Item = SettingInfo> {
    let named = [AGENTS, SETS].into_iter().find(|named| section.starts_with(&format!("{named}.")));
    let section = named.unwrap_or(section).to_owned();
    Settings::describe().into_iter().filter(move |setting| setting.section == section)
}

fn find(section: &str, key: &str) -> Option<SettingInfo> {
    settings_in(section).find(|setting| setting.key == key)
}

fn sections() -> Vec<Item> {
    let mut names: Vec<&str> = Vec::new();
    for setting in Settings::describe() {
        let name = match setting.section {
            AGENTS => AGENT_SECTION,
            SETS => SET_SECTION,
            section => section,
        };
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    let section = |name: &str| item(&name.replace('"', ""), ItemKind::Key, format!("[{name}]"), format!("[{name}]"));
    names.into_iter().map(section).collect()
}

/// The settings of a section that the text does not contain yet.
fn keys(text: &str, section: &str) -> Vec<Item> {
    let mut current = String::new();
    let mut set = Vec::new();
    for line in text.lines() {
        match section_of(line) {
            Some(name) => current = name,
            None if current == section => set.extend(line.split_once('=').map(|(key, _)| key.trim())),
            None => {}
        }
    }
    let key = |setting: SettingInfo| {
        let text = format!("{} = {}", setting.key, setting.default);
        Item {
            docs: Some(setting.about.to_owned()),
            snippet: Some(format!("{} = ${{1:{}}}", setting.key, escape_snippet(&setting.default))),
            ..item(setting.key, ItemKind::Key, setting.key.to_owned(), text)
        }
    };
    settings_in(section).filter(|setting| !set.contains(&setting.key)).map(key).collect()
}

fn value(choice: &str, is_quoted: bool) -> Item {
    let text = format!("\"{choice}\"");
    item(choice, ItemKind::Word, if is_quoted { text.clone() } else { choice.to_owned() }, text)
}

fn item(label: &str, kind: ItemKind, filter: String, text: String) -> Item {
    Item { label: label.to_owned(), kind, detail: None, docs: None, filter, text, snippet: None, edits: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_completes_to_a_text_without_mistakes() {
        for setting in Settings::describe() {
            let header = match setting.section {
                "" => String::new(),
                AGENTS => format!("[{AGENT_SECTION}]\n"),
                SETS => format!("[{SET_SECTION}]\n"),
                section => format!("[{section}]\n"),
            };
            let completions = complete(&header, header.len());
            let item = completions.items.iter().find(|item| item.label == setting.key);
            let text = format!("{header}{}\n", item.unwrap_or_else(|| panic!("{}", setting.name())).text);
            assert_eq!(diagnostics(&text), [], "{text}");
        }
    }

    #[test]
    fn a_value_is_replaced_with_its_quotes() {
        let completed = |marked: &str| {
            let offset = marked.find('|').unwrap();
            let text = marked.replace('|', "");
            let Completions { span, items, .. } = complete(&text, offset);
            items.last().map(|item| format!("{}{}{}", &text[..span.start], item.text, &text[span.end..]))
        };
        assert_eq!(completed("audit = \"|\"").unwrap(), "audit = \"strict\"");
        assert_eq!(completed("audit =|").unwrap(), "audit =\"strict\"");
        assert_eq!(completed("[log]\nlevel = \"tr|").unwrap(), "[log]\nlevel = \"trace\"");
        assert_eq!(completed("# audit = |"), None);
        assert_eq!(completed("[log]\nle|vel = 5"), None);
        assert_eq!(completed("[se|]").unwrap(), "[sets.NAME]");
        let sections = complete("[", 1).items;
        assert!(sections.iter().any(|item| item.text == "[agents.\"NAME\"]"), "{sections:?}");
    }
}
