//! What a definition gets of the user's, and to whom it goes.

use crate::config::address::Target;
use crate::config::expand::{self, Reference, Values, is_passed_on};
use crate::config::spec::{Launch, OAuth, Remote, Sandbox, Stdio};
use crate::paths::canonical;
use crate::policy::trust::program;
use crate::text::exact;

/// One line for each value of the user that the launch refers to: ``your `TOKEN` as header `X`, sent to `host` ``.
pub fn flows(launch: &Launch, known: &Values) -> Vec<String> {
    let mut flows = Vec::new();
    let mut add = |written: &str, how: &str, to: Option<&str>| {
        for what in values(written, to.is_some()) {
            let to = to.map(|to| format!(", sent to {to}")).unwrap_or_default();
            let flow = format!("{what} {how}{to}");
            if !flows.contains(&flow) {
                flows.push(flow);
            }
        }
    };
    match launch {
        Launch::Stdio(Stdio { command, args, env, env_file, cwd, inherit_env: _, sandbox }) => {
            for (name, value) in env {
                let how = format!("as variable `{}`", exact(name));
                value.iter().for_each(|value| add(value, &how, None));
            }
            args.iter().for_each(|arg| add(arg, "in an argument", None));
            add(command, "in its command", None);
            cwd.iter().for_each(|cwd| add(cwd, "in its working folder", None));
            env_file.iter().for_each(|file| add(file, "in the path of its env file", None));
            sandbox.iter().flat_map(Sandbox::paths).for_each(|path| add(path, "in a path of its sandbox", None));
        }
        Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. } => {
            let Remote { url, headers, oauth } = remote;
            let host = host(url);
            for (name, value) in headers {
                add(value, &format!("as header `{}`", exact(name)), Some(&host));
            }
            add(url, "in the URL", Some(&host));
            if let Launch::ClaudeAiProxy { id, .. } = launch {
                add(id, "in the URL", Some(&host));
            }
            if let Some(OAuth { client_secret: Some(secret), .. }) = oauth {
                add(secret, "as the client secret of its sign-in", Some(&host));
            }
            if let Some(OAuth { private_key: Some(key), .. }) = oauth {
                add(key, "as the private key that signs its sign-in requests (the key itself is not sent)", None);
            }
        }
        Launch::Tcp { host, port: _ } => add(host, "in the address", Some("that address")),
        Launch::Sdk { name: _ } => {}
    }
    if let Launch::Stdio(stdio) = launch {
        flows.extend(outside_file(stdio, known));
        if stdio.inherit_env {
            flows.push("your whole environment, including any tokens in it (`inheritEnv`)".to_owned());
        }
    }
    flows
}

/// The host of a URL as a person should read it.
pub fn host(url: &str) -> String {
    match Target::of(url).and_then(|target| target.host) {
        Some(host) => format!("`{}`", exact(&host)),
        None => "a host that is known only after its variables are expanded".to_owned(),
    }
}

/// The values of the user in a text. Every program gets variables such as `LANG`, but a remote server does not.
fn values(written: &str, is_sent: bool) -> Vec<String> {
    let what = |reference: Reference| match reference {
        Reference::Variable { name, .. } if is_sent || !is_passed_on(&name) => Some(format!("your `{}`", exact(&name))),
        Reference::Keyring(name) => Some(format!("`{}` from your keyring", exact(&name))),
        Reference::Input(id) => Some(format!("your answer to `{}`", exact(&id))),
        Reference::Variable { .. }
        | Reference::WorkspaceFolder
        | Reference::WorkspaceFolderBasename
        | Reference::UserHome
        | Reference::PathSeparator
        | Reference::Cwd
        | Reference::TooDeep(_)
        | Reference::Unknown(_) => None,
    };
    expand::references_in(written).into_iter().filter_map(what).collect()
}

/// An env file outside the project is a file of the user.
fn outside_file(stdio: &Stdio, known: &Values) -> Option<String> {
    let path = program::env_file(stdio.env_file.as_deref()?, known)?;
    let is_inside =
        known.workspace_folder.as_deref().is_some_and(|folder| canonical(&path).starts_with(canonical(folder)));
    let shown = exact(&path.display().to_string());
    (!is_inside).then(|| format!("the variables in `{shown}`, a file outside this project"))
}
