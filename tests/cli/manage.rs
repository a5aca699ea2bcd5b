//! `add`, `remove`, `move`, `enable`, `disable`, `level`, `auth`: config files edited from a shell.

use serde_json::Value;

use crate::{DEMO, Sandbox};

#[test]
fn a_server_is_added_disabled_and_removed_and_the_rest_of_the_file_is_kept() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", "{\n  // ours\n  \"servers\": {\n    \"old\": { \"command\": \"old\" }\n  }\n}\n");
    let text = || std::fs::read_to_string(sandbox.path("work/mcp.json")).unwrap();

    let run = sandbox.run(&["add", "new", "--env", "TOKEN=${TOKEN}", "--", "npx", "-y", "some-server"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(run.out, "added `new` to the project config\nrun `mcp-sidecar trust new` to let it start\n");
    assert!(text().contains("// ours") && text().contains("some-server") && text().contains("${TOKEN}"), "{}", text());
    assert_eq!(sandbox.run(&["add", "new", "--url", "https://example.test/mcp"]).code, 1);

    assert_eq!(sandbox.run(&["disable", "new"]).out, "disabled `new` in mcp.json\n");
    assert!(sandbox.run(&["list", "--json"]).out.contains("\"disabled\""));
    assert_eq!(sandbox.run(&["enable", "new"]).out, "enabled `new` in mcp.json\n");

    assert_eq!(sandbox.run(&["remove", "new"]).out, "removed `new` from the project config\n");
    assert!(!text().contains("some-server") && text().contains("\"old\""), "{}", text());
    assert_eq!(sandbox.run(&["remove", "new"]).code, 1);
    for wrong in [&["add", "new"][..], &["add", "new", "--config", "["], &["add", "x", "--scope", "session", "--", "y"]]
    {
        assert_eq!(sandbox.run(wrong).code, 2, "{wrong:?}");
    }
}

#[test]
fn a_template_is_added_with_its_inputs() {
    let sandbox = Sandbox::with_workspace();
    let listed: Value = serde_json::from_str(&sandbox.run(&["templates", "--json"]).out).unwrap();
    let asking = listed["templates"].as_array().unwrap().iter().find(|template| template["inputs"][0].is_object());
    let template = asking.expect("some template has an input");
    let run = sandbox.run(&["add", "mine", "--template", template["id"].as_str().unwrap()]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let id = template["inputs"][0]["id"].as_str().unwrap();
    assert!(run.out.contains(&format!("it asks for {id} ")), "{}", run.out);
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(sandbox.path("work/mcp.json")).unwrap()).unwrap();
    assert_eq!(written["inputs"], template["inputs"]);
    assert_eq!(sandbox.run(&["check"]).code, 0);
}

#[test]
fn a_server_moves_to_another_file_with_its_comments() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", "{ \"servers\": {\n  \"one\": {\n    // why\n    \"command\": \"one\"\n  }\n} }\n");
    let run = sandbox.run(&["move", "one", "--to", "user"]);
    assert_eq!((run.code, run.out.as_str()), (0, "moved `one` from the project config to the user config\n"));
    let user = std::fs::read_to_string(sandbox.path("config/mcp.json")).unwrap();
    assert!(user.contains("// why"), "{user}");
    assert!(!std::fs::read_to_string(sandbox.path("work/mcp.json")).unwrap().contains("one"));
    let back: Value = serde_json::from_str(&sandbox.run(&["move", "one", "--to", "local", "--json"]).out).unwrap();
    assert_eq!(back["server"]["scope"], "local");
    let already = sandbox.run(&["move", "one", "--to", "local"]).out;
    assert_eq!(already, "`one` is already in the local config: ~/work/mcp.local.json\n");
    assert_eq!(sandbox.run(&["move", "nobody", "--to", "user"]).code, 1);
    assert_eq!(sandbox.run(&["move", "one"]).code, 2);
}

#[test]
fn a_level_is_shown_with_its_source_set_and_unset() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "mine": {DEMO} }} }}"#));
    sandbox.write("config/config.toml", "[agents.somebody]\nceiling = \"deny\"\n");
    let run = sandbox.run(&["level", "mine/echo", "allow-session", "--scope", "user"]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (0, "set `mine/echo` to allow-session in the user config\n"),
        "{}",
        run.err
    );
    let shown = sandbox.run(&["level", "mine/echo"]).out;
    assert!(shown.contains("mcp__mine__echo") && shown.contains("allow-session"), "{shown}");
    assert!(shown.contains("agent somebody") && shown.contains("deny"), "{shown}");
    let all: Value = serde_json::from_str(&sandbox.run(&["level", "mine", "--json"]).out).unwrap();
    assert!(all["policies"].as_array().unwrap().len() > 3, "{all:#}");
    assert_eq!(sandbox.run(&["level", "mine/echo", "--unset", "--scope", "user"]).code, 0);
    let default = sandbox.run(&["level", "mine/echo", "deny"]);
    assert_eq!(default.out, "set `mine/echo` to deny in the user config\n", "{}", default.err);
    assert_eq!(
        sandbox.run(&["level", "mine/echo", "--unset"]).out,
        "removed the level of `mine/echo` from the user config\n"
    );
    let elsewhere = sandbox.run(&["level", "mine/echo", "allow-always", "--scope", "local"]);
    assert_eq!(elsewhere.code, 1, "a file that does not define the server can only restrict it");
    assert!(!std::fs::read_to_string(sandbox.path("config/mcp.json")).unwrap().contains("allow-session"));
    assert_eq!(sandbox.run(&["level", "mine/nope"]).code, 1);
    assert_eq!(sandbox.run(&["level", "mine/echo", "loud"]).code, 2);
    assert_eq!(sandbox.run(&["level", "mine/"]).code, 2);
}

#[test]
fn signing_in_to_a_server_without_authentication_fails() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "mine": {DEMO} }} }}"#));
    let run = sandbox.run(&["auth", "mine"]);
    assert_eq!(
        (run.code, run.err.as_str()),
        (1, "error: `mine` is not a remote server, so you cannot sign in to it\n")
    );
    assert_eq!(sandbox.run(&["auth", "nobody"]).code, 1);
}

#[test]
fn a_command_without_two_dashes_is_answered_with_the_right_line() {
    let sandbox = Sandbox::with_workspace();
    let run = sandbox.run(&["add", "files", "npx", "-y", "a server"]);
    assert_eq!(run.code, 2);
    let hint = "hint: put `--` before the command: mcp-sidecar add files -- npx -y 'a server'\n";
    assert!(run.err.ends_with(hint), "{}", run.err);
    let run = sandbox.run(&["add", "files", "--colour", "npx"]);
    assert!(!run.err.contains("hint:"), "{}", run.err);
}

#[test]
fn a_server_of_the_user_is_disabled_and_restricted_in_a_project() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/mcp.json", &format!(r#"{{ "servers": {{ "mine": {DEMO} }} }}"#));
    let text = |name: &str| std::fs::read_to_string(sandbox.path(name)).unwrap_or_default();
    let run = sandbox.run(&["disable", "mine", "--scope", "project"]);
    assert_eq!((run.code, run.out.as_str()), (0, "disabled `mine` in mcp.json\n"), "{}", run.err);
    let written: Value = serde_json::from_str(&text("work/mcp.json")).unwrap();
    assert_eq!(written["servers"]["mine"], serde_json::json!({ "enabled": false }));
    assert!(!text("config/mcp.json").contains("enabled"), "{}", text("config/mcp.json"));
    let shown = sandbox.run(&["inspect", "mine"]).out;
    assert!(shown.contains("disables it: mcp.json:") && shown.contains("(project)"), "{shown}");
    assert_eq!(sandbox.run(&["enable", "mine"]).out, "enabled `mine` in mcp.json\n");
    assert!(!text("work/mcp.json").contains("mine"), "{}", text("work/mcp.json"));

    let run = sandbox.run(&["level", "mine/echo", "deny", "--scope", "local"]);
    assert_eq!((run.code, run.out.as_str()), (0, "set `mine/echo` to deny in the local config\n"), "{}", run.err);
    assert!(text("work/mcp.local.json").contains(r#""echo": "deny""#), "{}", text("work/mcp.local.json"));
    assert_eq!(sandbox.run(&["call", "mine/echo", r#"{"text": "x"}"#]).code, 1);
    assert_eq!(sandbox.run(&["level", "mine/echo", "allow-always", "--scope", "local"]).code, 1);
    assert_eq!(sandbox.run(&["check"]).code, 0);

    let run = sandbox.run(&["timeout", "mine", "60"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.starts_with("set the timeout of `mine` to 60 s in "), "{}", run.out);
    assert!(text("config/mcp.json").contains("\"timeout\": 60"), "{}", text("config/mcp.json"));
    assert_eq!(sandbox.run(&["timeout", "mine", "0"]).code, 1);
    let wrong = sandbox.run(&["timeout", "mine", "soon"]);
    assert!(wrong.err.contains("expected a number of seconds"), "{}", wrong.err);
}

#[test]
fn a_template_is_filled_in_before_it_is_written() {
    let sandbox = Sandbox::with_workspace();
    let exists = || sandbox.path("work/mcp.json").exists();
    let run = sandbox.run(&["add", "mine", "--template", "npx"]);
    assert_eq!((run.code, exists()), (2, false), "{}", run.err);
    assert!(run.err.contains("pass --set package=… (npm package)"), "{}", run.err);
    let run = sandbox.run(&["add", "mine", "--template", "npx", "--set", "package=package"]);
    assert_eq!((run.code, exists()), (1, false), "a placeholder is never written: {}", run.err);
    let run = sandbox.run(&["add", "mine", "--template", "npx", "--set", "pakage=x"]);
    assert_eq!((run.code, exists()), (2, false), "{}", run.err);
    let run = sandbox.run(&["add", "mine", "--template", "npx", "--set", "package=some-server"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let written = std::fs::read_to_string(sandbox.path("work/mcp.json")).unwrap();
    assert!(written.contains("some-server") && !written.contains("\"package\""), "{written}");
}

#[cfg(unix)]
#[test]
fn what_a_template_needs_is_asked_for_in_a_terminal() {
    let sandbox = Sandbox::with_workspace();
    let run = sandbox.at_terminal(&[("npm package: ", "some-server")], &["add", "mine", "--template", "npx"]);
    assert_eq!(run.code, 0, "{}", run.out);
    let written = std::fs::read_to_string(sandbox.path("work/mcp.json")).unwrap();
    assert!(written.contains("some-server") && !written.contains("\"package\""), "{written}");
}

#[cfg(unix)]
#[test]
fn a_raw_secret_is_offered_to_the_keyring() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/config.toml", "secrets = \"file\"\n");
    let add = ["add", "mine", "--env", "API_TOKEN=s3cr3t-value", "--", "sh"];
    let run = sandbox.at_terminal(&[("[n] no: ", "y")], &add);
    assert_eq!(run.code, 0, "{}", run.out);
    let written = std::fs::read_to_string(sandbox.path("work/mcp.json")).unwrap();
    assert!(written.contains("${keyring:API_TOKEN}") && !written.contains("s3cr3t-value"), "{written}");
    assert!(sandbox.run(&["secret", "list"]).out.contains("API_TOKEN"));
}

#[test]
fn mistakes_are_reported_before_anything_is_written() {
    let sandbox = Sandbox::with_workspace();
    let level = r#"{ "command": "sh", "tools": { "x": "alow" } }"#;
    let wrong = sandbox.run(&["add", "mine", "--config", level]);
    assert_eq!((wrong.code, sandbox.path("work/mcp.json").exists()), (1, false), "{}", wrong.err);
    assert!(wrong.err.contains("tools: ") && wrong.err.contains("alow"), "{}", wrong.err);
    for (add, reported) in [
        (&["add", "web", "--url", "http://example.test/mcp"][..], "http"),
        (&["add", "gone", "--", "surely-no-such-program"], "surely-no-such-program"),
        (&["add", "token", "--env", "API_TOKEN=s3cr3t-value", "--", "sh"], "secret"),
    ] {
        let run = sandbox.run(add);
        assert!(run.err.contains("warning: ") || run.err.contains("error: "), "{add:?}: {}", run.err);
        assert!(run.err.contains(reported), "{add:?}: {}", run.err);
    }
}

#[test]
fn removing_a_server_removes_the_inputs_that_only_it_uses() {
    let sandbox = Sandbox::with_workspace();
    let server =
        |id: &str| format!(r#"{{ "command": "sh", "env": {{ "A": "${{input:{id}}}", "B": "${{input:shared}}" }} }}"#);
    let inputs = r#"[{ "id": "one", "type": "promptString" }, { "id": "shared", "type": "promptString" }, { "id": "two", "type": "promptString" }]"#;
    let text = format!(r#"{{ "servers": {{ "a": {}, "b": {} }}, "inputs": {inputs} }}"#, server("one"), server("two"));
    sandbox.write("work/mcp.json", &text);
    let ids = || -> Vec<String> {
        let text = std::fs::read_to_string(sandbox.path("work/mcp.json")).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let inputs = value["inputs"].as_array().cloned().unwrap_or_default();
        inputs.iter().map(|input| input["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(sandbox.run(&["remove", "a"]).code, 0);
    assert_eq!(ids(), ["shared", "two"]);
    assert_eq!(sandbox.run(&["remove", "b"]).code, 0);
    assert_eq!(ids(), [] as [&str; 0]);
}
