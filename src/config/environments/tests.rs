use serde_json::json;

use super::*;
use crate::config::layers::session_entry;
use crate::config::shape::EntrySpec;
use crate::model::Scope;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect::<BTreeMap<_, _>>().into()
}

fn definition(folder: Option<&str>, entry: serde_json::Value) -> Definition {
    let Ok((name, EntrySpec::Server(spec))) = session_entry("it", &entry) else { panic!("not a server: {entry}") };
    let folder = folder.map(|folder| Path::new(folder).into());
    Definition { scope: Scope::Project, folder, ..Definition::of_session(name, *spec, entry) }
}

fn of_folder(folder: Option<&str>) -> Definition {
    definition(folder, json!({ "command": "x", "env": { "A": "${TOKEN}" } }))
}

fn folders(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

const EDITOR: Supplies = Supplies::Everything;
const AGENT: Supplies = Supplies::Referred;

#[test]
fn the_newest_editor_of_the_folder_counts_and_stays_after_it_has_left() {
    let mut all = Environments::from(environment(&[("TOKEN", "own")]));
    let token = |all: &Environments, folder| all.of(&of_folder(folder)).get("TOKEN").map(str::to_owned);
    all.set(1, EDITOR, &environment(&[("TOKEN", "one")]), &folders(&["/none/a"]));
    all.set(2, EDITOR, &environment(&[("TOKEN", "two")]), &folders(&["/none/a", "/none/b"]));
    all.set(3, EDITOR, &environment(&[("TOKEN", "three")]), &folders(&["/none/c"]));
    assert_eq!(token(&all, Some("/none/a")).unwrap(), "two");
    assert_eq!(token(&all, Some("/none/c")).unwrap(), "three");
    assert_eq!(token(&all, Some("/none/other")).unwrap(), "own");
    // The user's own servers have no folder.
    assert_eq!(token(&all, None).unwrap(), "three");
    all.leave(2);
    assert_eq!(token(&all, Some("/none/a")).unwrap(), "one");
    assert_eq!(token(&all, Some("/none/b")).unwrap(), "two");
    all.leave(1);
    assert!(!all.has_editor(Some(Path::new("/none/a"))));
    assert_eq!(token(&all, Some("/none/a")).unwrap(), "one");
    all.set(4, EDITOR, &environment(&[]), &folders(&["/none/a"]));
    assert_eq!(token(&all, Some("/none/a")), None);
}

#[test]
fn an_agent_supplies_what_is_referred_to_and_nothing_that_decides_what_runs() {
    let entry = json!({ "command": "${BIN}/x", "args": ["${ARG}", "${MCP_SIDECAR_X:-}", "${NODE_OPTIONS:-}", "${HOME}"],
        "cwd": "${DIR}", "envFile": "${FILE}", "env": { "A": "${env:TOKEN:-${DEFAULT}}", "PYTHONPATH": "${LIB}",
        "P": "${PATH}", "X": "${XDG_DATA_HOME:-}", "N": "${npm_config_registry:-}", "H": "${https_proxy:-}" } });
    let definition = definition(None, entry);
    assert_eq!(supplied::names(&definition).into_iter().collect::<Vec<_>>(), ["ARG", "DEFAULT", "TOKEN"]);
    let remote = json!({ "url": "https://x.test", "headers": { "A": "Bearer ${TOKEN}" },
        "oauth": { "clientId": "x", "clientSecret": "${SECRET}" } });
    let remote = super::tests::definition(None, remote);
    assert_eq!(supplied::names(&remote).into_iter().collect::<Vec<_>>(), ["SECRET", "TOKEN"]);
}

#[test]
fn an_agent_counts_only_without_an_editor_and_replaces_no_value_of_one() {
    let mut all = Environments::from(environment(&[("PATH", "/own"), ("TOKEN", "own")]));
    let of = |all: &Environments| all.of(&of_folder(Some("/none/a")));
    let agent = environment(&[("PATH", "/agent"), ("TOKEN", "agent"), ("LD_PRELOAD", "/agent.so")]);
    all.set(1, AGENT, &agent, &folders(&["/none/b"]));
    assert_eq!(of(&all), environment(&[("PATH", "/own"), ("TOKEN", "own")]));
    all.set(2, AGENT, &agent, &folders(&["/none/a"]));
    assert_eq!(of(&all), environment(&[("PATH", "/own"), ("TOKEN", "agent")]));
    all.set(3, EDITOR, &environment(&[("PATH", "/editor")]), &folders(&["/none/a"]));
    assert_eq!(of(&all), environment(&[("PATH", "/editor")]));
    assert!(!all.names(Some(Path::new("/none/a"))).contains("TOKEN"));
    all.leave(3);
    assert_eq!(of(&all), environment(&[("PATH", "/editor"), ("TOKEN", "agent")]));
    let names = all.names(Some(Path::new("/none/a")));
    assert!(names.contains("TOKEN") && !names.contains("LD_PRELOAD"));
    all.set(4, EDITOR, &environment(&[("TOKEN", "editor")]), &folders(&["/none/a"]));
    all.leave(4);
    assert_eq!(of(&all), environment(&[("TOKEN", "editor")]));
    all.leave(2);
    assert_eq!(of(&all), environment(&[("TOKEN", "editor")]));
}

#[test]
fn a_change_matters_if_the_definition_uses_it() {
    let change = |entry: serde_json::Value, before: &[(&str, &str)], now: &[(&str, &str)]| {
        changes(&definition(None, entry), &environment(before), &environment(now)).join(" ")
    };
    let plain = || json!({ "command": "sh", "env": { "A": "${TOKEN}" } });
    assert_eq!(change(plain(), &[("TOKEN", "1"), ("OTHER", "1")], &[("TOKEN", "2"), ("OTHER", "2")]), "TOKEN");
    assert_eq!(change(plain(), &[("TOKEN", "1")], &[]), "TOKEN");
    // Another PATH matters only if it leads to another program.
    assert_eq!(change(plain(), &[("PATH", "/bin")], &[("PATH", "/bin:/none")]), "");
    assert_eq!(change(plain(), &[("PATH", "/bin")], &[("PATH", "/none")]), "PATH");
    let own_path = json!({ "command": "sh", "env": { "PATH": "/bin" } });
    assert_eq!(change(own_path, &[("PATH", "/bin")], &[("PATH", "/none")]), "");
    let inherits = json!({ "command": "sh", "inheritEnv": true });
    let (before, now) = ([("A", "1"), ("SHLVL", "1"), ("PWD", "/a")], [("A", "2"), ("SHLVL", "2"), ("PWD", "/b")]);
    assert_eq!(change(inherits, &before, &now), "A");
}

#[test]
fn values_are_never_printed_and_a_large_environment_loses_its_largest_variables() {
    let all = environment(&[("SMALL", "kept-value"), ("LARGE", &"x".repeat(1000)), ("LARGER", &"\n".repeat(600))]);
    let environments = Environments::from(all.clone());
    assert!(!format!("{all:?} {environments:?}").contains("kept-value"));
    assert_eq!(all.limited(100_000), (all.clone(), Vec::new()));
    let (limited, left_out) = all.limited(1100);
    // A line break takes two characters.
    assert_eq!(left_out, ["LARGER"]);
    assert_eq!(limited.get("SMALL"), Some("kept-value"));
    assert!(serde_json::to_string(&limited).unwrap().len() <= 1100);
}
