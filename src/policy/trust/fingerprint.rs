//! Everything that decides what a definition runs and what it may do, as lines and as a digest.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::contents::digest_file;
use super::files::{self, KnownLaunch, Project};
use super::program::{self, ProgramLookup};
use super::runners;
use crate::config::Environment;
use crate::config::expand::{self, Values};
use crate::config::risky;
use crate::config::shape::secret_spans;
use crate::config::shape::secrets::find_in_url;
use crate::config::spec::{
    Action, Condition, Config, Definition, Dev, FilePolicy, Grant, Launch, LevelRule, Matcher, OAuth, Remote, Sandbox,
    ServerSpec, Stdio, ToolRule,
};
use crate::model::ToolId;
use crate::paths::canonical;
use crate::policy::compile::default_level;
use crate::policy::glob::NameGlob;
use crate::policy::pin::{hex, sorted};
use crate::text::{MASK, looks_secret};

/// What the user saw and trusted. The digest covers the values as written. The lines are stored and shown, so they
/// contain no literal value of `env` or `headers` and nothing that looks like a credential.
///
/// Changing the text of a line asks every user again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    pub digest: String,
    /// The same without levels: what is started or connected to.
    pub launch: String,
    pub lines: BTreeMap<String, String>,
    /// What restricts the allow-levels above: `delete_*: deny` next to `*: allow-always`. Adding one needs no question,
    /// but removing one would allow more than was trusted.
    #[serde(default)]
    pub exceptions: BTreeMap<String, String>,
}

impl Fingerprint {
    /// `environment` is the one that the definition starts with.
    pub fn of(definition: &Definition, config: &Config, environment: &Environment) -> Self {
        // A new field of a definition has to be classified here: does it decide what runs, or what it may do?
        #[rustfmt::skip]
        let ServerSpec {
            launch: first, fallback, dev, tools,
            enabled: _, auto_start: _, description: _, startup_timeout: _, timeout: _, idle_timeout: _,
        } = &definition.spec;
        let mut lines = Lines::default();
        let folder = definition.folder.as_deref();
        let project = folder.filter(|_| definition.scope.needs_trust()).map(|folder| Project::new(folder, environment));
        if let Some(project) = &project {
            lines.add("project", project.in_main(&project.folder));
        }
        let context =
            LaunchContext { values: Values::in_folder(folder, environment), project, watch: watched(definition) };
        launch(&mut lines, "", first, &context);
        if let Some(fallback) = fallback {
            launch(&mut lines, "fallback.", fallback, &context);
        }
        if let Some(Dev { watch }) = dev {
            lines.add("dev.watch", watch.join(" "));
        }
        let launch = lines.digest();
        let exceptions = levels(&mut lines, tools, definition, config);
        actions(&mut lines, definition, config);
        Self { digest: lines.digest(), launch, lines: lines.shown, exceptions }
    }

    /// Of the agreement that the user's own servers may run in a folder.
    pub fn of_folder(folder: &Path) -> Self {
        let mut lines = Lines::default();
        lines.add("folder", folder.display().to_string());
        Self::of_lines(lines)
    }

    /// Without levels.
    pub(super) fn of_lines(lines: Lines) -> Self {
        let digest = lines.digest();
        Self { launch: digest.clone(), digest, lines: lines.shown, exceptions: BTreeMap::new() }
    }

    /// The program that is started, if it is known.
    pub fn program(&self) -> Option<&Path> {
        self.lines.get("program").map(Path::new).filter(|program| program.is_absolute())
    }

    pub fn is_of_folder(&self) -> bool {
        self.lines.contains_key("folder")
    }

    /// Whether trust in `self` covers `now`: the same launch and allow-levels, and no exception removed.
    pub fn covers(&self, now: &Self) -> bool {
        let kept = |(key, value): (&String, &String)| now.exceptions.get(key) == Some(value);
        self.digest == now.digest && (self.widening().is_empty() || self.exceptions.iter().all(kept))
    }

    /// Names exactly what the user is shown: everything that trust depends on.
    pub fn shown_digest(&self) -> String {
        match self.exceptions.is_empty() {
            true => self.digest.clone(),
            false => hex(&Sha256::digest(json!([self.digest, self.exceptions]).to_string())),
        }
    }

    /// The allow-levels that take effect with trust, as listed in the prompt.
    pub fn widening(&self) -> Vec<String> {
        let widens = |key: &str| key.starts_with("tools.") || key.starts_with("policy.");
        self.lines.iter().filter(|(key, _)| widens(key)).map(|(key, value)| format!("{key}: {value}")).collect()
    }
}

/// The exact lines, and the lines to show.
#[derive(Default)]
pub(super) struct Lines {
    exact: BTreeMap<String, String>,
    shown: BTreeMap<String, String>,
}

impl Lines {
    pub(super) fn add(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let value = value.into();
        let secrets = secret_spans::in_text(&value);
        self.add_with_secrets(key.into(), value, secrets);
    }

    fn add_with_secrets(&mut self, key: String, value: String, secrets: Vec<Range<usize>>) {
        let shown = match looks_secret(&value) {
            true => masked(&key, &value),
            false => secret_spans::replace(&value, secrets, |secret| masked(&key, secret)),
        };
        self.shown.insert(key.clone(), shown);
        self.exact.insert(key, value);
    }

    /// Shows the value only if it consists of references such as `${TOKEN}`.
    pub(super) fn add_value(&mut self, key: String, value: &str) {
        let shown = if only_references(value) { value.to_owned() } else { masked(&key, value) };
        self.shown.insert(key.clone(), shown);
        self.exact.insert(key, value.to_owned());
    }

    fn digest(&self) -> String {
        hex(&Sha256::digest(json!(self.exact).to_string()))
    }
}

/// `•••#1a2b`: the tag shows that a value changed, but is too short to guess the value.
fn masked(key: &str, value: &str) -> String {
    let tag = hex(&Sha256::digest(format!("{key}\0{value}")));
    format!("{MASK}#{}", tag.get(..4).unwrap_or_default())
}

/// Whether a value contains only `${…}` and a scheme such as `Bearer`.
fn only_references(value: &str) -> bool {
    let mut rest = value;
    let mut outside = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else { return false };
        // A default is also a literal.
        if inside.contains(":-") {
            return false;
        }
        outside.push_str(before);
        rest = behind;
    }
    outside.push_str(rest);
    value.contains("${") && matches!(outside.trim(), "" | "Bearer" | "Basic" | "token" | "Token")
}

struct LaunchContext {
    /// The folder and the environment, which are known before the definition is trusted.
    values: Values,
    /// `None` for definitions that need no trust.
    project: Option<Project>,
    watch: Vec<NameGlob>,
}

/// Files that match `dev.watch` are under development: they may change without a question, and the prompt says so.
fn watched(definition: &Definition) -> Vec<NameGlob> {
    definition.spec.dev.iter().flat_map(|dev| &dev.watch).map(|pattern| NameGlob::new(pattern)).collect()
}

fn launch(lines: &mut Lines, prefix: &str, launch: &Launch, context: &LaunchContext) {
    lines.add(format!("{prefix}transport"), launch.transport());
    match launch {
        Launch::Stdio(stdio) => self::stdio(lines, prefix, stdio, context),
        Launch::Tcp { host, port } => lines.add(format!("{prefix}address"), format!("{host}:{port}")),
        Launch::Http(remote) | Launch::Sse(remote) => self::remote(lines, prefix, remote),
        Launch::Sdk { name } => lines.add(format!("{prefix}name"), name),
        Launch::ClaudeAiProxy { id, remote } => {
            lines.add(format!("{prefix}id"), id);
            self::remote(lines, prefix, remote);
        }
    }
}

fn stdio(lines: &mut Lines, prefix: &str, stdio: &Stdio, context: &LaunchContext) {
    let Stdio { command, args, env, env_file, cwd: written_cwd, inherit_env, sandbox } = stdio;
    lines.add(format!("{prefix}command"), command);
    let values = &context.values;
    let program = program::find(stdio, cwd(stdio, values).as_deref(), values);
    let resolved = match &program {
        ProgramLookup::Found(path) => match &context.project {
            Some(project) => project.in_main(path),
            None => path.display().to_string(),
        },
        ProgramLookup::Own(_) => program::OWN.to_owned(),
        ProgramLookup::NotFound => "(not found)".to_owned(),
        ProgramLookup::Deferred => program::DEFERRED.to_owned(),
    };
    lines.add(format!("{prefix}program"), resolved);
    arguments(lines, prefix, args);
    for (name, value) in env {
        match value {
            Some(value) => lines.add_value(format!("{prefix}env.{name}"), value),
            None => lines.add(format!("{prefix}env.{name}"), "(unset)"),
        }
    }
    if let Some(cwd) = written_cwd {
        lines.add(format!("{prefix}cwd"), cwd);
    }
    if let Some(file) = env_file {
        lines.add(format!("{prefix}envFile"), file);
        let path = program::env_file(file, values);
        let content = path.as_deref().and_then(digest_file);
        lines.add(format!("{prefix}envFile content"), content.unwrap_or_else(|| "(not there)".to_owned()));
        let link = |project: &Project| path.filter(|path| project.is_link_out(path));
        if let Some(path) = context.project.as_ref().and_then(link) {
            lines.add(format!("{prefix}envFile leads to"), canonical(&path).display().to_string());
        }
    }
    if *inherit_env {
        lines.add(format!("{prefix}inheritEnv"), "true");
    }
    for (key, value) in sandbox.iter().flat_map(Sandbox::lines) {
        lines.add(format!("{prefix}sandbox.{key}"), value);
    }
    for written in sandbox.iter().flat_map(Sandbox::paths) {
        let path = expand::known_text(written, values)
            .map(|path| expand::resolve(&path, values.run_folder.as_deref(), values));
        let link = |project: &Project| path.filter(|path| project.is_link_out(path));
        if let Some(path) = context.project.as_ref().and_then(link) {
            lines.add(format!("{prefix}sandbox {written} leads to"), canonical(&path).display().to_string());
        }
    }
    if let (Some(project), Some(folder)) = (&context.project, values.workspace_folder.as_deref()) {
        let known = known_launch(stdio, folder, values);
        let decided = runners::decided(&known, project);
        for (name, content) in files::programs(&known, project).into_iter().chain(decided.contents) {
            if !context.watch.iter().any(|watch| watch.is_match(&name)) {
                lines.add(format!("{prefix}content {name}"), content);
            }
        }
        for (name, value) in decided.settings {
            let key = format!("{prefix}runner {name}");
            // The name of a script must not hide it.
            match name.rsplit(' ').next().is_some_and(|key| names_secret(key) && !name.contains(" scripts.")) {
                true => lines.add_value(key, &value),
                false => lines.add(key, value),
            }
        }
    }
}

pub(super) fn arguments(lines: &mut Lines, prefix: &str, args: &[String]) {
    let mut next_is_secret = false;
    for (index, (argument, secrets)) in args.iter().zip(secret_spans::in_arguments(args)).enumerate() {
        let key = format!("{prefix}args.{index}");
        // In `--token value`, the flag shows that the value is a secret.
        if next_is_secret {
            lines.add_value(key, argument);
        } else {
            lines.add_with_secrets(key, argument.clone(), secrets);
        }
        next_is_secret = argument.starts_with('-') && !argument.contains('=') && names_secret(argument);
    }
}

/// The launch as a start will expand it. Values of inputs and the keyring are not known yet.
fn known_launch(stdio: &Stdio, folder: &Path, values: &Values) -> KnownLaunch {
    let written = stdio.cwd.as_deref().and_then(|written| expand::text(written, values).ok());
    let cwd = written.map_or(folder.to_path_buf(), |cwd| expand::resolve(&cwd, Some(folder), values));
    let from_file = program::env_file_entries(stdio, values);
    let own = stdio.env.iter().filter_map(|(name, value)| Some((name, expand::partly(value.as_deref()?, values))));
    let all = own.chain(from_file.iter().map(|(name, value)| (name, value.clone())));
    KnownLaunch {
        command: expand::partly(&stdio.command, values),
        args: stdio.args.iter().map(|argument| expand::partly(argument, values)).collect(),
        code: all
            .filter(|(name, _)| risky::effect(name) == Some(risky::Effect::Code))
            .map(|(_, value)| value)
            .collect(),
        program: program::find_expanded(stdio, &cwd, values).path().map(Path::to_path_buf),
        cwd,
    }
}

pub(super) fn url(lines: &mut Lines, prefix: &str, url: &str) {
    let key = format!("{prefix}url");
    lines.exact.insert(key.clone(), url.to_owned());
    // The query often contains keys.
    let shown = match url.split_once('?') {
        Some((base, query)) if !only_references(query) => {
            format!("{}?{}", without_secrets(&key, base), masked(&key, query))
        }
        _ if looks_secret(url) => masked(&key, url),
        _ => without_secrets(&key, url),
    };
    lines.shown.insert(key, shown);
}

/// A URL without its password and tokens.
fn without_secrets(key: &str, url: &str) -> String {
    let spans = find_in_url(url).into_iter().map(|(span, _)| span).collect();
    secret_spans::replace(url, spans, |secret| masked(key, secret))
}

fn remote(lines: &mut Lines, prefix: &str, remote: &Remote) {
    let Remote { url, headers, oauth } = remote;
    self::url(lines, prefix, url);
    for (name, value) in headers {
        lines.add_value(format!("{prefix}headers.{name}"), value);
    }
    if let Some(OAuth { client_id, client_secret, private_key, scopes, callback_port, grant }) = oauth {
        let id = client_id.as_deref().unwrap_or("(registered)");
        let port = callback_port.map_or(String::new(), |port| format!(" port {port}"));
        lines.add(format!("{prefix}oauth"), format!("client {id} scopes {}{port}", scopes.join(" ")));
        if let Some(secret) = client_secret {
            lines.add_value(format!("{prefix}oauth.clientSecret"), secret);
        }
        if let Some(key) = private_key {
            lines.add_value(format!("{prefix}oauth.privateKey"), key);
        }
        if *grant != Grant::default() {
            lines.add(format!("{prefix}oauth.grantType"), grant.name());
        }
    }
}

/// Adds the actions of the same file for this server: they decide what it is called with.
fn actions(lines: &mut Lines, definition: &Definition, config: &Config) {
    let own = |action: &&Action| action.scope == definition.scope && action.file == definition.file;
    for (index, action) in config.actions.iter().filter(own).enumerate() {
        let Some(tool) = ToolId::parse(&action.tool).filter(|tool| tool.server == definition.name) else { continue };
        let arguments = sorted(&action.arguments);
        lines.add(format!("actions.{index}"), format!("`{}` runs `{}` with {arguments}", action.title, tool.tool));
    }
}

/// Adds all rules of the definition and its file that allow calls without asking. Returns the rules that restrict them.
fn levels(lines: &mut Lines, tools: &[ToolRule], definition: &Definition, config: &Config) -> BTreeMap<String, String> {
    let mut exceptions = BTreeMap::new();
    let mut add = |widens: bool, key: String, value: &str| {
        if widens {
            lines.add(key, value);
        } else {
            exceptions.insert(key, value.to_owned());
        }
    };
    for ToolRule { pattern, level } in tools {
        let widens = level.rest.widens() || level.cases.iter().any(|case| case.level.widens());
        add(widens, format!("tools.{pattern}"), &describe_rule(level));
    }
    let own = |policy: &&FilePolicy| policy.scope == definition.scope && policy.file == definition.file;
    for policy in config.policies.iter().filter(own) {
        // `commands` only restricts.
        let FilePolicy {
            default,
            allowlist,
            denylist,
            read_only,
            destructive,
            commands: _,
            is_invalid: _,
            scope: _,
            file: _,
        } = policy;
        let levels = [
            ("policy.default", default.map(default_level)),
            ("policy.readOnly", *read_only),
            ("policy.destructive", *destructive),
        ];
        for (key, level) in levels {
            if let Some(level) = level {
                add(level.widens(), key.to_owned(), level.as_str());
            }
        }
        let fits = |entry: &&Matcher| NameGlob::new(&entry.server).is_match(definition.name.as_str());
        for entry in allowlist.iter().filter(fits) {
            add(true, format!("policy.allowlist {}/{}", entry.server, entry.tool), "allow-always");
        }
        for entry in denylist.iter().filter(fits) {
            add(false, format!("policy.denylist {}/{}", entry.server, entry.tool), "deny");
        }
    }
    exceptions
}

/// A rule on one line: `allow-session when path inside src; otherwise require-approval`.
fn describe_rule(rule: &LevelRule) -> String {
    let mut text = String::new();
    for case in &rule.cases {
        let conditions: Vec<String> =
            case.when.iter().map(|(path, condition)| format!("{path} {}", describe_condition(condition))).collect();
        text.push_str(&format!("{} when {}; otherwise ", case.level, conditions.join(" and ")));
    }
    text.push_str(rule.rest.as_str());
    text
}

fn describe_condition(condition: &Condition) -> String {
    match condition {
        Condition::Glob(glob) => format!("like {glob}"),
        Condition::In(values) => format!("in {}", sorted(&Value::Array(values.clone()))),
        Condition::Matches(regex) => format!("matches {regex}"),
        Condition::Inside(dir) => format!("inside {dir}"),
        Condition::Max(max) => format!("at most {max}"),
    }
}

fn names_secret(flag: &str) -> bool {
    let flag = flag.to_ascii_lowercase();
    ["token", "secret", "password", "passwd", "key", "auth"].iter().any(|word| flag.contains(word))
}

pub(super) fn cwd(stdio: &Stdio, values: &Values) -> Option<PathBuf> {
    match &stdio.cwd {
        Some(cwd) => {
            Some(expand::resolve(&expand::known_text(cwd, values)?, values.workspace_folder.as_deref(), values))
        }
        None => values.workspace_folder.clone(),
    }
}
