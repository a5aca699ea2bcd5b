//! The arguments of a call as a question shows them. Large ones are shown by size and digest; the text is sent on demand.

use std::io;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::policy::hex;
use crate::server::transport::ledger::size;
use crate::text::visible;

/// Larger arguments are not part of a list of questions.
pub const MAX_LISTED: usize = 64 << 10;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct ShownArguments(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    fields: Arc<Map<String, Value>>,
    bytes: usize,
    digest: OnceLock<String>,
}

impl ShownArguments {
    pub fn new(fields: Arc<Map<String, Value>>) -> Self {
        let mut counter = Counter::default();
        serde_json::to_writer(&mut counter, &fields).ok();
        Self(Arc::new(Inner { fields, bytes: counter.bytes, digest: OnceLock::new() }))
    }

    pub fn fields(&self) -> &Map<String, Value> {
        &self.0.fields
    }

    /// The length of the JSON text.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// SHA-256 of the JSON text.
    pub fn digest(&self) -> &str {
        self.0.digest.get_or_init(|| {
            let mut counter = Counter { digest: Some(Sha256::new()), ..Counter::default() };
            serde_json::to_writer(&mut counter, &self.0.fields).ok();
            hex(&counter.digest.unwrap_or_default().finalize())
        })
    }

    /// The text for a message, or where to find it.
    pub fn text(&self, id: &str) -> String {
        match self.bytes() <= MAX_LISTED {
            true => visible(&serde_json::to_string_pretty(self.fields()).unwrap_or_default(), usize::MAX),
            false => self.reference(id),
        }
    }

    /// Where to find arguments that are not shown.
    pub fn reference(&self, id: &str) -> String {
        format!(
            "The arguments are not shown here because of their size ({}, SHA-256 {}). To read them, run `mcp-sidecar \
             approvals {id}`.",
            size(self.bytes()),
            self.digest()
        )
    }
}

impl PartialEq for ShownArguments {
    fn eq(&self, other: &Self) -> bool {
        self.0.fields == other.0.fields
    }
}

/// Counts bytes, and hashes them if there is a digest.
#[derive(Default)]
struct Counter {
    bytes: usize,
    digest: Option<Sha256>,
}

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len();
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
