//! The agents that can ask us about their own tools.

use serde::{Deserialize, Serialize};

use super::ServerName;

/// An agent whose hooks run `mcp-sidecar hook`. Its own tools take the place of the tools of a server with its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookAgent {
    ClaudeCode,
    Codex,
    Gemini,
    Copilot,
}

impl HookAgent {
    pub const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Copilot];

    /// Its name in `agentTools`, in records and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Copilot => "Copilot CLI",
        }
    }

    /// The name that it reports as an MCP client, which settings about agents use.
    pub fn reported_name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex-mcp-client",
            Self::Gemini => "gemini-cli-mcp-client",
            Self::Copilot => "copilot-cli",
        }
    }

    /// What stands for the server in rules, questions and records.
    pub fn server(self) -> Option<ServerName> {
        ServerName::new(self.as_str()).ok()
    }
}

impl std::fmt::Display for HookAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
