//! What an agent can see, and the highest level its calls can have. A view only restricts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::condition::Truth;
use super::{NameGlob, RulePattern, Ruling, is_glob};
use crate::model::{Decision, Level, Requester, RequesterKind, ServerName, Subject, Tool, ToolId};
use crate::settings::{Agent, Settings};

/// The views of all agents in the settings.
#[derive(Debug, Default)]
pub struct AgentAccessTable {
    /// In order of precedence: plain names, then patterns, longest first.
    named: Vec<(NameGlob, Arc<AgentAccess>)>,
    everything: Arc<AgentAccess>,
    sets: BTreeMap<String, Patterns>,
}

/// What one agent can see. The default hides nothing.
#[derive(Debug, Clone, Default)]
pub struct AgentAccess {
    /// Its name in the settings. Empty for the default view.
    pub agent: String,
    servers: Option<Patterns>,
    tools: Option<Patterns>,
    ceiling: Option<Level>,
    /// Servers that the agent gets elsewhere, as declared when it connected.
    without: Vec<String>,
    /// The set of tools that it is limited to.
    set: Option<ActiveSet>,
    /// Whether the agent searches tools instead of listing them.
    pub search: bool,
    /// The estimated tokens of a result that the agent gets at once.
    pub result_limit: Option<usize>,
    /// Differs between two readings of the settings.
    revision: u64,
}

/// A named set. One that the settings do not contain shows nothing.
#[derive(Debug, Clone)]
struct ActiveSet {
    name: Arc<str>,
    tools: Option<Patterns>,
}

static REVISIONS: AtomicU64 = AtomicU64::new(0);

impl AgentAccessTable {
    pub fn new(settings: &Settings) -> Self {
        let Settings { agents, sets, .. } = settings;
        let revision = REVISIONS.fetch_add(1, Ordering::Relaxed) + 1;
        let mut names: Vec<&String> = agents.keys().collect();
        names.sort_by_key(|name| (is_glob(name), std::cmp::Reverse(name.len())));
        let named = names.into_iter().filter_map(|name| {
            let agent = agents.get(name)?;
            Some((NameGlob::new(name), Arc::new(AgentAccess::new(name, agent, revision))))
        });
        Self {
            named: named.collect(),
            everything: Arc::new(AgentAccess { revision, ..AgentAccess::default() }),
            sets: sets.iter().map(|(name, tools)| (name.clone(), Patterns::new(tools))).collect(),
        }
    }

    /// The view of a requester. Users and plugins see everything.
    pub fn of(&self, requester: &Requester) -> &Arc<AgentAccess> {
        if requester.kind != RequesterKind::Agent {
            return &self.everything;
        }
        let found = self.named.iter().find(|(glob, _)| glob.is_match(&requester.name));
        found.map_or(&self.everything, |(_, view)| view)
    }

    /// A view that is limited to a set.
    pub fn with_set(&self, view: &Arc<AgentAccess>, set: &Arc<str>) -> Arc<AgentAccess> {
        let set = ActiveSet { name: set.clone(), tools: self.sets.get(&**set).cloned() };
        Arc::new(AgentAccess { set: Some(set), ..AgentAccess::clone(view) })
    }

    /// The names of all sets.
    pub fn sets(&self) -> impl Iterator<Item = &String> {
        self.sets.keys()
    }

    pub fn named(&self) -> impl Iterator<Item = &Arc<AgentAccess>> {
        self.named.iter().map(|(_, view)| view)
    }

    /// All views. The last one is for agents that have no other.
    pub fn all(&self) -> impl Iterator<Item = &Arc<AgentAccess>> {
        self.named().chain([&self.everything])
    }
}

impl AgentAccess {
    fn new(name: &str, agent: &Agent, revision: u64) -> Self {
        Self {
            agent: name.to_owned(),
            servers: agent.servers.as_deref().map(Patterns::new),
            tools: agent.tools.as_deref().map(Patterns::new),
            ceiling: agent.ceiling,
            without: Vec::new(),
            set: None,
            search: agent.search,
            result_limit: agent.result_limit,
            revision,
        }
    }

    /// The same view without servers that the agent gets elsewhere.
    pub fn excluding(view: &Arc<Self>, without: &[String]) -> Arc<Self> {
        match without {
            [] => view.clone(),
            _ => Arc::new(Self { without: without.to_vec(), ..AgentAccess::clone(view) }),
        }
    }

    /// The same view, but the user is asked about every call.
    pub fn asking(view: &Arc<Self>) -> Arc<Self> {
        let ceiling = view.ceiling.map_or(Level::RequireApproval, |ceiling| ceiling.min(Level::RequireApproval));
        Arc::new(Self { ceiling: Some(ceiling), ..AgentAccess::clone(view) })
    }

    pub fn without(&self) -> &[String] {
        &self.without
    }

    /// The name of the set that limits it.
    pub fn set(&self) -> Option<&str> {
        self.set.as_ref().map(|set| &*set.name)
    }

    /// Whether the settings contain its set.
    pub fn has_known_set(&self) -> bool {
        self.set.as_ref().is_none_or(|set| set.tools.is_some())
    }

    /// Whether both come from the same reading of the settings.
    pub fn is_of_same_settings(&self, other: &Self) -> bool {
        self.revision == other.revision
    }

    /// What limits its tools: its section, and its set. A set that is not known shows nothing.
    fn limits_admit(&self, admits: impl Fn(&Patterns) -> bool) -> bool {
        self.tools.as_ref().is_none_or(&admits)
            && self.set.as_ref().is_none_or(|set| set.tools.as_ref().is_some_and(&admits))
    }

    pub fn shows_server(&self, server: &ServerName) -> bool {
        !self.without.iter().any(|name| name == server.as_str())
            && self.servers.as_ref().is_none_or(|servers| servers.admit(server.as_str()))
    }

    pub fn shows(&self, tool: &ToolId) -> bool {
        let whole = || format!("{}__{}", tool.server, tool.tool);
        self.shows_server(&tool.server) && self.limits_admit(|tools| tools.admit(&whole()))
    }

    /// The ruling for this agent.
    pub fn narrow(&self, ruling: Ruling) -> Ruling {
        match self.ceiling {
            Some(ceiling) if ruling.level > ceiling => {
                let source = format!("{} ({} says {})", self.source("ceiling"), ruling.source, ruling.level).into();
                Ruling { level: ceiling, source }
            }
            _ => ruling,
        }
    }

    /// Whether a resource or prompt is shown. `tools` is about everything that a server offers.
    pub fn shows_subject(&self, server: &ServerName, subject: &Tool) -> bool {
        self.shows_server(server) && self.limits_admit(|tools| tools.admit_subject(server, subject))
    }

    /// Why a tool, resource or prompt is hidden from this agent.
    pub fn hidden(&self, id: &ToolId, tool: &Tool) -> Option<Ruling> {
        let shows = match tool.subject {
            Subject::Tool => self.shows(id),
            Subject::Resource { .. } | Subject::Prompt { .. } => self.shows_subject(&id.server, tool),
            // A view is about what servers offer.
            Subject::Agent => true,
        };
        let key = if !self.shows_server(&id.server) {
            "servers"
        } else if !shows {
            "tools"
        } else {
            return None;
        };
        Some(Ruling { level: Level::Disable, source: self.source(key).into() })
    }

    /// Whether an earlier grant with this level counts for this agent.
    pub fn accepts(&self, earlier: Level) -> bool {
        self.ceiling.is_none_or(|ceiling| earlier <= ceiling)
    }

    /// Whether the user can give this answer for the agent: one call can always be allowed, more only up to the
    /// ceiling.
    pub fn offers(&self, decision: Decision) -> bool {
        !decision.allows() || decision == Decision::AllowOnce || self.accepts(decision.level())
    }

    fn source(&self, key: &str) -> String {
        format!("config.toml agents.{}.{key}", self.agent)
    }
}

/// Names to include, and names to exclude (with `!`). If there are only exclusions, everything else is included.
#[derive(Debug, Clone)]
struct Patterns {
    with: Vec<NameGlob>,
    without: Vec<NameGlob>,
    /// The same for resources and prompts, in parts: the server, and what is behind `__`.
    with_subjects: Vec<(NameGlob, Arc<RulePattern>)>,
    without_subjects: Vec<(NameGlob, Arc<RulePattern>)>,
}

impl Patterns {
    fn new(patterns: &[String]) -> Self {
        let without: Vec<_> = patterns.iter().filter_map(|text| text.strip_prefix('!')).map(NameGlob::new).collect();
        let mut with: Vec<_> =
            patterns.iter().filter(|text| !text.starts_with('!')).map(|text| NameGlob::new(text)).collect();
        if with.is_empty() && !without.is_empty() {
            with.push(NameGlob::Any);
        }
        let parts = |excludes: bool| {
            let texts = patterns.iter().map(|text| (text.starts_with('!'), text.trim_start_matches('!')));
            let parts = texts.filter(|(excluded, _)| *excluded == excludes).map(|(_, text)| {
                // A pattern such as `*` is about all servers.
                let (server, name) = text.split_once("__").unwrap_or((text, text));
                (NameGlob::new(server), Arc::new(RulePattern::new(name)))
            });
            parts.collect::<Vec<_>>()
        };
        let (mut with_subjects, without_subjects) = (parts(false), parts(true));
        if with_subjects.is_empty() && !without_subjects.is_empty() {
            with_subjects.push((NameGlob::Any, Arc::new(RulePattern::new("*"))));
        }
        Self { with, without, with_subjects, without_subjects }
    }

    /// Excludes what may be meant, and includes what surely is.
    fn admit_subject(&self, server: &ServerName, subject: &Tool) -> bool {
        let found = |(name, pattern): &(NameGlob, Arc<RulePattern>)| match name.is_match(server.as_str()) {
            true => pattern.matches(subject),
            false => Truth::No,
        };
        let included = |entry: &(NameGlob, Arc<RulePattern>)| match found(entry) {
            Truth::Unknown => entry.1.is_everything(),
            found => found == Truth::Yes,
        };
        self.with_subjects.iter().any(included) && !self.without_subjects.iter().any(|entry| found(entry) != Truth::No)
    }

    fn admit(&self, name: &str) -> bool {
        let any = |globs: &[NameGlob]| globs.iter().any(|glob| glob.is_match(name));
        any(&self.with) && !any(&self.without)
    }
}

#[cfg(test)]
mod tests;
