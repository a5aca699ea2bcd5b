//! Names of servers and tools. A `ServerName` that exists is valid, so nothing behind it checks again.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What stands between the parts of `mcp__server__tool`; a server's name may not hold it, or routing were ambiguous.
const SEPARATOR: &str = "__";
const LONGEST: usize = 64;

/// A server's name: `[A-Za-z0-9_-]{1,64}` without `__`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(Arc<str>);

/// Why a text is no server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("a server's name may not be empty")]
    Empty,
    #[error("a server's name has at most {LONGEST} characters; this one has {0}")]
    Long(usize),
    #[error("a server's name holds only letters, digits, `-` and `_`; found {0:?}")]
    Character(char),
    #[error("a server's name may not hold the separator `{SEPARATOR}`")]
    Separator,
}

impl ServerName {
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if let Some(odd) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))) {
            return Err(NameError::Character(odd));
        }
        if text.len() > LONGEST {
            return Err(NameError::Long(text.len()));
        }
        if text.contains(SEPARATOR) {
            return Err(NameError::Separator);
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Borrow<str> for ServerName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ServerName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(&text)
    }
}

impl FromStr for ServerName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<ServerName> for String {
    fn from(name: ServerName) -> Self {
        name.0.as_ref().to_owned()
    }
}

/// A tool of one server, written `mcp__server__tool`. The tool's own name may hold anything, `__` included:
/// the server's name cannot, so the first separator after the prefix always ends it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    pub server: ServerName,
    pub tool: Arc<str>,
}

impl ToolId {
    pub fn new(server: ServerName, tool: &str) -> Self {
        Self { server, tool: tool.into() }
    }

    /// Reads `mcp__server__tool`; also `server/tool`, which is quicker to type.
    pub fn parse(text: &str) -> Option<Self> {
        let (server, tool) = match text.strip_prefix("mcp__") {
            Some(rest) => rest.split_once(SEPARATOR)?,
            None => text.split_once('/')?,
        };
        if tool.is_empty() {
            return None;
        }
        Some(Self::new(ServerName::new(server).ok()?, tool))
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mcp__{}__{}", self.server, self.tool)
    }
}

impl fmt::Debug for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ToolId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_checked_where_it_is_made() {
        assert!(ServerName::new("git-hub_2").is_ok());
        assert_eq!(ServerName::new(""), Err(NameError::Empty));
        assert_eq!(ServerName::new("a b"), Err(NameError::Character(' ')));
        assert_eq!(ServerName::new("a__b"), Err(NameError::Separator));
        assert_eq!(ServerName::new(&"x".repeat(65)), Err(NameError::Long(65)));
    }

    #[test]
    fn a_tool_id_reads_back_even_when_the_tool_holds_the_separator() {
        let id = ToolId::new(ServerName::new("a").unwrap(), "b__c");
        assert_eq!(id.to_string(), "mcp__a__b__c");
        assert_eq!(ToolId::parse("mcp__a__b__c"), Some(id.clone()));
        assert_eq!(ToolId::parse("a/b__c"), Some(id));
        assert_eq!(ToolId::parse("mcp__a__"), None);
        assert_eq!(ToolId::parse("plain"), None);
    }
}
