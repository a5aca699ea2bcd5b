use serde_json::json;

use super::*;
use crate::config::{self, Content, Source};
use crate::settings::Settings;

fn rules(files: &[(Scope, Value)]) -> Rules {
    let sources: Vec<_> = files
        .iter()
        .zip(0..)
        .map(|((scope, text), number)| {
            let folder = scope.needs_trust().then(|| Arc::<Path>::from(Path::new("/home/you/shop")));
            let source = Source { path: Path::new(&format!("/{number}/mcp.json")).into(), scope: *scope, folder };
            (source, Content::Text(text.to_string().into()))
        })
        .collect();
    let loaded = config::load(&sources, &Default::default(), &Settings::default().limits);
    Rules::new(&loaded.config, &SessionLevels::default(), &[Path::new("/home/you/shop").into()])
}

fn level(rules: &Rules, agent: HookAgent, tool: &str, arguments: Value) -> Option<Level> {
    let arguments = arguments.as_object().unwrap().clone();
    rules.rule_action(&AgentAction::new(agent, tool, arguments, Path::new("/home/you/shop"))).map(|ruling| ruling.level)
}

fn bash(rules: &Rules, command: &str) -> Option<Level> {
    level(rules, HookAgent::ClaudeCode, "Bash", json!({ "command": command, "description": "x" }))
}

const GIT: &str = r#"{ "agentTools": { "claude-code": { "Bash": [
    { "when": { "command": { "matches": "rm( .*)?" } }, "level": "deny" },
    { "when": { "command": { "in": ["git status", "git diff"] } }, "level": "allow-session" },
    "require-approval"] } } }"#;

fn git() -> Rules {
    rules(&[(Scope::User, serde_json::from_str(GIT).unwrap())])
}

#[test]
fn a_rule_allows_exactly_the_command_and_denies_it_anywhere() {
    let rules = git();
    assert_eq!(bash(&rules, "git status"), Some(Level::AllowSession));
    assert_eq!(bash(&rules, "git  status"), Some(Level::RequireApproval));
    for more in ["git status; ls", "git status | sh", "git status > x", "git status $(ls)", "git status\nls", "git log"]
    {
        assert_eq!(bash(&rules, more), Some(Level::RequireApproval), "{more}");
    }
    for denied in ["rm x", "git status; rm x", "echo $(rm x)", "sudo rm x", "bash -c 'rm x'", "cat <<E\nrm x\nE"] {
        assert_eq!(bash(&rules, denied), Some(Level::Deny), "{denied}");
    }
    assert_eq!(level(&rules, HookAgent::ClaudeCode, "Read", json!({})), None, "no rule is about it");
    assert_eq!(level(&rules, HookAgent::Codex, "Bash", json!({ "command": "rm x" })), None, "it is another agent");
}

#[test]
fn a_level_without_a_condition_allows_only_plain_commands() {
    let rules = rules(&[(Scope::User, json!({ "agentTools": { "*": { "Bash": "allow-always" } } }))]);
    assert_eq!(bash(&rules, "make"), Some(Level::AllowAlways));
    assert_eq!(bash(&rules, "make | tee log"), Some(Level::RequireApproval));
    let unsafe_ = json!({ "command": "make", "dangerouslyDisableSandbox": true });
    assert_eq!(level(&rules, HookAgent::ClaudeCode, "Bash", unsafe_), Some(Level::RequireApproval));
    let network = json!({ "command": "make", "description": "network-access example.com" });
    assert_eq!(level(&rules, HookAgent::Codex, "Bash", network), Some(Level::RequireApproval));
    let list = json!({ "command": ["make", "; rm"] });
    assert_eq!(level(&rules, HookAgent::Codex, "Bash", list), Some(Level::RequireApproval));
    let twice = json!({ "command": "make", "cmd": "rm x" });
    assert_eq!(level(&rules, HookAgent::ClaudeCode, "Bash", twice), Some(Level::RequireApproval));
}

#[test]
fn a_project_can_only_restrict() {
    let allows = json!({ "agentTools": { "*": { "*": "allow-always" }, "claude-code": { "Bash": "allow-always" } } });
    let rules = rules(&[(Scope::Project, allows.clone()), (Scope::Local, allows)]);
    assert_eq!(bash(&rules, "git status"), None);
    let denies = json!({ "agentTools": { "claude-code": { "Bash": "deny" } } });
    let user: Value = serde_json::from_str(GIT).unwrap();
    let rules = self::rules(&[(Scope::Project, denies.clone()), (Scope::User, user)]);
    assert_eq!(bash(&rules, "git status"), Some(Level::Deny));
    assert_eq!(bash(&self::rules(&[(Scope::Project, denies)]), "ls"), Some(Level::Deny));
}

#[test]
fn rules_about_servers_deny_and_never_allow() {
    let server = json!({ "policy": { "default": "allow", "allowlist": [{ "server": "*", "tool": "*" }] },
        "servers": { "claude-code": { "command": "x", "tools": { "*": "allow-always", "agent:Bash": "allow-always" } } } });
    assert_eq!(bash(&rules(&[(Scope::User, server)]), "ls"), None);
    let denied = json!({ "policy": { "denylist": [{ "server": "claude-*", "tool": "Bash" }] },
        "agentTools": { "claude-code": { "Bash": "allow-always" } } });
    assert_eq!(bash(&rules(&[(Scope::User, denied)]), "ls"), Some(Level::Deny));
}

#[test]
fn the_rules_of_the_administrator_come_first_and_an_agent_before_all() {
    let managed = json!({ "agentTools": { "*": { "Bash": "deny" } } });
    let user = json!({ "agentTools": { "*": { "Bash": "deny", "Write": "deny" }, "claude-code": { "Bash": "allow-always" } } });
    assert_eq!(bash(&rules(&[(Scope::User, user.clone())]), "ls"), Some(Level::AllowAlways));
    let both = rules(&[(Scope::Managed, managed), (Scope::User, user)]);
    assert_eq!(bash(&both, "ls"), Some(Level::Deny));
    assert_eq!(
        level(&both, HookAgent::ClaudeCode, "Write", json!({ "file_path": "/home/you/shop/a" })),
        Some(Level::Deny)
    );
}

#[test]
fn a_file_is_inside_only_where_its_links_lead() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("work");
    std::fs::create_dir(&folder).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", folder.join("link")).unwrap();
    let inside = json!({ "agentTools": { "claude-code": { "Write": [
        { "when": { "file_path": { "inside": folder } }, "level": "allow-session" }, "require-approval"] } } });
    let rules = rules(&[(Scope::User, inside)]);
    let write = |file: &str| level(&rules, HookAgent::ClaudeCode, "Write", json!({ "file_path": file, "content": "" }));
    assert_eq!(write(&format!("{}/a.txt", folder.display())), Some(Level::AllowSession));
    for outside in ["a.txt", "../a.txt", "/etc/passwd"] {
        assert_eq!(write(outside), Some(Level::RequireApproval), "{outside}");
    }
    for outside in ["../elsewhere", "link/passwd"] {
        assert_eq!(write(&format!("{}/{outside}", folder.display())), Some(Level::RequireApproval), "{outside}");
    }
}

#[test]
fn a_lasting_answer_is_about_exactly_what_was_shown() {
    let target = |tool: &str, arguments: Value| {
        AgentAction::new(
            HookAgent::ClaudeCode,
            tool,
            arguments.as_object().unwrap().clone(),
            Path::new("/home/you/shop"),
        )
        .target()
    };
    assert_eq!(target("Bash", json!({ "command": "git push" })).as_deref(), Some("git push"));
    assert_eq!(target("Bash", json!({ "command": "git push; ls" })), None);
    assert_eq!(target("Bash", json!({ "command": "git push", "sandbox": false })), None);
    assert_eq!(target("Write", json!({ "file_path": "a" })).as_deref(), Some("/home/you/shop/a"));
    assert_eq!(target("Write", json!({ "file_path": "a\u{202e}b" })), None);
    assert_eq!(target("Other", json!({})), None);
    assert_eq!(target("Bash", json!({ "command": "x".repeat(MAX) })), None);
}

const MAX: usize = 1_000;

fn action(tool: &str, arguments: Value) -> AgentAction {
    AgentAction::new(HookAgent::ClaudeCode, tool, arguments.as_object().unwrap().clone(), Path::new("/work"))
}

/// `in` compares whole texts, so only the commands that are found in the text can match it.
#[test]
fn a_rule_about_one_command_denies_it_inside_of_others() {
    let denies = json!([{ "when": { "command": { "in": ["rm x"] } }, "level": "deny" }, "allow-always"]);
    let rules = rules(&[(Scope::User, json!({ "agentTools": { "*": { "Bash": denies } } }))]);
    for denied in ["rm x", "ls; rm x", "sudo rm x", "sh -c 'ls && rm x'"] {
        assert_eq!(bash(&rules, denied), Some(Level::Deny), "{denied}");
        let other_key = json!({ "cmd": denied });
        assert_eq!(level(&rules, HookAgent::Codex, "Bash", other_key), Some(Level::Deny), "{denied} as `cmd`");
    }
    assert_eq!(bash(&rules, "rm y"), Some(Level::AllowAlways));
}

#[test]
fn the_denylist_of_the_administrator_comes_before_what_they_allow() {
    let allows = json!({ "agentTools": { "claude-code": { "Bash": "allow-always" } } });
    let denies = json!({ "policy": { "denylist": [{ "server": "claude-code", "tool": "Bash" }] } });
    let both = json!({ "policy": denies["policy"], "agentTools": allows["agentTools"] });
    assert_eq!(bash(&rules(&[(Scope::Managed, both)]), "ls"), Some(Level::Deny));
    assert_eq!(bash(&rules(&[(Scope::Managed, allows), (Scope::User, denies)]), "ls"), Some(Level::AllowAlways));
}

#[test]
fn an_answer_that_disables_a_command_is_about_this_command() {
    let mut session = SessionLevels::default();
    let id = action("Bash", json!({})).id().unwrap();
    assert_eq!(id.to_string(), "mcp__claude-code__agent:Bash");
    session.set_disabled([id]);
    let rules = Rules::new(&Config::default(), &session, &[]);
    assert_eq!(bash(&rules, "ls"), Some(Level::Disable));
    assert_eq!(level(&rules, HookAgent::ClaudeCode, "Bash2", json!({})), None);
    assert_eq!(level(&rules, HookAgent::Codex, "Bash", json!({})), None);
}

#[test]
fn a_lasting_answer_has_the_action_in_its_name() {
    let granted = |tool: &str, arguments: Value| action(tool, arguments).granted().map(|tool| tool.name.to_string());
    assert_eq!(granted("Bash", json!({ "command": "git push" })).as_deref(), Some("agent:Bash(git push)"));
    assert_eq!(granted("Bash", json!({ "command": "git push; ls" })), None);
    assert_eq!(action("Bash", json!({ "command": "x".repeat(300) })).target().map(|target| target.len()), Some(300));
    assert_eq!(action("Bash", json!({ "command": "x".repeat(301) })).target(), None);
}

#[test]
fn a_dialog_of_the_agent_is_recognized() {
    assert!(action("AskUserQuestion", json!({})).is_dialog() && !action("Bash", json!({})).is_dialog());
}

#[test]
fn of_two_keys_for_a_command_the_first_is_the_command() {
    let both = action("Bash", json!({ "cmd": "b", "command": "a" }));
    let super::super::ActionKind::Shell { key, text, .. } = &both.kind else { panic!() };
    assert_eq!((*key, text.as_str(), both.unknown_arguments()), ("command", "a", vec!["cmd"]));
}

/// The text as a whole is allowed by the project, which counts for nothing. One command in it is denied, which counts.
#[test]
fn a_project_denies_a_command_inside_of_others_without_a_rule_of_the_user() {
    let denies = json!([{ "when": { "command": { "in": ["rm x"] } }, "level": "deny" }, "allow-always"]);
    let rules = rules(&[(Scope::Project, json!({ "agentTools": { "*": { "Bash": denies } } }))]);
    assert_eq!(bash(&rules, "ls; rm x"), Some(Level::Deny));
    assert_eq!(bash(&rules, "ls"), None);
}

#[test]
fn a_glob_is_about_every_tool_that_it_matches() {
    let rules = rules(&[(Scope::User, json!({ "agentTools": { "*": { "Ba*": "deny" } } }))]);
    assert_eq!(bash(&rules, "ls"), Some(Level::Deny));
    assert_eq!(level(&rules, HookAgent::ClaudeCode, "Read", json!({})), None);
}

/// A command that was not read may be any command.
#[test]
fn no_length_or_nesting_hides_a_command_from_a_rule_that_denies_it() {
    let rule = |condition: Value| {
        let levels = json!([{ "when": { "command": condition }, "level": "deny" }, "require-approval"]);
        rules(&[(Scope::User, json!({ "agentTools": { "*": { "Bash": levels } } }))])
    };
    let lines: String = (0..5_000).map(|number| format!("true {number}\n")).collect();
    for condition in [json!("rm *"), json!({ "in": ["rm -rf x"] }), json!({ "matches": "rm( .*)?" })] {
        let rules = rule(condition);
        for hidden in [
            format!("sudo {}; rm -rf x", "A=1 ".repeat(1_500)),
            format!("{lines}rm -rf x"),
            format!("{}rm -rf x{}", "$(".repeat(20), ")".repeat(20)),
            format!("true {}; rm -rf x", "y".repeat(70_000)),
        ] {
            assert_eq!(bash(&rules, &hidden), Some(Level::Deny), "{hidden:.40}");
        }
    }
    let read_whole: String = (0..2_000).map(|number| format!("true {number}\n")).collect();
    assert_eq!(bash(&rule(json!({ "in": ["rm -rf x"] })), &read_whole), Some(Level::RequireApproval));
    let large = json!({ "command": "rm -rf x; ls", "other": "y".repeat(130 << 10) });
    assert_eq!(level(&rule(json!("rm *")), HookAgent::ClaudeCode, "Bash", large), Some(Level::Deny));
    let unruled = rules(&[(Scope::User, json!({ "agentTools": { "*": { "Read": "deny" } } }))]);
    assert_eq!(bash(&unruled, &lines), None, "no rule is about it");
}

/// `*` is anything to people who write a rule, and a line break in a message makes no difference.
#[test]
fn a_glob_denies_a_command_with_any_arguments_and_no_other_command() {
    for pattern in ["rm *", "rm -rf /*"] {
        let levels = json!([{ "when": { "command": pattern }, "level": "deny" }, "require-approval"]);
        let rules = rules(&[(Scope::User, json!({ "agentTools": { "*": { "Bash": levels } } }))]);
        for denied in ["rm -rf /tmp/x", "cd a/../b && rm -rf /", "sudo rm -rf /x\n", "rm -rf '/a\nb'"] {
            assert_eq!(bash(&rules, denied), Some(Level::Deny), "{pattern}: {denied}");
        }
        for other in
            ["git commit -m 'one\n\ntwo'", "echo \"$HOME\"", "ls a/../b", "~/x %2f", "format /a", "cat <<E\na /b\nE"]
        {
            assert_eq!(bash(&rules, other), Some(Level::RequireApproval), "{pattern}: {other}");
        }
    }
    let levels = json!([{ "when": { "command": "cat *" }, "level": "allow-session" }, "require-approval"]);
    let rules = rules(&[(Scope::User, json!({ "agentTools": { "*": { "Bash": levels } } }))]);
    assert_eq!(bash(&rules, "cat x"), Some(Level::AllowSession));
    for asked in ["cat /etc/shadow", "cat x y/z", "cat 'x\ny'", "cat x; ls"] {
        assert_eq!(bash(&rules, asked), Some(Level::RequireApproval), "{asked}");
    }
}

#[test]
fn a_command_that_is_a_list_of_words_is_denied_like_one_for_a_shell() {
    for command in [json!(["rm", "x"]), json!(["sudo", "rm", "x"]), json!(["bash", "-lc", "ls; rm x"])] {
        assert_eq!(level(&git(), HookAgent::ClaudeCode, "Bash", json!({ "command": command })), Some(Level::Deny));
    }
    let denies = json!([{ "when": { "command": { "in": ["rm x"] } }, "level": "deny" }, "allow-always"]);
    let exact = rules(&[(Scope::User, json!({ "agentTools": { "*": { "Bash": denies } } }))]);
    let sudo = json!({ "command": ["sudo", "rm", "x"] });
    assert_eq!(level(&exact, HookAgent::ClaudeCode, "Bash", sudo), Some(Level::Deny), "its words are known");
    let status = json!({ "command": ["git", "status"] });
    assert_eq!(level(&git(), HookAgent::ClaudeCode, "Bash", status), Some(Level::RequireApproval), "it is not plain");
}

#[test]
fn a_command_with_very_large_arguments_is_not_read() {
    let shell = |size: usize| action("Bash", json!({ "command": "make", "description": "y".repeat(size) }));
    assert!(shell(100 << 10).is_read_whole() && shell(100 << 10).is_plain());
    assert!(!shell(128 << 10).is_read_whole() && !shell(128 << 10).is_plain());
    for (tool, key) in [("Write", "file_path"), ("WebFetch", "url"), ("Read", "path")] {
        let other = action(tool, json!({ key: "x".repeat(200 << 10) }));
        assert!(other.is_read_whole() && other.is_plain(), "{tool}: only a command is read");
    }
}
