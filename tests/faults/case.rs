//! A case, as it is written in `cases/*.yaml`.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub id: String,
    /// The fault, in words.
    pub fault: String,
    /// What has to come of it, in words.
    pub required: String,
    /// Part of `make test`.
    #[serde(default)]
    pub quick: bool,
    /// Each run has a separate engine, because the fault harms the engine itself.
    #[serde(default)]
    pub fresh: bool,
    /// A test of another target that provokes the fault: `e2e faults::its_name`.
    pub test: Option<String>,
    /// Definitions beside the server `good`. `faulty: [SCRIPT, ARGUMENT]` is short for `tests/fixtures/faulty.py`.
    #[serde(default)]
    pub servers: Map<String, Value>,
    /// Definitions in the project's `mcp.json`.
    #[serde(default)]
    pub project: Map<String, Value>,
    /// The policy of the user; without it, everything is allowed.
    pub policy: Option<Value>,
    /// The text of `config.toml`.
    pub settings: Option<String>,
    /// Ports on which a script answers. `$port.NAME` is the number.
    #[serde(default)]
    pub listeners: Map<String, Value>,
    /// A shell script that runs before the engine starts. Exit code 77 skips the case with its output as the reason.
    pub before: Option<String>,
    /// A shell script that runs after everything has ended.
    pub after: Option<String>,
    /// A shell script whose last command is `exec "$@"`, which starts the editor's front.
    pub launch: Option<String>,
    #[serde(default)]
    pub steps: Vec<Value>,
}

/// All cases, in the order of their files.
pub fn load() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/cases");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut cases: Vec<Case> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let read: Vec<Case> = serde_yaml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for case in read {
            assert!(cases.iter().all(|other| other.id != case.id), "two cases have the id {}", case.id);
            assert_eq!(case.test.is_some(), case.steps.is_empty(), "{} needs either `test` or `steps`", case.id);
            cases.push(case);
        }
    }
    cases
}
