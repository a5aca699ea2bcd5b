use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::paths::resolve;
use super::*;
use crate::config::spec::{Case, Config, Definition, Launch, LevelRule, Restriction, Stdio, ToolRule};
use crate::model::{Level, Scope};
use crate::policy::tests::{definition, tool};
use crate::policy::{Rules, SessionLevels, TrustState};

/// A folder with `src`, `secret` and links between them.
static PLACE: LazyLock<(tempfile::TempDir, PathBuf)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(path.join("src/deep")).unwrap();
    std::fs::create_dir_all(path.join("secret")).unwrap();
    std::fs::create_dir_all(path.join("other/src")).unwrap();
    #[cfg(unix)]
    for (target, link) in [("/etc", "src/etc"), ("../secret", "src/out"), ("../src", "secret/in"), ("secret", "alias")]
    {
        std::os::unix::fs::symlink(target, path.join(link)).unwrap();
    }
    (dir, path)
});

fn folder() -> &'static Path {
    &PLACE.1
}

/// The level of a call, if a case with these conditions has this level and the rest another.
fn level(definition: Definition, case: Level, rest: Level, when: &[(&str, Condition)], arguments: &Value) -> Level {
    level_in(&[folder().into()], definition, case, rest, when, arguments)
}

fn level_in(
    roots: &[Arc<Path>],
    definition: Definition,
    case: Level,
    rest: Level,
    when: &[(&str, Condition)],
    arguments: &Value,
) -> Level {
    let when = when.iter().map(|(path, condition)| ((*path).to_owned(), condition.clone())).collect();
    let rule = LevelRule { cases: vec![Case { when, level: case }], rest };
    let mut definition = definition;
    definition.spec.tools = vec![ToolRule { pattern: "t".to_owned(), level: rule }];
    let name = definition.name.clone();
    let config = Config { servers: [(name.clone(), definition.into())].into(), ..Config::default() };
    let rules = Rules::new(&config, &SessionLevels::default(), roots);
    rules.rule(&name, &tool("t"), arguments.as_object(), TrustState::Trusted).level
}

fn of_project() -> Definition {
    Definition { folder: Some(folder().into()), ..definition(Scope::Project, "/home/you/shop/mcp.json", &[]) }
}

fn of_user() -> Definition {
    definition(Scope::User, "/home/mcp.json", &[])
}

fn allowed(definition: Definition, condition: Condition, argument: Value) -> bool {
    let arguments = json!({ "path": argument });
    level(definition, Level::AllowAlways, Level::RequireApproval, &[("path", condition)], &arguments).widens()
}

fn denied(definition: Definition, condition: Condition, arguments: Value) -> bool {
    level(definition, Level::Deny, Level::AllowAlways, &[("path", condition)], &arguments) == Level::Deny
}

fn inside(name: &str) -> Condition {
    Condition::Inside(format!("${{workspaceFolder}}/{name}"))
}

#[test]
fn inside_allows_only_texts_that_every_server_reads_as_the_same_path() {
    let ok = ["src/a.rs", "./src/a b.rs", "src//deep/x", "src/größe.txt"];
    for text in ok {
        assert!(allowed(of_project(), inside("src"), json!(text)), "{text}");
        assert!(allowed(of_project(), inside("src"), json!(folder().join(text))), "absolute {text}");
    }
    assert!(allowed(of_project(), inside("src"), json!(format!("file://{}/src/x", folder().display()))));
    for text in [
        "$HOME/.ssh/id",
        "${HOME}/x",
        "src/$HOME",
        "~/x",
        "~root/x",
        " src/x",
        "src/x ",
        "src/x\n",
        "\tsrc/x",
        "\"/etc/passwd\"",
        "'/etc/passwd'",
        "src/`id`",
        "FILE:///etc/passwd",
        "File:///etc/passwd",
        "file:src/x",
        "file://src/x",
        "file://host/etc/passwd",
        "file:/etc/passwd",
        "src%2f..%2f..%2fetc",
        "src/..%2f..%2fetc",
        "%2fetc%2fpasswd",
        "src\\..\\..\\etc",
        "\\etc\\passwd",
        "C:\\x",
        "C:/x",
        "src/*",
        "src/{a,../../etc}",
        "src/[o]ut/key",
        "src/out/key",
        "src/etc/passwd",
        "src/x\0/../../etc",
        "src/\u{202e}x",
        "@/etc/passwd",
        "-/etc/passwd",
        ":(top)secret",
        "src/..;/x",
        "http://x/",
        "src|cat",
        "src/a,/etc/passwd",
        "src/a,secret/key",
        "src/a, secret/key",
        "src/a /etc/passwd",
        "src/a ../secret/key",
        "src/a;/etc/passwd",
        "",
        ".",
        "..",
        "src/..",
        "src/../secret/x",
        "//etc/passwd",
        "/etc/passwd",
        "other/src/x",
    ] {
        assert!(!allowed(of_project(), inside("src"), json!(text)), "{text:?}");
    }
}

#[test]
fn a_relative_path_is_inside_only_from_every_folder_that_the_server_may_use() {
    let with = |change: fn(&mut Stdio), mut definition: Definition| {
        let Launch::Stdio(stdio) = &mut definition.spec.launch else { panic!() };
        change(stdio);
        definition
    };
    let rule = || inside("src");
    // Its roots are the workspace, its working folder is another one.
    assert!(!allowed(
        with(|stdio| stdio.cwd = Some("${workspaceFolder}/other".into()), of_project()),
        rule(),
        json!("src/x")
    ));
    assert!(!allowed(with(|stdio| stdio.cwd = Some("${SOMEWHERE}".into()), of_project()), rule(), json!("src/x")));
    assert!(!allowed(with(|stdio| stdio.args = vec!["/data".into()], of_project()), rule(), json!("src/x")));
    assert!(allowed(
        with(|stdio| stdio.args = vec!["${workspaceFolder}".into()], of_project()),
        rule(),
        json!("src/x")
    ));
    assert!(!allowed(of_user(), rule(), json!("src/x")), "a user's server runs in its own folder");
    assert!(allowed(of_user(), rule(), json!(folder().join("src/x"))));
    // A workspace with a second folder is a second root.
    let roots: [Arc<Path>; 2] = [folder().into(), Path::new("/elsewhere").into()];
    let arguments = json!({ "path": "src/x" });
    let when = [("path", rule())];
    let level = level_in(&roots, of_project(), Level::AllowAlways, Level::RequireApproval, &when, &arguments);
    assert_eq!(level, Level::RequireApproval);
    // A rule that restricts does not deny everything because of that.
    assert!(!denied(of_user(), inside("secret"), json!({ "path": "src/x" })));
    assert!(denied(of_user(), inside("secret"), json!({ "path": "../x" })));
    let anywhere = with(|stdio| stdio.cwd = Some("${SOMEWHERE}".into()), of_user());
    assert!(denied(anywhere, inside("secret"), json!({ "path": "x" })));
}

#[test]
fn a_rule_that_denies_does_not_fail_open() {
    for path in [
        json!("secret/key"),
        json!("~/secret"),
        json!("$PWD/secret/key"),
        json!("src/out/key"),
        json!("alias/key"),
        json!(["src/a", "secret/key"]),
        json!([["secret/key"]]),
        json!([]),
        json!({ "uri": "secret/key" }),
        json!("a\0b"),
        json!(null),
        json!(7),
        json!(" secret/key"),
        json!("secret%2fkey"),
        json!("secret\\key"),
        json!("\"secret/key\""),
        json!("file:///x%2f"),
        json!("FILE:///x"),
        json!("./secret//key"),
        json!("src/../secret"),
        json!(format!("a,{}/secret/key", folder().display())),
        json!(format!("/tmp/x {}/secret/key", folder().display())),
        json!(format!("/tmp/x;{}/secret/key", folder().display())),
        json!("a,secret/key"),
        json!("/tmp/x ./secret/key"),
    ] {
        assert!(denied(of_project(), inside("secret"), json!({ "path": path })), "inside {path}");
        assert!(
            denied(of_project(), Condition::Glob("secret/**".into()), json!({ "path": path }))
                || path == json!("src/../secret"),
            "glob {path}"
        );
    }
    assert!(denied(of_project(), inside("secret"), json!({})), "a missing argument has a default that we do not know");
    for path in [
        "/etc/passwd",
        "//etc/passwd",
        "/etc//passwd",
        "/./etc/passwd",
        "/usr/../etc/passwd",
        "src/etc/passwd",
        "/etc/%70asswd",
    ] {
        assert!(denied(of_project(), Condition::Glob("/etc/**".into()), json!({ "path": path })), "{path}");
    }
    assert!(denied(of_project(), Condition::Glob("secret/**".into()), json!({ "path": folder().join("secret/key") })));
    assert!(!denied(of_project(), inside("secret"), json!({ "path": "src/a" })));
    assert!(!denied(of_project(), Condition::Glob("/etc/**".into()), json!({ "path": "src/a" })));
    assert!(!denied(of_project(), inside("secret"), json!({ "path": ["src/a", "src/b"] })));
}

#[test]
fn texts_that_mean_the_same_to_a_server_are_denied_alike() {
    let words = || Condition::In(vec![json!("prod"), json!("staging")]);
    for value in [
        json!("prod"),
        json!(" prod"),
        json!("PROD"),
        json!("\"prod\""),
        json!(["dev", "prod"]),
        json!({ "name": "x" }),
        json!(null),
    ] {
        assert!(denied(of_user(), words(), json!({ "path": value })), "{value}");
    }
    assert!(!denied(of_user(), words(), json!({ "path": "dev" })));
    let flag = || Condition::In(vec![json!(true)]);
    for value in [json!(true), json!("true"), json!(1), json!("yes"), json!([true])] {
        assert!(denied(of_user(), flag(), json!({ "path": value })), "{value}");
    }
    assert!(!denied(of_user(), flag(), json!({ "path": false })));
    assert!(!allowed(of_user(), words(), json!(["prod", "dev"])), "a list means every element");
    assert!(allowed(of_user(), words(), json!(["prod", "staging"])));
    assert!(denied(of_user(), Condition::Max(10.0), json!({ "path": "5" })));
}

#[test]
fn a_pattern_matches_the_whole_text_and_a_part_of_it_only_restricts() {
    let rule = || Condition::Matches("rm|ls".into());
    assert!(allowed(of_user(), rule(), json!("ls")));
    for text in ["ls; rm -rf /", "ls\n", "xls", " ls"] {
        assert!(!allowed(of_user(), rule(), json!(text)), "{text:?}");
        assert!(denied(of_user(), rule(), json!({ "path": text })), "{text:?}");
    }
    assert!(!denied(of_user(), rule(), json!({ "path": "cat" })));
    assert!(allowed(of_user(), Condition::Matches("^v\\d+$".into()), json!("v12")));
}

#[test]
fn a_glob_without_folders_is_not_passed_by_encoded_folders() {
    let rule = || Condition::Glob("*.txt".into());
    assert!(allowed(of_user(), rule(), json!("notes of 100% you.txt")));
    for text in ["a/b.txt", "..\\b.txt", "..%2fb.txt", " b.txt", "~b.txt", "b\0.txt"] {
        assert!(!allowed(of_user(), rule(), json!(text)), "{text:?}");
    }
}

#[test]
fn lists_in_a_dotted_path_mean_every_element() {
    let arguments = |second: Value| json!({ "files": [{ "path": "src/a" }, second] });
    let level = |second: Value| {
        let when = [("files.path", inside("src"))];
        level(of_project(), Level::AllowAlways, Level::RequireApproval, &when, &arguments(second))
    };
    assert_eq!(level(json!({ "path": "src/b" })), Level::AllowAlways);
    for second in [json!({ "path": "secret/b" }), json!({}), json!("src/b"), json!({ "path": ["src/b", "/etc"] })] {
        assert_eq!(level(second.clone()), Level::RequireApproval, "{second}");
    }
}

#[test]
fn an_unknown_condition_gets_the_stricter_level_of_a_chain() {
    let unknown = json!({ "path": "~/x" });
    for (case, rest, expected) in [
        (Level::Deny, Level::AllowAlways, Level::Deny),
        (Level::AllowAlways, Level::Deny, Level::Deny),
        (Level::RequireApproval, Level::Deny, Level::Deny),
        (Level::RequireApproval, Level::AllowSession, Level::RequireApproval),
    ] {
        assert_eq!(level(of_project(), case, rest, &[("path", inside("src"))], &unknown), expected);
    }
    let both = [("path", inside("src")), ("mode", Condition::In(vec![json!("w")]))];
    let arguments = json!({ "path": "~/x", "mode": "r" });
    let level = level(of_project(), Level::Deny, Level::AllowAlways, &both, &arguments);
    assert_eq!(level, Level::AllowAlways, "one condition certainly does not hold");
}

/// How a server may read an argument before it opens the file.
fn served(text: &str) -> Vec<PathBuf> {
    let mut texts = vec![text.to_owned(), text.trim().to_owned(), text.trim_matches(['"', '\'']).to_owned()];
    texts.extend(texts.clone().iter().map(|text| text.replace('\\', "/")));
    texts.extend(texts.clone().iter().map(|text| text.replace("%2f", "/").replace("%2F", "/").replace("%2e", ".")));
    texts.extend(texts.clone().iter().map(|text| text.replace("$HOME", "/root").replace('~', "/root")));
    let file = |text: &String| {
        let lower = text.to_lowercase();
        lower.strip_prefix("file://").and_then(|_| text.get(7..)).map(str::to_owned)
    };
    texts.extend(texts.clone().iter().filter_map(file));
    texts.iter().flat_map(|text| [folder().join(text), folder().join("other").join(text)]).collect()
}

fn real(path: &Path) -> PathBuf {
    resolve(path).unwrap_or_else(|| PathBuf::from("/unresolved"))
}

fn argument_text() -> impl Strategy<Value = String> {
    let pieces = [
        "src", "secret", "out", "in", "alias", "etc", "..", ".", "/", "//", "\\", "%2f", "%2e", "~", "$HOME", " ",
        "\"", "'", "file://", "FILE://", "a.txt", "*", "deep", "-", "\n",
    ];
    let prefix = prop::sample::select(vec![String::new(), format!("{}/", folder().display()), "/".to_owned()]);
    (prefix, prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..8)).prop_map(|(a, b)| a + &b.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// What is allowed is inside, however a server in the folder reads it.
    #[test]
    fn nothing_outside_is_allowed(text in argument_text()) {
        if allowed(of_project(), inside("src"), json!(text)) {
            let dir = folder().join("src");
            let paths = [real(&folder().join(&text)), real(&normalize(&folder().join(&text)))];
            prop_assert!(paths.iter().all(|path| path.starts_with(&dir)), "{text:?} leads to {paths:?}");
            prop_assert!(!text.contains(['~', '$', '%', '\\', '"', '\'', '*', '\n']), "{text:?}");
        }
    }

    /// What any server reads as a file inside is denied.
    #[test]
    fn nothing_inside_escapes_a_denial(text in argument_text()) {
        let dir = folder().join("secret");
        let is_inside = served(&text).iter().any(|path| {
            path.starts_with(folder()) && !path.starts_with(folder().join("other")) && real(path).starts_with(&dir)
        });
        if is_inside {
            prop_assert!(denied(of_project(), inside("secret"), json!({ "path": text })), "{text:?}");
        }
    }

    /// An array is never allowed more, nor denied less, than its elements.
    #[test]
    fn a_list_is_as_strict_as_its_strictest_element(texts in prop::collection::vec(argument_text(), 1..4)) {
        let each_allowed = texts.iter().all(|text| allowed(of_project(), inside("src"), json!(text)));
        prop_assert_eq!(allowed(of_project(), inside("src"), json!(texts)), each_allowed);
        let any_denied = texts.iter().any(|text| denied(of_project(), inside("secret"), json!({ "path": text })));
        prop_assert_eq!(denied(of_project(), inside("secret"), json!({ "path": texts })), any_denied);
    }
}

#[test]
fn a_condition_that_fails_makes_an_unknown_one_irrelevant() {
    let (no, unknown) = (Condition::In(vec![json!("a")]), Condition::In(vec![json!("B")]));
    let arguments = json!({ "x": "b", "y": "b" });
    for when in [[("x", no.clone()), ("y", unknown.clone())], [("x", unknown), ("y", no)]] {
        assert_eq!(level(of_user(), Level::Deny, Level::AllowAlways, &when, &arguments), Level::AllowAlways);
    }
}

#[test]
fn a_list_and_a_large_number_are_compared_as_they_are() {
    let list = Condition::In(vec![json!(["a", "b"])]);
    assert!(allowed(of_user(), list.clone(), json!(["a", "b"])) && !allowed(of_user(), list, json!(["a"])));
    let number = Condition::In(vec![json!(9_007_199_254_740_993_u64)]);
    assert!(!allowed(of_user(), number.clone(), json!(9_007_199_254_740_992_u64)));
    assert!(!denied(of_user(), number, json!({ "path": 9_007_199_254_740_992_u64 })));
    let both = Condition::In(vec![json!("A"), json!("a")]);
    assert!(allowed(of_user(), both, json!("a")));
    let forms = Condition::In(vec![json!("1.0"), json!(1)]);
    assert!(allowed(of_user(), forms, json!(1.0)), "one of them is certainly equal");
}

#[test]
fn there_is_nothing_above_the_root() {
    let path = format!("/..{}", folder().join("src/a").display());
    let glob = Condition::Glob(format!("{}/**", folder().join("src").display()));
    assert!(allowed(of_project(), glob, json!(path)));
}

#[test]
fn a_glob_for_texts_is_vague_about_dots_and_certain_about_the_rest() {
    let glob = || Condition::Glob("ab*".to_owned());
    assert!(denied(of_user(), glob(), json!({ "path": "x/../ab" })));
    assert!(!denied(of_user(), glob(), json!({ "path": "x/ab" })));
    assert!(allowed(of_user(), glob(), json!("abc")));
}

#[test]
fn only_absolute_arguments_of_the_server_are_folders_that_it_may_use() {
    let with = |argument: &str| {
        let mut definition = of_project();
        let Launch::Stdio(stdio) = &mut definition.spec.launch else { panic!() };
        stdio.args = vec![argument.to_owned()];
        allowed(definition, inside("src"), json!("src/a"))
    };
    assert!(with("other") && with("--verbose") && !with("${workspaceFolder}/other"));
}

#[test]
fn without_a_workspace_only_an_absolute_path_can_be_inside() {
    let inside = |path: &str| {
        let condition = Condition::Inside(folder().join("src").to_str().unwrap().to_owned());
        let when = [("path", condition)];
        let (user, arguments) = (of_user(), json!({ "path": path }));
        level_in(&[], user, Level::AllowAlways, Level::RequireApproval, &when, &arguments).widens()
    };
    assert!(inside(folder().join("src/a").to_str().unwrap()));
    assert!(!inside(folder().join("secret/a").to_str().unwrap()) && !inside("src/a"));
    // It is unknown where a relative path starts, so a rule that denies a folder is about it, too.
    let when = [("path", Condition::Inside(folder().join("secret").to_str().unwrap().to_owned()))];
    let (user, arguments) = (of_user(), json!({ "path": "a" }));
    assert_eq!(level_in(&[], user, Level::Deny, Level::AllowAlways, &when, &arguments), Level::Deny);
}

#[test]
fn a_relative_folder_of_a_rule_starts_at_the_workspace() {
    assert!(allowed(of_project(), Condition::Inside("src".to_owned()), json!("src/a")));
    assert!(!allowed(of_project(), Condition::Inside("src".to_owned()), json!("secret/a")));
}

#[test]
fn in_a_restriction_without_a_folder_a_relative_folder_starts_at_that_of_the_server() {
    let case = Case { when: vec![("path".to_owned(), inside("secret"))], level: Level::Deny };
    let rule = LevelRule { cases: vec![case], rest: Level::AllowAlways };
    let restriction = Restriction {
        scope: Scope::User,
        file: None,
        folder: None,
        key_span: 0..0,
        line: 0,
        rule_lines: Default::default(),
        enabled: None,
        disables: false,
        tools: vec![ToolRule { pattern: "t".to_owned(), level: rule }],
    };
    let definition = Definition { restrictions: vec![restriction], ..of_project() };
    let level = |path: &str| {
        let arguments = json!({ "path": path });
        level(definition.clone(), Level::AllowAlways, Level::AllowAlways, &[("path", inside("src"))], &arguments)
    };
    assert_eq!((level("secret/a"), level("src/a")), (Level::Deny, Level::AllowAlways));
}
