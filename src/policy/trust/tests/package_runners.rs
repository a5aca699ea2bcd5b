//! What a package runner would execute from the repository.

use super::*;

#[test]
fn a_program_with_the_name_of_another_is_shown() {
    insta::assert_snapshot!(decided(&["npx", "x"], &[("node_modules/.bin/node", "")]), @"
    content node_modules/.bin/node
    runner node_modules/.bin node: runs instead of the program with this name
    ");
}

#[test]
fn the_programs_of_an_installed_package_are_shown_and_pinned() {
    for (bin, shown) in [(r#"{ "a": "cli.js" }"#, r#"{"a":"cli.js"}"#), (r#""cli.js""#, "cli.js")] {
        let package = format!(r#"{{ "version": "1.0.0", "bin": {bin}, "main": "other.js" }}"#);
        let files = [
            ("node_modules/a/package.json", package.as_str()),
            ("node_modules/a/cli.js", ""),
            ("node_modules/a/other.js", ""),
        ];
        let expected = format!(
            "content node_modules/a/cli.js\n\
             runner node_modules/a/package.json bin: {shown}\n\
             runner node_modules/a/package.json version: 1.0.0"
        );
        assert_eq!(decided(&["npx", "a"], &files), expected);
    }
    let files = [
        ("node_modules/a/package.json", r#"{ "directories": { "bin": "b" } }"#),
        ("node_modules/a/b/c", ""),
        ("node_modules/a/d", ""),
    ];
    insta::assert_snapshot!(decided(&["npx", "a"], &files), @"
    content node_modules/a/b/c
    runner node_modules/a/package.json directories.bin: b
    ");
    let broken = [("node_modules/a/package.json", r#"{ "bin": "#)];
    assert_eq!(decided(&["npx", "a"], &broken), "content node_modules/a/package.json");
}

#[test]
fn a_program_above_the_repository_is_pinned() {
    let (_keep, top) = project();
    let folder = top.join("open");
    write(&folder, &[("x", "")]);
    write(&top, &[("node_modules/.bin/tool-of-packages", "")]);
    let mut definition = definition(&folder);
    *stdio(&mut definition) =
        Stdio { command: "npx".into(), args: vec!["tool-of-packages".into()], ..Stdio::default() };
    let lines = fingerprint(&definition, &Config::default()).lines;
    assert!(lines.contains_key("content ../node_modules/.bin/tool-of-packages"), "{lines:?}");
}

const MODULES: [(&str, &str); 5] = [
    ("pyproject.toml", "[project.scripts]\nx = 'a.b:main'\ny = 'c:main'\n"),
    ("a/b.py", ""),
    ("src/a/b.py", ""),
    ("a/b/__init__.py", ""),
    ("c.py", ""),
];

#[test]
fn the_module_of_the_named_entry_point_is_pinned() {
    let expected = [
        "content a/b.py",
        "content a/b/__init__.py",
        "content src/a/b.py",
        "runner pyproject.toml project.scripts.x: a.b:main",
    ];
    for command in [&["uv", "run", "x"][..], &["uv", "run", "--offline", "x", "y.db"]] {
        assert_eq!(decided(command, &MODULES), expected.join("\n"), "{command:?}");
    }
    let local = MODULES.map(|(name, text)| (format!("d/{name}"), text));
    let local: Vec<(&str, &str)> = local.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    insta::assert_snapshot!(decided(&["uvx", "--from", "./d", "x"], &local), @"
    content d/a/b.py
    content d/a/b/__init__.py
    content d/c.py
    content d/src/a/b.py
    runner d/pyproject.toml project.scripts.x: a.b:main
    runner d/pyproject.toml project.scripts.y: c:main
    ");
}

#[test]
fn an_entry_with_the_name_of_an_argument_decides_and_so_do_those_before_and_after_it() {
    let scripts = r#"{ "scripts": { "x": "a", "prex": "b", "postx": "c", "other": "d", "preother": "sh e.txt" } }"#;
    insta::assert_snapshot!(decided(&["npx", "x"], &[("package.json", scripts), ("e.txt", "")]), @"
    runner package.json scripts.postx: c
    runner package.json scripts.prex: b
    runner package.json scripts.x: a
    ");
}

#[test]
fn a_script_that_runs_itself_is_read_once() {
    let scripts = r#"{ "scripts": { "x": "npm run x && node inner" } }"#;
    insta::assert_snapshot!(decided(&["npm", "run", "x"], &[("package.json", scripts), ("inner.js", "")]), @"
    content inner.js
    runner package.json scripts.x: npm run x && node inner
    ");
}

#[test]
fn the_scripts_of_a_package_have_no_other_runners_than_those_of_packages() {
    let files = [("package.json", r#"{ "scripts": { "y": "cd sub && tool" } }"#), ("sub/Makefile", "x:")];
    insta::assert_snapshot!(
        decided(&["sh", "-c", "make x; npm run y"], &files),
        @"runner package.json scripts.y: cd sub && tool"
    );
}

const PACKAGES: [(&str, &str); 4] = [
    ("package.json", r#"{ "workspaces": ["packages/*"], "scripts": { "x": "true" } }"#),
    ("packages/in/package.json", r#"{ "name": "p", "bin": { "x": "cli.js" }, "scripts": { "x": "node main" } }"#),
    ("packages/in/cli.js", ""),
    ("packages/in/main.js", ""),
];

#[test]
fn scripts_of_other_packages_count_only_if_they_can_run() {
    insta::assert_snapshot!(decided(&["npm", "run", "x", "--workspaces"], &PACKAGES), @"
    content packages/in/cli.js
    content packages/in/main.js
    runner package.json scripts.x: true
    runner packages/in/package.json bin.x: cli.js
    runner packages/in/package.json scripts.x: node main
    ");
    assert_eq!(decided(&["npm", "run", "x"], &PACKAGES), "runner package.json scripts.x: true");
    let all = decided(&["pnpm", "-r", "run", "x"], &PACKAGES);
    assert!(all.contains("runner packages/in/package.json scripts.x: node main"), "{all}");
    let none = decided(&["pnpm", "dlx", "x", "-r"], &PACKAGES);
    assert!(!none.contains("packages/in"), "no script runs: {none}");
}

#[test]
fn programs_of_other_packages_count_only_if_they_can_run() {
    for command in [&["npm", "exec", "x", "-w", "p"][..], &["npx", "--workspaces", "x"], &["npx", "-w", "p", "x"]] {
        let decided = decided(command, &PACKAGES);
        assert!(decided.contains("content packages/in/cli.js\n"), "{command:?}: {decided}");
        assert!(decided.contains("runner packages/in/package.json bin.x: cli.js"), "{command:?}: {decided}");
    }
    // An argument of the package that runs.
    assert_eq!(decided(&["npx", "-y", "server", "-w", "p"], &PACKAGES), "");
    assert_eq!(decided(&["uvx", "--with", "p", "server"], &PACKAGES), "");
}

#[test]
fn a_workspace_with_too_many_folders_is_reported() {
    let (_keep, folder) = project();
    write(&folder, &[("package.json", "{}")]);
    (0..4_100).for_each(|number| fs::create_dir(folder.join(format!("f{number}"))).unwrap());
    let mut definition = definition(&folder);
    let args = vec!["run".into(), "x".into(), "--workspaces".into()];
    *stdio(&mut definition) = Stdio { command: "npm".into(), args, ..Stdio::default() };
    let lines = fingerprint(&definition, &Config::default()).lines;
    let text = "too many folders: scripts in them can change without asking you again";
    assert_eq!(lines.get("runner package.json workspaces").map(String::as_str), Some(text));
}

/// Templates of projects contain such commands. Each edit of a file that they name would ask about every server.
#[test]
fn only_entry_points_name_modules() {
    let settings = "[tool.hatch.envs.types.scripts]\ncheck = 'mypy {args:src/my_app tests}'\n\
                    [[tool.uv.index]]\nname = 'acme'\nurl = 'https://acme.test/simple'\n";
    let files = [("pyproject.toml", settings), ("src/my_app/__init__.py", ""), ("acme/__init__.py", "")];
    let decided = decided(&["uvx", "server"], &files);
    assert!(!decided.contains("content ") && decided.contains("acme.test"), "{decided}");
}
