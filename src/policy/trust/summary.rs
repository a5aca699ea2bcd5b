//! What a trust prompt shows: everything, never truncated, with warnings.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::{Fingerprint, program};
use crate::config::spec::{Definition, Launch, Remote, Stdio};
use crate::text::{looks_secret, shell_quote, visible};

/// A definition as the user sees it before trusting it. Invisible characters are made visible; nothing is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub transport: &'static str,
    /// The program and its arguments, each as written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The file that would be executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Names only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The variables, inputs and keyring entries that it reads, as `${…}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Names only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// What it would allow without asking.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Box<Summary>>,
}

impl Summary {
    pub fn of(definition: &Definition, fingerprint: &Fingerprint) -> Self {
        let folder = definition.folder.as_deref();
        let mut summary = Self::launch(&definition.spec.launch, "", fingerprint, folder);
        summary.levels = fingerprint.widening().iter().map(|line| show(line)).collect();
        summary.fallback = definition
            .spec
            .fallback
            .as_ref()
            .map(|launch| Box::new(Self::launch(launch, "fallback.", fingerprint, folder)));
        if let Some(dev) = &definition.spec.dev {
            let watch = show(&dev.watch.join(", "));
            summary
                .warnings
                .push(format!("files that match `{watch}` can change without asking you again (`dev.watch`)"));
        }
        summary
    }

    fn launch(launch: &Launch, prefix: &str, fingerprint: &Fingerprint, folder: Option<&Path>) -> Self {
        let mut summary = Self {
            transport: launch.transport(),
            command: Vec::new(),
            program: None,
            cwd: None,
            env: Vec::new(),
            reads: Vec::new(),
            env_file: None,
            url: None,
            headers: Vec::new(),
            levels: Vec::new(),
            warnings: Vec::new(),
            fallback: None,
        };
        match launch {
            Launch::Stdio(stdio) => {
                summary.command = std::iter::once(&stdio.command).chain(&stdio.args).map(|word| show(word)).collect();
                summary.program = fingerprint.lines.get(&format!("{prefix}program")).map(|path| show(path));
                summary.cwd = stdio.cwd.as_deref().map(show);
                summary.env = stdio.env.keys().map(|name| show(name)).collect();
                summary.env_file = stdio.env_file.as_deref().map(show);
                let values = stdio.env.values().flatten().chain(&stdio.cwd).chain(&stdio.env_file);
                summary.reads = references(std::iter::once(&stdio.command).chain(&stdio.args).chain(values));
                summary.warnings = stdio_warnings(stdio, prefix, fingerprint);
                if !stdio.env.contains_key("PATH") && program::has_own_path(stdio, folder) {
                    summary.warnings.push("its env file sets `PATH`, which decides which programs run".to_owned());
                }
            }
            Launch::Tcp { host, port } => summary.url = Some(show(&format!("tcp://{host}:{port}"))),
            Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. } => {
                summary.url = Some(show(&remote.url));
                summary.headers = remote.headers.keys().map(|name| show(name)).collect();
                summary.reads = references(std::iter::once(&remote.url).chain(remote.headers.values()));
                summary.warnings = remote_warnings(remote);
            }
            Launch::Sdk { name } => summary.url = Some(format!("inside the editor: {}", show(name))),
        }
        summary
    }

    /// The same as text, one `word value` per line. Editors split it at column nine.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |key: &str, value: String| lines.push(format!("{key:9} {value}"));
        if !self.command.is_empty() {
            line("runs", self.command.iter().map(|word| shell_quote(word)).collect::<Vec<_>>().join(" "));
        }
        self.program.iter().for_each(|program| line("program", program.clone()));
        self.cwd.iter().for_each(|cwd| line("in", cwd.clone()));
        if !self.env.is_empty() {
            line("env", self.env.join(", "));
        }
        if !self.reads.is_empty() {
            line("reads", self.reads.join(", "));
        }
        self.env_file.iter().for_each(|file| line("env file", file.clone()));
        self.url.iter().for_each(|url| line("connects", format!("{url} ({})", self.transport)));
        if !self.headers.is_empty() {
            line("headers", self.headers.join(", "));
        }
        self.levels.iter().for_each(|level| line("allows", level.clone()));
        self.warnings.iter().for_each(|warning| line("warning", warning.clone()));
        if let Some(fallback) = &self.fallback {
            lines.push("if that fails:".to_owned());
            lines.extend(fallback.lines());
        }
        lines
    }
}

/// All `${…}` with values that belong to the user. The project folder is not one of them.
fn references<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let found = texts.flat_map(|text| text.split("${").skip(1)).filter_map(|rest| rest.split_once('}'));
    let names: BTreeSet<&str> = found.map(|(name, _)| name.split(":-").next().unwrap_or(name)).collect();
    let own = names.into_iter().filter(|name| !matches!(*name, "workspaceFolder" | "userHome"));
    own.map(|name| show(&format!("${{{name}}}"))).collect()
}

fn show(text: &str) -> String {
    visible(text, usize::MAX).replace('\n', "⟨U+000A⟩")
}

fn stdio_warnings(stdio: &Stdio, prefix: &str, fingerprint: &Fingerprint) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = Path::new(&stdio.command).file_stem().map(|name| name.to_string_lossy().to_ascii_lowercase());
    let name = name.unwrap_or_default();
    let shell = matches!(&*name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "fish" | "cmd" | "powershell" | "pwsh");
    if shell && stdio.args.iter().any(|arg| arg.starts_with('-') || arg.eq_ignore_ascii_case("/c")) {
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
    for variable in stdio.env.keys().filter(|name| loads_code(name)) {
        warnings.push(format!("sets `{}`, which can make programs load other code", show(variable)));
    }
    if stdio.inherit_env {
        warnings.push("gets your whole environment, including any tokens in it (`inheritEnv`)".to_owned());
    }
    for key in fingerprint.lines.keys().filter_map(|key| key.strip_prefix(&format!("{prefix}content "))) {
        warnings.push(format!("runs `{}` from this project", show(key)));
    }
    if fingerprint.lines.get(&format!("{prefix}program")).is_some_and(|program| program == "(not found)") {
        warnings.push(format!("the program `{}` was not found", show(&stdio.command)));
    }
    if fingerprint.lines.get(&format!("{prefix}program")).is_some_and(|program| program == program::DEFERRED) {
        let shown = show(&stdio.command);
        warnings.push(match stdio.command.contains("${") {
            true => format!("the program `{shown}` is known only after its variables are expanded"),
            false => {
                format!("`{shown}` is looked up in a custom PATH that is known only after its variables are expanded")
            }
        });
    }
    if stdio.args.iter().any(|arg| looks_secret(arg)) {
        warnings.push("an argument looks like a credential; other programs on this machine can read it".to_owned());
    }
    warnings
}

fn remote_warnings(remote: &Remote) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Ok(url) = url::Url::parse(&remote.url) {
        let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        if url.scheme() == "http" && !local {
            warnings.push("uses plain HTTP: others on the network can read and change the traffic".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            warnings.push("the URL contains a user name or password".to_owned());
        }
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

/// Variables that make a program load other code.
fn loads_code(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.starts_with("LD_")
        || name.starts_with("DYLD_")
        || matches!(
            &*name,
            "PATH"
                | "NODE_OPTIONS"
                | "NODE_PATH"
                | "PYTHONPATH"
                | "PYTHONSTARTUP"
                | "PYTHONHOME"
                | "BASH_ENV"
                | "ENV"
                | "PERL5OPT"
                | "PERL5LIB"
                | "RUBYOPT"
                | "RUBYLIB"
                | "JAVA_TOOL_OPTIONS"
                | "GIT_SSH_COMMAND"
                | "GIT_EXTERNAL_DIFF"
                | "PROMPT_COMMAND"
                | "ZDOTDIR"
        )
}
