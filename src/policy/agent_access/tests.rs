use super::*;

fn views(text: &str) -> AgentAccessTable {
    let (settings, problems) = Settings::from_toml(text);
    assert_eq!(problems, []);
    AgentAccessTable::new(&settings)
}

fn agent(name: &str) -> Requester {
    Requester { kind: RequesterKind::Agent, name: name.to_owned() }
}

#[test]
fn plain_names_come_before_patterns_and_the_star_last() {
    let views = views("[agents.'*']\n[agents.'cursor*']\n[agents.'cursor-v*']\n[agents.cursor-vscode]");
    let of = |name: &str| views.of(&agent(name)).agent.clone();
    assert_eq!(of("cursor-vscode"), "cursor-vscode");
    assert_eq!(of("cursor-vim"), "cursor-v*");
    assert_eq!(of("cursor"), "cursor*");
    assert_eq!(of("other"), "*");
    assert_eq!(views.of(&Requester::default()).agent, "", "the user is not an agent");
}

#[test]
fn a_view_shows_what_matches_and_hides_exclusions() {
    let views = views(
        "[agents.a]\nservers = ['git*', '!gitlab']\n[agents.b]\ntools = ['!*__delete_*']\n[agents.c]\nservers = []",
    );
    let shows = |name: &str, tool: &str| views.of(&agent(name)).shows(&ToolId::parse(tool).unwrap());
    assert!(shows("a", "mcp__github__log"));
    assert!(!shows("a", "mcp__gitlab__log") && !shows("a", "mcp__fs__log"));
    assert!(shows("b", "mcp__fs__read") && !shows("b", "mcp__fs__delete_all"));
    assert!(!shows("c", "mcp__fs__read"));
    assert!(shows("d", "mcp__fs__read"));
}

#[test]
fn a_set_limits_a_view_further_and_an_unknown_set_shows_nothing() {
    let views = views("[agents.a]\ntools = ['!*__delete_*']\n[sets.review]\ntools = ['git__*', '!git__push']");
    let view = views.of(&agent("a"));
    let shows = |set: &str, tool: &str| {
        views.with_set(view, &Arc::from(set)).shows(&ToolId::parse(&format!("mcp__{tool}")).unwrap())
    };
    assert!(shows("review", "git__log"));
    for hidden in ["git__push", "git__delete_all", "fs__read"] {
        assert!(!shows("review", hidden), "{hidden}");
    }
    assert!(!shows("nope", "git__log"));
    assert!(view.shows(&ToolId::parse("mcp__fs__read").unwrap()));
    let other = Arc::new(AgentAccess::default());
    assert!(!views.with_set(view, &Arc::from("review")).is_of_same_settings(&other));
    assert!(views.with_set(view, &Arc::from("review")).is_of_same_settings(view));
}

#[test]
fn a_ceiling_lowers_and_never_raises() {
    let views = views("[agents.a]\nceiling = 'require-approval'");
    let view = views.of(&agent("a"));
    let ruling = |level| Ruling { level, source: "mcp.json:3 tools.x".into() };
    let lowered = view.narrow(ruling(Level::AllowAlways));
    assert_eq!(lowered.level, Level::RequireApproval);
    assert_eq!(&*lowered.source, "config.toml agents.a.ceiling (mcp.json:3 tools.x says allow-always)");
    assert_eq!(view.narrow(ruling(Level::Deny)), ruling(Level::Deny));
    assert!(!view.accepts(Level::AllowSession), "an earlier grant would permit it without asking");
    let offered: Vec<_> = Decision::ALL.into_iter().filter(|decision| view.offers(*decision)).collect();
    assert_eq!(offered, [Decision::AllowOnce, Decision::Deny, Decision::Disable]);
}

fn id(tool: &str) -> ToolId {
    ToolId::parse(tool).unwrap()
}

fn subject(name: &str) -> Tool {
    let subject = match name.starts_with(Subject::PROMPT) {
        true => Subject::Prompt { listed: true },
        false => Subject::Resource { listed: true, template: None },
    };
    Tool { subject, ..crate::policy::tests::tool(name) }
}

#[test]
fn a_ceiling_accepts_what_is_not_above_it_and_none_accepts_everything() {
    let views = views("[agents.a]\nceiling = 'allow-session'\n[agents.b]");
    let (a, b) = (views.of(&agent("a")), views.of(&agent("b")));
    assert!(a.accepts(Level::AllowSession) && !a.accepts(Level::AllowProject) && b.accepts(Level::AllowAlways));
    let ruling = Ruling { level: Level::AllowSession, source: "rule".into() };
    assert_eq!(a.narrow(ruling.clone()), ruling, "the ceiling is not named where it changes nothing");
    assert_eq!(AgentAccess::asking(a).ceiling, Some(Level::RequireApproval));
    assert_eq!(AgentAccess::asking(b).ceiling, Some(Level::RequireApproval));
    let strict = Arc::new(AgentAccess { ceiling: Some(Level::Deny), ..AgentAccess::default() });
    assert_eq!(AgentAccess::asking(&strict).ceiling, Some(Level::Deny));
}

#[test]
fn servers_that_the_agent_gets_elsewhere_are_hidden() {
    let views = views("[agents.a]");
    let view = views.of(&agent("a"));
    let without = AgentAccess::excluding(view, &["git".to_owned()]);
    assert!(without.shows(&id("mcp__fs__read")) && !without.shows(&id("mcp__git__log")));
    assert_eq!(without.without(), ["git"]);
    assert!(Arc::ptr_eq(&AgentAccess::excluding(view, &[]), view));
}

#[test]
fn a_view_knows_its_set() {
    let views = views("[sets.review]\ntools = ['git__*']");
    let with = |set: &str| views.with_set(views.of(&agent("a")), &Arc::from(set));
    assert_eq!((with("review").set(), with("nope").set()), (Some("review"), Some("nope")));
    assert!(with("review").has_known_set() && !with("nope").has_known_set());
    assert!(views.of(&agent("a")).has_known_set());
}

#[test]
fn resources_and_prompts_are_shown_and_hidden_like_tools() {
    let views = views(
        "[agents.a]\ntools = ['fs__resource:file:///public/*', 'fs__prompt:ask', '!fs__resource:file:///public/key*']\n\
         [agents.b]\ntools = ['!*__resource:file:///etc/*']\n[agents.c]\nservers = ['git']\n[agents.d]\ntools = ['*']\n\
         [agents.e]\ntools = ['fs__read']",
    );
    let fs = ServerName::new("fs").unwrap();
    let shows = |name: &str, text: &str| views.of(&agent(name)).shows_subject(&fs, &subject(text));
    assert!(shows("a", "resource:file:///public/x") && shows("a", "prompt:ask"));
    for hidden in
        ["resource:file:///public/key1", "resource:file:///etc/passwd", "prompt:other", "resource:FILE:///public/x"]
    {
        assert!(!shows("a", hidden), "{hidden}");
    }
    assert!(shows("b", "resource:file:///home/x") && shows("b", "prompt:x"));
    for hidden in ["resource:file:///etc/passwd", "resource:FILE:///etc/passwd"] {
        assert!(!shows("b", hidden), "{hidden}");
    }
    assert!(!shows("c", "prompt:x") && shows("d", "prompt:x") && shows("d", "resource:file:///x"));
    assert!(!shows("e", "prompt:x") && !shows("e", "resource:file:///x"));
    let other = ServerName::new("other").unwrap();
    assert!(!views.of(&agent("a")).shows_subject(&other, &subject("prompt:ask")), "the pattern names a server");
}

#[test]
fn what_is_hidden_names_the_key_that_hides_it() {
    let views = views("[agents.a]\nservers = ['fs']\ntools = ['fs__read', 'fs__prompt:ask']");
    let view = views.of(&agent("a"));
    let source = |tool: &str, subject: &Tool| view.hidden(&id(tool), subject).map(|ruling| ruling.source.to_string());
    let tool = crate::policy::tests::tool;
    assert_eq!(source("mcp__fs__read", &tool("read")), None);
    assert_eq!(source("mcp__fs__write", &tool("write")).as_deref(), Some("config.toml agents.a.tools"));
    assert_eq!(source("mcp__git__read", &tool("read")).as_deref(), Some("config.toml agents.a.servers"));
    assert_eq!(source("mcp__fs__x", &subject("prompt:ask")), None);
    assert_eq!(source("mcp__fs__x", &subject("prompt:no")).as_deref(), Some("config.toml agents.a.tools"));
    let shell = Tool { subject: Subject::Agent, ..tool("agent:Bash") };
    assert_eq!(source("mcp__fs__x", &shell), None, "a view is about what servers offer");
}
