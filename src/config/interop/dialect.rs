//! The supported programs and the differences between their file formats.

use serde::{Deserialize, Serialize};

use crate::config::expand::Reference;

/// The file format of a program that hosts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    #[serde(rename = "vscode")]
    VsCode,
    Claude,
    ClaudeDesktop,
    Cursor,
    Windsurf,
    Zed,
    Cline,
    Codex,
    #[serde(rename = "mcphub")]
    McpHub,
}

impl Dialect {
    pub const ALL: [Self; 9] = [
        Self::VsCode,
        Self::Claude,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::Windsurf,
        Self::Zed,
        Self::Cline,
        Self::Codex,
        Self::McpHub,
    ];

    /// The name on the wire and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::VsCode => "vscode",
            Self::Claude => "claude",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Cline => "cline",
            Self::Codex => "codex",
            Self::McpHub => "mcphub",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == text)
    }

    /// The display name.
    pub fn title(self) -> &'static str {
        match self {
            Self::VsCode => "VS Code",
            Self::Claude => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Cline => "Cline",
            Self::Codex => "Codex",
            Self::McpHub => "mcphub",
        }
    }

    /// The key that contains the servers in a new file.
    pub fn section(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    pub fn is_toml(self) -> bool {
        self == Self::Codex
    }

    pub fn has_comments(self) -> bool {
        matches!(self, Self::VsCode | Self::Zed | Self::Codex | Self::McpHub)
    }

    /// Whether the program expands a reference that is written this way.
    pub(super) fn expands(self, reference: &Reference, written: &str) -> bool {
        let env = written.starts_with("${env:");
        match (self, reference) {
            (Self::ClaudeDesktop | Self::Zed | Self::Cline | Self::Codex, _) => false,
            (_, Reference::Keyring(_) | Reference::Unknown(_)) => false,
            (Self::Claude, Reference::Variable { .. }) => !env,
            (Self::Claude, _) => false,
            (Self::McpHub, Reference::Variable { default, .. }) => default.is_none(),
            (_, Reference::Variable { default, .. }) => env && default.is_none(),
            (Self::VsCode | Self::McpHub, _) => true,
            (Self::Cursor, Reference::Input(_) | Reference::Cwd) => false,
            (Self::Cursor, _) => true,
            (Self::Windsurf, _) => false,
        }
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
