//! The patterns of rules: the name of a tool, `resource:` and a URI or template, `prompt:` and a name, or `agent:` and a
//! tool of an agent itself.

use super::condition::Truth;
use super::glob::NameGlob;
use super::uri::UriPattern;
use crate::model::{Subject, Tool};

/// What a rule is about.
#[derive(Debug)]
pub struct RulePattern {
    /// The whole pattern. Other subjects match it only if it is stricter than what applies without it.
    whole: NameGlob,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Tools,
    /// `*`: all tools, and what else the server offers.
    Everything,
    Resources(UriPattern),
    Prompts(NameGlob, String),
    /// An agent's own tools.
    Agents(NameGlob),
}

impl RulePattern {
    pub fn new(pattern: &str) -> Self {
        let part = match split(pattern) {
            (Some(Subject::RESOURCE), uri) => Part::Resources(UriPattern::new(uri)),
            (Some(Subject::AGENT), name) => Part::Agents(NameGlob::new(name)),
            (Some(_), name) => Part::Prompts(NameGlob::new(name), name.to_owned()),
            (None, _) if is_everything(pattern) => Part::Everything,
            (None, _) => Part::Tools,
        };
        Self { whole: NameGlob::new(pattern), part }
    }

    /// Exactly this tool, resource or prompt, whatever characters its name has.
    pub fn literal(name: &str) -> Self {
        let part = match split(name) {
            (Some(Subject::RESOURCE), uri) => Part::Resources(UriPattern::literal(uri)),
            (Some(Subject::AGENT), name) => Part::Agents(NameGlob::Literal(name.to_owned())),
            (Some(_), name) => Part::Prompts(NameGlob::Literal(name.to_owned()), name.to_owned()),
            (None, _) => Part::Tools,
        };
        Self { whole: NameGlob::Literal(name.to_owned()), part }
    }

    /// Whether it is about this subject. `Unknown`: a rule may restrict the subject, but not allow it.
    pub fn matches(&self, tool: &Tool) -> Truth {
        match (&self.part, &tool.subject) {
            (Part::Tools | Part::Everything, Subject::Tool) => self.whole.is_match(&tool.name).into(),
            // A server can give a tool such a name, but the rule is about something else.
            (Part::Resources(_) | Part::Prompts(..) | Part::Agents(_), Subject::Tool) => {
                match self.whole.is_match(&tool.name) {
                    true => Truth::Unknown,
                    false => Truth::No,
                }
            }
            // `*: deny` means the whole server. `*: allow-always` means its tools: no one who writes it thinks of
            // files.
            (Part::Everything, Subject::Resource { .. } | Subject::Prompt { .. }) => Truth::Unknown,
            (Part::Resources(pattern), Subject::Resource { template, .. }) => {
                pattern.matches(tool.own_name(), template.as_deref())
            }
            (Part::Prompts(glob, text), Subject::Prompt { .. }) => {
                (text == tool.own_name() || glob.is_match(tool.own_name())).into()
            }
            (Part::Agents(glob), Subject::Agent) => glob.is_match(tool.own_name()).into(),
            // A rule about the tools of servers may deny the shell of an agent, but never allow it.
            (Part::Tools | Part::Everything, Subject::Agent) => match self.whole.is_match(tool.own_name()) {
                true => Truth::Unknown,
                false => Truth::No,
            },
            (Part::Tools | Part::Prompts(..) | Part::Agents(_), Subject::Resource { .. })
            | (Part::Tools | Part::Resources(_) | Part::Agents(_), Subject::Prompt { .. })
            | (Part::Resources(_) | Part::Prompts(..), Subject::Agent) => Truth::No,
        }
    }

    /// Whether the pattern is `*`.
    pub fn is_everything(&self) -> bool {
        matches!(self.part, Part::Everything)
    }
}

fn is_everything(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.chars().all(|c| c == '*')
}

/// The prefix of a pattern or name, and the rest.
pub fn split(pattern: &str) -> (Option<&'static str>, &str) {
    let known = |prefix: &'static str| pattern.strip_prefix(prefix).map(|rest| (Some(prefix), rest));
    known(Subject::RESOURCE)
        .or_else(|| known(Subject::PROMPT))
        .or_else(|| known(Subject::AGENT))
        .unwrap_or((None, pattern))
}

/// Whether setting a level for `new` replaces the level of `old`: both are about the same kind, and `new` matches it.
pub fn replaces(new: &str, old: &str, restricts: bool) -> bool {
    let same = split(new).0 == split(old).0 || (restricts && is_everything(new));
    new == old || (same && NameGlob::new(new).is_match(old))
}
