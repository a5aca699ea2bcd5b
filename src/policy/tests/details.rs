//! Details of rules and grants that the other tests do not distinguish.

use super::*;
use crate::model::{Decision, ToolId};

fn fs() -> ServerName {
    ServerName::new("fs").unwrap()
}

fn user(tools: &[(&str, Level)]) -> Definition {
    let tools: Vec<_> = tools.iter().map(|(pattern, level)| (*pattern, LevelRule::from(*level))).collect();
    definition(Scope::User, USER, &tools)
}

#[test]
fn of_two_rulings_with_the_same_level_the_first_stays() {
    let ruling = |source: &str| Ruling { level: Level::Deny, source: source.into() };
    assert_eq!(ruling("a").stricter(ruling("b")), ruling("a"));
}

#[test]
fn of_several_uncertain_rules_the_one_that_restricts_first_is_named() {
    let rules = [("resource:x", Level::Deny), ("resource:*", Level::Deny), ("*", Level::AllowAlways)];
    insta::assert_snapshot!(explain(&config(user(&rules), vec![]), "resource:x", TrustState::Trusted), @"
    deny by user mcp.json:3 tools.resource:*
      hides deny by user mcp.json:3 tools.resource:x (the match is uncertain, so it can only restrict)
      hides allow-always by user mcp.json:3 tools.*
    ");
    let same = [("resource:x", Level::Deny), ("*", Level::Deny)];
    insta::assert_snapshot!(explain(&config(user(&same), vec![]), "resource:x", TrustState::Trusted), @"
    deny by user mcp.json:3 tools.*
      hides deny by user mcp.json:3 tools.resource:x (the match is uncertain, so it can only restrict)
    ");
    let same = [("resource:x", Level::Deny.into()), ("*", Level::Deny.into())];
    assert_eq!(&*restricted(&[], &same, &tool("resource:x")).ruling.source, "mcp.json:5 tools.*");
}

#[test]
fn a_rule_that_is_written_twice_hides_itself_once() {
    let twice = config(user(&[]), vec![policy(Scope::User, USER, "deny drop_* drop_*")]);
    insta::assert_snapshot!(explain(&twice, "drop_all", TrustState::Trusted), @"
    deny by user mcp.json:7 policy.denylist */drop_*
      hides deny by user mcp.json:7 policy.denylist */drop_*
    ");
}

#[test]
fn a_restriction_with_the_same_level_is_hidden_without_a_reason() {
    let post = tool("post");
    let explained = restricted(&[("post", Level::Deny.into())], &[("post", Level::Deny.into())], &post);
    assert_eq!((explained.hides.len(), explained.hides[0].reason), (1, None));
    let explained = restricted(&[("post", Level::AllowAlways.into())], &[("post", Level::Deny.into())], &post);
    let hidden: Vec<_> = explained.hides.iter().map(|hidden| hidden.level).collect();
    assert_eq!(
        (explained.ruling.level, hidden),
        (Level::Deny, vec![Level::AllowAlways]),
        "the ruling hides not itself"
    );
}

/// A project that redefines a server of the user cannot free it of what the user denies.
#[test]
fn what_an_overridden_definition_of_the_user_denies_stays_denied() {
    let hidden = |scope: Scope, level: Level| spec::Hidden {
        scope,
        file: Some(Path::new(USER).into()),
        key_span: 0..0,
        line: 8,
        tools: vec![ToolRule { pattern: "drop".to_owned(), level: level.into() }],
    };
    let ruling = |hides: Vec<spec::Hidden>| {
        let allows = [("drop", Level::AllowAlways.into())];
        let definition = Definition { hides, ..definition(Scope::Project, PROJECT, &allows) };
        rules(&config(definition, vec![])).rule(&fs(), &tool("drop"), None, TrustState::Trusted)
    };
    let denied = ruling(vec![hidden(Scope::User, Level::Deny)]);
    assert_eq!((denied.level, &*denied.source), (Level::Deny, "user mcp.json:9 tools.drop"));
    assert_eq!(ruling(vec![hidden(Scope::User, Level::Disable)]).level, Level::Disable);
    assert_eq!(ruling(vec![hidden(Scope::User, Level::RequireApproval)]).level, Level::AllowAlways);
    assert_eq!(ruling(vec![hidden(Scope::Project, Level::Deny)]).level, Level::AllowAlways, "not of the user");
}

mod of_grants {
    use super::*;
    use crate::policy::grants::find;

    fn grant(decision: Decision) -> Grant {
        let id = ToolId::new(fs(), "write");
        let query = GrantQuery { tool: &id, project: Path::new("/one"), fingerprint: None, pin: "p" };
        Grant::new(&query, decision, Pin { digest: "p".into(), text: String::new() }).unwrap()
    }

    #[test]
    fn the_widest_grant_counts_in_any_order() {
        let id = ToolId::new(fs(), "write");
        let query = GrantQuery { tool: &id, project: Path::new("/one"), fingerprint: None, pin: "p" };
        let mut grants = [Decision::AllowAlways, Decision::AllowSession].map(|decision| Arc::new(grant(decision)));
        for _ in 0..2 {
            grants.reverse();
            let GrantMatch::Active(found) = find(&grants, &query) else { panic!() };
            assert_eq!(found.scope, GrantScope::Always);
        }
    }

    #[test]
    fn a_grant_has_its_own_id() {
        let ids = [grant(Decision::AllowAlways).id, grant(Decision::AllowAlways).id];
        assert!(ids[0] != ids[1] && ids[0].len() == 16, "{ids:?}");
    }

    #[test]
    fn a_grant_replaces_only_one_about_the_same() {
        let old = grant(Decision::AllowProject);
        assert!(grant(Decision::AllowProject).replaces(&old));
        let others = [
            Grant { server: ServerName::new("other").unwrap(), ..old.clone() },
            Grant { tool: "read".to_owned(), ..old.clone() },
            Grant { scope: GrantScope::Always, ..old.clone() },
            Grant { project: Some("/two".into()), ..old.clone() },
            Grant { fingerprint: Some("f".to_owned()), ..old.clone() },
        ];
        assert!(others.iter().all(|other| !other.replaces(&old)));
    }

    #[test]
    fn the_name_of_a_scope_can_be_read_again() {
        let scopes = [GrantScope::Session, GrantScope::Project, GrantScope::Always, GrantScope::Disable];
        assert_eq!(scopes.map(GrantScope::as_str), ["session", "project", "always", "disable"]);
        assert!(scopes.iter().all(|scope| GrantScope::parse(scope.as_str()) == Some(*scope)));
        assert_eq!(GrantScope::parse("allow"), None);
    }

    #[test]
    fn a_grant_raises_only_what_requires_approval() {
        let active = GrantMatch::Active(Arc::new(grant(Decision::AllowSession)));
        let suspended = GrantMatch::Suspended(Arc::new(grant(Decision::AllowSession)));
        for level in Level::ALL {
            let ruling = Ruling { level, source: "rule".into() };
            let raised = ruling.clone().raised_by(&active);
            match level {
                Level::RequireApproval => {
                    assert!(raised.level == Level::AllowSession && raised.source != ruling.source)
                }
                _ => assert_eq!(raised, ruling),
            }
            assert_eq!(ruling.clone().raised_by(&suspended), ruling);
        }
    }
}

#[test]
fn a_policy_of_a_project_allows_only_servers_of_its_own_file() {
    let level = |file: &str| {
        let policies = vec![policy(Scope::Project, file, "default allow")];
        let config = config(definition(Scope::Project, PROJECT, &[]), policies);
        rules(&config).rule(&fs(), &tool("t"), None, TrustState::Trusted).level
    };
    assert_eq!((level(PROJECT), level("/other/mcp.json")), (Level::AllowAlways, Level::RequireApproval));
}

#[test]
fn a_written_path_is_listed_as_written_and_a_bare_name_only_on_the_path() {
    let config = config(user(&[]), vec![policy(Scope::User, USER, "commands ./run npx")]);
    let may = |written: &str, on_path: bool| rules(&config).may_start(written, on_path, None).is_ok();
    assert!(may("./run", false) && may("npx", true));
    assert!(!may("npx", false) && !may("other", true));
}

#[test]
fn only_the_denylist_of_the_administrator_comes_before_managed_levels() {
    let level = |scope: Scope| {
        let managed = definition(Scope::Managed, "/etc/mcp.json", &[("t", Level::AllowAlways.into())]);
        let config = config(managed, vec![policy(scope, "/etc/mcp.json", "deny t")]);
        rules(&config).rule(&fs(), &tool("t"), None, TrustState::Trusted).level
    };
    assert_eq!((level(Scope::Managed), level(Scope::User)), (Level::Deny, Level::AllowAlways));
}

#[test]
fn the_longest_glob_applies_wherever_it_is_written() {
    let all = config(user(&[("*", Level::Deny), ("read_*", Level::AllowSession)]), vec![]);
    let level = |name: &str| rules(&all).rule(&fs(), &tool(name), None, TrustState::Trusted).level;
    assert_eq!((level("read_file"), level("write_file")), (Level::AllowSession, Level::Deny));
    // A rule about a resource is a pattern, and a rule about a tool is its name.
    let named = config(user(&[("a.b", Level::Deny), ("resource:x://A", Level::Deny)]), vec![]);
    let rule = |tool: &Tool| rules(&named).rule(&fs(), tool, None, TrustState::Trusted).level;
    assert_eq!(rule(&subject("resource:x://a+l")), Level::Deny);
    assert_eq!((rule(&tool("a.b")), rule(&tool("aXb"))), (Level::Deny, Level::RequireApproval));
}

fn of_cases(cases: &[(Condition, Level)], rest: Level, trust_state: TrustState) -> Level {
    let case = |(condition, level): &(Condition, Level)| Case {
        when: vec![("path".to_owned(), condition.clone())],
        level: *level,
    };
    let rule = LevelRule { cases: cases.iter().map(case).collect(), rest };
    let config = config(definition(Scope::Project, PROJECT, &[("t", rule)]), vec![]);
    rules(&config).rule(&fs(), &tool("t"), json!({ "path": "x" }).as_object(), trust_state).level
}

#[test]
fn the_first_case_that_applies_counts() {
    let x = || Condition::In(vec![json!("x")]);
    let (allow, deny) = ((x(), Level::AllowAlways), (x(), Level::Deny));
    let level = |cases: &[(Condition, Level)]| of_cases(cases, Level::RequireApproval, TrustState::Trusted);
    assert_eq!(level(&[allow.clone(), deny.clone()]), Level::AllowAlways);
    assert_eq!(level(&[deny, allow]), Level::Deny);
}

/// A case that perhaps applies is compared with what counts, not with what is ignored.
#[test]
fn a_case_of_an_untrusted_file_that_allows_does_not_open_the_way_for_a_vague_one() {
    let vague = (Condition::In(vec![json!("X")]), Level::RequireApproval);
    let allows = (Condition::In(vec![json!("x")]), Level::AllowAlways);
    let level = |state| of_cases(&[vague.clone(), allows.clone()], Level::Deny, state);
    assert_eq!((level(TrustState::Trusted), level(TrustState::Untrusted)), (Level::RequireApproval, Level::Deny));
}

#[test]
fn a_prompt_is_meant_by_its_name_or_a_glob() {
    let pattern = |pattern: &str, name: &str| RulePattern::new(pattern).matches(&subject(name));
    assert_eq!(pattern("prompt:a*", "prompt:ab"), Truth::Yes);
    assert_eq!(pattern("prompt:a[b]", "prompt:a[b]"), Truth::Yes);
    assert_eq!(pattern("prompt:a", "prompt:b"), Truth::No);
    assert_eq!(RulePattern::new("resource:y").matches(&tool("resource:x")), Truth::No);
    assert!(RulePattern::new("**").is_everything() && !RulePattern::new("a*").is_everything());
    assert!(!RulePattern::new("").is_everything());
}

#[test]
fn a_session_level_that_allows_is_only_for_the_definition_that_the_user_saw() {
    let mut session = SessionLevels::default();
    let own = user(&[]);
    session.set(fs(), Some(&own), "t", Some(Level::AllowSession));
    session.set(fs(), Some(&own), "u", Some(Level::Deny));
    let patterns = |definition: &Definition| -> Vec<String> {
        session.of(definition).into_iter().map(|rule| rule.pattern).collect()
    };
    assert_eq!(patterns(&own), ["t", "u"]);
    assert_eq!(patterns(&definition(Scope::Project, PROJECT, &[])), ["u"]);
}

#[test]
fn removing_a_session_level_keeps_those_about_resources() {
    let mut session = SessionLevels::default();
    let own = user(&[]);
    session.set(fs(), Some(&own), "resource:x", Some(Level::Deny));
    session.set(fs(), Some(&own), "*", None);
    assert_eq!(session.of(&own).len(), 1);
    session.set(fs(), Some(&own), "*", Some(Level::Deny));
    assert_eq!(session.of(&own).len(), 1, "a level that denies everything replaces it");
}

#[test]
fn a_disabled_tool_is_that_of_its_server() {
    let mut session = SessionLevels::default();
    session.set_disabled([ToolId::new(fs(), "t"), ToolId::new(ServerName::new("other").unwrap(), "u")]);
    assert_eq!(session.disabled_of(&fs()), ["t".to_owned()].into());
}

#[test]
fn a_pattern_is_a_glob_only_with_its_characters() {
    assert!(is_glob("a*") && is_glob("a?") && !is_glob("a.b"));
    assert!(NameGlob::check("a*").is_ok() && NameGlob::check("a[").is_err());
}
