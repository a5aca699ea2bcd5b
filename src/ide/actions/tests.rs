use super::*;
use crate::config::problem::TextEdit;
use serde_json::json;

use crate::ide::diagnostics;
use crate::ide::tests::Scene;

/// A scene from a text with the cursor at `$0`.
fn at(text: &str, scene: impl Fn(&str) -> Scene) -> (Scene, Vec<Offer>) {
    let cursor = text.find("$0").unwrap();
    let scene = scene(&text.replace("$0", ""));
    let problems = diagnostics::diagnostics(&scene.page(), scene.loaded.file(&scene.path).unwrap());
    let offers = actions(&scene.page(), &(cursor..cursor), &problems);
    (scene, offers)
}

fn titles(offers: &[Offer]) -> String {
    let line = |offer: &Offer| match &offer.deed {
        Deed::Edit(_) => format!("{} (edit)", offer.title),
        Deed::Run(command) => format!("{} → {} {}", offer.title, command.name, command.params),
        Deed::Keep(_) => format!("{} (keep)", offer.title),
    };
    offers.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn edited(text: &str, edits: &[TextEdit]) -> String {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.span.start));
    edits.into_iter().fold(text.to_owned(), |mut text, edit| {
        text.replace_range(edit.span, &edit.text);
        text
    })
}

#[test]
fn a_server_can_be_run_trusted_switched_and_moved() {
    let (_, offers) =
        at(r#"{ "servers": { "$0a": { "command": "sh" } } }"#, |text| Scene::new(text).connected("a", &["x"]));
    let offers: Vec<Offer> = offers.into_iter().filter(|offer| !offer.title.starts_with("Set all")).collect();
    insta::assert_snapshot!(titles(&offers), @r#"
    Add `"type": "stdio"` (edit)
    Restart `a` → mcp.server.restart {"server":"a"}
    Stop `a` → mcp.server.stop {"server":"a"}
    Test `a` → mcp.server.test {"server":"a"}
    Withdraw trust in `a` → mcp.server.trust {"server":"a","trusted":false}
    Disable `a` → mcp.server.enable {"server":"a","enabled":false,"scope":"project"}
    Move `a` to your user config → mcp.server.move {"server":"a","from":"project","to":"user"}
    Move `a` to your personal config of this project → mcp.server.move {"server":"a","from":"project","to":"local"}
    "#);
}

#[test]
fn the_level_of_the_tool_under_the_cursor_can_be_set() {
    let text = r#"{ "servers": { "a": { "command": "sh", "tools": { "re$0ad": "deny" } } } }"#;
    let (_, offers) = at(text, |text| Scene::new(text).connected("a", &["read"]));
    let levels: Vec<Offer> = offers.into_iter().filter(|offer| offer.title.starts_with("Set ")).collect();
    assert_eq!(levels.len(), 6);
    insta::assert_snapshot!(titles(&levels[..2]), @r#"
    Set `read` to disable → mcp.tool.policy {"server":"a","tool":"read","level":"disable","scope":"project"}
    Set `read` to require-approval → mcp.tool.policy {"server":"a","tool":"read","level":"require-approval","scope":"project"}
    "#);
}

#[test]
fn in_a_text_that_nothing_runs_from_a_level_is_a_plain_edit() {
    let text = r#"{ "servers": { "a": { "command": "sh" }, "n$0ew": { "command": "sh" } } }"#;
    let (scene, offers) = at(text, |text| Scene::new(r#"{ "servers": {} }"#).typed(text));
    let deny = offers.iter().find(|offer| offer.title == "Set all tools of `new` to deny").unwrap();
    let Deed::Edit(edits) = &deny.deed else { panic!("an edit was wanted") };
    insta::assert_snapshot!(edited(&scene.text, edits), @r#"{ "servers": { "a": { "command": "sh" }, "new": { "command": "sh", "tools": { "*": "deny" } } } }"#);
}

#[test]
fn what_a_server_waits_for_is_a_quick_fix() {
    let (_, offers) = at(r#"{ "servers": { "$0a": { "command": "sh" } } }"#, |text| Scene::new(text).untrusted("a"));
    assert_eq!((offers[0].title.as_str(), offers[0].kind), ("Trust `a`", Kind::QuickFix));
    assert_eq!(offers[0].problem.as_ref().unwrap().code, "awaiting-trust");
}

/// Every problem of these texts that has a fix is mended by each of its fixes, and no comment is lost.
#[test]
fn each_quick_fix_leaves_a_file_without_that_problem() {
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
        if scene.page().entries().iter().any(|entry| entry.view.is_some() && entry.member.key.text == "t") {
            return scene.connected("t", &["read"]);
        }
        scene
    };
    let problems = |text: &str| {
        let scene = scene(text);
        diagnostics::diagnostics(&scene.page(), scene.loaded.file(&scene.path).unwrap())
    };
    let comments = |text: &str| {
        let tree = crate::config::tree::parse(text, 64);
        tree.comments.iter().map(|span| text[span.clone()].to_owned()).collect::<Vec<_>>()
    };
    let mut mended = std::collections::BTreeSet::new();
    for problem in problems(text) {
        let offers = actions(&scene(text).page(), &problem.span, &problems(text));
        let fixes = offers.iter().filter(|offer| offer.problem.as_ref() == Some(&problem));
        for offer in fixes {
            let edits = match &offer.deed {
                Deed::Edit(edits) => edits.clone(),
                Deed::Keep(_) => vec![crate::ide::fixes::secret(&scene(text).page(), &problem).unwrap().edit],
                Deed::Run(_) => continue,
            };
            let after = edited(text, &edits);
            let same = |left: &&Problem| left.code == problem.code && left.message == problem.message;
            assert_eq!(problems(&after).iter().find(same), None, "{} did not help:\n{after}", offer.title);
            assert_eq!(comments(&after), comments(text), "{} lost a comment:\n{after}", offer.title);
            mended.insert(format!("{}: {}", problem.code, offer.title));
        }
    }
    insta::assert_snapshot!(mended.into_iter().collect::<Vec<_>>().join("\n"), @r#"
    bad-level: Change to `deny`
    bad-name: Rename to `b-c`
    bad-port: Remove the quotes
    bad-url: Add `http://`
    bad-url: Add `https://`
    command-not-found: Split it into `command` and `args`
    conflicting-keys: Add `"type": "http"`
    conflicting-keys: Add `"type": "stdio"`
    conflicting-keys: Remove `enabled`
    deprecated-spelling: Change to `http`
    deprecated-spelling: Change to `url`
    deprecated-sse: Change to `http`
    duplicate-key: Remove the first `command`
    duplicate-key: Remove this `k`
    milliseconds: Convert it to seconds
    missing-key: Add `"port": `
    name-clash: Remove the first `twice`
    name-clash: Remove this `a`
    plain-http: Change to `https`
    raw-secret: Move it into the keyring as `API_TOKEN`
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
fn a_fix_changes_as_little_as_it_can() {
    let first = |text: &str| {
        let (scene, offers) = at(text, Scene::new);
        let Some(Deed::Edit(edits)) = offers.iter().find(|offer| offer.kind == Kind::QuickFix).map(|offer| &offer.deed)
        else {
            panic!("no fix: {}", titles(&offers));
        };
        edited(&scene.text, edits)
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
fn of_several_fixes_for_one_problem_the_first_is_preferred() {
    let text = r#"{ "servers": { "a": { "command": "sh", "env": { "API_TOKEN": "$0ghp_0123456789abcdefghijABCDEFGHIJ012345" } } } }"#;
    let (_, offers) = at(text, Scene::new);
    let preferred: Vec<_> =
        offers.iter().filter(|offer| offer.is_preferred(&offers)).map(|offer| &offer.title).collect();
    assert_eq!(preferred, ["Replace with ${env:API_TOKEN}"]);
    assert!(offers.iter().any(|offer| offer.title.starts_with("Move it into the keyring")));
}

#[test]
fn what_stands_twice_leads_to_the_other_one() {
    let text = r#"{
      "servers": { "a": { "command": "sh" } }, "mcpServers": { "a": { "command": "sh" } },
      "inputs": [{ "id": "k" }, { "id": "k" }]
    }"#;
    let scene = Scene::new(text);
    let problems = &scene.loaded.file(&scene.path).unwrap().problems;
    let told: Vec<_> = problems
        .iter()
        .flat_map(|problem| problem.related.iter().map(move |related| (problem.code, related)))
        .map(|(code, related)| {
            format!("{code}: {} {} {}", related.span.start, &text[related.span.clone()], related.message)
        })
        .collect();
    let (first, input) = (text.find("\"a\"").unwrap(), text.find("\"k\"").unwrap());
    assert_eq!(
        told,
        [
            format!("name-clash: {first} \"a\" this one is used"),
            format!("duplicate-key: {input} \"k\" the first one, which is used"),
        ]
    );
    assert!(problems.iter().flat_map(|problem| &problem.related).all(|related| *related.file == *scene.path));
}

/// The same for texts that do not parse.
#[test]
fn each_mistake_of_writing_is_mended_by_its_fix() {
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
        let after = edited(text, &fixes[0].edits);
        let tree = crate::config::tree::parse(&after, 64);
        assert!(tree.valid(), "{text} became {after}: {:?}", tree.problems);
        assert_eq!(text.contains("one"), after.contains("one"), "{after}");
    }
}

#[test]
fn a_secret_is_cut_out_exactly() {
    let kept = |value: &str| {
        let text = json!({ "servers": { "a": { "command": "sh", "env": { "API_TOKEN": value } } } }).to_string();
        let scene = Scene::new(&text);
        let file = scene.loaded.file(&scene.path).unwrap();
        let problem = file.problems.iter().find(|problem| problem.code == "raw-secret").unwrap();
        let kept = crate::ide::fixes::secret(&scene.page(), problem).unwrap();
        format!("{} {} {}", kept.name, kept.value.reveal(), kept.edit.text)
    };
    assert_eq!(kept("s3cr3t-value"), "API_TOKEN s3cr3t-value \"${keyring:API_TOKEN}\"");
    assert_eq!(kept("Bearer s3cr3t"), "API_TOKEN s3cr3t \"Bearer ${keyring:API_TOKEN}\"");
    assert_eq!(kept("$ecret}value"), "API_TOKEN $ecret}value \"${keyring:API_TOKEN}\"");
    assert_eq!(kept("\"quoted\"é"), "API_TOKEN \"quoted\"é \"${keyring:API_TOKEN}\"");
}

#[test]
fn what_helps_is_offered_once_wherever_the_cursor_is_in_the_server() {
    let offered = |text: &str, scene: &dyn Fn(&str) -> Scene, what: &str| {
        let (_, offers) = at(text, scene);
        offers.iter().filter(|offer| offer.title.starts_with(what)).count()
    };
    let sign_in = |text: &str| Scene::new(text).status("a", Status::NeedsAuth, None);
    assert_eq!(offered(r#"{ "servers": { "$0a": { "url": "https://x.test" } } }"#, &sign_in, "Sign in"), 1);
    assert_eq!(offered(r#"{ "servers": { "a": { "url": "https$0://x.test" } } }"#, &sign_in, "Sign in"), 1);
    let untrusted = |text: &str| Scene::new(text).untrusted("a");
    assert_eq!(offered(r#"{ "servers": { "$0a": { "command": "sh" } } }"#, &untrusted, "Trust"), 1);
}

#[test]
fn a_server_that_the_text_switches_off_can_be_switched_on_again() {
    let saved = r#"{ "servers": { "a": { "command": "sh" } } }"#;
    let text = r#"{ "servers": { "$0a": { "command": "sh", "enabled": false } } }"#;
    let (_, offers) = at(text, |text| Scene::new(saved).typed(text));
    let words: Vec<&str> = offers.iter().map(|offer| offer.title.as_str()).collect();
    assert!(words.contains(&"Enable `a`") && !words.contains(&"Disable `a`"), "{words:?}");
}
