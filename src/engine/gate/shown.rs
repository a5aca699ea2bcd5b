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
    /// The server's process, and when it started. A server without one may reconnect: the answer is about what it offers.
    process: Option<(u32, Timestamp)>,
    /// The connection to that process.
    pub connection: Option<u64>,
}

impl Shown {
    pub fn of(view: &ServerView, tool: &Arc<OfferedTool>) -> Self {
        let process = view.state.pid.zip(view.state.started_at);
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
            && self.tool.tool.is_described_like(&now.tool.tool)
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
    use crate::model::{Annotations, Level, ServerName, Subject, Tool, ToolId};
    use crate::policy::Ruling;

    /// A question about a tool with this definition and rule, of a server with this definition, process and connection.
    fn shown(tool: &str, rule: &str, definition: &str, process: Option<u32>, connection: Option<u64>) -> Shown {
        let found = Tool {
            name: "echo".into(),
            subject: Subject::Tool,
            title: None,
            description: String::new(),
            input_schema: Arc::default(),
            output_schema: None,
            annotations: Annotations::default(),
            raw: Arc::new(json!({ "description": tool })),
        };
        let ruling = Ruling { level: Level::RequireApproval, source: rule.into() };
        let id = ToolId::new(ServerName::new("demo").unwrap(), "echo");
        Shown {
            tool: Arc::new(OfferedTool::new(id, Arc::new(found), ruling)),
            definition: Some(definition.to_owned()),
            process: process.map(|pid| (pid, Timestamp::from_unix_millis(0))),
            connection,
        }
    }

    #[test]
    fn an_answer_counts_for_what_was_shown_and_for_a_server_that_has_started_since() {
        let running = || shown("a", "rule", "one", Some(1), Some(1));
        let starting = || shown("a", "rule", "one", None, None);
        let restarted = Some("The server was restarted while you were being asked.");
        let redefined = Some("The definition of the server has changed while you were being asked.");
        let cases = [
            (running(), running(), true, None),
            (starting(), running(), true, None),
            (starting(), starting(), true, None),
            // The connection is closing.
            (running(), shown("a", "rule", "one", Some(1), None), true, None),
            (running(), shown("a", "rule", "one", Some(1), Some(2)), false, restarted),
            (running(), shown("a", "rule", "one", Some(2), Some(1)), false, restarted),
            (running(), starting(), false, restarted),
            (running(), shown("a", "rule", "two", Some(1), Some(1)), false, redefined),
            (starting(), shown("a", "rule", "two", Some(1), Some(1)), false, redefined),
            (running(), shown("b", "rule", "one", Some(1), Some(1)), false, None),
            (running(), shown("a", "other", "one", Some(1), Some(1)), false, None),
        ];
        for (number, (before, now, covers, change)) in cases.into_iter().enumerate() {
            assert_eq!((before.covers(&now), before.server_change(&now)), (covers, change), "case {number}");
        }
    }

    #[test]
    fn every_changed_argument_is_listed() {
        let map = |value: Value| value.as_object().unwrap().clone();
        let old = map(json!({ "a": 1, "b": "x", "same": true }));
        let new = map(json!({ "same": true, "b": ["y"], "c": null }));
        assert_eq!(difference(&old, &new), r#"a: 1 → (removed), b: "x" → ["y"], c: (absent) → null"#);
    }
}
