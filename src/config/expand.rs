//! Expands `${…}` when a server starts. Text that is shown or stored is never expanded.
//!
//! To start a server, call [`references`], collect the needed [`Values`] (`server::values` does), read the file that
//! [`env_file`] returns, and call [`expand`]. Nothing here reads a file or runs a command.

mod environment;
mod sandbox;
mod template;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use environment::{child_environment, harmless, harmless_literal, is_inherited, is_passed_on, parse_env_file};
pub use sandbox::ExpandedSandbox;
use template::MAX_DEPTH;
pub use template::{Piece, Reference, pieces};

use super::Environment;
use super::shape::secrets;
use super::spec::{Definition, Grant, Launch, OAuth, Remote, Sandbox, Stdio};
use crate::text::Secret;

/// The values for the references of a launch.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// The environment that the server starts with.
    pub environment: Environment,
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
    /// An environment and the folders of a definition. `workspace` is the open folder; `run_folder` is where a program of
    /// the user runs. A program of a project runs in the folder of that project.
    pub fn of(
        definition: &Definition,
        environment: &Environment,
        workspace: Option<&Path>,
        run_folder: Option<PathBuf>,
    ) -> Self {
        let own = Self::in_folder(definition.folder.as_deref(), environment);
        let beside = || definition.file.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        Self {
            workspace_folder: own.workspace_folder.or_else(|| workspace.map(Path::to_path_buf)),
            run_folder: own.run_folder.or_else(|| run_folder.clone()),
            env_file_folder: own.env_file_folder.or_else(beside).or(run_folder),
            ..own
        }
    }

    /// An environment and one folder: what is known before a definition is trusted.
    pub fn in_folder(folder: Option<&Path>, environment: &Environment) -> Self {
        let folder = folder.map(Path::to_path_buf);
        Self {
            user_home: environment.get("HOME").or_else(|| environment.get("USERPROFILE")).map(Into::into),
            environment: environment.clone(),
            workspace_folder: folder.clone(),
            run_folder: folder.clone(),
            env_file_folder: folder,
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
    pub sandbox: Option<ExpandedSandbox>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    pub url: Secret,
    pub headers: BTreeMap<String, Secret>,
    pub oauth: Option<OAuth>,
    /// The client that signs in by itself, without a user.
    pub client: Option<Client>,
}

/// A client that signs in by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Client {
    pub id: String,
    pub proof: Proof,
    pub scopes: Vec<String>,
}

/// What a client proves its id with.
#[derive(Debug, Clone, PartialEq)]
pub enum Proof {
    Secret(Secret),
    /// A private key in PEM format, which signs and is not sent.
    Key(Secret),
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
        collect(text, &mut found);
    }
    found
}

/// The same with the client secret and the key, which only a sign-in needs.
pub fn all_references(launch: &Launch) -> Vec<Reference> {
    let oauth = match launch {
        Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. } => remote.oauth.as_ref(),
        Launch::Stdio(_) | Launch::Tcp { .. } | Launch::Sdk { .. } => None,
    };
    let mut found = references(launch);
    oauth.into_iter().flat_map(own_secrets).for_each(|secret| collect(secret, &mut found));
    found
}

/// The same for one text.
pub fn references_in(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    collect(text, &mut found);
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
            let endpoint = endpoint(remote, values)?;
            let url = endpoint.url.reveal().replace("{id}", &path_segment(&text(id, values)?));
            Expanded::Http(Endpoint { url: Secret::plain(url), ..endpoint })
        }
    })
}

/// Expands one text, such as the folder of an `inside` condition. Values of variables are registered for masking.
pub fn text(written: &str, values: &Values) -> Result<String, ExpandError> {
    fill(written, values)
}

/// The same, but only with what is known before a definition is trusted: folders, and the variables that every child
/// process gets. `None` if the text needs anything else.
pub fn known_text(written: &str, values: &Values) -> Option<String> {
    let known = |reference: &Reference| match reference {
        Reference::Variable { name, .. } => is_passed_on(name),
        Reference::WorkspaceFolder
        | Reference::WorkspaceFolderBasename
        | Reference::UserHome
        | Reference::PathSeparator
        | Reference::Cwd => true,
        Reference::Input(_) | Reference::Keyring(_) | Reference::TooDeep(_) | Reference::Unknown(_) => false,
    };
    references_in(written).iter().all(known).then(|| text(written, values).ok())?
}

/// The same as [`text`], but leaves what is not known as it is written.
pub fn partly(written: &str, values: &Values) -> String {
    let known = |piece: Piece<'_>| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Reference { reference, span } => {
            look_up(&reference, values).unwrap_or_else(|_| written.get(span).unwrap_or_default().to_owned())
        }
    };
    pieces(written).into_iter().map(known).collect()
}

fn program(stdio: &Stdio, values: &Values, env_file_text: Option<&str>) -> Result<Program, ExpandError> {
    // The caller reads `envFile`.
    let Stdio { command, args, env: own_env, env_file: _, cwd, inherit_env, sandbox } = stdio;
    let mut env = BTreeMap::new();
    for (name, value) in parse_env_file(env_file_text.unwrap_or_default())? {
        let value = literal(&name, value);
        env.insert(name, Some(value));
    }
    for (name, value) in own_env {
        let value = value.as_deref().map(|written| value_of(name, written, values)).transpose()?;
        env.insert(name.clone(), value);
    }
    let cwd = match cwd {
        Some(written) => {
            let path = text(written, values)?;
            if path.is_empty() {
                return Err(ExpandError::EmptyCwd);
            }
            Some(resolve(&path, values.run_folder.as_deref(), values))
        }
        None => values.run_folder.clone(),
    };
    let args: Vec<String> = args.iter().map(|arg| text(arg, values)).collect::<Result<_, _>>()?;
    for (index, span, _) in secrets::find_in_args(&args) {
        args.get(index).and_then(|arg| arg.get(span)).map(Secret::new);
    }
    args.iter().for_each(|arg| secrets::register_passwords(arg));
    Ok(Program {
        command: text(command, values)?,
        args: args.into_iter().map(Secret::plain).collect(),
        env,
        cwd,
        inherit_env: *inherit_env,
        sandbox: sandbox.as_ref().map(|sandbox| sandbox::expand(sandbox, values)).transpose()?,
    })
}

fn endpoint(remote: &Remote, values: &Values) -> Result<Endpoint, ExpandError> {
    let Remote { url, headers, oauth } = remote;
    let header = |(name, written): (&String, &String)| Ok((name.clone(), value_of(name, written, values)?));
    let headers = headers.iter().map(header).collect::<Result<_, _>>()?;
    let url = text(url, values)?;
    secrets::register_passwords(&url);
    let client = oauth.as_ref().map(|oauth| client(oauth, values)).transpose()?.flatten();
    Ok(Endpoint { url: Secret::plain(url), headers, oauth: oauth.clone(), client })
}

fn client(oauth: &OAuth, values: &Values) -> Result<Option<Client>, ExpandError> {
    let OAuth { client_id, client_secret, private_key, scopes, callback_port: _, grant } = oauth;
    let proof = match (client_secret, private_key) {
        _ if *grant == Grant::AuthorizationCode => return Ok(None),
        (Some(secret), _) => Proof::Secret(Secret::new(text(secret, values)?)),
        (None, Some(key)) => {
            let key = Secret::new(text(key, values)?);
            // Its lines are as secret as the whole.
            key.reveal().lines().filter(|line| !line.starts_with("-----")).for_each(|line| drop(Secret::new(line)));
            Proof::Key(key)
        }
        // The file was checked: one of them is there.
        (None, None) => return Ok(None),
    };
    Ok(client_id.as_ref().map(|id| Client { id: id.clone(), proof, scopes: scopes.clone() }))
}

/// What a client signs in with.
fn own_secrets(oauth: &OAuth) -> impl Iterator<Item = &str> {
    [&oauth.client_secret, &oauth.private_key].into_iter().filter_map(|secret| secret.as_deref())
}

/// Encodes an id as one path segment.
fn path_segment(id: &str) -> String {
    let mut encoded = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => encoded.push(byte.into()),
            // Dots, too: `..` would refer to the parent.
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The value of an `env` or `headers` entry. A literal value in the file is as secret as one from a variable.
fn value_of(name: &str, written: &str, values: &Values) -> Result<Secret, ExpandError> {
    let value = text(written, values)?;
    let has_reference = pieces(written).iter().any(|piece| matches!(piece, Piece::Reference { .. }));
    secrets::register_passwords(&value);
    Ok(if has_reference { Secret::plain(value) } else { literal(name, value) })
}

/// Registers the literal values of `env` and `headers` for masking, before anything of the definition is shown: the same
/// value may be in `args`.
pub fn register_literals(launch: &Launch) {
    let values: Vec<(&String, &String)> = match launch {
        Launch::Stdio(stdio) => stdio.env.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))).collect(),
        Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. } => {
            remote.headers.iter().collect()
        }
        Launch::Tcp { .. } | Launch::Sdk { .. } => Vec::new(),
    };
    for (name, written) in values {
        if references_in(written).is_empty() {
            secrets::for_each_password(written, |password| drop(Secret::written(password)));
            if !harmless_literal(name, written) {
                Secret::written(written);
            }
        }
    }
}

fn literal(name: &str, value: String) -> Secret {
    secrets::register_passwords(&value);
    if harmless_literal(name, &value) { Secret::plain(value) } else { Secret::new(value) }
}

fn guarded(name: &str, value: String) -> Secret {
    if harmless(name, &value) { Secret::plain(value) } else { Secret::new(value) }
}

fn fill(written: &str, values: &Values) -> Result<String, ExpandError> {
    let mut filled = String::with_capacity(written.len());
    for piece in pieces(written) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Reference { reference, .. } => filled.push_str(&look_up(&reference, values)?),
        }
    }
    Ok(filled)
}

fn look_up(reference: &Reference, values: &Values) -> Result<String, ExpandError> {
    let folder = |name| values.workspace_folder.as_deref().ok_or(ExpandError::NoFolder(name));
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match reference {
        Reference::Variable { name, default } => match (values.environment.get(name), default) {
            (Some(value), None) => guarded(name, value.to_owned()).reveal().to_owned(),
            (Some(value), Some(_)) if !value.is_empty() => guarded(name, value.to_owned()).reveal().to_owned(),
            (_, Some(default)) => fill(default, values)?,
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
        Reference::TooDeep(_) => return Err(ExpandError::Deep),
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

fn collect(written: &str, found: &mut Vec<Reference>) {
    for piece in pieces(written) {
        let Piece::Reference { reference, .. } = piece else { continue };
        if let Reference::Variable { default: Some(default), .. } = &reference {
            collect(default, found);
        }
        if !found.contains(&reference) {
            found.push(reference);
        }
    }
}

/// Every text of a launch that may contain references.
fn texts(launch: &Launch) -> Vec<&str> {
    match launch {
        Launch::Stdio(Stdio { command, args, env, env_file, cwd, inherit_env: _, sandbox }) => std::iter::once(command)
            .chain(args)
            .chain(env.values().flatten())
            .chain(env_file)
            .chain(cwd)
            .chain(sandbox.iter().flat_map(Sandbox::paths))
            .map(String::as_str)
            .collect(),
        Launch::Tcp { host, port: _ } => vec![host],
        Launch::Http(remote) | Launch::Sse(remote) => remote_texts(remote).collect(),
        Launch::Sdk { name: _ } => Vec::new(),
        Launch::ClaudeAiProxy { id, remote } => std::iter::once(id.as_str()).chain(remote_texts(remote)).collect(),
    }
}

fn remote_texts(remote: &Remote) -> impl Iterator<Item = &str> {
    let Remote { url, headers, oauth } = remote;
    // When the user signs in, the client secret is expanded only then.
    let machine = oauth.iter().filter(|oauth| oauth.grant == Grant::ClientCredentials);
    let secret = machine.flat_map(own_secrets);
    std::iter::once(url.as_str()).chain(headers.values().map(String::as_str)).chain(secret)
}

#[cfg(test)]
mod tests;
