//! Names that imitate another server's. Calls are routed by server, so they cannot replace a tool; but a person or a model
//! that reads the list could be misled, so there is a warning.

use crate::config::Config;
use crate::config::spec::Definition;
use crate::model::ServerName;

/// The server of the user whose name the name of a project's server imitates: `GitHub` or `g1thub` of `github`.
pub fn imitated<'a>(definition: &Definition, config: &'a Config) -> Option<&'a ServerName> {
    if !definition.scope.needs_trust() {
        return None;
    }
    let look = appearance(definition.key.as_str());
    let own = config
        .servers
        .values()
        .filter(|other| !other.scope.needs_trust() || other.hides.iter().any(|hidden| !hidden.scope.needs_trust()));
    own.map(|other| &other.key).find(|name| **name != definition.key && appearance(name.as_str()) == look)
}

/// How a name looks at a glance: without case and separators, and with one character for those that look alike.
pub fn appearance(name: &str) -> String {
    let same = |c: char| match c.to_ascii_lowercase() {
        'i' | '1' => 'l',
        '0' => 'o',
        '5' => 's',
        '2' => 'z',
        '8' => 'b',
        c => c,
    };
    let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_')).map(same).collect();
    plain.replace("rn", "m").replace("vv", "w")
}

/// The other server that a tool name imitates: `fs__write_file` or `mcp__fs__write_file` of a server other than `fs`.
pub fn lookalike<'a>(
    server: &ServerName,
    tool: &str,
    servers: impl IntoIterator<Item = &'a ServerName>,
) -> Option<&'a ServerName> {
    let name = tool.strip_prefix("mcp__").unwrap_or(tool);
    servers.into_iter().filter(|other| *other != server).find(|other| {
        let rest = name.get(other.as_str().len()..).filter(|_| name.starts_with(other.as_str()));
        rest.is_some_and(|rest| ["__", "/", "."].iter().any(|separator| rest.starts_with(separator)))
    })
}

/// The warning for the server's status.
pub fn warning(tool: &str, other: &ServerName) -> String {
    format!("its tool `{}` looks like a tool of `{other}`", crate::text::one_line(tool, 128))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::spec::Hidden;
    use crate::model::Scope;

    #[test]
    fn names_that_look_alike_are_equal_at_a_glance() {
        let look = appearance;
        for name in ["GitHub", "g1thub", "git-hub", "github_", "glthub", "Git_Hub"] {
            assert_eq!(look(name), look("github"), "{name}");
        }
        assert_eq!(look("rnemory"), look("memory"));
        assert_ne!(look("gitlab"), look("github"));
        assert_ne!(look("github2"), look("github"));
    }

    #[test]
    fn a_tool_with_another_servers_name_is_detected() {
        let servers = ["fs", "fs-two", "evil"].map(|name| ServerName::new(name).unwrap());
        let evil = &servers[2];
        let found = |tool: &str| lookalike(evil, tool, &servers).map(|other| warning(tool, other));
        assert_eq!(found("fs__write_file").as_deref(), Some("its tool `fs__write_file` looks like a tool of `fs`"));
        assert!(found("mcp__fs-two__read").is_some());
        assert!(found("fs/read").is_some());
        assert_eq!(found("fsync"), None);
        assert_eq!(found("write_file"), None);
        assert_eq!(found("db__write"), None);
        assert_eq!(found("evil__own"), None, "its own name is not an imitation");
    }

    fn server(key: &str, scope: Scope, hides: &[Scope]) -> Definition {
        let hidden = |scope: &Scope| Hidden { scope: *scope, file: None, key_span: 0..0, line: 0, tools: Vec::new() };
        let key = ServerName::new(key).unwrap();
        let definition = crate::policy::tests::definition(scope, "/mcp.json", &[]);
        Definition { name: key.clone(), key, hides: hides.iter().map(hidden).collect(), ..definition }
    }

    #[test]
    fn a_server_of_a_project_can_imitate_only_a_server_of_the_user() {
        use Scope::{Local, Project, User};
        let github = |scope, hides: &[Scope]| server("github", scope, hides);
        for (own, other, expected) in [
            (server("GitHub", Project, &[]), github(User, &[]), true),
            (server("g1thub", Local, &[]), github(Scope::Managed, &[]), true),
            (server("gitlab", Project, &[]), github(User, &[]), false),
            (server("GitHub", User, &[]), github(User, &[]), false),
            (server("GitHub", Project, &[]), github(Project, &[]), false),
            (server("GitHub", Project, &[]), github(Project, &[Local]), false),
            // The server of the user exists, although this project overrides it.
            (server("GitHub", Project, &[]), github(Local, &[Project, User]), true),
            (server("github", Project, &[]), github(User, &[]), false),
        ] {
            let servers = [(other.name.clone(), Arc::new(other))].into();
            let config = Config { servers, ..Config::default() };
            let found = imitated(&own, &config).map(ServerName::as_str);
            assert_eq!(found, expected.then_some("github"), "{} of {}", own.key, own.scope);
        }
    }

    #[test]
    fn characters_that_look_alike_are_one() {
        for (name, other) in
            [("il1", "lll"), ("o0O", "ooo"), ("s5", "ss"), ("z2", "zz"), ("b8", "bb"), ("a-b_c", "abc")]
        {
            assert_eq!(appearance(name), appearance(other), "{name}");
        }
        assert_ne!(appearance("git"), appearance("get"));
    }
}
