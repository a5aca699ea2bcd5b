//! Details of trust that the other tests do not distinguish.

use std::collections::BTreeMap;

use super::*;
use crate::config::spec::{Grant, OAuth, Sandbox};

#[test]
fn a_decision_is_about_the_folder_of_the_file_if_no_folder_is_known() {
    let (_keep, folder) = project();
    let own = Definition { folder: None, ..definition(&folder) };
    assert_eq!(TrustKey::of(&own).unwrap().project, folder);
    let user = Definition { scope: Scope::User, ..own };
    assert_eq!(TrustKey::of(&user), None);
}

#[test]
fn a_question_about_a_folder_is_not_one_about_a_server() {
    let (_keep, folder) = project();
    let key = TrustKey::of_folder(&folder).unwrap();
    assert_eq!((&*key.project, key.server.as_str()), (&*folder, "-"));
    let environment = Environment::of_this_process();
    let of_folder = Arc::new(Fingerprint::of_folder(&folder));
    let of_server = Arc::new(fingerprint(&definition(&folder), &Config::default()));
    let ask = |key: &TrustKey, fingerprint: &Arc<Fingerprint>| {
        Question::about_folder(key.clone(), fingerprint.clone(), &definition(&folder), &environment)
    };
    let question = ask(&key, &of_folder);
    assert!(question.is_about_folder() && !question.same_launch && !question.was_denied);
    assert!(question.difference.is_none());
    assert!(!ask(&TrustKey::of(&definition(&folder)).unwrap(), &of_folder).is_about_folder());
    assert!(!ask(&key, &of_server).is_about_folder());
    assert!(!question.is_about_own_launch() && !of_server.is_of_own_launch());
}

#[test]
fn the_tag_of_a_masked_value_is_not_shown_and_all_else_is() {
    assert_eq!(shown(&format!("a{MASK}#12afb")), format!("a{MASK}b"));
    for other in ["#12zzb", "#zzzz", "12afb", "#12a"] {
        assert_eq!(shown(&format!("a{MASK}{other}")), format!("a{MASK}{other}"));
    }
}

/// Folders `one` and `two` with a program `tool` each.
#[cfg(unix)]
fn programs() -> (tempfile::TempDir, [String; 2]) {
    use std::os::unix::fs::PermissionsExt;
    let (keep, folder) = project();
    let folders = ["one", "two"].map(|name| {
        let program = folder.join(name).join("tool");
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        folder.join(name).to_str().unwrap().to_owned()
    });
    (keep, folders)
}

#[cfg(unix)]
fn with_path(command: &str, path: Option<&str>) -> Stdio {
    let env = path.map(|path| ("PATH".to_owned(), Some(path.to_owned())));
    Stdio { command: command.to_owned(), env: env.into_iter().collect(), ..Stdio::default() }
}

#[cfg(unix)]
#[test]
fn a_bare_command_is_that_of_the_user_only_if_both_paths_find_it() {
    let (_keep, [one, two]) = programs();
    let environment = Environment::from(BTreeMap::from([("PATH".to_owned(), one.clone())]));
    let values = Values::in_folder(None, &environment);
    let is_users = |path: Option<&str>| is_on_user_path(&with_path("tool", path), &values);
    assert!(is_users(None) && is_users(Some(&one)));
    assert!(!is_users(Some(&two)) && !is_users(Some(&format!("{two}:{one}"))));
    assert!(!is_users(Some(&format!("{one}:relative"))), "a relative entry depends on the working directory");
    assert!(!is_users(Some("${input:path}")), "it is not known yet");
    let removed =
        Stdio { env: BTreeMap::from([("PATH".to_owned(), None)]).into_iter().collect(), ..with_path("tool", None) };
    assert!(!is_on_user_path(&removed, &values));
    let environment = Environment::from(BTreeMap::new());
    assert!(!is_on_user_path(&with_path("tool", None), &Values::in_folder(None, &environment)), "the user has no PATH");
}

#[cfg(unix)]
#[test]
fn the_last_path_in_an_env_file_counts() {
    let (keep, [one, two]) = programs();
    let folder = keep.path().canonicalize().unwrap();
    fs::write(folder.join(".env"), format!("PATH={one}\nA=1\nPATH={two}\nB=2\n")).unwrap();
    let environment = Environment::from(BTreeMap::new());
    let stdio = Stdio { env_file: Some(".env".to_owned()), ..with_path("tool", None) };
    let found = program(&stdio, &Values::in_folder(Some(&folder), &environment));
    assert_eq!(found, Some(PathBuf::from(two).join("tool")));
}

#[cfg(unix)]
#[test]
fn a_command_with_a_folder_is_found_without_the_path() {
    let (_keep, [one, _]) = programs();
    let environment = Environment::from(BTreeMap::new());
    let values = Values::in_folder(None, &environment);
    let found = |command: &str| program(&with_path(command, Some("${input:path}")), &values);
    assert_eq!(found(&format!("{one}/tool")), Some(PathBuf::from(format!("{one}/tool"))));
    assert_eq!(found("tool"), None);
}

#[test]
fn what_is_watched_and_where_a_proxy_leads_ask_again() {
    let watch = |pattern: &str| Some(Dev { watch: vec![pattern.to_owned()] });
    assert_eq!(change(|d, _, _| d.spec.dev = watch("src/*")), "+ dev.watch: src/*");
    let proxy = |id: &str, url: &str| Launch::ClaudeAiProxy {
        id: id.to_owned(),
        remote: Remote { url: url.to_owned(), ..Remote::default() },
    };
    let digest = |launch: Launch| {
        let (_keep, folder) = project();
        let mut own = definition(&folder);
        own.spec.launch = launch;
        fingerprint(&Definition { scope: Scope::User, folder: None, ..own }, &Config::default()).digest
    };
    let known = digest(proxy("a", "https://x.test/"));
    assert_eq!(known, digest(proxy("a", "https://x.test/")));
    assert_ne!(known, digest(proxy("b", "https://x.test/")));
    assert_ne!(known, digest(proxy("a", "https://y.test/")));
}

/// A literal may be a secret, so only references are shown and stored.
#[test]
fn only_references_are_shown_of_a_value() {
    let shown = |value: &str| {
        let (_keep, folder) = project();
        let mut definition = definition(&folder);
        stdio(&mut definition).env = [("KEY".to_owned(), Some(value.to_owned()))].into_iter().collect();
        fingerprint(&definition, &Config::default()).lines["env.KEY"].clone()
    };
    for reference in ["${TOKEN}", "Bearer ${TOKEN}", "${A}${B}", "token ${A}"] {
        assert_eq!(shown(reference), reference);
    }
    for literal in
        ["plain", "${TOKEN:-hunter2}", "hunter2${TOKEN}", "${TOKEN}hunter2", "${TOKEN", "Bearer", "", "${A} hunter2"]
    {
        assert!(shown(literal).starts_with(MASK), "{literal}: {}", shown(literal));
    }
}

#[test]
fn the_shown_digest_covers_exceptions() {
    let (_keep, folder) = project();
    let (definition, mut config) = (definition(&folder), policy(&folder));
    let with = fingerprint(&definition, &config);
    config.policies[0].destructive = None;
    let without = fingerprint(&definition, &config);
    assert_eq!((&with.digest, without.shown_digest()), (&without.digest, without.digest.clone()));
    assert_ne!(with.shown_digest(), without.shown_digest());
    assert_eq!(with.program(), which::which("sh").ok().as_deref());
    let missing = Fingerprint { lines: [("program".to_owned(), "(not found)".to_owned())].into(), ..with };
    assert_eq!(missing.program(), None);
}

#[test]
fn an_action_of_the_same_file_for_this_server_asks_again() {
    let action = |config: &mut Config, folder: &Path, tool: &str, scope: Scope, file: &str| {
        config.actions.push(spec::Action {
            title: "Tidy".to_owned(),
            tool: tool.to_owned(),
            arguments: json!({ "b": 1, "a": 2 }),
            filetypes: Vec::new(),
            result: Default::default(),
            scope,
            file: Some(folder.join(file).into()),
            line: 0,
        });
    };
    let changed = |tool: &'static str, scope: Scope, file: &'static str| {
        change(|_, config, folder| action(config, folder, tool, scope, file))
    };
    let own = changed("mcp__fs__tidy", Scope::Project, "mcp.json");
    assert_eq!(own, r#"levels only: + actions.0: `Tidy` runs `tidy` with {"a":2,"b":1}"#);
    assert_eq!(changed("mcp__git__tidy", Scope::Project, "mcp.json"), "still trusted");
    assert_eq!(changed("mcp__fs__tidy", Scope::Local, "mcp.json"), "still trusted");
    assert_eq!(changed("mcp__fs__tidy", Scope::Project, "other.json"), "still trusted");
}

#[test]
fn the_argument_after_a_flag_that_names_a_secret_is_masked() {
    let shown = |args: &[&str]| {
        let (_keep, folder) = project();
        let mut definition = definition(&folder);
        stdio(&mut definition).args = args.iter().map(|arg| (*arg).to_owned()).collect();
        fingerprint(&definition, &Config::default()).lines["args.1"].clone()
    };
    for flag in ["--authority", "--AUTHORITY"] {
        assert!(shown(&[flag, "value"]).starts_with(MASK), "{flag}");
    }
    for other in ["--authority=x", "authority", "--verbose"] {
        assert_eq!(shown(&[other, "value"]), "value", "after {other}");
    }
}

#[test]
fn a_sandbox_and_a_level_that_only_restricts_are_classified() {
    let sandbox = Sandbox { read: None, write: vec!["out".to_owned()], network: false, required: true };
    assert_eq!(
        change(|d, _, _| stdio(d).sandbox = Some(sandbox)),
        "+ sandbox.network: false | + sandbox.read: everything | + sandbox.required: true | + sandbox.write: out"
    );
    let restricts = change(|d, _, _| {
        let case = Case { when: vec![("p".into(), Condition::Inside("src".into()))], level: Level::Deny };
        let level = LevelRule { cases: vec![case], rest: Level::RequireApproval };
        d.spec.tools.push(ToolRule { pattern: "write".into(), level });
    });
    assert_eq!(restricts, "still trusted");
}

#[test]
fn the_sign_in_of_a_remote_server_is_part_of_the_launch() {
    let lines = |url: &str, oauth: OAuth| {
        let (_keep, folder) = project();
        let mut definition = definition(&folder);
        definition.spec.launch = Launch::Http(Remote { url: url.to_owned(), oauth: Some(oauth), ..Remote::default() });
        fingerprint(&definition, &Config::default()).lines
    };
    let plain = lines("https://x.test/mcp", OAuth::default());
    assert_eq!((plain.get("oauth.grantType"), plain.get("oauth.privateKey")), (None, None));
    let own =
        OAuth { private_key: Some("${keyring:pem}".to_owned()), grant: Grant::ClientCredentials, ..OAuth::default() };
    let own = lines("https://x.test/mcp", own);
    assert_eq!((&*own["oauth.grantType"], &*own["oauth.privateKey"]), ("client_credentials", "${keyring:pem}"));
    // A token in a URL is masked, also in a format that only the prefix shows.
    for token in ["ghp_abcdefghij0123456789", "sk-abcdefghij.klmnopq"] {
        let shown = &lines(&format!("https://x.test/{token}"), OAuth::default())["url"];
        assert!(shown.contains(MASK) && !shown.contains("klm") && !shown.contains("789"), "{shown}");
    }
}

#[test]
fn only_a_definition_of_a_project_has_a_project() {
    let (_keep, folder) = project();
    let lines = |scope: Scope| fingerprint(&Definition { scope, ..definition(&folder) }, &Config::default()).lines;
    assert!(lines(Scope::Project).contains_key("project") && lines(Scope::Project).contains_key("content server.py"));
    assert!(!lines(Scope::User).contains_key("project") && !lines(Scope::User).contains_key("content server.py"));
}

/// Such variables make programs load code, whatever sets them.
#[test]
fn the_code_that_a_variable_names_is_pinned() {
    let contents = |name: &str, in_file: bool| {
        let (_keep, folder) = project();
        write(&folder, &[("hook.txt", "1")]);
        let value = "--require ./hook.txt".to_owned();
        let mut definition = definition(&folder);
        let own = match in_file {
            true => Stdio { env_file: Some(".env".into()), ..Stdio::default() },
            false => Stdio { env: [(name.to_owned(), Some(value.clone()))].into(), ..Stdio::default() },
        };
        fs::write(folder.join(".env"), format!("{name}=\"{value}\"\n")).unwrap();
        *stdio(&mut definition) = Stdio { command: "server".into(), ..own };
        fingerprint(&definition, &Config::default()).lines.contains_key("content hook.txt")
    };
    assert!(contents("NODE_OPTIONS", false) && contents("NODE_OPTIONS", true));
    assert!(!contents("NOTES", false) && !contents("NOTES", true));
}

#[test]
fn a_setting_whose_name_indicates_a_secret_is_masked_in_any_case() {
    assert_eq!(decided(&["npx", "x"], &[(".npmrc", "MY_AUTH=abc\n")]), "runner .npmrc MY_AUTH: •••");
}
