//! Results that were too large for an agent. It got the beginning and can read on; the user can read all of it.
//!
//! Results are only kept in memory. The oldest are dropped when there are too many.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::gate::Outcome;
use crate::model::RawJson;

/// How many results are kept, and how much memory they may take.
const MAX_RESULTS: usize = 64;
const MAX_BYTES: usize = 64 << 20;
/// The same for one agent, so that it cannot displace the results of others.
const MAX_RESULTS_OF_AGENT: usize = 16;
const MAX_BYTES_OF_AGENT: usize = 32 << 20;

/// The `std` lock is private to this file and held for a lookup. Cheap to clone; all clones share everything.
#[derive(Clone, Default)]
pub struct LargeResults(Arc<Mutex<VecDeque<KeptResult>>>);

struct KeptResult {
    /// The connection of the agent that called.
    agent: u64,
    outcome: Arc<Outcome>,
}

impl KeptResult {
    fn bytes(&self) -> usize {
        self.outcome.result.raw.get().len()
    }
}

impl LargeResults {
    /// Keeps a result for the agent with this connection, and for the user.
    pub fn keep(&self, agent: u64, outcome: Outcome) {
        let kept = KeptResult { agent, outcome: Arc::new(outcome) };
        let mut results = self.lock();
        results.push_back(kept);
        drop_oldest(&mut results, |kept| kept.agent == agent, MAX_RESULTS_OF_AGENT, MAX_BYTES_OF_AGENT);
        drop_oldest(&mut results, |_| true, MAX_RESULTS, MAX_BYTES);
    }

    /// A result of the agent with this connection. An agent cannot read the results of others.
    pub fn of_agent(&self, agent: u64, call: &str) -> Option<RawJson> {
        let results = self.lock();
        let found = results.iter().find(|kept| kept.agent == agent && &*kept.outcome.id.0 == call)?;
        Some(found.outcome.result.raw.clone())
    }

    /// Any result, for the user.
    pub fn find(&self, call: &str) -> Option<Arc<Outcome>> {
        self.lock().iter().find(|kept| &*kept.outcome.id.0 == call).map(|kept| kept.outcome.clone())
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KeptResult>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the oldest results that `belongs` selects until the others fit. The newest one stays, whatever its size: the
/// limit of a message bounds it.
fn drop_oldest(
    results: &mut VecDeque<KeptResult>,
    belongs: impl Fn(&KeptResult) -> bool,
    most: usize,
    most_bytes: usize,
) {
    loop {
        let selected = || results.iter().filter(|kept| belongs(kept));
        let (count, bytes) = (selected().count(), selected().map(KeptResult::bytes).sum::<usize>());
        if count <= 1 || (count <= most && bytes <= most_bytes) {
            return;
        }
        let Some(oldest) = results.iter().position(&belongs) else { return };
        results.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::value::RawValue;

    use super::*;
    use crate::model::{CallId, CallResult, ServerName, ToolId};

    fn outcome(id: &str, bytes: usize) -> Outcome {
        let raw = RawValue::from_string(format!("\"{}\"", "x".repeat(bytes))).unwrap();
        Outcome {
            id: CallId(id.into()),
            tool: ToolId::new(ServerName::new("a").unwrap(), "b"),
            result: CallResult { raw: raw.into(), is_error: false },
            decision: "allow-session",
            duration: Duration::ZERO,
            waited: Duration::ZERO,
            edited: None,
        }
    }

    #[test]
    fn an_agent_reads_only_its_own_results() {
        let results = LargeResults::default();
        results.keep(1, outcome("own", 5));
        assert!(results.of_agent(1, "own").is_some());
        assert!(results.of_agent(2, "own").is_none() && results.of_agent(1, "other").is_none());
        assert!(results.find("own").is_some());
    }

    #[test]
    fn the_oldest_results_are_dropped_and_one_agent_does_not_displace_another() {
        let results = LargeResults::default();
        results.keep(1, outcome("first", 5));
        for number in 0..40 {
            results.keep(2, outcome(&format!("many{number}"), 5));
        }
        assert!(results.find("first").is_some());
        assert_eq!(results.lock().len(), 1 + MAX_RESULTS_OF_AGENT);
        assert!(results.find("many39").is_some() && results.find("many0").is_none());
        results.keep(2, outcome("huge", MAX_BYTES_OF_AGENT + 1));
        assert_eq!(results.lock().len(), 2, "it is the only one of its agent");
        assert!(results.find("huge").is_some() && results.find("first").is_some());
    }
}
