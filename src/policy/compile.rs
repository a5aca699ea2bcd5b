//! The rules of all files, made ready: globs and regular expressions are compiled and sorted by server once per
//! load, so that ruling on a call looks at little and allocates less.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::condition::{Conditions, Ground, Reach};
use super::glob::{NameGlob, is_glob};
use super::place::place;
use super::{ANOTHER_FILE, NOT_TRUSTED, Ruling, Said, SessionLevels, Standing};
use crate::config::spec::{self, Config, Definition, FilePolicy, LevelRule, Matcher, ToolRule};
use crate::model::{Level, Scope, ServerName};

/// Everything that the files and the session say about tools and programs.
pub struct Rules {
    pub(super) servers: BTreeMap<ServerName, ServerRules>,
    commands: Vec<Commands>,
    built_in: Arc<str>,
    /// The source of a ruling on a disabled tool.
    pub(super) disabled_by_user: Arc<str>,
}

/// What is said about the tools of one server.
pub(super) struct ServerRules {
    pub managed: bool,
    pub managed_denylist: Vec<Listed>,
    pub denylist: Vec<Listed>,
    /// Tools that the user disabled with an answer. Taking rights away comes first.
    pub disabled: BTreeSet<String>,
    pub session: ToolRules,
    pub tools: ToolRules,
    pub allowlist: Vec<Listed>,
    pub read_only: Vec<Voice>,
    pub destructive: Vec<Voice>,
    pub default: Vec<Voice>,
}

/// One entry of a denylist or allowlist whose server part fits.
pub(super) struct Listed {
    pub tool: NameGlob,
    pub source: Arc<str>,
    pub counts: Counts,
}

/// One file's word where the narrowest of all counts.
pub(super) struct Voice {
    pub level: Level,
    pub source: Arc<str>,
    pub counts: Counts,
}

/// Whether words count for a server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counts {
    Always,
    /// They widen, and stand in the file that defines the server.
    OnceTrusted,
    /// They widen, and stand in a project file that does not define the server.
    Never,
}

impl Counts {
    /// Widening words of a project file count for the servers of that very file, once the user has trusted them.
    fn of(level: Level, voice: (Scope, Option<&Path>), definition: &Definition) -> Self {
        let (scope, file) = voice;
        match () {
            () if !scope.needs_trust() || !level.widens() => Self::Always,
            () if definition.scope == scope && definition.file.as_deref() == file => Self::OnceTrusted,
            () => Self::Never,
        }
    }

    pub fn refused(self, standing: Standing) -> Option<&'static str> {
        match (self, standing) {
            (Self::Always, _) | (Self::OnceTrusted, Standing::Trusted) => None,
            (Self::OnceTrusted, Standing::Untrusted) => Some(NOT_TRUSTED),
            (Self::Never, _) => Some(ANOTHER_FILE),
        }
    }
}

struct Commands {
    programs: Vec<String>,
    source: Arc<str>,
}

impl Rules {
    /// `workspace` is the folder that `${workspaceFolder}` means for servers that no project file defines.
    pub fn new(config: &Config, session: &SessionLevels, workspace: Option<&Path>) -> Self {
        let servers = config
            .servers
            .iter()
            .map(|(name, definition)| (name.clone(), ServerRules::new(config, definition, session, workspace)))
            .collect();
        let commands = config
            .policies
            .iter()
            .filter_map(|voice| {
                let programs = voice.commands.clone()?;
                Some(Commands { programs, source: voice_source(voice, None, "policy.commands") })
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

    /// Whether every file that limits programs has this one. A bare name in the list stands for the program that the
    /// PATH gives, so `./npx` is not `npx`; a path stands for exactly that file. `Err` says which list lacks it.
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
        let managed = |voice: &&FilePolicy| voice.scope == Scope::Managed;
        let name = definition.name.as_str();
        let ground = Ground::of(definition, workspace);
        let denied = |voices: &mut dyn Iterator<Item = &FilePolicy>| {
            voices.flat_map(|voice| listed(voice, &voice.denylist, "denylist", Level::Deny, definition)).collect()
        };
        let voices = |what: &str, level: &dyn Fn(&FilePolicy) -> Option<Level>| {
            let said = config.policies.iter().filter_map(|voice| {
                let level = level(voice)?;
                let counts = Counts::of(level, (voice.scope, voice.file.as_deref()), definition);
                Some(Voice { level, source: voice_source(voice, None, what), counts })
            });
            said.collect()
        };
        Self {
            managed: definition.scope == Scope::Managed,
            managed_denylist: denied(&mut config.policies.iter().filter(managed)),
            denylist: denied(&mut config.policies.iter().filter(|voice| !managed(voice))),
            disabled: session.disabled_of(&definition.name),
            session: ToolRules::new(session.of(&definition.name), Counts::Always, &ground, &|pattern| {
                format!("session level {name}.{pattern}").into()
            }),
            tools: ToolRules::new(
                &definition.spec.tools,
                Counts::of(Level::AllowAlways, (definition.scope, definition.file.as_deref()), definition),
                &ground,
                &|pattern| {
                    let line = definition.rule_lines.get(pattern).copied().unwrap_or(definition.line);
                    let place = place(definition.scope, definition.file.as_deref(), Some(line));
                    format!("{place} tools.{pattern}").into()
                },
            ),
            allowlist: config
                .policies
                .iter()
                .flat_map(|voice| listed(voice, &voice.allowlist, "allowlist", Level::AllowAlways, definition))
                .collect(),
            read_only: voices("policy.readOnly", &|voice| voice.read_only),
            destructive: voices("policy.destructive", &|voice| voice.destructive),
            default: voices("policy.default", &|voice| voice.default.map(default_level)),
        }
    }
}

fn listed<'a>(
    voice: &'a FilePolicy,
    list: &'a [Matcher],
    what: &'a str,
    level: Level,
    definition: &'a Definition,
) -> impl Iterator<Item = Listed> + 'a {
    let counts = Counts::of(level, (voice.scope, voice.file.as_deref()), definition);
    list.iter().filter(|matcher| NameGlob::new(&matcher.server).is_match(definition.name.as_str())).map(
        move |matcher| Listed {
            tool: NameGlob::new(&matcher.tool),
            source: voice_source(
                voice,
                Some(matcher.line),
                &format!("policy.{what} {}/{}", matcher.server, matcher.tool),
            ),
            counts,
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

fn voice_source(voice: &FilePolicy, line: Option<u32>, what: &str) -> Arc<str> {
    format!("{} {what}", place(voice.scope, voice.file.as_deref(), line)).into()
}

/// The `tools` of one definition: exact names first, then globs, the longest first.
pub(super) struct ToolRules {
    exact: HashMap<String, ToolLevel>,
    globs: Vec<(NameGlob, ToolLevel)>,
    counts: Counts,
    ground: Ground,
}

struct ToolLevel {
    cases: Vec<(Conditions, Level)>,
    rest: Level,
    source: Arc<str>,
    /// Where a level depends on the arguments, the explanation says so.
    source_of_case: Arc<str>,
}

impl ToolRules {
    fn new(rules: &[ToolRule], counts: Counts, ground: &Ground, source: &dyn Fn(&str) -> Arc<str>) -> Self {
        let compile = |pattern: &str, level: &LevelRule| {
            let source = source(pattern);
            ToolLevel {
                cases: level.cases.iter().map(|case| (Conditions::new(&case.when, ground), case.level)).collect(),
                rest: level.rest,
                source_of_case: format!("{source} (for these arguments)").into(),
                source,
            }
        };
        let exact = rules.iter().map(|rule| (rule.pattern.clone(), compile(&rule.pattern, &rule.level))).collect();
        let mut sorted: Vec<&ToolRule> = rules.iter().filter(|rule| is_glob(&rule.pattern)).collect();
        // A stable sort: of two globs of the same length, the one that stands first in the file.
        sorted.sort_by_key(|rule| std::cmp::Reverse(rule.pattern.chars().count()));
        let globs = sorted
            .into_iter()
            .map(|rule| (NameGlob::new(&rule.pattern), compile(&rule.pattern, &rule.level)))
            .collect();
        Self { exact, globs, counts, ground: ground.clone() }
    }

    pub fn walk(
        &self,
        tool: &str,
        arguments: Option<&Map<String, Value>>,
        standing: Standing,
        visit: &mut dyn FnMut(Said<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let globs = self.globs.iter().filter(|(glob, _)| glob.is_match(tool)).map(|(_, level)| level);
        let named = self.exact.get(tool);
        let globs = globs.filter(|level| named.is_none_or(|named| named.source != level.source));
        for level in named.into_iter().chain(globs) {
            for (conditions, case) in &level.cases {
                let reach = if case.widens() { Reach::Certain } else { Reach::Possible };
                if arguments.is_some_and(|arguments| conditions.hold(arguments, &self.ground, reach)) {
                    let ignored = self.refused(*case, standing);
                    visit(Said { level: *case, source: &level.source_of_case, ignored })?;
                }
            }
            visit(Said { level: level.rest, source: &level.source, ignored: self.refused(level.rest, standing) })?;
        }
        ControlFlow::Continue(())
    }

    fn refused(&self, level: Level, standing: Standing) -> Option<&'static str> {
        if level.widens() { self.counts.refused(standing) } else { None }
    }
}

/// `dir` with `${workspaceFolder}` filled in; `None` when anything else would have to be expanded.
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
