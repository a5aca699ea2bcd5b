//! The page that the browser comes back to: a listener on this machine, on a port nobody can guess, for one answer.
//! Only a request that carries the state of our own question counts; whatever else knocks is sent away.

use std::future::Future;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use crate::text::one_line;

/// Bytes of a request's head, and the time for it to come.
const MAX_HEAD_BYTES: usize = 16 << 10;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
const PATH: &str = "/callback";

pub struct Callback {
    listener: TcpListener,
    port: u16,
}

/// The browser's answer, with the browser still waiting for a page.
pub struct Answer {
    url: String,
    browser: TcpStream,
}

impl Callback {
    /// Listens on a random port, or on the one that was registered with the server.
    pub async fn listen(port: Option<u16>) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0)))
            .await
            .map_err(|error| format!("no port to listen on for the browser's answer: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        Ok(Self { listener, port })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Opens the page and waits for the browser to come back from it.
    pub async fn wait(&self, page: &str, limit: Duration, open: impl Future<Output = bool>) -> Result<Answer, String> {
        let state =
            Url::parse(page).ok().and_then(|url| parameter(&url, "state")).ok_or("the sign-in page has no state")?;
        let opened = async {
            match open.await {
                // Opened: from here on only the browser's answer can end this.
                true => std::future::pending().await,
                false => Err("no editor could open the sign-in page".to_owned()),
            }
        };
        let answered = async {
            loop {
                if let Some(answer) = self.accept(&state).await {
                    return answer;
                }
            }
        };
        // The listener goes first: a host without a browser may come back before `open` has ended.
        tokio::select! {
            biased;
            answer = timeout(limit, answered) => {
                answer.map_err(|_| format!("nobody came back from the browser within {} min", limit.as_secs() / 60))?
            }
            refused = opened => refused,
        }
    }

    /// One visitor. `None`: not the one we wait for.
    async fn accept(&self, state: &str) -> Option<Result<Answer, String>> {
        let (mut browser, _) = match self.listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => return Some(Err(format!("the browser's answer could not be taken: {error}"))),
        };
        let target = timeout(REQUEST_TIMEOUT, read_target(&mut browser)).await.ok().flatten()?;
        let url = Url::parse(&format!("http://127.0.0.1:{}", self.port)).ok()?.join(&target).ok()?;
        if url.path() != PATH || !target.starts_with('/') {
            respond(&mut browser, "404 Not Found", "There is nothing here", "").await;
            return None;
        }
        if parameter(&url, "state").as_deref() != Some(state) {
            respond(&mut browser, "400 Bad Request", "This is not the answer to our question", "").await;
            return None;
        }
        if let Some(error) = parameter(&url, "error") {
            let description = parameter(&url, "error_description").unwrap_or_default();
            let reason = one_line(format!("{error} {description}").trim(), 200);
            respond(&mut browser, "200 OK", "Not signed in", &reason).await;
            return Some(Err(format!("the server refused: {reason}")));
        }
        Some(Ok(Answer { url: url.into(), browser }))
    }
}

impl Answer {
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Tells the person in front of the browser how it ended.
    pub async fn show(mut self, problem: Option<&String>) {
        match problem {
            None => {
                respond(&mut self.browser, "200 OK", "Signed in", "You can close this page and go back to your editor.")
                    .await
            }
            Some(problem) => respond(&mut self.browser, "200 OK", "Not signed in", problem).await,
        }
    }
}

/// The target of a GET request; the rest of its head is read and forgotten.
async fn read_target(browser: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut chunk = [0; 1024];
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let count = browser.read(&mut chunk).await.ok()?;
        if count == 0 || head.len() + count > MAX_HEAD_BYTES {
            return None;
        }
        head.extend_from_slice(chunk.get(..count)?);
    }
    let head = String::from_utf8(head).ok()?;
    let mut parts = head.lines().next()?.split(' ');
    (parts.next()? == "GET").then(|| parts.next().map(str::to_owned)).flatten()
}

async fn respond(browser: &mut TcpStream, status: &str, title: &str, text: &str) {
    let body = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>\
         <style>body{{font:1.1em system-ui;display:grid;place-content:center;min-height:80vh;text-align:center;color-scheme:light dark}}</style>\
         <h1>{title}</h1><p>{}</p></html>",
        escape(text)
    );
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    // A browser that went away has seen enough.
    timeout(REQUEST_TIMEOUT, async {
        browser.write_all(answer.as_bytes()).await.ok();
        browser.shutdown().await.ok();
    })
    .await
    .ok();
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}
