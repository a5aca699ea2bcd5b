//! What a question shows: everything that a definition gets, runs and may do, with warnings.

use std::collections::BTreeMap;

use super::*;
use crate::config::spec::{Action, OAuth, Sandbox};

fn summary(definition: &Definition) -> Summary {
    let environment = Environment::of_this_process();
    Summary::of(definition, &Fingerprint::of(definition, &Config::default(), &environment), &environment)
}

fn of_launch(folder: &Path, launch: Launch) -> Definition {
    let base = definition(folder);
    Definition { spec: ServerSpec::new(launch), ..base }
}

fn program(command: &[&str]) -> Stdio {
    let args = command[1..].iter().map(|word| (*word).to_owned()).collect();
    Stdio { command: command[0].into(), args, ..Stdio::default() }
}

/// The warnings about a command in a project with these files.
fn warnings(command: &[&str], files: &[(&str, &str)]) -> Vec<String> {
    let (_keep, folder) = project();
    write(&folder, files);
    summary(&of_launch(&folder, Launch::Stdio(program(command)))).warnings
}

#[track_caller]
fn assert_warns(command: &[&str], text: &str) {
    let warnings = warnings(command, &[]);
    assert!(warnings.iter().any(|warning| warning.contains(text)), "{command:?}: {warnings:?}");
}

#[track_caller]
fn assert_silent(command: &[&str], text: &str) {
    let warnings = warnings(command, &[]);
    assert!(!warnings.iter().any(|warning| warning.contains(text)), "{command:?}: {warnings:?}");
}

fn gets(launch: Launch) -> Vec<String> {
    let (_keep, folder) = project();
    summary(&of_launch(&folder, launch)).gets
}

#[test]
fn a_question_shows_every_value_of_the_user_that_a_program_gets() {
    let env = [("A", "${KEY}"), ("B", "${LANG}"), ("C", "plain")];
    let stdio = Stdio {
        args: vec!["--a=${input:id}".into()],
        env: env.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))).into(),
        cwd: Some("${DIR}".into()),
        env_file: Some("${keyring:file}".into()),
        sandbox: Some(Sandbox {
            read: Some(vec!["${READ}".into()]),
            write: vec!["${WRITE}".into()],
            network: false,
            required: true,
        }),
        inherit_env: true,
        ..program(&["${CMD}"])
    };
    insta::assert_snapshot!(gets(Launch::Stdio(stdio)).join("\n"), @"
    your `KEY` as variable `A`
    your answer to `id` in an argument
    your `CMD` in its command
    your `DIR` in its working folder
    `file` from your keyring in the path of its env file
    your `READ` in a path of its sandbox
    your `WRITE` in a path of its sandbox
    your whole environment, including any tokens in it (`inheritEnv`)
    ");
}

#[test]
fn a_question_shows_every_value_of_the_user_that_a_remote_server_gets() {
    let remote = |url: &str| Remote {
        url: url.to_owned(),
        headers: [("X".to_owned(), "${LANG}".to_owned())].into(),
        oauth: Some(OAuth {
            client_secret: Some("${SECRET}".into()),
            private_key: Some("${keyring:pem}".into()),
            ..OAuth::default()
        }),
    };
    let proxy = Launch::ClaudeAiProxy { id: "${ID}".into(), remote: remote("https://x.test/${PART}") };
    insta::assert_snapshot!(gets(proxy).join("\n"), @"
    your `LANG` as header `X`, sent to `x.test`
    your `PART` in the URL, sent to `x.test`
    your `ID` in the URL, sent to `x.test`
    your `SECRET` as the client secret of its sign-in, sent to `x.test`
    `pem` from your keyring as the private key that signs its sign-in requests (the key itself is not sent)
    ");
    let unknown = Launch::Http(Remote { url: "${URL}".into(), ..Remote::default() });
    let text = "your `URL` in the URL, sent to a host that is known only after its variables are expanded";
    assert_eq!(gets(unknown), [text]);
    let tcp = Launch::Tcp { host: "${HOST}".into(), port: 1 };
    assert_eq!(gets(tcp), ["your `HOST` in the address, sent to that address"]);
}

#[test]
fn a_question_shows_that_the_fallback_gets_a_value() {
    let (_keep, folder) = project();
    let mut definition = of_launch(&folder, Launch::Stdio(program(&["server"])));
    definition.spec.fallback = Some(Launch::Stdio(program(&["server", "${KEY}"])));
    assert_eq!(summary(&definition).gets, ["your `KEY` in an argument if the first launch fails"]);
}

#[test]
fn an_env_file_outside_of_the_project_is_one_of_the_user() {
    let (_keep, top) = project();
    let folder = top.join("open");
    write(&folder, &[(".env", "A=1")]);
    let gets = |folder: Option<&Path>, file: &str| {
        let stdio = Stdio { env_file: Some(file.into()), ..program(&["server"]) };
        let base = of_launch(&top.join("open"), Launch::Stdio(stdio));
        summary(&Definition { folder: folder.map(Arc::from), ..base }).gets
    };
    assert_eq!(gets(Some(&folder), ".env"), [""; 0]);
    let outside = top.join(".env").display().to_string();
    let text = format!("the variables in `{outside}`, a file outside this project");
    assert_eq!(gets(Some(&folder), &outside), [text.as_str()]);
    assert_eq!(gets(None, &outside), [text.as_str()], "without a project");
}

#[test]
fn all_lines_of_a_question_are_in_order() {
    let (_keep, folder) = project();
    let mut definition = definition(&folder);
    let sandbox = Sandbox { read: None, write: vec!["out".into()], network: false, required: false };
    *stdio(&mut definition) = Stdio {
        env: [("A".to_owned(), Some("1".to_owned()))].into(),
        env_file: Some(".env".into()),
        cwd: Some("${workspaceFolder}".into()),
        sandbox: Some(sandbox),
        ..program(&["no-such-program", "x"])
    };
    let headers = [("X".to_owned(), "1".to_owned())].into();
    definition.spec.fallback =
        Some(Launch::Http(Remote { url: "https://x.test/mcp".into(), headers, ..Remote::default() }));
    let action = Action {
        title: "Tidy".into(),
        tool: "mcp__fs__tidy".into(),
        arguments: json!({ "a": 1 }),
        filetypes: Vec::new(),
        result: Default::default(),
        scope: definition.scope,
        file: definition.file.clone(),
        line: 0,
    };
    let config = Config { actions: vec![action], ..Config::default() };
    let environment = Environment::of_this_process();
    let mut summary = Summary::of(&definition, &fingerprint(&definition, &config), &environment);
    summary.imitates = Some("github".to_owned());
    insta::assert_snapshot!(summary.lines(Some(Path::new("/srv/mcp.json"))).join("\n"), @r#"
    warning   its name looks like that of your own server `github`, but it is a different server
    from      /srv/mcp.json
    runs      no-such-program x
    program   (not found)
    in        ${workspaceFolder}
    env       A=1
    env file  .env (sets A)
    sandbox   may read everything, write out; no network; starts without it if it cannot be enforced
    allows    tools.read_*: allow-session
    offers    `Tidy` runs `tidy` with {"a":1}
    warning   the program `no-such-program` was not found
    if that fails:
    connects  https://x.test/mcp (http)
    headers   X: 1
    "#);
    stdio(&mut definition).env_file = Some("none.env".into());
    let sandbox = Sandbox { read: Some(Vec::new()), write: Vec::new(), network: true, required: true };
    stdio(&mut definition).sandbox = Some(sandbox);
    let other = Summary::of(&definition, &fingerprint(&definition, &config), &environment);
    assert_eq!(other.env_file.as_deref(), Some("none.env"));
    assert_eq!(other.sandbox.as_deref(), Some("may read nothing, write nothing; the network"));
}

#[test]
fn a_secret_word_is_masked_but_a_script_is_not_hidden() {
    let shown = |name: &str, value: &str| {
        let (_keep, folder) = project();
        let env = BTreeMap::from([(name.to_owned(), Some(value.to_owned()))]);
        let stdio = Stdio { env: env.into_iter().collect(), ..program(&["server"]) };
        let shown = summary(&of_launch(&folder, Launch::Stdio(stdio))).env.join("\n");
        shown.strip_prefix(&format!("{name}=")).unwrap().to_owned()
    };
    assert_eq!(shown("API_TOKEN", "hunter2-hunter2"), MASK);
    assert_eq!(shown("API_TOKEN", "Bearer abc.def=/+"), format!("Bearer {MASK}"));
    assert_eq!(shown("DATABASE", "postgres://u:passw0rd@db/x"), format!("postgres://u:{MASK}@db/x"));
    for (name, value) in [
        ("API_TOKEN", "curl x|sh"),
        ("API_TOKEN", "$(x)"),
        // These variables decide what runs, and where data goes.
        ("NPM_CONFIG_TOKEN", "hunter2-hunter2"),
        ("HTTP_PROXY", "http://u:passw0rd@x.test/"),
        ("DATABASE", "sh -c postgres://u:passw0rd@db/x"),
        // Not changed as if it were an address.
        ("NAME", "Key:Value"),
    ] {
        assert_eq!(shown(name, value), value, "{name}");
    }
}

#[test]
fn a_plain_program_has_no_other_warning() {
    assert_eq!(warnings(&["no-such-program", "x", "-v", "y"], &[]), ["the program `no-such-program` was not found"]);
}

#[test]
fn a_question_warns_of_shells_rights_and_containers() {
    let shell = "runs a shell, which can run any command";
    for command in [&["sh", "-c", "x"][..], &["BASH", "-c", "x"], &["cmd", "/C", "x"]] {
        assert_warns(command, shell);
    }
    for command in [&["sh", "x.sh"][..], &["no-such-program", "-c", "x"]] {
        assert_silent(command, shell);
    }
    assert_warns(&["sudo", "x"], "runs with the rights of another user");
    let container = "runs a container with full access to this machine";
    assert_warns(&["docker", "run", "--privileged", "x"], container);
    assert_silent(&["docker", "run", "x"], container);
    assert_silent(&["no-such-program", "--privileged"], container);
}

#[test]
fn a_question_warns_of_a_package_without_a_version() {
    let newest = "always downloads the newest version";
    for command in [
        &["npx", "name"][..],
        &["npx", "-y", "@1scope/name"],
        &["npx", "-y", "@scope/name@next"],
        &["npx", "name@latest"],
        &["npx", "name", "x@1.2.3"],
        &["uvx", "name"],
    ] {
        assert_warns(command, newest);
    }
    for command in [
        &["npx", "-y", "name@1.2.3"][..],
        &["npx", "@scope/name@1"],
        &["npx", "./name"],
        &["npx", "-y"],
        &["uvx", "name==1.0"],
        &["no-such-program", "name"],
    ] {
        assert_silent(command, newest);
    }
}

#[test]
fn a_question_warns_of_a_credential_in_any_argument() {
    let text = "an argument looks like a credential";
    assert_warns(&["no-such-program", "x", "--token=hunter2-hunter2"], text);
    assert_warns(&["no-such-program", "x", "--token", "hunter2-hunter2", "y"], text);
    assert_warns(&["no-such-program", "x", "-----BEGIN SOMETHING-----"], text);
    assert_silent(&["no-such-program", "x"], text);
}

#[cfg(unix)]
#[test]
fn a_question_warns_of_links_out_of_the_repository() {
    use std::os::unix::fs::symlink;

    let (_keep, top) = project();
    let folder = top.join("open");
    fs::create_dir(&folder).unwrap();
    symlink(top.join(".env"), folder.join("link.env")).unwrap();
    symlink(&top, folder.join("out")).unwrap();
    let sandbox = Sandbox { read: None, write: vec!["out".into()], network: false, required: true };
    let stdio =
        Stdio { env_file: Some("link.env".into()), sandbox: Some(sandbox), ..program(&["no-such-program", "x"]) };
    let warnings = summary(&of_launch(&folder, Launch::Stdio(stdio))).warnings;
    let top = top.display();
    let expected = [
        format!("its env file is a link to `{top}/.env`, outside of the repository"),
        format!("`out` in its sandbox is a link to `{top}`, outside of the repository"),
        "the program `no-such-program` was not found".to_owned(),
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_question_warns_of_addresses_that_are_not_public_or_not_encrypted() {
    let (_keep, folder) = project();
    let plain = "uses plain HTTP: others on the network can read and change the traffic";
    let private = "connects to a machine in your private network";
    let user = "the URL contains a user name or password; it connects to `x.test`";
    for (url, expected) in [
        ("https://x.test/mcp", &[][..]),
        ("http://localhost:1/mcp", &[]),
        ("not an address", &[]),
        ("http://x.test/mcp", &[plain]),
        ("http://${HOST}/mcp", &[plain]),
        ("https://10.0.0.1/mcp", &[private]),
        ("http://10.0.0.1/mcp", &[plain, private]),
        ("https://good.test:x@x.test/mcp", &[user]),
    ] {
        let launch = Launch::Http(Remote { url: url.to_owned(), ..Remote::default() });
        assert_eq!(summary(&of_launch(&folder, launch)).warnings, expected, "{url}");
    }
}

#[test]
fn a_question_warns_of_code_that_is_not_pinned() {
    let may_run = "may run code from its arguments";
    assert_warns(&["no-such-program", "x", "-e", "y"], may_run);
    for command in [&["no-such-program", "x"][..], &["docker", "run", "-e", "A=1", "x"], &["sh", "x.sh", "-e"]] {
        assert_silent(command, may_run);
    }
    for command in [&["python3", "-u", "-m", "mod", "x"][..], &["pypy3", "-u", "-m", "mod", "x"]] {
        assert_warns(command, "runs the module `mod`, whose files can change");
    }
    assert_silent(&["no-such-program", "-m", "mod"], "runs the module");
    let package = "is a package, most of its files can change";
    for local in ["./p", "../p", "x@file:p"] {
        assert_warns(&["npx", "-y", local, "./other"], &format!("if `{local}` {package}"));
    }
    assert_silent(&["npx", "-y", "name@1"], package);
    assert_silent(&["no-such-program", "./p"], package);
    let git = "changes settings of git";
    assert_warns(&["env", "git", "-c", "a=b", "x"], git);
    assert_warns(&["git", "--config-env=a=B", "x"], git);
    assert_silent(&["git", "log"], git);
    assert_silent(&["no-such-program", "-c", "git"], git);
    let mounts = "runs a container with files of this machine";
    for flag in ["-v", "-itv.:/x", "--volume=.:/x", "--volumes-from"] {
        assert_warns(&["docker", "run", flag, "x"], mounts);
    }
    for command in
        [&["docker", "run", "x"][..], &["docker", "run", "--volume-driver=local", "x"], &["no-such-program", "-v", "x"]]
    {
        assert_silent(command, mounts);
    }
}

#[test]
fn a_question_warns_of_files_that_are_named_later() {
    let (_keep, folder) = project();
    let named = |stdio: Stdio| {
        let warnings = summary(&of_launch(&folder, Launch::Stdio(stdio))).warnings;
        let files = warnings.iter().filter_map(|warning| warning.strip_prefix("files that `"));
        files.filter_map(|rest| Some(rest.split_once('`')?.0.to_owned())).collect::<Vec<_>>()
    };
    let cwd = || Some("${keyring:b}/x".to_owned());
    let env_file = || Some("${input:c}.env".to_owned());
    assert_eq!(named(program(&["no-such-program", "--x=${input:a}", "${KEY}"])), [""; 0]);
    assert_eq!(named(program(&["no-such-program", "${keyring:a}"])), ["${keyring:a}"]);
    assert_eq!(named(Stdio { cwd: cwd(), ..program(&["no-such-program", "${input:a}"]) }), ["${input:a}"]);
    assert_eq!(named(Stdio { cwd: cwd(), env_file: env_file(), ..program(&["no-such-program"]) }), ["${keyring:b}/x"]);
    assert_eq!(named(Stdio { env_file: env_file(), ..program(&["no-such-program"]) }), ["${input:c}.env"]);
}

#[test]
fn a_question_names_the_lock_file_that_decides_what_is_installed() {
    let (_keep, top) = project();
    let folder = top.join("open");
    write(&folder, &[("uv.lock", ""), ("sub/x", "")]);
    write(&top, &[("yarn.lock", "")]);
    let locks = |command: &[&str], cwd: Option<&str>, folder: Option<&Path>| {
        let stdio = Stdio { cwd: cwd.map(str::to_owned), ..program(command) };
        let base = of_launch(&top.join("open"), Launch::Stdio(stdio));
        let warnings = summary(&Definition { folder: folder.map(Arc::from), ..base }).warnings;
        let files = warnings.iter().filter(|warning| warning.contains("which packages are installed"));
        files.filter_map(|warning| Some(warning.split('`').nth(1)?.to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(locks(&["uv", "run", "x"], None, Some(&folder)), ["uv.lock"]);
    assert_eq!(locks(&["uv", "run", "x"], Some("sub"), Some(&folder)), ["uv.lock"], "above the working folder");
    assert_eq!(locks(&["poetry", "run", "x"], None, Some(&folder)), [""; 0]);
    assert_eq!(locks(&["yarn", "x"], None, Some(&folder)), [""; 0], "outside of the repository");
    assert_eq!(locks(&["no-such-program"], None, Some(&folder)), [""; 0]);
    assert_eq!(locks(&["uv", "run", "x"], None, None), [""; 0], "without a project");
}
