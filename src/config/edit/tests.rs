use proptest::prelude::*;
use serde_json::json;

use super::*;

const COMMENTED: &str = r#"{
  // the servers
  "servers": {
    // files
    "fs": { "command": "npx" }, // on one line
    /* git */
    "git": {
      "command": "git-mcp", // the program
      "args": ["-v"]
    }
  },
  "inputs": []
}
"#;

fn set(text: &str, path: &[&str], value: Value) -> String {
    apply(text, &[Edit::set(path, value)]).unwrap_or_else(|error| format!("error: {error}"))
}

fn remove(text: &str, path: &[&str]) -> String {
    apply(text, &[Edit::remove(path)]).unwrap_or_else(|error| format!("error: {error}"))
}

/// The lines that differ.
fn diff(old: &str, new: &str) -> String {
    let diff = similar::TextDiff::from_lines(old, new);
    let changed = diff.iter_all_changes().filter(|change| change.tag() != similar::ChangeTag::Equal);
    changed.map(|change| format!("{}{}", change.tag(), change.value())).collect::<String>().trim_end().to_owned()
}

#[test]
fn a_new_server_is_added_after_the_last_one_and_nothing_else_changes() {
    let text = set(
        COMMENTED,
        &["servers", "new"],
        json!({ "url": "https://x.test", "headers": { "A": "b" }, "args": ["a", "b"] }),
    );
    insta::assert_snapshot!(diff(COMMENTED, &text), @r#"
    +    },
    +    "new": {
    +      "url": "https://x.test",
    +      "headers": {
    +        "A": "b"
    +      },
    +      "args": ["a", "b"]
    "#);
}

#[test]
fn a_value_is_replaced_in_place() {
    let text = set(COMMENTED, &["servers", "git", "command"], json!("other"));
    insta::assert_snapshot!(diff(COMMENTED, &text), @r#"
    -      "command": "git-mcp", // the program
    +      "command": "other", // the program
    "#);
    assert_eq!(set(COMMENTED, &["servers", "git", "command"], json!("git-mcp")), COMMENTED);
}

#[test]
fn an_updated_server_keeps_its_comments_and_order() {
    let text =
        set(COMMENTED, &["servers", "git"], json!({ "args": ["-v", "x"], "env": { "A": "1" }, "command": "git-mcp" }));
    insta::assert_snapshot!(diff(COMMENTED, &text), @r#"
    -      "args": ["-v"]
    +      "args": ["-v", "x"],
    +      "env": {
    +        "A": "1"
    +      }
    "#);
    let text = set(COMMENTED, &["servers", "git"], json!({ "command": "git-mcp", "cwd": "/" }));
    insta::assert_snapshot!(diff(COMMENTED, &text), @r#"
    -      "args": ["-v"]
    +      "cwd": "/"
    "#);
    let text = set(COMMENTED, &["servers", "fs"], json!({ "command": "npx", "args": [] }));
    insta::assert_snapshot!(diff(COMMENTED, &text), @r#"
    -    "fs": { "command": "npx" }, // on one line
    +    "fs": { "command": "npx", "args": [] }, // on one line
    "#);
}

#[test]
fn removing_a_server_removes_its_comment_and_keeps_the_commas_valid() {
    insta::assert_snapshot!(remove(COMMENTED, &["servers", "fs"]), @r#"
    {
      // the servers
      "servers": {
        /* git */
        "git": {
          "command": "git-mcp", // the program
          "args": ["-v"]
        }
      },
      "inputs": []
    }
    "#);
    insta::assert_snapshot!(remove(COMMENTED, &["servers", "git"]), @r#"
    {
      // the servers
      "servers": {
        // files
        "fs": { "command": "npx" } // on one line
      },
      "inputs": []
    }
    "#);
    assert_eq!(remove(COMMENTED, &["servers", "nobody"]), COMMENTED);
    assert_eq!(remove("{ \"a\": 1, \"b\": 2 }", &["a"]), "{ \"b\": 2 }");
    assert_eq!(remove("{ \"a\": 1, \"b\": 2 }", &["b"]), "{ \"a\": 1 }");
    assert_eq!(remove("{ \"a\": 1, \"b\": 2, }", &["b"]), "{ \"a\": 1, }");
    assert_eq!(remove("{ \"a\": 1 }", &["a"]), "{}");
    assert_eq!(remove("{\n  \"a\": 1,\n}", &["a"]), "{}");
    assert_eq!(remove("{\n  \"a\": 1,\n  \"b\": 2,\n}", &["b"]), "{\n  \"a\": 1,\n}");
    assert_eq!(remove("{\n  \"a\": 1, // one\n  \"b\": 2 // two\n}", &["b"]), "{\n  \"a\": 1 // one\n}");
    assert_eq!(remove("{ \"a\": 1, \"b\": 2, \"a\": 3 }", &["a"]), "{ \"b\": 2 }");
}

#[test]
fn comments_of_other_entries_stay() {
    let text = "{\n  // about everything\n\n  // about a\n  // more about a\n  \"a\": 1, // also a\n  // about b\n  \"b\": 2\n}\n";
    assert_eq!(remove(text, &["a"]), "{\n  // about everything\n\n  // about b\n  \"b\": 2\n}\n");
}

#[test]
fn line_endings_tabs_and_trailing_commas_are_kept() {
    let text = "{\r\n\t\"servers\": {\r\n\t\t\"a\": {},\r\n\t},\r\n}\r\n";
    assert_eq!(
        set(text, &["servers", "b", "command"], json!("x")),
        "{\r\n\t\"servers\": {\r\n\t\t\"a\": {},\r\n\t\t\"b\": {\r\n\t\t\t\"command\": \"x\"\r\n\t\t},\r\n\t},\r\n}\r\n"
    );
    assert_eq!(remove(text, &["servers", "a"]), "{\r\n\t\"servers\": {},\r\n}\r\n");
}

#[test]
fn one_line_stays_one_line() {
    assert_eq!(
        set("{ \"servers\": { \"a\": { \"port\": 1 } } }", &["servers", "b"], json!({ "port": 2 })),
        "{ \"servers\": { \"a\": { \"port\": 1 }, \"b\": { \"port\": 2 } } }"
    );
    assert_eq!(set("{\"a\":1}", &["a"], json!([1, 2])), "{\"a\":[1, 2]}");
}

#[test]
fn an_empty_file_becomes_a_config() {
    for text in ["", "\n", "\u{feff}"] {
        assert_eq!(
            set(text, &["servers", "a"], json!({})).trim_start_matches('\u{feff}'),
            "{\n  \"servers\": {\n    \"a\": {}\n  }\n}\n"
        );
    }
    assert_eq!(set("// mine\n", &["a"], json!(1)), "// mine\n{\n  \"a\": 1\n}\n");
    assert_eq!(set("{}", &["servers", "a"], json!({})), "{\n  \"servers\": {\n    \"a\": {}\n  }\n}");
    assert_eq!(set("{\n  // none yet\n}", &["a"], json!(1)), "{\n  // none yet\n  \"a\": 1\n}");
}

#[test]
fn invalid_files_are_not_edited() {
    assert_eq!(
        set("{ \"a\": ", &["a"], json!(1)),
        "error: the file cannot be parsed (unexpected end of file); fix it first, so that nothing is lost"
    );
    assert_eq!(
        set("{ \"servers\": [] }", &["servers", "a"], json!(1)),
        "error: `servers` must be an object, not a list"
    );
    assert_eq!(set("[]", &["a"], json!(1)), "error: `config` must be an object, not a list");
}

#[test]
fn servers_are_found_in_either_section() {
    let claude = "{ \"mcpServers\": { \"a\": { \"command\": \"x\" } } }";
    let file = Path::new("/p/.mcp.json");
    assert_eq!(
        set_server(claude, Path::new("/p/mcp.json"), "b", json!({})).unwrap(),
        "{ \"mcpServers\": { \"a\": { \"command\": \"x\" }, \"b\": {} } }"
    );
    assert!(set_server("", file, "b", json!({})).unwrap().contains("mcpServers"));
    assert!(set_server("", Path::new("/p/mcp.json"), "b", json!({})).unwrap().contains("\"servers\""));
    assert_eq!(remove_server(claude, "a").unwrap(), "{ \"mcpServers\": {} }");
    assert_eq!(remove_server(claude, "z"), Err(EditError::Missing("z".into())));
    assert_eq!(
        set_enabled(claude, "a", false).unwrap(),
        "{ \"mcpServers\": { \"a\": { \"command\": \"x\", \"enabled\": false } } }"
    );
    assert_eq!(set_enabled(claude, "a", true).unwrap(), claude);
    assert_eq!(
        set_enabled("{\"servers\":{\"a\":{\"disabled\":true}}}", "a", true).unwrap(),
        "{\"servers\":{\"a\":{\"disabled\":false}}}"
    );
}

#[test]
fn setting_and_removing_a_level_restores_the_file() {
    let text = set_tool_level(COMMENTED, "git", "push", Some(Level::Deny)).unwrap();
    insta::assert_snapshot!(diff(COMMENTED, &text), @r#"
    -      "args": ["-v"]
    +      "args": ["-v"],
    +      "tools": {
    +        "push": "deny"
    +      }
    "#);
    assert_eq!(set_tool_level(&text, "git", "push", None).unwrap(), COMMENTED);
}

#[test]
fn a_server_moves_with_its_comments() {
    let tabs = "{\n\t\"mcpServers\": {\n\t\t\"x\": {}\n\t}\n}\n";
    let (from, to) = move_server(COMMENTED, tabs, Path::new("/p/.mcp.json"), "git").unwrap();
    assert_eq!(from, remove(COMMENTED, &["servers", "git"]));
    assert_eq!(
        to,
        "{\n\t\"mcpServers\": {\n\t\t\"x\": {},\n\t\t/* git */\n\t\t\"git\": {\n\t\t\t\"command\": \"git-mcp\", // the program\n\t\t\t\"args\": [\"-v\"]\n\t\t}\n\t}\n}\n"
    );
    // Into a new file, an empty object, and an object on one line.
    for (empty, section) in [("", "servers"), ("{}", "servers"), ("// mine\n", "servers")] {
        let (_, fresh) = move_server(COMMENTED, empty, Path::new("/p/mcp.json"), "fs").unwrap();
        let expected = format!(
            "{{\n  \"{section}\": {{\n    // files\n    // on one line\n    \"fs\": {{ \"command\": \"npx\" }}\n  }}\n}}"
        );
        assert!(fresh.trim_end().ends_with(&expected), "{fresh}");
        assert_eq!(fresh.contains("mine"), empty.contains("mine"));
    }
    let line = "{ \"servers\": { \"x\": {} } }";
    let (_, to) = move_server(COMMENTED, line, Path::new("/p/mcp.json"), "fs").unwrap();
    assert_eq!(to, "{ \"servers\": { \"x\": {}, /* files */ /* on one line */ \"fs\": { \"command\": \"npx\" } } }");
}

#[test]
fn a_difference_is_minimal_and_respects_characters() {
    let edit = difference("a🦀b", "a🦁b").unwrap();
    assert_eq!((edit.span, edit.text.as_str()), (1..5, "🦁"));
    assert_eq!(difference("x", "x"), None);
    assert_eq!(difference("aa", "aaa").map(|edit| edit.text), Some("a".to_owned()));
}

#[test]
fn a_file_is_replaced_and_its_folder_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/mcp.json");
    update(&path, None, |text| apply(text, &[Edit::set(&["a"], json!(1))])).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  \"a\": 1\n}\n");
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays behind");
    let error = update(&path, None, |_| Err(EditError::Missing("x".into()))).unwrap_err();
    assert_eq!(error.to_string(), "`x` does not exist");
}

#[cfg(unix)]
#[test]
fn symlinks_and_modes_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("dotfiles.json"), folder.path().join("mcp.json"));
    std::fs::write(&real, "{}").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o600)).unwrap();
    symlink("dotfiles.json", &link).unwrap();
    write_atomically(&link, "{ }").unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{ }");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn concurrent_changes_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    std::fs::write(&path, "{}").unwrap();
    let first = std::cell::Cell::new(true);
    update(&path, None, |text| {
        if first.replace(false) {
            std::fs::write(&path, "{ \"other\": 1 }").unwrap();
        }
        apply(text, &[Edit::set(&["mine"], json!(2))])
    })
    .unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{ \"other\": 1, \"mine\": 2 }");
}

/// Small configs in every layout: indentation, line ends, comments, trailing commas.
fn any_text() -> impl Strategy<Value = String> {
    let entry = prop::sample::select(vec![
        "1",
        "{}",
        "{ \"p\": 1 }",
        "{ \"p\": 1, \"q\": [2] }",
        "{\n\"p\": 1 // c\n}",
        "[1, 2]",
        "{\n// in\n}",
    ]);
    let gap = prop::sample::select(vec!["", " ", "\n  ", "\r\n\t", " // c\n", " /* c */ ", "\n  // c\n  "]);
    let member = ("[a-d]", entry, gap.clone(), gap.clone());
    (prop::collection::btree_map("[a-d]", member, 0..4), any::<bool>(), gap).prop_map(|(members, trailing, end)| {
        let mut text = String::from("{");
        let count = members.len();
        for (index, (key, (_, value, before, after))) in members.into_iter().enumerate() {
            let comma = if index + 1 < count || trailing { "," } else { "" };
            text.push_str(&format!("{before}\"{key}\": {value}{after}{comma}"));
        }
        text + end + "}"
    })
}

proptest! {
    #[test]
    fn an_edit_changes_nothing_else(
        text in any_text(),
        key in "[a-e]",
        inner in prop::option::of("[p-r]"),
        value in prop::sample::select(vec![None, Some(json!(7)), Some(json!({ "p": 1, "z": [1, { "y": "🦀" }] })), Some(json!({})), Some(json!({ "q": 3 }))]),
    ) {
        let before = parse(&text).unwrap().unwrap().root.unwrap().to_value();
        let mut path = vec![key.as_str()];
        path.extend(inner.as_deref());
        let edit = match &value {
            Some(value) => Edit::set(&path, value.clone()),
            None => Edit::remove(&path),
        };
        let Ok(after) = apply(&text, &[edit]) else { return Ok(()) };
        let tree = parse(&after).map_err(|error| TestCaseError::fail(format!("{error}\n{text}\n→\n{after}")))?.unwrap();
        // The same on plain values.
        let mut expected = before.clone();
        if inner.is_some() && value.is_some() {
            expected.as_object_mut().unwrap().entry(key.clone()).or_insert_with(|| json!({}));
        }
        let parent = if inner.is_some() { expected.get_mut(&key) } else { Some(&mut expected) };
        if let Some(parent) = parent.and_then(Value::as_object_mut) {
            let last = path.last().unwrap().to_string();
            match value {
                Some(value) => parent.insert(last, value),
                None => parent.shift_remove(&last),
            };
        }
        prop_assert_eq!(tree.root.unwrap().to_value(), expected, "{}\n→\n{}", text, after);
    }
}

#[test]
fn an_entry_that_only_restricts_is_created_changed_and_removed() {
    let file = Path::new("mcp.json");
    let empty = "{\n  // ours\n  \"servers\": {\n    \"own\": { \"command\": \"x\" }\n  }\n}\n";
    let off = disable(empty, file, "slack").unwrap();
    assert!(off.contains("// ours") && off.contains("\"slack\": {\n      \"enabled\": false\n    }"), "{off}");
    let both = restrict_tool(&off, file, "slack", "post_*", Level::Deny).unwrap();
    assert!(both.contains("\"post_*\": \"deny\""), "{both}");
    let restricted = stop_disabling(&both, "slack").unwrap();
    assert!(!restricted.contains("enabled") && restricted.contains("post_*"), "{restricted}");
    assert_eq!(set_tool_level(&restricted, "slack", "post_*", None).unwrap(), empty);
    assert_eq!(stop_disabling(&off, "slack").unwrap(), empty);
}

#[test]
fn a_timeout_replaces_its_other_spelling() {
    let text = r#"{ "servers": { "slow": { "command": "x", "request_timeout_ms": 5000 } } }"#;
    let raised = set_timeout(text, "slow", Duration::from_secs(60)).unwrap();
    assert_eq!(raised, r#"{ "servers": { "slow": { "command": "x", "timeout": 60 } } }"#);
    let longest = set_timeout(text, "slow", Duration::from_secs(1_200)).unwrap();
    assert!(longest.contains(r#""timeout": 1200000"#), "{longest}");
}

#[test]
fn nothing_is_added_behind_a_comment_without_an_end() {
    for text in ["/* to do", "// a\n/*\n", "/*\"servers\"?: ["] {
        let added = set_server(text, Path::new("/w/mcp.json"), "a", json!({ "command": "true" }));
        assert!(matches!(added, Err(EditError::Broken(_))), "{added:?}");
    }
    assert!(set_server("// a\n/* b */\n", Path::new("/w/mcp.json"), "a", json!({ "command": "true" })).is_ok());
}

#[cfg(unix)]
#[test]
fn a_fifo_or_endless_file_is_neither_read_nor_replaced() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let folder = tempfile::tempdir().unwrap();
    let (fifo, endless) = (folder.path().join("fifo"), folder.path().join("endless"));
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
    for path in [fifo, endless] {
        let error = update(&path, None, |_| Ok("{}".to_owned())).unwrap_err().to_string();
        assert!(error.starts_with("cannot write /") && error.ends_with(": not a regular file"), "{error}");
    }
}

#[test]
fn changes_of_several_engines_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    let add = |writer: usize| {
        for index in 0..25 {
            update(&path, None, |before| Ok(format!("{before}{writer}.{index}\n"))).unwrap();
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|writer| drop(scope.spawn(move || add(writer)))));
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 100);
}
