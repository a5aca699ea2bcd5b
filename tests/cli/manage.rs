//! `add`, `remove`, `move`, `enable`, `disable`, `level`, `auth`: config files edited from a shell.

use serde_json::Value;

use crate::{DEMO, Place};

#[test]
fn a_server_is_added_disabled_and_removed_and_the_rest_of_the_file_is_kept() {
    let place = Place::with_workspace();
    place.write("work/mcp.json", "{\n  // ours\n  \"servers\": {\n    \"old\": { \"command\": \"old\" }\n  }\n}\n");
    let text = || std::fs::read_to_string(place.path("work/mcp.json")).unwrap();

    let run = place.run(&["add", "new", "--env", "TOKEN=${TOKEN}", "--", "npx", "-y", "some-server"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    assert_eq!(run.out, "added `new` to the project config\nrun `mcp-sidecar trust new` to let it start\n");
    assert!(text().contains("// ours") && text().contains("some-server") && text().contains("${TOKEN}"), "{}", text());
    assert_eq!(place.run(&["add", "new", "--url", "https://example.test/mcp"]).code, 1);

    assert_eq!(place.run(&["disable", "new"]).out, "disabled `new` in mcp.json\n");
    assert!(place.run(&["list", "--json"]).out.contains("\"disabled\""));
    assert_eq!(place.run(&["enable", "new"]).out, "enabled `new` in mcp.json\n");

    assert_eq!(place.run(&["remove", "new"]).out, "removed `new` from the project config\n");
    assert!(!text().contains("some-server") && text().contains("\"old\""), "{}", text());
    assert_eq!(place.run(&["remove", "new"]).code, 1);
    for wrong in [&["add", "new"][..], &["add", "new", "--config", "["], &["add", "x", "--scope", "session", "--", "y"]]
    {
        assert_eq!(place.run(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_template_is_added_with_its_inputs() {
    let place = Place::with_workspace();
    let listed: Value = serde_json::from_str(&place.run(&["templates", "--json"]).out).unwrap();
    let asking = listed["templates"].as_array().unwrap().iter().find(|template| template["inputs"][0].is_object());
    let template = asking.expect("some template has an input");
    let run = place.run(&["add", "mine", "--template", template["id"].as_str().unwrap()]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let id = template["inputs"][0]["id"].as_str().unwrap();
    assert!(run.out.contains(&format!("it asks for {id} ")), "{}", run.out);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(place.path("work/mcp.json")).unwrap()).unwrap();
    assert_eq!(written["inputs"], template["inputs"]);
    assert_eq!(place.run(&["check"]).code, 0);
}

#[test]
fn a_server_moves_to_another_file_with_its_comments() {
    let place = Place::with_workspace();
    place.write("work/mcp.json", "{ \"servers\": {\n  \"one\": {\n    // why\n    \"command\": \"one\"\n  }\n} }\n");
    let run = place.run(&["move", "one", "--to", "user"]);
    assert_eq!((run.code, run.out.as_str()), (0, "moved `one` from the project config to the user config\n"));
    let user = std::fs::read_to_string(place.path("config/mcp.json")).unwrap();
    assert!(user.contains("// why"), "{user}");
    assert!(!std::fs::read_to_string(place.path("work/mcp.json")).unwrap().contains("one"));
    let back: Value = serde_json::from_str(&place.run(&["move", "one", "--to", "local", "--json"]).out).unwrap();
    assert_eq!(back["server"]["scope"], "local");
    assert_eq!(place.run(&["move", "nobody", "--to", "user"]).code, 1);
    assert_eq!(place.run(&["move", "one"]).code, 2);
}

#[test]
fn a_level_is_shown_with_its_source_set_and_unset() {
    let place = Place::with_workspace();
    place.write("config/mcp.json", &format!(r#"{{ "servers": {{ "mine": {DEMO} }} }}"#));
    place.write("config/config.toml", "[agents.somebody]\nceiling = \"deny\"\n");
    let run = place.run(&["level", "mine/echo", "allow-session", "--scope", "user"]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (0, "set `mine/echo` to allow-session in the user config\n"),
        "{}",
        run.err
    );
    let shown = place.run(&["level", "mine/echo"]).out;
    assert!(shown.contains("mcp__mine__echo") && shown.contains("allow-session"), "{shown}");
    assert!(shown.contains("agent somebody") && shown.contains("deny"), "{shown}");
    let all: Value = serde_json::from_str(&place.run(&["level", "mine", "--json"]).out).unwrap();
    assert!(all["policies"].as_array().unwrap().len() > 3, "{all:#}");
    assert_eq!(place.run(&["level", "mine/echo", "--unset", "--scope", "user"]).code, 0);
    assert!(!std::fs::read_to_string(place.path("config/mcp.json")).unwrap().contains("allow-session"));
    assert_eq!(place.run(&["level", "mine/nope"]).code, 1);
    assert_eq!(place.run(&["level", "mine/echo", "loud"]).code, 2);
    assert_eq!(place.run(&["level", "mine/"]).code, 2);
}

#[test]
fn signing_in_to_a_server_without_authentication_fails() {
    let place = Place::with_workspace();
    place.write("config/mcp.json", &format!(r#"{{ "servers": {{ "mine": {DEMO} }} }}"#));
    let run = place.run(&["auth", "mine"]);
    assert_eq!((run.code, run.err.as_str()), (1, "error: `mine` is no server that one signs in at\n"));
    assert_eq!(place.run(&["auth", "nobody"]).code, 1);
}
