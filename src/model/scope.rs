//! The scope of a definition.

use serde::{Deserialize, Serialize};

/// Where a definition comes from. If two scopes define the same server, the greater one takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    User,
    Project,
    Local,
    Session,
    Managed,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Session => "session",
            Self::Managed => "managed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::User, Self::Project, Self::Local, Self::Session, Self::Managed]
            .into_iter()
            .find(|scope| scope.as_str() == text)
    }

    /// Files of these scopes are in the project and may come from `git clone`. They cannot start or grant anything before
    /// the user has trusted them.
    pub fn needs_trust(self) -> bool {
        matches!(self, Self::Project | Self::Local)
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
