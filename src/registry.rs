//! Where servers come from: the MCP registry, and bundles (`.mcpb` files). Everything that they say is untrusted. They
//! become a definition and its inputs, which the user sees before anything is written.

mod answer;
pub mod bundle;
mod cache;
mod client;
mod convert;
mod inputs;

use std::path::PathBuf;

use serde_json::Value;
use url::Url;

pub use answer::{ListedServer, ServerDetail};

use crate::model::{Error, Result, Timestamp};
use crate::text::counted;
use cache::Cache;

/// The variable that overrides `registry.url`.
pub const VARIABLE: &str = "MCP_SIDECAR_REGISTRY";
/// How many pages of a search are read.
const MAX_PAGES: usize = 3;
const PAGE: &str = "100";
/// Versions of the API with the same answers, newest first.
const VERSIONS: [&str; 2] = ["v0.1", "v0"];

/// A definition for a config file, and what it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The suggested name of the server.
    pub name: String,
    pub config: Value,
    pub inputs: Vec<Value>,
    /// What the user should know, such as variables that are not set.
    pub notes: Vec<String>,
}

/// How old an answer is: `2026-11-17T18:00:00.000Z (3 hours ago)`.
pub fn age(since: Timestamp) -> String {
    let minutes = usize::try_from((Timestamp::now().unix_millis() - since.unix_millis()) / 60_000).unwrap_or_default();
    let ago = match minutes {
        0..60 => counted(minutes, "minute"),
        60..2880 => counted(minutes / 60, "hour"),
        _ => counted(minutes / 1440, "day"),
    };
    format!("{since} ({ago} ago)")
}

/// A client of one registry.
#[derive(Debug, Clone)]
pub struct Registry {
    base: Url,
    cache: Cache,
}

/// An answer of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered<T> {
    pub value: T,
    /// When the registry gave the answer, if it could not be reached now.
    pub stale_since: Option<Timestamp>,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchResult {
    pub servers: Vec<ListedServer>,
    /// Entries that break the rules of the registry, such as control characters in a name.
    pub invalid: usize,
    /// There are more than were read.
    pub truncated: bool,
}

impl Registry {
    /// `url` comes from the user, `folder` is for the cache.
    pub fn new(url: &str, folder: PathBuf) -> Result<Self> {
        let base = client::checked(url).map_err(Error::InvalidParams)?;
        Ok(Self { base, cache: Cache::new(folder) })
    }

    /// The servers whose name, title or description contains all words. The registry itself searches only in names.
    pub async fn search(&self, query: &str) -> Result<Answered<SearchResult>> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let Some(longest) = words.iter().max_by_key(|word| word.len()) else {
            return Err(Error::InvalidParams("type a word to search for".to_owned()));
        };
        let mut found = SearchResult::default();
        let mut stale_since = None;
        let mut cursor: Option<String> = None;
        for page in 0..MAX_PAGES {
            let mut query = vec![("search", longest.as_str()), ("version", "latest"), ("limit", PAGE)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let answered = self.get(&["servers"], &query).await?;
            stale_since = stale_since.or(answered.stale_since);
            let listed = answer::list(&answered.value)?;
            found.invalid += listed.invalid;
            found.servers.extend(listed.servers.into_iter().filter(|server| server.mentions(&words)));
            cursor = listed.next;
            if cursor.is_none() {
                break;
            }
            found.truncated = page + 1 == MAX_PAGES;
        }
        answer::mark_lookalikes(&mut found.servers);
        Ok(Answered { value: found, stale_since })
    }

    /// The newest version of a server, or this one.
    pub async fn server(&self, name: &str, version: Option<&str>) -> Result<Answered<ServerDetail>> {
        if !answer::is_name(name) {
            let message = format!(
                "`{}` is not a name of the registry; expected a name such as `io.github.user/weather`",
                crate::text::one_line(name, 100)
            );
            return Err(Error::InvalidParams(message));
        }
        let answered = self.get(&["servers", name, "versions", version.unwrap_or("latest")], &[]).await?;
        let detail = answer::detail(&answered.value, name)?;
        Ok(Answered { value: detail, stale_since: answered.stale_since })
    }

    /// The text of an answer: a new one, or the last one if the registry cannot be reached.
    async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Answered<String>> {
        let mut missing = None;
        for version in VERSIONS {
            let url = client::address(&self.base, version, path, query);
            match self.fetch(url).await {
                Err(Error::NotFound(message)) => missing = Some(message),
                done => return done,
            }
        }
        Err(Error::NotFound(missing.unwrap_or_default()))
    }

    async fn fetch(&self, url: Url) -> Result<Answered<String>> {
        if let Some(kept) = self.cache.get(&url).await.filter(cache::CachedResponse::is_fresh) {
            return Ok(Answered { value: kept.body, stale_since: None });
        }
        match client::get(url.clone()).await {
            Ok(body) => {
                self.cache.put(&url, &body).await;
                Ok(Answered { value: body, stale_since: None })
            }
            Err(client::Failure::NotFound) => {
                Err(Error::NotFound(format!("the registry at {} has no such server", client::shown(&self.base))))
            }
            Err(client::Failure::Unreachable(why)) => match self.cache.get(&url).await {
                Some(kept) => Ok(Answered { value: kept.body, stale_since: Some(kept.fetched) }),
                None => Err(Error::Io(format!(
                    "cannot reach the registry at {}: {why}; there is no earlier answer to use instead",
                    client::shown(&self.base)
                ))),
            },
        }
    }
}

impl ServerDetail {
    /// The definition of the server. `package_type` chooses one of [`ServerDetail::package_types`].
    pub fn offer(&self, package_type: Option<&str>) -> Result<Offer> {
        convert::offer(self, package_type).map_err(Error::InvalidParams)
    }
}
