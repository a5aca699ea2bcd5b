//! What the registry has found.

use crate::model::Timestamp;
use crate::protocol::answers::{RegistryEntry, RegistryList};
use crate::registry::{Answered, ListedServer, SearchResult, age};
use crate::text::counted;

impl From<Answered<SearchResult>> for RegistryList {
    fn from(answered: Answered<SearchResult>) -> Self {
        let Answered { value: SearchResult { servers, invalid, truncated }, stale_since } = answered;
        let mut notes: Vec<String> = stale_since.map(stale).into_iter().collect();
        if truncated {
            notes.push("there are more results; add a word to the search".to_owned());
        }
        if invalid > 0 {
            notes.push(format!("{} left out for breaking the rules of the registry", counted(invalid, "result")));
        }
        Self { servers: servers.into_iter().map(Into::into).collect(), notes }
    }
}

fn stale(since: Timestamp) -> String {
    format!("the registry cannot be reached; this is its last response, from {}", age(since))
}

impl From<ListedServer> for RegistryEntry {
    fn from(listed: ListedServer) -> Self {
        let ListedServer { name, title, description, version, is_deprecated, package_types, looks_like } = listed;
        let warning = match looks_like {
            Some(other) => Some(format!("looks like `{other}`, but is a different server")),
            None => is_deprecated.then(|| "deprecated".to_owned()),
        };
        Self { name, title, description, version, packages: package_types, warning }
    }
}
