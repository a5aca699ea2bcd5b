//! The official conformance suite: its scenarios, and how ours end against what was expected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Output, Stdio};

use tokio::process::Command;

use crate::servers::{client, program};

/// Which side of a conversation the suite plays against.
#[derive(Debug, Clone, Copy)]
pub enum Side {
    /// Ours is the client.
    Client,
    /// Ours is the server.
    Server,
}

impl Side {
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

pub struct Suite {
    program: PathBuf,
    /// What is known not to pass, in the suite's own format. Each entry says why.
    expected: &'static str,
    /// The revision of MCP that is spoken, where the suite knows several.
    revision: Option<&'static str>,
}

/// Every suite has at least as many scenarios for each side.
const LEAST: usize = 20;

/// How scenarios ended: nothing, or the end of what the suite said.
pub type Outcomes = BTreeMap<String, Result<(), String>>;

impl Suite {
    /// `None` when the user asked to go without what has to be installed.
    pub fn find() -> Option<Self> {
        let program = program("MCP_CONFORMANCE")?;
        Some(Self { program, expected: include_str!("expected-failures.yml"), revision: None })
    }

    /// The version to come, which knows the newer era.
    pub fn next() -> Option<Self> {
        let program = client("MCP_CONFORMANCE_NEXT")?;
        let expected = include_str!("expected-failures-next.yml");
        Some(Self { program, expected, revision: Some("2026-07-28") })
    }

    pub async fn scenarios(&self, side: Side) -> Vec<String> {
        let output = Command::new(&self.program).args(["list", &format!("--{}", side.word())]).output().await.unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let known = |line: &&str| self.revision.is_none_or(|revision| line.contains(revision));
        let named = text.lines().filter(known).filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next());
        named.map(str::to_owned).collect()
    }

    /// Plays one scenario.
    pub async fn play(&self, side: Side, scenario: &str, arguments: &[&str]) -> Result<(), String> {
        let results = tempfile::tempdir().unwrap();
        let mut command = Command::new(&self.program);
        command.arg(side.word()).args(arguments).args(["--scenario", scenario, "-o"]).arg(results.path());
        command.args(self.revision.into_iter().flat_map(|revision| ["--spec-version", revision]));
        let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.unwrap();
        if output.status.success() { Ok(()) } else { Err(end(&output)) }
    }

    /// Plays every scenario for servers, one after another, and reads how each ended.
    pub async fn play_all(&self, url: &str) -> Outcomes {
        let mut command = Command::new(&self.program);
        command.args(["server", "--url", url]).stdin(Stdio::null()).kill_on_drop(true);
        match self.revision {
            Some(revision) => command.args(["--spec-version", revision]),
            None => command.args(["--suite", "all"]),
        };
        let output = command.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut outcomes = Outcomes::new();
        for line in said.lines() {
            let Some((mark, rest)) = line.split_once(' ') else { continue };
            let scenario = rest.split(':').next().unwrap_or_default().to_owned();
            match mark {
                "✓" => outcomes.insert(scenario, Ok(())),
                "✗" => outcomes.insert(scenario, Err(end(&output))),
                _ => None,
            };
        }
        assert!(outcomes.len() >= LEAST, "not all were played:\n{}", end(&output));
        outcomes
    }

    /// Fails for whatever was not expected: a scenario that does not pass, one that passes by now, one that is no more.
    #[track_caller]
    pub fn judge(&self, side: Side, outcomes: &Outcomes) {
        assert!(outcomes.len() >= LEAST, "the suite has more scenarios than these: {:?}", outcomes.keys());
        let complaints = complaints(&expected(self.expected, side), outcomes);
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n\n"));
    }
}

/// The end of what a program said.
fn end(output: &Output) -> String {
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

fn complaints(expected: &BTreeSet<String>, outcomes: &Outcomes) -> Vec<String> {
    let mut complaints = Vec::new();
    for (scenario, outcome) in outcomes {
        match outcome {
            Err(said) if !expected.contains(scenario) => complaints.push(format!("{scenario} does not pass:\n{said}")),
            Ok(()) if expected.contains(scenario) => {
                complaints.push(format!("{scenario} passes: take it out of expected-failures.yml"));
            }
            _ => {}
        }
    }
    let gone = expected.iter().filter(|scenario| !outcomes.contains_key(*scenario));
    complaints.extend(gone.map(|scenario| format!("{scenario} is no scenario: take it out of expected-failures.yml")));
    complaints
}

/// The entries of one side.
fn expected(text: &str, side: Side) -> BTreeSet<String> {
    let mut section = "";
    let mut reason = false;
    let mut found = BTreeSet::new();
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_suffix(':') {
            section = name;
        } else if let Some(scenario) = line.trim().strip_prefix("- ") {
            assert!(reason, "a comment above `{scenario}` has to say why it does not pass");
            if section == side.word() {
                found.insert(scenario.to_owned());
            }
        }
        reason = line.trim().starts_with('#') || (reason && line.trim().starts_with("- "));
    }
    found
}

#[test]
fn what_is_expected_to_fail_is_read_by_side() {
    let text = "client:\n  # Why.\n  - a/one\n  - two\nserver:\n  # Why.\n  - three\n";
    assert_eq!(expected(text, Side::Client), ["a/one", "two"].map(str::to_owned).into());
    assert_eq!(expected(text, Side::Server), ["three"].map(str::to_owned).into());
}

#[test]
fn an_entry_that_is_out_of_date_is_a_failure_as_much_as_a_scenario_that_is_not_listed() {
    let complaints = |outcomes: &[(&str, bool)]| {
        let outcome = |passed: bool| if passed { Ok(()) } else { Err("it said".to_owned()) };
        let outcomes = outcomes.iter().map(|(scenario, passed)| ((*scenario).to_owned(), outcome(*passed))).collect();
        complaints(&["known".to_owned()].into(), &outcomes)
    };
    assert!(complaints(&[("known", false), ("other", true)]).is_empty());
    assert_eq!(complaints(&[("known", false), ("other", false)]), ["other does not pass:\nit said"]);
    assert_eq!(complaints(&[("known", true)]), ["known passes: take it out of expected-failures.yml"]);
    assert_eq!(complaints(&[("other", true)]), ["known is no scenario: take it out of expected-failures.yml"]);
}
