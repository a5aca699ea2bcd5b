//! Names of servers and tools. A `ServerName` is always valid, so it is only checked when it is created.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Subject;

/// Separates the parts of `mcp__server__tool`. Server names must not contain it, because routing would be ambiguous.
const SEPARATOR: &str = "__";
const MAX_LENGTH: usize = 64;

/// The name of a server: `[A-Za-z0-9_-]{1,64}` without `__`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerName(Arc<str>);

/// Why a text is not a valid server name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("server names must not be empty")]
    Empty,
    #[error("server names can have at most {MAX_LENGTH} characters; this one has {0}")]
    Long(usize),
    #[error("server names can only contain letters, digits, `-` and `_`; found {0:?}")]
    Character(char),
    #[error("server names must not contain `{SEPARATOR}`, which separates server and tool")]
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
        if text.len() > MAX_LENGTH {
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

    /// The only other name whose tools can have the same full names: `a_` for `a`, and `a` for `a_`. The two are never
    /// used at the same time.
    pub fn colliding_name(&self) -> Option<Self> {
        match self.0.strip_suffix('_') {
            Some(shorter) => Self::new(shorter).ok(),
            None => Self::new(&format!("{self}_")).ok(),
        }
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

/// A tool of a server, written `mcp__server__tool`. The tool's name may contain `__`, but the server's name cannot, so the
/// first separator after the prefix ends it. A server's name that ends with `_` is therefore read as the
/// name that it collides with, which [`ToolId::other`] corrects for callers that know the servers.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId {
    pub server: ServerName,
    pub tool: Arc<str>,
}

impl ToolId {
    pub fn new(server: ServerName, tool: &str) -> Self {
        Self { server, tool: tool.into() }
    }

    /// Parses `mcp__server__tool`, or `server/tool`, which is easier to type.
    pub fn parse(text: &str) -> Option<Self> {
        let (server, tool) = match text.strip_prefix("mcp__") {
            // `_` is a valid server name, an empty one is not.
            Some(rest) => rest.strip_prefix("___").map(|tool| ("_", tool)).or_else(|| rest.split_once(SEPARATOR))?,
            None => text.split_once('/')?,
        };
        if tool.is_empty() {
            return None;
        }
        Some(Self::new(ServerName::new(server).ok()?, tool))
    }

    /// The tool of the colliding server with the same full name: `echo` of `a_` for `_echo` of `a`.
    pub fn other(&self) -> Option<Self> {
        let tool = self.tool.strip_prefix('_').filter(|tool| !tool.is_empty())?;
        let server = self.server.colliding_name().filter(|other| other.as_str().ends_with('_'))?;
        Some(Self::new(server, tool))
    }
}

impl ToolId {
    /// How an error refers to it. A resource or a prompt has no full name.
    pub fn describe(&self) -> String {
        let of = |kind: &str, name: &str| format!("the {kind} `{name}` of `{}`", self.server);
        let agent = || {
            let tool = self.tool.strip_prefix(Subject::AGENT)?;
            Some(format!("`{tool}` of the agent `{}`", self.server))
        };
        let prompt = || self.tool.strip_prefix(Subject::PROMPT).map(|name| of("prompt", name));
        let resource = self.tool.strip_prefix(Subject::RESOURCE).map(|uri| of("resource", uri));
        resource.or_else(prompt).or_else(agent).unwrap_or_else(|| format!("`{self}`"))
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
    fn a_name_is_checked_when_it_is_created() {
        assert!(ServerName::new("git-hub_2").is_ok());
        assert_eq!(ServerName::new(""), Err(NameError::Empty));
        assert_eq!(ServerName::new("a b"), Err(NameError::Character(' ')));
        assert_eq!(ServerName::new("a__b"), Err(NameError::Separator));
        assert_eq!(ServerName::new(&"x".repeat(65)), Err(NameError::Long(65)));
    }

    #[test]
    fn a_tool_id_can_be_parsed_even_if_the_tool_contains_the_separator() {
        let id = ToolId::new(ServerName::new("a").unwrap(), "b__c");
        assert_eq!(id.to_string(), "mcp__a__b__c");
        assert_eq!(ToolId::parse("mcp__a__b__c"), Some(id.clone()));
        assert_eq!(ToolId::parse("a/b__c"), Some(id));
        assert_eq!(ToolId::parse("mcp__a__"), None);
        assert_eq!(ToolId::parse("plain"), None);
    }

    #[test]
    fn a_server_name_that_ends_with_an_underscore_is_ambiguous() {
        let id = ToolId::new(ServerName::new("a_").unwrap(), "echo");
        let read = ToolId::parse(&id.to_string()).unwrap();
        assert_eq!((read.server.as_str(), &*read.tool), ("a", "_echo"));
        assert_eq!(read.to_string(), id.to_string());
        assert_eq!(read.other(), Some(id.clone()));
        assert_eq!(id.other(), None);
        assert_eq!(id.server.colliding_name(), Some(read.server.clone()));
        assert_eq!(read.server.colliding_name(), Some(id.server));
        let lone = ToolId::new(ServerName::new("_").unwrap(), "echo");
        assert_eq!(ToolId::parse(&lone.to_string()), Some(lone.clone()));
        assert_eq!(lone.server.colliding_name(), None);
    }
}
