//! Sends exports to the collector, with the headers of the user. Their values are secrets: no error contains one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use tokio::sync::watch;
use url::Url;

use super::super::vault::Vault;
use crate::config::Environments;
use crate::server::transport::net::{RemoteError, host_and_port, is_loopback, ready_tls};
use crate::settings::{HeaderPart, Headers, Settings, header_parts};
use crate::text::{Secret, one_line, parse_url};

/// How long the collector may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why nothing was exported, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Lower case, no full stop.
    pub why: String,
    pub fix: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.why, self.fix)
    }
}

fn failure(why: impl Into<String>, fix: impl Into<String>) -> Failure {
    Failure { why: why.into(), fix: fix.into() }
}

/// The way to the collector. A clone looks the secrets up itself.
pub struct Collector {
    vault: Vault,
    environments: watch::Receiver<Arc<Environments>>,
    /// An empty private folder for commands that print a secret.
    folder: PathBuf,
    /// Kept until a setting changes or the collector refuses them: a password manager may ask the user.
    headers: Option<ResolvedHeaders>,
}

/// Headers with their values, and the settings that they are made of.
struct ResolvedHeaders {
    written: Headers,
    commands: BTreeMap<String, Vec<String>>,
    headers: HeaderMap,
}

impl Clone for Collector {
    fn clone(&self) -> Self {
        Self::new(self.vault.clone(), self.environments.clone(), self.folder.clone())
    }
}

impl Collector {
    pub fn new(vault: Vault, environments: watch::Receiver<Arc<Environments>>, folder: PathBuf) -> Self {
        Self { vault, environments, folder, headers: None }
    }

    pub async fn send(&mut self, settings: &Settings, path: &str, body: &Value) -> Result<(), Failure> {
        const ADDRESS: &str = "correct `telemetry.otlp-endpoint` in config.toml";
        let endpoint = &settings.telemetry.otlp_endpoint;
        let url = parse_url(&format!("{}/{path}", endpoint.trim_end_matches('/')))
            .and_then(|url| match url.scheme() {
                "http" | "https" => Ok(url),
                _ => Err("it must start with `https://` or `http://`"),
            })
            .map_err(|why| failure(format!("the address of the collector is not valid: {why}"), ADDRESS))?;
        let headers = self.headers(settings, &url).await?;
        let client = client(&url).map_err(|error| failure(error.to_string(), ADDRESS))?;
        let answer = client.post(url.clone()).headers(headers).json(body).send().await;
        let answer = answer.map_err(|error| match error.is_timeout() {
            true => {
                let why = format!("{} did not answer within {} s", host_and_port(&url), TIMEOUT.as_secs());
                failure(why, "check the collector")
            }
            false => {
                let why = match RemoteError::from_reqwest(error, &url) {
                    RemoteError::Refused(address) => format!("cannot connect to {address}: connection refused"),
                    error => error.to_string(),
                };
                failure(why, "start the collector, or correct `telemetry.otlp-endpoint` in config.toml")
            }
        })?;
        let (status, host) = (answer.status(), host_and_port(&url));
        match status.as_u16() {
            _ if status.is_success() => Ok(()),
            code @ (401 | 403) => {
                self.headers = None;
                let why = format!("the collector at {host} refused the records (HTTP {code})");
                Err(failure(why, "check `telemetry.otlp-headers` in config.toml and the secrets that it names"))
            }
            code @ (300..=399 | 404 | 405) => {
                Err(failure(format!("the collector at {host} does not accept OTLP there (HTTP {code})"), ADDRESS))
            }
            code => Err(failure(format!("the collector at {host} answered HTTP {code}"), "check the collector")),
        }
    }

    async fn headers(&mut self, settings: &Settings, url: &Url) -> Result<HeaderMap, Failure> {
        let (written, commands) = (&settings.telemetry.otlp_headers, &settings.secret_commands);
        if written.is_empty() {
            return Ok(HeaderMap::new());
        }
        if url.scheme() != "https" && !url.host_str().is_some_and(is_loopback) {
            let why = format!("the headers for {} would be readable on the network", host_and_port(url));
            return Err(failure(
                why,
                "use an https address in `telemetry.otlp-endpoint`, or remove `telemetry.otlp-headers`",
            ));
        }
        if let Some(resolved) = &self.headers
            && (&resolved.written, &resolved.commands) == (written, commands)
        {
            return Ok(resolved.headers.clone());
        }
        let mut headers = HeaderMap::new();
        for (name, value) in written {
            let value = self.value(settings, value).await?;
            let invalid = || {
                let why = format!("the value of the header `{}` contains invalid characters", one_line(name, 100));
                failure(why, "check the secrets that `telemetry.otlp-headers` names")
            };
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
            let mut value = HeaderValue::from_str(value.reveal().trim()).map_err(|_| invalid())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let (written, commands) = (written.clone(), commands.clone());
        self.headers = Some(ResolvedHeaders { written, commands, headers: headers.clone() });
        Ok(headers)
    }

    /// A value with its secrets, which are registered for masking.
    async fn value(&self, settings: &Settings, written: &str) -> Result<Secret, Failure> {
        let mut value = String::new();
        for part in header_parts(written).unwrap_or_default() {
            match part {
                HeaderPart::Text(text) => value.push_str(text),
                HeaderPart::Secret(name) => value.push_str(self.secret(settings, name).await?.reveal()),
            }
        }
        Ok(Secret::plain(value))
    }

    async fn secret(&self, settings: &Settings, name: &str) -> Result<Secret, Failure> {
        let environment = self.environments.borrow().in_folder(None).clone();
        let entry = self.vault.entry(name, &settings.secret_commands, &environment, &self.folder).await;
        let shown = one_line(name, 100);
        match entry {
            Ok(Some(secret)) => Ok(secret),
            Ok(None) => Err(failure(
                format!("the keyring has no entry `{shown}` for the header of the collector"),
                format!("run `mcp-sidecar secret set {shown}`, or correct `telemetry.otlp-headers` in config.toml"),
            )),
            Err(complaint) => {
                // It says after a semicolon how to fix it.
                let (why, fix) = complaint.split_once("; ").unwrap_or((&complaint, "correct it in config.toml"));
                Err(failure(format!("cannot get `{shown}` for the header of the collector: {why}"), fix))
            }
        }
    }
}

/// The collector, for users.
pub fn address(settings: &Settings) -> String {
    parse_url(&settings.telemetry.otlp_endpoint).map_or_else(|_| "?".to_owned(), |url| host_and_port(&url))
}

fn client(url: &Url) -> reqwest::Result<reqwest::Client> {
    ready_tls();
    let mut client = reqwest::Client::builder().timeout(TIMEOUT).redirect(reqwest::redirect::Policy::none());
    if url.host_str().is_some_and(is_loopback) {
        client = client.no_proxy();
    }
    if url.scheme() == "http" {
        client = client.tls_certs_only([]);
    }
    client.build().map_err(reqwest::Error::without_url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::Paths;
    use crate::secrets::Keyring;

    #[tokio::test]
    async fn a_failure_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let paths = Paths::under(folder.path());
        let vault = Vault::new(Keyring::without_system(&paths));
        let mut collector = Collector::new(vault, watch::Sender::new(Arc::default()).subscribe(), at("commands"));
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut said = String::new();
        let token = "[telemetry.otlp-headers]\nAuthorization = \"Bearer ${keyring:otlp}\"\n";
        let broken = "[secret-commands]\notlp = [\"no-such-program\"]\n";
        for (endpoint, more) in [
            (format!("http://{closed}"), String::new()),
            ("collector:4318".to_owned(), String::new()),
            // Nothing is sent there: it has no such secret, or would be readable.
            ("https://collector.example.test".to_owned(), token.to_owned()),
            ("https://collector.example.test".to_owned(), format!("{token}{broken}")),
            ("http://collector.example.test".to_owned(), token.to_owned()),
        ] {
            let text = format!("[telemetry]\notlp-endpoint = \"{endpoint}\"\n{more}");
            let (settings, problems) = Settings::from_toml(&text);
            assert_eq!(problems, []);
            let failure = collector.send(&settings, "v1/traces", &Value::Null).await.unwrap_err();
            said.push_str(&format!("{failure}\n").replace(&closed.to_string(), "ADDRESS"));
        }
        insta::assert_snapshot!(said, @r#"
        cannot connect to ADDRESS: connection refused; start the collector, or correct `telemetry.otlp-endpoint` in config.toml
        the address of the collector is not valid: it must start with `https://` or `http://`; correct `telemetry.otlp-endpoint` in config.toml
        cannot get `otlp` for the header of the collector: no keyring is running on this machine; set `secrets = "file"` in config.toml to keep values in a file that only you can read, but that is not encrypted
        cannot get `otlp` for the header of the collector: `no-such-program` was not found on the PATH; install it or use its full path
        the headers for collector.example.test:80 would be readable on the network; use an https address in `telemetry.otlp-endpoint`, or remove `telemetry.otlp-headers`
        "#);
    }
}
