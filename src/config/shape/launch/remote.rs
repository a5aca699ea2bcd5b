//! Servers that are reached by a URL: the URL, headers and sign-in.

use std::collections::BTreeMap;

use super::{LaunchEntry, expandable, port, required};
use crate::config::expand::{Piece, Reference, pieces};
use crate::config::problem::Code;
use crate::config::shape::checks;
use crate::config::shape::keys::OAUTH;
use crate::config::shape::reader::{Fields, Reader};
use crate::config::shape::secrets::{self, SecretName};
use crate::config::spec::{Grant, OAuth, Remote};
use crate::config::tree::Node;

pub fn remote(reader: &mut Reader<'_>, entry: &LaunchEntry<'_, '_>, kind: &str) -> Option<Remote> {
    let member = required(reader, entry, "url", kind);
    let mut remote = Remote::default();
    if let Some(member) = entry.fields.get("headers") {
        let host = entry.fields.get("url").and_then(|url| checks::other_host(url.value.text()?));
        remote.headers =
            reader.in_key(member, |reader| headers(reader, entry.name, &member.value, host)).unwrap_or_default();
    }
    if let Some(member) = entry.fields.get("oauth") {
        remote.oauth = reader.in_key(member, |reader| oauth(reader, entry.name, &member.value));
        // Without it, the user would be asked to sign in instead.
        remote.oauth.as_ref()?;
    }
    let member = member?;
    remote.url = reader.in_key(member, |reader| {
        let url = expandable(reader, &member.value)?;
        checks::url(reader, &member.value.span, &url)?;
        if let Some((span, name)) = secrets::find_in_url(&url).into_iter().next() {
            let secret_name = SecretName { server: entry.name, name, own: None };
            checks::raw_secret(reader, &member.value.span, &url, span, secret_name);
        }
        if let Some(host) = checks::other_host(&url) {
            checks::secret_to_host(reader, &member.value.span, &url, &host);
        }
        Some(url)
    })?;
    Some(remote)
}

/// `host` is the host that receives the headers, if it is another machine.
fn headers(
    reader: &mut Reader<'_>,
    server: &str,
    node: &Node,
    host: Option<String>,
) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    for member in reader.entries(node)? {
        let name = &member.key.text;
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            reader.problem(Code::BadHeader, &member.key.span, "this is not a valid HTTP header name");
            continue;
        }
        let value = reader.in_key(member, |reader| {
            let value = expandable(reader, &member.value)?;
            if value.contains(['\r', '\n']) {
                let message = format!("`{}` must not contain a line break", reader.here());
                reader.problem(Code::BadHeader, &member.value.span, message);
                return None;
            }
            Some(value)
        });
        let Some(value) = value else { continue };
        if let Some(span) = secrets::find(Some(name), &value) {
            let secret_name = SecretName { server, name, own: None };
            reader.in_key(member, |reader| checks::raw_secret(reader, &member.value.span, &value, span, secret_name));
        }
        if let Some(host) = &host {
            checks::secret_to_host(reader, &member.value.span, &value, host);
        }
        headers.insert(name.clone(), value);
    }
    Some(headers)
}

fn oauth(reader: &mut Reader<'_>, server: &str, node: &Node) -> Option<OAuth> {
    let fields = reader.object(node, &OAUTH)?;
    let mut oauth = OAuth::default();
    if let Some(member) = fields.get("clientId") {
        oauth.client_id = reader.in_key(member, |reader| reader.text(&member.value).map(str::to_owned));
    }
    if let Some(member) = fields.get("clientSecret") {
        oauth.client_secret = reader.in_key(member, |reader| {
            let value = expandable(reader, &member.value)?;
            if let Some(span) = secrets::find(Some("clientSecret"), &value) {
                let secret_name = SecretName { server, name: "clientSecret", own: None };
                checks::raw_secret(reader, &member.value.span, &value, span, secret_name);
            }
            Some(value)
        });
    }
    if let Some(member) = fields.get("privateKey") {
        oauth.private_key = reader.in_key(member, |reader| expandable(reader, &member.value));
        if oauth.private_key.is_some() && !is_reference(&member.value) {
            not_referenced(reader, "privateKey", &member.value);
            return None;
        }
    }
    if let Some(member) = fields.get("scopes") {
        let scopes = reader.in_key(member, |reader| reader.text_or_texts(&member.value)).unwrap_or_default();
        oauth.scopes = scopes.iter().flat_map(|text| text.split_whitespace().map(str::to_owned)).collect();
    }
    if let Some(member) = fields.get("callbackPort") {
        oauth.callback_port = reader.in_key(member, |reader| port(reader, &member.value));
    }
    if let Some(member) = fields.get("grantType") {
        let name = reader.in_key(member, |reader| reader.choice(&member.value, Code::UnknownType, Grant::NAMES))?;
        oauth.grant = Grant::named(name)?;
    }
    match oauth.grant {
        Grant::AuthorizationCode if oauth.private_key.is_some() => {
            reader.problem(Code::MissingKey, &node.span, "`privateKey` needs `\"grantType\": \"client_credentials\"`");
            None
        }
        Grant::AuthorizationCode => Some(oauth),
        Grant::ClientCredentials => client_credentials(reader, &fields, node).then_some(oauth),
    }
}

/// Checks that the client can sign in by itself: it has an id, and either a secret or a key that is not part of the file.
fn client_credentials(reader: &mut Reader<'_>, fields: &Fields<'_>, node: &Node) -> bool {
    let mut missing = |what: &str| {
        let message = format!("`grantType` `client_credentials` needs {what}");
        reader.problem(Code::MissingKey, &node.span, message);
    };
    let has_id = fields.get("clientId").is_some();
    if !has_id {
        missing("`clientId`");
    }
    match (fields.get("clientSecret"), fields.get("privateKey")) {
        (None, None) => {
            missing("`clientSecret` or `privateKey`");
            false
        }
        (Some(_), Some(_)) => {
            missing("either `clientSecret` or `privateKey`, not both");
            false
        }
        (Some(secret), None) if !is_reference(&secret.value) => {
            not_referenced(reader, "clientSecret", &secret.value);
            false
        }
        (Some(_), None) | (None, Some(_)) => has_id,
    }
}

/// Whether a value is a single reference to something that is not part of the file.
fn is_reference(value: &Node) -> bool {
    let refers = |reference: &Reference| match reference {
        Reference::Variable { default, .. } => default.is_none(),
        Reference::Keyring(_) | Reference::Input(_) => true,
        Reference::WorkspaceFolder
        | Reference::WorkspaceFolderBasename
        | Reference::UserHome
        | Reference::PathSeparator
        | Reference::Cwd
        | Reference::TooDeep(_)
        | Reference::Unknown(_) => false,
    };
    let written = value.text().unwrap_or_default();
    matches!(pieces(written).as_slice(), [Piece::Reference { reference, .. }] if refers(reference))
}

fn not_referenced(reader: &mut Reader<'_>, key: &str, value: &Node) {
    let message =
        format!("`{key}` must be a single reference: `${{keyring:NAME}}`, `${{env:NAME}}` or `${{input:ID}}`");
    reader.problem(Code::SecretNotReferenced, &value.span, message);
}
