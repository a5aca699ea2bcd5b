//! Which tools a level applies to.

use crate::model::{Error, Level, Result, ServerName};
use crate::policy::NameGlob;
use crate::text::one_line;

/// The name or glob for an entry of `tools`. A full name already contains its server.
pub fn pattern<'a>(server: &ServerName, tool: &'a str, level: Option<Level>) -> Result<&'a str> {
    let wrong = |message: String| Err(Error::InvalidParams(message));
    let tool = tool.strip_prefix(&format!("mcp__{server}__")).unwrap_or(tool);
    if tool.is_empty() {
        return wrong("`tool` must be a tool name or a glob such as `*`".to_owned());
    }
    // An invalid glob that is already in the file can still be removed.
    match NameGlob::check(tool) {
        Err(reason) if level.is_some() => {
            wrong(format!("`tool`: `{}` is not a valid glob: {reason}", one_line(tool, 80)))
        }
        _ => Ok(tool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_are_shortened_and_invalid_globs_can_only_be_removed() {
        let server = ServerName::new("demo").unwrap();
        let deny = Some(Level::Deny);
        assert_eq!(pattern(&server, "mcp__demo__echo", deny).unwrap(), "echo");
        assert_eq!(pattern(&server, "mcp__demo__r*", deny).unwrap(), "r*");
        assert_eq!(pattern(&server, "mcp__other__echo", deny).unwrap(), "mcp__other__echo", "a gateway may have it");
        for wrong in ["", "mcp__demo__", "[", "a{b"] {
            assert_eq!(pattern(&server, wrong, deny).unwrap_err().kind(), "invalid-params", "{wrong}");
        }
        assert_eq!(pattern(&server, "[", None).unwrap(), "[");
    }
}
