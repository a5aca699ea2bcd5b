//! The tables of a ledger: plain data, locked by its owner.

use std::collections::{HashMap, HashSet};

use rmcp::model::{NumberOrString, RequestId};
use tokio::time::Instant;

use super::Slot;
use crate::model::RawJson;

#[derive(Default)]
pub struct State {
    pub open: HashMap<RequestId, Open>,
    pub tokens: HashMap<NumberOrString, RequestId>,
    /// The handshake result; from then on the server may send requests.
    pub handshake_result: Option<RawJson>,
    pub skipped: u64,
    pub sample: String,
    pub invalid_bytes: usize,
    pub unknown: HashSet<String>,
}

/// An open request.
pub struct Open {
    pub kind: Kind,
    pub slot: Option<Slot>,
    pub token: Option<NumberOrString>,
    pub sent: Instant,
}

/// The requests whose responses rmcp has to parse, and all others.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Initialize,
    Discover,
    Listen,
    Other,
}

impl State {
    /// Removes a request. Some servers return a numeric id as a string.
    pub fn close(&mut self, id: &RequestId) -> Option<(RequestId, Open)> {
        let (id, open) = match self.open.remove_entry(id) {
            Some(found) => found,
            None => match id {
                NumberOrString::String(text) => self.open.remove_entry(&NumberOrString::Number(text.parse().ok()?))?,
                NumberOrString::Number(_) => return None,
            },
        };
        if let Some(token) = &open.token {
            self.tokens.remove(token);
        }
        Some((id, open))
    }

    /// The slot of the call that runs, if there is only one.
    pub fn only_call(&self) -> Option<&Slot> {
        let mut calls = self.open.values().filter_map(|open| open.slot.as_ref()).filter(|slot| slot.call().is_some());
        calls.next().filter(|_| calls.next().is_none())
    }

    pub fn slot_of(&self, token: &NumberOrString) -> Option<&Slot> {
        let id = self.tokens.get(token).or_else(|| match token {
            NumberOrString::String(text) => self.tokens.get(&NumberOrString::Number(text.parse().ok()?)),
            NumberOrString::Number(_) => None,
        })?;
        self.open.get(id)?.slot.as_ref()
    }
}
