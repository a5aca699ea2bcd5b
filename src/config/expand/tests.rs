use super::*;
use crate::config::spec::{Launch, Remote, Stdio};
use crate::text::mask;

fn values() -> Values {
    let environment =
        [("TOKEN", "expand-test-token"), ("EMPTY", ""), ("HOME", "/home/me"), ("PATH", "/bin"), ("OTHER", "x")];
    Values {
        environment: BTreeMap::from(environment.map(|(name, value)| (name.to_owned(), value.to_owned()))).into(),
        workspace_folder: Some("/home/me/app".into()),
        run_folder: Some("/home/me/app".into()),
        env_file_folder: Some("/home/me/app".into()),
        user_home: Some("/home/me".into()),
        inputs: [("key".to_owned(), Secret::new("typed-in-by-hand"))].into(),
        keyring: [("db".to_owned(), Secret::new("from-the-keyring"))].into(),
    }
}

fn line(written: &str) -> String {
    text(written, &values()).unwrap_or_else(|error| format!("error: {error}"))
}

#[test]
fn every_known_reference_is_replaced() {
    assert_eq!(line("a${TOKEN}b${env:TOKEN}c"), "aexpand-test-tokenbexpand-test-tokenc");
    assert_eq!(line("${workspaceFolder}/src ${workspaceFolderBasename}"), "/home/me/app/src app");
    assert_eq!(line("${userHome}${/}${pathSeparator} ${cwd}"), "/home/me// /home/me/app");
    assert_eq!(line("${input:key} ${keyring:db}"), "typed-in-by-hand from-the-keyring");
}

#[test]
fn a_default_is_used_if_the_variable_is_unset_or_empty() {
    assert_eq!(line("${NOPE:-d} ${env:NOPE:-e} ${EMPTY:-f} ${NOPE:-} ${TOKEN:-g}"), "d e f  expand-test-token");
    assert_eq!(line("${NOPE:-${ALSO:-${userHome}}}"), "/home/me");
    assert_eq!(line("[${EMPTY}]"), "[]");
}

#[test]
fn errors_contain_the_name_of_what_is_missing() {
    assert_eq!(
        line("${env:NOPE}"),
        "error: the variable `NOPE` is not set; set it in the environment of the editor, or write `${NOPE:-default}`"
    );
    assert_eq!(line("${input:other}"), "error: the input `other` has no value: it was not entered");
    assert_eq!(line("${keyring:other}"), "error: the keyring has no entry named `other`");
    assert!(line("${cmd: touch pwned}").starts_with("error: unknown expansion `${cmd: touch pwned}`"));
    assert!(line("${}").starts_with("error: unknown expansion `${}`"));
}

#[test]
fn only_braces_are_references() {
    assert_eq!(line("$TOKEN $(touch pwned) `id` ${TOKEN $"), "$TOKEN $(touch pwned) `id` ${TOKEN $");
}

#[test]
fn the_nesting_of_defaults_is_limited() {
    let deep = "${A:-".repeat(40) + &"}".repeat(40);
    assert_eq!(line(&deep), "error: defaults are nested deeper than 10 levels");
}

#[test]
fn a_program_gets_the_safe_variables_then_the_env_file_then_env() {
    let launch = Launch::Stdio(Stdio {
        command: "${userHome}/bin/x".into(),
        args: vec!["--token=${TOKEN}".into()],
        env: [("A".to_owned(), Some("own-literal".to_owned())), ("LANG".to_owned(), None)].into(),
        env_file: Some(".env".into()),
        cwd: Some("sub".into()),
        inherit_env: false,
        sandbox: None,
    });
    let mut values = values();
    let more = values.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
    let more: BTreeMap<String, String> = more.chain([("LANG".to_owned(), "C".to_owned())]).collect();
    values.environment = more.into();
    assert_eq!(env_file(&launch, &values).unwrap(), Some("/home/me/app/.env".into()));
    let Expanded::Stdio(program) = expand(&launch, &values, Some("A=file\nB='two # words'\n")).unwrap() else {
        panic!()
    };
    assert_eq!(
        (program.command.as_str(), program.cwd.as_deref()),
        ("/home/me/bin/x", Some(Path::new("/home/me/app/sub")))
    );
    assert_eq!(program.args[0].reveal(), "--token=expand-test-token");
    let child: Vec<_> = child_environment(&values.environment, &program)
        .into_iter()
        .map(|(name, value)| format!("{name}={}", value.reveal()))
        .collect();
    assert_eq!(child, ["A=own-literal", "B=two # words", "HOME=/home/me", "PATH=/bin"]);
    assert_eq!(mask("own-literal expand-test-token /home/me"), "••• ••• /home/me");
}

#[test]
fn inherit_env_passes_on_everything() {
    let launch = Launch::Stdio(Stdio { command: "x".into(), inherit_env: true, ..Stdio::default() });
    let Expanded::Stdio(program) = expand(&launch, &values(), None).unwrap() else { panic!() };
    assert!(child_environment(&values().environment, &program).contains_key("OTHER"));
}

#[test]
fn all_references_of_a_launch_are_found() {
    let launch = Launch::Http(Remote {
        url: "https://${HOST:-${FALLBACK}}/".into(),
        headers: [("A".to_owned(), "${input:key} ${input:key}".to_owned())].into(),
        oauth: None,
    });
    let variable = |name: &str, default: Option<&str>| Reference::Variable {
        name: name.to_owned(),
        default: default.map(str::to_owned),
    };
    assert_eq!(
        references(&launch),
        [variable("FALLBACK", None), variable("HOST", Some("${FALLBACK}")), Reference::Input("key".into())]
    );
}

#[test]
fn an_env_file_is_parsed_like_dotenv() {
    let text = "# comment\r\nexport A=1\r\nB = two # rest\nC=\"x\\ny\"\nD=\"a\nb\"\nE=a=b\nF=\n";
    let entries = parse_env_file(text).unwrap();
    let shown: Vec<_> = entries.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
    assert_eq!(shown.join(" "), r#"A="1" B="two" C="x\ny" D="a\nb" E="a=b" F="""#);
    assert_eq!(parse_env_file("A=1\nnonsense"), Err(ExpandError::EnvFile { line: 2 }));
    assert_eq!(parse_env_file("A=\"open"), Err(ExpandError::EnvFile { line: 1 }));
}

#[test]
fn an_id_stays_one_path_segment() {
    assert_eq!(path_segment("mcpsrv_01"), "mcpsrv_01");
    assert_eq!(path_segment("../x?y=1#z"), "%2E%2E%2Fx%3Fy%3D1%23z");
}

#[test]
fn a_literal_is_harmless_only_if_it_fits_its_name() {
    for (name, value) in
        [("LC_ALL", "en_US.UTF-8"), ("LANG", "C"), ("XDG_DATA_HOME", "/home/me/data"), ("PATH", "/bin")]
    {
        assert!(harmless_literal(name, value), "{name}={value}");
    }
    for (name, value) in [
        ("LC_KEY", "s3cr3t-value"),
        ("XDG_TOKEN", "s3cr3t-value"),
        ("TERM", "s3cr3t-value"),
        ("HOME", "https://me:pw@host"),
        ("PIN", "123456"),
        ("CODE", "1234567890"),
        ("PATH", "/x/ghp_0123456789abcdefghij"),
    ] {
        assert!(!harmless_literal(name, value), "{name}={value}");
    }
    assert!(harmless("TERM", "xterm-256color") && !harmless("PIN", "123456") && harmless("PORT", "8080"));
}

#[test]
fn passwords_in_arguments_and_urls_are_masked() {
    let args =
        ["--db=postgres://me:expand-password@host/db", "redis://:per%2Dcent-pass@host", "--token", "flag-token-1"];
    let stdio = Stdio { command: "x".into(), args: args.map(str::to_owned).to_vec(), ..Stdio::default() };
    expand(&Launch::Stdio(stdio), &Values::default(), None).unwrap();
    for text in ["expand-password", "per-cent-pass", "per%2Dcent-pass", "flag-token-1"] {
        assert_eq!(mask(text), "•••");
    }
}
