//! The rules of all files, compiled and grouped by server once per load, so that ruling on a call is cheap.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::agent_tools::AgentRules;
use super::condition::{Conditions, PathContext, Truth};
use super::glob::{NameGlob, is_glob};
use super::location::location;
use super::pattern::{RulePattern, split};
use super::{ANOTHER_FILE, NOT_TRUSTED, OWN_SERVER, RuleMatch, Ruling, SessionLevels, TrustState};
use crate::config::spec::{self, Config, Definition, FilePolicy, Hidden, LevelRule, Matcher, Restriction, ToolRule};
use crate::model::{HookAgent, Level, Scope, ServerName, Subject, Tool};

/// All rules of the config files and the session about tools and programs.
pub struct Rules {
    pub(super) servers: BTreeMap<ServerName, ServerRules>,
    pub(super) agents: BTreeMap<HookAgent, AgentRules>,
    commands: Vec<CommandList>,
    built_in: Arc<str>,
    listed: Arc<str>,
    /// The source of a ruling on a disabled tool.
    pub(super) disabled_by_user: Arc<str>,
}

/// The rules for the tools of one server.
pub(super) struct ServerRules {
    pub managed: bool,
    pub managed_denylist: Vec<ListEntry>,
    pub denylist: Vec<ListEntry>,
    /// What the user disabled with an answer. It comes first.
    pub disabled: Vec<RulePattern>,
    /// The rules of the user's definitions with the same name that this one overrides. They can only deny.
    pub overridden: Vec<ToolRules>,
    /// The rules of entries in other files that only restrict the server.
    pub restrictions: Vec<ToolRules>,
    pub session: ToolRules,
    pub tools: ToolRules,
    pub allowlist: Vec<ListEntry>,
    pub read_only: Vec<PolicyEntry>,
    pub destructive: Vec<PolicyEntry>,
    pub default: Vec<PolicyEntry>,
}

/// An entry of a denylist or allowlist whose server matches.
pub(super) struct ListEntry {
    pub tool: RulePattern,
    pub source: Arc<str>,
    pub applies: Applies,
}

/// A policy level of one file. The strictest of all files applies.
pub(super) struct PolicyEntry {
    pub level: Level,
    pub source: Arc<str>,
    pub applies: Applies,
}

/// Whether a rule applies to a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Applies {
    Always,
    /// It allows, and is in the file that defines the server.
    OnceTrusted,
    /// It allows, and is in a project file that does not define the server.
    Never,
    /// It allows and names a server, so it is about the user's own server and not about this one of a project.
    OwnServer,
}

impl Applies {
    /// A rule that allows, in a project file, applies only to the servers of that file, and only once the user trusts
    /// it.
    fn of(level: Level, policy: (Scope, Option<&Path>), definition: &Definition) -> Self {
        let (scope, file) = policy;
        match () {
            () if !scope.needs_trust() || !level.widens() => Self::Always,
            () if definition.scope == scope && definition.file.as_deref() == file => Self::OnceTrusted,
            () => Self::Never,
        }
    }

    pub fn ignored_reason(self, trust_state: TrustState) -> Option<&'static str> {
        match (self, trust_state) {
            (Self::Always, _) | (Self::OnceTrusted, TrustState::Trusted) => None,
            (Self::OnceTrusted, TrustState::Untrusted) => Some(NOT_TRUSTED),
            (Self::Never, _) => Some(ANOTHER_FILE),
            (Self::OwnServer, _) => Some(OWN_SERVER),
        }
    }
}

struct CommandList {
    programs: Vec<String>,
    source: Arc<str>,
}

impl Rules {
    /// The first of the `roots` is `${workspaceFolder}` for servers that no project file defines.
    pub fn new(config: &Config, session: &SessionLevels, roots: &[Arc<Path>]) -> Self {
        let servers = config
            .servers
            .iter()
            .map(|(name, definition)| (name.clone(), ServerRules::new(config, definition, session, roots)))
            .collect();
        let commands = config
            .policies
            .iter()
            .filter_map(|policy| {
                let programs = policy.commands.clone()?;
                Some(CommandList { programs, source: policy_source(policy, None, "policy.commands") })
            })
            .collect();
        let agents = HookAgent::ALL.map(|agent| (agent, AgentRules::new(config, agent, session, roots)));
        Self {
            servers,
            agents: agents.into(),
            commands,
            built_in: "built-in default".into(),
            listed: "built-in default for what the server lists".into(),
            disabled_by_user: "your answer `disable`".into(),
        }
    }

    /// Reading what a server lists passes: it offers exactly that. A URI that is not listed is an argument that the
    /// requester chose.
    pub(super) fn fallback(&self, subject: &Subject) -> Ruling {
        match subject {
            Subject::Resource { listed: true, .. } | Subject::Prompt { listed: true } => {
                Ruling { level: Level::AllowAlways, source: self.listed.clone() }
            }
            Subject::Tool | Subject::Resource { .. } | Subject::Prompt { .. } | Subject::Agent => {
                Ruling { level: Level::RequireApproval, source: self.built_in.clone() }
            }
        }
    }

    /// Whether every list of programs contains this one. A bare name in the list means the program on the PATH of the
    /// engine (`on_path`), so `./npx` and a program on another PATH are not `npx`; a path means exactly that file.
    /// `Err` names the list without it.
    pub fn may_start(&self, written: &str, on_path: bool, resolved: Option<&Path>) -> Result<(), Arc<str>> {
        let listed = |program: &String| match Path::new(program).is_absolute() {
            true => resolved == Some(Path::new(program)),
            false => program == written && (on_path || written.contains(std::path::is_separator)),
        };
        match self.commands.iter().find(|commands| !commands.programs.iter().any(listed)) {
            Some(commands) => Err(commands.source.clone()),
            None => Ok(()),
        }
    }
}

impl ServerRules {
    fn new(config: &Config, definition: &Definition, session: &SessionLevels, roots: &[Arc<Path>]) -> Self {
        let managed = |policy: &&FilePolicy| policy.scope == Scope::Managed;
        let name = definition.name.as_str();
        let context = PathContext::of(definition, roots);
        let overridden = |hidden: &Hidden| {
            ToolRules::new(&hidden.tools, Applies::Always, &context, &|pattern| {
                let location = location(hidden.scope, hidden.file.as_deref(), Some(hidden.line));
                format!("{location} tools.{pattern}").into()
            })
        };
        let restricted = |restriction: &Restriction| {
            let context = context.with_folder(restriction.folder.as_ref());
            ToolRules::new(&restriction.tools, Applies::Always, &context, &|pattern| {
                let line = restriction.rule_lines.get(pattern).copied().unwrap_or(restriction.line);
                let location = location(restriction.scope, restriction.file.as_deref(), Some(line));
                format!("{location} tools.{pattern}").into()
            })
        };
        // The user still runs what they allow now. What a broken file of the administrator denies is in its denylist.
        let unknown = config.policies.iter().filter(|policy| policy.is_invalid && policy.scope != Scope::Managed);
        let asked = unknown.map(|policy| {
            let ask = [ToolRule { pattern: "*".to_owned(), level: Level::RequireApproval.into() }];
            ToolRules::new(&ask, Applies::Always, &context, &|_| policy_source(policy, None, "policy"))
        });
        let denied = |policies: &mut dyn Iterator<Item = &FilePolicy>| {
            policies.flat_map(|policy| listed(policy, &policy.denylist, "denylist", Level::Deny, definition)).collect()
        };
        let entries = |what: &str, level: &dyn Fn(&FilePolicy) -> Option<Level>| {
            let levels = config.policies.iter().filter_map(|policy| {
                let level = level(policy)?;
                let applies = Applies::of(level, (policy.scope, policy.file.as_deref()), definition);
                Some(PolicyEntry { level, source: policy_source(policy, None, what), applies })
            });
            levels.collect()
        };
        Self {
            managed: definition.scope == Scope::Managed,
            managed_denylist: denied(&mut config.policies.iter().filter(managed)),
            denylist: denied(&mut config.policies.iter().filter(|policy| !managed(policy))),
            disabled: session.disabled_of(&definition.name).iter().map(|name| RulePattern::literal(name)).collect(),
            overridden: definition.hides.iter().filter(|hidden| !hidden.scope.needs_trust()).map(overridden).collect(),
            restrictions: definition.restrictions.iter().map(restricted).chain(asked).collect(),
            session: ToolRules::new(&session.of(definition), Applies::Always, &context, &|pattern| {
                format!("session level {name}.{pattern}").into()
            }),
            tools: ToolRules::new(
                &definition.spec.tools,
                Applies::of(Level::AllowAlways, (definition.scope, definition.file.as_deref()), definition),
                &context,
                &|pattern| {
                    let line = definition.rule_lines.get(pattern).copied().unwrap_or(definition.line);
                    let location = location(definition.scope, definition.file.as_deref(), Some(line));
                    format!("{location} tools.{pattern}").into()
                },
            ),
            allowlist: config
                .policies
                .iter()
                .flat_map(|policy| listed(policy, &policy.allowlist, "allowlist", Level::AllowAlways, definition))
                .collect(),
            read_only: entries("policy.readOnly", &|policy| policy.read_only),
            destructive: entries("policy.destructive", &|policy| policy.destructive),
            default: entries("policy.default", &|policy| policy.default.map(default_level)),
        }
    }
}

fn listed<'a>(
    policy: &'a FilePolicy,
    list: &'a [Matcher],
    what: &'a str,
    level: Level,
    definition: &'a Definition,
) -> impl Iterator<Item = ListEntry> + 'a {
    let applies = Applies::of(level, (policy.scope, policy.file.as_deref()), definition);
    // A project chooses the names of its servers, so a permission for a name is for the user's server.
    let foreign = level.widens() && definition.scope.needs_trust() && !policy.scope.needs_trust();
    let applies = move |matcher: &Matcher| match foreign && matcher.server.contains(|c| c != '*') {
        true => Applies::OwnServer,
        false => applies,
    };
    // The name may have a prefix because two folders use it. A denial is also about the name as written.
    let names = [Some(&definition.name), Some(&definition.key).filter(|_| !level.widens())];
    let fits = move |matcher: &&Matcher| {
        let server = NameGlob::new(&matcher.server);
        names.into_iter().flatten().any(|name| server.is_match(name.as_str()))
    };
    list.iter().filter(fits).map(move |matcher| ListEntry {
        tool: RulePattern::new(&matcher.tool),
        source: policy_source(
            policy,
            Some(matcher.line),
            &format!("policy.{what} {}/{}", matcher.server, matcher.tool),
        ),
        applies: applies(matcher),
    })
}

pub(super) fn default_level(default: spec::DefaultPolicy) -> Level {
    match default {
        spec::DefaultPolicy::Deny => Level::Deny,
        spec::DefaultPolicy::Confirm => Level::RequireApproval,
        spec::DefaultPolicy::Allow => Level::AllowAlways,
    }
}

pub(super) fn policy_source(policy: &FilePolicy, line: Option<u32>, what: &str) -> Arc<str> {
    let location = location(policy.scope, policy.file.as_deref(), line);
    match policy.is_invalid {
        true if policy.scope == Scope::Managed => {
            format!("{location} {what}, which denies everything until the file is fixed").into()
        }
        true => format!("{location} {what}, which cannot be read until you fix the file").into(),
        false => format!("{location} {what}").into(),
    }
}

/// The `tools` of one definition: exact names first, then globs, longest first.
pub(super) struct ToolRules {
    exact: HashMap<String, ToolLevel>,
    globs: Vec<(RulePattern, ToolLevel)>,
    applies: Applies,
    context: PathContext,
}

struct ToolLevel {
    cases: Vec<(Conditions, Level)>,
    rest: Level,
    source: Arc<str>,
    /// The source if the level depends on the arguments.
    source_of_case: Arc<str>,
}

impl ToolRules {
    pub fn new(rules: &[ToolRule], applies: Applies, context: &PathContext, source: &dyn Fn(&str) -> Arc<str>) -> Self {
        let compile = |pattern: &str, level: &LevelRule| {
            let source = source(pattern);
            ToolLevel {
                cases: level.cases.iter().map(|case| (Conditions::new(&case.when, context), case.level)).collect(),
                rest: level.rest,
                source_of_case: format!("{source} (for these arguments)").into(),
                source,
            }
        };
        let exact = rules.iter().map(|rule| (rule.pattern.clone(), compile(&rule.pattern, &rule.level))).collect();
        // A URI can be written in several ways, so a rule about a resource is always a pattern.
        let is_pattern = |rule: &&ToolRule| is_glob(&rule.pattern) || rule.pattern.starts_with(Subject::RESOURCE);
        let mut sorted: Vec<&ToolRule> = rules.iter().filter(is_pattern).collect();
        // A stable sort: of two globs with the same length, the first in the file wins.
        sorted.sort_by_key(|rule| std::cmp::Reverse(rule.pattern.chars().count()));
        let globs = sorted
            .into_iter()
            .map(|rule| (RulePattern::new(&rule.pattern), compile(&rule.pattern, &rule.level)))
            .collect();
        Self { exact, globs, applies, context: context.clone() }
    }

    /// The level of the first rule that matches, or of one before it that perhaps matches and is stricter.
    pub fn level(&self, tool: &Tool, arguments: Option<&Map<String, Value>>) -> Option<Ruling> {
        let mut found: Vec<Ruling> = Vec::new();
        let _ = self.walk(tool, arguments, TrustState::Trusted, &mut |matched| {
            found.push(Ruling { level: matched.level, source: matched.source.clone() });
            if matched.is_certain { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found.into_iter().rev().reduce(Ruling::stricter)
    }

    /// The rule that denies the tool, if there is one.
    pub fn denial(&self, tool: &Tool, arguments: Option<&Map<String, Value>>) -> Option<Ruling> {
        self.level(tool, arguments).filter(|ruling| ruling.level <= Level::Deny)
    }

    pub fn walk(
        &self,
        tool: &Tool,
        arguments: Option<&Map<String, Value>>,
        trust_state: TrustState,
        visit: &mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let named = self.exact.get(&*tool.name);
        // A tool that has the name of a resource or prompt is not what an exact rule means.
        let is_certain = tool.subject != Subject::Tool || split(&tool.name).0.is_none();
        let globs = self.globs.iter().map(|(pattern, level)| (level, pattern.matches(tool)));
        let globs = globs
            .filter(|(level, matches)| *matches != Truth::No && named.is_none_or(|named| named.source != level.source));
        let named = named.map(|level| (level, if is_certain { Truth::Yes } else { Truth::Unknown }));
        for (level, matches) in named.into_iter().chain(globs) {
            let is_certain = matches == Truth::Yes;
            let cases = arguments.map(|arguments| self.cases(level, arguments, trust_state)).unwrap_or_default();
            for (case, ignored) in cases {
                visit(RuleMatch { level: case, source: &level.source_of_case, ignored, is_certain })?;
            }
            let ignored = self.ignored_reason(level.rest, trust_state);
            visit(RuleMatch { level: level.rest, source: &level.source, ignored, is_certain })?;
        }
        ControlFlow::Continue(())
    }

    /// The cases that apply to these arguments, in file order. One that is unknown applies if it is stricter than what
    /// applies without it.
    fn cases(
        &self,
        level: &ToolLevel,
        arguments: &Map<String, Value>,
        trust_state: TrustState,
    ) -> Vec<(Level, Option<&'static str>)> {
        let mut applying = Vec::new();
        let mut otherwise = level.rest;
        for (conditions, case) in level.cases.iter().rev() {
            let ignored = self.ignored_reason(*case, trust_state);
            let applies = match conditions.hold(arguments, &self.context) {
                Truth::Yes => true,
                Truth::Unknown => *case < otherwise,
                Truth::No => false,
            };
            if applies {
                applying.push((*case, ignored));
                otherwise = if ignored.is_none() { *case } else { otherwise };
            }
        }
        applying.reverse();
        applying
    }

    fn ignored_reason(&self, level: Level, trust_state: TrustState) -> Option<&'static str> {
        if level.widens() { self.applies.ignored_reason(trust_state) } else { None }
    }
}

/// `dir` with `${workspaceFolder}` expanded. `None` if it contains anything else to expand.
pub(super) fn in_folder(dir: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let filled = match folder {
        Some(folder) => dir.replace("${workspaceFolder}", folder.to_str()?),
        None => dir.to_owned(),
    };
    if filled.contains("${") || filled.starts_with('~') {
        return None;
    }
    let path = PathBuf::from(filled);
    if path.is_absolute() { Some(path) } else { Some(folder?.join(path)) }
}
