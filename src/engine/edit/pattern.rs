//! Which tools a level is meant for.

use crate::model::{Error, Level, Result, ServerName};
use crate::policy::NameGlob;
use crate::text::one_line;

/// The name or glob that an entry of `tools` can have; a whole name says its server already.
pub fn pattern<'a>(server: &ServerName, tool: &'a str, level: Option<Level>) -> Result<&'a str> {
    let wrong = |message: String| Err(Error::InvalidParams(message));
    let tool = tool.strip_prefix(&format!("mcp__{server}__")).unwrap_or(tool);
    if tool.is_empty() {
        return wrong("`tool` is a tool's name or a glob, such as `*`".to_owned());
    }
    // What somebody wrote into the file by hand can always be taken away.
    match NameGlob::check(tool) {
        Err(reason) if level.is_some() => wrong(format!("`tool`: `{}` is no glob: {reason}", one_line(tool, 80))),
        _ => Ok(tool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_name_is_a_name_and_what_is_no_glob_can_only_be_taken_away() {
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
