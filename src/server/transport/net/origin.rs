//! Requests to one remote server. Whatever credentials there are stay with its origin: redirects are followed inside
//! it and nowhere else, and the token of a signed-in account is renewed once before the user is asked again.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use reqwest::{Client, Method, Response, StatusCode};
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};
use url::Url;

use super::{RemoteError, host_and_port, is_loopback, ready_tls};
use crate::config::expand::Endpoint;
use crate::server::oauth::{self, Account, TokenStore};
use crate::text::Secret;

pub const JSON: &str = "application/json";
pub const EVENT_STREAM: &str = "text/event-stream";

/// Redirects that are followed inside one origin before it is called a loop.
const MAX_REDIRECTS: usize = 5;
/// Bytes of the head of an answer.
const MAX_HEAD_BYTES: usize = 64 << 10;
/// Time for a connection to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Many servers close a connection that was idle for five seconds. Leaving it first avoids the race.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The longest that a server may ask to be left alone.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// One remote server as something to send requests to.
pub struct Origin {
    pub url: Url,
    /// Bytes of one message from the server.
    pub limit: usize,
    client: Client,
    headers: HeaderMap,
    /// Absent when the config brings an authorization of its own.
    account: Option<Account>,
}

/// One request, ready to be sent more than once.
pub struct Request {
    pub method: Method,
    pub headers: HeaderMap,
    pub body: Option<Vec<u8>>,
    /// How long the head of the answer may take. Absent where a server may think before it says anything.
    pub head_timeout: Option<Duration>,
}

impl Origin {
    pub fn new(endpoint: &Endpoint, limit: usize, tokens: Arc<dyn TokenStore>) -> Result<Self, RemoteError> {
        let url = parse(endpoint.url.reveal())?;
        let headers =
            endpoint.headers.iter().map(|(name, value)| header(name, value)).collect::<Result<HeaderMap, _>>()?;
        let own = headers.contains_key(AUTHORIZATION) || url.password().is_some();
        let account = (!own).then(|| Account::new(&url, tokens));
        Ok(Self { client: client(&url)?, url, limit, headers, account })
    }

    /// Sends `request` to `url`, which must be of this origin, and gives the answer as soon as its head is there.
    pub async fn fetch(&self, url: &Url, request: &Request) -> Result<Response, RemoteError> {
        let token = match &self.account {
            Some(account) => account.token().await?,
            None => None,
        };
        let mut answer = self.send(url, request, token.as_ref()).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let (Some(account), Some(rejected)) = (&self.account, &token)
            && let Some(fresh) = account.renew(rejected).await?
        {
            answer = self.send(url, request, Some(&fresh)).await?;
        }
        self.check_status(answer)
    }

    /// Reads a whole body as text.
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
                    tracing::debug!(error = %error.without_url(), "answer broke off");
                    return Err(RemoteError::StreamEnded);
                }
            }
        }
    }

    /// Sends as it is, following redirects inside the origin. The method stays what it was: a call is not turned into a look.
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
                // It says that the call was taken, and where to look: sent again, it would run twice.
                return Err(RemoteError::status(
                    answer.status(),
                    "a redirect to another page is no answer of an MCP server",
                ));
            }
            let Some(location) = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()) else {
                return Err(RemoteError::status(answer.status(), "a redirect that leads nowhere"));
            };
            url = url
                .join(location)
                .map_err(|_| RemoteError::status(answer.status(), "a redirect that is no address"))?;
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

    /// Lets through what the transport can judge for itself; the rest means the same for every transport.
    fn check_status(&self, answer: Response) -> Result<Response, RemoteError> {
        let text = |name: HeaderName| answer.headers().get(name).and_then(|value| value.to_str().ok());
        match answer.status() {
            StatusCode::UNAUTHORIZED => {
                oauth::challenged(&self.url, text(WWW_AUTHENTICATE));
                Err(RemoteError::NeedsAuth)
            }
            StatusCode::FORBIDDEN => {
                match text(WWW_AUTHENTICATE).and_then(|challenge| oauth::insufficient_scope(&self.url, challenge)) {
                    Some(scope) => Err(RemoteError::InsufficientScope(scope)),
                    None => Err(RemoteError::Forbidden),
                }
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let wait = text(RETRY_AFTER).and_then(|value| wait(value, SystemTime::now()));
                Err(RemoteError::Busy { status: "429 too many requests", wait })
            }
            // One that does not say when to come again may say something else, which the transport reads.
            StatusCode::SERVICE_UNAVAILABLE => match text(RETRY_AFTER).and_then(|value| wait(value, SystemTime::now()))
            {
                Some(wait) => Err(RemoteError::Busy { status: "503 service unavailable", wait: Some(wait) }),
                None => Ok(answer),
            },
            _ => Ok(answer),
        }
    }
}

/// How long a server asks to be left alone: in seconds, or up to a moment.
fn wait(said: &str, now: SystemTime) -> Option<Duration> {
    let moment =
        format_description!("[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT");
    let said = said.trim();
    let wait = match said.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = PrimitiveDateTime::parse(said, moment).ok()?.assume_utc();
            // What has passed already is no wait at all.
            Duration::try_from(until - OffsetDateTime::from(now)).unwrap_or_default()
        }
    };
    Some(wait.min(MAX_WAIT))
}

/// The media type of an answer, without its parameters.
pub fn content_type(answer: &Response) -> String {
    let value = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn parse(text: &str) -> Result<Url, RemoteError> {
    let url = Url::parse(text).map_err(|error| RemoteError::InvalidConfig(format!("`url` is no address: {error}")))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        scheme => Err(RemoteError::InvalidConfig(format!("`url` must start with http:// or https://, not {scheme}:"))),
    }
}

fn header(name: &str, value: &Secret) -> Result<(HeaderName, HeaderValue), RemoteError> {
    let bad = |what| RemoteError::InvalidConfig(format!("header `{name}` has a {what} that cannot be sent"));
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
    let mut value = HeaderValue::from_str(value.reveal().trim()).map_err(|_| bad("value"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Scheme and host of a foreign address. Its path and query are nobody's business here.
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
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT);
    if url.host_str().is_some_and(is_loopback) {
        // A proxy cannot know what this machine means by itself.
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Nothing here ever speaks TLS, so a machine without certificates is fine, too.
        builder = builder.tls_certs_only([]);
    }
    builder
        .build()
        .map_err(|error| RemoteError::InvalidConfig(format!("TLS is not available: {}", error.without_url())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_say_when_to_come_again_in_seconds_or_as_a_moment() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let wait = |said: &str| super::wait(said, now).map(|wait| wait.as_secs());
        assert_eq!(wait(" 7 "), Some(7));
        assert_eq!(wait("Sun, 06 Nov 1994 08:50:07 GMT"), Some(30));
        assert_eq!(wait("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(wait("Sun, 06 Nov 2094 08:00:00 GMT"), Some(3_600));
        assert_eq!(wait("soon"), None);
    }
}
