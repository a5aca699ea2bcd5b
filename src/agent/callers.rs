//! Which agent made which call. A log message of a server does not say which call it is about: it is for an agent only if
//! the agent made every call that was open at the server when the message arrived. All others are only in the log.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::CallId;

/// Messages take another path than responses, so those of a call may be handled after its end.
const GRACE: Duration = Duration::from_secs(2);
/// Under load, the oldest of them are forgotten sooner.
const MAX_ENDED: usize = 4_096;

/// The `std` lock is private to this file and held for a lookup.
#[derive(Default)]
pub struct Callers(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    /// The session of each call that runs, or has ended a short time ago.
    sessions: HashMap<CallId, u64>,
    /// Calls that have ended, oldest first.
    ended: VecDeque<(Instant, CallId)>,
}

/// A running call of an agent.
pub struct CallerGuard {
    callers: Arc<Callers>,
    call: CallId,
    session: u64,
}

impl Callers {
    pub fn begin(self: &Arc<Self>, call: &CallId, session: u64) -> CallerGuard {
        let mut calls = self.lock();
        let now = Instant::now();
        let is_over = |ended: &Instant| now.duration_since(*ended) >= GRACE;
        while calls.ended.len() > MAX_ENDED || calls.ended.front().is_some_and(|(ended, _)| is_over(ended)) {
            let Some((_, call)) = calls.ended.pop_front() else { break };
            calls.sessions.remove(&call);
        }
        calls.sessions.insert(call.clone(), session);
        CallerGuard { callers: self.clone(), call: call.clone(), session }
    }

    /// Whether there are calls, and this session made all of them. Editors and the shell are not sessions.
    pub fn made_all(&self, session: u64, calls: &[CallId]) -> bool {
        let known = self.lock();
        !calls.is_empty() && calls.iter().all(|call| known.sessions.get(call) == Some(&session))
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerGuard {
    /// Whether there are calls, and the session of this call made all of them.
    pub fn made_all(&self, calls: &[CallId]) -> bool {
        self.callers.made_all(self.session, calls)
    }
}

impl Drop for CallerGuard {
    fn drop(&mut self) {
        self.callers.lock().ended.push_back((Instant::now(), self.call.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_is_for_the_agent_that_made_all_calls_it_may_be_about() {
        let callers = Arc::<Callers>::default();
        let [own, again, other, editor] = [0; 4].map(|_| CallId::random());
        let guards = (callers.begin(&own, 1), callers.begin(&again, 1), callers.begin(&other, 2));
        let made = |calls: &[&CallId]| {
            let calls: Vec<CallId> = calls.iter().copied().cloned().collect();
            [1, 2, 3].map(|session| callers.made_all(session, &calls))
        };
        let nobody = [false; 3];
        assert_eq!(made(&[&own, &again]), [true, false, false]);
        assert_eq!(made(&[&other]), [false, true, false]);
        for unclear in [&[][..], &[&own, &other], &[&editor], &[&own, &editor]] {
            assert_eq!(made(unclear), nobody, "{unclear:?}");
        }
        drop(guards);
        assert_eq!(made(&[&own]), [true, false, false], "its last messages may still arrive");
        tokio::time::sleep(GRACE).await;
        let _later = callers.begin(&other, 2);
        assert_eq!(made(&[&own]), nobody);
    }
}
