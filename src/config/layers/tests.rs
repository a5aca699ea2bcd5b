use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::problem::Severity;
use crate::settings::Settings;

/// A machine where every program and variable exists.
struct Rich;

impl Machine for Rich {
    fn is_set(&self, _variable: &str, _folder: Option<&Path>) -> bool {
        true
    }

    fn finds(&self, _program: &str, _cwd: Option<&Path>, _folder: Option<&Path>) -> bool {
        true
    }
}

fn paths() -> Paths {
    Paths {
        config_dir: "/home/me/.config/mcp-sidecar".into(),
        state_dir: "/state".into(),
        runtime_dir: "/run".into(),
        managed_config: "/etc/mcp-sidecar/mcp.json".into(),
    }
}

fn folders(names: &[&str]) -> Vec<Arc<Path>> {
    names.iter().map(|name| PathBuf::from(name).into()).collect()
}

/// Loads these files by path; all others are absent.
pub(super) fn load_files(folder_names: &[&str], files: &[(&str, &str)], session: Value) -> Loaded {
    let settings = Settings::default();
    let contents: Vec<_> = sources(&folders(folder_names), &settings.files, &paths())
        .into_iter()
        .map(|source| {
            let text = files.iter().find(|(path, _)| Path::new(path) == &*source.path).map(|(_, text)| *text);
            (source, text.map_or(Content::Absent, |text| Content::Text(text.into())))
        })
        .collect();
    let session = serde_json::from_value(session).unwrap();
    load_in(&contents, &session, &settings.limits, &Rich)
}

fn servers(loaded: &Loaded) -> String {
    let line = |definition: &Arc<Definition>| {
        let hides: Vec<_> = definition.hides.iter().map(|hidden| hidden.scope.as_str()).collect();
        let file = definition.file.as_deref().map_or_else(|| "-".to_owned(), |file| file.display().to_string());
        let hides = if hides.is_empty() { String::new() } else { format!(" hides {}", hides.join(", ")) };
        format!("{} {} {file}:{}{hides}", definition.name, definition.scope, definition.line + 1)
    };
    loaded.config.servers.values().map(line).collect::<Vec<_>>().join("\n")
}

pub(super) fn problems(loaded: &Loaded) -> String {
    let lines = loaded.files.iter().flat_map(|file| {
        file.problems.iter().map(|problem| {
            format!(
                "{} {} {}: {}",
                file.source.path.display(),
                problem.severity.as_str(),
                problem.code,
                problem.message
            )
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn files_are_sorted_by_precedence() {
    let sources = sources(&folders(&["/a", "/b"]), &Settings::default().files, &paths());
    let lines: Vec<_> = sources.iter().map(|source| format!("{} {}", source.scope, source.path.display())).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    managed /etc/mcp-sidecar/mcp.json
    local /a/mcp.local.json
    local /b/mcp.local.json
    project /a/mcp.json
    project /a/.mcp.json
    project /a/.vscode/mcp.json
    project /a/.cursor/mcp.json
    project /b/mcp.json
    project /b/.mcp.json
    project /b/.vscode/mcp.json
    project /b/.cursor/mcp.json
    user /home/me/.config/mcp-sidecar/mcp.json
    ");
}

#[test]
fn the_users_file_keeps_its_scope_when_its_folder_is_opened() {
    let sources = sources(&folders(&["/home/me/.config/mcp-sidecar"]), &Settings::default().files, &paths());
    let own: Vec<_> = sources.iter().filter(|source| source.path.ends_with("mcp-sidecar/mcp.json")).collect();
    assert_eq!(own.iter().map(|source| source.scope).collect::<Vec<_>>(), [Scope::Managed, Scope::User]);
}

#[test]
fn a_higher_scope_replaces_the_whole_definition_and_lists_what_it_overrides() {
    let loaded = load_files(
        &["/a"],
        &[
            ("/etc/mcp-sidecar/mcp.json", r#"{ "servers": { "m": { "command": "managed" } } }"#),
            ("/a/mcp.local.json", r#"{ "servers": { "x": { "command": "local" } } }"#),
            (
                "/a/mcp.json",
                r#"{ "servers": {
                "x": { "command": "project", "tools": { "t": "deny" } }, "y": { "command": "project" } } }"#,
            ),
            (
                "/home/me/.config/mcp-sidecar/mcp.json",
                r#"{ "servers": {
                "x": { "command": "user" }, "m": { "command": "user" }, "s": { "command": "user" } } }"#,
            ),
        ],
        json!({ "s": { "command": "session" }, "m": { "command": "session" }, "y": { "port": 1 } }),
    );
    insta::assert_snapshot!(servers(&loaded), @"
    m managed /etc/mcp-sidecar/mcp.json:1 hides session, user
    s session -:1 hides user
    x local /a/mcp.local.json:1 hides project, user
    y session -:1 hides project
    ");
    assert_eq!(loaded.config.servers["x"].spec.tools, []);
    assert_eq!(problems(&loaded), "");
}

#[test]
fn within_a_scope_the_earlier_file_wins_and_the_later_one_is_reported() {
    let loaded = load_files(
        &["/a"],
        &[
            ("/a/.mcp.json", r#"{ "mcpServers": { "x": { "command": "one" } } }"#),
            ("/a/.vscode/mcp.json", "{ \"servers\": {\n \"x\": { \"command\": \"two\" } } }"),
        ],
        json!({}),
    );
    insta::assert_snapshot!(servers(&loaded), @"x project /a/.mcp.json:1 hides project");
    insta::assert_snapshot!(problems(&loaded), @"/a/.vscode/mcp.json information hidden: `x` has no effect: `.mcp.json` also defines it and takes precedence");
    let problem = &loaded.files.iter().find(|file| !file.problems.is_empty()).unwrap().problems[0];
    assert_eq!(problem.related[0].file, Path::new("/a/.mcp.json"));
    assert!(problem.unnecessary);
}

#[test]
fn a_name_in_two_folders_is_prefixed_in_both() {
    let file = r#"{ "servers": { "db": { "port": 1 }, "only": { "port": 2 } },
      "policy": { "denylist": [ { "server": "d*", "tool": "drop" } ] },
      "actions": [ { "title": "t", "tool": "mcp__db__query" } ] }"#;
    let loaded = load_files(
        &["/home/me/my app", "/home/me/other"],
        &[
            ("/home/me/my app/mcp.json", file),
            ("/home/me/other/.mcp.json", r#"{ "mcpServers": { "db": { "port": 3 } } }"#),
            ("/home/me/other/mcp.local.json", r#"{ "servers": { "db": { "port": 4 } } }"#),
            (
                "/home/me/.config/mcp-sidecar/mcp.json",
                r#"{ "servers": { "db": { "port": 5 }, "other-db": { "port": 6 } } }"#,
            ),
        ],
        json!({}),
    );
    insta::assert_snapshot!(servers(&loaded), @"
    db user /home/me/.config/mcp-sidecar/mcp.json:1
    my-app-db project /home/me/my app/mcp.json:1
    only project /home/me/my app/mcp.json:1
    other-db user /home/me/.config/mcp-sidecar/mcp.json:1
    other-db-2 local /home/me/other/mcp.local.json:1 hides project
    ");
    assert_eq!(loaded.config.actions[0].tool, "mcp__my-app-db__query");
    let denied: Vec<_> = loaded.config.policies[0].denylist.iter().map(|matcher| matcher.server.as_str()).collect();
    assert_eq!(denied, ["d*", "my-app-db"]);
}

#[test]
fn folders_with_the_same_name_get_distinct_prefixes() {
    let file = |port: u16| format!(r#"{{ "servers": {{ "{}": {{ "port": {port} }} }} }}"#, "n".repeat(64));
    let (one, two) = (file(1), file(2));
    let loaded = load_files(&["/x/app", "/y/app"], &[("/x/app/mcp.json", &one), ("/y/app/mcp.json", &two)], json!({}));
    assert_eq!(loaded.config.servers.len(), 2);
}

#[test]
fn an_invalid_file_defines_nothing_and_has_a_problem() {
    let loaded = load_files(&["/a"], &[("/a/mcp.json", r#"{ "servers": { "x": { "command": "npx" "#)], json!({}));
    assert_eq!(servers(&loaded), "");
    assert_eq!(problems(&loaded), "/a/mcp.json error syntax: unexpected end of file");
    let file = loaded.file(Path::new("/a/mcp.json")).unwrap();
    assert!(file.exists && !file.valid);
    assert_eq!(file.servers, ["x"]);
}

#[test]
fn a_missing_comma_leaves_the_other_problems_visible() {
    let loaded = load_files(
        &["/a"],
        &[("/a/mcp.json", r#"{ "servers": { "x": { "command": "npx" "timeout": "soon" } } }"#)],
        json!({}),
    );
    insta::assert_snapshot!(problems(&loaded), @"
    /a/mcp.json error syntax: missing `,`
    /a/mcp.json error wrong-type: `servers.x.timeout` must be a number of seconds, not a string
    ");
}

#[test]
fn unreadable_and_oversized_files_are_reported() {
    let settings = Settings::default();
    let source = |name: &str| Source { path: Path::new(name).into(), scope: Scope::User, folder: None };
    let large: Arc<str> = " ".repeat((1 << 20) + 1).into();
    let contents =
        [(source("/a"), Content::Unreadable("permission denied".to_owned())), (source("/b"), Content::Text(large))];
    let loaded = load_in(&contents, &BTreeMap::new(), &settings.limits, &Rich);
    insta::assert_snapshot!(problems(&loaded), @"
    /a error unreadable: permission denied
    /b error unreadable: the file is larger than 1 MiB (setting `limits.config-bytes`)
    ");
    assert!(loaded.files.iter().all(|file| file.exists && !file.valid));
}

#[test]
fn an_input_may_be_declared_in_another_file() {
    let user = r#"{ "inputs": [ { "id": "known" } ] }"#;
    let project =
        r#"{ "servers": { "x": { "command": "npx", "env": { "A": "${input:known}", "B": "${input:other}" } } } }"#;
    let loaded =
        load_files(&["/a"], &[("/a/mcp.json", project), ("/home/me/.config/mcp-sidecar/mcp.json", user)], json!({}));
    assert_eq!(problems(&loaded), "/a/mcp.json warning unknown-input: the input `other` is not declared in `inputs`");
    assert_eq!(loaded.config.inputs[0].file.as_deref(), Some(Path::new("/home/me/.config/mcp-sidecar/mcp.json")));
}

#[test]
fn session_definitions_are_checked_like_files() {
    let refused = |name: &str, value: Value| {
        let problems = session_entry(name, &value).unwrap_err();
        problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; ")
    };
    assert!(session_entry("x", &json!({ "command": "npx", "args": ["a"] })).is_ok());
    insta::assert_snapshot!(refused("x", json!({ "comand": "npx" })), @"unknown key `comand` in `x`; did you mean `command`?");
    insta::assert_snapshot!(refused("x y", json!({ "port": 0 })), @r#"server names can only contain letters, digits, `-` and `_`; found ' '; `["x y"].port` must be a whole number from 1 to 65535"#);
    insta::assert_snapshot!(refused("x", json!("npx")), @"`x` must be an object, not a string");
}

#[test]
fn a_project_with_too_many_servers_displaces_none_of_the_users() {
    let many: Vec<_> = (0..256).map(|number| format!(r#""s{number}": {{ "command": "x" }}"#)).collect();
    let project = format!(r#"{{ "servers": {{ {} }} }}"#, many.join(","));
    let user = r#"{ "servers": { "own": { "command": "x" }, "s0": { "command": "x" } } }"#;
    let loaded = load_files(
        &["/a"],
        &[("/a/mcp.json", &project), ("/home/me/.config/mcp-sidecar/mcp.json", user)],
        json!({ "live": { "command": "x" } }),
    );
    assert_eq!(loaded.config.servers.len(), 256);
    assert!(["own", "s0", "live", "s253"].iter().all(|name| loaded.config.servers.contains_key(*name)));
    insta::assert_snapshot!(problems(&loaded), @"/a/mcp.json error too-many-servers: more than 256 servers in total (setting `limits.servers`): this server is ignored");
}

#[test]
fn of_two_ambiguous_names_the_one_of_the_project_is_ignored() {
    let file = |name: &str| format!(r#"{{ "servers": {{ "{name}": {{ "command": "x" }} }} }}"#);
    let user = "/home/me/.config/mcp-sidecar/mcp.json";
    for (own, project) in [("a", "a_"), ("a_", "a")] {
        let loaded = load_files(&["/a"], &[("/a/mcp.json", &file(project)), (user, &file(own))], json!({}));
        assert_eq!(servers(&loaded), format!("{own} user {user}:1"));
        assert_eq!(
            problems(&loaded),
            format!(
                "/a/mcp.json error name-clash: `{project}` and `{own}` can have the same tool names, so this server is \
                 ignored; rename it"
            )
        );
    }
    let both = r#"{ "servers": { "a_": { "command": "x" }, "a": { "command": "x" } } }"#;
    assert_eq!(servers(&load_files(&["/a"], &[("/a/mcp.json", both)], json!({}))), "a_ project /a/mcp.json:1");
}

#[test]
fn a_literal_value_of_env_is_masked_in_arguments_before_the_server_starts() {
    let text = r#"{ "servers": {
        "a": { "command": "x", "args": ["swordfish-in-args"], "env": { "A_KEY": "swordfish-in-args" } },
        "b": { "command": "x", "args": ["--header=swordfish-in-header"] },
        "c": { "url": "https://x.test/", "headers": { "X-Key": "swordfish-in-header" } } } }"#;
    let loaded = load_files(&["/a"], &[("/a/mcp.json", text)], json!({}));
    let shown: Vec<String> =
        loaded.config.servers.values().map(|definition| redacted(&definition.written).to_string()).collect();
    assert!(!shown.concat().contains("swordfish"), "{shown:?}");
}

#[test]
fn a_redacted_entry_contains_no_values_of_env_or_headers() {
    let written = json!({
        "command": "npx", "args": ["--token", "abc-secret", "plain"],
        "env": { "A": "literal", "B": "${env:B}", "C": "pre ${C}", "D": 1, "E": null, "F": "${F:-literal}", "G": "${input:g}" },
        "fallback": { "url": "https://u:pw@x.test/?token=abc&page=1", "headers": { "Authorization": "Bearer ${T}" } },
        "oauth": { "clientId": "id", "clientSecret": "abc" }, "tools": { "*": "deny" }
    });
    insta::assert_json_snapshot!(redacted(&written), @r#"
    {
      "command": "npx",
      "args": [
        "--token",
        "•••",
        "plain"
      ],
      "env": {
        "A": "•••",
        "B": "${env:B}",
        "C": "•••",
        "D": "•••",
        "E": null,
        "F": "•••",
        "G": "${input:g}"
      },
      "fallback": {
        "url": "https://u:•••@x.test/?token=•••&page=1",
        "headers": {
          "Authorization": "•••"
        }
      },
      "oauth": {
        "clientId": "id",
        "clientSecret": "•••"
      },
      "tools": {
        "*": "deny"
      }
    }
    "#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_text_causes_a_panic(text in prop_oneof![
        "[\\[\\]{}:,\"a-z0-9 \n$]{0,80}",
        prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"servers\"", "\"mcpServers\"", "\"x\"", "\"command\"", "\"args\"", "\"env\"", "\"tools\"", "\"policy\"",
            "\"actions\"", "\"inputs\"", "\"${A}\"", "\"${cmd:x}\"", "\"https://u:p@h?key=12345678\"", "null", "true", "-1", "1e9", "\"when\"", "\"deny\"", "\"type\"", "\"sse\"", "\"url\"",
        ]), 0..40).prop_map(|parts| parts.concat()),
    ]) {
        let loaded = load_files(&["/a", "/b"], &[("/a/mcp.json", &text), ("/b/mcp.json", &text)], json!({}));
        for file in &loaded.files {
            for problem in &file.problems {
                prop_assert!(file.text.get(problem.span.clone()).is_some());
                prop_assert!(!problem.message.ends_with('.') && !problem.message.is_empty());
            }
            let errors = file.problems.iter().any(|problem| problem.severity == Severity::Error);
            prop_assert!(file.valid || errors);
        }
    }
}

/// Which of these files have rules that cannot be read. Those of the administrator have to deny every tool.
fn invalid(files: &[(&str, &str)]) -> Vec<String> {
    let loaded = load_files(&["/app"], files, json!({}));
    let policies = loaded.config.policies.iter().filter(|policy| policy.is_invalid);
    let names = policies.map(|policy| {
        let denies_all = policy.denylist.iter().any(|one| one.server == "*" && one.tool == "*");
        assert_eq!(denies_all, policy.scope == Scope::Managed);
        policy.file.as_ref().unwrap().display().to_string()
    });
    names.collect()
}

#[test]
fn rules_that_cannot_be_read_allow_nothing() {
    let (managed, user) = ("/etc/mcp-sidecar/mcp.json", "/home/me/.config/mcp-sidecar/mcp.json");
    let broken = [
        r#"{ "policy": { "denylist": [ { "server": "*", "to"#,
        r#"{ "policy": [ { "denylist": [] } ] }"#,
        r#"{ "policy": { "denylist": { "server": "*", "tool": "x" } } }"#,
        r#"{ "policy": { "denylist": [ "x" ] } }"#,
        r#"{ "policy": { "denylist": [ { "server": "*", "tool": "a**b", "tol": 1 }, { "server": 5, "tool": "x" } ] } }"#,
        r#"{ "policy": { "denylst": [ { "server": "*", "tool": "x" } ] } }"#,
        "[]",
    ];
    for text in broken {
        assert_eq!(invalid(&[(managed, text)]), [managed], "{text}");
        assert_eq!(invalid(&[(user, text)]), [user], "{text}");
    }
    assert_eq!(invalid(&[(managed, "")]), [managed], "it was written to be empty, or cut off");
    assert_eq!(invalid(&[(user, " \n")]), [""; 0], "a new file");
    assert_eq!(invalid(&[("/app/mcp.json", "{")]), [""; 0], "a project file can only restrict");
    assert_eq!(invalid(&[(user, r#"{ "policy": { "denylist": [] } }"#)]), [""; 0]);
}

#[test]
fn a_file_whose_section_with_servers_cannot_be_read_is_not_valid() {
    let user = "/home/me/.config/mcp-sidecar/mcp.json";
    let valid = |text: &str| load_files(&[], &[(user, text)], json!({})).file(Path::new(user)).unwrap().valid;
    for text in [
        r#"{ "servers": [] }"#,
        r#"{ "servers": null }"#,
        r#"{ "mcpServers": "none" }"#,
        r#"{ "servers": { "a": { "command": "x" } }, "servers": {} }"#,
    ] {
        assert!(!valid(text), "{text}");
    }
    assert!(valid(r#"{ "servers": {}, "mcpServers": { "a": { "command": 5 } } }"#));
    assert!(valid("{}"));
    let denies = r#"{ "servers": [], "policy": { "denylist": [{ "server": "*", "tool": "x" }] } }"#;
    let loaded = load_files(&[], &[(user, denies)], json!({}));
    assert_eq!(loaded.config.policies[0].denylist.len(), 1, "its rules are known");
    assert!(!loaded.config.policies[0].is_invalid);
}
