//! What a question shows. An answer is bound to it: it does not count for another definition, process or tool.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::engine::snapshot::{OfferedTool, ServerView};
use crate::model::Timestamp;
use crate::policy::Pin;
use crate::text::{one_line, visible};

/// How much of a changed argument is shown.
const MAX_ARGUMENT: usize = 500;

pub struct Shown {
    tool: Arc<OfferedTool>,
    /// The digest of the server's definition.
    definition: Option<String>,
    /// The server's process. A server without one may reconnect: the answer is about what it offers.
    process: Option<(u32, Option<Timestamp>)>,
    /// The connection to that process.
    pub connection: Option<u64>,
}

impl Shown {
    pub fn of(view: &ServerView, tool: &Arc<OfferedTool>) -> Self {
        let process = view.state.pid.map(|process| (process, view.state.started_at));
        let connection = view.server.as_ref().and_then(|server| server.connection_number());
        Self {
            tool: tool.clone(),
            definition: view.fingerprint.as_ref().map(|fingerprint| fingerprint.digest.clone()),
            connection: connection.filter(|_| process.is_some()),
            process,
        }
    }

    pub fn pin(&self) -> &Pin {
        self.tool.pin()
    }

    /// How the server has changed, for the user who is asked again.
    pub fn server_change(&self, now: &Self) -> Option<&'static str> {
        if self.definition != now.definition {
            Some("The definition of the server has changed while you were being asked.")
        } else if is_other(self.process, now.process)
            // A connection that is closing has no number, but its process is still known.
            || (now.connection.is_some() && is_other(self.connection, now.connection))
        {
            Some("The server was restarted while you were being asked.")
        } else {
            None
        }
    }

    /// Whether an answer to this question also counts for what is there now.
    pub fn covers(&self, now: &Self) -> bool {
        self.server_change(now).is_none()
            && self.tool.tool.raw == now.tool.tool.raw
            && self.tool.ruling == now.tool.ruling
    }
}

/// A server that had not started when the user was asked is not another one once it has.
fn is_other<T: PartialEq>(before: Option<T>, now: Option<T>) -> bool {
    before.is_some() && before != now
}

/// How the user changed the arguments of a call: `a: 1 → 2, b: 3 → (removed)`.
pub fn difference(old: &Map<String, Value>, new: &Map<String, Value>) -> String {
    let text = |value: Option<&Value>, absent: &str| match value {
        Some(value) => visible(&value.to_string(), MAX_ARGUMENT),
        None => absent.to_owned(),
    };
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let changed = old.keys().chain(added).filter(|key| old.get(*key) != new.get(*key));
    let lines = changed.map(|key| {
        let (before, after) = (text(old.get(key), "(absent)"), text(new.get(key), "(removed)"));
        format!("{}: {before} → {after}", one_line(key, MAX_ARGUMENT))
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_changed_argument_is_listed() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let old = map(json!({ "a": 1, "b": "x", "same": true }));
        let new = map(json!({ "same": true, "b": ["y"], "c": null }));
        assert_eq!(difference(&old, &new), r#"a: 1 → (removed), b: "x" → ["y"], c: (absent) → null"#);
    }
}
