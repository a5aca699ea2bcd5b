//! Which definition of a server counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{Content, Loaded, Source};
use crate::paths::Paths;
use crate::settings::{Files, Limits};

pub fn sources(_folders: &[Arc<Path>], _files: &Files, _paths: &Paths) -> Vec<Source> {
    Vec::new()
}

pub fn load(
    _contents: &[(Source, Content)],
    _session: &BTreeMap<String, serde_json::Value>,
    _limits: &Limits,
) -> Loaded {
    Loaded::default()
}
