//! Everything that decides what a definition runs and what it may do, as lines and as a digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::contents::{self, digest_file};
use super::program::{self, ProgramLookup};
use super::real;
use crate::config::spec::{self, Condition, Config, Definition, Launch, LevelRule, Remote, Stdio};
use crate::policy::compile::{default_level, in_folder};
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
    pub fn of(definition: &Definition, config: &Config) -> Self {
        let mut lines = Lines::default();
        let folder = definition.folder.as_deref();
        let project = folder.filter(|_| definition.scope.needs_trust()).map(real);
        if let Some(project) = &project {
            lines.add("project", project.display().to_string());
        }
        let context = LaunchContext { folder, project: project.as_deref(), watch: watched(definition) };
        launch(&mut lines, "", &definition.spec.launch, &context);
        if let Some(fallback) = &definition.spec.fallback {
            launch(&mut lines, "fallback.", fallback, &context);
        }
        if let Some(dev) = &definition.spec.dev {
            lines.add("dev.watch", dev.watch.join(" "));
        }
        let launch = lines.digest();
        let exceptions = levels(&mut lines, definition, config);
        Self { digest: lines.digest(), launch, lines: lines.shown, exceptions }
    }

    /// Whether trust in `self` covers `now`: the same launch and allow-levels, and no exception removed.
    pub fn covers(&self, now: &Self) -> bool {
        let kept = |(key, value): (&String, &String)| now.exceptions.get(key) == Some(value);
        self.digest == now.digest && (self.widening().is_empty() || self.exceptions.iter().all(kept))
    }

    /// The allow-levels that take effect with trust, as listed in the prompt.
    pub fn widening(&self) -> Vec<String> {
        let widens = |key: &str| key.starts_with("tools.") || key.starts_with("policy.");
        self.lines.iter().filter(|(key, _)| widens(key)).map(|(key, value)| format!("{key}: {value}")).collect()
    }
}

/// The exact lines, and the lines to show.
#[derive(Default)]
struct Lines {
    exact: BTreeMap<String, String>,
    shown: BTreeMap<String, String>,
}

impl Lines {
    fn add(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        let shown = if looks_secret(&value) { masked(&key, &value) } else { value.clone() };
        self.shown.insert(key.clone(), shown);
        self.exact.insert(key, value);
    }

    /// Shows the value only if it consists of references such as `${TOKEN}`.
    fn add_value(&mut self, key: String, value: &str) {
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

struct LaunchContext<'a> {
    folder: Option<&'a Path>,
    /// The canonical path of the project. `None` for definitions that need no trust.
    project: Option<&'a Path>,
    watch: Vec<NameGlob>,
}

/// Files that match `dev.watch` are under development: they may change without a question, and the prompt says so.
fn watched(definition: &Definition) -> Vec<NameGlob> {
    definition.spec.dev.iter().flat_map(|dev| &dev.watch).map(|pattern| NameGlob::new(pattern)).collect()
}

fn launch(lines: &mut Lines, prefix: &str, launch: &Launch, context: &LaunchContext<'_>) {
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

fn stdio(lines: &mut Lines, prefix: &str, stdio: &Stdio, context: &LaunchContext<'_>) {
    lines.add(format!("{prefix}command"), &stdio.command);
    let folder = cwd(stdio, context.folder);
    let program = program::find(stdio, folder.as_deref(), context.folder);
    let resolved = match &program {
        ProgramLookup::Found(path) => path.display().to_string(),
        ProgramLookup::NotFound => "(not found)".to_owned(),
        ProgramLookup::Deferred => program::DEFERRED.to_owned(),
    };
    lines.add(format!("{prefix}program"), resolved);
    let mut next_is_secret = false;
    for (index, argument) in stdio.args.iter().enumerate() {
        let key = format!("{prefix}args.{index}");
        // In `--token value`, the flag shows that the value is a secret.
        if next_is_secret {
            lines.add_value(key, argument);
        } else {
            lines.add(key, argument);
        }
        next_is_secret = argument.starts_with('-') && !argument.contains('=') && names_secret(argument);
    }
    for (name, value) in &stdio.env {
        match value {
            Some(value) => lines.add_value(format!("{prefix}env.{name}"), value),
            None => lines.add(format!("{prefix}env.{name}"), "(unset)"),
        }
    }
    if let Some(cwd) = &stdio.cwd {
        lines.add(format!("{prefix}cwd"), cwd);
    }
    if let Some(file) = &stdio.env_file {
        lines.add(format!("{prefix}envFile"), file);
        let content = program::env_file(file, context.folder).and_then(|path| digest_file(&path));
        lines.add(format!("{prefix}envFile content"), content.unwrap_or_else(|| "(not there)".to_owned()));
    }
    if stdio.inherit_env {
        lines.add(format!("{prefix}inheritEnv"), "true");
    }
    if let Some(project) = context.project {
        let contents = contents::programs(program.path(), &stdio.args, folder.as_deref(), context.folder, project);
        for (name, content) in contents {
            if !context.watch.iter().any(|watch| watch.is_match(&name)) {
                lines.add(format!("{prefix}content {name}"), content);
            }
        }
    }
}

fn remote(lines: &mut Lines, prefix: &str, remote: &Remote) {
    let (key, url) = (format!("{prefix}url"), &remote.url);
    lines.exact.insert(key.clone(), url.clone());
    // The query often contains keys.
    let shown = match url.split_once('?') {
        Some((base, query)) if !only_references(query) => format!("{base}?{}", masked(&key, query)),
        _ if looks_secret(url) => masked(&key, url),
        _ => url.clone(),
    };
    lines.shown.insert(key, shown);
    for (name, value) in &remote.headers {
        lines.add_value(format!("{prefix}headers.{name}"), value);
    }
    if let Some(oauth) = &remote.oauth {
        let id = oauth.client_id.as_deref().unwrap_or("(registered)");
        let port = oauth.callback_port.map_or(String::new(), |port| format!(" port {port}"));
        lines.add(format!("{prefix}oauth"), format!("client {id} scopes {}{port}", oauth.scopes.join(" ")));
        if let Some(secret) = &oauth.client_secret {
            lines.add_value(format!("{prefix}oauth.clientSecret"), secret);
        }
    }
}

/// Adds all rules of the definition and its file that allow calls without asking. Returns the rules that restrict them.
fn levels(lines: &mut Lines, definition: &Definition, config: &Config) -> BTreeMap<String, String> {
    let mut exceptions = BTreeMap::new();
    let mut add = |widens: bool, key: String, value: &str| {
        if widens {
            lines.add(key, value);
        } else {
            exceptions.insert(key, value.to_owned());
        }
    };
    for rule in &definition.spec.tools {
        let widens = rule.level.rest.widens() || rule.level.cases.iter().any(|case| case.level.widens());
        add(widens, format!("tools.{}", rule.pattern), &describe_rule(&rule.level));
    }
    let own = |policy: &&spec::FilePolicy| policy.scope == definition.scope && policy.file == definition.file;
    for policy in config.policies.iter().filter(own) {
        let default = policy.default.map(default_level);
        let levels = [
            ("policy.default", default),
            ("policy.readOnly", policy.read_only),
            ("policy.destructive", policy.destructive),
        ];
        for (key, level) in levels {
            if let Some(level) = level {
                add(level.widens(), key.to_owned(), level.as_str());
            }
        }
        let fits = |entry: &&spec::Matcher| NameGlob::new(&entry.server).is_match(definition.name.as_str());
        for entry in policy.allowlist.iter().filter(fits) {
            add(true, format!("policy.allowlist {}/{}", entry.server, entry.tool), "allow-always");
        }
        for entry in policy.denylist.iter().filter(fits) {
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

pub(super) fn cwd(stdio: &Stdio, folder: Option<&Path>) -> Option<PathBuf> {
    match &stdio.cwd {
        Some(cwd) => in_folder(cwd, folder),
        None => folder.map(Path::to_path_buf),
    }
}
