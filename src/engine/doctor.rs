//! Checks what the servers of this workspace need on this machine, and says how to fix it.
//!
//! A check fails only if something is affected: a program that no server uses may be missing. Starts no server and reads
//! no values; for a variable, only whether it is set. Of the common programs, it prints the version. A collector of calls
//! gets an empty export, with its headers.

mod hooks;
mod machine;
mod plugins;
mod sandbox;
mod secret_commands;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::telemetry::Failure;
use crate::config::expand::{self, Reference};
use crate::config::interop::Homes;
use crate::config::{Definition, Environment, Environments, Launch, Loaded, Severity};
use crate::model::{CallKind, HookAgent, Timestamp};
use crate::paths::canonical;
use crate::paths::{MANAGED_VARIABLE, Paths, make_private_folder};
use crate::server::process;
use crate::settings::Settings;
use crate::store::CallQuery;
use crate::text::one_line;

/// A locked keyring waits for a password. The doctor does not.
const KEYRING_TIMEOUT: Duration = Duration::from_secs(3);
/// Long enough for a program that prints a secret, and then for the collector.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(15);
/// How far back the doctor looks for the last answer to an agent. A server can have the name of one.
const MAX_CALLS: usize = 100;
/// Programs that start most servers.
const COMMON_PROGRAMS: [&str; 3] = ["npx", "uvx", "docker"];

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub ok: bool,
    pub message: String,
    pub fix: Option<String>,
}

impl Check {
    fn good(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), ok: true, message: message.into(), fix: None }
    }

    fn bad(name: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name: name.into(), ok: false, message: message.into(), fix: Some(fix.into()) }
    }

    /// From an error message that says after a semicolon how to fix it.
    fn complaint(name: impl Into<String>, complaint: &str, otherwise: &str) -> Self {
        let (message, fix) = complaint.split_once("; ").unwrap_or((complaint, otherwise));
        Self::bad(name, message, fix)
    }
}

impl Engine {
    /// Checks everything that servers and fronts depend on.
    pub async fn doctor(&self) -> Vec<Check> {
        let inner = &self.0;
        let loaded = self.loaded().borrow().clone();
        let paths = inner.shared.paths.clone();
        let folder = inner.folders.borrow().first().cloned();
        let settings = inner.shared.settings.borrow().clone();
        let needed = needs_keyring(&loaded, &settings.secret_commands);
        let keyring =
            keyring(tokio::time::timeout(KEYRING_TIMEOUT, inner.shared.vault.keyring().location()).await.ok(), needed);
        let export = export(tokio::time::timeout(EXPORT_TIMEOUT, self.try_export()).await.ok());
        inner.store.flush().await;
        let health = inner.store.health().borrow().clone();
        let environments = self.environments();
        let answered = self.hook_answers().await;
        let versions = versions(environments.in_folder(folder.as_deref()), &self.folders(), &paths).await;
        // Reading files may be slow.
        let checks = tokio::task::spawn_blocking(move || {
            let own = environments.in_folder(folder.as_deref());
            let mut checks = programs(&loaded, &environments, folder.as_deref(), &versions);
            checks.extend(files(&loaded, folder.as_deref()));
            checks.push(self::settings(&paths));
            checks.extend(machine::managed(&paths, std::env::var_os(MANAGED_VARIABLE).as_deref()));
            checks.extend(variables(&loaded, &environments));
            checks.push(keyring);
            checks.extend(export);
            let user = environments.in_folder(None);
            checks.extend(secret_commands::check(&loaded, &settings.secret_commands, user));
            checks.extend(sandbox::check(&loaded, &settings.sandbox));
            checks.extend(machine::inotify());
            checks.push(machine::sockets(&paths));
            checks.push(machine::database(&paths, &health));
            checks.push(machine::logs(&paths));
            checks.extend(hooks::check(&loaded, Homes::discover().as_ref(), &answered));
            checks.extend(plugins::check(own));
            checks
        });
        checks.await.unwrap_or_else(|error| vec![Check::bad("doctor", error.to_string(), "see the log of mcp-sidecar")])
    }
}

impl Engine {
    /// When each agent last got an answer about one of its built-in tools in this workspace.
    async fn hook_answers(&self) -> BTreeMap<HookAgent, Timestamp> {
        let mut answered = BTreeMap::new();
        for agent in HookAgent::ALL {
            let server = Some(agent.as_str().to_owned());
            let query = CallQuery { server, limit: Some(MAX_CALLS), ..CallQuery::default() };
            let calls = self.calls(query).await.unwrap_or_default();
            let last = calls.iter().find(|call| call.kind == CallKind::Hook);
            answered.extend(last.map(|call| (agent, call.time)));
        }
        answered
    }
}

/// What each common program says about its version, or why it does not work. They run in an empty private folder, because
/// `npx` and `uvx` obey files in the folder that they run in. A program inside the workspace is not run.
async fn versions(
    environment: &Environment,
    folders: &[Arc<Path>],
    paths: &Paths,
) -> BTreeMap<PathBuf, Result<String, String>> {
    let empty = paths.state_dir.join("doctor");
    let mut versions = BTreeMap::new();
    if make_private_folder(&empty).is_err() || std::fs::read_dir(&empty).is_ok_and(|mut all| all.next().is_some()) {
        return versions;
    }
    for program in COMMON_PROGRAMS {
        let Ok(found) = process::find(program, environment.path(), &empty) else { continue };
        let is_in_workspace =
            |folder: &Arc<Path>| found.starts_with(folder) || canonical(&found).starts_with(canonical(folder));
        if !folders.iter().any(is_in_workspace) {
            versions.insert(found.clone(), process::version(&found, environment, &empty).await);
        }
    }
    versions
}

/// The common programs, then the program of each server.
fn programs(
    loaded: &Loaded,
    environments: &Environments,
    folder: Option<&Path>,
    versions: &BTreeMap<PathBuf, Result<String, String>>,
) -> Vec<Check> {
    let path = environments.in_folder(folder).path();
    let here = folder.unwrap_or(Path::new("/"));
    let started =
        || enabled(loaded).flat_map(|definition| launches(definition).map(move |launch| (definition, launch)));
    let mut checks = Vec::new();
    for program in COMMON_PROGRAMS {
        let needed = started().any(|(_, launch)| matches!(launch, Launch::Stdio(stdio) if stdio.command == program));
        checks.push(match process::find(program, path, here) {
            Ok(found) => match versions.get(&found) {
                Some(Err(reason)) if needed => {
                    let message = format!("{} is broken: {reason}", found.display());
                    Check::bad(program, message, format!("run `{program} --version`, and install it again"))
                }
                Some(Err(reason)) => {
                    Check::good(program, format!("{} is broken, but no server needs it: {reason}", found.display()))
                }
                Some(Ok(version)) => Check::good(program, format!("{} ({version})", found.display())),
                None => Check::good(program, found.display().to_string()),
            },
            Err(complaint) if needed => Check::complaint(program, &complaint, "install it"),
            Err(_) => Check::good(program, "not found on the PATH, but no server needs it"),
        });
    }
    for (definition, launch) in started() {
        let Launch::Stdio(stdio) = launch else { continue };
        // A command with variables is resolved at the start, when the server is trusted.
        if stdio.command.contains("${") {
            continue;
        }
        let name = format!("program of `{}`", definition.name);
        let environment = environments.of(definition);
        let here = definition.folder.as_deref().unwrap_or(here);
        checks.push(match process::find(&stdio.command, environment.path(), here) {
            Ok(found) => Check::good(name, found.display().to_string()),
            Err(complaint) => Check::complaint(name, &complaint, "correct `command` in its entry"),
        });
    }
    checks
}

fn files(loaded: &Loaded, folder: Option<&Path>) -> Vec<Check> {
    let mut checks = Vec::new();
    for file in loaded.files.iter().filter(|file| file.exists) {
        let path = &file.source.path;
        let near = folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        let name = format!("{} config", file.source.scope);
        let count = |severity| file.problems.iter().filter(|problem| problem.severity == severity).count();
        let about =
            format!("{}: {}", one_line(&near.display().to_string(), 400), several(file.servers.len(), "server"));
        checks.push(match (count(Severity::Error), count(Severity::Warning)) {
            (0, 0) => Check::good(name, about),
            (0, warnings) => Check::good(name, format!("{about}, {}", several(warnings, "warning"))),
            (errors, _) => Check::bad(
                name,
                format!("{about}, {}", several(errors, "error")),
                "run `mcp-sidecar check` to see them",
            ),
        });
    }
    if checks.is_empty() {
        checks.push(Check::good("config files", "none yet"));
    }
    checks
}

fn settings(paths: &Paths) -> Check {
    let file = Settings::from_file(paths);
    let path = paths.settings_file().display().to_string();
    match (file.exists, file.problems.len()) {
        (false, _) => Check::good("settings", "defaults (there is no config.toml)"),
        (true, 0) => Check::good("settings", path),
        (true, count) => Check::bad(
            "settings",
            format!("{path}: {}", several(count, "error")),
            "run `mcp-sidecar check` to see them",
        ),
    }
}

/// For each server that uses variables: whether all of them are set.
fn variables(loaded: &Loaded, environments: &Environments) -> Vec<Check> {
    let mut checks = Vec::new();
    for definition in enabled(loaded) {
        let environment = environments.of(definition);
        let references = expand::references(&definition.spec.launch);
        let names = references.iter().filter_map(|reference| match reference {
            Reference::Variable { name, default: None } => Some(name.as_str()),
            _ => None,
        });
        let (set, unset): (Vec<&str>, Vec<&str>) = names.partition(|name| environment.get(name).is_some());
        let name = format!("variables of `{}`", definition.name);
        match (set.as_slice(), unset.as_slice()) {
            ([], []) => {}
            (set, []) => checks.push(Check::good(name, format!("set: {}", set.join(", ")))),
            (_, unset) => {
                let first = unset.first().copied().unwrap_or("NAME");
                let fix = format!("set it in the environment of the editor, or write ${{{first}:-default}}");
                let unset = unset.join(", ");
                checks.push(Check::bad(name, format!("not set: {unset}"), fix));
            }
        }
    }
    checks
}

fn needs_keyring(loaded: &Loaded, commands: &BTreeMap<String, Vec<String>>) -> bool {
    let refers = |definition: &Arc<Definition>| {
        let references = expand::references(&definition.spec.launch);
        references.iter().any(|reference| match reference {
            Reference::Keyring(name) => !commands.contains_key(name),
            reference => matches!(reference, Reference::Input(_)),
        })
    };
    enabled(loaded).any(refers)
}

fn keyring(answer: Option<crate::model::Result<String>>, needed: bool) -> Check {
    match answer {
        Some(Ok(place)) => Check::good("keyring", format!("values are stored in {place}")),
        Some(Err(error)) if needed => Check::complaint("keyring", &error.to_string(), "unlock it"),
        Some(Err(error)) => {
            let complaint = error.to_string();
            let why = complaint.split("; ").next().unwrap_or_default();
            Check::good("keyring", format!("{why}, but no server needs it"))
        }
        None => Check::bad("keyring", "it does not respond", "check whether it is waiting to be unlocked"),
    }
}

/// Whether the collector takes an export; nothing if there is no collector.
fn export(answer: Option<Option<Result<String, Failure>>>) -> Option<Check> {
    const NAME: &str = "telemetry";
    match answer {
        Some(None) => None,
        Some(Some(Ok(address))) => Some(Check::good(NAME, format!("calls are exported to {address}"))),
        Some(Some(Err(Failure { why, fix }))) => Some(Check::bad(NAME, why, fix)),
        None => {
            let message = format!("no answer within {} s", EXPORT_TIMEOUT.as_secs());
            Some(Check::bad(NAME, message, "check the collector and the secrets that `telemetry.otlp-headers` names"))
        }
    }
}

fn enabled(loaded: &Loaded) -> impl Iterator<Item = &Arc<Definition>> {
    loaded.config.servers.values().filter(|definition| definition.spec.enabled)
}

fn launches(definition: &Definition) -> impl Iterator<Item = &Launch> {
    std::iter::once(&definition.spec.launch).chain(&definition.spec.fallback)
}

pub(super) fn several(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, Content, Environment, Source};
    use crate::model::Scope;
    use crate::settings::Limits;

    pub fn loaded(text: &str) -> Loaded {
        let source = Source { path: Path::new("/home/you/shop/mcp.json").into(), scope: Scope::User, folder: None };
        let limits: Limits = Settings::default().limits;
        config::load(&[(source, Content::Text(text.into()))], &Default::default(), &limits)
    }

    fn environments(name: &str, value: &str) -> Environments {
        Environment::from(BTreeMap::from([(name.to_owned(), value.to_owned())])).into()
    }

    pub fn lines(checks: &[Check]) -> String {
        let line = |check: &Check| {
            let fix = check.fix.as_ref().map(|fix| format!(" -> {fix}")).unwrap_or_default();
            format!("{} {}: {}{fix}\n", if check.ok { "ok" } else { "no" }, check.name, check.message)
        };
        checks.iter().map(line).collect()
    }

    #[test]
    fn a_missing_program_fails_only_if_a_server_needs_it() {
        let nowhere = environments("PATH", "/nowhere");
        let text = r#"{ "servers": { "a": { "command": "npx" }, "b": { "command": "mine" },
            "c": { "command": "${X}" }, "off": { "command": "gone", "enabled": false } } }"#;
        insta::assert_snapshot!(lines(&programs(&loaded(text), &nowhere, Some(Path::new("/")), &BTreeMap::new())), @"
        no npx: `npx` was not found on the PATH -> install Node.js or use its full path
        ok uvx: not found on the PATH, but no server needs it
        ok docker: not found on the PATH, but no server needs it
        no program of `a`: `npx` was not found on the PATH -> install Node.js or use its full path
        no program of `b`: `mine` was not found on the PATH -> install it or use its full path
        ");
    }

    #[test]
    fn variables_are_reported_by_name_and_never_by_value() {
        let environment = environments("SET", "the-value");
        let text = r#"{ "servers": { "a": { "command": "x", "env": { "A": "${SET}", "B": "${UNSET}", "C": "${D:-d}" } },
            "b": { "command": "x", "args": ["${env:SET}"] }, "c": { "command": "x" } } }"#;
        insta::assert_snapshot!(lines(&variables(&loaded(text), &environment)), @"
        no variables of `a`: not set: UNSET -> set it in the environment of the editor, or write ${UNSET:-default}
        ok variables of `b`: set: SET
        ");
    }

    #[test]
    fn a_file_with_errors_fails_and_warnings_are_mentioned() {
        insta::assert_snapshot!(lines(&files(&loaded("{ \"servers\": {"), Some(Path::new("/home/you/shop")))), @"no user config: mcp.json: 0 servers, 1 error -> run `mcp-sidecar check` to see them");
        let text = r#"{ "servers": { "a": { "command": "sh", "colour": "red" } } }"#;
        insta::assert_snapshot!(lines(&files(&loaded(text), Some(Path::new("/home/you/shop")))), @"ok user config: mcp.json: 1 server, 1 warning");
    }

    #[test]
    fn a_missing_keyring_fails_only_if_a_server_needs_it() {
        let none = || Some(Err(crate::model::Error::Io("no keyring is running; set `secrets`".to_owned())));
        assert!(keyring(none(), false).ok);
        let needed = keyring(none(), true);
        assert_eq!((needed.ok, needed.fix.as_deref()), (false, Some("set `secrets`")));
        let one = loaded(r#"{ "servers": { "a": { "command": "x", "args": ["${keyring:k}"] } } }"#);
        assert!(needs_keyring(&one, &BTreeMap::new()));
        assert!(!needs_keyring(&one, &BTreeMap::from([("k".to_owned(), vec!["pass".to_owned()])])));
    }
}
