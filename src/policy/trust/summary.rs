//! What a trust prompt shows: everything, never truncated, with warnings.

mod flows;
mod unpinned;

use std::path::Path;

use super::contents::read_small;
use super::{Fingerprint, program};
use crate::config::address::{AddressKind, Target, shown_url};
use crate::config::expand::Values;
use crate::config::shape::{secret_spans, secrets};
use crate::config::spec::{Definition, Launch, Remote, Sandbox, Stdio};
use crate::config::{Environment, expand, risky};
use crate::text::{MASK, exact, looks_secret, shell_quote};

/// A definition as the user sees it before trusting it. Invisible characters are made visible; nothing is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub transport: &'static str,
    /// The server of the user whose name looks like its own.
    pub imitates: Option<String>,
    /// What it gets of the user's, and to whom that goes: also in the fallback.
    pub gets: Vec<String>,
    /// The program and its arguments, each as written.
    pub command: Vec<String>,
    /// The file that would be executed.
    pub program: Option<String>,
    pub cwd: Option<String>,
    /// `NAME=value`, as written. What looks secret is masked.
    pub env: Vec<String>,
    /// Its path, and the names that it sets.
    pub env_file: Option<String>,
    /// What it may reach, if it is in a sandbox.
    pub sandbox: Option<String>,
    pub url: Option<String>,
    /// `Name: value`, as written. What looks secret is masked.
    pub headers: Vec<String>,
    /// What it would allow without asking.
    pub levels: Vec<String>,
    pub warnings: Vec<String>,
    /// The calls that it offers in the menu of the editor.
    pub actions: Vec<String>,
    pub fallback: Option<Box<Summary>>,
}

impl Summary {
    pub fn of(definition: &Definition, fingerprint: &Fingerprint, environment: &Environment) -> Self {
        let values = &Values::in_folder(definition.folder.as_deref(), environment);
        let mut summary = Self::launch(&definition.spec.launch, "", fingerprint, values);
        summary.gets = flows::flows(&definition.spec.launch, values);
        let in_fallback = definition.spec.fallback.iter().flat_map(|launch| flows::flows(launch, values));
        summary.gets.extend(in_fallback.map(|flow| format!("{flow} if the first launch fails")));
        summary.levels = fingerprint.widening().iter().map(|line| exact(line)).collect();
        let actions = fingerprint.lines.iter().filter(|(key, _)| key.starts_with("actions."));
        summary.actions = actions.map(|(_, action)| exact(action)).collect();
        summary.fallback = definition
            .spec
            .fallback
            .as_ref()
            .map(|launch| Box::new(Self::launch(launch, "fallback.", fingerprint, values)));
        if let Some(dev) = &definition.spec.dev {
            let watch = exact(&dev.watch.join(", "));
            summary
                .warnings
                .push(format!("files that match `{watch}` can change without asking you again (`dev.watch`)"));
        }
        summary
    }

    fn launch(launch: &Launch, prefix: &str, fingerprint: &Fingerprint, values: &Values) -> Self {
        let mut summary = Self {
            transport: launch.transport(),
            imitates: None,
            gets: Vec::new(),
            command: Vec::new(),
            program: None,
            cwd: None,
            env: Vec::new(),
            env_file: None,
            sandbox: None,
            url: None,
            headers: Vec::new(),
            levels: Vec::new(),
            warnings: Vec::new(),
            actions: Vec::new(),
            fallback: None,
        };
        match launch {
            Launch::Stdio(stdio) => {
                // `inheritEnv` is one of `gets`.
                let Stdio { command, args, env, env_file, cwd, inherit_env: _, sandbox } = stdio;
                let args = secret_spans::shown_arguments(args);
                summary.command = std::iter::once(command).chain(&args).map(|word| exact(word)).collect();
                summary.program = fingerprint.lines.get(&format!("{prefix}program")).map(|path| exact(path));
                summary.cwd = cwd.as_deref().map(exact);
                summary.env = env.iter().map(|(name, value)| variable(name, value.as_deref())).collect();
                let set = env_file.as_deref().map(|file| names_in(file, values)).unwrap_or_default();
                summary.env_file = env_file.as_deref().map(|file| {
                    let names: Vec<String> = set.iter().map(|name| exact(name)).collect();
                    let note = if names.is_empty() { String::new() } else { format!(" (sets {})", names.join(", ")) };
                    format!("{}{note}", exact(file))
                });
                summary.sandbox = sandbox.as_ref().map(described);
                summary.warnings = stdio_warnings(stdio, &set, prefix, fingerprint, values.workspace_folder.as_deref());
            }
            Launch::Tcp { host, port } => summary.url = Some(exact(&format!("tcp://{host}:{port}"))),
            Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. } => {
                // The sign-in is one of `gets`.
                let Remote { url, headers, oauth: _ } = remote;
                summary.url = Some(exact(&shown_url(url)));
                let header =
                    |(name, value): (&String, &String)| format!("{}: {}", exact(name), shown_value(name, value));
                summary.headers = headers.iter().map(header).collect();
                summary.warnings = remote_warnings(url);
            }
            Launch::Sdk { name } => summary.url = Some(format!("inside the editor: {}", exact(name))),
        }
        summary
    }

    /// The same as text, one `word value` per line. Editors split it at column nine. What the user gives away comes
    /// first, then the `file` that asks for it.
    pub fn lines(&self, file: Option<&Path>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |key: &str, value: String| lines.push(format!("{key:9} {value}"));
        self.imitates.iter().for_each(|own| {
            line(
                "warning",
                format!("its name looks like that of your own server `{own}`, but it is a different server"),
            );
        });
        self.gets.iter().for_each(|flow| line("gets", flow.clone()));
        file.iter().for_each(|file| line("from", exact(&file.display().to_string())));
        if !self.command.is_empty() {
            line("runs", self.command.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" "));
        }
        self.program.iter().for_each(|program| line("program", program.clone()));
        self.cwd.iter().for_each(|cwd| line("in", cwd.clone()));
        self.env.iter().for_each(|variable| line("env", variable.clone()));
        self.env_file.iter().for_each(|file| line("env file", file.clone()));
        self.sandbox.iter().for_each(|sandbox| line("sandbox", sandbox.clone()));
        self.url.iter().for_each(|url| line("connects", format!("{url} ({})", self.transport)));
        self.headers.iter().for_each(|header| line("headers", header.clone()));
        self.levels.iter().for_each(|level| line("allows", level.clone()));
        self.actions.iter().for_each(|action| line("offers", action.clone()));
        self.warnings.iter().for_each(|warning| line("warning", warning.clone()));
        if let Some(fallback) = &self.fallback {
            lines.push("if that fails:".to_owned());
            lines.extend(fallback.lines(None));
        }
        lines
    }
}

/// `may read everything, write ./out; no network`.
fn described(sandbox: &Sandbox) -> String {
    let Sandbox { read, write, network, required } = sandbox;
    let list = |paths: &[String]| match paths {
        [] => "nothing".to_owned(),
        paths => paths.iter().map(|path| exact(path)).collect::<Vec<_>>().join(", "),
    };
    let read = read.as_deref().map_or_else(|| "everything".to_owned(), list);
    let network = if *network { "the network" } else { "no network" };
    let weak = if *required { "" } else { "; starts without it if it cannot be enforced" };
    format!("may read {read}, write {}; {network}{weak}", list(write))
}

fn variable(name: &str, value: Option<&str>) -> String {
    match value {
        Some(value) => format!("{}={}", exact(name), shown_value(name, value)),
        None => format!("{} (removed)", exact(name)),
    }
}

/// A value as written, unless it looks secret. Only a single word is masked: a name such as `TOKEN` must not hide a
/// script.
fn shown_value(name: &str, value: &str) -> String {
    let is_word = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.=+/:@".contains(c));
    let secret = secrets::find(Some(name), value).filter(|span| {
        risky::effect(name).is_none() && value.get(span.clone()).is_some_and(|text| is_word(text) && !text.is_empty())
    });
    match secret {
        Some(span) => {
            let (before, after) = (value.get(..span.start), value.get(span.end..));
            exact(&format!("{}{MASK}{}", before.unwrap_or_default(), after.unwrap_or_default()))
        }
        // A password in the address of a database.
        None if value.contains("://") && is_word(value) && risky::effect(name).is_none() => exact(&shown_url(value)),
        None => exact(value),
    }
}

/// The names of the variables in an env file, if it is known and can be read.
fn names_in(written: &str, values: &Values) -> Vec<String> {
    let text = program::env_file(written, values).and_then(|path| read_small(&path)).unwrap_or_default();
    expand::parse_env_file(&text).unwrap_or_default().into_iter().map(|(name, _)| name).collect()
}

fn stdio_warnings(
    stdio: &Stdio,
    in_file: &[String],
    prefix: &str,
    fingerprint: &Fingerprint,
    folder: Option<&Path>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = Path::new(&stdio.command).file_stem().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let name = name.unwrap_or_default();
    if unpinned::is_shell(&name) && stdio.args.iter().any(|arg| arg.starts_with('-') || arg.eq_ignore_ascii_case("/c"))
    {
        warnings.push("runs a shell, which can run any command".to_owned());
    }
    if matches!(&*name, "sudo" | "doas" | "pkexec") {
        warnings.push("runs with the rights of another user".to_owned());
    }
    if name == "docker" && stdio.args.iter().any(|arg| arg == "--privileged") {
        warnings.push("runs a container with full access to this machine".to_owned());
    }
    if matches!(&*name, "npx" | "bunx" | "pnpx" | "uvx") && !pinned(&stdio.args) {
        warnings.push("always downloads the newest version of its package; use `name@1.2.3` to pin one".to_owned());
    }
    for (name, source) in
        stdio.env.keys().map(|name| (name, "")).chain(in_file.iter().map(|name| (name, "in its env file ")))
    {
        if let Some(effect) = risky::effect(name) {
            warnings.push(format!("{source}sets `{}`, which can {}", exact(name), effect.as_str()));
        }
    }
    for key in fingerprint.lines.keys().filter_map(|key| key.strip_prefix(&format!("{prefix}content "))) {
        warnings.push(format!("runs `{}` from this project", exact(key)));
    }
    let runner = format!("{prefix}runner ");
    for (setting, value) in
        fingerprint.lines.iter().filter_map(|(key, value)| Some((key.strip_prefix(&runner)?, value)))
    {
        let (file, key) = setting.rsplit_once(' ').unwrap_or((setting, ""));
        let (file, key, value) = (exact(file), exact(key), exact(super::shown(value).as_str()));
        warnings
            .push(format!("`{file}` in this project decides what `{}` runs: {key} = {value}", exact(&stdio.command)));
    }
    if let Some(target) = fingerprint.lines.get(&format!("{prefix}envFile leads to")) {
        warnings.push(format!("its env file is a link to `{}`, outside of the repository", exact(target)));
    }
    let sandbox = format!("{prefix}sandbox ");
    let link = |key: &'_ str| Some(key.strip_prefix(&sandbox)?.strip_suffix(" leads to")?.to_owned());
    for (key, target) in &fingerprint.lines {
        if let Some(path) = link(key) {
            let (path, target) = (exact(&path), exact(target));
            warnings.push(format!("`{path}` in its sandbox is a link to `{target}`, outside of the repository"));
        }
    }
    warnings.extend(unpinned::warnings(stdio, &name, folder));
    if fingerprint.lines.get(&format!("{prefix}program")).is_some_and(|program| program == "(not found)") {
        warnings.push(format!("the program `{}` was not found", exact(&stdio.command)));
    }
    if fingerprint.lines.get(&format!("{prefix}program")).is_some_and(|program| program == program::DEFERRED) {
        let shown = exact(&stdio.command);
        warnings.push(match stdio.command.contains("${") {
            true => format!("the program `{shown}` is known only after its variables are expanded"),
            false => {
                format!("`{shown}` is looked up in a custom PATH that is known only after its variables are expanded")
            }
        });
    }
    let secrets = secret_spans::in_arguments(&stdio.args);
    if stdio.args.iter().any(|arg| looks_secret(arg)) || secrets.iter().any(|spans| !spans.is_empty()) {
        warnings.push("an argument looks like a credential; other programs on this machine can read it".to_owned());
    }
    warnings
}

fn remote_warnings(url: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let Some(target) = Target::of(url) else { return warnings };
    if target.is_plain_http && target.kind != Some(AddressKind::Loopback) {
        warnings.push("uses plain HTTP: others on the network can read and change the traffic".to_owned());
    }
    if target.kind == Some(AddressKind::Private) {
        warnings.push("connects to a machine in your private network".to_owned());
    }
    if target.has_user {
        warnings.push(format!("the URL contains a user name or password; it connects to {}", flows::host(url)));
    }
    warnings
}

/// Whether the package in `npx -y name@1.2.3` has a version.
fn pinned(args: &[String]) -> bool {
    let package = args.iter().find(|arg| !arg.starts_with('-'));
    package.is_none_or(|name| {
        let version = name.rsplit_once('@').filter(|(name, _)| !name.is_empty()).map(|(_, version)| version);
        let version = version.or_else(|| name.split_once("==").map(|(_, version)| version));
        version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
            || name.contains('/') && !name.starts_with('@')
    })
}
