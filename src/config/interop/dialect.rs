//! The supported programs. Their differences are in `dialects`.

use serde::{Deserialize, Serialize};

use super::dialects;
use super::format::Format;

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
    Gemini,
    Qwen,
    #[serde(rename = "opencode")]
    OpenCode,
    Copilot,
    Continue,
    Goose,
    #[serde(rename = "mcphub")]
    McpHub,
}

impl Dialect {
    pub const ALL: [Self; 15] = [
        Self::VsCode,
        Self::Claude,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::Windsurf,
        Self::Zed,
        Self::Cline,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::OpenCode,
        Self::Copilot,
        Self::Continue,
        Self::Goose,
        Self::McpHub,
    ];

    pub(super) fn format(self) -> &'static Format {
        match self {
            Self::VsCode => &dialects::vscode::FORMAT,
            Self::Claude => &dialects::claude::FORMAT,
            Self::ClaudeDesktop => &dialects::claude_desktop::FORMAT,
            Self::Cursor => &dialects::cursor::FORMAT,
            Self::Windsurf => &dialects::windsurf::FORMAT,
            Self::Zed => &dialects::zed::FORMAT,
            Self::Cline => &dialects::cline::FORMAT,
            Self::Codex => &dialects::codex::FORMAT,
            Self::Gemini => &dialects::gemini::FORMAT,
            Self::Qwen => &dialects::qwen::FORMAT,
            Self::OpenCode => &dialects::opencode::FORMAT,
            Self::Copilot => &dialects::copilot::FORMAT,
            Self::Continue => &dialects::continue_::FORMAT,
            Self::Goose => &dialects::goose::FORMAT,
            Self::McpHub => &dialects::mcphub::FORMAT,
        }
    }

    /// The name on the wire and on the command line.
    pub fn name(self) -> &'static str {
        self.format().name
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == text)
    }

    /// Whether the program can start `mcp-sidecar connect`. mcphub only hosts servers.
    pub fn is_agent(self) -> bool {
        self != Self::McpHub
    }

    /// The command of the program itself that was seen to accept our entry, if it could be run.
    pub fn tried_with(self) -> Option<&'static str> {
        self.format().setup.tried_with
    }

    /// The config files of a project, relative to its folder.
    pub fn project_files(self) -> &'static [&'static str] {
        self.format().project_files
    }

    /// The display name.
    pub fn title(self) -> &'static str {
        self.format().title
    }
}

impl std::fmt::Display for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
