//! Expands `${…}` when a server starts. Text that is shown or stored is never expanded.
//!
//! To start a server, call [`references`], collect the needed [`Values`], read the file that [`env_file`] returns, and
//! call [`expand`]. Nothing here reads a file or runs a command.

mod environment;
mod template;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use environment::{child_environment, harmless, is_passed_on, parse_env_file, snapshot};
pub use template::{Piece, Reference, pieces};

use super::spec::{Definition, Launch, OAuth, Remote, Stdio};
use crate::text::Secret;

/// The maximum nesting depth of defaults.
const MAX_DEPTH: usize = 10;

/// The values for the references of a launch.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// The environment of the engine; see [`snapshot`].
    pub environment: BTreeMap<String, String>,
    pub workspace_folder: Option<PathBuf>,
    /// The working folder if the entry has no `cwd`. The value of `${cwd}`, and the base of a relative `cwd`.
    pub run_folder: Option<PathBuf>,
    /// The base of a relative `envFile`.
    pub env_file_folder: Option<PathBuf>,
    pub user_home: Option<PathBuf>,
    pub inputs: BTreeMap<String, Secret>,
    pub keyring: BTreeMap<String, Secret>,
}

impl Values {
    /// The environment of this process and the folders of a definition. `workspace` is the open folder; `run_folder` is
    /// where a program of the user runs. A program of a project runs in the folder of that project.
    pub fn of(definition: &Definition, workspace: Option<&Path>, run_folder: Option<PathBuf>) -> Self {
        let environment = snapshot();
        let user_home = environment.get("HOME").or_else(|| environment.get("USERPROFILE")).map(Into::into);
        let own = definition.folder.as_deref().map(Path::to_path_buf);
        let beside = || definition.file.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        Self {
            environment,
            workspace_folder: own.clone().or_else(|| workspace.map(Path::to_path_buf)),
            run_folder: own.clone().or(run_folder.clone()),
            env_file_folder: own.or_else(beside).or(run_folder),
            user_home,
            ..Self::default()
        }
    }
}

/// A launch with every reference replaced, ready for its transport.
#[derive(Debug, Clone, PartialEq)]
pub enum Expanded {
    Stdio(Program),
    Tcp { host: String, port: u16 },
    Http(Endpoint),
    Sse(Endpoint),
    Sdk { name: String },
    ClaudeAiProxy { id: String, endpoint: Endpoint },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    pub command: String,
    pub args: Vec<Secret>,
    /// `envFile`, overridden by `env`; `None` unsets. [`child_environment`] adds it to the inherited variables.
    pub env: BTreeMap<String, Option<Secret>>,
    /// The working folder: `cwd`, else [`Values::run_folder`].
    pub cwd: Option<PathBuf>,
    pub inherit_env: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    pub url: Secret,
    pub headers: BTreeMap<String, Secret>,
    pub oauth: Option<OAuth>,
}

/// Why a launch cannot be expanded. The messages never contain a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error("the variable `{0}` is not set; set it in the environment of the editor, or write `${{{0}:-default}}`")]
    Unset(String),
    #[error(
        "unknown expansion `{0}`; expected ${{NAME}}, ${{env:NAME}}, ${{workspaceFolder}}, ${{userHome}}, ${{input:id}} or ${{keyring:name}}"
    )]
    Unknown(String),
    #[error("`${{{0}}}` needs an open workspace folder")]
    NoFolder(&'static str),
    #[error("cannot expand `${{userHome}}`: HOME is not set")]
    NoHome,
    #[error("the input `{0}` has no value: it was not entered")]
    NoInput(String),
    #[error("the keyring has no entry named `{0}`")]
    NoKey(String),
    #[error("defaults are nested deeper than {MAX_DEPTH} levels")]
    Deep,
    #[error("line {line} of the env file is invalid: expected NAME=value")]
    EnvFile { line: usize },
    #[error("`cwd` is empty after expansion")]
    EmptyCwd,
}

/// All references of a launch, in the order of first use, without duplicates.
pub fn references(launch: &Launch) -> Vec<Reference> {
    let mut found = Vec::new();
    for text in texts(launch) {
        collect(text, 0, &mut found);
    }
    found
}

/// The same for one text.
pub fn references_in(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(text, 0, &mut found);
    found
}

/// The path of `envFile`, which the caller reads before [`expand`].
pub fn env_file(launch: &Launch, values: &Values) -> Result<Option<PathBuf>, ExpandError> {
    let Launch::Stdio(Stdio { env_file: Some(written), .. }) = launch else { return Ok(None) };
    let path = text(written, values)?;
    Ok(Some(resolve(&path, values.env_file_folder.as_deref(), values)))
}

/// Expands a launch. `env_file_text` is the content of the file at [`env_file`].
pub fn expand(launch: &Launch, values: &Values, env_file_text: Option<&str>) -> Result<Expanded, ExpandError> {
    Ok(match launch {
        Launch::Stdio(stdio) => Expanded::Stdio(program(stdio, values, env_file_text)?),
        Launch::Tcp { host, port } => Expanded::Tcp { host: text(host, values)?, port: *port },
        Launch::Http(remote) => Expanded::Http(endpoint(remote, values)?),
        Launch::Sse(remote) => Expanded::Sse(endpoint(remote, values)?),
        Launch::Sdk { name } => Expanded::Sdk { name: name.clone() },
        Launch::ClaudeAiProxy { id, remote } => {
            // The transport inserts the id into the URL, as one path segment.
            Expanded::ClaudeAiProxy { id: text(id, values)?, endpoint: endpoint(remote, values)? }
        }
    })
}

/// Expands one text, such as the folder of an `inside` condition. Values of variables are registered for masking.
pub fn text(written: &str, values: &Values) -> Result<String, ExpandError> {
    fill(written, values, 0)
}

fn program(stdio: &Stdio, values: &Values, env_file_text: Option<&str>) -> Result<Program, ExpandError> {
    let mut env = BTreeMap::new();
    for (name, value) in parse_env_file(env_file_text.unwrap_or_default())? {
        let value = guarded(&name, value);
        env.insert(name, Some(value));
    }
    for (name, value) in &stdio.env {
        let value = value.as_deref().map(|written| value_of(name, written, values)).transpose()?;
        env.insert(name.clone(), value);
    }
    let cwd = match &stdio.cwd {
        Some(written) => {
            let path = text(written, values)?;
            if path.is_empty() {
                return Err(ExpandError::EmptyCwd);
            }
            Some(resolve(&path, values.run_folder.as_deref(), values))
        }
        None => values.run_folder.clone(),
    };
    Ok(Program {
        command: text(&stdio.command, values)?,
        args: stdio.args.iter().map(|arg| text(arg, values).map(Secret::plain)).collect::<Result<_, _>>()?,
        env,
        cwd,
        inherit_env: stdio.inherit_env,
    })
}

fn endpoint(remote: &Remote, values: &Values) -> Result<Endpoint, ExpandError> {
    let mut headers = BTreeMap::new();
    for (name, written) in &remote.headers {
        headers.insert(name.clone(), value_of(name, written, values)?);
    }
    Ok(Endpoint { url: Secret::plain(text(&remote.url, values)?), headers, oauth: remote.oauth.clone() })
}

/// The value of an `env` or `headers` entry. A literal value in the file is as secret as one from a variable.
fn value_of(name: &str, written: &str, values: &Values) -> Result<Secret, ExpandError> {
    let value = text(written, values)?;
    let literal = !pieces(written).iter().any(|piece| matches!(piece, Piece::Reference { .. }));
    Ok(if literal { guarded(name, value) } else { Secret::plain(value) })
}

fn guarded(name: &str, value: String) -> Secret {
    if harmless(name, &value) { Secret::plain(value) } else { Secret::new(value) }
}

fn fill(written: &str, values: &Values, depth: usize) -> Result<String, ExpandError> {
    if depth > MAX_DEPTH {
        return Err(ExpandError::Deep);
    }
    let mut filled = String::with_capacity(written.len());
    for piece in pieces(written) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Reference { reference, .. } => filled.push_str(&look_up(&reference, values, depth)?),
        }
    }
    Ok(filled)
}

fn look_up(reference: &Reference, values: &Values, depth: usize) -> Result<String, ExpandError> {
    let folder = |name| values.workspace_folder.as_deref().ok_or(ExpandError::NoFolder(name));
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match reference {
        Reference::Variable { name, default } => match (values.environment.get(name), default) {
            (Some(value), None) => guarded(name, value.clone()).reveal().to_owned(),
            (Some(value), Some(_)) if !value.is_empty() => guarded(name, value.clone()).reveal().to_owned(),
            (_, Some(default)) => fill(default, values, depth + 1)?,
            (None, None) => return Err(ExpandError::Unset(name.clone())),
        },
        Reference::WorkspaceFolder => shown(folder("workspaceFolder")?),
        Reference::WorkspaceFolderBasename => folder("workspaceFolderBasename")?
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        Reference::UserHome => shown(values.user_home.as_deref().ok_or(ExpandError::NoHome)?),
        Reference::PathSeparator => std::path::MAIN_SEPARATOR.to_string(),
        Reference::Cwd => shown(values.run_folder.as_deref().ok_or(ExpandError::NoFolder("cwd"))?),
        Reference::Input(id) => {
            values.inputs.get(id).ok_or_else(|| ExpandError::NoInput(id.clone()))?.reveal().to_owned()
        }
        Reference::Keyring(name) => {
            values.keyring.get(name).ok_or_else(|| ExpandError::NoKey(name.clone()))?.reveal().to_owned()
        }
        Reference::Unknown(written) => return Err(ExpandError::Unknown(written.clone())),
    })
}

/// Resolves `~/` against the home folder, and any other relative path against `base`.
pub fn resolve(path: &str, base: Option<&Path>, values: &Values) -> PathBuf {
    let home = values.user_home.as_deref();
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => match base.or(home) {
            Some(folder) => folder.join(path),
            None => PathBuf::from(path),
        },
    }
}

fn collect(written: &str, depth: usize, found: &mut Vec<Reference>) {
    if depth > MAX_DEPTH {
        return;
    }
    for piece in pieces(written) {
        let Piece::Reference { reference, .. } = piece else { continue };
        if let Reference::Variable { default: Some(default), .. } = &reference {
            collect(default, depth + 1, found);
        }
        if !found.contains(&reference) {
            found.push(reference);
        }
    }
}

/// Every text of a launch that may contain references.
fn texts(launch: &Launch) -> Vec<&str> {
    match launch {
        Launch::Stdio(stdio) => std::iter::once(stdio.command.as_str())
            .chain(stdio.args.iter().map(String::as_str))
            .chain(stdio.env.values().flatten().map(String::as_str))
            .chain(stdio.env_file.as_deref())
            .chain(stdio.cwd.as_deref())
            .collect(),
        Launch::Tcp { host, .. } => vec![host],
        Launch::Http(remote) | Launch::Sse(remote) => remote_texts(remote).collect(),
        Launch::Sdk { .. } => Vec::new(),
        Launch::ClaudeAiProxy { id, remote } => std::iter::once(id.as_str()).chain(remote_texts(remote)).collect(),
    }
}

fn remote_texts(remote: &Remote) -> impl Iterator<Item = &str> {
    std::iter::once(remote.url.as_str()).chain(remote.headers.values().map(String::as_str))
}

#[cfg(test)]
mod tests;
