//! The levels of tools, and the user's answers to approvals.

use serde::{Deserialize, Serialize};

/// How freely a tool may run. Ordered from the most to the least restrictive level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    Disable,
    Deny,
    RequireApproval,
    AllowOnce,
    AllowSession,
    AllowProject,
    AllowAlways,
}

impl Level {
    pub const ALL: [Self; 7] = [
        Self::Disable,
        Self::Deny,
        Self::RequireApproval,
        Self::AllowOnce,
        Self::AllowSession,
        Self::AllowProject,
        Self::AllowAlways,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Deny => "deny",
            Self::RequireApproval => "require-approval",
            Self::AllowOnce => "allow-once",
            Self::AllowSession => "allow-session",
            Self::AllowProject => "allow-project",
            Self::AllowAlways => "allow-always",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    /// Whether this level allows calls without asking each time, which a project cannot grant itself.
    pub fn widens(self) -> bool {
        self > Self::RequireApproval
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The user's answer to an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    AllowOnce,
    AllowSession,
    AllowProject,
    AllowAlways,
    Deny,
    Disable,
}

impl Decision {
    pub const ALL: [Self; 6] =
        [Self::AllowOnce, Self::AllowSession, Self::AllowProject, Self::AllowAlways, Self::Deny, Self::Disable];

    pub fn level(self) -> Level {
        match self {
            Self::AllowOnce => Level::AllowOnce,
            Self::AllowSession => Level::AllowSession,
            Self::AllowProject => Level::AllowProject,
            Self::AllowAlways => Level::AllowAlways,
            Self::Deny => Level::Deny,
            Self::Disable => Level::Disable,
        }
    }

    pub fn allows(self) -> bool {
        self.level().widens()
    }

    pub fn as_str(self) -> &'static str {
        self.level().as_str()
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.as_str() == text)
    }
}
