//! The launches in the user's own config, for a tripwire: a program that changes one is noticed. Only what is written
//! there counts, so an update of a program or another PATH asks nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::fingerprint::{Lines, arguments, url};
use super::{Fingerprint, Question, Summary, TrustKey, TrustRecord};
use crate::config::spec::{Definition, Grant, Launch, Remote, Sandbox, Stdio};
use crate::config::{Config, Content, Environment, Source, load, risky};
use crate::model::Scope;
use crate::paths::canonical;
use crate::settings::Settings;

/// The line that only these fingerprints have.
const FILE: &str = "file";

impl TrustKey {
    /// The key of a launch in the user's own config. `None` for all other definitions.
    pub fn of_own(definition: &Definition) -> Option<Self> {
        let file = definition.file.as_deref().filter(|_| definition.scope == Scope::User)?;
        Some(Self { project: canonical(file), server: definition.key.clone() })
    }

    /// Whether this is a launch in this file of the user.
    pub fn is_in(&self, file: &Path) -> bool {
        self.project == canonical(file)
    }
}

/// What the user's own config starts or connects to. `None` for all other definitions.
pub fn own_launch(definition: &Definition) -> Option<(TrustKey, Arc<Fingerprint>)> {
    let key = TrustKey::of_own(definition)?;
    let fingerprint = Arc::new(Fingerprint::of_own_launch(definition, &key));
    Some((key, fingerprint))
}

impl Fingerprint {
    fn of_own_launch(definition: &Definition, key: &TrustKey) -> Self {
        let mut lines = Lines::default();
        lines.add(FILE, key.project.display().to_string());
        launch(&mut lines, "", &definition.spec.launch);
        if let Some(fallback) = &definition.spec.fallback {
            launch(&mut lines, "fallback.", fallback);
        }
        Self::of_lines(lines)
    }

    pub fn is_of_own_launch(&self) -> bool {
        self.lines.contains_key(FILE)
    }
}

impl Question {
    /// The question whether the user made this change.
    pub fn about_own_launch(
        key: TrustKey,
        fingerprint: Arc<Fingerprint>,
        record: &TrustRecord,
        definition: &Definition,
        environment: &Environment,
    ) -> Self {
        let shown = Fingerprint::of(definition, &Config::default(), environment);
        Self {
            difference: record.trusted.as_ref().map(|known| known.difference(&fingerprint)),
            same_launch: false,
            was_denied: record.denied.as_deref() == Some(&*fingerprint.digest),
            summary: Summary::of(definition, &shown, environment),
            key,
            fingerprint,
        }
    }

    pub fn is_about_own_launch(&self) -> bool {
        self.fingerprint.is_of_own_launch()
    }
}

/// The launches in a config file with this text. Empty if it is not the user's own.
pub fn own_launches(source: &Source, text: &str) -> BTreeMap<TrustKey, Arc<Fingerprint>> {
    if source.scope != Scope::User {
        return BTreeMap::new();
    }
    let contents = [(source.clone(), Content::Text(text.into()))];
    let loaded = load(&contents, &BTreeMap::new(), &Settings::default().limits);
    loaded.config.servers.values().filter_map(|definition| own_launch(definition)).collect()
}

/// The launches that a change of a file adds or replaces.
pub fn changed_launches(source: &Source, before: &str, after: &str) -> BTreeMap<TrustKey, Arc<Fingerprint>> {
    let old = own_launches(source, before);
    let mut new = own_launches(source, after);
    new.retain(|key, fingerprint| old.get(key) != Some(fingerprint));
    new
}

fn launch(lines: &mut Lines, prefix: &str, launch: &Launch) {
    lines.add(format!("{prefix}transport"), launch.transport());
    match launch {
        Launch::Stdio(stdio) => self::stdio(lines, prefix, stdio),
        Launch::Tcp { host, port } => lines.add(format!("{prefix}address"), format!("{host}:{port}")),
        Launch::Http(remote) | Launch::Sse(remote) => self::remote(lines, prefix, remote),
        Launch::Sdk { name } => lines.add(format!("{prefix}name"), name),
        Launch::ClaudeAiProxy { id, remote } => {
            lines.add(format!("{prefix}id"), id);
            self::remote(lines, prefix, remote);
        }
    }
}

/// Values of variables are not part of it, so that a new token asks nothing, except where they make programs load code.
fn stdio(lines: &mut Lines, prefix: &str, stdio: &Stdio) {
    let Stdio { command, args, env, env_file, cwd, inherit_env, sandbox } = stdio;
    lines.add(format!("{prefix}command"), command);
    arguments(lines, prefix, args);
    for (name, value) in env {
        let key = format!("{prefix}env.{name}");
        match value {
            Some(value) if risky::effect(name) == Some(risky::Effect::Code) => lines.add_value(key, value),
            Some(_) => lines.add(key, "(set)"),
            None => lines.add(key, "(unset)"),
        }
    }
    for (name, value) in [("cwd", cwd), ("envFile", env_file)] {
        if let Some(value) = value {
            lines.add(format!("{prefix}{name}"), value);
        }
    }
    if *inherit_env {
        lines.add(format!("{prefix}inheritEnv"), "true");
    }
    for (key, value) in sandbox.iter().flat_map(Sandbox::lines) {
        lines.add(format!("{prefix}sandbox.{key}"), value);
    }
}

fn remote(lines: &mut Lines, prefix: &str, remote: &Remote) {
    let Remote { url: written, headers, oauth } = remote;
    url(lines, prefix, written);
    for name in headers.keys() {
        lines.add(format!("{prefix}headers.{name}"), "(set)");
    }
    // Only then is the secret sent without a sign-in by the user.
    if oauth.as_ref().is_some_and(|oauth| oauth.grant == Grant::ClientCredentials) {
        lines.add(format!("{prefix}oauth.grantType"), Grant::ClientCredentials.name());
    }
}
