//! The user's secrets for servers: from the keyring, and for this session also those that the keyring could not store.
//!
//! Without a keyring, each question is still asked only once per session, and a sign-in lasts until the engine exits.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;

use super::secret_commands::SecretCommands;
use crate::config::Environment;
use crate::model::Result;
use crate::secrets::{Keyring, keyring_name};
use crate::server::oauth::{TokenLock, TokenStore};
use crate::text::Secret;

/// Cheap to clone; all clones share the session's secrets. The lock is private and never held over an await.
#[derive(Clone)]
pub struct Vault {
    keyring: Keyring,
    session: Arc<Mutex<BTreeMap<String, Secret>>>,
    /// What programs of the user have printed.
    pub commands: SecretCommands,
}

impl Vault {
    pub fn new(keyring: Keyring) -> Self {
        Self { keyring, session: Arc::default(), commands: SecretCommands::default() }
    }

    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    pub async fn get(&self, name: &str) -> Option<Secret> {
        let known = self.session().get(name).cloned();
        match known {
            Some(secret) => Some(secret),
            None => self.keyring.get(name).await.ok().flatten(),
        }
    }

    /// What `${keyring:name}` means in the user's own settings: the output of a command, or an entry of the keyring. `folder`
    /// is an empty private folder for the command. The error is for the user.
    pub async fn entry(
        &self,
        name: &str,
        commands: &BTreeMap<String, Vec<String>>,
        environment: &Environment,
        folder: &Path,
    ) -> Result<Option<Secret>, String> {
        if let Some(command) = commands.get(name) {
            return self.commands.output(command.clone(), environment, folder).await.map(Some);
        }
        match self.get(&keyring_name(name)).await {
            Some(secret) => Ok(Some(secret)),
            None => self.keyring.location().await.map(|_| None).map_err(|error| error.to_string()),
        }
    }

    /// Whether a secret is stored under a name like this.
    pub async fn holds(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        let known = self.session().keys().any(|name| is_wanted(name));
        known || self.keyring.names().await.is_ok_and(|names| names.iter().any(|name| is_wanted(name)))
    }

    pub async fn set(&self, name: &str, value: &Secret) {
        // Until it is stored, and if it cannot be. Afterwards the keyring counts: another process may change it there.
        self.session().insert(name.to_owned(), value.clone());
        match self.keyring.set(name, value).await {
            Ok(()) => {
                let mut session = self.session();
                if session.get(name) == Some(value) {
                    session.remove(name);
                }
            }
            Err(error) => {
                tracing::warn!(name, %error, "cannot store a secret in the keyring; it is lost when the engine exits");
            }
        }
    }

    pub async fn remove(&self, name: &str) {
        self.session().remove(name);
        if let Err(error) = self.keyring.remove(name).await {
            tracing::debug!(name, %error, "nothing to remove from the keyring");
        }
    }

    fn session(&self) -> MutexGuard<'_, BTreeMap<String, Secret>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tokens are stored with the user's other secrets.
impl TokenStore for Vault {
    fn load(&self, key: String) -> BoxFuture<'static, Option<Secret>> {
        let vault = self.clone();
        async move {
            let known = vault.session().get(&key).cloned();
            match known {
                Some(entry) => Some(entry),
                None => vault.keyring.get_compound(&key).await.ok().flatten(),
            }
        }
        .boxed()
    }

    fn save(&self, key: String, value: Secret) -> BoxFuture<'static, Result<()>> {
        let vault = self.clone();
        async move {
            vault.set(&key, &value).await;
            Ok(())
        }
        .boxed()
    }

    fn clear(&self, key: String) -> BoxFuture<'static, Result<()>> {
        let vault = self.clone();
        async move {
            vault.remove(&key).await;
            Ok(())
        }
        .boxed()
    }

    fn lock(&self, key: String) -> BoxFuture<'static, Result<TokenLock>> {
        let vault = self.clone();
        async move { Ok(TokenLock(Box::new(vault.keyring.lock(&key).await?))) }.boxed()
    }
}
