//! Replaces literal secrets with variables, so that none is copied to another file or shown.

use std::ops::Range;

use super::notes::Notes;
use super::references::variable;
use crate::config::shape::secrets::{self, SecretName};
use crate::config::spec::{Launch, Remote, Stdio};

/// More secrets than any real value contains.
const MAX_SECRETS: usize = 16;

/// The key that contained a secret, and the variable that replaces it.
type Hidden = (String, String);

/// The literal secrets that were replaced with variables.
#[derive(Default)]
pub struct Literals(secrets::Variables);

impl Literals {
    /// Replaces the literal secrets of a launch, and adds notes about the variables to set.
    pub fn hide(&mut self, launch: &mut Launch, server: &str, notes: &mut Notes) {
        let mut hidden = Vec::new();
        match launch {
            Launch::Stdio(stdio) => self.hide_stdio(stdio, server, &mut hidden),
            Launch::Http(remote) | Launch::Sse(remote) | Launch::ClaudeAiProxy { remote, .. } => {
                self.hide_remote(remote, server, &mut hidden);
            }
            Launch::Tcp { .. } | Launch::Sdk { .. } => {}
        }
        hidden.sort();
        hidden.dedup();
        for (key, name) in hidden {
            notes.add(format!("the secret in `{key}` is not copied: set the environment variable `{name}` instead"));
        }
    }

    fn hide_stdio(&mut self, stdio: &mut Stdio, server: &str, hidden: &mut Vec<Hidden>) {
        let Stdio { args, env, command: _, env_file: _, cwd: _, inherit_env: _, sandbox: _ } = stdio;
        for (name, value) in env {
            let Some(text) = value else { continue };
            let key = format!("env.{name}");
            self.hide_value(text, SecretName { server, name, own: Some(name) }, &key, hidden);
        }
        for (index, span, name) in secrets::find_in_args(args) {
            let Some(text) = args.get_mut(index) else { continue };
            let name = name.as_deref().unwrap_or("token");
            hidden.extend(self.hide_part(text, span, SecretName { server, name, own: None }, "args"));
        }
    }

    fn hide_remote(&mut self, remote: &mut Remote, server: &str, hidden: &mut Vec<Hidden>) {
        let Remote { url, headers, oauth } = remote;
        for (name, text) in headers {
            let key = format!("headers.{name}");
            self.hide_value(text, SecretName { server, name, own: None }, &key, hidden);
        }
        // In reverse order, so that earlier positions stay valid.
        for (span, name) in secrets::find_in_url(url).into_iter().rev() {
            hidden.extend(self.hide_part(url, span, SecretName { server, name, own: None }, "url"));
        }
        if let Some(secret) = oauth.as_mut().and_then(|oauth| oauth.client_secret.as_mut()) {
            let name = SecretName { server, name: "clientSecret", own: None };
            self.hide_value(secret, name, "oauth.clientSecret", hidden);
        }
    }

    fn hide_value(&mut self, text: &mut String, name: SecretName<'_>, key: &str, hidden: &mut Vec<Hidden>) {
        for _ in 0..MAX_SECRETS {
            let Some(span) = secrets::find(Some(name.name), text) else { return };
            hidden.extend(self.hide_part(text, span, name, key));
        }
    }

    fn hide_part(&mut self, text: &mut String, span: Range<usize>, name: SecretName<'_>, key: &str) -> Option<Hidden> {
        let variable_name = self.0.claim(name, text.get(span.clone())?);
        text.replace_range(span, &variable(&variable_name));
        Some((key.to_owned(), variable_name))
    }
}
