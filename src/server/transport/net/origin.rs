//! Requests to one remote server. Credentials stay within its origin: other redirects are not followed, and a rejected
//! token is renewed once before the user has to sign in.

use std::time::{Duration, SystemTime};

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{Client, Method, Response, StatusCode};
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};
use url::Url;

use super::resolver::CheckedResolver;
use super::{RemoteError, host_and_port, is_loopback, ready_tls};
use crate::config::address::{AddressKind, LEADS_TO_METADATA, kind_of_host};
use crate::config::expand::Endpoint;
use crate::server::oauth::{Account, ServerAuth, TokenChallenge};
use crate::text::{Secret, one_line, parse_url};

pub const JSON: &str = "application/json";
pub const EVENT_STREAM: &str = "text/event-stream";

/// Redirects to follow within one origin.
const MAX_REDIRECTS: usize = 5;
/// Maximum size of the response headers.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Many servers close a connection that was idle for five seconds; closing it earlier avoids a race.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The longest `Retry-After` that is honoured.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// One remote server.
pub struct Origin {
    pub url: Url,
    /// Maximum size of a message from the server.
    pub limit: usize,
    client: Client,
    headers: HeaderMap,
    auth: ServerAuth,
    /// `None` if the configuration sets an authorization.
    account: Option<Account>,
}

/// A request that can be sent more than once.
pub struct Request {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Option<Vec<u8>>,
    /// How long the response headers may take. `None` if the server may work before it answers.
    pub head_timeout: Option<Duration>,
}

impl Origin {
    pub fn new(endpoint: &Endpoint, limit: usize, auth: ServerAuth) -> Result<Self, RemoteError> {
        let url = parse(endpoint.url.reveal())?;
        let headers =
            endpoint.headers.iter().map(|(name, value)| header(name, value)).collect::<Result<HeaderMap, _>>()?;
        let own = headers.contains_key(AUTHORIZATION) || url.password().is_some();
        let account = (!own).then(|| auth.account(&url, endpoint.client.clone()));
        Ok(Self { client: client(&url)?, url, limit, headers, auth, account })
    }

    /// Sends `request` to `url`, which must have this origin, and returns once the response headers have arrived.
    pub async fn fetch(&self, url: &Url, request: &Request) -> Result<Response, RemoteError> {
        let token = match &self.account {
            Some(account) => account.token().await?,
            None => None,
        };
        let mut answer = self.send(url, request, token.as_ref()).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let Some(account) = &self.account
        {
            let header = answer.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
            if let Some(fresh) = account.renew(token.as_ref(), TokenChallenge { header }).await? {
                answer = self.send(url, request, Some(&fresh)).await?;
            }
        }
        self.check_status(answer)
    }

    /// Reads a body as text.
    pub async fn read(&self, mut answer: Response) -> Result<String, RemoteError> {
        let mut body = Vec::new();
        loop {
            match answer.chunk().await {
                Ok(Some(bytes)) if body.len() + bytes.len() > self.limit => {
                    return Err(RemoteError::TooLarge(self.limit));
                }
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Ok(None) => return Ok(String::from_utf8_lossy(&body).into_owned()),
                Err(error) => {
                    tracing::debug!(error = %error.without_url(), "the response ended early");
                    return Err(RemoteError::StreamEnded);
                }
            }
        }
    }

    /// Sends a request and follows redirects within the origin. The method never changes.
    pub async fn send(&self, url: &Url, request: &Request, token: Option<&Secret>) -> Result<Response, RemoteError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            if url.origin() != self.url.origin() {
                return Err(RemoteError::Redirect(origin_text(&url)));
            }
            let answer = self.send_once(&url, request, token).await?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            if answer.status() == StatusCode::SEE_OTHER && request.method != Method::GET {
                // The call was accepted: sending it again would run it twice.
                return Err(RemoteError::status(answer.status(), "an MCP server must not redirect to another page"));
            }
            let Some(location) = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()) else {
                return Err(RemoteError::status(answer.status(), "the redirect has no `Location` header"));
            };
            url = url.join(location).map_err(|_| {
                RemoteError::status(answer.status(), "the `Location` header of the redirect is not a URL")
            })?;
        }
        Err(RemoteError::Status { code: 310, text: format!("more than {MAX_REDIRECTS} redirects in a row") })
    }

    async fn send_once(&self, url: &Url, request: &Request, token: Option<&Secret>) -> Result<Response, RemoteError> {
        let mut headers = self.headers.clone();
        headers.extend(request.headers.clone());
        if let Some(token) = token {
            headers.insert(
                AUTHORIZATION,
                header("authorization", &Secret::plain(format!("Bearer {}", token.reveal())))?.1,
            );
        }
        let mut sending = self.client.request(request.method.clone(), url.clone()).headers(headers);
        if let Some(body) = &request.body {
            sending = sending.body(body.clone());
        }
        let answer = match request.head_timeout {
            Some(limit) => {
                tokio::time::timeout(limit, sending.send()).await.map_err(|_| RemoteError::HeadersTimeout(limit))?
            }
            None => sending.send().await,
        };
        let answer = answer.map_err(|error| RemoteError::from_reqwest(error, url))?;
        let head: usize = answer.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        if head > MAX_HEAD_BYTES { Err(RemoteError::HeadersTooLarge) } else { Ok(answer) }
    }

    /// Handles the status codes that mean the same for every transport.
    fn check_status(&self, answer: Response) -> Result<Response, RemoteError> {
        let text = |name: HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
        // A user cannot sign in instead of a client with its own secret.
        let client = self.account.as_ref().and_then(Account::client).map(|client| one_line(&client.id, 80));
        match answer.status() {
            StatusCode::UNAUTHORIZED => match client {
                Some(id) => Err(RemoteError::InvalidConfig(format!(
                    "the server rejects the access token of the client `{id}` (HTTP 401); check `oauth`"
                ))),
                None => {
                    self.auth.challenged(&self.url, text(WWW_AUTHENTICATE));
                    Err(RemoteError::NeedsAuth)
                }
            },
            StatusCode::FORBIDDEN => {
                let scope =
                    text(WWW_AUTHENTICATE).and_then(|challenge| self.auth.insufficient_scope(&self.url, challenge));
                match (scope, client) {
                    (Some(scope), Some(_)) => Err(RemoteError::InvalidConfig(format!(
                        "the server requires more permissions ({scope}); add them to `oauth.scopes`"
                    ))),
                    (Some(scope), None) => Err(RemoteError::InsufficientScope(scope)),
                    (None, _) => Err(RemoteError::Forbidden),
                }
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let wait = text(RETRY_AFTER).and_then(|value| parse_retry_after(value, SystemTime::now()));
                Err(RemoteError::Busy { status: "HTTP 429 too many requests", wait })
            }
            // Without `Retry-After` the transport reads the body.
            StatusCode::SERVICE_UNAVAILABLE => {
                match text(RETRY_AFTER).and_then(|value| parse_retry_after(value, SystemTime::now())) {
                    Some(wait) => Err(RemoteError::Busy { status: "HTTP 503 service unavailable", wait: Some(wait) }),
                    None => Ok(answer),
                }
            }
            _ => Ok(answer),
        }
    }
}

/// The value of `Retry-After`: seconds or a date.
fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let http_date =
        format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");
    let value = value.trim();
    let wait = match value.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = PrimitiveDateTime::parse(value, http_date).ok()?.assume_utc();
            // A date in the past means no delay.
            Duration::try_from(until - OffsetDateTime::from(now)).unwrap_or_default()
        }
    };
    Some(wait.min(MAX_WAIT))
}

/// The media type of a response, without parameters.
pub fn content_type(answer: &Response) -> String {
    let value = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn parse(text: &str) -> Result<Url, RemoteError> {
    let url =
        parse_url(text).map_err(|reason| RemoteError::InvalidConfig(format!("`url` is not a valid URL: {reason}")))?;
    let is_metadata = url.host().is_some_and(|host| kind_of_host(&host) == AddressKind::Metadata);
    match url.scheme() {
        _ if is_metadata => Err(RemoteError::InvalidConfig(format!("`url` {LEADS_TO_METADATA}"))),
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(RemoteError::InvalidConfig(format!("`url` must start with http:// or https://, not {scheme}:"))),
    }
}

fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), RemoteError> {
    let bad =
        |what| RemoteError::InvalidConfig(format!("the {what} of the header `{name}` contains invalid characters"));
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
    let mut value = HeaderValue::from_str(value.reveal().trim()).map_err(|_| bad("value"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Scheme and host of a foreign URL, without its path and query.
fn origin_text(url: &Url) -> String {
    match url.scheme() {
        "http" | "https" => format!("{}://{}", url.scheme(), host_and_port(url)),
        scheme => format!("{scheme}:"),
    }
}

fn client(url: &Url) -> Result<Client, RemoteError> {
    ready_tls();
    let mut builder = Client::builder()
        .user_agent(concat!("mcp-sidecar/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .referer(false)
        .dns_resolver(CheckedResolver)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT);
    if url.host_str().is_some_and(is_loopback) {
        // A proxy cannot reach this machine's loopback.
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // No TLS is needed, so missing certificates do not matter.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| RemoteError::InvalidConfig(format!("cannot set up TLS: {}", error.without_url())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_may_be_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let wait = |value: &str| super::parse_retry_after(value, now).map(|wait| wait.as_secs());
        assert_eq!(wait(" 7 "), Some(7));
        assert_eq!(wait("Sun, 06 Nov 1994 08:50:07 GMT"), Some(30));
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(wait("Sun, 06 Nov 2094 08:00:00 GMT"), Some(3_600));
        assert_eq!(wait("soon"), None);
    }
}
