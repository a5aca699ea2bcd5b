//! Tools whose names imitate another server's. Calls are routed by server, so they cannot replace a tool; but a person
//! or a model that reads the list could be misled, so there is a warning.

use crate::model::ServerName;

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
    use super::*;

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
        assert_eq!(found("evil__own"), None, "its own name is not an imitation");
    }
}
