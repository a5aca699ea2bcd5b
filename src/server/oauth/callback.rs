//! The redirect target of the browser: a listener on a random port of this machine, for one request. Only a request
//! with the `state` of our own URL is accepted. The user can also paste its address (see [`super::pasted`]).

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use url::Url;

use crate::text::{Secret, io_reason, one_line};

/// Limits of a request head.
const MAX_HEAD_BYTES: usize = 16 << 10;
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How many visitors are served at the same time. One more replaces the oldest.
const MAX_VISITORS: usize = 16;
pub const PATH: &str = "/callback";

pub struct Callback {
    listener: TcpListener,
    port: u16,
}

/// What the issuer sent through the browser.
pub struct Answer {
    url: String,
    /// It still waits for a page. `None` if the user pasted the address.
    browser: Option<TcpStream>,
}

impl Callback {
    /// Listens on a random port, or on the one that was registered with the server.
    pub async fn listen(port: Option<u16>) -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0)))
            .await
            .map_err(|error| format!("cannot listen for the response of the browser: {}", io_reason(&error)))?;
        let port = listener.local_addr().map_err(|error| io_reason(&error))?.port();
        Ok(Self { listener, port })
    }

    pub fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Opens the page and waits for the browser's redirect, or for its address.
    pub async fn wait(
        &self,
        state: &str,
        limit: Duration,
        open: impl Future<Output = bool>,
        pasted: oneshot::Receiver<Url>,
    ) -> Result<Answer, String> {
        let opened = async {
            match open.await {
                // Opened: only the redirect can end the wait now.
                true => std::future::pending().await,
                false => Err("cannot open the sign-in page: no editor is connected that can open a browser".to_owned()),
            }
        };
        let answered = async {
            tokio::select! {
                answer = self.answer(state) => answer,
                Ok(url) = pasted => match refusal(&url) {
                    Some(reason) => Err(refused(&reason)),
                    None => Ok(Answer::new(url, None)),
                },
            }
        };
        // The listener comes first: a host without a browser may send the redirect before `open` returns.
        tokio::select! {
            biased;
            answer = timeout(limit, answered) => {
                answer.map_err(|_| format!("the sign-in was not completed within {} min; try again", limit.as_secs() / 60))?
            }
            refused = opened => refused,
        }
    }

    /// Waits for the expected request. Visitors are served side by side: browsers open connections that they do not use.
    async fn answer(&self, state: &str) -> Result<Answer, String> {
        let mut visitors = VecDeque::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (browser, _) = accepted
                        .map_err(|error| format!("cannot accept the response of the browser: {}", io_reason(&error)))?;
                    // The redirect itself arrives at once, so the oldest visitor waits for nothing.
                    if visitors.len() == MAX_VISITORS {
                        visitors.pop_front();
                    }
                    visitors.push_back(self.serve(browser, state).boxed());
                }
                done = first_done(&mut visitors) => {
                    if let Some(answer) = done {
                        return answer;
                    }
                }
            }
        }
    }

    /// Handles one request. `None` if it is not the expected one.
    async fn serve(&self, mut browser: TcpStream, state: &str) -> Option<Result<Answer, String>> {
        let target = timeout(REQUEST_TIMEOUT, read_target(&mut browser)).await.ok().flatten()?;
        let url = Url::parse(&format!("http://127.0.0.1:{}", self.port)).ok()?.join(&target).ok()?;
        if url.path() != PATH || !target.starts_with('/') {
            respond(&mut browser, "404 Not Found", "Page not found", "").await;
            return None;
        }
        if parameter(&url, "state").as_deref() != Some(state) {
            respond(&mut browser, "400 Bad Request", "This page does not belong to the current sign-in", "").await;
            return None;
        }
        if let Some(reason) = refusal(&url) {
            respond(&mut browser, "200 OK", "Not signed in", &reason).await;
            return Some(Err(refused(&reason)));
        }
        Some(Ok(Answer::new(url, Some(browser))))
    }
}

/// Why the issuer does not sign the user in.
fn refusal(url: &Url) -> Option<String> {
    let error = parameter(url, "error")?;
    let description = parameter(url, "error_description").unwrap_or_default();
    Some(one_line(format!("{error} {description}").trim(), 200))
}

fn refused(reason: &str) -> String {
    format!("the server refused the sign-in: {reason}")
}

impl Answer {
    fn new(url: Url, browser: Option<TcpStream>) -> Self {
        // Masked in all output from now on.
        parameter(&url, "code").map(Secret::new);
        Self { url: url.into(), browser }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Shows the outcome in the browser.
    pub async fn show(self, problem: Option<&String>) {
        let Some(mut browser) = self.browser else { return };
        match problem {
            None => {
                respond(&mut browser, "200 OK", "Signed in", "You can close this page and go back to your editor.")
                    .await
            }
            Some(problem) => respond(&mut browser, "200 OK", "Not signed in", problem).await,
        }
    }
}

/// Waits until one of these ends, and removes it.
async fn first_done<T>(futures: &mut VecDeque<BoxFuture<'_, T>>) -> T {
    poll_fn(|context| {
        let done = futures.iter_mut().enumerate().find_map(|(index, future)| match future.poll_unpin(context) {
            Poll::Ready(output) => Some((index, output)),
            Poll::Pending => None,
        });
        match done {
            Some((index, output)) => {
                drop(futures.remove(index));
                Poll::Ready(output)
            }
            None => Poll::Pending,
        }
    })
    .await
}

/// The target of a GET request; the rest of its head is ignored.
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
    // An error means that the browser has closed the connection.
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

pub fn parameter(url: &Url, name: &str) -> Option<String> {
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens silent connections, then sends the redirect. Returns the page that the browser got, and the URL.
    async fn redirect_after(silent: usize) -> (String, String) {
        let callback = Callback::listen(None).await.unwrap();
        let address = ("127.0.0.1", callback.port);
        let mut visitors = Vec::new();
        for _ in 0..silent {
            visitors.push(TcpStream::connect(address).await.unwrap());
        }
        let browser = async {
            let mut browser = TcpStream::connect(address).await.unwrap();
            browser.write_all(b"GET /callback?state=s&code=c HTTP/1.1\r\n\r\n").await.unwrap();
            let mut page = String::new();
            browser.read_to_string(&mut page).await.unwrap();
            page
        };
        let served = async {
            let answer = callback.wait("s", REQUEST_TIMEOUT * 60, async { true }, oneshot::channel().1).await.unwrap();
            let url = answer.url().to_owned();
            answer.show(None).await;
            url
        };
        // Less than the time that one silent visitor may take.
        timeout(REQUEST_TIMEOUT / 2, async { tokio::join!(browser, served) }).await.expect("the redirect works at once")
    }

    #[tokio::test]
    async fn a_silent_connection_does_not_block_the_redirect() {
        let (page, url) = redirect_after(1).await;
        assert!(page.contains("<h1>Signed in</h1>"), "{page}");
        assert!(url.ends_with("/callback?state=s&code=c"), "{url}");
    }

    #[tokio::test]
    async fn many_silent_connections_do_not_block_the_redirect() {
        let (page, _) = redirect_after(MAX_VISITORS * 3).await;
        assert!(page.contains("<h1>Signed in</h1>"), "{page}");
    }
}
