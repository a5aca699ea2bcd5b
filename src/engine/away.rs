//! What agents did while no editor was open, and what they may do the next time although there was no one to ask.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::watch;

use super::Engine;
use super::approvals::NoAnswer;
use super::editors::Identity;
use super::record::UNKNOWN_FIELDS;
use crate::model::{
    CallKind, CallRecord, Decision, Error, RequesterKind, Result, Timestamp, ToolCall, ToolId, UserDecision,
};
use crate::store::{AgentFigures, CallQuery};
use crate::text::MASK;

/// What the call log of version 0.2 says instead of [`NoAnswer::NobodyToAsk`].
const EARLIER_NOBODY_TO_ASK: &str = "nobody could be asked";

/// The fact that is remembered about a workspace: when its last editor left.
const LEFT: &str = "editor-left";
/// How long it may take until it is known that an editor has come or left.
const KNOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// A call that began earlier than this before the editor left has ended before.
const LONGEST_CALL: Duration = Duration::from_secs(60 * 60);
/// How many calls are read.
const MAX_CALLS: usize = 5_000;
/// How many calls can be allowed in advance, and for how long.
const MAX_ALLOWED: usize = 64;
const ALLOWED_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// What agents did while no editor was open.
#[derive(Debug, Clone, Default)]
pub struct Away {
    /// When the last editor left; `None` if no editor has ever been open here.
    pub since: Option<Timestamp>,
    /// When the next one came; `None` if there is still none.
    pub until: Option<Timestamp>,
    /// By the name of the agent.
    pub agents: BTreeMap<String, AgentFigures>,
    /// Calls that were refused because there was no one to ask, newest first. Each only once.
    pub refused: Vec<CallRecord>,
}

/// The last time without an editor, and what the user allowed afterwards. The `std` lock is private to this file and held
/// for a lookup.
#[derive(Clone, Default)]
pub struct Absence {
    presence: Arc<watch::Sender<Presence>>,
    allowed: Arc<Mutex<Vec<AllowedCall>>>,
}

/// Whether an editor is open, and the last time when none was.
#[derive(Debug, Clone, Copy, Default)]
struct Presence {
    is_present: bool,
    absent: Option<(Timestamp, Timestamp)>,
}

/// A call that may run once.
struct AllowedCall {
    agent: String,
    tool: ToolId,
    arguments: Map<String, Value>,
    by: Arc<str>,
    at: Instant,
}

impl Absence {
    /// The permission that the user gave in advance for exactly this call. It counts once.
    pub fn allowed(&self, call: &ToolCall) -> Option<UserDecision> {
        if call.requester.kind != RequesterKind::Agent {
            return None;
        }
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.retain(|known| known.at.elapsed() < ALLOWED_TIME);
        let found = allowed.iter().position(|known| {
            (&known.agent, &known.tool, &known.arguments) == (&call.requester.name, &call.tool, &*call.arguments)
        })?;
        let AllowedCall { by, .. } = allowed.swap_remove(found);
        Some(UserDecision { decision: Decision::AllowOnce, by })
    }

    fn allow(&self, call: AllowedCall) {
        let mut allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        allowed.retain(|known| known.at.elapsed() < ALLOWED_TIME);
        if allowed.len() >= MAX_ALLOWED {
            allowed.remove(0);
        }
        allowed.push(call);
    }
}

impl Engine {
    /// Remembers when the last editor leaves and the next one comes, until the engine is dropped.
    pub(super) fn follow_absence(&self) {
        let engine = Arc::downgrade(&self.0);
        let mut editors = self.0.editors.subscribe();
        tokio::spawn(async move {
            // The folders of an editor are gone when it has left.
            let mut key = String::new();
            while editors.changed().await.is_ok() {
                let Some(engine) = engine.upgrade().map(Self) else { return };
                let is_present = engine.0.editors.has_editor();
                let presence = engine.0.absence.presence.clone();
                let before = *presence.borrow();
                if is_present == before.is_present {
                    continue;
                }
                let now = Timestamp::now();
                let absent = if is_present {
                    let mut folders = engine.0.folders.subscribe();
                    let stated = folders.wait_for(|folders| !folders.is_empty());
                    tokio::time::timeout(KNOWN_TIMEOUT, stated).await.ok();
                    key = engine.absence_key();
                    engine.left_at(&key).await.map(|left| (left, now))
                } else {
                    engine.0.store.remember(&key, [(LEFT, now.to_string())]).await;
                    before.absent
                };
                presence.send_replace(Presence { is_present, absent });
            }
        });
    }

    async fn left_at(&self, key: &str) -> Option<Timestamp> {
        let [left] = self.0.store.recall(key, [LEFT]).await;
        Timestamp::parse(&left?)
    }

    fn absence_key(&self) -> String {
        self.folders().first().map(|folder: &Arc<Path>| folder.display().to_string()).unwrap_or_default()
    }

    /// What agents did since the last editor left, until the next one came.
    pub async fn away(&self) -> Result<Away> {
        let is_present = self.0.editors.has_editor();
        let mut presence = self.0.absence.presence.subscribe();
        // An editor may ask before it is known that it is here.
        let known = presence.wait_for(|presence| presence.is_present == is_present);
        let absent = tokio::time::timeout(KNOWN_TIMEOUT, known).await.ok().and_then(|known| known.ok()?.absent);
        let (since, until) = match (is_present, absent) {
            (true, Some((since, until))) => (since, Some(until)),
            (true, None) => return Ok(Away::default()),
            (false, _) => match self.left_at(&self.absence_key()).await {
                Some(left) => (left, None),
                None => return Ok(Away::default()),
            },
        };
        let before = Timestamp::from_unix_millis(since.unix_millis() - LONGEST_CALL.as_millis() as i64);
        let query = CallQuery { since: Some(before), limit: Some(MAX_CALLS), ..CallQuery::default() };
        let mut away = Away { since: Some(since), until, ..Away::default() };
        let unasked = [&*NoAnswer::NobodyToAsk.to_string(), EARLIER_NOBODY_TO_ASK];
        for record in self.0.store.calls(query).await? {
            // A call that was waiting when the editor left belongs to the absence, too.
            let ended = record.time.unix_millis() + (record.waited_ms + record.duration_ms) as i64;
            let is_later = until.is_some_and(|until| record.time > until);
            if is_later || ended < since.unix_millis() || record.requester.kind != RequesterKind::Agent {
                continue;
            }
            let own = away.agents.entry(record.requester.name.clone()).or_default();
            own.calls += 1;
            own.tokens += record.result_size.map_or(0, |size| size.tokens as u64);
            let is_denied = !record.success && matches!(record.decision.as_str(), "deny" | "disable");
            own.denied += u64::from(is_denied);
            let is_same = |known: &CallRecord| {
                (&known.requester, &known.server, &known.tool, &known.arguments)
                    == (&record.requester, &record.server, &record.tool, &record.arguments)
            };
            if is_denied && unasked.contains(&&*record.decided_by) && !away.refused.iter().any(is_same) {
                away.refused.push(record);
            }
        }
        Ok(away)
    }

    /// Allows a call that was refused because there was no one to ask: the same call of the same agent, once.
    pub async fn allow_next(&self, call: &str, identity: &Identity) -> Result<()> {
        let refused = self.away().await?.refused;
        let unknown = || Error::NotFound("no call with this id was refused because there was no one to ask".to_owned());
        let record = refused.into_iter().find(|record| &*record.call_id.0 == call).ok_or_else(unknown)?;
        let not_whole = || {
            let why =
                "the call log does not contain the complete arguments of this call, so it cannot be allowed in advance";
            Error::Conflict(why.to_owned())
        };
        let is_whole = |arguments: &Map<String, Value>| {
            !arguments.contains_key("sha256")
                && !arguments.contains_key(UNKNOWN_FIELDS)
                && !Value::Object(arguments.clone()).to_string().contains(MASK)
        };
        let arguments = record.arguments.as_ref().and_then(Value::as_object).cloned();
        let arguments = arguments.filter(|arguments| record.kind == CallKind::Tool && is_whole(arguments));
        self.0.absence.allow(AllowedCall {
            agent: record.requester.name,
            tool: ToolId::new(record.server, &record.tool),
            arguments: arguments.ok_or_else(not_whole)?,
            by: format!("user in {identity}, in advance").into(),
            at: Instant::now(),
        });
        Ok(())
    }
}
