//! The account at one server: a valid token, renewed automatically. It is the user's, or that of a client with its own
//! secret.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Mutex;
use url::Url;

use super::client_credentials::{self, Challenge};
use super::renewal;
use super::tokens::{SavedSignIn, TokenStore};
use crate::config::expand::Client;
use crate::server::transport::net::RemoteError;
use crate::text::Secret;

/// A token is renewed this many seconds before it expires, so that it stays valid during the request.
const MARGIN: u64 = 30;
const ACCESS_TOKEN: &str = "access_token";

pub struct Account {
    url: Url,
    source: Source,
    /// The entry in use. Locked during a renewal, so that concurrent calls renew only once; this is the one lock that
    /// is meant to be held over an await.
    entry: Mutex<State>,
}

/// Where tokens come from.
enum Source {
    /// A sign-in of the user, which all processes share.
    Stored(Arc<dyn TokenStore>),
    /// The secret of a client. Each account requests its own tokens, and nothing is stored.
    Client(Client),
}

enum State {
    Unread,
    Read(Option<Box<SavedSignIn>>),
}

impl Account {
    pub fn new(url: &Url, store: Arc<dyn TokenStore>, client: Option<Client>) -> Self {
        let source = client.map_or(Source::Stored(store), Source::Client);
        Self { url: url.clone(), source, entry: Mutex::new(State::Unread) }
    }

    /// The client that signs in by itself. The user cannot sign in then.
    pub fn client(&self) -> Option<&Client> {
        match &self.source {
            Source::Client(client) => Some(client),
            Source::Stored(_) => None,
        }
    }

    /// The access token of an entry.
    fn access_token(&self, entry: &SavedSignIn) -> Option<Secret> {
        entry.token(&self.url, ACCESS_TOKEN)
    }

    /// The token to send; `None` if there is none yet.
    pub async fn token(&self) -> Result<Option<Secret>, RemoteError> {
        let mut state = self.entry.lock().await;
        if let (State::Unread, Source::Stored(store)) = (&*state, &self.source) {
            *state = State::Read(SavedSignIn::load(&self.url, store).await.map(Box::new));
        }
        let State::Read(Some(entry)) = &mut *state else { return Ok(None) };
        if !ends_soon(entry) {
            return Ok(self.access_token(entry));
        }
        let fresh = match &self.source {
            Source::Stored(store) => renewal::renew(&self.url, store, |stored| !ends_soon(stored)).await?,
            Source::Client(client) => Some(client_credentials::request(&self.url, client, Challenge::default()).await?),
        };
        if let Some(fresh) = fresh {
            **entry = fresh;
        }
        // Without a fresh one: the token may still be valid; if not, the server rejects it.
        Ok(self.access_token(entry))
    }

    /// Replaces the token that the server rejected, or its absence; `None` if the user has to sign in.
    pub async fn renew(
        &self,
        rejected: Option<&Secret>,
        challenge: Challenge<'_>,
    ) -> Result<Option<Secret>, RemoteError> {
        let mut state = self.entry.lock().await;
        let fresh = match (&self.source, rejected) {
            (Source::Stored(_), None) => None,
            (Source::Stored(store), Some(rejected)) => {
                let (rejected, url) = (rejected.clone(), self.url.clone());
                let is_other =
                    move |stored: &SavedSignIn| stored.token(&url, ACCESS_TOKEN).is_some_and(|token| token != rejected);
                renewal::renew(&self.url, store, is_other).await?
            }
            (Source::Client(client), rejected) => match &*state {
                // Another call has requested one in the meantime.
                State::Read(Some(entry)) if self.access_token(entry).as_ref() != rejected => {
                    return Ok(self.access_token(entry));
                }
                State::Read(_) | State::Unread => {
                    Some(client_credentials::request(&self.url, client, challenge).await?)
                }
            },
        };
        let token = fresh.as_ref().and_then(|entry| self.access_token(entry));
        if let Some(fresh) = fresh {
            *state = State::Read(Some(Box::new(fresh)));
        }
        Ok(token)
    }
}

fn ends_soon(entry: &SavedSignIn) -> bool {
    let lives = entry.field("expires_in").and_then(|value| value.as_u64());
    let (Some(lives), Some(received)) = (lives, entry.credentials.token_received_at) else { return false };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    received.saturating_add(lives) < now.saturating_add(MARGIN)
}
