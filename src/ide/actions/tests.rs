use super::*;
use crate::config::problem::TextEdit;
use crate::ide::tests::Scene;
use crate::ide::{diagnostics, live};

/// A scene from a text with the cursor at `$0`.
fn at(text: &str, scene: impl Fn(&str) -> Scene) -> (Scene, Vec<Offer>) {
    let cursor = text.find("$0").unwrap();
    let scene = scene(&text.replace("$0", ""));
    let live = live::live(&scene.page());
    let problems = diagnostics::diagnostics(scene.loaded.file(&scene.path).unwrap(), live);
    let offers = actions(&scene.page(), &(cursor..cursor), &problems);
    (scene, offers)
}

fn titles(offers: &[Offer]) -> String {
    let line = |offer: &Offer| match &offer.deed {
        Deed::Edit(_) => format!("{} (edit)", offer.title),
        Deed::Run(command) => format!("{} → {} {}", offer.title, command.name, command.params),
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

/// Every problem of these texts that has a fix is mended by it, and nothing else of the text is lost.
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
    "t": { "command": "sh", "tools": { "raed": "deny" } }
  }
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
        let live = live::live(&scene.page());
        diagnostics::diagnostics(scene.loaded.file(&scene.path).unwrap(), live)
    };
    let fixable: Vec<Problem> = problems(text).into_iter().filter(|problem| problem.fix.is_some()).collect();
    let codes: Vec<_> = fixable.iter().map(|problem| problem.code).collect();
    assert!(codes.contains(&"unknown-tool") && codes.contains(&"raw-secret") && fixable.len() >= 8, "{codes:?}");
    for problem in fixable {
        let span = problem.span.clone();
        let offers = actions(&scene(text).page(), &span, &problems(text));
        let offer = offers.iter().find(|offer| offer.problem.as_ref() == Some(&problem)).unwrap();
        let Deed::Edit(edits) = &offer.deed else { panic!("an edit was wanted") };
        let after = edited(text, edits);
        let same = |left: &&Problem| left.code == problem.code && left.message == problem.message;
        assert_eq!(problems(&after).iter().find(same), None, "{} did not help:\n{after}", offer.title);
        for comment in ["// Kept.", "// This, too.", "// and this"] {
            assert!(after.contains(comment), "{} lost {comment}", offer.title);
        }
    }
}
