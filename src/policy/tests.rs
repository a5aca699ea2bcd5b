use std::path::{Path, PathBuf};

use serde_json::json;

use super::*;
use crate::config::spec::{
    self, Case, Condition, Config, Definition, FilePolicy, Launch, LevelRule, Matcher, ServerSpec, Stdio, ToolRule,
};
use crate::model::{Annotations, Scope};

#[path = "tests/details.rs"]
mod details;

pub(super) fn definition(scope: Scope, file: &str, tools: &[(&str, LevelRule)]) -> Definition {
    let rule = |(pattern, level): &(&str, LevelRule)| ToolRule { pattern: (*pattern).into(), level: level.clone() };
    let launch = Launch::Stdio(Stdio { command: "fs-mcp".into(), ..Stdio::default() });
    let spec = ServerSpec { tools: tools.iter().map(rule).collect(), ..ServerSpec::new(launch) };
    Definition {
        scope,
        file: (scope != Scope::Session).then(|| Path::new(file).into()),
        folder: scope.needs_trust().then(|| Path::new("/home/you/shop").into()),
        line: 2,
        ..Definition::of_session(ServerName::new("fs").unwrap(), spec, json!({}))
    }
}

/// Parses `deny drop_*; allow read_*; default allow; readOnly allow-session; destructive deny; commands npx uvx`.
fn policy(scope: Scope, file: &str, text: &str) -> FilePolicy {
    let mut policy = FilePolicy { file: Some(Path::new(file).into()), ..FilePolicy::new(scope) };
    for sentence in text.split(';') {
        let mut words = sentence.split_whitespace();
        let (Some(key), rest) = (words.next(), words.collect::<Vec<_>>()) else { continue };
        let matchers = || {
            let matcher = |tool: &&str| Matcher { server: "*".into(), tool: (*tool).into(), line: 6 };
            rest.iter().map(matcher).collect::<Vec<_>>()
        };
        match key {
            "deny" => policy.denylist = matchers(),
            "allow" => policy.allowlist = matchers(),
            "default" => {
                policy.default = Some(match rest[0] {
                    "allow" => spec::DefaultPolicy::Allow,
                    "deny" => spec::DefaultPolicy::Deny,
                    _ => spec::DefaultPolicy::Confirm,
                });
            }
            "readOnly" => policy.read_only = Level::parse(rest[0]),
            "destructive" => policy.destructive = Level::parse(rest[0]),
            "commands" => policy.commands = Some(rest.iter().map(|word| (*word).to_owned()).collect()),
            other => panic!("unknown word {other}"),
        }
    }
    policy
}

fn config(definition: Definition, policies: Vec<FilePolicy>) -> Config {
    let servers = [(definition.name.clone(), Arc::new(definition))].into();
    Config { servers, policies, ..Config::default() }
}

fn rules(config: &Config) -> Rules {
    Rules::new(config, &SessionLevels::default(), &[Path::new("/home/you/shop").into()])
}

/// `read_file+r` is annotated read-only, `+d` destructive, `+rd` both.
pub(super) fn tool(text: &str) -> Tool {
    let (name, hints) = text.split_once('+').unwrap_or((text, ""));
    let hint = |letter| hints.contains(letter).then_some(true);
    Tool {
        name: name.into(),
        subject: Default::default(),
        title: None,
        description: String::new(),
        input_schema: Arc::default(),
        output_schema: None,
        annotations: Annotations { read_only: hint('r'), destructive: hint('d'), ..Annotations::default() },
        raw: Arc::new(json!({})),
    }
}

fn explain(config: &Config, name: &str, trust_state: TrustState) -> String {
    let explanation = rules(config).explain(&ServerName::new("fs").unwrap(), &tool(name), None, trust_state);
    let short = rules(config).rule(&ServerName::new("fs").unwrap(), &tool(name), None, trust_state);
    assert_eq!(short, explanation.ruling, "the quick way and the explanation agree");
    let mut text = format!("{} by {}", explanation.ruling.level, explanation.ruling.source);
    for hidden in explanation.hides {
        let reason = hidden.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        text.push_str(&format!("\n  hides {} by {}{reason}", hidden.level, hidden.source));
    }
    text
}

const USER: &str = "/home/.config/mcp.json";
const PROJECT: &str = "/home/you/shop/mcp.json";
const LOCAL: &str = "/home/you/shop/mcp.local.json";

#[test]
fn the_first_rule_in_order_applies_and_the_others_are_explained() {
    let definition = definition(
        Scope::User,
        USER,
        &[("read_file", Level::AllowSession.into()), ("read_*", Level::Deny.into()), ("*", Level::AllowOnce.into())],
    );
    let all = config(
        definition,
        vec![
            policy(Scope::Managed, "/etc/mcp.json", "deny purge_*"),
            policy(Scope::Project, PROJECT, "deny drop_*; default deny"),
            policy(
                Scope::User,
                USER,
                "allow write_*; default allow; readOnly allow-session; destructive require-approval",
            ),
        ],
    );
    insta::assert_snapshot!(explain(&all, "purge_all", TrustState::Trusted), @"
    deny by managed mcp.json:7 policy.denylist */purge_*
      hides allow-once by user mcp.json:3 tools.*
      hides deny by mcp.json policy.default
      hides allow-always by user mcp.json policy.default (another file is stricter)
    ");
    insta::assert_snapshot!(explain(&all, "drop_table", TrustState::Trusted), @"
    deny by mcp.json:7 policy.denylist */drop_*
      hides allow-once by user mcp.json:3 tools.*
      hides deny by mcp.json policy.default
      hides allow-always by user mcp.json policy.default (another file is stricter)
    ");
    insta::assert_snapshot!(explain(&all, "read_file+r", TrustState::Trusted), @"
    allow-session by user mcp.json:3 tools.read_file
      hides deny by user mcp.json:3 tools.read_*
      hides allow-once by user mcp.json:3 tools.*
      hides allow-session by user mcp.json policy.readOnly
      hides deny by mcp.json policy.default
      hides allow-always by user mcp.json policy.default (another file is stricter)
    ");
    insta::assert_snapshot!(explain(&all, "read_dir", TrustState::Trusted).lines().next().unwrap(), @"deny by user mcp.json:3 tools.read_*");
    insta::assert_snapshot!(explain(&all, "write_file", TrustState::Trusted).lines().next().unwrap(), @"allow-once by user mcp.json:3 tools.*");
}

/// One row per rule, one column per scope and trust.
#[test]
fn a_project_restricts_at_once_and_allows_its_own_servers_only_once_trusted() {
    let says = [
        ("tools", "allow-always"),
        ("tools", "allow-once"),
        ("tools", "require-approval"),
        ("tools", "deny"),
        ("tools", "disable"),
        ("allow", "t"),
        ("deny", "t"),
        ("default", "allow"),
        ("default", "confirm"),
        ("default", "deny"),
        ("readOnly", "allow-session"),
        ("readOnly", "deny"),
        ("destructive", "allow-session"),
        ("destructive", "disable"),
    ];
    let mut table = format!(
        "{:27} {:17} {:17} {:17} {:17} {:17}\n",
        "said", "user", "project untrusted", "project trusted", "for another file", "local for project"
    );
    for (key, value) in says {
        let row = |definer: (Scope, &str), sayer: (Scope, &str), trust_state| {
            let tools: Vec<(&str, LevelRule)> =
                if key == "tools" { vec![("t", Level::parse(value).unwrap().into())] } else { vec![] };
            // A `tools` entry is always part of the definition itself.
            if key == "tools" && definer != sayer {
                return "-".to_owned();
            }
            let words = if key == "tools" { String::new() } else { format!("{key} {value}") };
            let config = config(definition(definer.0, definer.1, &tools), vec![policy(sayer.0, sayer.1, &words)]);
            let hints = match key {
                "readOnly" => "t+r",
                "destructive" => "t+d",
                _ => "t",
            };
            rules(&config).rule(&ServerName::new("fs").unwrap(), &tool(hints), None, trust_state).level.to_string()
        };
        let (user, project, local) = ((Scope::User, USER), (Scope::Project, PROJECT), (Scope::Local, LOCAL));
        table.push_str(&format!(
            "{:27} {:17} {:17} {:17} {:17} {:17}\n",
            format!("{key} {value}"),
            row(user, user, TrustState::Trusted),
            row(project, project, TrustState::Untrusted),
            row(project, project, TrustState::Trusted),
            row(user, project, TrustState::Trusted),
            row(project, local, TrustState::Trusted),
        ));
    }
    let table = table.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(table, @"
    said                        user              project untrusted project trusted   for another file  local for project
    tools allow-always          allow-always      require-approval  allow-always      -                 -
    tools allow-once            allow-once        require-approval  allow-once        -                 -
    tools require-approval      require-approval  require-approval  require-approval  -                 -
    tools deny                  deny              deny              deny              -                 -
    tools disable               disable           disable           disable           -                 -
    allow t                     allow-always      require-approval  allow-always      require-approval  require-approval
    deny t                      deny              deny              deny              deny              deny
    default allow               allow-always      require-approval  allow-always      require-approval  require-approval
    default confirm             require-approval  require-approval  require-approval  require-approval  require-approval
    default deny                deny              deny              deny              deny              deny
    readOnly allow-session      allow-session     require-approval  allow-session     require-approval  require-approval
    readOnly deny               deny              deny              deny              deny              deny
    destructive allow-session   allow-session     require-approval  allow-session     require-approval  require-approval
    destructive disable         disable           disable           disable           disable           disable
    ");
}

#[test]
fn an_ignored_rule_is_explained_with_its_reason() {
    let own = config(
        definition(Scope::Project, PROJECT, &[("*", Level::AllowAlways.into())]),
        vec![policy(Scope::Project, PROJECT, "allow *; default allow")],
    );
    insta::assert_snapshot!(explain(&own, "t", TrustState::Untrusted), @"
    require-approval by built-in default
      hides allow-always by mcp.json:3 tools.* (a project file cannot allow tools before you trust the server)
      hides allow-always by mcp.json:7 policy.allowlist */* (a project file cannot allow tools before you trust the server)
      hides allow-always by mcp.json policy.default (a project file cannot allow tools before you trust the server)
    ");
    let other =
        config(definition(Scope::User, USER, &[]), vec![policy(Scope::Project, PROJECT, "readOnly allow-always")]);
    insta::assert_snapshot!(explain(&other, "t+r", TrustState::Trusted), @"
    require-approval by built-in default
      hides allow-always by mcp.json policy.readOnly (a project file cannot allow tools of a server that another file defines)
    ");
}

#[test]
fn of_two_annotations_the_stricter_one_applies() {
    let both = config(
        definition(Scope::User, USER, &[]),
        vec![policy(Scope::User, USER, "readOnly allow-session; destructive require-approval; default allow")],
    );
    assert_eq!(
        explain(&both, "t+rd", TrustState::Trusted).lines().next().unwrap(),
        "require-approval by user mcp.json policy.destructive"
    );
    assert_eq!(
        explain(&both, "t+r", TrustState::Trusted).lines().next().unwrap(),
        "allow-session by user mcp.json policy.readOnly"
    );
    assert_eq!(
        explain(&both, "t", TrustState::Trusted).lines().next().unwrap(),
        "allow-always by user mcp.json policy.default"
    );
}

#[test]
fn managed_levels_come_before_all_other_rules() {
    let managed = config(
        definition(Scope::Managed, "/etc/mcp.json", &[("t", Level::RequireApproval.into())]),
        vec![policy(Scope::User, USER, "allow *; default allow")],
    );
    let mut session = SessionLevels::default();
    let fs = ServerName::new("fs").unwrap();
    session.set(fs.clone(), managed.servers.get(&fs).map(|found| &**found), "*", Some(Level::AllowSession));
    let rules = Rules::new(&managed, &session, &[]);
    let ruling = rules.rule(&ServerName::new("fs").unwrap(), &tool("t"), None, TrustState::Trusted);
    assert_eq!((ruling.level, &*ruling.source), (Level::RequireApproval, "managed mcp.json:3 tools.t"));
}

#[test]
fn the_session_overrides_the_file_but_not_a_denylist() {
    let config = config(
        definition(Scope::User, USER, &[("read", Level::Deny.into()), ("drop", Level::Deny.into())]),
        vec![policy(Scope::User, USER, "deny drop")],
    );
    let fs = ServerName::new("fs").unwrap();
    let mut session = SessionLevels::default();
    let own = config.servers.get(&fs).map(|found| &**found);
    let level = |session: &SessionLevels, name: &str| {
        Rules::new(&config, session, &[]).rule(&fs, &tool(name), None, TrustState::Trusted).level
    };
    session.set(fs.clone(), own, "read", Some(Level::AllowSession));
    session.set(fs.clone(), own, "drop", Some(Level::AllowSession));
    assert_eq!((level(&session, "read"), level(&session, "drop")), (Level::AllowSession, Level::Deny));
    session.set(fs.clone(), own, "*", Some(Level::Disable));
    assert_eq!(level(&session, "read"), Level::Disable, "a glob set later speaks for the tools named before");
    session.set(fs.clone(), own, "*", None);
    assert_eq!(level(&session, "read"), Level::Deny, "without it the file's word counts again");
}

#[test]
fn programs_must_be_in_every_list() {
    let config = config(
        definition(Scope::User, USER, &[]),
        vec![
            policy(Scope::Project, PROJECT, "commands npx evil"),
            policy(Scope::User, USER, "commands npx uvx /usr/bin/docker"),
        ],
    );
    let rules = rules(&config);
    let says = |written: &str, resolved: &str| match rules.may_start(written, true, Some(Path::new(resolved))) {
        Ok(()) => "yes".to_owned(),
        Err(source) => format!("not in {source}"),
    };
    insta::assert_snapshot!([says("npx", "/usr/bin/npx"), says("uvx", "/bin/uvx"), says("evil", "/bin/evil"), says("./npx", "/home/you/shop/npx")].join("\n"), @"
    yes
    not in mcp.json policy.commands
    not in user mcp.json policy.commands
    not in mcp.json policy.commands
    ");
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(path.join("src/deep")).unwrap();
    std::fs::create_dir_all(path.join("secret")).unwrap();
    (dir, path)
}

fn level_for(folder: &Path, condition: Condition, level: Level, arguments: Value) -> Level {
    let rule =
        LevelRule { cases: vec![Case { when: vec![("path".into(), condition)], level }], rest: Level::RequireApproval };
    let mut definition = definition(Scope::Project, PROJECT, &[("t", rule)]);
    definition.folder = Some(folder.into());
    let config = config(definition, vec![]);
    Rules::new(&config, &SessionLevels::default(), &[folder.into()])
        .rule(&ServerName::new("fs").unwrap(), &tool("t"), arguments.as_object(), TrustState::Trusted)
        .level
}

#[cfg(unix)]
#[test]
fn inside_resolves_links_and_dots() {
    let (_keep, folder) = folder();
    std::os::unix::fs::symlink("/etc", folder.join("src/etc")).unwrap();
    std::os::unix::fs::symlink("/nowhere/at/all", folder.join("src/dangling")).unwrap();
    std::os::unix::fs::symlink("loop", folder.join("src/loop")).unwrap();
    std::os::unix::fs::symlink("../../secret", folder.join("src/deep/link")).unwrap();
    let paths = [
        "src/a.rs",
        "src/new/dir/file",
        "./src/deep/../a.rs",
        "src",
        "src/../secret/key",
        "src/etc/passwd",
        "src/dangling",
        "src/loop/x",
        "src/deep/link/../x",
        "srcx/a",
        "/etc/passwd",
        "~/x",
        "",
        "file:///etc/passwd",
        "a\0b",
    ];
    let mut table = String::new();
    for path in paths {
        let inside = || Condition::Inside("${workspaceFolder}/src".into());
        let widened = level_for(&folder, inside(), Level::AllowSession, json!({ "path": path }));
        let narrowed = level_for(&folder, inside(), Level::Deny, json!({ "path": path }));
        table.push_str(&format!("{:22} {:17} {narrowed}\n", format!("{path:?}"), widened.as_str()));
    }
    let absolute = folder.join("src/x").display().to_string();
    let inside = Condition::Inside("${workspaceFolder}/src".into());
    assert_eq!(level_for(&folder, inside, Level::AllowSession, json!({ "path": absolute })), Level::AllowSession);
    insta::assert_snapshot!(table, @r#"
    "src/a.rs"             allow-session     deny
    "src/new/dir/file"     allow-session     deny
    "./src/deep/../a.rs"   allow-session     deny
    "src"                  allow-session     deny
    "src/../secret/key"    require-approval  require-approval
    "src/etc/passwd"       require-approval  require-approval
    "src/dangling"         require-approval  require-approval
    "src/loop/x"           require-approval  deny
    "src/deep/link/../x"   require-approval  deny
    "srcx/a"               require-approval  require-approval
    "/etc/passwd"          require-approval  require-approval
    "~/x"                  require-approval  deny
    ""                     require-approval  deny
    "file:///etc/passwd"   require-approval  require-approval
    "a\0b"                 require-approval  deny
    "#);
}

#[test]
fn a_condition_that_cannot_be_evaluated_restricts_and_never_allows() {
    let (_keep, folder) = folder();
    let cases = [
        (Condition::Glob("src/**".into()), json!({ "path": "src/a/b" })),
        (Condition::Glob("src/*".into()), json!({ "path": "src/a/b" })),
        (Condition::Glob("src/**".into()), json!({ "path": "src/../../etc/passwd" })),
        (Condition::Glob("src/**".into()), json!({ "path": 7 })),
        (Condition::Glob("src/[".into()), json!({ "path": "src/[" })),
        (Condition::In(vec![json!(1), json!("a")]), json!({ "path": 1.0 })),
        (Condition::In(vec![json!(1), json!("a")]), json!({ "path": "1" })),
        (Condition::Matches("^SELECT ".into()), json!({ "path": "SELECT 1" })),
        (Condition::Matches("(".into()), json!({ "path": "(" })),
        (Condition::Max(10.0), json!({ "path": 10 })),
        (Condition::Max(10.0), json!({ "path": 11 })),
        (Condition::Max(10.0), json!({ "path": "5" })),
        (Condition::Inside("${env:HOME}".into()), json!({ "path": "/home/x" })),
        (Condition::Inside("src".into()), json!({ "path": null })),
        (Condition::Inside("src".into()), json!({})),
    ];
    let mut table = String::new();
    for (condition, arguments) in cases {
        let said = format!("{condition:?}");
        let allowed = level_for(&folder, condition.clone(), Level::AllowSession, arguments.clone());
        let denied = level_for(&folder, condition, Level::Deny, arguments.clone());
        table.push_str(&format!("{said:38} {:34} {:17} {denied}\n", arguments.to_string(), allowed.as_str()));
    }
    insta::assert_snapshot!(table, @r#"
    Glob("src/**")                         {"path":"src/a/b"}                 allow-session     deny
    Glob("src/*")                          {"path":"src/a/b"}                 require-approval  require-approval
    Glob("src/**")                         {"path":"src/../../etc/passwd"}    require-approval  require-approval
    Glob("src/**")                         {"path":7}                         require-approval  deny
    Glob("src/[")                          {"path":"src/["}                   require-approval  deny
    In([Number(1), String("a")])           {"path":1.0}                       allow-session     deny
    In([Number(1), String("a")])           {"path":"1"}                       require-approval  deny
    Matches("^SELECT ")                    {"path":"SELECT 1"}                require-approval  deny
    Matches("(")                           {"path":"("}                       require-approval  deny
    Max(10.0)                              {"path":10}                        allow-session     deny
    Max(10.0)                              {"path":11}                        require-approval  require-approval
    Max(10.0)                              {"path":"5"}                       require-approval  deny
    Inside("${env:HOME}")                  {"path":"/home/x"}                 require-approval  deny
    Inside("src")                          {"path":null}                      require-approval  deny
    Inside("src")                          {}                                 require-approval  deny
    "#);
}

#[test]
fn a_dotted_path_finds_nested_arguments_unless_it_is_ambiguous() {
    let rule = |path: &str| LevelRule {
        cases: vec![Case { when: vec![(path.into(), Condition::Glob("ok".into()))], level: Level::AllowAlways }],
        rest: Level::Deny,
    };
    let level = |path: &str, arguments: Value| {
        let config = config(definition(Scope::User, USER, &[("t", rule(path))]), vec![]);
        rules(&config)
            .rule(&ServerName::new("fs").unwrap(), &tool("t"), arguments.as_object(), TrustState::Trusted)
            .level
    };
    assert_eq!(level("a.b", json!({ "a": { "b": "ok" } })), Level::AllowAlways);
    assert_eq!(level("a.0.b", json!({ "a": [{ "b": "ok" }] })), Level::AllowAlways);
    assert_eq!(level("a.b", json!({ "a.b": "ok" })), Level::AllowAlways);
    assert_eq!(level("a.b", json!({ "a.b": "ok", "a": { "b": "evil" } })), Level::Deny);
    assert_eq!(level("a.b", json!({ "a": "ok" })), Level::Deny);
}

#[test]
fn untrusted_cases_are_ignored_and_the_strict_default_stays() {
    let rule = LevelRule {
        cases: vec![Case { when: vec![("q".into(), Condition::Max(1.0))], level: Level::AllowAlways }],
        rest: Level::Deny,
    };
    let config = config(definition(Scope::Project, PROJECT, &[("t", rule)]), vec![]);
    let arguments = json!({ "q": 1 });
    let level = |trust_state| {
        rules(&config).rule(&ServerName::new("fs").unwrap(), &tool("t"), arguments.as_object(), trust_state).level
    };
    assert_eq!((level(TrustState::Trusted), level(TrustState::Untrusted)), (Level::AllowAlways, Level::Deny));
}

mod passing {
    use super::*;
    use crate::model::{CallId, Decision, Requester, ToolCall, ToolId};

    fn call() -> ToolCall {
        ToolCall {
            id: CallId("1".into()),
            kind: Default::default(),
            tool: ToolId::new(ServerName::new("fs").unwrap(), "t"),
            arguments: Arc::default(),
            requester: Requester::default(),
            workflow: None,
            timeout: None,
            meta: Default::default(),
            unknown_fields: Default::default(),
        }
    }

    /// Every level with every consent.
    #[test]
    fn consent_overrides_only_require_approval() {
        let id = ToolId::new(ServerName::new("fs").unwrap(), "t");
        let asked = GrantQuery { tool: &id, project: Path::new("/home/you/shop"), fingerprint: None, pin: "p" };
        let pin = Pin { digest: "p".into(), text: String::new() };
        let mut grant = Grant::new(&asked, Decision::AllowAlways, pin).unwrap();
        grant.id = "g1".into();
        let consents = [
            Consent::None,
            Consent::Grant(&grant),
            Consent::Answer(Decision::AllowOnce, "user".into()),
            Consent::Edit(Decision::AllowOnce, "user".into()),
            Consent::Answer(Decision::Deny, "user".into()),
            Consent::Answer(Decision::Disable, "user".into()),
        ];
        let mut table = String::new();
        for level in Level::ALL {
            let ruling = Ruling { level, source: "mcp.json:3 tools.t".into() };
            table.push_str(&format!("{level}\n"));
            for consent in &consents {
                let name = match consent {
                    Consent::None => "nothing".to_owned(),
                    Consent::Grant(_) => "grant".to_owned(),
                    Consent::Answer(decision, _) => format!("answer {}", decision.as_str()),
                    Consent::Edit(decision, _) => format!("edit {}", decision.as_str()),
                };
                let outcome = match permit(call(), &ruling, consent.clone()) {
                    Ok(permitted) => format!("passes: {} by {}", permitted.decision(), permitted.decided_by()),
                    Err(Refusal::Ask(_)) => "asks".to_owned(),
                    Err(Refusal::Denied { error, decided_by, .. }) => format!("{error} [{decided_by}]"),
                };
                table.push_str(&format!("  {name:18} {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table, @"
        disable
          nothing            `mcp__fs__t` is disabled; raise its level to use it (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          grant              `mcp__fs__t` is disabled; raise its level to use it (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          answer allow-once  `mcp__fs__t` is disabled; raise its level to use it (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          edit allow-once    `mcp__fs__t` is disabled; raise its level to use it (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          answer deny        `mcp__fs__t` is disabled; raise its level to use it (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          answer disable     `mcp__fs__t` is disabled; raise its level to use it (mcp.json:3 tools.t) [mcp.json:3 tools.t]
        deny
          nothing            `mcp__fs__t` was denied: its level is `deny` (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          grant              `mcp__fs__t` was denied: its level is `deny` (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          answer allow-once  `mcp__fs__t` was denied: its level is `deny` (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          edit allow-once    `mcp__fs__t` was denied: its level is `deny` (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          answer deny        `mcp__fs__t` was denied: its level is `deny` (mcp.json:3 tools.t) [mcp.json:3 tools.t]
          answer disable     `mcp__fs__t` was denied: its level is `deny` (mcp.json:3 tools.t) [mcp.json:3 tools.t]
        require-approval
          nothing            asks
          grant              passes: allow-always by grant g1
          answer allow-once  passes: allow-once by user
          edit allow-once    passes: allow-once by user, who changed the arguments
          answer deny        `mcp__fs__t` was denied: you denied the call [user]
          answer disable     `mcp__fs__t` was denied: you disabled the tool [user]
        allow-once
          nothing            passes: allow-once by mcp.json:3 tools.t
          grant              passes: allow-once by mcp.json:3 tools.t
          answer allow-once  passes: allow-once by mcp.json:3 tools.t
          edit allow-once    passes: allow-once by user, who changed the arguments (also allowed by mcp.json:3 tools.t)
          answer deny        `mcp__fs__t` was denied: you denied the call [user]
          answer disable     `mcp__fs__t` was denied: you disabled the tool [user]
        allow-session
          nothing            passes: allow-session by mcp.json:3 tools.t
          grant              passes: allow-session by mcp.json:3 tools.t
          answer allow-once  passes: allow-session by mcp.json:3 tools.t
          edit allow-once    passes: allow-once by user, who changed the arguments (also allowed by mcp.json:3 tools.t)
          answer deny        `mcp__fs__t` was denied: you denied the call [user]
          answer disable     `mcp__fs__t` was denied: you disabled the tool [user]
        allow-project
          nothing            passes: allow-project by mcp.json:3 tools.t
          grant              passes: allow-project by mcp.json:3 tools.t
          answer allow-once  passes: allow-project by mcp.json:3 tools.t
          edit allow-once    passes: allow-once by user, who changed the arguments (also allowed by mcp.json:3 tools.t)
          answer deny        `mcp__fs__t` was denied: you denied the call [user]
          answer disable     `mcp__fs__t` was denied: you disabled the tool [user]
        allow-always
          nothing            passes: allow-always by mcp.json:3 tools.t
          grant              passes: allow-always by mcp.json:3 tools.t
          answer allow-once  passes: allow-always by mcp.json:3 tools.t
          edit allow-once    passes: allow-once by user, who changed the arguments (also allowed by mcp.json:3 tools.t)
          answer deny        `mcp__fs__t` was denied: you denied the call [user]
          answer disable     `mcp__fs__t` was denied: you disabled the tool [user]
        ");
    }

    #[test]
    fn allow_once_permits_one_call_per_session_and_then_asks() {
        let ruling = Ruling { level: Level::AllowOnce, source: "mcp.json:3 tools.t".into() };
        assert_eq!(ruling.clone().in_session(permit::OnceUsed::No).level, Level::AllowOnce);
        let later = ruling.in_session(permit::OnceUsed::Yes);
        assert_eq!(
            (later.level, &*later.source),
            (Level::RequireApproval, "mcp.json:3 tools.t (already used in this session)")
        );
    }
}

/// `resource:URI` and `prompt:NAME`; with `+l`, the server lists it.
fn subject(text: &str) -> Tool {
    let (name, listed) = text.split_once("+l").map_or((text, false), |(name, _)| (name, true));
    let subject = match name.starts_with(Subject::PROMPT) {
        true => Subject::Prompt { listed },
        false => Subject::Resource { listed, template: None },
    };
    Tool { subject, ..tool(name) }
}

/// The level of each subject, in one line.
fn levels(tools: &[(&str, Level)], policies: &str, subjects: &[Tool]) -> String {
    let tools: Vec<_> = tools.iter().map(|(pattern, level)| (*pattern, (*level).into())).collect();
    let all = config(definition(Scope::User, USER, &tools), vec![policy(Scope::User, USER, policies)]);
    let fs = ServerName::new("fs").unwrap();
    let level = |tool: &Tool| rules(&all).rule(&fs, tool, None, TrustState::Trusted).level.as_str();
    subjects.iter().map(level).collect::<Vec<_>>().join(" · ")
}

#[test]
fn a_rule_without_a_prefix_restricts_resources_and_prompts_and_allows_only_tools() {
    let subjects = [tool("read"), subject("resource:db://a+l"), subject("resource:db://b"), subject("prompt:greet+l")];
    let table = |tools: &[(&str, Level)], policies: &str| levels(tools, policies, &subjects);
    insta::assert_snapshot!([
        table(&[], ""),
        table(&[("*", Level::Deny)], ""),
        table(&[("*", Level::Disable)], ""),
        table(&[("*", Level::RequireApproval)], ""),
        table(&[("*", Level::AllowAlways)], ""),
        table(&[("read", Level::Deny), ("gr*", Level::Deny)], ""),
        table(&[], "deny *"),
        table(&[], "allow *"),
        table(&[], "default deny"),
        table(&[], "default allow"),
        table(&[("resource:*", Level::AllowSession)], "default deny"),
    ].join("\n"), @"
    require-approval · allow-always · require-approval · allow-always
    deny · deny · deny · deny
    disable · disable · disable · disable
    require-approval · require-approval · require-approval · require-approval
    allow-always · allow-always · require-approval · allow-always
    deny · allow-always · require-approval · allow-always
    deny · deny · deny · deny
    allow-always · allow-always · require-approval · allow-always
    deny · deny · deny · deny
    allow-always · allow-always · require-approval · allow-always
    deny · allow-session · allow-session · deny
    ");
}

#[test]
fn an_uncertain_match_restricts_and_never_raises() {
    let spelled = [
        subject("resource:db://secret/a"),
        subject("resource:db://public/../secret/a"),
        subject("resource:db://public/%2e%2e/secret/a+l"),
        subject("resource:DB://public/a"),
        subject("resource:db://public/a"),
    ];
    let rules = [("resource:db://public/*", Level::AllowSession), ("resource:db://secret/*", Level::Deny)];
    assert_eq!(levels(&rules, "", &spelled), "deny · deny · deny · require-approval · allow-session");
    let rules = [("resource:db://public/*", Level::RequireApproval), ("*", Level::Deny)];
    assert_eq!(levels(&rules, "", &spelled), "deny · deny · deny · deny · require-approval");
}

#[test]
fn a_tool_that_is_named_like_a_resource_is_not_allowed_by_its_rule() {
    let named = [tool("prompt:greet"), subject("prompt:greet"), tool("resource:db://a"), subject("resource:db://a")];
    let rules = |level| [("prompt:greet", level), ("resource:db://a", level)];
    assert_eq!(
        levels(&rules(Level::AllowAlways), "", &named),
        "require-approval · allow-always · require-approval · allow-always"
    );
    assert_eq!(levels(&rules(Level::Deny), "", &named), "deny · deny · deny · deny");
    let (fake, real) = (Pin::of(&tool("resource:db://a")), Pin::of(&subject("resource:db://a")));
    assert_ne!(fake.digest, real.digest, "a grant for one is not a grant for the other");
}

#[test]
fn an_answer_that_disables_a_resource_covers_its_other_spellings() {
    let all = config(definition(Scope::User, USER, &[]), Vec::new());
    let fs = ServerName::new("fs").unwrap();
    let mut session = SessionLevels::default();
    session.set_disabled([crate::model::ToolId::new(fs.clone(), "resource:db://a?b=[1]")]);
    let rules = Rules::new(&all, &session, &[]);
    let level = |uri: &str| rules.rule(&fs, &subject(uri), None, TrustState::Trusted).level;
    assert_eq!(level("resource:db://a?b=[1]"), Level::Disable);
    assert_eq!(level("resource:db://a?b=%5b1%5d+l"), Level::Disable);
    assert_eq!(level("resource:db://a?b=1"), Level::RequireApproval);
}

#[test]
fn a_session_level_for_all_tools_keeps_the_rules_about_resources() {
    let all = config(definition(Scope::User, USER, &[]), Vec::new());
    let fs = ServerName::new("fs").unwrap();
    let mut session = SessionLevels::default();
    let level = |session: &SessionLevels| {
        let rules = Rules::new(&all, session, &[]);
        rules.rule(&fs, &subject("resource:db://a+l"), None, TrustState::Trusted).level
    };
    session.set(fs.clone(), None, "resource:db://a", Some(Level::Deny));
    session.set(fs.clone(), None, "*", Some(Level::AllowSession));
    assert_eq!(level(&session), Level::Deny);
    session.set(fs.clone(), None, "resource:*", Some(Level::RequireApproval));
    assert_eq!(level(&session), Level::RequireApproval);
    session.set(fs.clone(), None, "*", Some(Level::Deny));
    assert_eq!(level(&session), Level::Deny);
}

/// The level of `fs`'s tools if another file restricts them.
fn restricted(own: &[(&str, LevelRule)], tools: &[(&str, LevelRule)], tool: &Tool) -> Explanation {
    let mut definition = definition(Scope::User, "/home/me/mcp.json", own);
    let rule = |(pattern, level): &(&str, LevelRule)| ToolRule { pattern: (*pattern).into(), level: level.clone() };
    definition.restrictions.push(spec::Restriction {
        scope: Scope::Project,
        file: Some(Path::new("/home/you/shop/mcp.json").into()),
        folder: Some(Path::new("/home/you/shop").into()),
        key_span: 0..0,
        line: 4,
        rule_lines: Default::default(),
        enabled: None,
        disables: false,
        tools: tools.iter().map(rule).collect(),
    });
    let name = definition.name.clone();
    let servers = [(name.clone(), Arc::new(definition))].into();
    let rules = Rules::new(&Config { servers, ..Config::default() }, &SessionLevels::default(), &[]);
    rules.explain(&name, tool, None, TrustState::Trusted)
}

#[test]
fn an_entry_of_another_file_only_restricts() {
    let deny = || LevelRule::from(Level::Deny);
    let post = tool("post_all");
    let level = |own: Level, restriction: Level| {
        restricted(&[("post_all", own.into())], &[("post_*", restriction.into())], &post).ruling
    };
    let ruling = level(Level::AllowAlways, Level::Deny);
    assert_eq!((ruling.level, &*ruling.source), (Level::Deny, "mcp.json:5 tools.post_*"));
    assert_eq!(level(Level::AllowAlways, Level::RequireApproval).level, Level::RequireApproval);
    let ruling = level(Level::Deny, Level::AllowAlways);
    assert_eq!((ruling.level, &*ruling.source), (Level::Deny, "user mcp.json:3 tools.post_all"));
    // Without a rule of the definition, the default applies.
    assert_eq!(restricted(&[], &[("*", Level::AllowAlways.into())], &post).ruling.level, Level::RequireApproval);
    // The first rule that matches in the entry counts, so it can have exceptions.
    let exception = [("*", deny()), ("post_all", Level::AllowAlways.into())];
    assert_eq!(restricted(&[], &exception, &post).ruling.level, Level::RequireApproval);
    let explained = restricted(&[("post_all", deny())], &[("*", Level::AllowAlways.into())], &post);
    assert_eq!(explained.hides.len(), 1);
    assert!(explained.hides[0].reason.unwrap().contains("can only restrict"), "{explained:?}");
}
