use super::*;
use serde_json::{Value, json};

use crate::ide::diagnostics;
use crate::ide::fixture::apply;
use crate::ide::tests::Scene;
use crate::model::Status;

/// The code actions in a text with the cursor at `$0`.
fn at(text: &str, scene: impl Fn(&str) -> Scene) -> (Scene, Vec<CodeAction>) {
    let cursor = text.find("$0").unwrap();
    let scene = scene(&text.replace("$0", ""));
    let problems = diagnostics::diagnostics(&scene.config());
    let actions = actions(&scene.config(), &(cursor..cursor), &problems);
    (scene, actions)
}

fn titles(actions: &[CodeAction]) -> String {
    let line = |action: &CodeAction| match &action.effect {
        Effect::Edit(_) => format!("{} (edit)", action.title),
        Effect::Run(run) => format!("{} → {} {}", action.title, run.command, Value::Object(run.arguments.clone())),
        Effect::StoreSecret(_) => format!("{} (store secret)", action.title),
        Effect::ChooseLevel(_) => format!("{} (choose level)", action.title),
    };
    actions.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_server_can_be_run_trusted_disabled_and_moved() {
    let (_, actions) =
        at(r#"{ "servers": { "$0a": { "command": "sh" } } }"#, |text| Scene::new(text).connected("a", &["x"]));
    insta::assert_snapshot!(titles(&actions), @r#"
    Stop `a` → mcp.server.stop {"server":"a"}
    Restart `a` → mcp.server.restart {"server":"a"}
    Refresh `a` → mcp.server.refresh {"server":"a"}
    Test `a` → mcp.server.test {"server":"a"}
    Show the log of `a` → mcp.server.logs {"server":"a"}
    Hide the tools of `a` → mcp.server.toggle {"server":"a","enabled":false}
    Revoke trust in `a` → mcp.server.trust {"server":"a","trusted":false}
    Disable `a` → mcp.server.enable {"server":"a","enabled":false,"scope":"project"}
    Move `a` to your user config → mcp.server.move {"server":"a","from":"project","to":"user"}
    Move `a` to your personal config for this project → mcp.server.move {"server":"a","from":"project","to":"local"}
    Add `"type": "stdio"` (edit)
    Set the level of all tools of `a`… (choose level)
    "#);
}

#[test]
fn the_level_of_the_tool_at_the_cursor_can_be_set() {
    let text = r#"{ "servers": { "a": { "command": "sh", "tools": { "re$0ad": "deny" } } } }"#;
    let cursor = text.find("$0").unwrap();
    let (scene, actions) = at(text, |text| Scene::new(text).connected("a", &["read"]));
    assert_eq!(actions.last().unwrap().title, "Set the level of `read`…");
    let LevelChoices { levels, .. } = level_choices(&scene.config(), &(cursor..cursor)).unwrap();
    assert_eq!(levels.len(), 6);
    let actions: Vec<CodeAction> = levels
        .into_iter()
        .map(|(level, effect)| CodeAction { title: level.to_string(), kind: Kind::Rewrite, effect, problem: None })
        .collect();
    insta::assert_snapshot!(titles(&actions[..2]), @r#"
    disable → mcp.tool.policy {"server":"a","tool":"read","level":"disable","scope":"project"}
    require-approval → mcp.tool.policy {"server":"a","tool":"read","level":"require-approval","scope":"project"}
    "#);
}

#[test]
fn the_level_of_an_unsaved_server_is_set_by_an_edit() {
    let text = r#"{ "servers": { "a": { "command": "sh" }, "n$0ew": { "command": "sh" } } }"#;
    let cursor = text.find("$0").unwrap();
    let (scene, _) = at(text, |text| Scene::new(r#"{ "servers": {} }"#).typed(text));
    let LevelChoices { levels, .. } = level_choices(&scene.config(), &(cursor..cursor)).unwrap();
    let (_, deny) = levels.iter().find(|(level, _)| *level == Level::Deny).unwrap();
    let Effect::Edit(edits) = deny else { panic!("expected an edit") };
    insta::assert_snapshot!(apply(&scene.text, edits), @r#"{ "servers": { "a": { "command": "sh" }, "new": { "command": "sh", "tools": { "*": "deny" } } } }"#);
}

#[test]
fn a_server_that_waits_for_trust_has_a_quick_fix() {
    let (_, actions) = at(r#"{ "servers": { "$0a": { "command": "sh" } } }"#, |text| Scene::new(text).untrusted("a"));
    assert_eq!((actions[0].title.as_str(), actions[0].kind), ("Trust `a`…", Kind::QuickFix));
    assert_eq!(actions[0].problem.as_ref().unwrap().code, Code::AwaitingTrust);
}

#[test]
fn each_quick_fix_removes_its_problem_and_keeps_all_comments() {
    let text = r#"// Kept.
{
  "servers": {
    // This, too.
    "a": { "comand": "sh" },
    "b c": { "command": "sh" },
    "p": { "type": "tcp", "port": "3001" },
    "l": { "command": "sh", "tools": { "x": "dney" } }, // and this
    "h": { "url": "http://example.test/mcp" },
    "u": { "url": "example.test/mcp" },
    "s": { "command": "sh", "env": { "API_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345" } },
    "t": { "command": "sh", "tools": { "raed": "deny" } },
    // The first of two.
    "twice": { "command": "one" }, // behind it
    "twice": { "command": "two" }, // the second
    "keys": {
      "command": "sh", // old
      // new
      "command": "bash"
    },
    "both": {
      // which?
      "command": "sh",
      "url": "https://example.test"
    },
    "sse": { "type": "sse", "url": "https://example.test/sse" },
    "type": { "type": "streamable-http", "url": "https://example.test/mcp" },
    "old": { "serverUrl": "https://example.test/mcp" /* windsurf's */ },
    "same": { "url": "https://example.test/a", "serverUrl": "https://example.test/b" },
    "unused": { "command": "sh", "headers": { "A": "b" } /* no effect */ },
    "switch": { "command": "sh", "enabled": true, "disabled": true },
    "wrong": { "type": "http", "command": "sh" },
    "flag": { "command": "sh", "enabled": "false" },
    "slow": { "command": "sh", "timeout": 60000, "startupTimeout": "30" },
    "unset": { "command": "sh", "env": { "X": "a ${env:SURELY_NOT_SET_1} ${SURELY_NOT_SET_2}" } },
    "ask": { "command": "sh", "args": ["${input:undeclared}"] },
    "cmd": { "cmd": "sh" },
    "exec": { "exec": "sh" },
    "line": { "command": "sh", /* beside */ "args": "-x 'two words'" },
    "spare": { "command": "sh", "cmd": "bash" /* left */ },
    "words": { "command": "sh -x here", /* before */ "args": [ /* in */ "last"] },
    "none": {
      // over it
      "command": "sh -x there" // behind
    },
    "empty": { "command": "sh -x", "args": [/* nothing */] },
    "number": { "command": "sh", "args": [/* one */ 3000, true] },
    "port": { "type": "tcp" /* which? */ },
    "local": { "url": "localhost:3000/mcp" },
    "typo": { "command": "sh", "args": ["${inptu:k}/${workspacefolder}", "${workspaceFoldr}"] },
    "odd": { "command": "sh", "frobnicate": 1 /* odd */, "cwd": "/" }
  },
  "inputs": [
    { "id": "k", "type": "promptString" }, // the first
    // the second
    { "id": "k", "type": "promptString" } // behind it
  ],
  "actions": [{ "title": "t", "tool": "mcp__a__b", "arguments": { "x": "${selction} ${inptu:k}" } }],
  /* between */
  "mcpServers": { "a": { "command": "sh" } /* hidden */ } // last
}
"#;
    let scene = |text: &str| {
        let scene = Scene::new(text);
        if scene.config().entries().iter().any(|entry| entry.view.is_some() && entry.member.key.text == "t") {
            return scene.connected("t", &["read"]);
        }
        scene
    };
    let problems = |text: &str| {
        let scene = scene(text);
        diagnostics::diagnostics(&scene.config())
    };
    let comments = |text: &str| {
        let tree = crate::config::tree::parse(text, 64);
        tree.comments.iter().map(|span| text[span.clone()].to_owned()).collect::<Vec<_>>()
    };
    let mut fixed = std::collections::BTreeSet::new();
    for problem in problems(text) {
        let actions = actions(&scene(text).config(), &problem.span, &problems(text));
        let fixes = actions.iter().filter(|action| action.problem.as_ref() == Some(&problem));
        for action in fixes {
            let edits = match &action.effect {
                Effect::Edit(edits) => edits.clone(),
                Effect::StoreSecret(_) => {
                    vec![crate::ide::fixes::move_secret(&scene(text).config(), &problem).unwrap().edit]
                }
                Effect::Run(_) | Effect::ChooseLevel(_) => continue,
            };
            let after = apply(text, &edits);
            let same = |left: &&Problem| left.code == problem.code && left.message == problem.message;
            assert_eq!(problems(&after).iter().find(same), None, "{} did not fix it:\n{after}", action.title);
            assert_eq!(comments(&after), comments(text), "{} lost a comment:\n{after}", action.title);
            assert!(problem.code.has_quick_fix(), "{} has a quick fix", problem.code);
            fixed.insert(format!("{}: {}", problem.code, action.title));
        }
    }
    insta::assert_snapshot!(fixed.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    bad-level: Change to `deny`
    bad-name: Rename to `b-c`
    bad-port: Remove the quotes
    bad-url: Add `http://`
    bad-url: Add `https://`
    command-not-found: Split into `command` and `args`
    conflicting-keys: Add `"type": "http"`
    conflicting-keys: Add `"type": "stdio"`
    conflicting-keys: Remove `enabled`
    deprecated-spelling: Change to `http`
    deprecated-spelling: Change to `url`
    deprecated-sse: Change to `http`
    duplicate-key: Remove the first `command`
    duplicate-key: Remove this `k`
    milliseconds: Convert it to seconds
    missing-key: Add `"port"`
    name-clash: Remove the first `twice`
    name-clash: Remove this `a`
    plain-http: Change to `https`
    raw-secret: Move to the keyring as `API_TOKEN`
    raw-secret: Replace with ${env:API_TOKEN}
    same-key: Remove `url`
    type-mismatch: Change the type to `stdio`
    unknown-expansion: Change to `${input:k}`
    unknown-expansion: Change to `${selection}`
    unknown-input: Declare the input `undeclared`
    unknown-key: Change to `command`
    unknown-key: Remove `cmd`
    unknown-key: Remove `frobnicate`
    unknown-tool: Change to `read`
    unset-variable: Change to `${workspaceFolder}`
    unset-variable: Give `SURELY_NOT_SET_1` a default
    unset-variable: Give `SURELY_NOT_SET_2` a default
    unset-variable: Give `workspaceFoldr` a default
    unset-variable: Give `workspacefolder` a default
    unused-key: Remove `headers`
    wrong-type: Change it to a list
    wrong-type: Change it to a number
    wrong-type: Put it in quotes
    wrong-type: Remove the quotes
    "#);
}

#[test]
fn a_fix_changes_as_little_as_possible() {
    let first = |text: &str| {
        let (scene, actions) = at(text, Scene::new);
        let Some(Effect::Edit(edits)) =
            actions.iter().find(|action| action.kind == Kind::QuickFix).map(|action| &action.effect)
        else {
            panic!("no fix: {}", titles(&actions));
        };
        apply(&scene.text, edits)
    };
    let entry = |entry: &str| first(&format!("{{ \"servers\": {{ \"$0s\": {entry} }} }}"));
    let value = |entry: &str| first(&format!("{{ \"servers\": {{ \"s\": {entry} }} }}"));
    let whole = |entry: &str| format!("{{ \"servers\": {{ \"s\": {entry} }} }}");
    assert_eq!(
        value("{\n  \"command\": \"$0no-such -y 'a b'\", // it\n  \"cwd\": \"/\"\n}"),
        whole("{\n  \"command\": \"no-such\",\n  \"args\": [\"-y\", \"a b\"], // it\n  \"cwd\": \"/\"\n}")
    );
    assert_eq!(
        value(r#"{ "command": "$0no-such -y", "args": ["a"] }"#),
        whole(r#"{ "command": "no-such", "args": ["-y", "a"] }"#)
    );
    assert_eq!(
        value(r#"{ "command": "sh", "args": [$01.50, "a"] }"#),
        whole(r#"{ "command": "sh", "args": ["1.50", "a"] }"#)
    );
    assert_eq!(
        entry(r#"{ "type": "tcp", "host": "127.0.0.1" }"#),
        whole(r#"{ "type": "tcp", "port": 0, "host": "127.0.0.1" }"#)
    );
    assert_eq!(
        value(r#"{ "command": "sh", "args": ["a $0${workspacefolder:-x} ${inptu:k}"] }"#),
        whole(r#"{ "command": "sh", "args": ["a ${workspacefolder:-x} ${input:k}"] }"#)
    );
}

#[test]
fn the_first_of_several_fixes_is_preferred() {
    let text = r#"{ "servers": { "a": { "command": "sh", "env": { "API_TOKEN": "$0ghp_0123456789abcdefghijABCDEFGHIJ012345" } } } }"#;
    let (_, actions) = at(text, Scene::new);
    let preferred: Vec<_> =
        actions.iter().filter(|action| action.is_preferred(&actions)).map(|action| &action.title).collect();
    assert_eq!(preferred, ["Replace with ${env:API_TOKEN}"]);
    assert!(actions.iter().any(|action| action.title.starts_with("Move to the keyring")));
}

#[test]
fn a_duplicate_refers_to_the_other_definition() {
    let text = r#"{
      "servers": { "a": { "command": "sh" } }, "mcpServers": { "a": { "command": "sh" } },
      "inputs": [{ "id": "k" }, { "id": "k" }]
    }"#;
    let scene = Scene::new(text);
    let problems = &scene.loaded.file(&scene.path).unwrap().problems;
    let related: Vec<_> = problems
        .iter()
        .flat_map(|problem| problem.related.iter().map(move |related| (problem.code, related)))
        .map(|(code, related)| {
            format!("{code}: {} {} {}", related.span.start, &text[related.span.clone()], related.message)
        })
        .collect();
    let (first, input) = (text.find("\"a\"").unwrap(), text.find("\"k\"").unwrap());
    assert_eq!(
        related,
        [
            format!("name-clash: {first} \"a\" this one is used"),
            format!("duplicate-key: {input} \"k\" the first one, which is used"),
        ]
    );
    assert!(problems.iter().flat_map(|problem| &problem.related).all(|related| *related.file == *scene.path));
}

#[test]
fn each_syntax_error_is_fixed_by_its_fix() {
    for (text, fixed) in [
        ("{ \"servers\": { \"a\": { \"command\": \"sh\" /* one */ \"args\": [] } } }", 1),
        ("{ // one\n \"servers\": { \"a\" { \"command\": \"sh\" } } }", 1),
        ("{ \"servers\": { \"a\": { 'command': \"sh\" } } } // one", 1),
        ("{ \"servers\": { \"a\": { command: \"sh\" } } } // one", 1),
        ("{ \"servers\": { \"a\": { \"command\": sh } } } // one", 1),
        ("{ \"servers\": { \"a\": { \"command\": \"sh\",, } } } // one", 1),
        ("", 1),
    ] {
        let scene = Scene::new(text);
        let problems = scene.loaded.file(&scene.path).unwrap().problems.clone();
        let fixes: Vec<_> = problems.iter().filter_map(|problem| problem.fix.as_ref()).collect();
        assert_eq!(fixes.len(), fixed, "{text}: {problems:?}");
        let after = apply(text, &fixes[0].edits);
        let tree = crate::config::tree::parse(&after, 64);
        assert!(tree.valid(), "{text} became {after}: {:?}", tree.problems);
        assert_eq!(text.contains("one"), after.contains("one"), "{after}");
    }
}

#[test]
fn exactly_the_secret_is_moved() {
    let moved = |value: &str| {
        let text = json!({ "servers": { "a": { "command": "sh", "env": { "API_TOKEN": value } } } }).to_string();
        let scene = Scene::new(&text);
        let file = scene.loaded.file(&scene.path).unwrap();
        let problem = file.problems.iter().find(|problem| problem.code == Code::RawSecret).unwrap();
        let secret = crate::ide::fixes::move_secret(&scene.config(), problem).unwrap();
        format!("{} {} {}", secret.name, secret.value.reveal(), secret.edit.text)
    };
    assert_eq!(moved("s3cr3t-value"), "API_TOKEN s3cr3t-value \"${keyring:API_TOKEN}\"");
    assert_eq!(moved("Bearer s3cr3t"), "API_TOKEN s3cr3t \"Bearer ${keyring:API_TOKEN}\"");
    assert_eq!(moved("$ecret}value"), "API_TOKEN $ecret}value \"${keyring:API_TOKEN}\"");
    assert_eq!(moved("\"quoted\"é"), "API_TOKEN \"quoted\"é \"${keyring:API_TOKEN}\"");
}

#[test]
fn a_remedy_is_listed_once_wherever_the_cursor_is_in_the_server() {
    let count = |text: &str, scene: &dyn Fn(&str) -> Scene, what: &str| {
        let (_, actions) = at(text, scene);
        actions.iter().filter(|action| action.title.starts_with(what)).count()
    };
    let sign_in = |text: &str| Scene::new(text).status("a", Status::NeedsAuth, None);
    assert_eq!(count(r#"{ "servers": { "$0a": { "url": "https://x.test" } } }"#, &sign_in, "Sign in"), 1);
    assert_eq!(count(r#"{ "servers": { "a": { "url": "https$0://x.test" } } }"#, &sign_in, "Sign in"), 1);
    let untrusted = |text: &str| Scene::new(text).untrusted("a");
    assert_eq!(count(r#"{ "servers": { "$0a": { "command": "sh" } } }"#, &untrusted, "Trust"), 1);
}

#[test]
fn a_server_that_is_disabled_in_the_text_can_be_enabled() {
    let saved = r#"{ "servers": { "a": { "command": "sh" } } }"#;
    let text = r#"{ "servers": { "$0a": { "command": "sh", "enabled": false } } }"#;
    let (_, actions) = at(text, |text| Scene::new(saved).typed(text));
    let titles: Vec<&str> = actions.iter().map(|action| action.title.as_str()).collect();
    assert!(titles.contains(&"Enable `a`") && !titles.contains(&"Disable `a`"), "{titles:?}");
}
