use crate::Sandbox;

const BROKEN: &str = r#"{
	// Tabs, wide characters and an emoji must not move the carets.
	"servers": {
		"名前": { "command": "sh" },
		"good": { "command": "sh", "args": ["-y", "🦀"], "cmomand": true },
		"web": { "type": "http", "url": 7 },
		"key": { "command": "no-such-program", "env": { "API_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyz" }, "tiimeout": 3 }
	}
}
"#;

#[test]
fn problems_are_shown_at_their_position_and_errors_fail() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", BROKEN);
    let run = sandbox.run(&["check"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    assert!(!run.out.contains("ghp_"), "a secret was shown");
    insta::assert_snapshot!(run.out, @r#"
    error[bad-name]: server names can only contain letters, digits, `-` and `_`; found '名'
     --> mcp.json:4:3
      |
    4 |         "名前": { "command": "sh" },
      |         ^^^^^^

    warning[unknown-key]: unknown key `cmomand` in `servers.good`; did you mean `command`?
     --> mcp.json:5:51
      |
    5 |         "good": { "command": "sh", "args": ["-y", "🦀"], "cmomand": true },
      |                                                          ^^^^^^^^^

    error[wrong-type]: `servers.web.url` must be a string, not a number
     --> mcp.json:6:35
      |
    6 |         "web": { "type": "http", "url": 7 },
      |                                         ^

    warning[command-not-found]: `no-such-program` was not found on the PATH
     --> mcp.json:7:23
      |
    7 |         "key": { "command": "no-such-program", "env": { "API_TOKEN": ••• }, "tiimeout": 3 }
      |                             ^^^^^^^^^^^^^^^^^

    warning[raw-secret]: `servers.key.env.API_TOKEN` contains a secret in plain text
     --> mcp.json:7:64
      |
    7 |         "key": { "command": "no-such-program", "env": { "API_TOKEN": ••• }, "tiimeout": 3 }
      |                                                                      ^^^
      = help: move it to the variable `API_TOKEN`, or use `${input:…}` or `${keyring:…}`

    warning[unknown-key]: unknown key `tiimeout` in `servers.key`; did you mean `timeout`?
     --> mcp.json:7:110
      |
    7 |         "key": { "command": "no-such-program", "env": { "API_TOKEN": ••• }, "tiimeout": 3 }
      |                                                                             ^^^^^^^^^^

    2 errors and 4 warnings
    "#);
}

#[test]
fn problems_are_printed_as_json() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", "{ \"servers\": { \"web\": { \"type\": \"http\", \"url\": 7 } } }");
    let run = sandbox.run(&["check", "--json"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.out, @r#"
    {
      "files": [
        {
          "path": "~/work/mcp.json",
          "scope": "project",
          "exists": true,
          "valid": true,
          "servers": [
            "web"
          ],
          "problems": [
            {
              "severity": "error",
              "code": "wrong-type",
              "message": "`servers.web.url` must be a string, not a number",
              "line": 1,
              "column": 48,
              "endLine": 1,
              "endColumn": 49
            }
          ]
        }
      ],
      "errors": 1,
      "warnings": 0
    }
    "#);
}

#[test]
fn problems_are_printed_as_sarif() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/a b/mcp.json", "{ \"servers\": { \"web\": { \"type\": \"http\", \"url\": 7 } } }");
    sandbox.write("elsewhere.json", "{");
    let run = sandbox.run(&["check", "--format", "sarif", "a b/mcp.json", "../elsewhere.json"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let log: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let driver = &log["runs"][0]["tool"]["driver"];
    let rules: Vec<&str> =
        driver["rules"].as_array().unwrap().iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    let results = log["runs"][0]["results"].as_array().unwrap();
    assert!(results.iter().all(|result| rules.contains(&result["ruleId"].as_str().unwrap())));
    insta::assert_snapshot!(format!("{:#}", results[0]), @r#"
    {
      "ruleId": "wrong-type",
      "level": "error",
      "message": {
        "text": "`servers.web.url` must be a string, not a number"
      },
      "locations": [
        {
          "physicalLocation": {
            "artifactLocation": {
              "uri": "a%20b/mcp.json"
            },
            "region": {
              "startLine": 1,
              "startColumn": 48,
              "endLine": 1,
              "endColumn": 49
            }
          }
        }
      ]
    }
    "#);
    let outside =
        results.last().unwrap()["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str().unwrap();
    assert_eq!(outside, "file://~/elsewhere.json");
}

#[test]
fn problems_are_printed_as_annotations_of_github() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", BROKEN);
    let run = sandbox.run(&["check", "--format", "github"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    assert!(!run.out.contains("ghp_"), "a secret was shown");
    insta::assert_snapshot!(run.out, @r"
    ::error file=mcp.json,line=4,endLine=4,col=3,endColumn=7,title=bad-name::server names can only contain letters, digits, `-` and `_`; found '名'
    ::warning file=mcp.json,line=5,endLine=5,col=51,endColumn=60,title=unknown-key::unknown key `cmomand` in `servers.good`; did you mean `command`?
    ::error file=mcp.json,line=6,endLine=6,col=35,endColumn=36,title=wrong-type::`servers.web.url` must be a string, not a number
    ::warning file=mcp.json,line=7,endLine=7,col=23,endColumn=40,title=command-not-found::`no-such-program` was not found on the PATH
    ::warning file=mcp.json,line=7,endLine=7,col=64,endColumn=106,title=raw-secret::`servers.key.env.API_TOKEN` contains a secret in plain text%0Amove it to the variable `API_TOKEN`, or use `${input:…}` or `${keyring:…}`
    ::warning file=mcp.json,line=7,endLine=7,col=110,endColumn=120,title=unknown-key::unknown key `tiimeout` in `servers.key`; did you mean `timeout`?
    2 errors and 4 warnings
    ");
    sandbox.write("work/mcp.json", "{}");
    assert_eq!(sandbox.run(&["check", "--format", "github"]).out, "0 errors and 0 warnings\n");
    assert_eq!(sandbox.run(&["check", "--format", "github", "--json"]).code, 2);
}

#[test]
fn files_without_errors_are_ok() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", r#"{ "servers": { "a": { "command": "sh" }, "b": { "command": "sh" } } }"#);
    sandbox.write("work/mcp.local.json", r#"{ "servers": { "c": { "command": "sh" } } }"#);
    let run = sandbox.run(&["check"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.out, @r"
    mcp.local.json: ok, 1 server
    mcp.json: ok, 2 servers
    ");
}

#[test]
fn a_workspace_without_config_has_nothing_to_check() {
    let sandbox = Sandbox::with_workspace();
    let run = sandbox.run(&["check"]);
    assert_eq!(run.code, 0);
    insta::assert_snapshot!(run.out, @r"
    no config files found; these paths were checked:
      ~/managed.json
      ~/work/mcp.local.json
      ~/work/mcp.json
      ~/work/.mcp.json
      ~/work/.vscode/mcp.json
      ~/work/.cursor/mcp.json
      ~/config/mcp.json
    ");
}

#[test]
fn the_workspace_is_found_from_a_folder_below_it() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", r#"{ "servers": { "a": { "command": "sh" } } }"#);
    sandbox.write("work/src/deep/main.rs", "");
    let output = sandbox.command(&["check"]).current_dir(sandbox.path("work/src/deep")).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().ends_with("work/mcp.json: ok, 1 server\n"));
    let named = sandbox.run(&["check", "--workspace", "src"]);
    assert!(named.out.starts_with("no config files found"), "{}", named.out);
    assert_eq!(sandbox.run(&["check", "--workspace", "nowhere"]).code, 1);
}

#[test]
fn a_named_file_is_checked_alone() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("work/mcp.json", "{ nonsense");
    sandbox.write("elsewhere/some.json", r#"{ "servers": { "a": { "command": "sh" } } }"#);
    let run = sandbox.run(&["check", "../elsewhere/some.json"]);
    assert_eq!((run.code, run.out.as_str()), (0, "../elsewhere/some.json: ok, 1 server\n"));
    assert_eq!(sandbox.run(&["check", "../elsewhere/some.json", "mcp.json"]).code, 1);
    let missing = sandbox.run(&["check", "nothing.json"]);
    assert_eq!(missing.code, 1);
    insta::assert_snapshot!(missing.out, @r"
    error[no-file]: file not found
     --> nothing.json

    1 error and 0 warnings
    ");
}

#[test]
fn the_settings_are_checked_as_well() {
    let sandbox = Sandbox::with_workspace();
    sandbox.write("config/config.toml", "[servers]\ntimeout = \"soon\"\n");
    let run = sandbox.run(&["check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!(run.out, @r#"
    error[setting]: `servers.timeout`: expected a number of seconds, or a string such as "500ms" or "5m"
     --> ~/config/config.toml:2:11
      |
    2 | timeout = "soon"
      |           ^^^^^^
      = help: How long a call may take without progress or a log message. `timeout` of a server overrides this.

    1 error and 0 warnings
    "#);
}
