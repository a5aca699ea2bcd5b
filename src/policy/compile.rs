//! The rules of all files, compiled and grouped by server once per load, so that ruling on a call is cheap.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::condition::{Conditions, MatchMode, PathContext};
use super::glob::{NameGlob, is_glob};
use super::location::location;
use super::{ANOTHER_FILE, NOT_TRUSTED, RuleMatch, Ruling, SessionLevels, TrustState};
use crate::config::spec::{self, Config, Definition, FilePolicy, LevelRule, Matcher, ToolRule};
use crate::model::{Level, Scope, ServerName};

/// All rules of the config files and the session about tools and programs.
pub struct Rules {
    pub(super) servers: BTreeMap<ServerName, ServerRules>,
    commands: Vec<CommandList>,
    built_in: Arc<str>,
    /// The source of a ruling on a disabled tool.
    pub(super) disabled_by_user: Arc<str>,
}

/// The rules for the tools of one server.
pub(super) struct ServerRules {
    pub managed: bool,
    pub managed_denylist: Vec<ListEntry>,
    pub denylist: Vec<ListEntry>,
    /// Tools that the user disabled with an answer. They come first.
    pub disabled: BTreeSet<String>,
    pub session: ToolRules,
    pub tools: ToolRules,
    pub allowlist: Vec<ListEntry>,
    pub read_only: Vec<PolicyEntry>,
    pub destructive: Vec<PolicyEntry>,
    pub default: Vec<PolicyEntry>,
}

/// An entry of a denylist or allowlist whose server matches.
pub(super) struct ListEntry {
    pub tool: NameGlob,
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
        }
    }
}

struct CommandList {
    programs: Vec<String>,
    source: Arc<str>,
}

impl Rules {
    /// `workspace` is `${workspaceFolder}` for servers that no project file defines.
    pub fn new(config: &Config, session: &SessionLevels, workspace: Option<&Path>) -> Self {
        let servers = config
            .servers
            .iter()
            .map(|(name, definition)| (name.clone(), ServerRules::new(config, definition, session, workspace)))
            .collect();
        let commands = config
            .policies
            .iter()
            .filter_map(|policy| {
                let programs = policy.commands.clone()?;
                Some(CommandList { programs, source: policy_source(policy, None, "policy.commands") })
            })
            .collect();
        Self {
            servers,
            commands,
            built_in: "built-in default".into(),
            disabled_by_user: "your answer `disable`".into(),
        }
    }

    pub(super) fn fallback(&self) -> Ruling {
        Ruling { level: Level::RequireApproval, source: self.built_in.clone() }
    }

    /// Whether every list of programs contains this one. A bare name in the list means the program on the PATH, so
    /// `./npx` is not `npx`; a path means exactly that file. `Err` names the list without it.
    pub fn may_start(&self, written: &str, resolved: Option<&Path>) -> Result<(), Arc<str>> {
        let listed = |program: &String| {
            program == written || (Path::new(program).is_absolute() && resolved == Some(Path::new(program)))
        };
        match self.commands.iter().find(|commands| !commands.programs.iter().any(listed)) {
            Some(commands) => Err(commands.source.clone()),
            None => Ok(()),
        }
    }
}

impl ServerRules {
    fn new(config: &Config, definition: &Definition, session: &SessionLevels, workspace: Option<&Path>) -> Self {
        let managed = |policy: &&FilePolicy| policy.scope == Scope::Managed;
        let name = definition.name.as_str();
        let context = PathContext::of(definition, workspace);
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
            disabled: session.disabled_of(&definition.name),
            session: ToolRules::new(session.of(&definition.name), Applies::Always, &context, &|pattern| {
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
    list.iter().filter(|matcher| NameGlob::new(&matcher.server).is_match(definition.name.as_str())).map(
        move |matcher| ListEntry {
            tool: NameGlob::new(&matcher.tool),
            source: policy_source(
                policy,
                Some(matcher.line),
                &format!("policy.{what} {}/{}", matcher.server, matcher.tool),
            ),
            applies,
        },
    )
}

pub(super) fn default_level(default: spec::DefaultPolicy) -> Level {
    match default {
        spec::DefaultPolicy::Deny => Level::Deny,
        spec::DefaultPolicy::Confirm => Level::RequireApproval,
        spec::DefaultPolicy::Allow => Level::AllowAlways,
    }
}

fn policy_source(policy: &FilePolicy, line: Option<u32>, what: &str) -> Arc<str> {
    format!("{} {what}", location(policy.scope, policy.file.as_deref(), line)).into()
}

/// The `tools` of one definition: exact names first, then globs, longest first.
pub(super) struct ToolRules {
    exact: HashMap<String, ToolLevel>,
    globs: Vec<(NameGlob, ToolLevel)>,
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
    fn new(rules: &[ToolRule], applies: Applies, context: &PathContext, source: &dyn Fn(&str) -> Arc<str>) -> Self {
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
        let mut sorted: Vec<&ToolRule> = rules.iter().filter(|rule| is_glob(&rule.pattern)).collect();
        // A stable sort: of two globs with the same length, the first in the file wins.
        sorted.sort_by_key(|rule| std::cmp::Reverse(rule.pattern.chars().count()));
        let globs = sorted
            .into_iter()
            .map(|rule| (NameGlob::new(&rule.pattern), compile(&rule.pattern, &rule.level)))
            .collect();
        Self { exact, globs, applies, context: context.clone() }
    }

    pub fn walk(
        &self,
        tool: &str,
        arguments: Option<&Map<String, Value>>,
        trust_state: TrustState,
        visit: &mut dyn FnMut(RuleMatch<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let globs = self.globs.iter().filter(|(glob, _)| glob.is_match(tool)).map(|(_, level)| level);
        let named = self.exact.get(tool);
        let globs = globs.filter(|level| named.is_none_or(|named| named.source != level.source));
        for level in named.into_iter().chain(globs) {
            for (conditions, case) in &level.cases {
                let mode = if case.widens() { MatchMode::EveryReading } else { MatchMode::AnyReading };
                if arguments.is_some_and(|arguments| conditions.hold(arguments, &self.context, mode)) {
                    let ignored = self.ignored_reason(*case, trust_state);
                    visit(RuleMatch { level: *case, source: &level.source_of_case, ignored })?;
                }
            }
            let ignored = self.ignored_reason(level.rest, trust_state);
            visit(RuleMatch { level: level.rest, source: &level.source, ignored })?;
        }
        ControlFlow::Continue(())
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
