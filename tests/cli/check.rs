use crate::Place;

const BROKEN: &str = r#"{
	// Tabs, wide characters and an emoji must not move the carets.
	"servers": {
		"名前": { "command": "npx" },
		"good": { "command": "npx", "args": ["-y", "🦀"], "cmomand": true },
		"web": { "type": "http", "url": 7 },
		"key": { "command": "x", "env": { "API_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyz" }, "tiimeout": 3 }
	}
}
"#;

#[test]
fn problems_are_shown_at_their_place_and_errors_fail() {
    let place = Place::new();
    place.write("work/mcp.json", BROKEN);
    let run = place.run(&["check"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    assert!(!run.out.contains("ghp_"), "a secret was shown");
    insta::assert_snapshot!(run.out, @"");
}

#[test]
fn programs_get_the_same_as_json() {
    let place = Place::new();
    place.write("work/mcp.json", "{ \"servers\": { \"web\": { \"type\": \"http\", \"url\": 7 } } }");
    let run = place.run(&["check", "--json"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.out, @"");
}

#[test]
fn files_without_errors_are_ok() {
    let place = Place::new();
    place.write("work/mcp.json", r#"{ "servers": { "a": { "command": "sh" }, "b": { "command": "sh" } } }"#);
    place.write("work/mcp.local.json", r#"{ "servers": { "c": { "command": "sh" } } }"#);
    let run = place.run(&["check"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.out, @"");
}

#[test]
fn a_workspace_without_config_has_nothing_to_check() {
    let place = Place::new();
    let run = place.run(&["check"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.out, @"");
}

#[test]
fn the_workspace_is_found_from_a_folder_below_it() {
    let place = Place::new();
    place.write("work/mcp.json", r#"{ "servers": { "a": { "command": "sh" } } }"#);
    place.write("work/src/deep/main.rs", "");
    let output = place.command(&["check"]).current_dir(place.path("work/src/deep")).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("work/mcp.json: ok, 1 server\n"));
    let named = place.run(&["check", "--workspace", "src"]);
    assert!(named.out.starts_with("nothing to check"), "{}", named.out);
    assert_eq!(place.run(&["check", "--workspace", "nowhere"]).code, 1);
}

#[test]
fn a_file_may_be_named_and_then_only_it_is_checked() {
    let place = Place::new();
    place.write("work/mcp.json", "{ nonsense");
    place.write("elsewhere/some.json", r#"{ "servers": { "a": { "command": "sh" } } }"#);
    let run = place.run(&["check", "../elsewhere/some.json"]);
    assert_eq!((run.code, run.out.as_str()), (0, "~/elsewhere/some.json: ok, 1 server\n"));
    assert_eq!(place.run(&["check", "../elsewhere/some.json", "mcp.json"]).code, 1);
    let missing = place.run(&["check", "nothing.json"]);
    assert_eq!(missing.code, 1);
    insta::assert_snapshot!(missing.out, @"");
}

#[test]
fn the_settings_are_checked_as_well() {
    let place = Place::new();
    place.write("config/config.toml", "[servers]\ntimeout = \"soon\"\n");
    let run = place.run(&["check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.out, @"");
}
