//! Stores of tokens, and the format of an entry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use rmcp::transport::auth::{CredentialStore, InMemoryCredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::model::{Error, Result};
use crate::text::Secret;

/// Saves tokens across restarts. The engine uses the keyring.
pub trait TokenStore: Send + Sync + 'static {
    fn load(&self, key: String) -> BoxFuture<'static, Option<Secret>>;
    fn save(&self, key: String, value: Secret) -> BoxFuture<'static, Result<()>>;
    fn clear(&self, key: String) -> BoxFuture<'static, Result<()>>;

    /// Keeps others from renewing or replacing the entry until the lock is dropped. A store that nothing else uses
    /// needs none.
    fn lock(&self, _key: String) -> BoxFuture<'static, Result<TokenLock>> {
        ready(Ok(TokenLock(Box::new(())))).boxed()
    }
}

/// Held while an entry is replaced.
pub struct TokenLock(pub Box<dyn Send>);

/// The key of a server's entry: its URL without query and credentials.
pub fn key(url: &Url) -> String {
    format!("oauth {}{}", url.origin().ascii_serialization(), url.path().trim_end_matches('/'))
}

/// The resource that a token is for: the URL without query, fragment and credentials.
pub(super) fn resource(url: &Url) -> String {
    let mut resource = url.clone();
    resource.set_query(None);
    resource.set_fragment(None);
    // They fail only for a URL without a host, which has no credentials.
    resource.set_username("").ok();
    resource.set_password(None).ok();
    resource.into()
}

/// The entry of one server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedSignIn {
    pub credentials: StoredCredentials,
    /// Not kept by the library, but required to renew the token of a confidential client.
    pub client_secret: Option<String>,
    pub redirect_uri: String,
}

impl SavedSignIn {
    pub async fn load(url: &Url, store: &Arc<dyn TokenStore>) -> Option<Self> {
        let text = store.load(key(url)).await?;
        match serde_json::from_str::<Self>(text.reveal()) {
            Ok(entry) => {
                entry.register(url);
                Some(entry)
            }
            Err(error) => {
                tracing::warn!(line = %error.line(), "ignored a stored token that cannot be parsed");
                None
            }
        }
    }

    /// Masks its secrets in all output from now on, and no longer those of entries that it has replaced.
    pub fn register(&self, url: &Url) {
        for name in ["access_token", "refresh_token", "id_token"] {
            self.token(url, name);
        }
        if let Some(secret) = &self.client_secret {
            client_secret(url, secret);
        }
    }

    /// A token of the response of the issuer.
    pub fn token(&self, url: &Url, name: &str) -> Option<Secret> {
        let token = self.field(name)?.as_str()?.to_owned();
        Some(Secret::replacing(&format!("{} {name}", key(url)), token))
    }

    /// A field of the response of the issuer.
    pub fn field(&self, name: &str) -> Option<Value> {
        let answer = serde_json::to_value(self.credentials.token_response.as_ref()?).ok()?;
        answer.get(name).cloned()
    }

    pub async fn save(&self, url: &Url, store: &Arc<dyn TokenStore>) -> Result<()> {
        self.register(url);
        let text = serde_json::to_string(self).map_err(|_| Error::Io("cannot serialize the token".to_owned()))?;
        store.save(key(url), Secret::plain(text)).await
    }
}

/// The secret of a client that was registered for this server.
pub(super) fn client_secret(url: &Url, secret: &str) -> Secret {
    Secret::replacing(&format!("{} client_secret", key(url)), secret)
}

/// An in-memory store for the library during one flow, and a handle to read the result.
pub(super) fn in_memory() -> (InMemoryCredentialStore, FlowResult) {
    let store = InMemoryCredentialStore::new();
    (store.clone(), FlowResult(store))
}

pub(super) struct FlowResult(InMemoryCredentialStore);

impl FlowResult {
    pub async fn put(&self, credentials: StoredCredentials) {
        self.0.save(credentials).await.ok();
    }

    pub async fn take(&self) -> Option<StoredCredentials> {
        self.0.load().await.ok().flatten().filter(|credentials| credentials.token_response.is_some())
    }
}

/// Saves nothing and returns an error: for a host without a store.
pub struct NoTokens;

impl TokenStore for NoTokens {
    fn load(&self, _: String) -> BoxFuture<'static, Option<Secret>> {
        ready(None).boxed()
    }

    fn save(&self, _: String, _: Secret) -> BoxFuture<'static, Result<()>> {
        ready(Err(Error::Io("there is no store for tokens".to_owned()))).boxed()
    }

    fn clear(&self, _: String) -> BoxFuture<'static, Result<()>> {
        ready(Ok(())).boxed()
    }
}

/// Keeps tokens as long as the process lives.
#[derive(Default)]
pub struct MemoryTokens {
    // Private, and never held over an await.
    entries: Mutex<BTreeMap<String, Secret>>,
}

impl TokenStore for MemoryTokens {
    fn load(&self, key: String) -> BoxFuture<'static, Option<Secret>> {
        let found = self.entries.lock().ok().and_then(|entries| entries.get(&key).cloned());
        ready(found).boxed()
    }

    fn save(&self, key: String, value: Secret) -> BoxFuture<'static, Result<()>> {
        if let Ok(mut entries) = self.entries.lock() {
            entries.insert(key, value);
        }
        ready(Ok(())).boxed()
    }

    fn clear(&self, key: String) -> BoxFuture<'static, Result<()>> {
        if let Ok(mut entries) = self.entries.lock() {
            entries.remove(&key);
        }
        ready(Ok(())).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::{MASK, mask};

    #[test]
    fn the_key_contains_neither_query_nor_password() {
        let key = |url: &str| key(&Url::parse(url).unwrap());
        assert_eq!(key("https://me:pw@example.test/mcp/?api_key=123#x"), "oauth https://example.test/mcp");
        assert_ne!(key("https://example.test/a"), key("https://example.test/b"));
        assert_ne!(key("https://example.test/a"), key("http://example.test/a"));
    }

    #[tokio::test]
    async fn the_tokens_of_an_entry_are_masked_until_it_has_been_replaced_often() {
        let url = Url::parse("https://example.test/renewed").unwrap();
        let store: Arc<dyn TokenStore> = Arc::new(MemoryTokens::default());
        for number in 0..20 {
            let response = json!({ "access_token": format!("access-{number}-renewed"), "token_type": "bearer",
                "refresh_token": format!("refresh-{number}-renewed") });
            let credentials = json!({ "client_id": "me", "token_response": response, "granted_scopes": [] });
            let entry = json!({ "credentials": credentials, "client_secret": "secret-of-the-client-of-this-test",
                "redirect_uri": "http://127.0.0.1/" });
            store.save(key(&url), Secret::plain(entry.to_string())).await.unwrap();
            assert!(SavedSignIn::load(&url, &store).await.is_some());
        }
        for secret in ["access-19-renewed", "refresh-19-renewed", "secret-of-the-client-of-this-test"] {
            assert_eq!(mask(secret), MASK);
        }
        assert_eq!(mask("access-0-renewed refresh-0-renewed"), "access-0-renewed refresh-0-renewed");
    }
}
