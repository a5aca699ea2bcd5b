//! JSON text as it was sent. Clones share it, because results can be large.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The box is shared as it is: `Arc<RawValue>` would be a copy of the text.
#[derive(Debug, Clone)]
#[allow(clippy::redundant_allocation, reason = "the text stays where it is")]
pub struct RawJson(Arc<Box<RawValue>>);

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::new(raw))
    }
}

impl Deref for RawJson {
    type Target = RawValue;

    fn deref(&self) -> &RawValue {
        &self.0
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.deref().serialize(serializer)
    }
}
